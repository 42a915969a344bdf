//! The error of the library: what went wrong, where, what was expected and what was found.

use afterimage_json::{error_from, error_type};

pub use afterimage_json::Place;

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

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
    /// An engine of a compression failed, took too long, or gave no answer that can be used.
    Engine,
    /// A provider answered a request with an error.
    Provider,
    /// An earlier write failed, so what the file holds is unknown until it is opened anew.
    Poisoned,
    /// A failure that no other kind describes; for errors that callers make.
    Other,
    /// A kind that checkpoints alone know.
    Checkpoint(afterimage_checkpoint::ErrorKind),
    /// A kind that journals alone know.
    #[cfg(feature = "storage")]
    Journal(afterimage_journal::ErrorKind),
    /// A kind that observations alone know.
    Observe(afterimage_observe::ErrorKind),
    /// A kind that timelines alone know.
    Timeline(afterimage_timeline::ErrorKind),
}

error_type! {
    /// An error with its kind, its place and its cause.
    ///
    /// The type is opaque and one pointer wide. [`Error::kind`] is for programs, the
    /// [`Display`](std::fmt::Display) text for people: a sentence, then the place in brackets.
    /// Errors of the other crates of afterimage convert with `?`: message, place and cause stay. A
    /// kind that is known here keeps its name, any other is wrapped, as `ErrorKind::Timeline`.
    ///
    /// ```
    /// use afterimage::{Error, ErrorKind, json};
    ///
    /// let error = Error::from(json::read(b"{\"a\": 01}").unwrap_err());
    /// assert_eq!(error.kind(), ErrorKind::Json);
    /// assert_eq!(error.place().line, Some(1));
    ///
    /// // Whoever implements a trait of this crate makes errors of their own.
    /// let mine = Error::new(ErrorKind::Other, "the tide table is empty").in_file("tides.txt");
    /// assert_eq!(mine.to_string(), "the tide table is empty (tides.txt)");
    /// ```
    pub struct Error(ErrorKind);
}

error_from!(afterimage_json => {
    Json, Utf8, Limit, Shape, Io;
    else _ => ErrorKind::Other
});
#[cfg(feature = "storage")]
error_from!(afterimage_log => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, OutOfRange, Damaged, Version, Locked, Poisoned;
    else _ => ErrorKind::Other
});
error_from!(afterimage_checkpoint => {
    Json, Utf8, Limit, Shape, Io, Base, Other;
    else kind => ErrorKind::Checkpoint(kind)
});
#[cfg(feature = "storage")]
error_from!(afterimage_journal => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, OutOfRange, Damaged, Version, Locked, Poisoned, Sequence, Conflict, Other;
    else kind => ErrorKind::Journal(kind)
});
#[cfg(feature = "storage")]
impl From<Error> for afterimage_journal::Error {
    /// For states of journals that are made of what this crate knows: a kind that journals do not
    /// know means that the state refuses the event.
    fn from(error: Error) -> Self {
        use afterimage_journal::ErrorKind as To;
        Self::from_parts(error.into_parts().convert(|kind| match kind {
            ErrorKind::Json => To::Json,
            ErrorKind::Utf8 => To::Utf8,
            ErrorKind::Limit => To::Limit,
            ErrorKind::Shape => To::Shape,
            ErrorKind::Io => To::Io,
            ErrorKind::Sequence => To::Sequence,
            ErrorKind::Version => To::Version,
            ErrorKind::Journal(kind) => kind,
            _ => To::Refused,
        }))
    }
}
#[cfg(feature = "record")]
error_from!(afterimage_record => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, Damaged, Version, Locked, Poisoned;
    else _ => ErrorKind::Other
});
error_from!(afterimage_observe => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, Damaged, Version, Locked, Conflict, Other;
    else kind => ErrorKind::Observe(kind)
});
error_from!(afterimage_timeline => {
    Json, Utf8, Limit, Shape, Io, UnknownFormat, OutOfRange, Damaged, Version, Locked, Poisoned, Base, Conflict, Sequence, Other;
    else kind => ErrorKind::Timeline(kind)
});

impl Error {
    pub(crate) fn at_frame(self, frame: u64) -> Self {
        self.at(|place| place.frame = Some(frame))
    }
}
