//! The one error type of the library: what went wrong, where, what was expected and what was found.

use std::{error::Error as StdError, fmt, path::PathBuf};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its kind, its place and its cause.
///
/// The type is opaque and one pointer wide. [`Error::kind`] is for programs, the [`fmt::Display`]
/// text for people: a sentence, then the place in brackets.
///
/// ```
/// use afterimage::{json, ErrorKind};
///
/// let error = json::read(b"{\"a\": 01}").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Json);
/// assert_eq!(error.place().line, Some(1));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    place: Place,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

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
    /// The input is of no format that is known here.
    UnknownFormat,
    /// An operation names a facet that does not exist.
    UnknownFacet,
    /// A sequence number is not greater than the one before.
    Sequence,
    /// The chunks of a snapshot do not tile its text.
    Tiling,
    /// A stored sum is not the sum of its parts.
    Sum,
    /// What a snapshot is based on is missing, does not come before it, or does not fit it.
    Base,
    /// Tokens were counted by another tokenizer than those that they would be added to.
    Tokenizer,
    /// The text was dropped to save memory.
    Dropped,
    /// The text is in a store, not in memory.
    Stored,
    /// Someone else has changed what is stored, or something else is there.
    Conflict,
    /// The state does not show what a delta expects.
    Drift,
    /// A template is wrong or failed.
    Template,
    /// A position lies outside what it points into.
    OutOfRange,
    /// The operating system refused.
    Io,
    /// What a file holds is not what was written to it.
    Damaged,
    /// A file is of a version that is not known here.
    Version,
    /// Another writer holds the lock.
    Locked,
    /// What a context must hold is more than its budget.
    OverBudget,
    /// A Markdown document is not of the form that its kind asks for.
    Markdown,
    /// An instruction of a delta cannot be carried out on the document that it is applied to.
    Instruction,
    /// An engine of a compression failed, took too long, or gave no answer that can be used.
    Engine,
    /// Events of a journal are missing between two that are there, or at its beginning.
    Gap,
    /// An event is of a kind that a state does not know.
    UnknownEvent,
    /// A state does not take an event.
    Refused,
    /// A store could not be reached, or did not answer in time, for as long as was tried.
    Unavailable,
    /// A store does not let in who asks, with the credentials that were given, or without any.
    Denied,
    /// An earlier write failed, so what the file holds is unknown until it is opened anew.
    Poisoned,
}

/// Where an error happened. Fields that do not apply are `None`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, as the caller named it.
    pub file: Option<PathBuf>,
    /// The line in the file, from one.
    pub line: Option<u64>,
    /// The column in bytes, from one.
    pub column: Option<u64>,
    /// The index of the record in its file, from zero.
    pub record: Option<u64>,
    /// The offset in the file in bytes, from zero.
    pub offset: Option<u64>,
    /// The sequence of the frame.
    pub frame: Option<u64>,
    /// The id of the turn.
    pub turn: Option<u64>,
    /// The id of the delta.
    pub delta: Option<String>,
    /// The index of the op in its frame, from zero.
    pub op: Option<usize>,
    /// The index of the chunk in its snapshot, from zero.
    pub chunk: Option<usize>,
    /// The facet's id.
    pub facet: Option<String>,
    /// The path inside a JSON value, as a JSON pointer.
    pub path: Option<String>,
    /// The name of the session in a journal.
    pub session: Option<String>,
    /// The sequence of the event in its session; of a conflict that of the newest one.
    pub event: Option<u64>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            place: Place::default(),
            source: None,
        }))
    }

    /// An error of kind [`ErrorKind::Shape`] for a value of the wrong type.
    pub(crate) fn expected(expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Shape, format!("expected {expected}, found {found}"))
    }

    pub(crate) fn io(source: std::io::Error, doing: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Io, format!("{doing}: {source}")).caused_by(source)
    }

    pub(crate) fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    pub(crate) fn at(mut self, fill: impl FnOnce(&mut Place)) -> Self {
        fill(&mut self.0.place);
        self
    }

    pub(crate) fn at_frame(self, frame: u64) -> Self {
        self.at(|place| place.frame = Some(frame))
    }

    #[cfg(feature = "journal")]
    pub(crate) fn at_event(self, sequence: u64) -> Self {
        self.at(|place| place.event = Some(sequence))
    }

    #[cfg(feature = "journal")]
    pub(crate) fn in_session(self, session: &str) -> Self {
        self.at(|place| place.session = Some(session.to_owned()))
    }

    pub(crate) fn at_line(self, line: u64) -> Self {
        self.at(|place| place.line = Some(line))
    }

    /// Prepends `segment` to the JSON path of the place, from the inside out.
    pub(crate) fn under(self, segment: impl fmt::Display) -> Self {
        self.at(|place| {
            let tail = place.path.take().unwrap_or_default();
            let segment = segment.to_string().replace('~', "~0").replace('/', "~1");
            place.path = Some(format!("/{segment}{tail}"));
        })
    }

    /// Names the file that was being read; for callers that open files themselves.
    #[must_use]
    pub fn in_file(self, file: impl Into<PathBuf>) -> Self {
        self.at(|place| place.file = Some(file.into()))
    }

    /// Names the line that was being read, from one; for callers that read lines themselves.
    #[must_use]
    pub fn on_line(self, line: u64) -> Self {
        self.at_line(line)
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where it went wrong.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// The sentence without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut part = |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn fmt::Display| {
            write!(f, "{separator}{name}{value}")?;
            separator = ", ";
            Ok::<(), fmt::Error>(())
        };
        if let Some(file) = &self.file {
            part(f, "", &file.display())?;
        }
        if let Some(line) = self.line {
            part(f, "line ", &line)?;
        }
        if let Some(column) = self.column {
            part(f, "column ", &column)?;
        }
        if let Some(record) = self.record {
            part(f, "record ", &record)?;
        }
        if let Some(offset) = self.offset {
            part(f, "offset ", &offset)?;
        }
        if let Some(frame) = self.frame {
            part(f, "frame ", &frame)?;
        }
        if let Some(turn) = self.turn {
            part(f, "turn ", &turn)?;
        }
        if let Some(delta) = &self.delta {
            part(f, "delta ", &format_args!("{delta:?}"))?;
        }
        if let Some(op) = self.op {
            part(f, "op ", &op)?;
        }
        if let Some(chunk) = self.chunk {
            part(f, "chunk ", &chunk)?;
        }
        if let Some(facet) = &self.facet {
            part(f, "facet ", &format_args!("{facet:?}"))?;
        }
        if let Some(path) = &self.path {
            part(f, "at ", path)?;
        }
        if let Some(session) = &self.session {
            part(f, "session ", &format_args!("{session:?}"))?;
        }
        if let Some(event) = self.event {
            part(f, "event ", &event)?;
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if self.0.place != Place::default() {
            write!(f, " ({})", self.0.place)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("place", &self.0.place)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
