//! A transcript in an archive: what the file would have given, and answers without reading it all.

use std::{cell::OnceCell, collections::HashMap, path::PathBuf, sync::Arc};

use afterimage::{
    id::FrameSeq,
    snapshot::{ArchiveReader, FrameSnapshot, RangeView},
    text::TextRange,
    transcript::Record,
    veil::Frame,
};

use super::{
    FileEntry, Row, frame_table::Brought, frames_reader::FramesReader, sessions::Sessions,
};
use crate::failure::{Failure, Outcome, Stop};

pub(crate) struct ArchivedFile {
    pub(crate) entry: FileEntry,
    /// The directory that was named on the command line.
    pub(crate) archive: PathBuf,
    folder: PathBuf,
    frames: OnceCell<FramesReader>,
    sessions: Sessions,
    /// The index of each session.
    indices: HashMap<Arc<str>, u32>,
}

impl ArchivedFile {
    pub(super) fn new(folder: PathBuf, archive: PathBuf, entry: FileEntry) -> Self {
        let sessions = Sessions::new(folder.clone());
        let names = entry.sessions.iter().map(|entry| Arc::clone(&entry.session));
        let indices = names.zip(0..).collect();
        Self { entry, archive, folder, frames: OnceCell::new(), sessions, indices }
    }

    fn frames(&self) -> Outcome<&FramesReader> {
        if let Some(frames) = self.frames.get() {
            return Ok(frames);
        }
        let FileEntry { frame_table, .. } = self.entry;
        let frames = FramesReader::open(&self.folder, frame_table, self.entry.totals().frames)?;
        if let Some(row) = frames.rows.iter().find(|row| self.name_of(row.session).is_none()) {
            let sentence = format!("the table of the frames names session {}", row.session);
            return Err(Failure::damaged(&sentence).file(&self.folder).into());
        }
        Ok(self.frames.get_or_init(|| frames))
    }

    /// What is known of each frame, in order.
    pub(crate) fn rows(&self) -> Outcome<&[Row]> {
        Ok(&self.frames()?.rows)
    }

    fn name_of(&self, session: u32) -> Option<&Arc<str>> {
        self.entry.sessions.get(session as usize).map(|entry| &entry.session)
    }

    /// The name of the session of a row.
    pub(crate) fn session_name(&self, row: Row) -> Arc<str> {
        // Every row was checked when the table was read.
        self.name_of(row.session).map_or_else(|| Arc::from(""), Arc::clone)
    }

    /// The session of the first frame.
    pub(crate) fn first_session(&self) -> Outcome<Option<Arc<str>>> {
        Ok(self.rows()?.first().map(|row| self.session_name(*row)))
    }

    /// The index of a session.
    pub(crate) fn session_index(&self, name: &str) -> Option<u32> {
        self.indices.get(name).copied()
    }

    /// The archive of a session of which no frame is lost.
    pub(crate) fn whole_session(&self, index: u32) -> Outcome<ArchiveReader> {
        let archive = self.sessions.get(index)?;
        let expected = self.entry.sessions.get(index as usize).map(|entry| entry.totals);
        let found = archive.totals();
        if expected != Some(found) {
            let expected = expected.unwrap_or_default().frames;
            let sentence = format!("expected {expected} frames, found {}", found.frames);
            return Err(Failure::damaged(&sentence).file(&self.sessions.directory(index)).into());
        }
        Ok(archive)
    }

    /// Hands out what a frame rendered to, as a view of the archive.
    pub(crate) fn view<T>(&self, row: Row, look: impl FnOnce(&RangeView<'_>) -> T) -> Outcome<T> {
        match self.sessions.get(row.session)?.get(row.sequence)? {
            Some(view) => Ok(look(&view)),
            None => Err(self.missing(row.session, row.sequence)),
        }
    }

    /// The places of a phrase in what a frame rendered to, overlapping ones included.
    pub(crate) fn places(&self, row: Row, phrase: &str) -> Outcome<Vec<TextRange>> {
        let session = self.sessions.get(row.session)?;
        if !session.contains(row.sequence)? {
            return Err(self.missing(row.session, row.sequence));
        }
        let found = session.find_in(phrase, row.sequence..=row.sequence)?;
        found.map(|found| Ok(found?.range())).collect()
    }

    fn missing(&self, session: u32, sequence: FrameSeq) -> Stop {
        let failure = Failure::damaged("the snapshot of a frame is missing");
        failure.file(&self.sessions.directory(session)).at("frame", sequence).into()
    }

    /// The snapshot of a frame with the counts of the archive's tokenizer.
    fn archived(&self, row: Row) -> Outcome<Arc<FrameSnapshot>> {
        let snapshot = self.sessions.get(row.session)?.snapshot(row.sequence)?;
        snapshot.map(Arc::new).ok_or_else(|| self.missing(row.session, row.sequence))
    }

    /// What a frame rendered to, or brought along: the frame of this index and row.
    pub(crate) fn snapshot(&self, index: usize, row: Row) -> Outcome<Arc<FrameSnapshot>> {
        let own = match row.brought {
            Brought::Another => self.frame(index)?.rendered_snapshot,
            Brought::Nothing | Brought::Archived => None,
        };
        own.map_or_else(|| self.archived(row), Ok)
    }

    /// The frame as it is kept: with the snapshot that it brought along, where no other is archived.
    pub(crate) fn frame(&self, index: usize) -> Outcome<Frame> {
        self.frames()?.frame(index)
    }

    /// The frame as the transcript has it.
    pub(crate) fn record(&self, index: usize, row: Row) -> Outcome<Record> {
        let mut frame = self.frame(index)?;
        if row.brought == Brought::Archived {
            frame.rendered_snapshot = Some(self.archived(row)?);
        }
        Ok(Record { session: self.session_name(row), frame })
    }

    /// What the model sees after the last frame of a session.
    pub(crate) fn tail(&self, session: u32) -> Option<Arc<FrameSnapshot>> {
        self.entry.sessions.get(session as usize)?.tail.clone()
    }
}
