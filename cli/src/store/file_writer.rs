//! A transcript on its way to an archive.

use std::{path::PathBuf, sync::Arc};

use afterimage::{
    log::create_dirs,
    transcript::{Record, Tally},
};
use indexmap::IndexMap;

use super::{
    FileEntry, Row, SessionEntry, folder, frame_table::Brought, frames_writer::FramesWriter,
    late_sync::LateSync, recount, session_writer::SessionWriter,
};
use crate::{
    failure::{Failure, Outcome},
    input::Source,
    lens::Lens,
    viewer::{Seen, Viewer, unknown_records},
};

/// What may wait in memory before all of it is written. Less where it is tested.
const MOST_UNSAVED: usize = if cfg!(debug_assertions) { 1 << 20 } else { 64 << 20 };

pub(super) struct FileWriter<'l> {
    files: LateSync,
    folder: PathBuf,
    lens: &'l Lens,
    viewer: Viewer<'l>,
    frames: FramesWriter,
    sessions: IndexMap<Arc<str>, SessionWriter>,
    unsaved: usize,
    tally: Tally,
    unknown_records: u64,
}

impl<'l> FileWriter<'l> {
    pub(super) fn create(
        files: &LateSync,
        folder: PathBuf,
        lens: &'l Lens,
        source: &Source,
    ) -> Outcome<Self> {
        create_dirs(files, &folder)?;
        Ok(Self {
            frames: FramesWriter::create(files, &folder)?,
            files: files.clone(),
            folder,
            lens,
            viewer: Viewer::new(lens, source.format()),
            sessions: IndexMap::new(),
            unsaved: 0,
            tally: Tally::default(),
            unknown_records: 0,
        })
    }

    /// Adds a frame and what it rendered to.
    pub(super) fn push(&mut self, source: &Source, record: Record) -> Outcome {
        let Seen { session: name, mut frame, snapshot, message } =
            source.see(&mut self.viewer, record)?;
        self.tally.add(&frame);
        self.unknown_records += unknown_records(&frame);
        let refused = |error: afterimage::Error| source.refuse(error);
        let archived = recount::counted_by(&*self.lens.counter, &snapshot).map_err(refused)?;
        let brought = match &frame.rendered_snapshot {
            None => Brought::Nothing,
            Some(own) if Arc::ptr_eq(own, &archived) => Brought::Archived,
            Some(_) => Brought::Another,
        };
        if brought == Brought::Archived {
            frame.rendered_snapshot = None;
        }

        let (count, at) = (self.sessions.len(), self.sessions.get_index_of(&name));
        let index = at.unwrap_or(count);
        let directory = folder(&self.folder, index);
        let session = self
            .sessions
            .entry(Arc::clone(&name))
            .or_insert_with(|| SessionWriter::new(&self.files, directory));
        session.has_tail = self.viewer.has_tail(&name);
        let too_many = || Failure::new("more sessions or messages than an archive holds");
        let row = Row {
            session: u32::try_from(index).map_err(|_| too_many())?,
            sequence: frame.sequence,
            message: message
                .map(|message| u32::try_from(message).ok().filter(|message| *message < u32::MAX))
                .map(|message| message.ok_or_else(too_many))
                .transpose()?,
            brought,
            has_tail: session.has_tail,
        };
        self.unsaved += session.push(frame.sequence, &archived).map_err(refused)?;
        self.frames.push(row, &frame.to_json()).map_err(refused)?;
        if self.unsaved > MOST_UNSAVED {
            self.sessions.values_mut().try_for_each(SessionWriter::save)?;
            self.unsaved = 0;
        }
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(self, source: &Source) -> Outcome<FileEntry> {
        let frame_table = self.frames.finish()?;
        let mut sessions = Vec::with_capacity(self.sessions.len());
        for (session, writer) in self.sessions {
            let tail = if writer.has_tail { self.viewer.tail(&session) } else { Ok(None) };
            let tail = tail.map_err(|error| source.refuse(error))?;
            let tail = tail.map(|tail| tail.snapshot);
            sessions.push(SessionEntry { session, totals: writer.finish()?, tail });
        }
        let mut report = source.report().clone();
        report.unknown.truncate(1);
        Ok(FileEntry {
            file: source.name(),
            input_format: source.format(),
            format: self.lens.format.clone(),
            tokenizer: self.lens.counter.id().to_owned(),
            tally: self.tally,
            unknown_records: self.unknown_records,
            report,
            frame_table,
            sessions,
        })
    }
}
