//! Exact counts with the vocabularies and merges of `tiktoken-rs`.

use std::sync::LazyLock;

use tiktoken_rs::CoreBPE;

use super::{
    CountedText, TokenCounter,
    exact::{self, PieceCounter},
    pieces::{self, Pretokenizer},
};

/// Counts as the `encode_ordinary` of `tiktoken-rs` does, for texts of any shape and length.
///
/// `tiktoken-rs` 0.12.1 itself panics on a million spaces in a row. Here the text is split by a
/// finite automaton, and `tiktoken-rs` merges the pieces.
///
/// Counting is linear in the text, apart from a factor of log n for the longest piece, that is for
/// the longest run of letters, of punctuation or of white space. The merge of a piece of n bytes
/// takes some 50 n bytes of memory meanwhile. The first use of each vocabulary in a process builds
/// its tables, in a fraction of a second; they are shared from then on, and values of this type
/// are free to make and to copy.
///
/// ```
/// use afterimage::tokens::{Tiktoken, TokenCounter};
///
/// let counter = Tiktoken::o200k();
/// assert_eq!(counter.id(), "o200k_base");
/// assert_eq!(counter.count("Hello, world!"), 4);
/// ```
#[derive(Clone, Copy)]
pub struct Tiktoken {
    vocabulary: &'static Vocabulary,
}

struct Vocabulary {
    id: &'static str,
    pretokenizer: &'static Pretokenizer,
    /// Takes each text that it is given for one piece.
    merges: LazyLock<CoreBPE>,
}

static O200K: Vocabulary = Vocabulary {
    id: "o200k_base",
    pretokenizer: &pieces::O200K,
    merges: LazyLock::new(|| whole_piece_encoder(tiktoken_rs::o200k_base())),
};

static CL100K: Vocabulary = Vocabulary {
    id: "cl100k_base",
    pretokenizer: &pieces::CL100K,
    merges: LazyLock::new(|| whole_piece_encoder(tiktoken_rs::cl100k_base())),
};

/// The vocabulary of `encoder` with a pattern that splits nothing, and that its engine hands to a
/// finite automaton.
fn whole_piece_encoder<E: std::fmt::Debug>(encoder: Result<CoreBPE, E>) -> CoreBPE {
    let encoder = encoder.expect("tiktoken-rs reads the vocabulary that it contains");
    // Ranks count up from zero, and a gap divides them from the special tokens.
    let ranks = (0..).map_while(|rank| Some((encoder.decode_bytes(&[rank]).ok()?, rank))).collect();
    CoreBPE::new(ranks, std::iter::empty().collect(), r"(?s:.)+")
        .expect("the pattern is constant and the ranks are distinct")
}

impl Tiktoken {
    /// The tokenizer of GPT-4o, GPT-4.1, GPT-5 and the o-series.
    pub fn o200k() -> Self {
        Self { vocabulary: &O200K }
    }

    /// The tokenizer of GPT-4 and GPT-3.5.
    pub fn cl100k() -> Self {
        Self { vocabulary: &CL100K }
    }
}

impl std::fmt::Debug for Tiktoken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tiktoken").field(&self.vocabulary.id).finish()
    }
}

impl PieceCounter for Tiktoken {
    fn pretokenizer(&self) -> &'static Pretokenizer {
        self.vocabulary.pretokenizer
    }

    fn count_piece(&self, piece: &str) -> usize {
        self.vocabulary.merges.count_ordinary(piece)
    }
}

impl TokenCounter for Tiktoken {
    fn id(&self) -> &'static str {
        self.vocabulary.id
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        exact::count(self, text)
    }

    /// Stops where the count exceeds `limit`: O(min(limit, n)) with the log factor above.
    fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        exact::count_up_to(self, text, limit)
    }

    /// Counts again only what lies between the nearest certain word ends on both sides of each
    /// border; everything where there are none.
    fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
        exact::count_joined(self, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_vocabulary_is_taken_over_and_its_specials_are_not() {
        for (vocabulary, size) in [(&O200K, 199_998), (&CL100K, 100_256)] {
            let merges = &vocabulary.merges;
            assert!(merges.special_tokens().is_empty());
            assert!(merges.decode_bytes(&[size]).is_err());
            for rank in 0..size {
                let bytes = merges.decode_bytes(&[rank]).unwrap();
                assert!((1..=128).contains(&bytes.len()), "token {rank}");
            }
        }
    }

    #[test]
    fn a_special_token_in_the_text_counts_as_ordinary_text() {
        assert_eq!(Tiktoken::o200k().count("<|endoftext|>"), 7);
    }
}
