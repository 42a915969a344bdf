//! Remembers the counts of pieces, in bounded memory, exactly.
//!
//! A counter has a cache, which its copies share. The first level keeps pieces of up to 15 bytes, each
//! in a word with its count; the second keeps the bytes of longer ones in a ring. A piece is
//! compared byte by byte, so no collision can change a count.
//!
//! Both levels begin small, and grow while they miss more pieces than they have places: what counts
//! little takes little memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::slot_hash::{mix, slot_hash};

/// Pieces of up to as many bytes are in the first level.
const SHORT: usize = 15;
/// Longer pieces than this are not remembered.
const LONG: usize = 512;

/// How many sets of two pieces the first level has at first and at last: 64 KiB to 1 MiB.
const SHORT_SETS: [usize; 2] = if cfg!(test) { [4, 16] } else { [1 << 11, 1 << 15] };
/// How many sets of two pieces the second level has at first and at last: 32 to 512 KiB.
const LONG_SETS: [usize; 2] = if cfg!(test) { [2, 8] } else { [1 << 10, 1 << 14] };
/// The bytes of a ring for each set of the second level: 64 KiB to 1 MiB.
const RING_OF_SET: usize = if cfg!(test) { LONG } else { 64 };
/// How much larger a level becomes at once. A power of two, as the numbers of sets are.
const GROWTH: usize = 4;

/// Where the length of a short piece is in its word, and above it the count.
const LENGTH_SHIFT: u32 = 120;
const COUNT_SHIFT: u32 = 124;

/// Where a cache is between two counts; nothing before the first.
///
/// Who counts takes it away, so nobody waits for another's count: who finds none begins anew.
#[derive(Clone, Default)]
pub(super) struct KeptCache(Arc<Mutex<Option<PieceCache>>>);

impl KeptCache {
    pub(super) fn take(&self) -> PieceCache {
        self.lock().take().unwrap_or_default()
    }

