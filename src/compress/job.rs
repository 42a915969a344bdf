use std::sync::Arc;

use super::NetOps;
use crate::{
    id::{FacetId, FrameSeq, Role},
    snapshot::{ChunkRef, FrameSnapshot},
};

/// A range of frames that is to be summarised: everything that an engine may look at, as plain
/// data. Nothing in it is from after the moment of the plan.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct CompressionJob {
    /// The id of the block that the job makes: `block-FROM-TO`, and `.LEVEL` above the first.
    pub id: Arc<str>,
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// One for frames, one more than its blocks for a block of blocks.
    pub level: u32,
    /// What is to be summarised, in order: frames, or the blocks that stand for them.
    pub passages: Vec<Passage>,
    /// The tokens of the original frames, the sum over their chunks.
    pub original_tokens: u64,
    /// The tokens that the summary may have.
    pub token_limit: u64,
    /// The facets whose text is summarised, in order of first appearance.
    pub source_facets: Vec<FacetId>,
    /// What the ops of the frames come to: applied to the veil before the range they lead to the
    /// veil after it.
    pub net_ops: NetOps,
    /// What the model reads after the range: the protected tail at the moment of the plan, newest
    /// last. An engine that keeps what is in use looks here for what that is.
    pub tail: Vec<Passage>,
    /// Which try this is, from one.
    pub attempt: u32,
}

/// A piece of a history with what it rendered to: a frame, or a block that stands for several.
#[derive(Clone, Debug)]
pub struct Passage {
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// Who speaks it.
    pub role: Role,
    /// What the model saw of it.
    pub snapshot: Arc<FrameSnapshot>,
}

impl CompressionJob {
    /// The job of summarising `passages` in at most `token_limit` tokens, for whoever calls an
    /// [`Engine`](super::Engine) without a plan: the first try of a block of the first level, with
    /// no tail and no ops.
    ///
    /// The passages are in the order of their frames; without any, the block stands at frame 0.
    pub fn new(passages: Vec<Passage>, token_limit: u64) -> Self {
        let from = passages.first().map_or(FrameSeq::new(0), |passage| passage.from);
        let to = passages.last().map_or(from, |passage| passage.to);
        let facets: indexmap::IndexSet<_> =
            chunks(&passages).flat_map(|(_, chunk)| chunk.owned_facet_ids()).collect();
        let source_facets = facets.into_iter().collect();
        Self {
            id: format!("block-{from}-{to}").into(),
            from,
            to,
            level: 1,
            original_tokens: passages.iter().map(|passage| passage.snapshot.total_tokens()).sum(),
            passages,
            token_limit,
            source_facets,
            net_ops: NetOps::default(),
            tail: Vec::new(),
            attempt: 1,
        }
    }

    /// Sets what the model reads after the range.
    pub fn with_tail(mut self, tail: Vec<Passage>) -> Self {
        self.tail = tail;
        self
    }

    /// The chunks of all passages in order, each with who speaks it.
    pub fn chunks(&self) -> impl Iterator<Item = (Role, ChunkRef<'_>)> {
        chunks(&self.passages)
    }

    /// The original text: the passages one after the other, parted by an empty line.
    pub fn text(&self) -> String {
        let texts: Vec<&str> =
            self.passages.iter().map(|passage| passage.snapshot.text()).collect();
        texts.join("\n\n")
    }
}

/// The chunks of passages in order, each with who speaks it.
pub(super) fn chunks(passages: &[Passage]) -> impl Iterator<Item = (Role, ChunkRef<'_>)> {
    passages.iter().flat_map(|passage| {
        passage.snapshot.chunks().map(|chunk| (chunk.role().unwrap_or(passage.role), chunk))
    })
}
