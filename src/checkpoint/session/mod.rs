//! Checkpoints from a session: drafts of a history's frames, and an engine of compression.
//!
//! This is the part of `checkpoint` that knows frames and jobs; nothing else in it imports this.

mod draft;
mod engine;
mod touch;
mod words;

pub use draft::{Draft, DraftOptions};
pub use engine::CheckpointEngine;
