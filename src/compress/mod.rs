//! Compression: ranges of frames give way to summaries, and the originals stay reachable.
//!
//! It is handed frames that are already rendered, and hands plain data back: a
//! [`CompressionJob`] says what is to be summarised, an [`Engine`] or the caller's own model
//! answers.

mod engine;
mod job;
mod outline;

pub use engine::Engine;
pub use job::{CompressionJob, Passage};
pub use outline::OutlineEngine;
