//! Byte-pair merges: how many tokens a piece of text becomes.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    exact::LONGEST_TOKEN,
    vocabulary::{NO_RANK, Rank, Vocabulary},
};

/// Pieces of up to as many bytes are merged by looking for the lowest rank each time, which takes
/// less than a heap until then. Small in tests, so that they meet both sides.
const SHORT: usize = if cfg!(test) { 20 } else { 128 };

/// The number of tokens that `piece` becomes, where no merge crosses its ends.
///
/// Runs in O(n log n) for a piece of n bytes that is no token itself, and O(n) for one that is.
pub(super) fn count(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
    if piece.len() < 2 {
        return piece.len();
    }
    if piece.len() <= LONGEST_TOKEN && vocabulary.rank(piece).is_some() {
        return 1;
    }
    // Characters of several bytes are mostly one part each. A guess that is too low costs time only.
    let likely = if piece.is_ascii() { piece.len() } else { piece.len() / 2 };
    let short = match likely {
        0..=16 => count_short::<16>(vocabulary, piece),
        17..=32 if SHORT >= 32 => count_short::<32>(vocabulary, piece),
        33..=64 if SHORT >= 64 => count_short::<64>(vocabulary, piece),
        _ => None,
    };
    let short = short.or_else(|| count_short::<SHORT>(vocabulary, piece));
    short.unwrap_or_else(|| count_long(vocabulary, piece))
}

/// The count of a piece that begins with `N` parts at most.
fn count_short<const N: usize>(vocabulary: &Vocabulary, piece: &[u8]) -> Option<usize> {
    Some(Parts::<N>::new(vocabulary, piece)?.merge(vocabulary))
}

/// A part that the merges of a piece begin with, and what the part before it merges to with it.
struct Unit {
    rank: Rank,
    merged: Rank,
}

/// The parts that the merges of a piece begin with: characters whose bytes merge first, and the
/// bytes of others.
struct Units<'a> {
    vocabulary: &'a Vocabulary,
    piece: &'a [u8],
    at: usize,
    /// Up to where bytes stand for themselves.
    bytes_end: usize,
    before: Rank,
    /// The unit before, where it is a byte.
    byte_before: Option<u8>,
}

impl<'a> Units<'a> {
    fn new(vocabulary: &'a Vocabulary, piece: &'a [u8]) -> Self {
        Self { vocabulary, piece, at: 0, bytes_end: 0, before: NO_RANK, byte_before: None }
    }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    #[inline]
    fn next(&mut self) -> Option<Unit> {
        let byte = *self.piece.get(self.at)?;
        if self.at >= self.bytes_end && !byte.is_ascii() {
            let (rank, length) = self.vocabulary.closed_char(self.piece, self.at);
            if rank < NO_RANK {
                self.at += length;
                self.byte_before = None;
                let before = std::mem::replace(&mut self.before, rank);
                return Some(Unit { rank, merged: self.vocabulary.merged(before, rank) });
            }
            self.bytes_end = self.at + length;
        }
        self.at += 1;
        let rank = self.vocabulary.byte(byte);
        let before = std::mem::replace(&mut self.before, rank);
        let merged = match self.byte_before.replace(byte) {
            Some(byte_before) => self.vocabulary.merged_bytes(byte_before, byte),
            None => self.vocabulary.merged(before, rank),
        };
        Some(Unit { rank, merged })
    }
}

/// The parts of a piece of up to `N` bytes, each at the place where it begins; `N` is 128 at most.
struct Parts<const N: usize> {
    /// The rank of each part.
    ranks: [Rank; N],
    /// What a part and the one after it merge to, and in the lowest [`PLACE_BITS`] the place: the
    /// least of them says what merges first, and where. Signed, since that is what processors
    /// compare many of at once.
    merges: [i32; N],
    before: [u8; N],
    after: [u8; N],
    count: usize,
}

const PLACE_BITS: u32 = 7;
const NO_MERGE: i32 = i32::MAX;
/// Before the first part, and after the last one.
const NO_PLACE: u8 = u8::MAX;

