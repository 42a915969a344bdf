//! afterimage keeps what an LLM agent actually saw.
pub mod error;
pub mod id;
pub mod json;
pub mod tokens;

pub use error::{Error, ErrorKind, Result};
