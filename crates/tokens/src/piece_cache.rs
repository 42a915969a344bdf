//! Remembers the counts of pieces, in bounded memory, exactly.
//!
//! Each thread has a cache for each vocabulary. The first level keeps pieces of up to 15 bytes, each
//! in a word with its count; the second keeps the bytes of longer ones in a ring. A piece is
//! compared byte by byte, so no collision can change a count.

use crate::slot_hash::slot_hash;

/// Pieces of up to as many bytes are in the first level.
const SHORT: usize = 15;
/// Longer pieces than this are not remembered.
const LONG: usize = 512;

/// A power of two; 256 KiB of words.
const SHORT_SLOTS: usize = 1 << if cfg!(test) { 4 } else { 14 };
/// A power of two; 192 KiB of slots.
const LONG_SLOTS: usize = 1 << if cfg!(test) { 3 } else { 13 };
/// A multiple of nothing: a piece never goes around its end.
const RING: usize = if cfg!(test) { 700 } else { 384 << 10 };

/// Where the length of a short piece is in its word, and above it the count.
const LENGTH_SHIFT: u32 = 120;
const COUNT_SHIFT: u32 = 124;

/// The counts of pieces of one vocabulary.
pub(super) struct PieceCache {
    /// Zero, or a piece with its length and its count.
    short: Box<[u128]>,
    /// Empty until the first long piece.
    long: Vec<LongSlot>,
    ring: Vec<u8>,
    /// Bytes that were ever written to the ring, those that were skipped at its end with them.
    written: u64,
}

#[derive(Clone, Copy, Default)]
struct LongSlot {
    /// Of `PieceCache::written` when the piece was written.
    at: u64,
    hash: u32,
    length: u16,
    /// Zero where no piece is.
    count: u16,
}

impl Default for PieceCache {
    fn default() -> Self {
        Self { short: vec![0; SHORT_SLOTS].into(), long: Vec::new(), ring: Vec::new(), written: 0 }
    }
}

impl PieceCache {
    /// The count of `piece`, remembered or new. `text` begins with it.
    #[inline]
    pub(super) fn count(
        &mut self,
        text: &[u8],
        piece: &[u8],
        count: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        if piece.len() > SHORT {
            return self.count_long(piece, count);
        }
        let key = short_key(text, piece);
        let hash =
            (key as u64 ^ ((key >> 64) as u64).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (hash >> 40) as usize & (SHORT_SLOTS - 1);
        let Some(entry) = self.short.get_mut(slot) else { return count(piece) };
        if *entry & ((1 << COUNT_SHIFT) - 1) == key {
            return (*entry >> COUNT_SHIFT) as usize;
        }
        let counted = count(piece);
        *entry = key | (counted as u128) << COUNT_SHIFT;
        counted
    }

    fn count_long(&mut self, piece: &[u8], count: impl FnOnce(&[u8]) -> usize) -> usize {
        if piece.len() > LONG {
            return count(piece);
        }
        if self.long.is_empty() {
            self.long = vec![LongSlot::default(); LONG_SLOTS];
            self.ring = vec![0; RING];
        }
        let hash = slot_hash(piece);
        let Some(slot) = self.long.get_mut(hash & (LONG_SLOTS - 1)) else { return count(piece) };
        let hash = hash as u32;
        if slot.hash == hash
            && usize::from(slot.length) == piece.len()
            && slot.count != 0
            // Nothing was written over it since.
            && self.written - slot.at <= RING as u64
            && self.ring.get((slot.at % RING as u64) as usize..).is_some_and(|ring| ring.starts_with(piece))
        {
            return usize::from(slot.count);
        }
        let counted = count(piece);
        let mut at = (self.written % RING as u64) as usize;
        if at + piece.len() > RING {
            self.written += (RING - at) as u64;
            at = 0;
        }
        if let Some(place) = self.ring.get_mut(at..at + piece.len()) {
            place.copy_from_slice(piece);
            *slot = LongSlot {
                at: self.written,
                hash,
                length: piece.len() as u16,
                count: counted as u16,
            };
            self.written += piece.len() as u64;
        }
        counted
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
