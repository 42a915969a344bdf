//! The archives of a transcript's sessions, a few of them open at a time.

use std::{
    collections::{BTreeSet, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    Error, Result,
    log::Files,
    snapshot::{ArchiveReader, OpenedArchive, SnapshotArchive},
};

use super::folder;

/// How many sessions stay open. Each holds two files, and up to 8 MiB of text besides its tables,
/// and a transcript may have thousands; those that run at the same time are few.
const MOST_OPEN: usize = 16;

/// Who hears of damage.
type Hear = Box<dyn Fn(&Error) + Send + Sync>;

pub(super) struct Sessions {
    files: Arc<dyn Files>,
    /// The folder of the transcript.
    folder: PathBuf,
    /// Those that were asked for last, with their indices, the newest at the end.
    open: Mutex<VecDeque<(u32, ArchiveReader)>>,
    /// Those whose damage was told.
    damaged: Mutex<BTreeSet<u32>>,
    pub(super) on_damage: Option<Hear>,
}

impl Sessions {
    pub(super) fn new(files: Arc<dyn Files>, folder: PathBuf) -> Self {
        Self { files, folder, open: Mutex::default(), damaged: Mutex::default(), on_damage: None }
    }

    pub(super) fn directory(&self, index: u32) -> PathBuf {
        folder(&self.folder, index as usize)
    }

    /// The archive of the session with this index. Its files are closed once so many others were
    /// asked for and the reader is dropped.
    pub(super) fn get(&self, index: u32) -> Result<ArchiveReader> {
        let mut open = lock(&self.open);
        let known = open.iter().rposition(|(of, _)| *of == index);
        let session = match known.and_then(|at| open.remove(at)) {
            Some(session) => session,
            None => (index, self.open(index)?),
        };
        let reader = session.1.clone();
        open.push_back(session);
        if open.len() > MOST_OPEN {
            open.pop_front();
        }
        Ok(reader)
    }

    fn open(&self, index: u32) -> Result<ArchiveReader> {
        let files = Arc::clone(&self.files);
        let OpenedArchive { archive, problems } =
            SnapshotArchive::open_on(files, self.directory(index))?;
        if let Some(hear) = &self.on_damage
            && !problems.is_empty()
            && lock(&self.damaged).insert(index)
        {
            problems.iter().for_each(hear);
        }
        Ok(archive.reader())
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
