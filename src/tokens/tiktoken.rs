//! Exact counts with the vocabularies and merges of `tiktoken-rs`.

use std::{collections::HashSet, sync::LazyLock};

use tiktoken_rs::CoreBPE;

use super::{
    CountedText, TokenCounter,
    exact::{self, LONGEST_TOKEN, PieceCounter},
    pieces::{self, Pretokenizer},
};

/// Pieces of as many bytes are kept from the backtracking engine of `tiktoken-rs`, which gives up
/// at a million steps. Small in tests, so that they meet both sides.
const LONG_PIECE: usize = if cfg!(test) { 24 } else { 64 << 10 };

/// Counts as the `encode_ordinary` of `tiktoken-rs` does, for texts of any shape and length.
///
/// `tiktoken-rs` 0.12.1 itself panics on a million spaces in a row. Here a finite automaton splits
/// the text, and `tiktoken-rs` merges the pieces.
///
/// Counting is linear in the text, apart from a factor of log n for the longest piece, that is for
/// the longest run of letters, of punctuation or of white space. The merge of a piece of n bytes
/// takes some 50 n bytes of memory meanwhile. The first use of each vocabulary in a process builds
/// its tables, in some 0.2 to 0.4 seconds; they are shared from then on, with other users of
/// `tiktoken-rs` too, and values of this type are free to make and to copy.
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
    encoder: fn() -> &'static CoreBPE,
    /// All tokens, since most pieces are one and `encoder` is slow to say so.
    tokens: LazyLock<HashSet<Vec<u8>>>,
    /// For pieces on which the engine of `encoder` might overflow.
    long_piece_encoder: LazyLock<CoreBPE>,
}

static O200K: Vocabulary = Vocabulary {
    id: "o200k_base",
    pretokenizer: &pieces::O200K,
    encoder: tiktoken_rs::o200k_base_singleton,
    tokens: LazyLock::new(|| tokens(tiktoken_rs::o200k_base_singleton()).collect()),
    long_piece_encoder: LazyLock::new(|| long_piece_encoder(tiktoken_rs::o200k_base_singleton())),
};

static CL100K: Vocabulary = Vocabulary {
    id: "cl100k_base",
    pretokenizer: &pieces::CL100K,
    encoder: tiktoken_rs::cl100k_base_singleton,
    tokens: LazyLock::new(|| tokens(tiktoken_rs::cl100k_base_singleton()).collect()),
    long_piece_encoder: LazyLock::new(|| long_piece_encoder(tiktoken_rs::cl100k_base_singleton())),
};

/// The bytes of each token but the special ones, by rank: ranks count up from zero, and a gap
/// divides them from the special tokens.
fn tokens(encoder: &CoreBPE) -> impl Iterator<Item = Vec<u8>> {
    (0..).map_while(|rank| encoder.decode_bytes(&[rank]).ok())
}

/// The vocabulary of `encoder` with a pattern that takes each text for one piece, and that its
/// engine hands to a finite automaton as a whole.
#[allow(clippy::expect_used, reason = "the pattern is constant and the ranks are distinct")]
fn long_piece_encoder(encoder: &CoreBPE) -> CoreBPE {
    CoreBPE::new(tokens(encoder).zip(0..).collect(), std::iter::empty().collect(), r"(?s:.)+")
        .expect("the pattern is constant and the ranks are distinct")
}

impl Vocabulary {
    /// A piece by itself splits into itself: the patterns look at what follows only after white
    /// space, and at the end of a text they take no less of it.
    fn count_piece(&self, piece: &str) -> usize {
        if piece.len() <= LONGEST_TOKEN && self.tokens.contains(piece.as_bytes()) {
            1
        } else if piece.len() < LONG_PIECE {
            (self.encoder)().count_ordinary(piece)
        } else {
            self.long_piece_encoder.count_ordinary(piece)
        }
    }
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
        self.vocabulary.count_piece(piece)
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
    fn tokens_are_those_of_the_vocabulary_without_its_specials() {
        for (vocabulary, size) in [(&O200K, 199_998), (&CL100K, 100_256)] {
            assert_eq!(tokens((vocabulary.encoder)()).count(), size);
            assert_eq!(vocabulary.tokens.len(), size);
            let mut lengths = vocabulary.tokens.iter().map(Vec::len);
            assert!(lengths.all(|len| (1..=LONGEST_TOKEN).contains(&len)));
        }
    }

    #[test]
    fn long_pieces_count_as_short_ones_do() {
        for counter in [Tiktoken::o200k(), Tiktoken::cl100k()] {
            for unit in ["a", "Ab", " ", "\n", "-=", "漢", "\u{301}", "q\u{301}"] {
                for repeat in 1..80 {
                    let text = unit.repeat(repeat);
                    let expected = (counter.vocabulary.encoder)().count_ordinary(&text);
                    assert_eq!(counter.count(&text), expected, "{counter:?} of {text:?}");
                }
            }
        }
    }

    #[test]
    fn a_special_token_in_the_text_counts_as_ordinary_text() {
        assert_eq!(Tiktoken::o200k().count("<|endoftext|>"), 7);
    }
}
