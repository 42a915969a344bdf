//! What stands for frames in the contexts of a window, worked out anew only where it changed.

use std::{collections::BTreeMap, sync::Arc};

use super::{ContextWindow, DroppedFrames, ShortenedFrame, change::Change};
use crate::{
    id::FrameSeq,
    snapshot::{FrameSnapshot, Substitution},
    veil::History,
};

/// What stands for frames.
#[derive(Clone, Debug)]
pub(super) struct Fallbacks {
    /// The same for a renderer, in order.
    pub(super) substitutions: Arc<Vec<Substitution>>,
    /// What is left out, in order.
    pub(super) dropped: Arc<Vec<DroppedFrames>>,
    /// What is shortened, in order.
    pub(super) shortened: Arc<Vec<ShortenedFrame>>,
}

impl ContextWindow {
    /// What stands for frames. Costs nothing while nothing of it changes.
    pub(super) fn standing(&mut self) -> Fallbacks {
        if let Some(standing) = &self.standing {
            return standing.clone();
        }
        let mut changes: Vec<&Change> = self.changes.values().chain(self.edited()).collect();
        changes.sort_by_key(|change| change.from());
        let changes = || changes.iter().copied();
        let standing = Fallbacks {
            substitutions: Arc::new(self.substitutions()),
            dropped: Arc::new(changes().filter_map(Change::dropped).cloned().collect()),
            shortened: Arc::new(changes().filter_map(Change::shortened).cloned().collect()),
        };
        self.standing.insert(standing).clone()
    }

    /// Takes note that something else stands for frames from now on.
    pub(super) fn unsettle(&mut self) {
        self.standing = None;
        self.version += 1;
    }

    /// What stands for frames, in order: blocks, and what was dropped and shortened. O(what it replaces).
    pub fn substitutions(&self) -> Vec<Substitution> {
        if let Some(standing) = &self.standing {
            return standing.substitutions.to_vec();
        }
        let blocks = self.transform.substitutions().into_iter();
        let mut all: BTreeMap<FrameSeq, Substitution> =
            blocks.map(|block| (block.from, block)).collect();
        for change in self.edited().chain(self.changes.values()) {
            all.insert(change.from(), change.substitution(&self.nothing));
        }
        let mut all: Vec<Substitution> = all.into_values().collect();
        if let Some(ledger) = self.ledger.substitution() {
            let at = all.partition_point(|of| of.from <= ledger.to);
            all.insert(at, ledger);
        }
        all
    }

    /// What contexts hold of a frame that nothing which this window made stands for: as it was
    /// captured, or as the recording says that it is read.
    pub(super) fn shown(&self, history: &History, frame: FrameSeq) -> Option<Arc<FrameSnapshot>> {
        self.edits.of(frame).cloned().or_else(|| history.snapshot(frame))
    }

    /// The frames that the recording says are read otherwise and nothing else stands for, in order.
    pub(super) fn edited(&self) -> impl Iterator<Item = &Change> {
        self.edits.changes().filter(|edit| {
            let frame = edit.from();
            self.change_of(frame).is_none() && self.transform.compression_state(frame).is_none()
        })
    }
}
