//! The archives of a transcript's sessions, a few of them open at a time.

use std::{
    cell::RefCell,
    collections::{BTreeSet, VecDeque},
    path::PathBuf,
};

use afterimage::snapshot::{ArchiveReader, OpenedArchive, SnapshotArchive};

use super::folder;
use crate::{failure::Outcome, output};

/// How many sessions stay open. Each holds two files, and up to 8 MiB of text besides its tables,
/// and a transcript may have thousands; those that run at the same time are few.
const MOST_OPEN: usize = 16;

pub(super) struct Sessions {
    /// The folder of the transcript.
    folder: PathBuf,
    /// Those that were asked for last, with their indices, the newest at the end.
    open: RefCell<VecDeque<(u32, ArchiveReader)>>,
    /// Those whose damage was told.
    damaged: RefCell<BTreeSet<u32>>,
}

impl Sessions {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, open: RefCell::default(), damaged: RefCell::default() }
    }

    pub(super) fn directory(&self, index: u32) -> PathBuf {
        folder(&self.folder, index as usize)
    }

    /// The archive of the session with this index. Its files are closed once so many others were
    /// asked for and the reader is dropped.
    pub(super) fn get(&self, index: u32) -> Outcome<ArchiveReader> {
        let mut open = self.open.borrow_mut();
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

    fn open(&self, index: u32) -> Outcome<ArchiveReader> {
        let OpenedArchive { archive, problems } = SnapshotArchive::open(self.directory(index))?;
        if !problems.is_empty() && self.damaged.borrow_mut().insert(index) {
            for problem in problems {
                output::note(&format!("damage in the archive: {problem}"));
            }
        }
        Ok(archive.reader())
    }
}
