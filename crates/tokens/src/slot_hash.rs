//! The hashes that find tokens and pairs of tokens in their tables; the build script uses the same
//! file.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// How many bits the rank of a token takes.
pub(crate) const RANK_BITS: u32 = 18;

/// A hash of some bytes, of which the lower bits are good. It decides nothing that can be seen, and
/// whoever makes tokens collide cannot add any to a vocabulary.
pub(crate) fn slot_hash(bytes: &[u8]) -> usize {
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

/// Two ranks in one word, which is the key of what the two tokens merge to.
pub(crate) fn pair_key(left: u32, right: u32) -> u64 {
    u64::from(left) << RANK_BITS | u64::from(right)
}

/// A hash of a [`pair_key`], of which the lower bits are good.
pub(crate) fn pair_hash(key: u64) -> usize {
    (key.wrapping_mul(MULTIPLIER) >> 40) as usize
}
