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
    commit::Commit,
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
    /// Ends the segment that takes frames. Everything is durable when this returns.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the directory holds an archive, [`ErrorKind::Locked`] where
    /// someone else writes there, [`ErrorKind::Io`] where the disk refuses or is full. The archive
    /// holds what it held, and the files that were begun are removed.
    pub fn save(&mut self, directory: impl AsRef<Path>, holder: &Holder) -> Result<()> {
        self.save_on(Arc::new(DiskFiles), directory, holder)
    }

    /// As [`SnapshotArchive::save`], on other files than the operating system's.
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
        let store = StoreFiles::new(files, directory);
        for file in [SEGMENTS, TEXTS, TABLES] {
            match store.files.open(&store.path(file), OpenMode::Read) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(error, "cannot open").in_file(store.path(file))),
                Ok(_) => {
                    let error = Error::new(ErrorKind::Conflict, "there is an archive already");
                    return Err(error.in_file(store.path(file)));
                }
            }
        }
        let state = Arc::make_mut(&mut self.reader.state);
        state.seal();
        let written = write(&store, state, 0);
        if written.is_err() {
            for file in [SEGMENTS, TEXTS, TABLES] {
                // What went wrong first is what the caller has to know.
                let _ = store.files.remove(&store.path(file));
            }
        }
        self.mark(&Arc::new(store), 0, &written?);
        Ok(())
    }

    /// Writes the frames that the archive's directory lacks: the one that it was opened from, or
    /// saved to. They are durable when this returns.
    ///
    /// Ends the segment that takes frames, so an archive that appends after every frame has a
    /// segment for each. Append every 64 frames or 64 KiB, and journal what must not wait.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the archive has no directory, and where someone has appended
    /// since it was opened; [`ErrorKind::Locked`] where someone else writes there;
    /// [`ErrorKind::Io`] where the disk refuses or is full. The archive then holds what it held,
    /// and the directory what it did: what was begun is cut when it is next written to.
    pub fn append(&mut self, holder: &Holder) -> Result<Totals> {
        let Some(Home { store, segments }) = self.home.clone() else {
            let message = "the archive has no directory: save it first";
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        let _lock = DirLock::acquire(&*store.files, &store.directory, holder)?;
        let state = Arc::make_mut(&mut self.reader.state);
        state.seal();
        let from = u32::try_from(segments).unwrap_or(u32::MAX);
        let before = state.before(from);
        let written = write(&store, state, from)?;
        let after = state.sealed_totals;
        self.mark(&store, from, &written);
        Ok(after.since(before))
    }

    /// Makes `store` the archive's own, where the segments from `from` on are at these places.
    fn mark(&mut self, store: &Arc<StoreFiles>, from: u32, written: &[Places]) {
        let state = Arc::make_mut(&mut self.reader.state);
        for (segment, places) in (from..).zip(written) {
            if let Some(entry) = state.sealed.get_mut(segment) {
                entry.places = Some(*places);
            }
        }
        state.store = Some(Arc::clone(store) as Arc<_>);
        let segments = u64::from(state.open_segment());
        self.home = Some(Home { store: Arc::clone(store), segments });
    }

    /// Gives back the memory of the frames before `sequence` that are in the archive's directory,
    /// text and tables; they are read again where they are asked for. Returns what was given back:
    /// whole segments, so a little less than was asked for. Text that was dropped in parts stays as
    /// it is.
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
            let is_whole = matches!(&entry.text, TextOf::Memory(text) if text.is_whole());
            if entry.places.is_none() || !is_whole {
                continue;
            }
            let own = end.since(entry.before);
            given_back = given_back.checked_add(own).unwrap_or(given_back);
            if let Some(entry) = state.sealed.get_mut(segment) {
                entry.text = TextOf::Store;
                entry.tables = TablesOf::Store(Arc::new(OnceLock::new()));
            }
        }
        given_back
    }

    /// Where the archive is stored, if it is.
    pub fn directory(&self) -> Option<&Path> {
        self.home.as_ref().map(|home| &*home.store.directory)
    }
}

/// Writes the segments from `from` on; says where they are.
fn write(store: &StoreFiles, state: &State, from: u32) -> Result<Vec<Places>> {
    let open = |file: (&str, FileKind)| {
        RecordWriter::open(Arc::clone(&store.files), store.path(file), file.1)
    };
    let (mut commits, _) = open(SEGMENTS)?;
    if commits.next_index() != u64::from(from) {
        let message = format!(
            "expected {from} segments in the directory, found {}: open the archive again",
            commits.next_index()
        );
        return Err(Error::new(ErrorKind::Conflict, message).in_file(store.path(SEGMENTS)));
    }
    let ((mut texts, _), (mut tables, _)) = (open(TEXTS)?, open(TABLES)?);
    let mut written = Vec::new();
    let mut records = Vec::new();
    for segment in from..state.open_segment() {
        let tables_of = state.tables(segment)?;
        let text = match state.text_here(segment) {
            Some(text) => codec::pack_text(text),
            None => codec::pack_text(&*state.text_from_store(segment)?),
        };
        let places = Places {
            text: texts.append(&text)?,
            tables: tables.append(&codec::pack_tables(tables_of)?)?,
        };
        let last = (tables_of.frames.len() as u32).saturating_sub(1);
        let before = state.before(segment);
        records.push(Commit {
            first: tables_of.sequence(0),
            last: tables_of.sequence(last),
            before,
            own: state.before(segment + 1).since(before),
            places,
            counted_by: state.counted_by.clone(),
        });
        written.push(places);
    }
    texts.sync()?;
    tables.sync()?;
    for record in &records {
        commits.append(&record.to_bytes())?;
    }
    commits.sync()?;
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
