//! Byte-pair merges: how many tokens a piece of text becomes.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::vocabulary::{NO_RANK, Rank, Vocabulary};

/// Pieces of up to as many bytes are merged by looking for the lowest rank each time, which takes
/// less than a heap until then. Small in tests, so that they meet both sides.
const SHORT: usize = if cfg!(test) { 12 } else { PLACES };

/// The places of a short piece: one for each byte, and those around it.
const PLACES: usize = 128;

/// The number of tokens that `piece` becomes, where no merge crosses its ends.
///
/// Runs in O(n log n) for a piece of n bytes that is no token itself, and O(n) for one that is.
pub(super) fn count(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
    if piece.len() < 2 || vocabulary.rank(piece).is_some() {
        usize::from(!piece.is_empty())
    } else if piece.len() <= SHORT {
        count_short(vocabulary, piece)
    } else {
        count_long(vocabulary, piece)
    }
}

/// The parts of a short piece, each at the place where it begins.
struct Parts {
    /// The rank of each part.
    ranks: [Rank; PLACES],
    /// What a part and the one after it merge to, times [`PLACES`], plus the place: the lowest one
    /// says what merges first, and where. Signed, since processors compare such words at once.
    merges: [i32; PLACES],
    before: [u8; PLACES],
    after: [u8; PLACES],
}

const NO_MERGE: i32 = i32::MAX;
/// Before the first part, and after the last one.
const NO_PLACE: u8 = u8::MAX;

fn merge_at(rank: Rank, place: u8) -> i32 {
    if rank >= NO_RANK { NO_MERGE } else { (rank * PLACES as u32) as i32 | i32::from(place) }
}

fn get<T: Copy>(places: &[T; PLACES], place: u8, otherwise: T) -> T {
    places.get(usize::from(place)).copied().unwrap_or(otherwise)
}

fn set<T>(places: &mut [T; PLACES], place: u8, value: T) {
    if let Some(old) = places.get_mut(usize::from(place)) {
        *old = value;
    }
}

impl Parts {
    /// Notes what the part at `place` and the one after it merge to.
    fn note(&mut self, vocabulary: &Vocabulary, place: u8) {
        let left = get(&self.ranks, place, NO_RANK);
        let right = get(&self.ranks, get(&self.after, place, NO_PLACE), NO_RANK);
        set(&mut self.merges, place, merge_at(vocabulary.merged(left, right), place));
    }
}

fn count_short(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
    let mut parts = Parts {
        ranks: [NO_RANK; PLACES],
        merges: [NO_MERGE; PLACES],
        before: [NO_PLACE; PLACES],
        after: [NO_PLACE; PLACES],
    };
    let mut previous: Option<(u8, Rank)> = None;
    for (place, byte) in (0_u8..).zip(piece) {
        let rank = vocabulary.byte(*byte);
        set(&mut parts.ranks, place, rank);
        if let Some((before, left)) = previous {
            set(&mut parts.before, place, before);
            set(&mut parts.after, before, place);
            set(&mut parts.merges, before, merge_at(vocabulary.merged(left, rank), before));
        }
        previous = Some((place, rank));
    }
    // Whole blocks of words are compared at once.
    let places = piece.len().next_multiple_of(8).min(PLACES);
    let mut count = piece.len();
    loop {
        let merges = parts.merges.get(..places).unwrap_or_default();
        let lowest = merges.iter().fold(NO_MERGE, |lowest, merge| lowest.min(*merge));
        if lowest == NO_MERGE {
            return count;
        }
        count -= 1;
        let place = (lowest as usize % PLACES) as u8;
        let gone = get(&parts.after, place, NO_PLACE);
        let next = get(&parts.after, gone, NO_PLACE);
        set(&mut parts.ranks, place, lowest as u32 / PLACES as u32);
        set(&mut parts.after, place, next);
        set(&mut parts.before, next, place);
        set(&mut parts.merges, gone, NO_MERGE);
        parts.note(vocabulary, place);
        let before = get(&parts.before, place, NO_PLACE);
        if before != NO_PLACE {
            parts.note(vocabulary, before);
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
