//! Recordings as spans of OpenTelemetry, in OTLP JSON with the attributes of the conventions for
//! generative AI.
//!
//! An [`OtlpWriter`] writes one document, span by span: a trace for each session, with a span
//! `invoke_agent` around its requests, a span `chat MODEL` for each request with its messages, and
//! a span `execute_tool` for each call whose times are known. `docs/exports.md` says what each span
//! holds, and `docs/FORMAT.md` what is written byte for byte. `transcript` reads it back.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::{
//!     id::Millis, otlp::OtlpWriter, request::Recording, tokens::Chars4, transcript::Transcript,
//! };
//!
//! let chat = br#"{"model": "m", "messages": [{"role": "user", "content": "Is it open?"}]}"#;
//! let recording = Recording::read(Transcript::new(&chat[..])?, Arc::new(Chars4), |_| Millis::new(0))?;
//! let mut document = Vec::new();
//! let mut writer = OtlpWriter::new(&mut document)?;
//! writer.add(&recording, |_| true, |_| None)?;
//! assert_eq!(writer.finish()?.requests, 1);
//! let read = Transcript::new(&document[..])?;
//! assert_eq!(read.format().name(), "otlp");
//! # Ok::<(), afterimage::Error>(())
//! ```

mod chat;
mod parts;
mod span;
mod times;
mod tools;
mod writer;

pub use writer::{OtlpReport, OtlpWriter, SpanMessages};

/// The version of the semantic conventions whose names are written: the last one that holds those
/// for generative AI, before they moved to a repository of their own.
pub const CONVENTIONS: &str = "1.41.0";
/// The address of the schema of these conventions.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
