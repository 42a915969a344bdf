//! Opening an archive: the commits are read, nothing else.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use super::{
    super::{
        SnapshotArchive,
        directory::{Entry, TablesOf, TextOf, Totals},
        state::{CountedBy, State},
        writer::Home,
    },
    commit::Commit,
    files::{SEGMENTS, StoreFiles},
};
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    log::{self, DiskFiles, Files, RecordFile},
    snapshot::ArchiveReader,
};

/// An archive that was opened, and what is wrong with its files.
#[derive(Debug)]
pub struct OpenedArchive {
    /// The archive. Its text is on disk, and read where it is asked for.
    pub archive: SnapshotArchive,
    /// Damage that was found on opening: each names the file and the record. What else is damaged
    /// shows when it is read. A range that touches a damaged segment is an error; all others are
    /// whole.
    pub problems: Vec<Error>,
}

impl SnapshotArchive {
    /// Opens the archive in a directory. Takes no lock: others may read it as well, and one may
    /// append.
    ///
    /// Reads the commits, about 100 bytes for each segment, and neither tables nor text.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where there is no archive, [`ErrorKind::UnknownFormat`] and
    /// [`ErrorKind::Version`] where there is something else. Damage is no error: see
    /// [`OpenedArchive::problems`].
    pub fn open(directory: impl AsRef<Path>) -> Result<OpenedArchive> {
        Self::open_on(Arc::new(DiskFiles), directory)
    }

    /// As [`SnapshotArchive::open`], on other files than the operating system's.
    ///
    /// # Errors
    /// Those of [`SnapshotArchive::open`].
    pub fn open_on(files: Arc<dyn Files>, directory: impl AsRef<Path>) -> Result<OpenedArchive> {
        let store = Arc::new(StoreFiles::new(files, directory.as_ref()));
        let (name, kind) = SEGMENTS;
        let records = RecordFile::open(&*store.files, store.path((name, kind)), kind)?;
        let mut opening = Opening::default();
        for entry in records.scan()? {
            match entry? {
                log::Entry::Record(record) => {
                    let commit = records.read(record.position).and_then(|bytes| {
                        Commit::from_bytes(&bytes).map_err(|error| {
                            error.in_file(records.path()).at(|place| {
                                place.record = Some(record.index);
                                place.offset = Some(record.position.offset());
                            })
                        })
                    });
                    match commit.and_then(|commit| opening.add(record.index, &commit)) {
                        Ok(()) => {}
                        Err(error) => opening.problems.push(error),
                    }
                }
                log::Entry::Damage(damage) => opening.problems.push(damage.to_error()),
                log::Entry::Torn(torn) => {
                    let error = Error::new(ErrorKind::Damaged, torn.to_string());
                    opening.problems.push(error.in_file(records.path()));
                }
            }
        }
        let Opening { mut state, problems, .. } = opening;
        let segments = u64::from(state.open_segment());
        state.store = Some(Arc::clone(&store) as Arc<_>);
        let reader = ArchiveReader { state: Arc::new(state) };
        let home = Some(Home { store, segments });
        let archive = SnapshotArchive { reader, home, ..SnapshotArchive::default() };
        Ok(OpenedArchive { archive, problems })
    }
}

#[derive(Debug, Default)]
struct Opening {
    state: State,
    problems: Vec<Error>,
}

impl Opening {
    /// Adds the segment with this number. Those between it and the last one are lost.
    fn add(&mut self, number: u64, commit: &Commit) -> Result<()> {
        let state = &mut self.state;
        let refused =
            |what: &str| Err(Error::new(ErrorKind::Damaged, format!("segment {number} {what}")));
        let known = u64::from(state.open_segment());
        if number < known || u32::try_from(number).map_or(true, |number| number >= 1 << 31) {
            return refused("comes again");
        }
        if state.last_sequence.is_some_and(|last| commit.first <= last) {
            return refused("does not come after those before it");
        }
        let lost = number - known;
        let is_next = commit.before == state.sealed_totals;
        let has_room = commit.before.frames >= state.sealed_totals.frames + lost
            && commit.before.bytes >= state.sealed_totals.bytes
            && commit.before.tokens >= state.sealed_totals.tokens
            && commit.before.chunks >= state.sealed_totals.chunks;
        if (lost == 0 && !is_next) || !has_room {
            return refused("does not begin where those before it end");
        }
        for _ in 0..lost {
            let first = state.last_sequence.and_then(FrameSeq::next).unwrap_or_default();
            // All that is missing is counted to the first of them.
            state.sealed.push(entry(first, state.sealed_totals, None));
            state.sealed_totals = commit.before;
        }
        let counted_by = state.counted_by.clone();
        match (&counted_by, &commit.counted_by) {
            (_, CountedBy::Nothing) => {}
            (CountedBy::Nothing, _) => state.counted_by = commit.counted_by.clone(),
            (known, found) if known == found => {}
            (known, found) => return refused(&format!("has {found}, and not {known}")),
        }
        let Some(after) = commit.after() else { return refused("exceeds 64 bits") };
        state.sealed.push(entry(commit.first, commit.before, Some(commit.places)));
        state.sealed_totals = after;
        state.last_sequence = Some(commit.last);
        Ok(())
    }
}

fn entry(first: FrameSeq, before: Totals, places: Option<super::Places>) -> Entry {
    Entry {
        first_sequence: first.get(),
        before,
        tables: TablesOf::Store(Arc::new(OnceLock::new())),
        text: TextOf::Store,
        places,
    }
}
