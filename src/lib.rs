//! afterimage keeps what an LLM agent actually saw.
pub mod error;
pub mod hud;
pub mod id;
pub mod json;
pub mod snapshot;
pub mod text;
pub mod tokens;
pub mod transcript;
pub mod veil;

pub use error::{Error, ErrorKind, Result};
