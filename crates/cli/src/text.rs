//! Text for people: numbers, plurals, and what fits into so many columns.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

pub(crate) use crate::visible::printable;

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `noun`, or its plural.
pub(crate) fn plural(count: u64, noun: &str) -> Cow<'_, str> {
    if count == 1 { noun.into() } else { format!("{noun}s").into() }
}

/// A count with its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {}", grouped(count), plural(count, noun))
}

/// A share in percent.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "–".to_owned()
    } else {
        format!("{:.1} %", part as f64 * 100.0 / whole as f64)
    }
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Why something failed is told in so many columns, where people read it: a provider may say more.
pub(crate) const MOST_REASON: usize = 260;

/// The beginning of `text` that fits into `columns`, with `…` where something is missing.
pub(crate) fn truncated(text: &str, columns: usize) -> Cow<'_, str> {
    // Nothing is wider than its bytes.
    if text.len() <= columns {
        return text.into();
    }
    let mut used = 0;
    // The end of what fits beside a `…`.
    let mut fits = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > columns {
            return format!("{}…", text.get(..fits).unwrap_or_default()).into();
        }
        if used < columns {
            fits = at + grapheme.len();
        }
    }
    text.into()
}

/// As [`truncated`], with the end kept, which tells ids apart.
pub(crate) fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let tail_columns = columns.saturating_sub(1) / 2;
    let mut tail: Vec<&str> = Vec::new();
    let mut used = 0;
    for grapheme in text.graphemes(true).rev() {
        used += grapheme.width();
        if used > tail_columns {
            break;
        }
        tail.push(grapheme);
    }
    let head = truncated(text, columns - tail.iter().map(|part| part.width()).sum::<usize>());
    let tail: String = tail.into_iter().rev().collect();
    format!("{head}{tail}").into()
}

/// A text in lines of at most so many columns, broken between words. A word that is longer is cut in
/// its middle.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let word = shortened(word, columns);
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&word) <= columns => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

/// The end of `text` that fits into `columns`, with `…` where something is missing.
pub(crate) fn last_columns(text: &str, columns: usize) -> String {
    let mut used = 0;
    // The beginning of what fits beside a `…`.
    let mut fits = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme.width();
        if used > columns {
            return format!("…{}", text.get(fits..).unwrap_or_default());
        }
        if used < columns {
            fits = at;
        }
    }
    text.to_owned()
}

/// The most bytes that are looked at for each column that there is: a line may have no end, and a
/// character as people see it any number of marks.
const BYTES_PER_COLUMN: usize = 32;

/// As much of the beginning of `text` as is looked at for `columns`.
pub(crate) fn head(text: &str, columns: usize) -> &str {
    let most = columns.saturating_mul(BYTES_PER_COLUMN).min(text.len());
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// As much of the end of `text` as is looked at for `columns`.
fn foot(text: &str, columns: usize) -> &str {
    let least = text.len().saturating_sub(columns.saturating_mul(BYTES_PER_COLUMN));
    let start = (least..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

/// The first line of `text`, printable, as far as it fits into `columns`. Its length costs nothing.
pub(crate) fn line_from(text: &str, columns: usize) -> String {
    let head = head(text, columns);
    let line = head.split('\n').next().unwrap_or_default();
    let goes_on =
        text.get(line.len()..).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('\n'));
    let shown = printable(line);
    let shown = if goes_on { format!("{shown}…").into() } else { shown };
    truncated(&shown, columns).into_owned()
}

/// The last line of `text`, printable, as far as its end fits into `columns`. Its length costs
/// nothing.
pub(crate) fn line_to(text: &str, columns: usize) -> String {
    let line = foot(text, columns).rsplit('\n').next().unwrap_or_default();
    let before = text.len().checked_sub(line.len()).and_then(|end| text.get(..end));
    let goes_on = before.is_some_and(|before| !before.is_empty() && !before.ends_with('\n'));
    let shown = printable(line);
    let shown = if goes_on { format!("…{shown}").into() } else { shown };
    last_columns(&shown, columns)
}

/// The first words of a text: its white space as single blanks, at most `columns` wide.
pub(crate) fn first_words(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&printable(word));
        if out.len() > columns && (out.len() > columns * 32 || out.width() > columns) {
            break;
        }
    }
    truncated(&out, columns).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn text_is_cut_by_columns_and_not_inside_a_character() {
        assert_eq!(truncated("abc", 3), "abc");
        assert_eq!(truncated("abcd", 3), "ab…");
        assert_eq!(truncated("日本語だ", 6), "日本…");
        assert_eq!(truncated("👩‍👩‍👧 and more", 4), "👩‍👩‍👧 …");
        assert_eq!(shortened("result-1234.0", 9), "resu…34.0");
        assert_eq!(first_words("  one\n\ttwo  three", 9), "one two …");
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a-name-that-is-long so", 9), ["a-na…long", "so"]);
        assert_eq!(wrapped("", 9), [""]);
    }

    #[test]
    fn the_end_of_a_line_is_kept_by_columns() {
        assert_eq!(last_columns("abc", 3), "abc");
        assert_eq!(last_columns("abcdef", 4), "…def");
        assert_eq!(last_columns("日本語", 4), "…語");
    }

    #[test]
    fn a_line_is_shown_by_the_end_that_is_asked_for() {
        assert_eq!(line_from("one\ntwo", 5), "one");
        assert_eq!(line_from("one two\nthree", 5), "one …");
        assert_eq!(line_to("one\ntwo", 5), "two");
        assert_eq!(line_to("three\none two", 5), "… two");
        assert_eq!((line_from("\n", 5), line_to("\n", 5)), (String::new(), String::new()));
        assert_eq!((line_from("", 0), line_to("", 0)), (String::new(), String::new()));
    }

    #[test]
    fn of_a_line_without_an_end_only_what_may_fit_is_looked_at() {
        let marks = format!("e{}", "\u{301}".repeat(1 << 20));
        assert_eq!(width(&line_from(&marks, 10)), 2);
        assert!(line_from(&marks, 10).len() <= 10 * BYTES_PER_COLUMN + "…".len());
        assert!(line_to(&marks, 10).len() <= 10 * BYTES_PER_COLUMN + "…".len());
        let words = "日本 ".repeat(1 << 18);
        assert_eq!(line_from(&words, 6), "日本 …");
        assert_eq!(line_to(&words, 6), "…日本 ");
    }
}
