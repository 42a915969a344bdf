//! Syncs on a thread of its own: a disk may take seconds for it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{self, Sender},
};

use super::Note;
use crate::{Error, Result, writer::Syncer};

/// The way to the thread.
pub(super) struct Syncing {
    jobs: Sender<(Syncer, u64)>,
    is_busy: Arc<AtomicBool>,
}

impl Syncing {
    /// Starts the thread, which tells of failures by `notes`.
    pub(super) fn start(notes: Sender<Note>) -> Result<Self> {
        let (jobs, incoming) = mpsc::channel::<(Syncer, u64)>();
        let is_busy = Arc::new(AtomicBool::new(false));
        let busy = Arc::clone(&is_busy);
        let run = move || {
            for (file, opening) in incoming {
                if let Err(error) = file.sync() {
                    let _ = notes.send(Note::NotSynced(opening, error));
                }
                busy.store(false, Ordering::Release);
            }
        };
        std::thread::Builder::new()
            .name("recorder-sync".to_owned())
            .spawn(run)
            .map_err(|error| Error::io(error, "cannot start a thread"))?;
        Ok(Self { jobs, is_busy })
    }

    /// Begins to sync; false where an earlier sync still runs.
    pub(super) fn begin(&self, file: Syncer, opening: u64) -> bool {
        if self.is_busy.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.jobs.send((file, opening)).is_ok()
    }
}
