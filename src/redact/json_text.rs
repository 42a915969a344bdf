//! JSON as it was written: its strings are redacted where they stand, and the rest keeps its bytes.

use std::{borrow::Cow, fmt, ops::Range};

use super::{Redactor, redactor::Replacement};
use crate::json::{self, Value};

/// A string or a number that stands in written JSON.
pub(super) struct Literal<'t> {
    /// With its quotes.
    pub(super) range: Range<usize>,
    /// The members and elements that lead to it, each after a `/`.
    pub(super) path: String,
    /// The name of the member that it is, as it is written.
    pub(super) name: Option<&'t str>,
    pub(super) kind: LiteralKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralKind {
    Text,
    /// The name of a member.
    Name,
    Number,
}

/// The text of a literal.
pub(super) fn decoded(text: &str, range: &Range<usize>) -> Option<String> {
    match json::read(text.get(range.clone())?.as_bytes()).ok()? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The name of a member, of which it is known how it is written between its quotes.
fn unescaped(name: &str) -> Cow<'_, str> {
    let read = || decoded(&format!("\"{name}\""), &(0..name.len() + 2));
    match name.contains('\\').then(read).flatten() {
        Some(name) => Cow::Owned(name),
        None => Cow::Borrowed(name),
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
        self.at(text, &place)
    }

    /// What of written JSON is to be replaced, in order; `None` where it is no JSON.
    pub(super) fn find_in_json(
        &mut self,
        text: &str,
        place: &dyn fmt::Display,
    ) -> Option<Vec<Replacement>> {
        // Words in a row are no JSON, whatever letters they have.
        if !text.trim_start().starts_with(['{', '[', '"']) {
            return None;
        }
        let mut found = Vec::new();
        for literal in literals(text)? {
            let place = format!("{place}{}", literal.path);
            found.extend(self.find_in_literal(text, &literal, &place));
        }
        Some(found)
    }

    /// What of a literal is to be replaced: the whole of it, or parts where it cannot be decoded.
    pub(super) fn find_in_literal(
        &mut self,
        text: &str,
        literal: &Literal<'_>,
        place: &dyn fmt::Display,
    ) -> Vec<Replacement> {
        let Range { start, end } = literal.range;
        let written = text.get(start..end).unwrap_or_default();
        if literal.kind == LiteralKind::Number {
            let name = literal.name.map(unescaped).unwrap_or_default();
            let placeholder = self.number(&name, written, place);
            return placeholder.map(|to| (start..end, encoded(to))).into_iter().collect();
        }
        let Some(said) = decoded(text, &literal.range) else {
            // Half of a pair of surrogates, say: what is written is looked at as it is.
            let found = self.find(written, place).into_iter();
            return found.map(|(at, to)| (start + at.start..start + at.end, to)).collect();
        };
        let name = literal.name.map(unescaped);
        let redacted = match &name {
            Some(name) => self.member(name, &said, place),
            None => self.at(&said, place),
        };
        match redacted {
            Cow::Owned(redacted) => vec![(start..end, encoded(redacted))],
            Cow::Borrowed(_) => Vec::new(),
        }
    }
}

/// What is open where something stands, with the name or the index that it has got to.
enum Open<'t> {
    Object(Option<&'t str>),
    Array(usize),
}

/// The strings of written JSON, names of members too, and the numbers that are members; one value
/// or several in a row. `None` where it is no JSON by its brackets, strings and words.
pub(super) fn literals(text: &str) -> Option<Vec<Literal<'_>>> {
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
                    let (range, path, kind) = (at..end, String::new(), LiteralKind::Name);
                    found.push(Literal { range, path, name: None, kind });
                } else {
                    let (path, name) = (path(&open), name(&open));
                    found.push(Literal { range: at..end, path, name, kind: LiteralKind::Text });
                }
                at = end;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let is_of_number =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = run_end(bytes, at, is_of_number);
                if let Some(name) = name(&open) {
                    let (path, kind) = (path(&open), LiteralKind::Number);
                    found.push(Literal { range: at..end, path, name: Some(name), kind });
                }
                at = end;
                continue;
            }
            b'a'..=b'z' => {
                let end = run_end(bytes, at, u8::is_ascii_lowercase);
                matches!(text.get(at..end)?, "true" | "false" | "null").then_some(())?;
                at = end;
                continue;
            }
            b'}' | b']' | b':' => {}
            byte if byte.is_ascii_whitespace() => {}
            _ => return None,
        }
        at += 1;
    }
    open.is_empty().then_some(found)
}

fn path(open: &[Open<'_>]) -> String {
    let steps = open.iter().map(|open| match open {
        Open::Object(name) => format!("/{}", name.unwrap_or_default()),
        Open::Array(index) => format!("/{index}"),
    });
    steps.collect()
}

/// The name of the member whose value stands here.
fn name<'t>(open: &[Open<'t>]) -> Option<&'t str> {
    match open.last() {
        Some(Open::Object(name)) => *name,
        _ => None,
    }
}

fn run_end(bytes: &[u8], start: usize, is_in: impl Fn(&u8) -> bool) -> usize {
    start + bytes.get(start..).unwrap_or_default().iter().take_while(|byte| is_in(byte)).count()
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
