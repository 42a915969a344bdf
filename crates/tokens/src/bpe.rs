//! Exact counts by byte-pair merges over the vocabularies of OpenAI.

use super::{
    CountedText, TokenCounter,
    exact::{self, Tokenizer},
    piece_cache::KeptCache,
    pieces::Pretokenizer,
    vocabulary,
};

/// Counts as tiktoken's `encode_ordinary` does, for texts of any shape and length.
///
/// A splitter cuts the text into pieces, and byte pairs merge inside of each. The vocabularies are
/// tables of the program, 7 and 4 MB large, that are ready at once: no text is parsed when the first
/// count asks.
///
/// A counter and its copies remember the counts of pieces that they met, in up to 3 MiB: make one
/// and keep it. No count depends on what is remembered. Several threads may count at once; what one
/// of them meets meanwhile may be forgotten.
///
/// Counting is linear in the text, apart from a factor of log n for the longest piece, that is for
/// the longest run of letters, of punctuation or of white space. The merge of a piece of n bytes
/// takes some 32 n bytes of memory meanwhile. A value of this type takes 208 KiB
/// from its first count on; clones share them.
///
/// ```
/// use afterimage_tokens::{Bpe, TokenCounter};
///
/// let counter = Bpe::o200k();
/// assert_eq!(counter.id(), "o200k_base");
/// assert_eq!(counter.count("Hello, world!"), 4);
/// ```
#[derive(Clone)]
pub struct Bpe {
    tokenizer: &'static Tokenizer,
    kept: KeptCache,
}

static O200K: Tokenizer = Tokenizer {
    id: "o200k_base",
    pretokenizer: Pretokenizer::O200k,
    vocabulary: &vocabulary::O200K,
};

static CL100K: Tokenizer = Tokenizer {
    id: "cl100k_base",
    pretokenizer: Pretokenizer::Cl100k,
    vocabulary: &vocabulary::CL100K,
};

impl Bpe {
    /// The tokenizer of GPT-4o, GPT-4.1, GPT-5 and the o-series.
    pub fn o200k() -> Self {
        Self { tokenizer: &O200K, kept: KeptCache::default() }
    }

    /// The tokenizer of GPT-4 and GPT-3.5.
    pub fn cl100k() -> Self {
        Self { tokenizer: &CL100K, kept: KeptCache::default() }
    }
}

impl std::fmt::Debug for Bpe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bpe").field(&self.tokenizer.id).finish()
    }
}

impl TokenCounter for Bpe {
    fn id(&self) -> &'static str {
        self.tokenizer.id
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        exact::count(self.tokenizer, &self.kept, text)
    }

    /// Stops where the count exceeds `limit`: O(min(limit, n)) with the log factor above.
    fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        exact::count_up_to(self.tokenizer, &self.kept, text, limit)
    }

    /// Counts again only what lies between the nearest certain word ends on both sides of each
    /// border; everything where there are none.
    fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
        exact::count_joined(self.tokenizer, &self.kept, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pieces_count_as_tiktoken_counts_them() {
        let peers = [
            (Bpe::o200k(), tiktoken_rs::o200k_base_singleton()),
            (Bpe::cl100k(), tiktoken_rs::cl100k_base_singleton()),
        ];
        for (counter, peer) in peers {
            for unit in ["a", "Ab", " ", "\n", "-=", "漢", "\u{301}", "q\u{301}", "lol", "ہے"] {
                for repeat in 1..80 {
                    let text = unit.repeat(repeat);
                    let expected = peer.count_ordinary(&text);
                    assert_eq!(counter.count(&text), expected, "{counter:?} of {text:?}");
                }
            }
        }
    }

    #[test]
    fn a_special_token_in_the_text_counts_as_ordinary_text() {
        assert_eq!(Bpe::o200k().count("<|endoftext|>"), 7);
    }
}
