//! What a file looks like from outside: how the index tells whether it has changed.

use std::{
    fs::{self, Metadata},
    io,
    path::Path,
    time::UNIX_EPOCH,
};

use super::{Found, FoundKind};

/// The sizes and times of the files of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The bytes of the file and of those that are read with it.
    pub(crate) size: u64,
    /// When one of them changed last, in nanoseconds since the epoch.
    pub(crate) modified: u64,
    /// How many files they are.
    pub(crate) files: u64,
}

impl Stamp {
    pub(crate) fn of(found: &Found) -> io::Result<Self> {
        let mut stamp = Self::default();
        if let Some(session) = &found.session {
            let modified = u64::try_from(session.changed).unwrap_or(0).saturating_mul(1_000_000);
            return Ok(Self { size: session.bytes, modified, files: 1 });
        }
        if found.kind == FoundKind::File {
            stamp.add(&fs::metadata(&found.path)?);
            for part in &found.parts {
                stamp.add(&fs::metadata(part)?);
            }
            return Ok(stamp);
        }
        Self::of_folder(&found.path)
    }

    /// The files of a folder, those in its folders aside.
    pub(crate) fn of_folder(folder: &Path) -> io::Result<Self> {
        let mut stamp = Self::default();
        stamp.add_folder(folder)?;
        Ok(stamp)
    }

    fn add_folder(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let metadata = entry?.metadata()?;
            if metadata.is_file() {
                self.add(&metadata);
            }
        }
        Ok(())
    }

    fn add(&mut self, metadata: &Metadata) {
        let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let nanos = modified.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        self.size = self.size.saturating_add(metadata.len());
        self.modified = self.modified.max(nanos);
        self.files += 1;
    }

    /// When a file changed last, in milliseconds since the epoch.
    pub(crate) fn modified_millis(self) -> i64 {
        i64::try_from(self.modified / 1_000_000).unwrap_or(i64::MAX)
    }
}