fn merge_at(rank: Rank, place: u8) -> i32 {
    if rank >= NO_RANK { NO_MERGE } else { (rank << PLACE_BITS).cast_signed() | i32::from(place) }
}

fn get<T: Copy>(places: &[T], place: u8, otherwise: T) -> T {
    places.get(usize::from(place)).copied().unwrap_or(otherwise)
}

fn set<T>(places: &mut [T], place: u8, value: T) {
    if let Some(old) = places.get_mut(usize::from(place)) {
        *old = value;
    }
}

impl<const N: usize> Parts<N> {
    /// None where a piece begins with more than `N` parts.
    fn new(vocabulary: &Vocabulary, piece: &[u8]) -> Option<Self> {
        let mut parts = Self {
            ranks: [NO_RANK; N],
            merges: [NO_MERGE; N],
            before: [NO_PLACE; N],
            after: [NO_PLACE; N],
            count: 0,
        };
        let mut units = Units::new(vocabulary, piece);
        for (place, unit) in (0..N as u8).zip(&mut units) {
            set(&mut parts.ranks, place, unit.rank);
            if let Some(before) = place.checked_sub(1) {
                set(&mut parts.merges, before, merge_at(unit.merged, before));
                set(&mut parts.after, before, place);
                set(&mut parts.before, place, before);
            }
            parts.count += 1;
        }
        (units.at == piece.len()).then_some(parts)
    }

    /// Notes what the parts at two places merge to.
    fn note(&mut self, vocabulary: &Vocabulary, place: u8, next: u8) {
        let left = get(&self.ranks, place, NO_RANK);
        let right = get(&self.ranks, next, NO_RANK);
        set(&mut self.merges, place, merge_at(vocabulary.merged(left, right), place));
    }

    /// Merges until nothing does, and tells how many parts are left.
    fn merge(mut self, vocabulary: &Vocabulary) -> usize {
        loop {
            let lowest = self.merges.iter().fold(NO_MERGE, |lowest, merge| lowest.min(*merge));
            if lowest == NO_MERGE {
                return self.count;
            }
            self.count -= 1;
            let place = (lowest.cast_unsigned() & ((1 << PLACE_BITS) - 1)) as u8;
            let gone = get(&self.after, place, NO_PLACE);
            let next = get(&self.after, gone, NO_PLACE);
            let before = get(&self.before, place, NO_PLACE);
            set(&mut self.ranks, place, lowest.cast_unsigned() >> PLACE_BITS);
            set(&mut self.merges, gone, NO_MERGE);
            set(&mut self.after, place, next);
            set(&mut self.before, next, place);
            self.note(vocabulary, place, next);
            self.note(vocabulary, before, place);
        }
    }
}

/// A part of a long piece, in a list that is linked both ways; indexed by where it begins.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    /// Where the part ends, which is where the next one begins.
    end: u32,
    rank: Rank,
    /// What it and the next one merge to.
    merged: Rank,
}

