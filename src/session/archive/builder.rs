//! Making a directory of archived transcripts: whole, or not at all.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    DirectoryState, HOLDER, LOCK, MAKING, MANIFEST, TranscriptEntry, TranscriptSource,
    TranscriptWriter, UNFINISHED, WrittenTranscript, directory, folder, holder,
    late_sync::LateSync, manifest, written_transcript::FolderInMaking,
};
use crate::{
    Error, ErrorKind, Result,
    hud::Hud,
    log::{DirLock, DiskFiles, Files, OpenMode, WholeSync, create_dirs, read_file},
    snapshot::Totals,
    tokens::TokenCounter,
};

/// The longest line of who holds a lock, in bytes.
const MOST_OF_LOCK: u64 = 1024;

/// An archive in the making, whose transcripts may be written by several threads at once, and are
/// added one after the other. What was written is removed when it is dropped before
/// [`ArchiveBuilder::finish`]: a directory without its list would not be read.
#[derive(Debug)]
pub struct ArchiveBuilder {
    directory: PathBuf,
    /// Whether the directory was there before.
    was_there: bool,
    replaces_unfinished: bool,
    /// How many transcripts were begun.
    begun: AtomicUsize,
    /// What its transcripts know it by.
    alive: Arc<()>,
    placed: Mutex<PlacedTranscripts>,
    /// What is written, and not yet durable.
    written: LateSync,
    /// The file system of the directory, where it can be synced as a whole.
    file_system: Option<WholeSync>,
    is_finished: bool,
    _lock: DirLock,
}

/// The transcripts that have their place.
#[derive(Debug, Default)]
struct PlacedTranscripts {
    entries: Vec<TranscriptEntry>,
    /// The sizes of their files.
    bytes: u64,
}

/// What an archive holds that was made.
#[derive(Clone, Debug)]
pub struct ArchiveSummary {
    /// The transcripts in order.
    pub transcripts: Vec<TranscriptEntry>,
    /// The sizes of all files in the directory.
    pub stored_bytes: u64,
}

impl ArchiveSummary {
    /// The sums of all transcripts. O(sessions).
    pub fn totals(&self) -> Totals {
        manifest::sum(self.transcripts.iter().map(TranscriptEntry::totals))
    }
}

impl ArchiveBuilder {
    /// Begins an archive in a directory. The directory must be empty if it is there, or hold what
    /// another run began and did not finish: that is made anew. Lists the directory, and removes
    /// what the other run left.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where something else is there, an archive too; [`ErrorKind::Locked`]
    /// while somebody else makes one there; [`ErrorKind::Damaged`] for files of an archive without
    /// its list, which nobody says were unfinished; [`ErrorKind::Io`].
    pub fn create(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = directory.as_ref();
        let was_there = check(directory)? != Contents::NoDirectory;
        create_dirs(&DiskFiles, directory)?;
        let lock = DirLock::acquire(&DiskFiles, directory, &holder()).map_err(|error| {
            if error.kind() == crate::log::ErrorKind::Locked {
                return directory::not_finished(directory, DirectoryState::BeingMade);
            }
            // Without the lock nothing in it is known to be one's own, but a lock in which nobody
            // could write who has it.
            if !was_there {
                let lock = directory.join(LOCK);
                if lock.symlink_metadata().is_ok_and(|of| of.is_file() && of.len() == 0) {
                    let _ = fs::remove_file(lock);
                }
                let _ = fs::remove_dir(directory);
            }
            Error::from(error)
        })?;
        // Who was faster may have finished meanwhile; now nobody else is at it.
        let replaces_unfinished = check(directory)? == Contents::Unfinished;
        if replaces_unfinished {
            clear_unfinished(directory);
        }
        let marker = directory.join(UNFINISHED);
        DiskFiles.open(&marker, OpenMode::Create).map_err(|error| {
            clear(directory, was_there);
            Error::io(error, "write").in_file(&marker)
        })?;
        Ok(Self {
            directory: directory.to_owned(),
            was_there,
            replaces_unfinished,
            begun: AtomicUsize::new(0),
            alive: Arc::new(()),
            placed: Mutex::default(),
            written: LateSync::default(),
            file_system: WholeSync::of(directory),
            is_finished: false,
            _lock: lock,
        })
    }

    /// Whether it takes the place of an archive that was begun and not finished.
    pub fn replaces_unfinished(&self) -> bool {
        self.replaces_unfinished
    }

