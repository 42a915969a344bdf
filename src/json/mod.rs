//! JSON that is read strictly, once, and loses nothing.
//!
//! [`read`] turns bytes into a [`Value`] whose objects keep their order and whose numbers keep
//! their digits; [`Value`]'s [`Display`](std::fmt::Display) writes it back. What is refused: text
//! that is not RFC 8259 (lone surrogates and invalid UTF-8 included), nesting over [`MAX_DEPTH`],
//! more than [`MAX_BYTES`]. Where an object names a key twice, the last value counts and stands
//! where the key first stood, as in JavaScript.
//!
//! ```
//! use afterimage::json;
//!
//! let value = json::read(br#"{"b": 1.50, "a": 12345678901234567890123}"#)?;
//! assert_eq!(value.to_string(), r#"{"b":1.50,"a":12345678901234567890123}"#);
//! # Ok::<(), afterimage::Error>(())
//! ```

mod fields;
mod number;
mod object;
mod path;
mod read;
mod serde;
mod value;
mod write;

pub(crate) use fields::{Fields, ObjectExt};
pub use number::Number;
pub use object::Object;
pub use path::{Path, PathElement};
#[cfg(feature = "timeline")]
pub(crate) use read::FromJson;
#[cfg(all(feature = "timeline", feature = "storage"))]
pub(crate) use read::read_as;
pub use read::{MAX_BYTES, MAX_DEPTH, read};
pub(crate) use serde::serde_through_json;
pub use value::Value;
pub(crate) use write::write_string;
