//! Which identifiers are likely to be needed again, and where each is best kept.

use std::collections::{HashMap, HashSet};

use super::{
    entries::{Entry, Speaker},
    identifiers::{Kind, identifiers},
};
use crate::{text::TextRange, tokens::TokenCounter};

/// A message of at most this many bytes is somebody's words; longer ones are mostly what a program
/// said, whoever speaks it.
const WORDS: usize = 1_200;

/// Tokens of the words or the key that an identifier stands beside, on average.
const CONTEXT_TOKENS: f64 = 1.5;

/// A place where an identifier stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    /// The index of the name.
    pub(super) name: usize,
    pub(super) field: usize,
    /// Where it stands in the field's text; `None` where it is the field's key.
    pub(super) range: Option<TextRange>,
}

/// One identifier, wherever it stands.
#[derive(Debug)]
pub(super) struct Name {
    /// The entry at which it is kept, where nothing else shows it.
    pub(super) home: usize,
    /// Its place when names are ordered from the one that is most worth its tokens.
    pub(super) rank: usize,
}

/// All identifiers of a job.
pub(super) struct Names {
    pub(super) names: Vec<Name>,
    /// Of each entry, in order.
    pub(super) mentions: Vec<Vec<Mention>>,
}

/// What is known of an identifier when the job is planned.
struct Known<'e> {
    text: &'e str,
    kind: Kind,
    home: usize,
    home_score: u8,
    passages: usize,
    last_passage: usize,
    in_words: bool,
    in_arguments: bool,
}

impl Names {
    /// Finds them, and ranks them. Runs in time linear in the text, but for the sort.
    pub(super) fn of<'t>(
        entries: &[Entry<'_>],
        tail: impl Iterator<Item = &'t str>,
        counter: &dyn TokenCounter,
    ) -> Self {
        let mut by_text: HashMap<&str, usize> = HashMap::new();
        let mut known: Vec<Known<'_>> = Vec::new();
        let mut mentions: Vec<Vec<Mention>> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let mut here = Vec::new();
            for (field, (text, range, kind)) in named(entry) {
                let name = *by_text.entry(text).or_insert(known.len());
                if name == known.len() {
                    known.push(Known::new(text, kind));
                }
                if let Some(known) = known.get_mut(name) {
                    known.see(at, entry);
                }
                here.push(Mention { name, field, range });
            }
            mentions.push(here);
        }
        let mut in_tail: HashSet<usize> = HashSet::new();
        for text in tail {
            let names = identifiers(text).filter_map(|(range, _)| by_text.get(range.of(text)).copied());
            in_tail.extend(names);
        }
        let last = entries.last().map_or(0, |entry| entry.passage);
        let mut ranked: Vec<(usize, f64)> = known
            .iter()
            .enumerate()
            .map(|(name, known)| {
                let worth = known.worth(in_tail.contains(&name), last);
                (name, worth / (counter.count(known.text) as f64 + CONTEXT_TOKENS))
            })
            .collect();
        ranked.sort_by(|(a, left), (b, right)| right.total_cmp(left).then(a.cmp(b)));
        let mut names: Vec<Name> =
            known.iter().map(|known| Name { home: known.home, rank: 0 }).collect();
        for (rank, (name, _)) in ranked.into_iter().enumerate() {
            if let Some(name) = names.get_mut(name) {
                name.rank = rank;
            }
        }
        Self { names, mentions }
    }
}

/// The identifiers of an entry with the index of their field: keys before what stands under them.
fn named<'e>(
    entry: &'e Entry<'_>,
) -> impl Iterator<Item = (usize, (&'e str, Option<TextRange>, Kind))> {
    entry.fields.iter().enumerate().flat_map(|(index, field)| {
        let key = field.key.as_deref().unwrap_or_default();
        // The key is written whole or not at all.
        let key = identifiers(key)
            .filter(move |(range, _)| range.len() == key.len())
            .map(move |(_, kind)| (key, None, kind));
        let text = field.text.as_ref();
        let values =
            identifiers(text).map(move |(range, kind)| (range.of(text), Some(range), kind));
        key.chain(values).map(move |found| (index, found))
    })
}

impl<'e> Known<'e> {
    fn new(text: &'e str, kind: Kind) -> Self {
        Self {
            text,
            kind,
            home: 0,
            home_score: 0,
            passages: 0,
            last_passage: 0,
            in_words: false,
            in_arguments: false,
        }
    }

    fn see(&mut self, at: usize, entry: &Entry<'_>) {
        if self.passages == 0 || self.last_passage != entry.passage {
            self.passages += 1;
            self.last_passage = entry.passage;
        }
        let is_short = entry.size <= WORDS;
        let score = match entry.speaker {
            Speaker::Call(_) => 3,
            Speaker::User if is_short => 4,
            _ => 1,
        };
        self.in_words |= entry.speaker == Speaker::User && is_short;
        self.in_arguments |= matches!(entry.speaker, Speaker::Call(_));
        if score > self.home_score {
            self.home_score = score;
            self.home = at;
        }
    }

    /// How likely it is that the identifier is needed again, as counted over recorded sessions:
    /// what was used twice is used again, and so is what somebody asked for by name.
    fn worth(&self, in_tail: bool, last_passage: usize) -> f64 {
        let often = match self.passages {
            0 | 1 => 0.2,
            2 => 0.42,
            3 => 0.5,
            4 => 0.6,
            5 => 0.65,
            _ => 0.72,
        };
        let once = self.passages <= 1;
        let place = match (self.in_words, self.in_arguments, once) {
            (true, _, true) | (_, true, true) => 1.8,
            (true, _, false) | (_, true, false) => 1.1,
            (_, _, true) => 1.0,
            (_, _, false) => 0.9,
        };
        let kind = match self.kind {
            Kind::Number | Kind::Code if once => 0.6,
            Kind::Date | Kind::Word if once => 1.4,
            Kind::Address => 0.6,
            _ => 1.0,
        };
        let age = (last_passage - self.last_passage.min(last_passage)) as f64
            / (last_passage.max(1)) as f64;
        let worth = often * place * kind * (1.25 - 0.6 * age);
        if in_tail { worth.max(0.6) } else { worth }
    }
}
