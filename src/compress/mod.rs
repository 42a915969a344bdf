//! Compression: ranges of frames give way to summaries, and the originals stay reachable.
//!
//! It is handed frames that are already rendered, and hands plain data back. A
//! [`CompressionTransform`] plans ranges of a history; a [`CompressionJob`] says what is to be
//! summarised; an [`Engine`] or the caller's own model answers; a [`CompressionBlock`] stands for
//! the frames from then on, and [expands](CompressionBlock::expand) to them.

mod block;
mod engine;
mod job;
mod net;
mod options;
mod transform;
mod walk;

pub use block::CompressionBlock;
pub use engine::Engine;
pub use job::{CompressionJob, Passage};
pub use options::CompressionOptions;
pub use transform::{CompressionState, CompressionTransform, Epoch, RangeState};
