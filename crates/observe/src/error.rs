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
    /// What a file holds is not what was written to it.
    Damaged,
    /// A file is of a version that is not known here.
    Version,
    /// Another writer holds the lock.
    Locked,
    /// Someone else has changed what is stored, or something else is there.
    Conflict,
    /// A failure that no other kind describes; for errors that callers make.
    Other,
}

afterimage_json::error_type! {
    /// An error of observations, with its kind, its place and its cause.
    pub struct Error(ErrorKind);
}

afterimage_json::error_from!(afterimage_json => {
    Json, Utf8, Limit, Shape, Io;
    else _ => ErrorKind::Other
});
