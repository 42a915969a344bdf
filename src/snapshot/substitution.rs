use std::sync::Arc;

use super::FrameSnapshot;
use crate::id::FrameSeq;

/// A text that stands in a context in place of a range of frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Substitution {
    /// The id of the block that it is.
    pub block: Arc<str>,
    /// The first frame that it replaces.
    pub from: FrameSeq,
    /// The last frame that it replaces.
    pub to: FrameSeq,
    /// What stands there instead.
    pub snapshot: Arc<FrameSnapshot>,
}
