use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{
    FrameRow, TranscriptEntry, damaged, exchanges_reader, frame_table::SnapshotPlace,
    frames_reader::FramesReader, sessions::Sessions,
};
use crate::{
    Error, Result,
    id::FrameSeq,
    log::Files,
    request::Lack,
    snapshot::{ArchiveReader, FrameSnapshot, RangeView},
    transcript::{Exchange, Record},
    veil::Frame,
};

/// A transcript in an archive: what its file would have given, and answers without reading it all.
///
/// Nothing is read before it is asked for. What is wrong with one transcript does not stand in the
/// way of the others.
pub struct ArchivedTranscript {
    entry: TranscriptEntry,
    archive: PathBuf,
    files: Arc<dyn Files>,
    folder: PathBuf,
    frames: OnceLock<FramesReader>,
    sessions: Sessions,
    /// The index of each session.
    indices: HashMap<Arc<str>, u32>,
}

impl fmt::Debug for ArchivedTranscript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchivedTranscript")
            .field("entry", &self.entry)
            .field("archive", &self.archive)
            .finish_non_exhaustive()
    }
}

impl ArchivedTranscript {
    pub(super) fn new(
        files: Arc<dyn Files>,
        folder: PathBuf,
        archive: PathBuf,
        entry: TranscriptEntry,
    ) -> Self {
        let sessions = Sessions::new(Arc::clone(&files), folder.clone());
        let names = entry.sessions.iter().map(|entry| Arc::clone(&entry.session));
        let indices = names.zip(0..).collect();
        Self { entry, archive, files, folder, frames: OnceLock::new(), sessions, indices }
    }

    /// The folder that holds its files, within the archive.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is known of it besides its frames.
    pub fn entry(&self) -> &TranscriptEntry {
        &self.entry
    }

    /// The directory of the archive.
    pub fn archive(&self) -> &Path {
        &self.archive
    }

    /// Lets `hear` know of what is damaged in the archive of a session, once, when it is first
    /// opened. What is not damaged is still read.
    #[must_use]
    pub fn on_damage(mut self, hear: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.sessions.on_damage = Some(Box::new(hear));
        self
    }

    fn frames(&self) -> Result<&FramesReader> {
        if let Some(frames) = self.frames.get() {
            return Ok(frames);
        }
        let table = self.entry.frame_table;
        let count = self.entry.totals().frames;
        let frames = FramesReader::open(&*self.files, &self.folder, table, count)?;
        if let Some(row) = frames.rows.iter().find(|row| self.name_of(row.session).is_none()) {
            let what = format!("the table of the frames names session {}", row.session);
            return Err(damaged(&self.folder, what));
        }
        Ok(self.frames.get_or_init(|| frames))
    }

