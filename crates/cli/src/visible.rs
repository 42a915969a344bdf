//! Control characters as text: what a terminal would act on is shown, and not sent.

use std::{borrow::Cow, fmt::Write};

/// Whether a terminal acts on this character, or lets it change the order of the text around it:
/// the C0 and C1 controls, DEL, the bidirectional controls, and the separators of lines and
/// paragraphs.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}')
}

/// Writes what is shown for a control: its picture where Unicode has one, else its number.
fn push_shown(c: char, out: &mut String) {
    let picture = match c {
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        // Writing to a string cannot fail.
        None => drop(write!(out, "<U+{:04X}>", u32::from(c))),
    }
}

/// `text` with the controls that `is_hidden` names shown.
fn shown(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_hidden) else { return text.into() };
    let (before, rest) = text.split_at_checked(first).unwrap_or((text, ""));
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(before);
    for c in rest.chars() {
        if is_hidden(c) { push_shown(c, &mut out) } else { out.push(c) }
    }
    out.into()
}

/// `text` on one line: every control in it is shown, line feeds and tabs too.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    shown(text, is_control)
}

/// `text` on its own lines: every control in it is shown but line feeds and tabs.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |c| is_control(c) && !matches!(c, '\n' | '\t'))
}

/// As [`lines`], for text of libraries that set colours themselves: these stay, and nothing else.
pub(crate) fn lines_in_color(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return lines(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(&lines(before));
        let length = color_length(from).unwrap_or(0);
        let (color, after) = from.split_at_checked(length).unwrap_or((from, ""));
        out.push_str(color);
        rest = after;
        if length == 0 {
            push_shown('\u{1b}', &mut out);
            rest = after.strip_prefix('\u{1b}').unwrap_or(after);
        }
    }
    out.push_str(&lines(rest));
    out.into()
}

/// The length of the sequence at the beginning of `text` that selects how text looks (`ESC [ … m`).
fn color_length(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers.get(end..)?.starts_with('m').then_some(end + 3)
}

/// JSON text with every control in it as the escape that stands for it. Controls are only in
/// strings there, so the value is the same.
pub(crate) fn in_json(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_control) else { return text.into() };
    let (before, rest) = text.split_at_checked(first).unwrap_or((text, ""));
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(before);
    for c in rest.chars() {
        if is_control(c) {
            // Writing to a string cannot fail; all of them are of the basic plane.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_printed() {
        assert_eq!(
            printable("a\u{1b}[31m\r\u{7f}\u{9b}\u{202e}\n\t"),
            "a␛[31m␍␡<U+009B><U+202E>␊␉"
        );
        assert_eq!(printable("plain – text, שלום"), "plain – text, שלום");
    }

    #[test]
    fn lines_and_tabs_of_a_page_stay() {
        assert_eq!(lines("a\tb\nc\r\u{1b}]52;c;eA==\u{7}"), "a\tb\nc␍␛]52;c;eA==␇");
    }

    #[test]
    fn of_a_library_only_colours_pass() {
        let text = "\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[5;\u{1b}";
        assert_eq!(lines_in_color(text), "\u{1b}[1;31mred\u{1b}[0m ␛]0;title␇␛[2J␛[5;␛");
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        assert_eq!(in_json("\"a\u{9b}\u{202e}é\""), r#""a\u009b\u202eé""#);
    }
}
