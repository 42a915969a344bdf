//! JSON as it was written: its strings are redacted where they stand, and the rest keeps its bytes.

use std::{
    borrow::Cow,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
};

use super::{
    Redactor,
    log_lists::{GatheredReplacements, is_log_list, is_of_log_probabilities},
    redactor::{Replacement, replaced},
    stream::StreamForm,
    values::{STEP, short_name},
};
use crate::json::{self, Value};

/// A string, a number or a list of log probabilities that stands in written JSON.
pub(super) struct Literal<'t, 'o> {
    /// With its quotes.
    pub(super) range: Range<usize>,
    /// What is open where it stands; nothing of the name of a member.
    open: &'o [Open<'t>],
    /// The name of the member that it is, as it is written.
    pub(super) name: Option<&'t str>,
    pub(super) kind: LiteralKind,
}

/// An object or an array that is open.
struct Open<'t> {
    step: Step<'t>,
    /// A hash of the steps that lead to it: a path of its own for each literal would take memory
    /// quadratic in the depth.
    above: u64,
    /// Whether one of these steps is a member `delta`.
    is_in_delta: bool,
    /// Whether one of these steps is a member of log probabilities.
    is_in_logs: bool,
    /// Where it begins.
    start: usize,
}

/// The name or the index that something open has got to.
#[derive(Clone, Copy, Hash)]
pub(super) enum Step<'t> {
    Member(Option<&'t str>),
    Element(usize),
}

impl<'t> Open<'t> {
    /// What is opened inside of these.
    fn inside(open: &[Self], step: Step<'t>, start: usize) -> Self {
        let Some(last) = open.last() else {
            return Self { step, above: 0, is_in_delta: false, is_in_logs: false, start };
        };
        let name = last.member().unwrap_or_default();
        let is_in_delta = last.is_in_delta || name == "delta";
        let is_in_logs = is_of_log_probabilities(name) || last.is_in_logs && is_log_list(name);
        Self { step, above: last.path_hash(), is_in_delta, is_in_logs, start }
    }

    /// The name of the member that it has got to.
    fn member(&self) -> Option<&'t str> {
        match self.step {
            Step::Member(name) => name,
            Step::Element(_) => None,
        }
    }

    fn path_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.above, self.step).hash(&mut hasher);
        hasher.finish()
    }
}

impl<'t> Literal<'t, '_> {
    /// The containers around it, the outermost first, each with the step that leads on.
    pub(super) fn path(&self) -> impl Iterator<Item = (u64, Step<'t>)> {
        self.open.iter().map(|open| (open.above, open.step))
    }

    /// The container that it stands in, as [`Literal::path`] has it.
    pub(super) fn container(&self) -> u64 {
        self.open.last().map_or(0, |open| open.above)
    }

    /// In how many containers it stands.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether it is a member of the outermost object.
    pub(super) fn is_of_root(&self) -> bool {
        self.depth() == 1 && self.name.is_some()
    }

    /// The name of the member whose object it stands in.
    pub(super) fn parent(&self) -> Option<&'t str> {
        self.open.iter().rev().nth(1)?.member()
    }

    /// A hash of the members and elements that lead to it.
    pub(super) fn path_hash(&self) -> u64 {
        self.open.last().map_or(0, Open::path_hash)
    }

    /// Whether it stands somewhere in a member `delta`.
    pub(super) fn is_in_delta(&self) -> bool {
        self.open.last().is_some_and(|last| last.is_in_delta)
    }
}

/// So many steps of a path are told, from its beginning and to its end.
const FIRST_STEPS: usize = 16;
const LAST_STEPS: usize = 8;

/// Where a literal stands in what stands at a place: its members and elements, each after a `/`.
struct LiteralPlace<'p> {
    place: &'p dyn fmt::Display,
    open: &'p [Open<'p>],
}

