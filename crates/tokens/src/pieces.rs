//! Splits text into the pieces that byte-pair merges never cross.
//!
//! The patterns are those of tiktoken, in a form that a finite automaton can run. Bpe's use
//! look-ahead, `\s+(?!\S)`, for which a backtracking engine keeps a stack entry per character: a
//! million spaces overflow it, and `tiktoken-rs` 0.12.1 panics. Here every search is one forward
//! scan, and no search reads more than a constant factor beyond what it and the next one take, so
//! splitting is linear in the text.

use std::sync::LazyLock;

use regex_automata::{Anchored, Input, meta::Regex};

/// The index of the pattern `\s+\s`, which stands for `\s+(?!\S)`: at least two white-space
/// characters of which the last is left for the next piece. An earlier pattern has taken what
/// reaches the end of the text.
const BEFORE_TEXT: usize = 1;

/// The word splitter of one tokenizer.
pub(super) struct Pretokenizer {
    regex: LazyLock<Regex>,
}

pub(super) static O200K: Pretokenizer = Pretokenizer {
    regex: LazyLock::new(|| {
        compile(&[
            concat!(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|\p{N}{1,3}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"|\s*[\r\n]+",
                r"|\s+$",
            ),
            r"\s+\s",
            r"\s",
        ])
    }),
};

pub(super) static CL100K: Pretokenizer = Pretokenizer {
    regex: LazyLock::new(|| {
        compile(&[
            concat!(
                r"'(?i:[sdmt]|ll|ve|re)",
                r"|[^\r\n\p{L}\p{N}]?\p{L}+",
                r"|\p{N}{1,3}",
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
                // Before the line breaks, unlike in o200k: white space at the end of the text is
                // one piece even where it has line breaks in it.
                r"|\s+$",
                r"|\s*[\r\n]+",
            ),
            r"\s+\s",
            r"\s",
        ])
    }),
};

#[allow(clippy::expect_used, reason = "the patterns are constants, and tests compile them")]
fn compile(patterns: &[&str]) -> Regex {
    Regex::new_many(patterns).expect("the patterns are constants, and tests compile them")
}

impl Pretokenizer {
    /// The pieces of `text` in order; joined, they are `text`. None is empty.
    pub(super) fn split<'a>(&'static self, text: &'a str) -> Pieces<'a> {
        Pieces { regex: &self.regex, text, at: 0 }
    }
}

/// Iterates over the pieces of a text.
pub(super) struct Pieces<'a> {
    regex: &'static Regex,
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let start = self.at;
        if start >= self.text.len() {
            return None;
        }
        let input = Input::new(self.text).range(start..).anchored(Anchored::Yes);
        // Each character is a letter, a number, white space or none of these, so there is a match;
        // were there none, the rest would be one piece rather than lost.
        let end = self.regex.find(input).map_or(self.text.len(), |found| {
            let left_over = if found.pattern().as_usize() == BEFORE_TEXT {
                let matched = self.text.get(found.range()).unwrap_or_default();
                matched.chars().next_back().map_or(0, char::len_utf8)
            } else {
                0
            };
            found.end() - left_over
        });
        self.at = end;
        self.text.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pretokenizer: &'static Pretokenizer, text: &str, expected: &[&str]) {
        let pieces: Vec<_> = pretokenizer.split(text).collect();
        assert_eq!(pieces, expected, "the pieces of {text:?}");
    }

    #[test]
    fn the_last_space_of_a_run_goes_with_the_word_after_it() {
        for pretokenizer in [&O200K, &CL100K] {
            check(pretokenizer, "a   b", &["a", "  ", " b"]);
            check(pretokenizer, "a 1", &["a", " ", "1"]);
            check(pretokenizer, "a\u{a0}\u{a0}1", &["a", "\u{a0}", "\u{a0}", "1"]);
        }
    }

    #[test]
    fn white_space_at_the_end_is_one_piece_in_cl100k_and_ends_at_line_breaks_in_o200k() {
        check(&O200K, "a \n  ", &["a", " \n", "  "]);
        check(&CL100K, "a \n  ", &["a", " \n  "]);
        check(&CL100K, "a.\n  ", &["a", ".\n", "  "]);
    }

    #[test]
    fn a_contraction_goes_with_its_word_in_o200k_only() {
        check(&O200K, "it'LL do", &["it'LL", " do"]);
        check(&CL100K, "it'LL do", &["it", "'LL", " do"]);
    }

    #[test]
    fn the_empty_text_has_no_pieces() {
        check(&O200K, "", &[]);
    }
}
