//! Pieces of a text: beginnings, last lines, and the words around an identifier.

use super::entries::Field;
use crate::text::TextRange;

/// A word of more bytes may be cut: it is no name.
const LONGEST_WORD: usize = 200;

/// The last line that is not blank and holds a letter or a digit.
pub(super) fn last_line(text: &str) -> Option<TextRange> {
    let mut end = text.len();
    for _ in 0..4 {
        let head = text.get(..end)?.trim_end();
        let from = head.rfind('\n').map(|at| at + 1)?;
        let line = head.get(from..)?;
        // A closing bracket or tag is not what came of it.
        let is_tag = line.trim_start().starts_with("</");
        if line.contains(char::is_alphanumeric) && !is_tag {
            return TextRange::new(from, head.len());
        }
        end = from;
    }
    None
}

/// The end of the last whole word within `room` bytes, or of the last character in a text without
/// words.
pub(super) fn cut(text: &str, room: usize) -> usize {
    let end = boundary(text, room);
    let head = text.get(..end).unwrap_or_default();
    let trimmed = head.trim_end();
    let ends_word = text
        .get(end..)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    // Text without spaces is cut anywhere, and so is a very long word.
    let is_spaced = head.ends_with(|c: char| c.is_ascii());
    if trimmed.len() < head.len() || ends_word || !is_spaced {
        return trimmed.len();
    }
    let word = head.rfind(char::is_whitespace).unwrap_or(0);
    let at_word = head.get(..word).unwrap_or_default().trim_end().len();
    let rest = text.get(word..).unwrap_or_default().trim_start();
    let most = rest.get(..boundary(rest, LONGEST_WORD + 1)).unwrap_or_default();
    if rest.len() <= LONGEST_WORD || most.contains(char::is_whitespace) { at_word } else { end }
}

/// The last border between characters at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Adds an identifier with up to `words` words before it, or else after it, on its line. Returns
/// where in the field the snippet ends.
pub(super) fn push_snippet(
    out: &mut String,
    field: &Field<'_>,
    range: TextRange,
    before: Option<usize>,
    words: usize,
) -> usize {
    let text = field.text.as_ref();
    let floor = before.unwrap_or(0);
    let (mut from, mut to) = (range.start(), range.end());
    let is_short = field.key.is_some() && text.len() <= 80;
    if !is_short {
        from = back(text, floor, range.start(), words);
        if from == range.start() && before.is_none_or(|end| gap(text, end, from).contains('\n')) {
            to = ahead(text, range.end(), words.min(1));
        }
    } else if text.len() <= 40 {
        // A short value stands whole.
        (from, to) = (floor, text.len());
    }
    // Quotes are closed.
    let opening = text.get(..range.start()).and_then(|before| before.chars().next_back());
    let closing = text.get(range.end()..).and_then(|after| after.chars().next());
    if to == range.end() && matches!(opening, Some('"' | '\'' | '`')) && opening == closing {
        to += 1;
    }
    let joins = before.is_some_and(|end| {
        let gap = gap(text, end, from);
        gap.len() <= 3 && !gap.contains('\n')
    });
    if joins {
        from = floor;
    } else if !out.is_empty() {
        out.push_str(if is_short { " " } else { ", " });
    }
    push_collapsed(out, text.get(from..to).unwrap_or_default());
    to
}

fn gap(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

/// The start of the `words` words before `at`, on its line and not before `floor`.
fn back(text: &str, floor: usize, at: usize, words: usize) -> usize {
    let mut from = at;
    let mut left = words;
    while left > 0 {
        let window = floor.max(boundary(text, from.saturating_sub(32)));
        let head = text.get(window..from).unwrap_or_default();
        let line = head.rfind('\n').map_or(0, |at| at + 1);
        let line = head.get(line..).unwrap_or_default();
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        // What stands for the beginning of a tag is no word.
        if line.trim_end_matches('/').ends_with("&lt;") {
            break;
        }
        let Some(end) = line.rfind(is_letter) else { break };
        let word = line.get(..end).unwrap_or_default();
        let start = word.rfind(|c: char| !is_letter(c)).map_or(0, |at| {
            at + word.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        // The last word of a path is none.
        let is_part = word.get(..start).is_some_and(|before| before.ends_with(['/', '.', '~']));
        if is_part || start == 0 && line.len() == head.len() && window > floor {
            break;
        }
        from -= line.len() - start;
        // The day before a year names nothing: `May 19, 2024`.
        let is_number = line.get(start..=end).is_some_and(|word| word.parse::<u64>().is_ok());
        left -= usize::from(!is_number);
    }
    from
}

/// The end of the word after `at` on its line.
fn ahead(text: &str, at: usize, words: usize) -> usize {
    if words == 0 {
        return at;
    }
    let rest = text.get(at..).unwrap_or_default();
    let window = rest.get(..boundary(rest, 32)).unwrap_or_default();
    let line = window.split('\n').next().unwrap_or_default();
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let Some(start) = line.find(is_letter) else { return at };
    // The first word of a path is none.
    if line.get(..start).is_some_and(|before| before.ends_with(['/', '.', '~'])) {
        return at;
    }
    let word = line.get(start..).unwrap_or_default();
    match word.find(|c: char| !is_letter(c)) {
        Some(end) => at + start + end,
        None if line.len() < window.len() || window.len() == rest.len() => at + line.len(),
        None => at,
    }
}

/// Adds a text with each run of white space as one space.
pub(super) fn push_collapsed(out: &mut String, text: &str) {
    let mut was_space = out.is_empty() || out.ends_with(char::is_whitespace);
    for c in text.chars() {
        let is_space = c.is_whitespace();
        if !is_space {
            out.push(c);
        } else if !was_space {
            out.push(' ');
        }
        was_space = is_space;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_end_between_words_and_in_text_without_words_between_characters() {
        let check = |text: &str, room, expected| {
            assert_eq!(text.get(..cut(text, room)), Some(expected), "{text} in {room}");
        };
        check("one two three", 9, "one two");
        check("one two three", 7, "one two");
        check("one two three", 100, "one two three");
        check("one", 2, "");
        check("日本語テキスト", 11, "日本語");
        check("see /a/long/path.rs", 12, "see");
        let long = "x".repeat(300);
        check(&long, 50, &long[..50]);
    }

    #[test]
    fn snippets_name_what_an_identifier_is() {
        let check = |text: &str, name: &str, expected: &str| {
            let at = text.find(name).unwrap();
            let field = Field { key: None, text: text.into() };
            let mut out = String::new();
            push_snippet(&mut out, &field, TextRange::at(at, name.len()), None, 1);
            assert_eq!(out, expected, "{text}");
        };
        check("    class TideConstraint:", "TideConstraint", "class TideConstraint");
        check("on May 19, 2024 at noon", "2024", "May 19, 2024");
        check("a line\nsrc/a.rs: no such file", "src/a.rs", "src/a.rs: no");
        check("src/a.rs", "src/a.rs", "src/a.rs");
        check("日本語 id_7", "id_7", "日本語 id_7");
        check("file_path: /home/me/a.rs", "file_path", "file_path");
        check("open `src/a.rs` now", "src/a.rs", "open `src/a.rs`");
        check("in a.md, old_id", "old_id", "old_id");
        check("the &lt;/tool_result>", "tool_result", "tool_result");
    }

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(last_line(text).map(|line| line.of(text)), expected, "{text}");
        };
        check("a\n== 2 failed ==\n\n</output>\n", Some("== 2 failed =="));
        check("one line", None);
        check("", None);
    }
}
