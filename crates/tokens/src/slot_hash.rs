//! The hash that finds a token in its table; the build script uses the same file.

/// A hash of some bytes, of which the lower bits are good. It decides nothing that can be seen, and
/// whoever makes tokens collide cannot add any to a vocabulary.
pub(crate) fn slot_hash(bytes: &[u8]) -> usize {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref() {
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    }
    let rest = words.remainder().iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    hash = (hash.rotate_left(5) ^ rest).wrapping_mul(MULTIPLIER);
    (hash >> 32) as usize
}
