//! Token counts: a trait that any counter fits, exact counters, a named estimate, and a memo.
//!
//! A count is of one text by one tokenizer. The sum of the counts of a text's chunks is not the
//! count of the text: a token may cross a border. [`TokenCounter::count_joined`] gives the latter
//! from the former at the price of the text around the borders.

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
