//! How values look in a summary: on one line, short, and unable to pass for the summary's own
//! lines.

use std::borrow::Cow;

use crate::json::Value;

/// The most characters that a value may take.
pub(super) const VALUE_CHARS: usize = 120;
/// The most characters that a label may take.
pub(super) const LABEL_CHARS: usize = 48;

/// A scalar as a summary shows it; `None` for arrays and objects.
pub(super) fn value(value: &Value) -> Option<Cow<'_, str>> {
    Some(match value {
        Value::Null => "none".into(),
        Value::Bool(true) => "Yes".into(),
        Value::Bool(false) => "No".into(),
        Value::Number(number) => {
            let text = number.to_string();
            if text.len() > 40 { clean(&text, 40).into_owned() } else { grouped(&text) }.into()
        }
        Value::String(text) => match clean(text, VALUE_CHARS) {
            text if text.is_empty() => "none".into(),
            text => text,
        },
        Value::Array(array) => inline(array)?.into(),
        Value::Object(_) => return None,
    })
}

pub(super) fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// A short list of scalars on one line.
pub(super) fn inline(array: &[Value]) -> Option<String> {
    if array.is_empty() || array.len() > 8 {
        return None;
    }
    let texts = array.iter().map(|element| value(element).filter(|_| is_scalar(element)));
    let text = texts.collect::<Option<Vec<_>>>()?.join(", ");
    (text.chars().count() <= VALUE_CHARS).then_some(text)
}

/// How many elements or members a value has.
pub(super) fn count(value: &Value) -> Option<usize> {
    match value {
        Value::Array(array) => Some(array.len()),
        Value::Object(object) => Some(object.len()),
        _ => None,
    }
}

/// An integer with its thousands apart; any other number as it is.
pub(super) fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    if digits.len() < 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut out = String::with_capacity(number.len() + number.len() / 3);
    out.push_str(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A text of the outside on one line, at most `most` characters: white space, and what ends a line
/// or cannot be seen, become single blanks; what would be emphasis or code is escaped.
pub(super) fn clean(text: &str, most: usize) -> Cow<'_, str> {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b',' | b':');
    // Inside of a word an underscore emphasises nothing.
    let bytes = text.as_bytes();
    let is_joined = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        before.is_some_and(u8::is_ascii_alphanumeric)
    };
    if text.len() <= most
        && bytes.iter().enumerate().all(|(at, c)| is_plain(*c) || *c == b'_' && is_joined(at))
    {
        return text.into();
    }
    let mut out = String::with_capacity(text.len().min(4 * most));
    let (mut taken, mut gap, mut is_cut) = (0, false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_whitespace() || c.is_control() || is_unseen(c) {
            gap = !out.is_empty();
            continue;
        }
        let needed = usize::from(gap) + 1;
        if taken + needed > most.saturating_sub(1) {
            is_cut = true;
            break;
        }
        taken += needed;
        if std::mem::take(&mut gap) {
            out.push(' ');
        }
        let is_mark = match c {
            // Two asterisks would be bold, as the summary's own words are; a backquote begins code.
            '*' | '`' => true,
            // So would two underscores, but not behind the letters of a word.
            '_' => !out.ends_with(char::is_alphanumeric),
            // It would take the one that is put before a mark away.
            '\\' => chars.peek().is_some_and(char::is_ascii_punctuation),
            _ => false,
        };
        if is_mark {
            out.push('\\');
        }
        out.push(c);
    }
    if is_cut {
        out.push('…');
    }
    out.into()
}

/// Keeps a text that begins a line from being a heading, a list or a quotation.
pub(super) fn first_on_line(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.starts_with(['#', '>', '-', '+', '=', '|', '~', '[', '<']) {
        return format!("\\{text}").into();
    }
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.len() - after.len();
    if number > 0
        && after.starts_with(['.', ')'])
        && after.get(1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' '))
    {
        let (number, after) = text.split_at(number);
        return format!("{number}\\{after}").into();
    }
    text
}

/// Marks of direction and other characters without a shape, which could hide or turn round text.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A path in words: `/ship/max_hull` is "Ship max hull".
pub(super) fn label(segments: &[String]) -> String {
    let words = segments.join(" ").replace('_', " ");
    capitalised(&clean(&words, LABEL_CHARS))
}

/// The first 64 characters of a name, for an error.
pub(super) fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

/// A name with a capital at its beginning.
pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_on_one_line_and_no_markdown() {
        assert_eq!(clean("a\n\n## b\r\u{2028}c\u{85}d", 40), "a ## b c d");
        assert_eq!(clean("**Note:** `x`", 40), "\\*\\*Note:\\*\\* \\`x\\`");
        assert_eq!(clean("  \u{202e}abc\u{200b} ", 40), "abc");
        assert_eq!(clean(&"x".repeat(50), 10), format!("{}…", "x".repeat(9)));
        assert_eq!(clean("__Note:__ a_b_ _c", 40), "\\_\\_Note:\\_\\_ a_b_ \\_c");
        // What would escape the mark that escapes.
        assert_eq!(clean("\\**x\\**", 40), "\\\\\\*\\*x\\\\\\*\\*");
        assert_eq!(clean("C:\\Users\\a", 40), "C:\\Users\\a");
        assert_eq!(value(&Value::from(" \u{200b}\n")).as_deref(), Some("none"));
        for (text, expected) in [
            ("# a", "\\# a"),
            ("1. a", "1\\. a"),
            ("12)", "12\\)"),
            ("1.5 m", "1.5 m"),
            ("2 ships", "2 ships"),
        ] {
            assert_eq!(first_on_line(text.into()), expected);
        }
    }

    #[test]
    fn numbers_have_their_thousands_apart() {
        let shown = ["5000", "-1234567", "999", "1.50", "1e9"].map(grouped);
        assert_eq!(shown, ["5,000", "-1,234,567", "999", "1.50", "1e9"]);
    }
}