impl fmt::Display for LiteralPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        let last = self.open.len().saturating_sub(LAST_STEPS);
        for (at, open) in self.open.iter().enumerate() {
            match open.step {
                _ if (FIRST_STEPS..last).contains(&at) => {
                    if at == FIRST_STEPS {
                        write!(f, "{STEP}…")?;
                    }
                }
                Step::Member(name) => write!(f, "{STEP}{}", short_name(name.unwrap_or_default()))?,
                Step::Element(index) => write!(f, "{STEP}{index}")?,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralKind {
    Text,
    /// The name of a member.
    Name,
    Number,
    /// A list of log probabilities, with its brackets.
    LogList,
}

/// The text of a literal.
pub(super) fn decoded(text: &str, range: &Range<usize>) -> Option<String> {
    match json::read(text.get(range.clone())?.as_bytes()).ok()? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The name of a member, decoded from the text between its quotes.
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
    /// A body of a request or a response without its secrets: JSON, a stream of events or of lines
    /// of JSON, or any text. Of JSON all bytes stay that are of no string with a secret; but where a
    /// placeholder stands, lists of log probabilities are emptied, which repeat the text token by
    /// token. In a stream a secret is found that is split over events; its placeholder stands where
    /// it began. Linear in the text, and for each part of a stream in its pieces times the secrets in
    /// it.
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
        let Some(form) = StreamForm::of(text) else { return self.at(text, &place) };
        let found = self.find_in_stream(text, form, false, &place);
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, &found)) }
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
        // What is found is counted: first it is known that all of it is JSON.
        walk(text, |_| {})?;
        let mut found = GatheredReplacements::default();
        walk(text, |literal| match literal.kind {
            LiteralKind::LogList => found.log_lists.push(literal.range.clone()),
            _ => found.secrets.extend(self.find_in_literal(text, literal, place)),
        })?;
        self.add_written(text, &mut found.secrets, place);
        Some(found.into_replacements(text))
    }

    /// What of a literal is to be replaced: the whole of it, or parts where it cannot be decoded.
    pub(super) fn find_in_literal(
        &mut self,
        text: &str,
        literal: &Literal<'_, '_>,
        place: &dyn fmt::Display,
    ) -> Vec<Replacement> {
        let place = &LiteralPlace { place, open: literal.open };
        let Range { start, end } = literal.range;
        let written = text.get(start..end).unwrap_or_default();
        if literal.kind == LiteralKind::Number {
            let name = literal.name.map(unescaped).unwrap_or_default();
            let placeholder = self.named(&name, written, place);
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

/// Gives out the strings of written JSON, names of members too, the numbers that are members, and
/// lists of log probabilities at their ends; one value or several in a row. `None` where it is no JSON
/// by its brackets, strings and words.
///
/// Takes a few words of memory for each level of its nesting, and time linear in the text.
pub(super) fn walk<'t>(text: &'t str, mut each: impl FnMut(&Literal<'t, '_>)) -> Option<()> {
    let mut open: Vec<Open<'t>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => open.push(Open::inside(&open, Step::Member(None), at)),
            b'[' => open.push(Open::inside(&open, Step::Element(0), at)),
            b'}' => matches!(open.pop()?.step, Step::Member(_)).then_some(())?,
            b']' => {
                let closed = open.pop()?;
                matches!(closed.step, Step::Element(_)).then_some(())?;
                let range = closed.start..at + 1;
                if closed.is_in_logs && range.len() > 2 {
                    let (name, kind) = (name(&open), LiteralKind::LogList);
                    each(&Literal { range, open: &open, name, kind });
                }
            }
            b',' => match &mut open.last_mut()?.step {
                Step::Member(name) => *name = None,
                Step::Element(index) => *index += 1,
            },
            b'"' => {
                let end = string_end(bytes, at)?;
                let inner = text.get(at + 1..end - 1)?;
                let range = at..end;
                if let Some(Open { step: Step::Member(name @ None), .. }) = open.last_mut() {
                    *name = Some(inner);
                    each(&Literal { range, open: &[], name: None, kind: LiteralKind::Name });
                } else {
                    let name = name(&open);
                    each(&Literal { range, open: &open, name, kind: LiteralKind::Text });
                }
                at = end;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let is_of_number =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = run_end(bytes, at, is_of_number);
                if let Some(name) = name(&open) {
                    let (name, kind) = (Some(name), LiteralKind::Number);
                    each(&Literal { range: at..end, open: &open, name, kind });
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
            // Between values of the outermost level none stands.
            b':' => drop(open.last()?),
            byte if byte.is_ascii_whitespace() => {}
            _ => return None,
        }
        at += 1;
    }
    open.is_empty().then_some(())
}

/// The name of the member whose value stands here.
fn name<'t>(open: &[Open<'t>]) -> Option<&'t str> {
    open.last()?.member()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::RedactionRules;

    #[test]
    fn deep_json_takes_little_memory_and_its_secrets_are_found() {
        const DEPTH: usize = 10_000;
        let deep = format!(
            "{}{{\"password\":\"tide-7-calm\"}}{}",
            "[\"a\",{\"name\":".repeat(DEPTH),
            "}]".repeat(DEPTH)
        );
        let mut redactor = Redactor::new(&RedactionRules::embedded().unwrap());
        let redacted = redactor.body(&deep, "request 1");
        assert!(redacted.contains("{\"password\":\"[redacted:password:1]\"}"));
        let first = &redactor.report().found[0].first;
        assert!(first.starts_with("request 1/1/name/1/name/") && first.len() < 300, "{first}");
        assert!(first.ends_with("/1/name/password") && first.contains("/…/"), "{first}");
        let event = format!("data: {deep}\n\n");
        assert!(!redactor.body(&event, "response 1").contains("tide-7-calm"));
    }

    #[test]
    fn a_text_that_is_no_json_in_its_end_counts_its_secrets_once() {
        let mut redactor = Redactor::new(&RedactionRules::embedded().unwrap());
        let _ = redactor.body("{\"password\": \"tide-7-calm\"} and more", "body");
        assert_eq!(redactor.report().times(), 1);
    }
}
