//! Writing segments, and giving back the memory of those that are written.

use std::{
    io,
    path::Path,
    sync::{Arc, OnceLock},
};

use super::{
    super::{
        SnapshotArchive,
        directory::{TablesOf, TextOf, Totals},
        state::State,
        writer::Home,
    },
    Places, codec,
    commit::{Commit, CommitRecord},
    files::{SEGMENTS, StoreFiles, TABLES, TEXTS},
};
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    log::{self, DirLock, DiskFiles, FileKind, Files, Holder, OpenMode, RecordWriter},
};

impl SnapshotArchive {
    /// Writes all that the archive holds into a directory, which is created where it is not there.
    /// From then on the archive belongs to it: [`SnapshotArchive::append`] writes there.
    ///
    /// Ends the segment that takes frames. Everything is durable when this returns. Writes all text
    /// and tables, with six syncs, and one for each directory that it creates.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the directory holds an archive, [`ErrorKind::Locked`] where
    /// someone else writes there, [`ErrorKind::Io`] where the disk refuses or is full. The archive
    /// holds what it held, and the files that were begun are removed.
    pub fn save(&mut self, directory: impl AsRef<Path>, holder: &Holder) -> Result<()> {
        self.save_on(Arc::new(DiskFiles), directory, holder)
    }

    /// As [`SnapshotArchive::save`], on other files than the operating system's. O(text that it
    /// holds).
    ///
    /// # Errors
    /// Those of [`SnapshotArchive::save`].
    pub fn save_on(
        &mut self,
        files: Arc<dyn Files>,
        directory: impl AsRef<Path>,
        holder: &Holder,
    ) -> Result<()> {
        let directory = directory.as_ref();
        log::create_dirs(&*files, directory)?;
        let _lock = DirLock::acquire(&*files, directory, holder)?;
        self.save_locked(files, directory)
    }

    /// As [`SnapshotArchive::save_on`], in a directory that is there, for whoever holds the lock of it
    /// or of one above it.
    pub(crate) fn save_locked(&mut self, files: Arc<dyn Files>, directory: &Path) -> Result<()> {
        let store = StoreFiles::new(files, directory);
        if exists(&store, SEGMENTS)? {
            let error = Error::new(ErrorKind::Conflict, "there is an archive already");
            return Err(error.in_file(store.path(SEGMENTS)));
        }
        let state = Arc::make_mut(&mut self.reader.state);
        state.seal();
        let written = write_all(&store, state);
        if written.is_err() {
            for file in [SEGMENTS, NEW_SEGMENTS, TEXTS, TABLES] {
                // What went wrong first is what the caller has to know.
                let _ = store.files.remove(&store.path(file));
            }
        }
        let written = written?;
        let records = written.len() as u64;
        self.mark(&Arc::new(store), &written, records);
        Ok(())
    }

    /// Writes the frames that the archive's directory lacks: the one that it was opened from, or
    /// saved to. They are durable when this returns.
    ///
    /// Ends the segment that takes frames, so an archive that appends after every frame has a
    /// segment for each. Append every 64 frames or 64 KiB, and journal what must not wait. The
    /// first append after opening or saving reads the headers of all records that are there, 36
    /// bytes of each; the next ones write what is new and nothing else. Each append syncs the three
    /// files once.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the archive has no directory, and where someone has appended
    /// since it was opened; [`ErrorKind::Locked`] where someone else writes there;
    /// [`ErrorKind::Io`] where the disk refuses or is full. The archive then holds what it held,
    /// and the directory what it did, unless the disk refuses that too: then it may hold the new
    /// frames, and must be opened again to append.
    pub fn append(&mut self, holder: &Holder) -> Result<Totals> {
        let Some(home) = &self.home else { return Err(no_directory()) };
        let store = Arc::clone(&home.store);
        let _lock = DirLock::acquire(&*store.files, &store.directory, holder)?;
        self.append_locked()
    }

