//! What went wrong and where: the parts that every error of afterimage is made of.
//!
//! Each crate has an `Error` and an `ErrorKind` of its own, since the kinds differ. What they share
//! is here: the [`Place`], and the macros that make an error type of a list of kinds, so that every
//! one of them prints, chains and converts alike.

use std::{error::Error as StdError, fmt, path::PathBuf};

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
    /// A failure that no other kind describes; for errors that callers make.
    Other,
}

crate::error_type! {
    /// An error of reading JSON, with its kind, its place and its cause.
    ///
    /// The type is opaque and one pointer wide. [`Error::kind`] is for programs, the
    /// [`Display`](std::fmt::Display) text for people: a sentence, then the place in brackets.
    ///
    /// ```
    /// use afterimage_json::{ErrorKind, read};
    ///
    /// let error = read(b"{\"a\": 01}").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Json);
    /// assert_eq!(error.place().line, Some(1));
    /// ```
    pub struct Error(ErrorKind);
}

/// Where an error happened. Fields that do not apply are `None`.
#[non_exhaustive]
#[derive(Clone, Default, PartialEq, Eq)]
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

/// Shows the fields that apply.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

impl Place {
    /// Puts `segment` in front of the JSON path, from the inside out. O(the path).
    pub fn nest(&mut self, segment: impl fmt::Display) {
        let tail = self.path.take().unwrap_or_default();
        let segment = segment.to_string().replace('~', "~0").replace('/', "~1");
        self.path = Some(format!("/{segment}{tail}"));
    }
}

/// A value as one that is written, where it is there.
fn shown<T: fmt::Display>(value: Option<&T>) -> Option<&dyn fmt::Display> {
    value.map(|value| value as _)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut part = |name: &str, value: Option<&dyn fmt::Display>| {
            if let Some(value) = value {
                write!(f, "{separator}{name}{value}")?;
                separator = ", ";
            }
            Ok::<(), fmt::Error>(())
        };
        let quoted = |text: Option<&String>| text.map(|text| format!("{text:?}"));
        let file = self.file.as_ref().map(|file| file.display());
        part("", shown(file.as_ref()))?;
        part("line ", shown(self.line.as_ref()))?;
        part("column ", shown(self.column.as_ref()))?;
        part("record ", shown(self.record.as_ref()))?;
        part("offset ", shown(self.offset.as_ref()))?;
        part("frame ", shown(self.frame.as_ref()))?;
        part("turn ", shown(self.turn.as_ref()))?;
        part("delta ", shown(quoted(self.delta.as_ref()).as_ref()))?;
        part("op ", shown(self.op.as_ref()))?;
        part("chunk ", shown(self.chunk.as_ref()))?;
        part("facet ", shown(quoted(self.facet.as_ref()).as_ref()))?;
        part("at ", shown(self.path.as_ref()))?;
        part("session ", shown(quoted(self.session.as_ref()).as_ref()))?;
        part("event ", shown(self.event.as_ref()))
    }
}

/// An error whose place can be filled in by those who know more of it.
///
/// Every error type that [`error_type!`](crate::error_type) makes implements this, so that a
/// function that is generic over its caller's error can still say where it was.
pub trait WithPlace: Sized {
    /// The error with what `fill` says of its place.
    #[must_use]
    fn at(self, fill: impl FnOnce(&mut Place)) -> Self;
}

/// What an error holds. Public for [`error_type!`](crate::error_type) alone.
#[doc(hidden)]
pub struct Parts<K> {
    pub kind: K,
    pub message: String,
    pub place: Place,
    pub source: Option<Box<dyn StdError + Send + Sync>>,
    pub expectation: Option<Expectation>,
}

/// The parts of a message, for those who show them apart: the message quotes what was read, and so
/// cannot be split by its words.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    pub expected: String,
    pub instead: Replacement,
}

/// What there is instead of what was expected.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Something else, which the message quotes.
    Found(String),
    /// What is wrong, as a sentence.
    Wrong(String),
    /// Nothing that could be named.
    Nothing,
}

impl<K> Parts<K> {
    /// The same with another kind.
    pub fn convert<L>(self, convert: impl FnOnce(K) -> L) -> Parts<L> {
        let Self { kind, message, place, source, expectation } = self;
        Parts { kind: convert(kind), message, place, source, expectation }
    }
}