fn count_long(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
    if u32::try_from(piece.len()).is_err() {
        // No text of four gigabytes is read anywhere; two halves of one differ by a token or two.
        let (head, tail) = piece.split_at(piece.len() / 2);
        return count_long(vocabulary, head) + count_long(vocabulary, tail);
    }
    let mut links: Vec<Link> = Vec::new();
    for (at, unit) in (0..).zip(Units::new(vocabulary, piece)) {
        if let Some(before) = links.last_mut() {
            before.merged = unit.merged;
        }
        let previous = u32::wrapping_sub(at, 1);
        links.push(Link { previous, end: at + 1, rank: unit.rank, merged: NO_RANK });
    }
    let mut heap: BinaryHeap<Reverse<(Rank, u32)>> = (0..)
        .zip(&links)
        .filter(|(_, link)| link.merged != NO_RANK)
        .map(|(at, link)| Reverse((link.merged, at)))
        .collect();
    let mut count = links.len();
    while let Some(Reverse((merged, at))) = heap.pop() {
        let Some(&link) = links.get(at as usize).filter(|link| link.merged == merged) else {
            // The part was merged with another one since.
            continue;
        };
        let Some(&gone) = links.get(link.end as usize) else { continue };
        count -= 1;
        let next = links.get_mut(gone.end as usize).map_or(NO_RANK, |next| {
            next.previous = at;
            next.rank
        });
        let mut set = |at: u32, link: Link| {
            if let Some(place) = links.get_mut(at as usize) {
                *place = link;
            }
            if link.merged != NO_RANK {
                heap.push(Reverse((link.merged, at)));
            }
        };
        set(link.end, Link { merged: NO_RANK, ..gone });
        let joined =
            Link { end: gone.end, rank: merged, merged: vocabulary.merged(merged, next), ..link };
        set(at, joined);
        if let Some(&before) = links.get(link.previous as usize) {
            let merged = vocabulary.merged(before.rank, merged);
            if let Some(place) = links.get_mut(link.previous as usize) {
                *place = Link { merged, ..before };
            }
            if merged != NO_RANK {
                heap.push(Reverse((merged, link.previous)));
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vocabulary::{CL100K, O200K};

    /// The count by the definition: the lowest pair merges first, byte by byte from the start.
    fn count_slowly(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
        if vocabulary.rank(piece).is_some() {
            return 1;
        }
        let mut ends: Vec<usize> = (0..=piece.len()).collect();
        loop {
            let lowest = ends
                .windows(3)
                .enumerate()
                .filter_map(|(at, ends)| Some((vocabulary.rank(&piece[ends[0]..ends[2]])?, at)))
                .min();
            let Some((_, at)) = lowest else { return ends.len() - 1 };
            ends.remove(at + 1);
        }
    }

    /// Characters that tokens cut, beside those that such tokens begin or end with.
    const AWKWARD: &str =
        " -(tpi\nбоваеппрд京赛车除分数取しっーア한니다은ابتהויकािेกะიაաន្ხớệ∈“—ÃÂé🎈";

    proptest! {
        #[test]
        fn characters_that_begin_as_one_part_merge_as_their_bytes_do(
            chars in proptest::collection::vec(
                prop_oneof![
                    3 => proptest::sample::select(AWKWARD.chars().collect::<Vec<_>>()),
                    1 => any::<char>(),
                    1 => proptest::char::range('\u{400}', '\u{1800}'),
                ],
                1..30,
            )
        ) {
            let piece: String = chars.into_iter().collect();
            for vocabulary in [&O200K, &CL100K] {
                let slow = count_slowly(vocabulary, piece.as_bytes());
                prop_assert_eq!(count(vocabulary, piece.as_bytes()), slow, "{}", piece);
            }
        }
    }

    /// Around each token that begins or ends inside of a character, that character and others.
    #[test]
    fn characters_that_tokens_cut_merge_as_their_bytes_do() {
        for vocabulary in [&O200K, &CL100K] {
            let mut tried = 0;
            for token in vocabulary.tokens() {
                let head = token.iter().take_while(|byte| (0x80..0xc0).contains(*byte)).count();
                let rest = &token[head..];
                if rest.is_empty() || str::from_utf8(token).is_ok() {
                    continue;
                }
                for lead in [&b""[..], b"\xc3", b"\xd0", b"\xe0\xa4", b"\xe1\x83", b"\xe4\xb8"] {
                    for tail in [&b""[..], b"\x80", b"\xbe", b"\x83\x90", b"\xa4\xbe", b"\x80\x81"]
                    {
                        let piece = [lead, token, tail].concat();
                        if str::from_utf8(&piece).is_ok() {
                            let slow = count_slowly(vocabulary, &piece);
                            assert_eq!(count(vocabulary, &piece), slow, "{piece:?}");
                            tried += 1;
                        }
                    }
                }
            }
            assert!(tried > 100, "{tried}");
        }
    }
}
