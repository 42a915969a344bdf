//! What a document lacks of the form that its kind asks for.

mod checkpoint;
mod delta;
mod tables;

use std::fmt::Display;

use afterimage_json::error::Replacement;

use super::{
    document::{Document, Section},
    misplaced::MisplacedHeader,
    names::normal,
    timestamp::{Time, time},
    unread::Fault,
};
use crate::Error;

/// What kind of document a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// A [`Checkpoint`](super::Checkpoint).
    Checkpoint,
    /// A [`CheckpointDelta`](super::CheckpointDelta).
    Delta,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document is not of the form that its kind asks for.
    Error,
    /// It is not as the format recommends.
    Warning,
}

/// A finding: what is wrong, where, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// What is wrong, for programs: a name that does not change.
    pub code: &'static str,
    /// The line, from one.
    pub line: usize,
    /// The column in bytes, from one.
    pub column: usize,
    /// How many bytes of the line are meant; zero for the place itself.
    pub length: usize,
    /// What is wrong, for people.
    pub message: String,
    /// What was expected; empty where the message says all of it.
    pub expected: String,
}

impl Diagnostic {
    /// Why a delta is refused, as a finding at the line of the delta that the error names.
    ///
    /// ```
    /// use afterimage_checkpoint::{Checkpoint, CheckpointDelta, Diagnostic, apply};
    ///
    /// let delta = CheckpointDelta::parse("## Merge Instructions\n\n1. Remove x\n")?;
    /// let error = apply(&Checkpoint::parse("")?, &delta).unwrap_err();
    /// let found = Diagnostic::refused(&error, delta.document());
    /// assert_eq!((found.line, found.code), (3, "refused"));
    /// # Ok::<(), afterimage_checkpoint::Error>(())
    /// ```
    pub fn refused(error: &Error, delta: &Document) -> Self {
        let line = error.place().line.and_then(|line| usize::try_from(line).ok()).unwrap_or(1);
        let text = delta.line(line);
        let (message, expected) = match error.expectation() {
            Some(parts) => {
                let message = match &parts.instead {
                    Replacement::Found(found) => format!("found {found}"),
                    Replacement::Wrong(wrong) => wrong.clone(),
                    Replacement::Nothing => "it cannot be applied".to_owned(),
                };
                (message, parts.expected.clone())
            }
            None => (error.message().to_owned(), String::new()),
        };
        Self {
            severity: Severity::Error,
            code: "refused",
            line,
            column: text.len() - text.trim_start().len() + 1,
            length: text.trim().len(),
            message,
            expected,
        }
    }
}

impl DocumentKind {
    /// The kind of a document: by its header, its title, or its sections. What is neither is taken
    /// for a checkpoint. O(blocks).
    ///
    /// ```
    /// use afterimage_checkpoint::{Document, DocumentKind};
    ///
    /// let document = Document::parse("# Delta: b.md vs a.md\n\n## Removed\n")?;
    /// assert_eq!(DocumentKind::of(&document), DocumentKind::Delta);
    /// # Ok::<(), afterimage_checkpoint::Error>(())
    /// ```
    pub fn of(document: &Document) -> Self {
        if let Some(front) = document.front_matter() {
            if front.field("checkpoint").is_some() {
                return Self::Checkpoint;
            }
            if ["delta", "from", "to"].iter().any(|key| front.field(key).is_some()) {
                return Self::Delta;
            }
        }
        if let Some(misplaced) = MisplacedHeader::of(document) {
            return misplaced.kind;
        }
        let is_delta = |section: &Section| {
            let title = normal(&section.title);
            section.level == 1 && title.starts_with("delta")
                || section.level == 2 && matches!(title.as_str(), "changes" | "merge instructions")
        };
        if document.sections().iter().any(is_delta) { Self::Delta } else { Self::Checkpoint }
    }
}

