//! Remembers the counts of pieces, in bounded memory, exactly.
//!
//! A counter has a cache, which its copies share. Its first three levels keep a piece of up to 7, 15
//! or 30 bytes with its count in one entry. The last one keeps the bytes of longer ones in a ring. A
//! piece is compared byte by byte, so no collision can change a count.
//!
//! Each level begins small, and grows while it misses more pieces than it has places: what counts
//! little takes little memory. Short pieces are most of a text, so their entries lie together: a set
//! of eight is one line of the processor's cache.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::slot_hash::{mix, slot_hash};

/// Longer pieces than this are not remembered.
const LONG: usize = 512;

/// How many pieces a set holds.
const WAYS: usize = if cfg!(test) { 2 } else { 8 };
/// How many sets a level has at first and at last. Pieces of up to 7 bytes: 32 to 256 KiB.
const TINY_SETS: [usize; 2] = if cfg!(test) { [2, 8] } else { [1 << 9, 1 << 12] };
/// Of up to 15 bytes: 32 to 512 KiB.
const SHORT_SETS: [usize; 2] = if cfg!(test) { [2, 8] } else { [1 << 8, 1 << 12] };
/// Of up to 30 bytes: 64 KiB to 1 MiB.
const MIDDLE_SETS: [usize; 2] = if cfg!(test) { [1, 4] } else { [1 << 8, 1 << 12] };
/// Of longer ones: 16 to 256 KiB.
const LONG_SETS: [usize; 2] = if cfg!(test) { [1, 4] } else { [1 << 7, 1 << 11] };
/// The bytes of a ring for each set of the last level: 64 KiB to 1 MiB.
const RING_OF_SET: usize = if cfg!(test) { LONG } else { 512 };
/// How much larger a level becomes at once. A power of two, as the numbers of sets are.
const GROWTH: usize = 4;

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
    tiny: Level<u64>,
    short: Level<u128>,
    middle: Level<[u128; 2]>,
    long: LongPieces,
}

impl PieceCache {
    /// How many sets of pieces there is room for.
    fn places(&self) -> usize {
        self.tiny.sets.len() + self.short.sets.len() + self.middle.sets.len() + self.long.sets.len()
    }

    /// The count of `piece`, remembered or new. `text` begins with it.
    #[inline]
    pub(super) fn count(
        &mut self,
        text: &[u8],
        piece: &[u8],
        count: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        match piece.len() {
            0..=1 => piece.len(),
            2..=7 => self.tiny.count(u64::key(text, piece), || count(piece)),
            8..=15 => self.short.count(u128::key(text, piece), || count(piece)),
            16..=30 => self.middle.count(<[u128; 2]>::key(text, piece), || count(piece)),
            31..=LONG => self.long.count(piece, || count(piece)),
            _ => count(piece),
        }
    }
}

/// A piece in a few words, with its length, and above it the count. A key is one without a count.
trait Entry: Copy + PartialEq {
    const EMPTY: Self;
    const SETS: [usize; 2];

    /// The key of `piece`. `text` begins with it.
    fn key(text: &[u8], piece: &[u8]) -> Self;
    fn with_count(self, count: usize) -> Self;
    /// The key, and the count.
    fn parts(self) -> (Self, usize);
    fn hash(self) -> u32;
}

/// Up to 7 bytes, and four bits each for length and count.
impl Entry for u64 {
    const EMPTY: Self = 0;
    const SETS: [usize; 2] = TINY_SETS;

    #[inline]
    fn key(text: &[u8], piece: &[u8]) -> Self {
        let bytes = match text.first_chunk() {
            Some(bytes) => Self::from_le_bytes(*bytes) & ((1 << (8 * piece.len())) - 1),
            None => word(piece) as Self,
        };
        bytes | (piece.len() as Self) << 56
    }

    fn with_count(self, count: usize) -> Self {
        self | (count as Self) << 60
    }

    #[inline]
    fn parts(self) -> (Self, usize) {
        (self & ((1 << 60) - 1), (self >> 60) as usize)
    }

    #[inline]
    fn hash(self) -> u32 {
        mix(self, 0) as u32
    }
}

/// Up to 15 bytes, and four bits each for length and count.
impl Entry for u128 {
    const EMPTY: Self = 0;
    const SETS: [usize; 2] = SHORT_SETS;

    #[inline]
    fn key(text: &[u8], piece: &[u8]) -> Self {
        let bytes = match text.first_chunk() {
            Some(bytes) => Self::from_le_bytes(*bytes) & ((1 << (8 * piece.len())) - 1),
            None => word(piece),
        };
        bytes | (piece.len() as Self) << 120
    }

    fn with_count(self, count: usize) -> Self {
        self | (count as Self) << 124
    }

    #[inline]
    fn parts(self) -> (Self, usize) {
        (self & ((1 << 124) - 1), (self >> 124) as usize)
    }

    #[inline]
    fn hash(self) -> u32 {
        mix(self as u64, (self >> 64) as u64) as u32
    }
}

/// 16 to 30 bytes, and eight bits each for length and count.
impl Entry for [u128; 2] {
    const EMPTY: Self = [0; 2];
    const SETS: [usize; 2] = MIDDLE_SETS;

