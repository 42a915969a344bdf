use std::borrow::Cow;

use crate::{
    snapshot::{ChunkRef, PartRef},
    steps::Passage,
    veil::CallOutcome,
};

/// A result, as far as its chunks were read: a long one is several, and what is inside of it has
/// chunks of its own.
pub(super) struct OpenResult<'a> {
    pub(super) id: Option<&'a str>,
    facet: Option<&'a str>,
    /// The first of its chunks.
    start: usize,
    pub(super) text: Cow<'a, str>,
}

impl<'a> OpenResult<'a> {
    pub(super) fn new(id: Option<&'a str>, chunk: ChunkRef<'a>) -> Self {
        let (facet, start) = (chunk.facet_ids().next(), chunk.index());
        Self { id, facet, start, text: Cow::Borrowed(chunk.content()) }
    }

    /// What the source states of it.
    pub(super) fn stated(&self, passage: &Passage) -> CallOutcome {
        let mut stated = passage.outcomes.iter();
        let own = stated.find(|(facet, _)| self.facet == Some(facet.as_str()));
        own.map(|(_, outcome)| *outcome).unwrap_or_default()
    }

    /// Whether a chunk after those that were taken belongs to it too.
    pub(super) fn holds(&self, chunk: ChunkRef<'a>) -> bool {
        let parent = chunk.structure().and_then(|structure| structure.parent);
        if parent.is_some_and(|parent| parent >= self.start) {
            return true;
        }
        let PartRef::Result { id } = chunk.part() else { return false };
        let is_same = |id: &str| self.id == Some(id) && !id.is_empty();
        id.is_some_and(is_same) || (self.facet.is_some() && chunk.facet_ids().next() == self.facet)
    }

    pub(super) fn take(&mut self, chunk: ChunkRef<'a>) {
        if self.text.is_empty() {
            self.text = Cow::Borrowed(chunk.content());
        } else {
            self.text.to_mut().push_str(chunk.content());
        }
    }
}
