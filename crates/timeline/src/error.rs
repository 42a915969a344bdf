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
    /// What a snapshot or a document is based on is missing, does not come before it, or does not fit it.
    Base,
    /// Someone else has changed what is stored, or something else is there.
    Conflict,
    /// The state does not show what a delta expects.
    Drift,
    /// A sequence number is not greater than the one before.
    Sequence,
    /// A failure that no other kind describes; for errors that callers make.
    Other,
}

afterimage_json::error_type! {
    /// An error of a timeline, with its kind, its place and its cause.
    pub struct Error(ErrorKind);
}

afterimage_json::error_from!(afterimage_json => {
    Json, Utf8, Limit, Shape, Io;
    else _ => ErrorKind::Other
});

#[cfg(feature = "storage")]
afterimage_json::error_from!(afterimage_log => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, OutOfRange, Damaged, Version, Locked, Poisoned;
    else _ => ErrorKind::Other
});