    #[inline]
    fn key(text: &[u8], piece: &[u8]) -> Self {
        let (head, tail) = piece.split_at(16);
        let bytes = match text.get(16..).and_then(|text| text.first_chunk()) {
            Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * tail.len())) - 1),
            None => word(tail),
        };
        [word(head), bytes | (piece.len() as u128) << 112]
    }

    fn with_count(self, count: usize) -> Self {
        let [head, tail] = self;
        [head, tail | (count as u128) << 120]
    }

    #[inline]
    fn parts(self) -> (Self, usize) {
        let [head, tail] = self;
        ([head, tail & ((1 << 120) - 1)], (tail >> 120) as usize)
    }

    #[inline]
    fn hash(self) -> u32 {
        let [head, tail] = self;
        let head = mix(head as u64, (head >> 64) as u64);
        mix(head ^ tail as u64, (tail >> 64) as u64) as u32
    }
}

/// Pieces that fit in an entry.
struct Level<E> {
    sets: Vec<Set<E>>,
    misses: usize,
}

/// Empty entries are last.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set<E>([E; WAYS]);

impl<E> Default for Level<E> {
    fn default() -> Self {
        Self { sets: Vec::new(), misses: 0 }
    }
}

impl<E: Entry> Level<E> {
    #[inline]
    fn count(&mut self, key: E, count: impl FnOnce() -> usize) -> usize {
        if let Some(Set(entries)) = set_of(&mut self.sets, key.hash()) {
            let parts = entries.iter().map(|entry| entry.parts());
            if let Some((at, (_, count))) = parts.enumerate().find(|(_, (of, _))| *of == key) {
                // What is met often stays longest, and is found first.
                entries.swap(0, at);
                return count;
            }
        }
        let counted = count();
        self.remember(key.with_count(counted));
        counted
    }

    #[inline(never)]
    fn remember(&mut self, entry: E) {
        self.misses += 1;
        let [least, most] = E::SETS;
        if self.misses > self.sets.len() * WAYS / 2 && self.sets.len() < most {
            let sets = (self.sets.len() * GROWTH).clamp(least, most);
            let old = std::mem::replace(&mut self.sets, vec![Set([E::EMPTY; WAYS]); sets]);
            let old = old.into_iter().flat_map(|Set(entries)| entries.into_iter().rev());
            old.filter(|entry| *entry != E::EMPTY).for_each(|entry| self.put(entry));
            self.misses = 0;
        }
        self.put(entry);
    }

    /// Puts an entry before the others of its set, of which the last one goes.
    fn put(&mut self, entry: E) {
        if let Some(Set(entries)) = set_of(&mut self.sets, entry.parts().0.hash()) {
            entries.rotate_right(1);
            entries[0] = entry;
        }
    }
}

#[inline]
fn set_of<T>(sets: &mut [T], hash: u32) -> Option<&mut T> {
    let mask = sets.len().wrapping_sub(1);
    sets.get_mut(hash as usize & mask)
}

/// Up to 16 bytes in a word.
#[inline]
fn word(bytes: &[u8]) -> u128 {
    match bytes.first_chunk() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte)),
    }
}

/// Longer pieces, by the hash of their bytes.
#[derive(Default)]
struct LongPieces {
    sets: Vec<LongSet>,
    ring: Vec<u8>,
    /// Bytes that were ever written to the ring, and those that were skipped at its end.
    written: u64,
    misses: usize,
}

/// Newer ones before older ones.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct LongSet([LongSlot; WAYS]);

#[derive(Clone, Copy, Default)]
struct LongSlot {
    /// What was written before the piece.
    at: u64,
    hash: u32,
    length: u16,
    /// Zero where no piece is.
    count: u16,
}

impl LongPieces {
    fn count(&mut self, piece: &[u8], count: impl FnOnce() -> usize) -> usize {
        let hash = slot_hash(piece);
        let found = set_of(&mut self.sets, hash).and_then(|LongSet(slots)| {
            let written = self.written;
            let ring = &self.ring;
            let is_it =
                |slot: &&LongSlot| slot.hash == hash && slot.piece(ring, written) == Some(piece);
            slots.iter().find(is_it).map(|slot| slot.count)
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
        if self.misses > self.sets.len() * WAYS / 2 && self.sets.len() < most {
            let sets = (self.sets.len() * GROWTH).clamp(least, most);
            let larger = Self {
                sets: vec![LongSet::default(); sets],
                ring: vec![0; sets * RING_OF_SET],
                ..Self::default()
            };
            let old = std::mem::replace(self, larger);
            for slot in old.sets.iter().flat_map(|set| set.0.iter().rev()) {
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
        if let (Some(place), Some(LongSet(slots))) = (place, set) {
            place.copy_from_slice(piece);
            let slot = LongSlot { at: self.written, hash, length: piece.len() as u16, count };
            slots.rotate_right(1);
            slots[0] = slot;
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
            pieces in proptest::collection::vec(("[ab\\x00]{1,34}|[ab]{80,90}", "[ab]{0,20}"), 1..400)
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
