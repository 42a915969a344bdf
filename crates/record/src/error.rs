//! What went wrong, and where.

/// What kind of thing went wrong.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not JSON.
    Json,
    /// The bytes are not UTF-8.
    Utf8,
    /// A body or a head is larger than the stated limit.
    Limit,
    /// A value is not of the shape that its place asks for.
    Shape,
    /// The operating system refused.
    Io,
    /// The folder holds something else than a recording.
    UnknownFormat,
    /// What a file holds is not what was written to it.
    Damaged,
    /// A file is of a version that is not known here.
    Version,
    /// Another recorder holds the lock.
    Locked,
    /// An earlier write failed, so what the file holds is unknown until it is opened anew.
    Poisoned,
    /// The recording was removed, moved or replaced while it was written.
    Removed,
    /// A failure that no other kind describes.
    Other,
}

afterimage_json::error_type! {
    /// An error of a recording or of the wire, with its kind, its place and its cause.
    pub struct Error(ErrorKind);
}

afterimage_json::error_from!(afterimage_json => {
    Json, Utf8, Limit, Shape, Io;
    else _ => ErrorKind::Other
});

afterimage_json::error_from!(afterimage_log => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, Damaged, Version, Locked, Poisoned;
    else _ => ErrorKind::Other
});
