//! Exact counts with the vocabularies and merges of `bpe-openai`.

use bpe_openai::Tokenizer;

use super::{
    CountedText, TokenCounter,
    exact::{self, PieceCounter},
    pieces::{self, Pretokenizer},
};

/// The counts of `Tiktoken` with tables that are ready at once, and no log factor.
///
/// Whole pieces go through `bpe-openai`'s merges. They come from the splitter that `Tiktoken` uses
/// too, which follows tiktoken's present pattern: `bpe-openai` has an older one for `cl100k_base`,
/// which cuts white space at the end of a text differently, though no count is known to differ.
/// Its incremental encoders are not used, since they know no pieces.
///
/// Counting is linear in the text, whatever its shape. Ordinary text takes about as long as with
/// `Tiktoken`; runs of white space, of one letter or of ideographs take a sixth to a thirtieth,
/// runs of dashes three times as long. The tables of both vocabularies add 34 to 49 MB to a
/// program; the first use of one in a process reads it, in some 20 to 50 milliseconds.
/// Values of this type are free to make and to copy.
///
/// ```
/// use afterimage::tokens::{FastBpe, TokenCounter};
///
/// let counter = FastBpe::o200k();
/// assert_eq!(counter.id(), "o200k_base");
/// assert_eq!(counter.count("Hello, world!"), 4);
/// ```
#[derive(Clone, Copy)]
pub struct FastBpe {
    vocabulary: &'static Vocabulary,
}

struct Vocabulary {
    id: &'static str,
    pretokenizer: &'static Pretokenizer,
    tokenizer: fn() -> &'static Tokenizer,
}

static O200K: Vocabulary = Vocabulary {
    id: "o200k_base",
    pretokenizer: &pieces::O200K,
    tokenizer: bpe_openai::o200k_base,
};

static CL100K: Vocabulary = Vocabulary {
    id: "cl100k_base",
    pretokenizer: &pieces::CL100K,
    tokenizer: bpe_openai::cl100k_base,
};

impl FastBpe {
    /// The tokenizer of GPT-4o, GPT-4.1, GPT-5 and the o-series.
    pub fn o200k() -> Self {
        Self { vocabulary: &O200K }
    }

    /// The tokenizer of GPT-4 and GPT-3.5.
    pub fn cl100k() -> Self {
        Self { vocabulary: &CL100K }
    }
}

impl std::fmt::Debug for FastBpe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FastBpe").field(&self.vocabulary.id).finish()
    }
}

impl PieceCounter for FastBpe {
    fn pretokenizer(&self) -> &'static Pretokenizer {
        self.vocabulary.pretokenizer
    }

    fn count_piece(&self, piece: &str) -> usize {
        (self.vocabulary.tokenizer)().bpe.count(piece.as_bytes())
    }
}

impl TokenCounter for FastBpe {
    fn id(&self) -> &'static str {
        self.vocabulary.id
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        exact::count(self, text)
    }

    /// Stops where the count exceeds `limit`: O(min(limit, n)).
    fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        exact::count_up_to(self, text, limit)
    }

    /// Counts again only what lies between the nearest certain word ends on both sides of each
    /// border; everything where there are none.
    fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
        exact::count_joined(self, parts)
    }
}