/// Every finding of a document of its kind, in the order of the text. O(document).
///
/// ```
/// use afterimage_checkpoint::{Document, DocumentKind, lint};
///
/// let document = Document::parse("---\ndelta: a-to-b\n---\n")?;
/// let found = lint(&document, DocumentKind::of(&document));
/// assert_eq!((found[0].line, found[0].code), (1, "missing-created"));
/// # Ok::<(), afterimage_checkpoint::Error>(())
/// ```
pub fn lint(document: &Document, kind: DocumentKind) -> Vec<Diagnostic> {
    match kind {
        DocumentKind::Checkpoint => checkpoint::lint(document),
        DocumentKind::Delta => delta::lint(document),
    }
}

/// The name of a kind of finding.
type Code = &'static str;

/// A line and a column, both from one, and how many bytes of the line are meant.
type Position = (usize, usize, usize);

/// Collects what is found in a document.
struct Findings<'d> {
    document: &'d Document,
    found: Vec<Diagnostic>,
}

impl<'d> Findings<'d> {
    fn of(document: &'d Document) -> Self {
        Self { document, found: Vec::new() }
    }

    fn error(&mut self, code: Code, at: Position, message: impl Display, expected: impl Display) {
        let (line, column, length) = at;
        let (message, expected) = (message.to_string(), expected.to_string());
        let severity = Severity::Error;
        self.found.push(Diagnostic { severity, code, line, column, length, message, expected });
    }

    fn warning(&mut self, code: Code, at: Position, message: impl Display, expected: impl Display) {
        self.error(code, at, message, expected);
        if let Some(found) = self.found.last_mut() {
            found.severity = Severity::Warning;
        }
    }

    /// A whole line, from one, without the blanks around its text.
    fn line(&self, line: usize) -> Position {
        let text = self.document.line(line);
        let blanks = text.len() - text.trim_start().len();
        (line, blanks + 1, text.trim().len())
    }

    /// Where something that is missing would stand at the end.
    fn end(&self) -> Position {
        (self.document.line_count().max(1), 1, 0)
    }

    /// Adds what nothing reads.
    fn fault(&mut self, (code, error): Fault) {
        self.found.push(Diagnostic { code, ..Diagnostic::refused(&error, self.document) });
    }

    /// The header's form, whose faults lint knows already; answers with whether there is one.
    fn expect_header(&mut self, fields: &str) -> bool {
        let is_there = self.document.front_matter().is_some();
        if !is_there && self.found.is_empty() {
            let expected = format!("a line `---`, the fields {fields}, and a line `---`");
            self.error("front-matter-missing", (1, 1, 0), "there is no front matter", expected);
        }
        is_there
    }

    /// The value of a field that must be there.
    fn required(&mut self, code: Code, key: &str, expected: &str) -> Option<&'d str> {
        let document = self.document;
        let front = document.front_matter()?;
        match front.field(key) {
            None => {
                let message = format!("the front matter has no `{key}`");
                self.error(code, (1, 1, 3), message, format!("`{key}: {expected}`"));
                None
            }
            Some(field) if field.value.is_empty() => {
                let message = format!("`{key}` has no value");
                let place = (field.line + 1, field.column + 1, 0);
                self.error(code, place, message, expected);
                None
            }
            Some(field) => Some(&field.value),
        }
    }

    /// Checks the time at which the document was made.
    fn created(&mut self) {
        if let Some(text) = self.required("missing-created", "created", "TIME in ISO 8601") {
            self.time("created-not-a-time", text, self.value("created"));
        }
    }

    /// Where the value of a field stands.
    fn value(&self, key: &str) -> Position {
        let field = self.document.front_matter().and_then(|front| front.field(key));
        field.map_or((1, 1, 0), |field| (field.line + 1, field.column + 1, field.value.len()))
    }

    /// Checks that a text at a place is a time.
    fn time(&mut self, code: Code, text: &str, place: Position) {
        let offset = "an offset behind the time, such as `Z`";
        match time(text) {
            Some(Time::Moment(_)) => {}
            Some(Time::Local(_)) => {
                let message = format!("`{text}` does not say where");
                self.warning("time-without-offset", place, message, offset);
            }
            None => {
                let message = format!("`{text}` is no ISO 8601 timestamp");
                self.error(code, place, message, "a time such as `2025-12-14T16:00:00Z`");
            }
        }
    }

    fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|found| (found.line, found.column, found.severity));
        self.found
    }
}
