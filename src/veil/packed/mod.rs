//! Frames that will not change any more, in a tenth of their memory: what they say lies in a segment
//! of the archive, everything else in a few bytes that are read when it is asked for.

mod batch;
mod bytes;
mod decode;
mod encode;
mod list;

pub(super) use batch::{FrameBatch, PackedFacet};
pub(crate) use batch::{HeldOp, LastRead};
pub(super) use list::PackedFrames;
