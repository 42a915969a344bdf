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
    commit::{Commit, CommitRecord, ENTRY_BYTES},
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

    /// As [`SnapshotArchive::open`], on other files than the operating system's. O(segments).
    ///
    /// # Errors
    /// Those of [`SnapshotArchive::open`].
    pub fn open_on(files: Arc<dyn Files>, directory: impl AsRef<Path>) -> Result<OpenedArchive> {
        let store = Arc::new(StoreFiles::new(files, directory.as_ref()));
        let (name, kind) = SEGMENTS;
        let records = RecordFile::open(&*store.files, store.path((name, kind)), kind)?;
        // No entry is lost that had no bytes in the file.
        let most = records.length()? / ENTRY_BYTES;
        let mut opening = Opening { most, ..Opening::default() };
        for entry in records.scan()? {
            match entry? {
                log::ScanEntry::Record(record) => {
                    opening.records = record.index + 1;
                    let read = records.read(record.position);
                    let added = read.map_err(Error::from).and_then(|bytes| {
                        let commit = Commit::from_bytes(&bytes)?;
                        commit
                            .segments
                            .iter()
                            .try_for_each(|of| opening.add(of, &commit.counted_by))
                    });
                    opening.problems.extend(added.err().map(|error| {
                        error.in_file(records.path()).at(|place| {
                            place.record = Some(record.index);
                            place.offset = Some(record.position.offset());
                        })
                    }));
                }
                log::ScanEntry::Damage(damage) => opening.problems.push(damage.to_error().into()),
                log::ScanEntry::Torn(torn) => {
                    let error = Error::new(ErrorKind::Damaged, torn.to_string());
                    opening.problems.push(error.in_file(records.path()));
                }
            }
        }
        let Opening { mut state, problems, records, .. } = opening;
        let segments = state.open_segment();
        state.store = Some(Arc::clone(&store) as Arc<_>);
        let reader = ArchiveReader { state: Arc::new(state) };
        let home = Some(Home { store, segments, records, writers: None });
        let archive = SnapshotArchive { reader, home, ..SnapshotArchive::default() };
        Ok(OpenedArchive { archive, problems })
    }
}

#[derive(Debug, Default)]
struct Opening {
    state: State,
    problems: Vec<Error>,
    /// How many records there are.
    records: u64,
    /// No more segments than this can be in the file.
    most: u64,
}

impl Opening {
    /// Adds a segment. Those between it and the last one are lost.
    fn add(&mut self, segment: &CommitRecord, counted_by: &CountedBy) -> Result<()> {
        let state = &mut self.state;
        let number = segment.number;
        let refused =
            |what: &str| Err(Error::new(ErrorKind::Damaged, format!("segment {number} {what}")));
        if u64::from(number) >= self.most {
            return refused("is not one of as many as the file has room for");
        }
        let Some(lost) = number.checked_sub(state.open_segment()) else {
            return refused("comes again");
        };
        if state.last_sequence.is_some_and(|last| segment.first <= last) {
            return refused("does not come after those before it");
        }
        let (known, before) = (state.sealed_totals, segment.before);
        let fits = if lost == 0 {
            before == known
        } else {
            before.frames >= known.frames.saturating_add(lost.into())
                && before.chunks >= known.chunks
                && before.bytes >= known.bytes
                && before.tokens >= known.tokens
        };
        if !fits {
            return refused("does not begin where those before it end");
        }
        match (&state.counted_by, counted_by) {
            (_, CountedBy::Nothing) => {}
            (CountedBy::Nothing, _) => state.counted_by = counted_by.clone(),
            (known, found) if known == found => {}
            (known, found) => return refused(&format!("has {found}, and not {known}")),
        }
        for _ in 0..lost {
            let first = state.last_sequence.and_then(FrameSeq::next).unwrap_or_default();
            // All that is missing is counted to the first of them.
            state.sealed.push(entry(first, state.sealed_totals, None));
            state.sealed_totals = before;
        }
        state.sealed.push(entry(segment.first, before, Some(segment.places)));
        state.sealed_totals = before.checked_add(segment.own).unwrap_or(before);
        state.last_sequence = Some(segment.last);
        Ok(())
    }
}

fn entry(first: FrameSeq, before: Totals, places: Option<super::Places>) -> Entry {
    Entry {
        first_sequence: first.get(),
        before,
        tables: TablesOf::Store(Arc::new(OnceLock::new())),
        frames: None,
        text: TextOf::Store,
        places,
    }
}
