//! Making a directory of archived transcripts: whole, or not at all.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use afterimage::{
    ErrorKind,
    log::{DirLock, DiskFiles, create_dirs},
    snapshot::Totals,
};

use super::{
    FileEntry, MANIFEST, directory, file_writer::FileWriter, folder, holder, late_sync::LateSync,
    manifest,
};
use crate::{
    failure::{Failure, Outcome},
    input::Source,
    lens::Lens,
};

/// A directory in the making. What was written is removed when it is dropped before
/// [`Builder::finish`]: a directory without its list would not be read.
pub(crate) struct Builder {
    directory: PathBuf,
    /// Whether the directory was there before.
    was_there: bool,
    files: Vec<FileEntry>,
    /// What is written, and not yet durable.
    written: LateSync,
    is_finished: bool,
    _lock: DirLock,
}

/// What was made.
pub(crate) struct Summary {
    pub(crate) files: Vec<FileEntry>,
    /// The sizes of all files in the directory.
    pub(crate) stored_bytes: u64,
}

impl Summary {
    /// The sums of all files.
    pub(crate) fn totals(&self) -> Totals {
        manifest::sum(self.files.iter().map(FileEntry::totals))
    }
}

impl Builder {
    /// Begins a directory, which must be empty if it is there.
    pub(crate) fn create(directory: &Path) -> Outcome<Self> {
        let was_there = check(directory)?;
        create_dirs(&DiskFiles, directory)?;
        let lock = DirLock::acquire(&DiskFiles, directory, &holder()).inspect_err(|error| {
            // Who was faster may have begun already.
            if error.kind() != ErrorKind::Locked {
                clear(directory, 0, was_there);
            }
        })?;
        Ok(Self {
            directory: directory.to_owned(),
            was_there,
            files: Vec::new(),
            written: LateSync::default(),
            is_finished: false,
            _lock: lock,
        })
    }

    /// Adds a transcript.
    pub(crate) fn add(&mut self, source: &mut Source, lens: &Lens) -> Outcome {
        let folder = folder(&self.directory, self.files.len());
        let mut file = FileWriter::create(&self.written, folder, lens, source)?;
        while let Some(record) = source.next() {
            file.push(source, record?)?;
        }
        self.files.push(file.finish(source)?);
        Ok(())
    }

    /// Makes all durable, and writes the list, with which the directory is one.
    pub(crate) fn finish(mut self) -> Outcome<Summary> {
        self.written.sync().map_err(|(error, path)| {
            Failure::new(format!("cannot make the file durable: {error}")).file(&path)
        })?;
        manifest::write(&self.directory, &self.files)?;
        self.is_finished = true;
        let stored_bytes = size(&self.directory);
        Ok(Summary { files: std::mem::take(&mut self.files), stored_bytes })
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        if !self.is_finished {
            clear(&self.directory, self.files.len() + 1, self.was_there);
        }
    }
}

/// Removes what was begun in a directory that was empty or not there: so many folders, and the
/// files beside them. What went wrong before is what the caller has to know, so nothing is said of
/// what cannot be removed; without its list it is not read.
fn clear(directory: &Path, folders: usize, was_there: bool) {
    for index in 0..folders {
        let _ = fs::remove_dir_all(folder(directory, index));
    }
    for name in [MANIFEST, "lock"] {
        let _ = fs::remove_file(directory.join(name));
    }
    if !was_there {
        let _ = fs::remove_dir(directory);
    }
}

/// Checks that nothing is in a directory, and tells whether it is there.
fn check(path: &Path) -> Outcome<bool> {
    let failed = |error: io::Error| Failure::cannot_open(&error).file(path);
    let mut entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let failure = Failure::new("expected a directory to write to, found a file");
            return Err(failure.file(path).into());
        }
        entries => entries.map_err(failed)?,
    };
    if entries.next().transpose().map_err(failed)?.is_none() {
        return Ok(true);
    }
    let failure = if path.join(MANIFEST).exists() {
        Failure::new("there is an archive already, and an archive is not added to")
            .hint("name it as an input, too: `afterimage archive DIR FILE -o OTHER`")
    } else if directory::is_half_built(path) {
        return Err(directory::half_built(path).into());
    } else {
        Failure::new("the directory is not empty").hint("name one that is empty, or not there yet")
    };
    Err(failure.file(path).into())
}

/// The sizes of the files in a directory, as far as they can be told.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