    pub(super) fn keep(&self, cache: PieceCache) {
        let mut kept = self.lock();
        // Another count may have kept one that knows more meanwhile.
        if kept.as_ref().is_none_or(|kept| kept.places() <= cache.places()) {
            *kept = Some(cache);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<PieceCache>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The counts of pieces of one vocabulary.
#[derive(Default)]
pub(super) struct PieceCache {
    short: ShortPieces,
    long: LongPieces,
}

/// The first level.
#[derive(Default)]
struct ShortPieces {
    /// Zero, or a piece with its length and its count; the newer one first.
    sets: Vec<[u128; 2]>,
    misses: usize,
}

/// The second level.
#[derive(Default)]
struct LongPieces {
    /// The newer one first.
    sets: Vec<[LongSlot; 2]>,
    ring: Vec<u8>,
    /// Bytes that were ever written to the ring, and those that were skipped at its end.
    written: u64,
    misses: usize,
}

#[derive(Clone, Copy, Default)]
struct LongSlot {
    /// What was written before the piece.
    at: u64,
    hash: u32,
    length: u16,
    /// Zero where no piece is.
    count: u16,
}

impl PieceCache {
    /// How many sets of pieces there is room for.
    fn places(&self) -> usize {
        self.short.sets.len() + self.long.sets.len()
    }

    /// The count of `piece`, remembered or new. `text` begins with it.
    #[inline]
    pub(super) fn count(
        &mut self,
        text: &[u8],
        piece: &[u8],
        count: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        if piece.len() <= SHORT {
            self.short.count(short_key(text, piece), || count(piece))
        } else if piece.len() <= LONG {
            self.long.count(piece, || count(piece))
        } else {
            count(piece)
        }
    }
}

impl ShortPieces {
    #[inline]
    fn count(&mut self, key: u128, count: impl FnOnce() -> usize) -> usize {
        if let Some([first, second]) = set_of(&mut self.sets, short_hash(key)) {
            let is_it = |entry: u128| entry & ((1 << COUNT_SHIFT) - 1) == key;
            if is_it(*first) {
                return (*first >> COUNT_SHIFT) as usize;
            }
            if is_it(*second) {
                return (*second >> COUNT_SHIFT) as usize;
            }
        }
        let counted = count();
        self.remember(key | (counted as u128) << COUNT_SHIFT);
        counted
    }

    fn remember(&mut self, entry: u128) {
        self.misses += 1;
        let [least, most] = SHORT_SETS;
        if self.misses > self.sets.len() && self.sets.len() < most {
            let sets = (self.sets.len() * GROWTH).clamp(least, most);
            let old = std::mem::replace(&mut self.sets, vec![[0; 2]; sets]);
            old.into_iter().flatten().rev().filter(|entry| *entry != 0).for_each(|entry| {
                self.put(entry);
            });
            self.misses = 0;
        }
        self.put(entry);
    }

    fn put(&mut self, entry: u128) {
        let hash = short_hash(entry & ((1 << COUNT_SHIFT) - 1));
        if let Some(set) = set_of(&mut self.sets, hash) {
            *set = [entry, set[0]];
        }
    }
}

fn short_hash(key: u128) -> u32 {
    mix(key as u64, (key >> 64) as u64) as u32
}

fn set_of<T>(sets: &mut [T], hash: u32) -> Option<&mut T> {
    let mask = sets.len().wrapping_sub(1);
    sets.get_mut(hash as usize & mask)
}

impl LongPieces {
    fn count(&mut self, piece: &[u8], count: impl FnOnce() -> usize) -> usize {
        let hash = slot_hash(piece);
        let found = set_of(&mut self.sets, hash).and_then(|set| {
            let written = self.written;
            let ring = &self.ring;
            let is_it =
                |slot: &&LongSlot| slot.hash == hash && slot.piece(ring, written) == Some(piece);
            set.iter().find(is_it).map(|slot| slot.count)
        });
        if let Some(count) = found {
            return usize::from(count);
        }
        let counted = count();
        self.remember(hash, piece, counted as u16);
        counted
    }

    fn remember(&mut self, hash: u32, piece: &[u8], count: u16) {
        self.misses += 1;
        let [least, most] = LONG_SETS;
        if self.misses > self.sets.len() && self.sets.len() < most {
            let sets = (self.sets.len() * GROWTH).clamp(least, most);
            let larger = Self {
                sets: vec![Default::default(); sets],
                ring: vec![0; sets * RING_OF_SET],
                ..Self::default()
            };
            let old = std::mem::replace(self, larger);
            for slot in old.sets.iter().flatten().rev() {
                if let Some(piece) = slot.piece(&old.ring, old.written) {
                    self.put(slot.hash, piece, slot.count);
                }
            }
        }
        self.put(hash, piece, count);
    }

    fn put(&mut self, hash: u32, piece: &[u8], count: u16) {
        let length = self.ring.len();
        let mut at = (self.written % length as u64) as usize;
        if at + piece.len() > length {
            self.written += (length - at) as u64;
            at = 0;
        }
        let place = self.ring.get_mut(at..at + piece.len());
        let set = set_of(&mut self.sets, hash);
        if let (Some(place), Some(set)) = (place, set) {
            place.copy_from_slice(piece);
            let slot = LongSlot { at: self.written, hash, length: piece.len() as u16, count };
            *set = [slot, set[0]];
            self.written += piece.len() as u64;
        }
    }
}

impl LongSlot {
    /// The piece, where there is one that was not written over since.
    fn piece<'a>(&self, ring: &'a [u8], written: u64) -> Option<&'a [u8]> {
        if self.count == 0 || written - self.at > ring.len() as u64 {
            return None;
        }
        let at = (self.at % ring.len() as u64) as usize;
        ring.get(at..at + usize::from(self.length))
    }
}

/// The bytes of a short piece and its length, in a word. `text` begins with `piece`.
#[inline]
fn short_key(text: &[u8], piece: &[u8]) -> u128 {
    let bytes = if let Some(bytes) = text.first_chunk() {
        u128::from_le_bytes(*bytes) & ((1 << (8 * piece.len())) - 1)
    } else {
        piece.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
    };
    bytes | (piece.len() as u128) << LENGTH_SHIFT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any count that depends on all bytes, and is at most that of the bytes.
    fn count(piece: &[u8]) -> usize {
        1 + piece.iter().enumerate().map(|(at, byte)| at * usize::from(*byte)).sum::<usize>()
            % piece.len()
    }

    proptest! {
        #[test]
        fn a_count_that_is_remembered_is_that_of_the_piece(
            pieces in proptest::collection::vec(("[ab]{1,18}|[ab]{80,90}", "[ab]{0,20}"), 1..400)
        ) {
            let mut cache = PieceCache::default();
            for (piece, after) in &pieces {
                let text = format!("{piece}{after}");
                let found = cache.count(text.as_bytes(), piece.as_bytes(), count);
                prop_assert_eq!(found, count(piece.as_bytes()), "{}", piece);
            }
        }
    }

    #[test]
    fn a_piece_that_was_just_counted_is_not_counted_again() {
        let mut cache = PieceCache::default();
        for length in 1..=LONG {
            let piece = "x".repeat(length);
            let counted = cache.count(piece.as_bytes(), piece.as_bytes(), count);
            let again = cache.count(piece.as_bytes(), piece.as_bytes(), |_| 0);
            assert_eq!(again, counted);
        }
    }
}
