//! Syncs on a thread of its own: a disk may take seconds for it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{self, Sender},
};

use super::{Note, spawn};
use crate::{Result, place::Place};

/// The way to the thread.
pub(super) struct Syncing {
    jobs: Sender<(Place, u64)>,
    is_busy: Arc<AtomicBool>,
}

impl Syncing {
    /// Starts the thread, which tells of failures by `notes`.
    pub(super) fn start(notes: Sender<Note>) -> Result<Self> {
        let (jobs, incoming) = mpsc::channel::<(Place, u64)>();
        let is_busy = Arc::new(AtomicBool::new(false));
        let busy = Arc::clone(&is_busy);
        spawn("recorder-sync", move || {
            for (file, opening) in incoming {
                // It is free again however this ends.
                let _free = FreeMark { is_busy: &busy, notes: &notes };
                if let Err(error) = file.sync() {
                    let _ = notes.send(Note::NotSynced(opening, error));
                }
            }
        })?;
        Ok(Self { jobs, is_busy })
    }

    /// Begins to sync; false where an earlier sync still runs, `None` where the thread is gone.
    pub(super) fn begin(&self, file: Place, opening: u64) -> Option<bool> {
        if self.is_busy.swap(true, Ordering::AcqRel) {
            return Some(false);
        }
        let sent = self.jobs.send((file, opening));
        if sent.is_err() {
            self.is_busy.store(false, Ordering::Release);
        }
        sent.ok().map(|()| true)
    }
}

/// Says that a sync is over; where it panicked, also that none follows.
struct FreeMark<'b> {
    is_busy: &'b AtomicBool,
    notes: &'b Sender<Note>,
}

impl Drop for FreeMark<'_> {
    fn drop(&mut self) {
        self.is_busy.store(false, Ordering::Release);
        if std::thread::panicking() {
            let _ = self.notes.send(Note::SyncingFailed);
        }
    }
}
