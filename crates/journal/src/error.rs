//! What went wrong, and where.

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
    /// The input is of no format that is known here.
    UnknownFormat,
    /// A position lies outside what it points into.
    OutOfRange,
    /// What a file holds is not what was written to it.
    Damaged,
    /// A file is of a version that is not known here.
    Version,
    /// Another writer holds the lock.
    Locked,
    /// An earlier write failed, so what the file holds is unknown until it is opened anew.
    Poisoned,
    /// A sequence number is not greater than the one before.
    Sequence,
    /// Someone else has changed what is stored, or something else is there.
    Conflict,
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
    /// A failure that no other kind describes; for errors that callers make.
    Other,
}

afterimage_json::error_type! {
    /// An error of a journal, with its kind, its place and its cause.
    pub struct Error(ErrorKind);
}

afterimage_json::error_from!(afterimage_json => {
    Json, Utf8, Limit, Shape, Io;
    else _ => ErrorKind::Other
});

afterimage_json::error_from!(afterimage_log => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, OutOfRange, Damaged, Version, Locked, Poisoned;
    else _ => ErrorKind::Other
});

impl Error {
    pub(crate) fn at_event(self, sequence: u64) -> Self {
        self.at(|place| place.event = Some(sequence))
    }

    pub(crate) fn in_session(self, session: &str) -> Self {
        self.at(|place| place.session = Some(session.to_owned()))
    }
}
