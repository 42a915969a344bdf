//! The file that a recording is written to, and whether it is still where it was.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage_log::{Files, OpenFile, OpenMode};

use crate::{Error, Result};

/// An open file and its path. A clone is the same open file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    files: Arc<dyn Files>,
    file: Arc<dyn OpenFile>,
    path: PathBuf,
}

impl Place {
    /// Opens the file at a path once more, so that a sync and an append need not wait for each other.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub(crate) fn open(files: Arc<dyn Files>, path: PathBuf) -> Result<Self> {
        let file = files.open(&path, OpenMode::Append);
        let file = file.map_err(|error| Error::io(error, "cannot open").in_file(&path))?;
        Ok(Self { files, file: Arc::from(file), path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the open file is the one at its path. What is appended to one that was removed is lost
    /// with it, and no error of the system says so.
    pub(crate) fn is_in_place(&self) -> bool {
        match self.files.open(&self.path, OpenMode::Read) {
            Ok(found) => match (found.length(), self.file.length()) {
                (Ok(found), Ok(own)) => found == own,
                _ => true,
            },
            // A file may stand in the place of the folder.
            Err(error) => {
                !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            }
        }
    }

    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), as of `RecordingWriter::sync`.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| Error::io(error, "cannot sync the recording"))
    }
}
