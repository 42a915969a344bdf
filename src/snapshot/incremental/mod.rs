//! Snapshots that hold only what is new against the one that they are based on.
//!
//! A snapshot of a whole context repeats, frame after frame, what was there before. An
//! [`IncrementalSnapshot`] holds the rest, and expands to the full one; an [`IncrementalChain`]
//! holds many that are based on each other.

mod chain;
mod snapshot;
mod wire;

pub use chain::IncrementalChain;
pub use snapshot::IncrementalSnapshot;
