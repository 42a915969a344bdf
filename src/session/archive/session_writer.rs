//! The snapshots of a session on their way to its archive.

use std::{path::PathBuf, sync::Arc};

use crate::{
    Result,
    id::FrameSeq,
    log::create_dirs,
    snapshot::{FrameSnapshot, SnapshotArchive, Totals},
};

use super::late_sync::LateSync;

/// What a chunk is taken to cost besides its text.
const CHUNK_BYTES: usize = 64;

pub(super) struct SessionWriter {
    archive: SnapshotArchive,
    files: LateSync,
    directory: PathBuf,
    /// Whether there are frames that are not yet on disk.
    is_unsaved: bool,
    /// Whether ambient facets hold after the last frame.
    pub(super) has_tail: bool,
}

impl SessionWriter {
    pub(super) fn new(files: &LateSync, directory: PathBuf) -> Self {
        let files = files.clone();
        Self {
            archive: SnapshotArchive::new(),
            files,
            directory,
            is_unsaved: false,
            has_tail: false,
        }
    }

    /// Adds the snapshot of a frame, and tells about how much memory it takes.
    pub(super) fn push(&mut self, sequence: FrameSeq, snapshot: &FrameSnapshot) -> Result<usize> {
        self.archive.push(sequence, snapshot)?;
        self.is_unsaved = true;
        Ok(snapshot.text().len() + snapshot.len() * CHUNK_BYTES)
    }

    /// Writes what is not yet on disk, and gives its memory back.
    pub(super) fn save(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_unsaved) {
            return Ok(());
        }
        if self.archive.directory().is_none() {
            // The lock of the archive is above it.
            let files = Arc::new(self.files.clone());
            create_dirs(&*files, &self.directory)?;
            self.archive.save_locked(files, &self.directory)?;
        } else {
            self.archive.append_locked()?;
        }
        self.archive.unload(u64::MAX);
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> Result<Totals> {
        self.save()?;
        Ok(self.archive.totals())
    }
}
