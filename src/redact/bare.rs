//! Secrets that were found once, where they stand without what told them.

use std::{collections::HashMap, ops::Range};

use super::rules::entropy;

/// Below these a secret may be a common word, and is one only where something tells it.
const LEAST: usize = 8;
const ENTROPY: f64 = 2.5;

/// How many words hold a bit for each pair of bytes.
const BEGINS: usize = (1 << 16) / 64;

/// The secrets to be found wherever they stand, by their first bytes.
#[derive(Debug, Default)]
pub(super) struct BareSecrets {
    /// Those that begin alike, the longest first.
    by_start: HashMap<[u8; LEAST], Vec<Box<str>>>,
    /// A bit for each pair of first bytes, so that most places of a text are passed over at once.
    begins: Vec<u64>,
}

impl BareSecrets {
    /// Takes a secret that a rule found, unless it could be a word.
    pub(super) fn learn(&mut self, secret: &str) {
        let has = |is: fn(&char) -> bool| secret.chars().any(|c| is(&c));
        let is_word = !has(char::is_ascii_digit) || !has(char::is_ascii_alphabetic);
        let is_short = secret.chars().count() < LEAST;
        if is_word || is_short || entropy(secret) < ENTROPY {
            return;
        }
        let Some(start) = secret.as_bytes().first_chunk() else { return };
        let alike = self.by_start.entry(*start).or_default();
        if alike.iter().any(|known| **known == *secret) {
            return;
        }
        let at = alike.partition_point(|other| other.len() > secret.len());
        alike.insert(at, secret.into());
        self.begins.resize(BEGINS, 0);
        let (word, bit) = place(*start);
        self.begins.get_mut(word).into_iter().for_each(|bits| *bits |= bit);
    }

    /// Where they stand in a text, outside of what was found already, which is in order.
    pub(super) fn find(&self, text: &str, found: &[Range<usize>]) -> Vec<Range<usize>> {
        if self.by_start.is_empty() {
            return Vec::new();
        }
        let ends = found.iter().map(|range| range.start).chain([text.len()]);
        let mut start = 0;
        let mut bare = Vec::new();
        for (index, end) in ends.enumerate() {
            let gap = text.as_bytes().get(..end).unwrap_or_default();
            let mut at = start;
            while let Some(rest) = gap.get(at..).filter(|rest| rest.len() >= LEAST) {
                match self.longest(rest) {
                    Some(length) => {
                        bare.push(at..at + length);
                        at += length;
                    }
                    None => at += 1,
                }
            }
            start = found.get(index).map_or(end, |range| range.end);
        }
        bare
    }

    /// The length of the longest secret that stands at the beginning.
    fn longest(&self, rest: &[u8]) -> Option<usize> {
        let start = rest.first_chunk()?;
        let (word, bit) = place(*start);
        if self.begins.get(word).is_none_or(|bits| bits & bit == 0) {
            return None;
        }
        let alike = self.by_start.get(start)?;
        alike.iter().find(|secret| rest.starts_with(secret.as_bytes())).map(|secret| secret.len())
    }
}

/// Where the bit of the first two bytes is.
fn place(start: [u8; LEAST]) -> (usize, u64) {
    let [one, two, ..] = start;
    let pair = usize::from(u16::from_be_bytes([one, two]));
    (pair / 64, 1 << (pair % 64))
}