    /// As [`SnapshotArchive::append`], for whoever holds the lock of the directory or of one above it.
    pub(crate) fn append_locked(&mut self) -> Result<Totals> {
        let Some(home) = &mut self.home else { return Err(no_directory()) };
        let (store, from, records) = (Arc::clone(&home.store), home.segments, home.records);
        let state = Arc::make_mut(&mut self.reader.state);
        state.seal();
        let before = state.before(from);
        if from == state.open_segment() {
            return Ok(Totals::default());
        }
        // Where someone else has written meanwhile, the files do not end where they did.
        let mut writers = match home.writers.take() {
            Some(writers) if writers.are_at_the_end()? => writers,
            _ => Writers::open(&store)?,
        };
        let written = writers.write(&store, state, from, records)?;
        let after = state.sealed_totals;
        self.mark(&store, &written, records + 1);
        if let Some(home) = &mut self.home {
            home.writers = Some(writers);
        }
        Ok(after.since(before))
    }

    /// Makes `store`, with so many commits, the archive's own: these segments were written to it.
    fn mark(&mut self, store: &Arc<StoreFiles>, written: &[CommitRecord], records: u64) {
        let state = Arc::make_mut(&mut self.reader.state);
        for segment in written {
            if let Some(entry) = state.sealed.get_mut(segment.number) {
                entry.places = Some(segment.places);
            }
        }
        state.store = Some(Arc::clone(store) as Arc<_>);
        let segments = state.open_segment();
        self.home = Some(Home { store: Arc::clone(store), segments, records, writers: None });
    }

    /// Gives back the memory of the frames before `sequence` that are in the archive's directory,
    /// text and tables; they are read again where they are asked for. Returns what was given back:
    /// whole segments, so a little less than was asked for. Text that was dropped in parts stays as
    /// it is. O(segments).
    ///
    /// Readers that were taken before still hold the memory.
    pub fn unload(&mut self, sequence: impl Into<FrameSeq>) -> Totals {
        let sequence = sequence.into().get();
        let state = Arc::make_mut(&mut self.reader.state);
        let mut given_back = Totals::default();
        for segment in 0..state.open_segment() {
            let end = state.before(segment + 1);
            let Some(entry) = state.sealed.get(segment) else { break };
            let next = state.sealed.get(segment + 1).map(|next| next.first_sequence);
            let next =
                next.or_else(|| state.last_sequence.map(|last| last.get().saturating_add(1)));
            if next.is_none_or(|next| next > sequence) {
                break;
            }
            let has_text = match &entry.text {
                TextOf::Memory(text) if !text.is_whole() => continue,
                TextOf::Memory(_) => true,
                TextOf::Store => false,
            };
            let has_tables = match &entry.tables {
                TablesOf::Memory(_) => true,
                TablesOf::Store(cell) => cell.get().is_some(),
            };
            if entry.places.is_none() || !(has_text || has_tables) {
                continue;
            }
            let own = end.since(entry.before);
            given_back = given_back.checked_add(own).unwrap_or(given_back);
            if let Some(entry) = state.sealed.get_mut(segment) {
                entry.text = TextOf::Store;
                entry.tables = TablesOf::Store(Arc::new(OnceLock::new()));
                entry.frames = None;
            }
        }
        given_back
    }

    /// Where the archive is stored, if it is.
    pub fn directory(&self) -> Option<&Path> {
        self.home.as_ref().map(|home| &*home.store.directory)
    }
}

fn no_directory() -> Error {
    Error::new(ErrorKind::Conflict, "the archive has no directory: save it first")
}

/// The commits of an archive that is being saved.
const NEW_SEGMENTS: (&str, FileKind) = ("segments.rec.new", SEGMENTS.1);

/// Writes all segments, each with a commit of its own. They are there at once, when the file of
/// their commits gets its name. What a save that was killed left is no archive, and written over.
fn write_all(store: &StoreFiles, state: &State) -> Result<Vec<CommitRecord>> {
    let (mut texts, mut tables) = (new_writer(store, TEXTS)?, new_writer(store, TABLES)?);
    let written = write_segments(&mut texts, &mut tables, state, 0)?;
    let (path, new) = (store.path(SEGMENTS), store.path(NEW_SEGMENTS));
    let failed = |error| Error::io(error, "cannot write").in_file(&path);
    let mut commits = new_writer(store, NEW_SEGMENTS)?;
    for segment in &written {
        commits.append(&commit(state, vec![*segment])?)?;
    }
    commits.sync()?;
    // The names of the others come before that of the commits.
    store.files.sync_dir(&store.directory).map_err(failed)?;
    store.files.rename(&new, &path).map_err(failed)?;
    store.files.sync_dir(&store.directory).map_err(failed)?;
    Ok(written)
}