    /// What is known of each frame, in order. The first call reads the table of the frames.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) and
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) from the file of the frames.
    pub fn rows(&self) -> Result<&[FrameRow]> {
        Ok(&self.frames()?.rows)
    }

    fn name_of(&self, session: u32) -> Option<&Arc<str>> {
        self.entry.sessions.get(session as usize).map(|entry| &entry.session)
    }

    /// The name of the session of a row; empty for a row of another transcript.
    pub fn session_name(&self, row: FrameRow) -> Arc<str> {
        // Every row was checked when the table was read.
        self.name_of(row.session).map_or_else(|| Arc::from(""), Arc::clone)
    }

    /// The session of the first frame; `None` where there is no frame. The first call reads the
    /// table of the frames.
    ///
    /// # Errors
    /// Those of [`ArchivedTranscript::rows`].
    pub fn first_session(&self) -> Result<Option<Arc<str>>> {
        Ok(self.rows()?.first().map(|row| self.session_name(*row)))
    }

    /// What the contexts of the first `end` frames lack of requests: tools are in none of them.
    ///
    /// Cost: O(end), with the table of frames in memory.
    ///
    /// # Errors
    /// Those of [`ArchivedTranscript::rows`].
    pub fn lacks(&self, end: usize) -> Result<Vec<Lack>> {
        let mut last: HashMap<u32, FrameSeq> = HashMap::new();
        let rows = self.rows()?.iter().take(end);
        last.extend(rows.map(|row| (row.session, row.sequence)));
        let has_system = |(session, last): (&u32, &FrameSeq)| {
            let from = self.entry.sessions.get(*session as usize).and_then(|of| of.system_from);
            from.is_some_and(|from| from <= *last)
        };
        Ok(Lack::of_transcript(last.iter().all(has_system), false, false))
    }

    /// The exchanges that the transcript holds, in its order: what
    /// [`Transcript::take_exchanges`](crate::transcript::Transcript::take_exchanges) has of the file. Reads
    /// all of them.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) with the file and the record;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit), [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn exchanges(&self) -> Result<Vec<Exchange>> {
        match self.entry.exchanges {
            0 => Ok(Vec::new()),
            count => exchanges_reader::read(&*self.files, &self.folder, count),
        }
    }

    /// The index of a session.
    pub fn session_index(&self, name: &str) -> Option<u32> {
        self.indices.get(name).copied()
    }

    /// The snapshots of a session that lost no frame. O(segments).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where frames are lost;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn whole_session(&self, index: u32) -> Result<ArchiveReader> {
        let archive = self.sessions.get(index)?;
        let expected = self.entry.sessions.get(index as usize).map(|entry| entry.totals);
        let found = archive.totals();
        if expected != Some(found) {
            let expected = expected.unwrap_or_default().frames;
            let what = format!("expected {expected} frames, found {}", found.frames);
            return Err(damaged(&self.sessions.directory(index), what));
        }
        Ok(archive)
    }

    /// Hands out what a frame rendered to, as a view of the archive: its text is not copied. Reads
    /// one segment.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where it is missing;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn view<T>(&self, row: FrameRow, look: impl FnOnce(&RangeView<'_>) -> T) -> Result<T> {
        match self.sessions.get(row.session)?.get(row.sequence)? {
            Some(view) => Ok(look(&view)),
            None => Err(self.missing(row.session, row.sequence)),
        }
    }

    fn missing(&self, session: u32, sequence: FrameSeq) -> Error {
        let error =
            damaged(&self.sessions.directory(session), "the snapshot of a frame is missing");
        error.at(|place| place.frame = Some(sequence.get()))
    }

    /// The snapshot of a frame with the counts of the archive's tokenizer.
    fn archived(&self, row: FrameRow) -> Result<Arc<FrameSnapshot>> {
        let snapshot = self.sessions.get(row.session)?.snapshot(row.sequence)?;
        snapshot.map(Arc::new).ok_or_else(|| self.missing(row.session, row.sequence))
    }

    /// What the frame with this index and row rendered to: its own snapshot where the transcript
    /// brought one that another tokenizer counted.
    ///
    /// Cost: reads one segment, and copies the text of the frame.
    ///
    /// # Errors
    /// Those of [`ArchivedTranscript::view`] and [`ArchivedTranscript::frame`].
    pub fn snapshot(&self, index: usize, row: FrameRow) -> Result<Arc<FrameSnapshot>> {
        let own = match row.captured {
            SnapshotPlace::Apart => self.frame(index)?.rendered_snapshot,
            SnapshotPlace::No | SnapshotPlace::Archived => None,
        };
        own.map_or_else(|| self.archived(row), Ok)
    }

    /// The frame as it is kept: with the snapshot that it brought along, where no other is archived.
    /// Unpacks the batch of frames that it is in, unless it was the last one.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where it is missing or another one;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn frame(&self, index: usize) -> Result<Frame> {
        self.frames()?.frame(index)
    }

    /// The frame with this index and row as the transcript had it.
    ///
    /// Cost: as [`ArchivedTranscript::frame`] and [`ArchivedTranscript::snapshot`].
    ///
    /// # Errors
    /// Those of [`ArchivedTranscript::frame`] and [`ArchivedTranscript::view`].
    pub fn record(&self, index: usize, row: FrameRow) -> Result<Record> {
        let mut frame = self.frame(index)?;
        if row.captured == SnapshotPlace::Archived {
            frame.rendered_snapshot = Some(self.archived(row)?);
        }
        Ok(Record { session: self.session_name(row), frame })
    }

    /// What the model sees after the last frame of a session.
    pub fn tail(&self, session: u32) -> Option<Arc<FrameSnapshot>> {
        self.entry.sessions.get(session as usize)?.tail.clone()
    }
}
