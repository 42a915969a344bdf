use std::sync::Arc;

use super::{ChunkRef, FrameSnapshot, SnapshotIdentity, archive::ArchivedFrame};
use crate::id::Role;

/// A snapshot that a context holds: shared, or read where it lies in a segment, so that none has to
/// be put together for it.
#[derive(Clone, Debug)]
pub(crate) enum SharedSnapshot {
    Whole(Arc<FrameSnapshot>),
    Archived(ArchivedFrame),
}

impl SharedSnapshot {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Whole(snapshot) => snapshot.text(),
            Self::Archived(frame) => frame.text(),
        }
    }

    /// The number of chunks.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(snapshot) => snapshot.len(),
            Self::Archived(frame) => frame.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn chunk(&self, index: usize) -> Option<ChunkRef<'_>> {
        match self {
            Self::Whole(snapshot) => snapshot.chunk(index),
            Self::Archived(frame) => frame.chunk(index),
        }
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = ChunkRef<'_>> {
        (0..self.len()).filter_map(|index| self.chunk(index))
    }

    /// The chunk that holds the byte at `offset` of the text, in O(log n).
    pub(crate) fn chunk_at(&self, offset: usize) -> Option<ChunkRef<'_>> {
        match self {
            Self::Whole(snapshot) => snapshot.chunk_at(offset),
            Self::Archived(frame) => {
                let chunk = frame.chunk(frame.index_at(offset));
                chunk.filter(|chunk| chunk.range().contains(offset))
            }
        }
    }

    /// The roles of the chunks that have one, in order.
    pub(crate) fn roles(&self) -> impl Iterator<Item = Role> {
        (0..self.len()).filter_map(|index| match self {
            Self::Whole(snapshot) => snapshot.chunk(index)?.role(),
            Self::Archived(frame) => frame.role(index),
        })
    }

    pub(crate) fn total_tokens(&self) -> u64 {
        match self {
            Self::Whole(snapshot) => snapshot.total_tokens(),
            Self::Archived(frame) => frame.total_tokens(),
        }
    }

    pub(crate) fn exact_tokens(&self) -> Option<u64> {
        match self {
            Self::Whole(snapshot) => snapshot.exact_tokens(),
            Self::Archived(frame) => frame.exact_tokens(),
        }
    }

    pub(crate) fn identity(&self) -> Option<&Arc<SnapshotIdentity>> {
        match self {
            Self::Whole(snapshot) => snapshot.identity(),
            Self::Archived(frame) => frame.identity(),
        }
    }
}

impl From<Arc<FrameSnapshot>> for SharedSnapshot {
    fn from(snapshot: Arc<FrameSnapshot>) -> Self {
        Self::Whole(snapshot)
    }
}
