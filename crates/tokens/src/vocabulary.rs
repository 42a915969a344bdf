//! The tokens of a tokenizer, in tables that the build script made.

use crate::{
    classes,
    slot_hash::{RANK_BITS, pair_bit, pair_hash, pair_key, slot_hash, slot_tag},
};

/// The position of a token in its vocabulary. Byte pairs of a lower rank merge first.
pub(super) type Rank = u32;

/// No token. Greater than every rank.
pub(super) const NO_RANK: Rank = 1 << RANK_BITS;

/// All tokens of a tokenizer but the special ones. Words are of 32 bits if nothing else is said.
pub(super) struct Vocabulary {
    /// The bytes of the tokens, one after the other, by rank.
    tokens: &'static [u8],
    /// Where each token begins in `tokens`, and where the last one ends: words.
    starts: &'static [u8],
    /// The rank of each byte: 256 words.
    bytes: &'static [u8],
    /// What each two bytes merge to, or [`NO_RANK`]: 65,536 words.
    byte_pairs: &'static [u8],
    /// A rank plus one and upper bits of the hash where a token is, at its hash or behind; else
    /// zero: words, a power of two of them.
    slots: &'static [u8],
    /// The key of two tokens and the rank of what they merge to, at the hash of the key or behind;
    /// else zero: words of 64 bits, a power of two of them.
    pairs: &'static [u8],
    /// Bits, a power of two of them, of which one is set for each pair: most pairs that do not
    /// merge are told by them, which are few enough to be near.
    pair_bits: &'static [u8],
    /// The block of each 64 characters, as two bytes, and the blocks: the rank of each character
    /// of several bytes that merges to one token when it stands alone, or [`NO_RANK`].
    char_numbers: &'static [u8],
    char_blocks: &'static [u8],
    /// By the first byte of a character and the one before it, the lowest rank of the tokens that
    /// hold both and cut the character; 64 times 256 words.
    cuts_before: &'static [u8],
    /// By the last byte of a character and the one after it, the same.
    cuts_after: &'static [u8],
}

macro_rules! vocabulary {
    ($name:literal) => {
        Vocabulary {
            tokens: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tokens")),
            starts: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".starts")),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytes")),
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
            byte_pairs: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".byte_pairs")),
            pairs: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".pairs")),
            pair_bits: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".pair_bits")),
            char_numbers: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".char_numbers")),
            char_blocks: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".char_blocks")),
            cuts_before: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".cuts_before")),
            cuts_after: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".cuts_after")),
        }
    };
}

pub(super) static O200K: Vocabulary = vocabulary!("o200k");
pub(super) static CL100K: Vocabulary = vocabulary!("cl100k");

