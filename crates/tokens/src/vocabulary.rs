//! The tokens of a tokenizer, in tables that the build script made.

use crate::slot_hash::slot_hash;

/// The position of a token in its vocabulary. Byte pairs of a lower rank merge first.
pub(super) type Rank = u32;

/// All tokens of a tokenizer but the special ones.
pub(super) struct Vocabulary {
    /// The bytes of the tokens, one after the other, by rank.
    bytes: &'static [u8],
    /// Where each token begins in `bytes`, and where the last one ends: words of 32 bits.
    starts: &'static [u8],
    /// A rank plus one where a token is, at its hash or behind; else zero: words of 32 bits, a
    /// power of two of them.
    slots: &'static [u8],
}

macro_rules! vocabulary {
    ($name:literal) => {
        Vocabulary {
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytes")),
            starts: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".starts")),
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
        }
    };
}

pub(super) static O200K: Vocabulary = vocabulary!("o200k");
pub(super) static CL100K: Vocabulary = vocabulary!("cl100k");

impl Vocabulary {
    /// The rank of the token with these bytes. Runs in O(its length).
    pub(super) fn rank(&self, token: &[u8]) -> Option<Rank> {
        let mask = (self.slots.len() / 4).wrapping_sub(1);
        let mut slot = slot_hash(token) & mask;
        loop {
            let rank = word(self.slots, slot)?.checked_sub(1)?;
            if self.token(rank) == Some(token) {
                return Some(rank);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn token(&self, rank: Rank) -> Option<&'static [u8]> {
        let start = word(self.starts, rank as usize)? as usize;
        let end = word(self.starts, rank as usize + 1)? as usize;
        self.bytes.get(start..end)
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
