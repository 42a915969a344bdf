use std::sync::Arc;

use indexmap::IndexSet;

use crate::{
    id::{FacetId, FrameSeq, Role},
    snapshot::{ChunkRef, FrameSnapshot},
    veil::{CallOutcome, History, Source},
};

/// A piece of a history with what it rendered to: a frame, or a block that stands for several.
#[derive(Clone, Debug)]
pub struct Passage {
    /// The first frame.
    pub from: FrameSeq,
    /// The last frame.
    pub to: FrameSeq,
    /// Who speaks it.
    pub role: Role,
    /// The source of the frame, if it is known. Events of the environment have the user's role, but
    /// are not the user's words. `None` for a block.
    pub source: Option<Source>,
    /// What the model saw of it.
    pub snapshot: Arc<FrameSnapshot>,
    /// The results that state an outcome: the facet, and how its call ended.
    pub outcomes: Vec<(FacetId, CallOutcome)>,
}

impl Passage {
    /// What somebody said, without more that is known of it than who speaks.
    pub fn new(from: FrameSeq, to: FrameSeq, role: Role, snapshot: Arc<FrameSnapshot>) -> Self {
        Self { from, to, role, source: None, snapshot, outcomes: Vec::new() }
    }

    /// The frame of a history at an index, spoken by `role`; `None` where it was not captured.
    /// Copies no text. O(log n).
    pub(crate) fn of_frame(history: &History, index: usize, role: Role) -> Option<Self> {
        let frames = history.frames();
        let (sequence, snapshot) = (frames.sequence(index)?, frames.snapshot(index)?);
        let outcomes = history.pairs().stated_in(sequence).cloned().collect();
        let source = frames.source(index);
        Some(Self { source, outcomes, ..Self::new(sequence, sequence, role, snapshot) })
    }

    /// The chunks in order, each with who speaks it. O(chunks) for all of them.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (Role, ChunkRef<'_>)> {
        self.snapshot.chunks().map(|chunk| (chunk.role().unwrap_or(self.role), chunk))
    }

    /// The facets of passages in order of first appearance.
    pub(crate) fn facets_of(passages: &[Self]) -> Vec<FacetId> {
        let chunks = passages.iter().flat_map(|passage| passage.snapshot.chunks());
        let facets: IndexSet<FacetId> = chunks.flat_map(|chunk| chunk.owned_facet_ids()).collect();
        facets.into_iter().collect()
    }
}
