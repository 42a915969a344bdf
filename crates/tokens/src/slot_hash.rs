//! The hashes that find tokens and pairs of tokens in their tables; the build script uses the same
//! file.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// How many bits the rank of a token takes.
pub(crate) const RANK_BITS: u32 = 18;

/// Mixes all bits of two words into all bits of one.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ MULTIPLIER) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    product as u64 ^ (product >> 64) as u64
}

/// A hash of some bytes. It decides nothing that can be seen, and whoever makes tokens collide
/// cannot add any to a vocabulary.
fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref() {
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = mix(hash, word);
    }
    let rest = words.remainder().iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    mix(hash, rest)
}

/// A hash of some bytes, of which all 32 bits are good.
pub(crate) fn slot_hash(bytes: &[u8]) -> u32 {
    (hash_bytes(bytes) >> 32) as u32
}

/// What a slot keeps of a token's [`slot_hash`] above its rank: bits that do not choose the slot.
pub(crate) fn slot_tag(hash: u32) -> u32 {
    hash >> RANK_BITS << RANK_BITS
}

/// Two ranks in one word, which is the key of what the two tokens merge to.
pub(crate) fn pair_key(left: u32, right: u32) -> u64 {
    u64::from(left) << RANK_BITS | u64::from(right)
}

/// A hash of a [`pair_key`], of which the upper and the lower half are good.
pub(crate) fn pair_hash(key: u64) -> u64 {
    let hash = key.wrapping_mul(MULTIPLIER);
    hash ^ hash >> 32
}

/// Which bit of how many, a power of two, says that a pair with this hash may merge.
pub(crate) fn pair_bit(hash: u64, bits: usize) -> usize {
    (hash >> 40) as usize & (bits - 1)
}
