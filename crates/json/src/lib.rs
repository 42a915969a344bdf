//! JSON that is read strictly, once, and loses nothing.
//!
//! [`read`] turns bytes into a [`Value`] whose objects keep their order and whose numbers keep
//! their digits; [`Value`]'s [`Display`](std::fmt::Display) writes it back. What is refused: text
//! that is not RFC 8259 (invalid UTF-8 included, and lone surrogates, which [`read_mended`] alone
//! takes), nesting over [`MAX_DEPTH`], more than [`MAX_BYTES`]. Where an object names a key twice,
//! the last value counts and stands where the key first stood, as in JavaScript.
//!
//! ```
//! use afterimage_json as json;
//!
//! let value = json::read(br#"{"b": 1.50, "a": 12345678901234567890123}"#)?;
//! assert_eq!(value.to_string(), r#"{"b":1.50,"a":12345678901234567890123}"#);
//! # Ok::<(), json::Error>(())
//! ```

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod duration;
pub mod error;
mod fields;
mod from_value;
mod millis;
#[doc(hidden)]
pub mod name;
mod number;
mod object;
mod path;
mod places;
mod read;
mod serde;
mod to_value;
mod value;
mod write;

pub use self::serde::as_text;
pub use error::{Error, ErrorKind, Place, WithPlace};
pub use fields::{Fields, ObjectExt};
pub use from_value::from_value;
pub use millis::Millis;
pub use number::Number;
pub use object::Object;
pub use path::{Path, PathElement};
pub use places::{PlacedValue, children, children_after};
pub use read::{
    FromJson, MAX_BYTES, MAX_DEPTH, mended_note, most_unpacked, read, read_as, read_mended,
};
pub use to_value::to_value;
pub use value::Value;
pub use write::{write_array, write_object, write_string};

/// The result of reading JSON.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
