//! Byte-pair merges: how many tokens a piece of text becomes.

use std::{cmp::Reverse, collections::BinaryHeap};

use smallvec::SmallVec;

use crate::vocabulary::{Rank, Vocabulary};

/// Pieces of up to as many bytes are merged by looking for the lowest rank each time, which takes
/// less than a heap until then. Small in tests, so that they meet both sides.
const SHORT: usize = if cfg!(test) { 12 } else { 96 };

/// No pair here is a token.
const NO_RANK: Rank = Rank::MAX;

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

/// A part of a piece: where it begins, and the rank of itself joined with the part after it.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    joined: Rank,
}

fn count_short(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
    let rank = |start: usize, end: usize| {
        piece.get(start..end).and_then(|pair| vocabulary.rank(pair)).unwrap_or(NO_RANK)
    };
    let part = |start| Part { start, joined: rank(start, start + 2) };
    let mut parts: SmallVec<[Part; 32]> = (0..piece.len()).map(part).collect();
    let end = |parts: &[Part], at: usize| parts.get(at).map_or(piece.len(), |part| part.start);
    loop {
        let lowest = parts.iter().enumerate().min_by_key(|(_, part)| part.joined);
        let Some((at, lowest)) = lowest.filter(|(_, part)| part.joined != NO_RANK) else {
            return parts.len();
        };
        let start = lowest.start;
        parts.remove(at + 1);
        let has_next = at + 1 < parts.len();
        let joined = if has_next { rank(start, end(&parts, at + 2)) } else { NO_RANK };
        if let Some(part) = parts.get_mut(at) {
            part.joined = joined;
        }
        if let Some(before) = at.checked_sub(1) {
            let joined = rank(end(&parts, before), end(&parts, at + 1));
            if let Some(part) = parts.get_mut(before) {
                part.joined = joined;
            }
        }
    }
}

/// A part of a long piece, in a list that is linked both ways; indexed by where it begins.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    /// Where the part ends, which is where the next one begins.
    end: u32,
    joined: Rank,
}

fn count_long(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
    let Ok(length) = u32::try_from(piece.len()) else {
        // No text of four gigabytes is read anywhere; two halves of one differ by a token or two.
        let (head, tail) = piece.split_at(piece.len() / 2);
        return count_long(vocabulary, head) + count_long(vocabulary, tail);
    };
    let rank = |start: u32, end: u32| {
        piece.get(start as usize..end as usize).and_then(|pair| vocabulary.rank(pair))
    };
    let mut links: Vec<Link> = (0..length)
        .map(|at| Link {
            previous: at.wrapping_sub(1),
            end: at + 1,
            joined: rank(at, at + 2).unwrap_or(NO_RANK),
        })
        .collect();
    let mut heap: BinaryHeap<Reverse<(Rank, u32)>> = (0..)
        .zip(&links)
        .filter(|(_, link)| link.joined != NO_RANK)
        .map(|(at, link)| Reverse((link.joined, at)))
        .collect();
    let mut count = piece.len();
    while let Some(Reverse((joined, at))) = heap.pop() {
        let Some(&link) = links.get(at as usize).filter(|link| link.joined == joined) else {
            // The part was joined with another one since.
            continue;
        };
        let Some(&gone) = links.get(link.end as usize) else { continue };
        count -= 1;
        let next = links.get_mut(gone.end as usize);
        let joined = match next {
            Some(next) => {
                next.previous = at;
                rank(at, next.end)
            }
            None => None,
        };
        let mut set = |at: u32, link: Link| {
            if let Some(place) = links.get_mut(at as usize) {
                *place = link;
            }
            if link.joined != NO_RANK {
                heap.push(Reverse((link.joined, at)));
            }
        };
        set(link.end, Link { joined: NO_RANK, ..gone });
        set(at, Link { end: gone.end, joined: joined.unwrap_or(NO_RANK), ..link });
        if let Some(&before) = links.get(link.previous as usize) {
            let joined = rank(link.previous, gone.end).unwrap_or(NO_RANK);
            let place = links.get_mut(link.previous as usize);
            if let Some(place) = place {
                *place = Link { joined, ..before };
            }
            if joined != NO_RANK {
                heap.push(Reverse((joined, link.previous)));
            }
        }
    }
    count
}