/// The files of an archive, open for writing.
#[derive(Debug)]
pub(in super::super) struct Writers {
    commits: RecordWriter,
    texts: RecordWriter,
    tables: RecordWriter,
}

impl Writers {
    /// Opens the files. Reads the headers of all records.
    fn open(store: &StoreFiles) -> Result<Self> {
        let (commits, texts) = (writer(store, SEGMENTS)?, writer(store, TEXTS)?);
        Ok(Self { commits, texts, tables: writer(store, TABLES)? })
    }

    /// Whether the files end where these left them.
    fn are_at_the_end(&self) -> Result<bool> {
        let Self { commits, texts, tables } = self;
        for writer in [commits, texts, tables] {
            if writer.records().length()? != writer.end() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the segments from `from` on with one commit, the next after so many. Where that
    /// fails, the files end where they did, if the disk lets them.
    fn write(
        &mut self,
        store: &StoreFiles,
        state: &State,
        from: u32,
        records: u64,
    ) -> Result<Vec<CommitRecord>> {
        let found = self.commits.next_index();
        if found != records {
            let message = format!(
                "expected {records} commits in the directory, found {found}: open it again"
            );
            return Err(Error::new(ErrorKind::Conflict, message).in_file(store.path(SEGMENTS)));
        }
        let Self { commits, texts, tables } = self;
        let ends = [(SEGMENTS, commits.end()), (TEXTS, texts.end()), (TABLES, tables.end())];
        let written = write_segments(texts, tables, state, from).and_then(|written| {
            commits.append(&commit(state, written.clone())?)?;
            commits.sync()?;
            Ok(written)
        });
        if written.is_err() {
            for (file, end) in ends {
                // What went wrong first is what the caller has to know.
                let _ = store.files.truncate(&store.path(file), end);
            }
        }
        written
    }
}

fn exists(store: &StoreFiles, file: (&str, FileKind)) -> Result<bool> {
    match store.files.open(&store.path(file), OpenMode::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(error, "cannot open").in_file(store.path(file))),
    }
}

fn commit(state: &State, segments: Vec<CommitRecord>) -> Result<Vec<u8>> {
    Commit { counted_by: state.counted_by.clone(), segments }.to_bytes()
}

fn new_writer(store: &StoreFiles, file: (&str, FileKind)) -> Result<RecordWriter> {
    Ok(RecordWriter::create(Arc::clone(&store.files), store.path(file), file.1)?)
}

fn writer(store: &StoreFiles, file: (&str, FileKind)) -> Result<RecordWriter> {
    Ok(RecordWriter::open(Arc::clone(&store.files), store.path(file), file.1)?.0)
}

/// Writes tables and texts of the segments from `from` on, durably.
fn write_segments(
    texts: &mut RecordWriter,
    tables: &mut RecordWriter,
    state: &State,
    from: u32,
) -> Result<Vec<CommitRecord>> {
    let mut written = Vec::new();
    for number in from..state.open_segment() {
        let of = state.tables(number)?;
        let text = match state.text_here(number) {
            Some(text) => codec::pack_text(text),
            None => codec::pack_text(&*state.text_from_store(number)?),
        };
        let text = texts.append(&text)?;
        let tables = tables.append(&codec::pack_tables(of)?)?;
        let (before, frames) = (state.before(number), of.frames.len() as u32);
        written.push(CommitRecord {
            number,
            first: of.sequence(0),
            last: of.sequence(frames.saturating_sub(1)),
            before,
            own: state.before(number + 1).since(before),
            places: Places { text, tables },
        });
    }
    texts.sync()?;
    tables.sync()?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_archive_has_no_directory() {
        assert!(SnapshotArchive::new().directory().is_none());
        let error = SnapshotArchive::new().append(&Holder::new("test")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }
}