impl Vocabulary {
    /// The rank of the token with these bytes. Runs in O(its length).
    pub(super) fn rank(&self, token: &[u8]) -> Option<Rank> {
        let mask = (self.slots.len() / 4).wrapping_sub(1);
        let hash = slot_hash(token);
        let mut slot = hash as usize & mask;
        loop {
            let found = word(self.slots, slot)?;
            let rank = (found & (NO_RANK - 1)).checked_sub(1)?;
            if slot_tag(found) == slot_tag(hash) && self.token(rank) == Some(token) {
                return Some(rank);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn token(&self, rank: Rank) -> Option<&'static [u8]> {
        let start = word(self.starts, rank as usize)? as usize;
        let end = word(self.starts, rank as usize + 1)? as usize;
        self.tokens.get(start..end)
    }

    /// The rank of a byte, which is always a token.
    pub(super) fn byte(&self, byte: u8) -> Rank {
        word(self.bytes, usize::from(byte)).unwrap_or(NO_RANK)
    }

    /// The rank of what two bytes beside each other merge to, or [`NO_RANK`].
    #[inline]
    pub(super) fn merged_bytes(&self, left: u8, right: u8) -> Rank {
        let both = usize::from(left) << 8 | usize::from(right);
        word(self.byte_pairs, both).unwrap_or(NO_RANK)
    }

    /// The rank of a character of several bytes from `at` on, where its bytes merge to one token
    /// before anything around them can merge with a part of them; else [`NO_RANK`].
    ///
    /// Each merge makes a token of a higher rank than the merges before it. So bytes of a
    /// character whose token has a lower rank than any token that cuts it merge with each other
    /// first, whatever else stands around them. Merging them at once changes no other merge.
    #[inline]
    pub(super) fn closed_char(&self, text: &[u8], at: usize) -> (Rank, usize) {
        let (char, length) = classes::longer(text, at);
        let number = self.char_numbers.get(char as usize >> 6 << 1..);
        let number = number.and_then(|number| number.first_chunk()).copied().unwrap_or_default();
        let number = usize::from(u16::from_le_bytes(number));
        let rank = word(self.char_blocks, number << 6 | (char as usize & 0x3f)).unwrap_or(NO_RANK);
        let byte = |at: usize| text.get(at).copied();
        let is_kept = |cuts: &'static [u8], inside: Option<u8>, outside: Option<u8>| {
            let (Some(inside), Some(outside)) = (inside, outside) else { return true };
            let place = usize::from(inside & 0x3f) << 8 | usize::from(outside);
            word(cuts, place).is_some_and(|lowest| rank < lowest)
        };
        let end = at + length;
        let is_closed = is_kept(self.cuts_before, byte(at), at.checked_sub(1).and_then(byte))
            && is_kept(self.cuts_after, byte(end - 1), byte(end));
        (if is_closed { rank } else { NO_RANK }, length)
    }

    /// The rank of what two tokens beside each other merge to; [`NO_RANK`] where they do not, and
    /// where one of them is no token. Runs in O(1).
    #[inline]
    pub(super) fn merged(&self, left: Rank, right: Rank) -> Rank {
        if left >= NO_RANK || right >= NO_RANK {
            return NO_RANK;
        }
        let key = pair_key(left, right);
        let hash = pair_hash(key);
        let bit = pair_bit(hash, self.pair_bits.len() * 8);
        if self.pair_bits.get(bit / 8).is_none_or(|bits| bits >> (bit % 8) & 1 == 0) {
            return NO_RANK;
        }
        let mask = (self.pairs.len() / 8).wrapping_sub(1);
        let mut slot = hash as usize & mask;
        loop {
            let found = self.pairs.get(slot * 8..).and_then(|pairs| pairs.first_chunk());
            let found = u64::from_le_bytes(*found.unwrap_or(&[0; 8]));
            if found == 0 {
                return NO_RANK;
            }
            if found >> RANK_BITS == key {
                return (found & u64::from(NO_RANK - 1)) as Rank;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The tokens by rank.
    #[cfg(test)]
    pub(super) fn tokens(&self) -> impl Iterator<Item = &'static [u8]> {
        (0..).map_while(|rank| self.token(rank))
    }
}

fn word(words: &'static [u8], index: usize) -> Option<u32> {
    let word = words.get(index.checked_mul(4)?..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use tiktoken_rs::CoreBPE;

    use super::*;
    use crate::exact::LONGEST_TOKEN;

    /// The tokens by rank, in the form of `vocabularies/`.
    fn listed<'a>(tokens: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut listed = Vec::new();
        for token in tokens {
            listed.push(u8::try_from(token.len()).unwrap());
            listed.extend_from_slice(token);
        }
        listed
    }

    /// With `AFTERIMAGE_BLESS` set, the files are written anew.
    #[test]
    fn the_vocabularies_are_those_of_tiktoken() {
        let check = |name: &str, vocabulary: &Vocabulary, reference: &CoreBPE| {
            // Ranks count up from zero, and a gap divides them from the special tokens.
            let tokens: Vec<Vec<u8>> =
                (0..).map_while(|rank| reference.decode_bytes(&[rank]).ok()).collect();
            let expected = listed(tokens.iter().map(Vec::as_slice));
            if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/vocabularies");
                std::fs::write(format!("{folder}/{name}.tokens"), expected).unwrap();
            } else {
                assert!(listed(vocabulary.tokens()) == expected, "the tokens of {name} differ");
            }
        };
        check("o200k", &O200K, tiktoken_rs::o200k_base_singleton());
        check("cl100k", &CL100K, tiktoken_rs::cl100k_base_singleton());
    }

    /// Merges the bytes of `token` by the bytes of the tokens alone, until two parts are left.
    fn last_pair(vocabulary: &Vocabulary, token: &[u8]) -> Vec<Rank> {
        let mut ends: Vec<usize> = (0..=token.len()).collect();
        let rank = |ends: &[usize]| vocabulary.rank(&token[ends[0]..ends[ends.len() - 1]]);
        while ends.len() > 3 {
            let lowest = (0..ends.len() - 2)
                .filter_map(|at| rank(&ends[at..at + 3]).map(|rank| (rank, at)))
                .min();
            let Some((_, at)) = lowest else { break };
            ends.remove(at + 1);
        }
        ends.windows(2).map(|part| rank(part).unwrap()).collect()
    }

    #[test]
    fn the_pair_of_a_token_is_the_last_one_that_its_bytes_merge_to() {
        for vocabulary in [&O200K, &CL100K] {
            let mut pairs = 0;
            for (rank, token) in (0..).zip(vocabulary.tokens()) {
                if let &[left, right] = last_pair(vocabulary, token).as_slice() {
                    assert_eq!(vocabulary.merged(left, right), rank, "{token:?}");
                    pairs += 1;
                }
            }
            let held = vocabulary.pairs.chunks(8).filter(|pair| *pair != [0; 8]).count();
            assert_eq!(held, pairs, "and there are no other pairs");
            assert_eq!(vocabulary.merged(NO_RANK, 0), NO_RANK);
            assert_eq!(vocabulary.merged(0, NO_RANK), NO_RANK);
        }
    }

    /// [`Vocabulary::closed_char`] rests on it.
    #[test]
    fn a_merge_makes_a_token_of_a_higher_rank_than_its_parts() {
        for vocabulary in [&O200K, &CL100K] {
            for (rank, token) in (0..).zip(vocabulary.tokens()).filter(|(_, token)| token.len() > 1)
            {
                if let &[left, right] = last_pair(vocabulary, token).as_slice() {
                    assert!(left < rank && right < rank, "{token:?}");
                }
            }
        }
    }

    #[test]
    fn a_vocabulary_holds_each_token_at_its_rank_and_no_special_one() {
        for (vocabulary, size) in [(&O200K, 199_998), (&CL100K, 100_256)] {
            assert_eq!(vocabulary.tokens().count(), size);
            for (rank, token) in (0..).zip(vocabulary.tokens()) {
                assert!((1..=LONGEST_TOKEN).contains(&token.len()));
                assert_eq!(vocabulary.rank(token), Some(rank));
            }
            assert_eq!(vocabulary.rank(b"<|endoftext|>"), None);
            assert_eq!(vocabulary.rank(b""), None);
        }
    }
}
