//! What went wrong, and where.

use std::fmt::Display;

use afterimage_json::error::{Expectation, Replacement};

/// What kind of thing went wrong.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not JSON.
    Json,
    /// The bytes are not UTF-8.
    Utf8,
    /// Nesting, a line or a text is larger than the stated limit.
    Limit,
    /// The JSON is well formed, but a value is not of the shape that its place asks for.
    Shape,
    /// The operating system refused.
    Io,
    /// A Markdown document is not of the form that its kind asks for.
    Markdown,
    /// An instruction of a delta cannot be carried out on the document that it is applied to.
    Instruction,
    /// What a snapshot or a document is based on is missing, does not come before it, or does not fit it.
    Base,
    /// A failure that no other kind describes; for errors that callers make.
    Other,
}

afterimage_json::error_type! {
    /// An error of a checkpoint or a delta, with its kind, its place and its cause.
    pub struct Error(ErrorKind);
}

/// Why a delta is refused at a line of it.
impl Error {
    /// What was expected, and what is there: "expected E, found F".
    pub(crate) fn unmet(line: usize, expected: impl Display, found: impl Display) -> Self {
        let message = format!("expected {expected}, found {found}");
        Self::refusal(line, message, &expected, Replacement::Found(found.to_string()))
    }

    /// What is wrong, and what was expected: "W: expected E".
    pub(crate) fn wrong(line: usize, wrong: impl Display, expected: impl Display) -> Self {
        let message = format!("{wrong}: expected {expected}");
        Self::refusal(line, message, &expected, Replacement::Wrong(wrong.to_string()))
    }

    /// What was expected, where nothing stands in its place: "expected E".
    pub(crate) fn missing(line: usize, expected: impl Display) -> Self {
        Self::refusal(line, format!("expected {expected}"), &expected, Replacement::Nothing)
    }

    /// A sentence that says all of it.
    pub(crate) fn refused(line: usize, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Instruction, message).on_line(line as u64)
    }

    fn refusal(line: usize, message: String, expected: &dyn Display, instead: Replacement) -> Self {
        let mut error = Self::refused(line, message);
        error.0.expectation = Some(Expectation { expected: expected.to_string(), instead });
        error
    }

    /// What was expected and what there is instead, where the message says it.
    pub(crate) fn expectation(&self) -> Option<&Expectation> {
        self.0.expectation.as_ref()
    }

    /// The error once more, without its cause.
    pub(crate) fn copy_error(&self) -> Self {
        let mut error = Self::new(self.kind(), self.message());
        error.0.place = self.0.place.clone();
        error.0.expectation.clone_from(&self.0.expectation);
        error
    }
}

afterimage_json::error_from!(afterimage_json => {
    Json, Utf8, Limit, Shape, Io;
    else _ => ErrorKind::Other
});