    /// Begins a transcript, whose frames `hud` renders and `counter` counts. One that is dropped
    /// before [`TranscriptWriter::finish`] is removed. Creates its folder.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn transcript<'b>(
        &'b self,
        source: TranscriptSource,
        hud: &'b Hud,
        counter: &Arc<dyn TokenCounter>,
    ) -> Result<TranscriptWriter<'b>> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let folder = folder(&self.directory.join(MAKING), number);
        TranscriptWriter::create(FolderInMaking::new(folder, &self.alive), source, hud, counter)
    }

    /// Adds a transcript behind those that were added before. O(its files): moves their folder.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] for a transcript that was written for another archive;
    /// [`ErrorKind::Io`]. It is removed then.
    pub fn add(&self, transcript: WrittenTranscript) -> Result<()> {
        // What a thread that panicked left is as whole as what a failed call leaves.
        let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        let place = folder(&self.directory, placed.entries.len());
        let entry = transcript.place(&self.alive, &place, &self.written)?;
        placed.entries.push(entry);
        placed.bytes += size(&place);
        Ok(())
    }

    /// Makes what was added durable, and writes the list, with which the directory is an archive.
    /// Transcripts that were not added are removed.
    ///
    /// Cost: one sync for each file and folder, several at once, and O(files) for the list. Where
    /// there are many, and Linux can, one sync of the file system: it waits for what other programs
    /// wrote there too.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; what was written is removed then.
    pub fn finish(mut self) -> Result<ArchiveSummary> {
        // What is left there was not added.
        let _ = fs::remove_dir_all(self.directory.join(MAKING));
        self.written
            .sync(self.file_system.as_ref(), &self.directory)
            .map_err(|(error, path)| Error::io(error, "make the file durable").in_file(path))?;
        let placed = self.placed.get_mut().unwrap_or_else(PoisonError::into_inner);
        let PlacedTranscripts { entries, bytes } = std::mem::take(placed);
        manifest::write(&self.directory, &entries)?;
        self.is_finished = true;
        // The list stands above it, so it does no harm where it cannot be removed.
        let _ = fs::remove_file(self.directory.join(UNFINISHED));
        let beside = [LOCK, MANIFEST].map(|name| self.directory.join(name));
        let beside: u64 = beside.iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum();
        Ok(ArchiveSummary { transcripts: entries, stored_bytes: bytes + beside })
    }
}

impl Drop for ArchiveBuilder {
    fn drop(&mut self) {
        if !self.is_finished {
            clear(&self.directory, self.was_there);
        }
    }
}

/// Removes what was begun in a directory that was empty or not there, whose lock is held. What went
/// wrong before is what the caller has to know, so nothing is said of what cannot be removed; without
/// its list it is not read.
fn clear(directory: &Path, was_there: bool) {
    clear_unfinished(directory);
    let _ = fs::remove_file(directory.join(LOCK));
    if !was_there {
        let _ = fs::remove_dir(directory);
    }
}

/// As [`clear`], with the lock held on. Whoever is killed meanwhile leaves what says that it may be
/// made anew.
fn clear_unfinished(directory: &Path) {
    for name in [MANIFEST, "archive.json.tmp"] {
        let _ = fs::remove_file(directory.join(name));
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name() == MAKING || is_transcript(entry)) {
        let _ = fs::remove_dir_all(entry.path());
    }
    let _ = fs::remove_file(directory.join(UNFINISHED));
}

/// Whether this is the folder of a transcript or of a session: it has a number, and holds nothing but
/// files of records and such folders. Folders of others have numbers too.
fn is_transcript(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    let is_number = name.len() >= 4 && name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    let is_records = |name: &OsStr| Path::new(name).extension().is_some_and(|of| of == "rec");
    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
    let Some(mut entries) = fs::read_dir(entry.path()).ok().filter(|_| is_number && is_folder)
    else {
        return false;
    };
    entries.all(|entry| {
        entry.is_ok_and(|entry| is_records(&entry.file_name()) || is_transcript(&entry))
    })
}

/// What there is where an archive may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    NoDirectory,
    Empty,
    /// Another run began an archive.
    Unfinished,
}

/// Checks that nothing is in a directory but what an unfinished run left.
fn check(path: &Path) -> Result<Contents> {
    let failed = |error: io::Error| Error::io(error, "open the directory").in_file(path);
    let conflict = |message: &str| Error::new(ErrorKind::Conflict, message).in_file(path);
    let mut entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Contents::NoDirectory);
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(conflict("expected a directory to write to, found a file"));
        }
        entries => entries.map_err(failed)?,
    };
    let is_lock = |entry: &io::Result<fs::DirEntry>| {
        entry.as_ref().is_ok_and(|entry| entry.file_name() == LOCK && is_own_lock(&entry.path()))
    };
    if entries.find(|entry| !is_lock(entry)).transpose().map_err(failed)?.is_none() {
        return Ok(Contents::Empty);
    }
    if directory::is_unfinished(path) {
        return Ok(Contents::Unfinished);
    }
    if directory::is_there(&path.join(MANIFEST)) {
        return Err(conflict("there is an archive already, and an archive is not added to"));
    }
    match directory::state(path) {
        DirectoryState::NoArchive | DirectoryState::Archive => {
            Err(conflict("the directory is not empty"))
        }
        other => Err(directory::not_finished(path, other)),
    }
}

/// Whether a lock is one that an archive left which was begun and not more: the line in it says by
/// whom, where there was time to write it. A pipe, a link or a longer file is none.
fn is_own_lock(path: &Path) -> bool {
    read_file(&DiskFiles, path, MOST_OF_LOCK)
        .is_ok_and(|line| line.is_empty() || line.starts_with(HOLDER.as_bytes()))
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
