use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{TranscriptEntry, late_sync::LateSync};
use crate::{Error, ErrorKind, Result};

/// A transcript that is written, and has no place in its archive yet:
/// [`ArchiveBuilder::add`](super::ArchiveBuilder::add) gives it one. Its files are removed when it is
/// dropped before.
#[derive(Debug)]
#[must_use = "a transcript that is not given to `ArchiveBuilder::add` is not in the archive"]
pub struct WrittenTranscript {
    entry: TranscriptEntry,
    folder: FolderInMaking,
    /// What of it is not yet durable.
    files: LateSync,
}

impl WrittenTranscript {
    pub(super) fn new(entry: TranscriptEntry, folder: FolderInMaking, files: LateSync) -> Self {
        Self { entry, folder, files }
    }

    /// What the list of the archive will say of it.
    pub fn entry(&self) -> &TranscriptEntry {
        &self.entry
    }

    /// Moves it to its place from this folder; `written` is to make it durable there.
    pub(super) fn place(
        self,
        from: &Path,
        place: &Path,
        written: &LateSync,
    ) -> Result<TranscriptEntry> {
        let folder = self.folder.path();
        if folder.parent() != Some(from) {
            let message = "the transcript was written for another archive";
            return Err(Error::new(ErrorKind::Conflict, message).in_file(folder));
        }
        fs::rename(folder, place)
            .map_err(|error| Error::io(error, "move the folder").in_file(folder))?;
        written.take_moved(&self.files, folder, place);
        self.folder.keep();
        Ok(self.entry)
    }
}

/// A folder that is removed when it is dropped before it is kept.
#[derive(Debug)]
pub(super) struct FolderInMaking {
    path: PathBuf,
    is_kept: bool,
}

impl FolderInMaking {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, is_kept: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for FolderInMaking {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
