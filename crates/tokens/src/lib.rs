//! Token counts: a trait that any counter fits, exact counters, a named estimate, and a memo.
//!
//! A count is of one text by one tokenizer. The sum of the counts of a text's chunks is not the
//! count of the text: a token may cross a border. [`TokenCounter::count_joined`] gives the latter
//! from the former at the price of the text around the borders.
//!
//! | counter | feature | counts |
//! |---|---|---|
//! | `Bpe` | `bpe` | exact, for `o200k_base` and `cl100k_base` |
//! | [`Chars4`] | | an estimate |
//! | [`Calibrated`] | | by another counter, times a factor that was fitted to reported usage |
//! | [`Memo`] | | as the counter inside, once per text |
//!
//! A text goes through an exact counter like this: `pieces` splits it where the tokenizer's pattern
//! does, `piece_cache` knows the counts of pieces that came before, `merge` counts the others by
//! the vocabulary, `exact` adds up. `cuts` knows the positions at which a text can be counted in
//! halves. A vocabulary is a table of the program, and a counter keeps the counts of pieces.

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[cfg(feature = "bpe")]
mod bpe;
mod calibrated;
mod certainty;
#[cfg(feature = "bpe")]
mod classes;
#[cfg(feature = "bpe")]
mod cuts;
mod estimate;
#[cfg(feature = "bpe")]
mod exact;
mod forward;
mod memo;
#[cfg(feature = "bpe")]
mod merge;
#[cfg(feature = "bpe")]
mod piece_cache;
#[cfg(feature = "bpe")]
mod pieces;
#[cfg(feature = "bpe")]
mod slot_hash;
#[cfg(all(test, feature = "bpe"))]
mod split_tests;
#[cfg(feature = "bpe")]
mod vocabulary;

use std::sync::Arc;

#[cfg(feature = "bpe")]
pub use bpe::Bpe;
pub use calibrated::{Calibrated, Slope};
pub use certainty::Certainty;
pub use estimate::Chars4;
pub use memo::{Memo, MemoStats};

/// Counts the tokens of a text, as one tokenizer splits it.
///
/// Text that spells a special token (`<|endoftext|>`) counts as ordinary text. Implementations
/// never panic, whatever the text, and take time that is close to linear in its length.
pub trait TokenCounter: Send + Sync {
    /// The stable name of what is counted, for example `o200k_base`. Two counters with the same
    /// id give the same count for every text.
    fn id(&self) -> &str;

    /// Whether counts are those of a tokenizer, and not an estimate.
    fn is_exact(&self) -> bool;

    /// What its counts are. The default says it by [`TokenCounter::is_exact`].
    fn certainty(&self) -> Certainty {
        if self.is_exact() { Certainty::Exact } else { Certainty::Estimated }
    }

    /// The number of tokens in `text`. Zero for the empty text.
    fn count(&self, text: &str) -> usize;

    /// The number of tokens in `text` where it is at most `limit`, else `None`.
    ///
    /// Implementations may stop early; the answer is the one that [`TokenCounter::count`] implies.
    fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        let count = self.count(text);
        (count <= limit).then_some(count)
    }

    /// The number of tokens in the concatenation of `parts`, each given with its own count.
    ///
    /// The default joins the parts and counts the whole.
    fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
        match parts {
            [] => 0,
            [part] => part.tokens,
            parts => self.count(&parts.iter().map(|part| part.text).collect::<String>()),
        }
    }
}

/// A text with its own token count.
#[derive(Clone, Copy, Debug)]
pub struct CountedText<'a> {
    /// The text.
    pub text: &'a str,
    /// What the counter in question counts for `text` alone.
    pub tokens: usize,
}

/// The best counter of the features that are on: `Bpe` for `o200k_base`, else the
/// estimate [`Chars4`]. [`TokenCounter::is_exact`] says which.
///
/// Costs an allocation.
///
/// ```
/// let counter = afterimage_tokens::default_counter();
/// assert_eq!(counter.is_exact(), cfg!(feature = "bpe"));
/// ```
pub fn default_counter() -> Arc<dyn TokenCounter> {
    #[cfg(feature = "bpe")]
    return Arc::new(Bpe::o200k());
    #[cfg(not(feature = "bpe"))]
    return Arc::new(Chars4);
}

/// The counter with that name, where the features that are on have it.
///
/// The names are `o200k_base` or `o200k`, `cl100k_base` or `cl100k`, `chars4`, and those of
/// [`Calibrated`]; every [`TokenCounter::id`] of this module is one of them. Costs an allocation.
///
/// ```
/// use afterimage_tokens::by_name;
///
/// assert_eq!(by_name("chars4").map(|counter| counter.count("12345")), Some(2));
/// assert!(by_name("o300k").is_none());
/// ```
pub fn by_name(name: &str) -> Option<Arc<dyn TokenCounter>> {
    match name {
        "chars4" => Some(Arc::new(Chars4)),
        #[cfg(feature = "bpe")]
        "o200k_base" | "o200k" => Some(default_counter()),
        #[cfg(feature = "bpe")]
        "cl100k_base" | "cl100k" => Some(Arc::new(Bpe::cl100k())),
        _ => Calibrated::by_name(name, by_uncalibrated_name).map(|made| Arc::new(made) as _),
    }
}

/// As [`by_name`], without those that are made of others.
fn by_uncalibrated_name(name: &str) -> Option<Arc<dyn TokenCounter>> {
    if name.starts_with("calibrated:") { None } else { by_name(name) }
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
