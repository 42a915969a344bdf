use std::sync::Arc;

use super::FrameSnapshot;
use crate::id::FrameSeq;

/// What stands in a context in place of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubstitutionKind {
    /// A summary of the frames, which has nothing of theirs but what it says.
    Block,
    /// The frame itself, with texts that are shorter.
    Shortened,
    /// Nothing.
    Dropped,
    /// Where things stand: it replaces nothing, and stands behind the block that ends with the same
    /// frame.
    Ledger,
}

/// A text that stands in a context in place of a range of frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Substitution {
    /// The id of what stands there.
    pub block: Arc<str>,
    /// What it is.
    pub stands: SubstitutionKind,
    /// The first frame that it replaces.
    pub from: FrameSeq,
    /// The last frame that it replaces.
    pub to: FrameSeq,
    /// What stands there instead.
    pub snapshot: Arc<FrameSnapshot>,
}