/// Makes an error type of an enum of kinds, which has the variants `Shape` and `Io`.
///
/// The type is one pointer wide and has `new`, `with_source`, `at`, `kind`, `place`, `message`,
/// [`WithPlace`], `From<std::io::Error>`, and the traits of an error.
#[macro_export]
macro_rules! error_type {
    ($(#[$meta:meta])* pub struct $error:ident($kind:ty);) => {
        $(#[$meta])*
        pub struct $error(Box<$crate::error::Parts<$kind>>);

        impl $error {
            /// An error of this kind. `message` says what is wrong, and what to do about it.
            pub fn new(kind: $kind, message: impl Into<String>) -> Self {
                let message = message.into();
                let place = $crate::Place::default();
                Self(Box::new($crate::error::Parts {
                    kind,
                    message,
                    place,
                    source: None,
                    expectation: None,
                }))
            }

            /// An error of kind `Shape` for a value of the wrong type.
            pub fn expected(
                expected: impl std::fmt::Display,
                found: impl std::fmt::Display,
            ) -> Self {
                Self::new(<$kind>::Shape, format!("expected {expected}, found {found}"))
            }

            /// An error of kind `Io`, with what was being done.
            pub fn io(source: std::io::Error, doing: impl std::fmt::Display) -> Self {
                Self::new(<$kind>::Io, format!("{doing}: {source}")).with_source(source)
            }

            /// The error with its cause.
            #[must_use]
            pub fn with_source(
                mut self,
                source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
            ) -> Self {
                self.0.source = Some(source.into());
                self
            }

            /// The error with what `fill` says of its place.
            #[must_use]
            pub fn at(mut self, fill: impl FnOnce(&mut $crate::Place)) -> Self {
                fill(&mut self.0.place);
                self
            }

            /// Names the file that was being read.
            #[must_use]
            pub fn in_file(self, file: impl Into<std::path::PathBuf>) -> Self {
                self.at(|place| place.file = Some(file.into()))
            }

            /// Names the line that was being read, from one.
            #[must_use]
            pub fn on_line(self, line: u64) -> Self {
                self.at(|place| place.line = Some(line))
            }

            /// Puts `segment` in front of the JSON path of the place, from the inside out.
            #[must_use]
            pub fn under(self, segment: impl std::fmt::Display) -> Self {
                self.at(|place| place.nest(segment))
            }

            /// What kind of thing went wrong.
            pub fn kind(&self) -> $kind {
                self.0.kind
            }

            /// Where it went wrong.
            pub fn place(&self) -> &$crate::Place {
                &self.0.place
            }

            /// The sentence without the place.
            pub fn message(&self) -> &str {
                &self.0.message
            }

            #[doc(hidden)]
            pub fn into_parts(self) -> $crate::error::Parts<$kind> {
                *self.0
            }

            #[doc(hidden)]
            pub fn from_parts(parts: $crate::error::Parts<$kind>) -> Self {
                Self(Box::new(parts))
            }
        }

        impl $crate::WithPlace for $error {
            fn at(self, fill: impl FnOnce(&mut $crate::Place)) -> Self {
                $error::at(self, fill)
            }
        }

        impl From<std::io::Error> for $error {
            fn from(source: std::io::Error) -> Self {
                Self::new(<$kind>::Io, source.to_string()).with_source(source)
            }
        }

        impl std::fmt::Display for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0.message)?;
                if self.0.place != $crate::Place::default() {
                    write!(f, " ({})", self.0.place)?;
                }
                Ok(())
            }
        }

        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct("Error")
                    .field("kind", &self.0.kind)
                    .field("message", &self.0.message)
                    .field("place", &self.0.place)
                    .field("source", &self.0.source)
                    .finish()
            }
        }

        impl std::error::Error for $error {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                self.0.source.as_deref().map(|source| source as _)
            }
        }
    };
}

/// Converts an error of one crate into that of another: the kinds that are listed keep their name,
/// `else` says what becomes of every other one. Message, place and cause stay.
///
/// ```
/// mod note {
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum ErrorKind { Json, Shape, Io, Other }
///     afterimage_json::error_type! {
///         /// What went wrong with a note.
///         pub struct Error(ErrorKind);
///     }
///     afterimage_json::error_from!(afterimage_json => {
///         Json, Shape, Io; else _ => ErrorKind::Other
///     });
/// }
///
/// let error = note::Error::from(afterimage_json::read(b"[01]").unwrap_err());
/// assert_eq!(error.kind(), note::ErrorKind::Json);
/// assert_eq!(error.place().column, Some(3));
/// ```
#[macro_export]
macro_rules! error_from {
    ($from:ident => { $($same:ident),* $(,)?; else $kind:pat => $other:expr }) => {
        impl From<$from::Error> for Error {
            fn from(error: $from::Error) -> Self {
                Self::from_parts(error.into_parts().convert(|kind| match kind {
                    $($from::ErrorKind::$same => ErrorKind::$same,)*
                    $kind => $other,
                }))
            }
        }
    };
}
