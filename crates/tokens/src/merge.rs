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
    match piece.len() {
        0..=16 => Parts::<16>::new(vocabulary, piece).merge(vocabulary),
        17..=32 if SHORT >= 32 => Parts::<32>::new(vocabulary, piece).merge(vocabulary),
        33..=64 if SHORT >= 64 => Parts::<64>::new(vocabulary, piece).merge(vocabulary),
        17..=SHORT => Parts::<128>::new(vocabulary, piece).merge(vocabulary),
        _ => count_long(vocabulary, piece),
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
    fn new(vocabulary: &Vocabulary, piece: &[u8]) -> Self {
        let mut parts = Self {
            ranks: [NO_RANK; N],
            merges: [NO_MERGE; N],
            before: [NO_PLACE; N],
            after: [NO_PLACE; N],
            count: piece.len(),
        };
        for (place, byte) in (0_u8..).zip(piece) {
            set(&mut parts.ranks, place, vocabulary.byte(*byte));
        }
        for (place, pair) in (0_u8..).zip(piece.windows(2)) {
            let &[left, right] = pair else { continue };
            set(&mut parts.merges, place, merge_at(vocabulary.merged_bytes(left, right), place));
            set(&mut parts.after, place, place + 1);
            set(&mut parts.before, place + 1, place);
        }
        parts
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
    let ranks = || piece.iter().map(|byte| vocabulary.byte(*byte));
    let mut links: Vec<Link> = (0..)
        .zip(ranks().zip(ranks().skip(1).chain([NO_RANK])))
        .map(|(at, (rank, next)): (u32, _)| Link {
            previous: at.wrapping_sub(1),
            end: at + 1,
            rank,
            merged: vocabulary.merged(rank, next),
        })
        .collect();
    let mut heap: BinaryHeap<Reverse<(Rank, u32)>> = (0..)
        .zip(&links)
        .filter(|(_, link)| link.merged != NO_RANK)
        .map(|(at, link)| Reverse((link.merged, at)))
        .collect();
    let mut count = piece.len();
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
