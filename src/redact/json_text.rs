//! JSON as it was written: its strings are redacted where they stand, and the rest keeps its bytes.

use std::{borrow::Cow, fmt, ops::Range};

use super::{
    Redactor,
    redactor::{Replacement, replaced},
};
use crate::json::{self, Value};

/// A string that stands as a value in written JSON.
pub(super) struct Literal<'t> {
    /// With its quotes.
    pub(super) range: Range<usize>,
    /// The members and elements that lead to it, each after a `/`.
    pub(super) path: String,
    /// The name of the member that it is, as it is written.
    pub(super) name: Option<&'t str>,
    /// Whether it is the name of a member itself.
    pub(super) is_name: bool,
}

/// The text of a literal.
pub(super) fn decoded(text: &str, range: &Range<usize>) -> Option<String> {
    match json::read(text.get(range.clone())?.as_bytes()).ok()? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// As a literal.
pub(super) fn encoded(text: String) -> String {
    Value::String(text).to_string()
}

impl Redactor {
    /// A body of a request or a response without its secrets: JSON, a stream of events, or any
    /// text. Of JSON all bytes stay that are of no string with a secret. In a stream a secret is
    /// found that is split over events; its placeholder stands where it began.
    ///
    /// ```
    /// use afterimage::redact::{RedactionRules, Redactor};
    ///
    /// let mut redactor = Redactor::new(&RedactionRules::embedded()?);
    /// let body = r#"{ "user": "ada", "password": "tide-7" }"#;
    /// assert_eq!(
    ///     redactor.body(body, "request 1"),
    ///     r#"{ "user": "ada", "password": "[redacted:password:1]" }"#
    /// );
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn body<'t>(&mut self, text: &'t str, place: &str) -> Cow<'t, str> {
        if super::stream::is_stream(text) {
            return self.stream(text, &place);
        }
        self.json_text(text, &place).unwrap_or_else(|| self.at(text, &place))
    }

    /// `None` where it is no JSON.
    fn json_text<'t>(&mut self, text: &'t str, place: &dyn fmt::Display) -> Option<Cow<'t, str>> {
        // Words in a row are no JSON, whatever letters they have.
        if !text.trim_start().starts_with(['{', '[', '"']) {
            return None;
        }
        let literals = literals(text)?;
        let mut found: Vec<Replacement> = Vec::new();
        for literal in literals {
            let said = decoded(text, &literal.range)?;
            let place = format!("{place}{}", literal.path);
            let redacted = match literal.name {
                Some(name) => self.member(name, &said, &place),
                None => self.at(&said, &place),
            };
            if let Cow::Owned(redacted) = redacted {
                found.push((literal.range, encoded(redacted)));
            }
        }
        Some(if found.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(replaced(text, &found))
        })
    }
}

/// The strings of written JSON, one value or several in a row, names of members too; `None`
/// where it is no JSON by its brackets and strings.
pub(super) fn literals(text: &str) -> Option<Vec<Literal<'_>>> {
    enum Open<'t> {
        Object(Option<&'t str>),
        Array(usize),
    }
    let mut found = Vec::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => open.push(Open::Object(None)),
            b'[' => open.push(Open::Array(0)),
            b'}' if !matches!(open.pop(), Some(Open::Object(_))) => return None,
            b']' if !matches!(open.pop(), Some(Open::Array(_))) => return None,
            b',' => match open.last_mut()? {
                Open::Object(name) => *name = None,
                Open::Array(index) => *index += 1,
            },
            b'"' => {
                let end = string_end(bytes, at)?;
                let inner = text.get(at + 1..end - 1)?;
                if let Some(Open::Object(name @ None)) = open.last_mut() {
                    *name = Some(inner);
                    let (range, path) = (at..end, String::new());
                    found.push(Literal { range, path, name: None, is_name: true });
                } else {
                    let steps = open.iter().map(|open| match open {
                        Open::Object(name) => format!("/{}", name.unwrap_or_default()),
                        Open::Array(index) => format!("/{index}"),
                    });
                    let name = match open.last() {
                        Some(Open::Object(name)) => *name,
                        _ => None,
                    };
                    let (range, path) = (at..end, steps.collect());
                    found.push(Literal { range, path, name, is_name: false });
                }
                at = end;
                continue;
            }
            b'}' | b']' | b':' | b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E' => {}
            byte if byte.is_ascii_whitespace() => {}
            _ => return None,
        }
        at += 1;
    }
    open.is_empty().then_some(found)
}

/// Where the string that begins here ends, behind its quote.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}
