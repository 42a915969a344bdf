use std::sync::{Arc, Weak};

use foldhash::HashMap;

use super::{Hud, Merge, messages::MessageBatch};
use crate::{snapshot::SnapshotIdentity, veil::History};

/// A batch ends with the first message that begins at a multiple of so many frames or behind it.
pub(super) const BATCH: usize = 64;
/// So many batches are batched again, so that a long history is a few of them.
pub(super) const BATCHES: usize = 64;

/// The batches of messages that contexts of one history hold, by the index of their first frame. A
/// history keeps it for the HUD that rendered it last.
///
/// A batch is right wherever a message begins with its first frame: it shows packed frames alone,
/// which never change, and the frame behind it begins a message. Contexts keep batches alive, so
/// that nothing is left of them when the contexts are gone.
pub(super) struct SharedBatches {
    /// HUDs that are clones of each other have the same.
    made_by: Arc<SnapshotIdentity>,
    /// How frames become messages, and whether their texts are guarded.
    form: (Merge, bool),
    batches: HashMap<usize, Weak<MessageBatch>>,
    batched: HashMap<usize, Weak<MessageBatch>>,
    /// How many batches there may be until those that are gone are taken out.
    most: usize,
}

impl SharedBatches {
    /// Takes them from the history. [`SharedBatches::give_back`] puts them there again.
    pub(super) fn take(history: &History, hud: &Hud, form: (Merge, bool)) -> Self {
        let kept = history.kept().take::<Self>();
        let is_same = |kept: &Self| kept.form == form && Arc::ptr_eq(&kept.made_by, hud.identity());
        kept.filter(is_same).unwrap_or_else(|| {
            let (batches, batched) = Default::default();
            let made_by = Arc::clone(hud.identity());
            Self { made_by, form, batches, batched, most: 2 * BATCHES }
        })
    }

    pub(super) fn give_back(mut self, history: &History) {
        if self.batches.len() > self.most {
            let is_there = |_: &usize, batch: &mut Weak<MessageBatch>| batch.strong_count() > 0;
            self.batches.retain(is_there);
            self.batched.retain(is_there);
            self.most = 2 * self.batches.len().max(BATCHES);
        }
        history.kept().put(self);
    }

    /// The batch whose first frame has this index, and whose last is before `end`; the longest.
    pub(super) fn find(&self, start: usize, end: usize) -> Option<Arc<MessageBatch>> {
        [&self.batched, &self.batches].into_iter().find_map(|batches| {
            let batch = batches.get(&start)?.upgrade()?;
            (batch.frames.end <= end).then_some(batch)
        })
    }

    pub(super) fn keep(&mut self, batch: &Arc<MessageBatch>) {
        let batches = if batch.is_batched() { &mut self.batched } else { &mut self.batches };
        batches.insert(batch.frames.start, Arc::downgrade(batch));
    }
}
