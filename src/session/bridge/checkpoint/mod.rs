//! Checkpoints from a session: drafts of a history's frames, and an engine of compression.
//!
//! The crate of checkpoints knows neither frames nor jobs: what joins them is here.

mod draft;
mod engine;
mod files;
mod words;

pub use draft::{Draft, DraftOptions};
pub use engine::CheckpointEngine;
