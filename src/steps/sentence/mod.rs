//! Sentences of what was said, outside of code: what each asks for, and what it takes back.

mod clause;
mod constraint;
mod convention;
pub(super) mod correction;
pub(super) mod rule;
mod standing;
mod statement;
mod topic;

use crate::text::{
    ends_sentence,
    words::sentence::{ASKS, OPENINGS},
};

/// A longer sentence is a text.
const LONGEST: usize = 300;

/// The sentences of a text outside of code, each at most [`LONGEST`] bytes.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let prose = paragraphs(text).filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ") && !line.starts_with('\t')
    });
    prose.flat_map(sentences_of_line)
}

/// The lines of a text; a line that goes on in the next one is one with it, up to [`LONGEST`].
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.find('\n').unwrap_or(rest.len());
        while let (Some(line), Some(after)) = (rest.get(..end), rest.get(end + 1..)) {
            let next = after.find('\n').map_or(rest.len(), |at| end + 1 + at);
            if next > LONGEST || !goes_on(line, after) {
                break;
            }
            end = next;
        }
        let (paragraph, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = after.strip_prefix('\n').unwrap_or(after);
        Some(paragraph)
    })
}

/// Whether a sentence that begins in `line` ends in the next one, by a small letter there.
fn goes_on(line: &str, next: &str) -> bool {
    let is_open =
        line.trim_end().ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | ')'));
    is_open && !line.contains("```") && next.starts_with(char::is_lowercase)
}

fn sentences_of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = without_mark(line);
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = end_of_sentence(rest);
            let (sentence, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            rest = after.trim_start();
            let sentence = sentence.trim();
            if !sentence.is_empty() && sentence.len() <= LONGEST {
                return Some(sentence);
            }
        }
        None
    })
}

/// A line without the mark of a list, a heading or a quote.
fn without_mark(line: &str) -> &str {
    line.trim().trim_start_matches(['-', '*', '>', '#', ' ', '•'])
}

fn end_of_sentence(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        if ends_sentence(c, next) {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// A text in small letters with plain apostrophes.
pub(crate) fn lower(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

/// The words of a text in small letters.
pub(crate) fn words(lower: &str) -> Vec<&str> {
    let parts = lower.split(|c: char| !c.is_alphanumeric() && c != '\'');
    parts.map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty()).collect()
}

/// Whether a sentence asks: by its mark, or by the words that it begins with.
pub(crate) fn is_question(sentence: &str) -> bool {
    let end = sentence.trim_end_matches(|c: char| c.is_whitespace() || "\"')*_`”’».!".contains(c));
    if end.ends_with(['?', '？', '؟']) || sentence.contains("? (") {
        return true;
    }
    let lower = lower(sentence);
    let lower = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let lower = OPENINGS.iter().find_map(|word| lower.strip_prefix(word)).unwrap_or(lower).trim();
    ASKS.iter().any(|start| {
        lower.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_with_and_without_their_mark() {
        for text in [
            "Must I pay?",
            "\"Is that only for today?\"",
            "so can't we make this even better",
            "Why do I only see three berths",
            "必ずですか？",
        ] {
            assert!(is_question(text), "{text}");
        }
        for text in ["Never ask why.", "Can you only use metres", "When you must stop, say so."] {
            assert!(!is_question(text), "{text}");
        }
    }

    #[test]
    fn sentences_stand_outside_of_code_and_go_on_over_lines() {
        let found: Vec<&str> = sentences("- One.  Two is\nlonger. \n```\nno\n```\n").collect();
        assert_eq!(found, ["One.", "Two is\nlonger."]);
    }
}
