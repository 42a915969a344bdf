use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    FrameRow, SessionEntry, TranscriptEntry,
    exchanges_writer::ExchangesWriter,
    folder,
    frame_table::SnapshotPlace,
    frames_writer::FramesWriter,
    late_sync::LateSync,
    recount,
    session_writer::SessionWriter,
    written_transcript::{FolderInMaking, WrittenTranscript},
};
use crate::{
    Error, ErrorKind, Result,
    hud::Hud,
    id::Millis,
    log::create_dirs,
    session::{ViewedFrame, Viewer},
    snapshot::FrameSnapshot,
    tokens::TokenCounter,
    transcript::{Exchange, ImportReport, Record, TranscriptFormat},
    window::tells_of_context,
};

/// What may wait in memory before all of it is written. Less where it is tested.
const MOST_UNSAVED: usize = if cfg!(debug_assertions) { 1 << 20 } else { 16 << 20 };

/// Where the frames of a transcript come from, and how they are rendered.
#[derive(Clone, Debug)]
pub struct TranscriptSource {
    /// The path of the file, as it was given.
    pub file: String,
    /// The format of the file.
    pub input_format: TranscriptFormat,
    /// The name of the format that renders the frames, as
    /// [`format_by_name`](crate::hud::format_by_name) takes it.
    pub format: String,
}

/// A transcript on its way into an archive. What was written is removed when it is dropped before
/// [`TranscriptWriter::finish`].
#[must_use = "a transcript that is not finished is not in the archive"]
pub struct TranscriptWriter<'b> {
    files: LateSync,
    source: TranscriptSource,
    counter: Arc<dyn TokenCounter>,
    viewer: Viewer<'b>,
    frames: FramesWriter,
    exchanges: Option<ExchangesWriter>,
    sessions: IndexMap<Arc<str>, SessionWriter>,
    unsaved: usize,
    context_frames: u64,
    /// Whether something could not be written, so that what there is lacks it.
    is_broken: bool,
    /// Behind what writes to it.
    folder: FolderInMaking,
}

impl std::fmt::Debug for TranscriptWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TranscriptWriter").field("source", &self.source).finish_non_exhaustive()
    }
}

impl<'b> TranscriptWriter<'b> {
    pub(super) fn create(
        folder: FolderInMaking,
        source: TranscriptSource,
        hud: &'b Hud,
        counter: &Arc<dyn TokenCounter>,
    ) -> Result<Self> {
        let files = LateSync::default();
        create_dirs(&files, folder.path())?;
        Ok(Self {
            frames: FramesWriter::create(&files, folder.path())?,
            exchanges: None,
            files,
            counter: Arc::clone(counter),
            viewer: Viewer::new(hud, source.input_format),
            source,
            sessions: IndexMap::new(),
            unsaved: 0,
            context_frames: 0,
            is_broken: false,
            folder,
        })
    }

    /// Adds a frame and what it rendered to: the snapshot that it brings along, else `rendered`,
    /// else what the HUD renders at the moment `now`.
    ///
    /// Cost: renders, counts and packs the frame; O(its text).
    ///
    /// # Errors
    /// What the veil or the format has against the frame; [`ErrorKind::Limit`] for more sessions or
    /// messages than an archive holds, or a frame that could not be read back; [`ErrorKind::Io`].
    /// Nothing more can be written then: [`ErrorKind::Conflict`].
    pub fn push(
        &mut self,
        record: Record,
        rendered: Option<&Arc<FrameSnapshot>>,
        now: Millis,
    ) -> Result<()> {
        self.unbroken()?;
        let pushed = self.push_frame(record, rendered, now);
        self.is_broken = pushed.is_err();
        pushed
    }

    fn unbroken(&self) -> Result<()> {
        if self.is_broken {
            let message = "an earlier part of the transcript could not be written";
            return Err(Error::new(ErrorKind::Conflict, message).in_file(self.folder.path()));
        }
        Ok(())
    }

    fn push_frame(
        &mut self,
        record: Record,
        rendered: Option<&Arc<FrameSnapshot>>,
        now: Millis,
    ) -> Result<()> {
        let ViewedFrame { session: name, mut frame, snapshot, message, .. } =
            self.viewer.view(record, rendered, now)?;
        self.context_frames += u64::from(tells_of_context(&frame));
        let archived = recount::counted_by(&*self.counter, &snapshot)?;
        let captured = match &frame.rendered_snapshot {
            None => SnapshotPlace::No,
            Some(own) if Arc::ptr_eq(own, &archived) => SnapshotPlace::Archived,
            Some(_) => SnapshotPlace::Apart,
        };
        if captured == SnapshotPlace::Archived {
            frame.rendered_snapshot = None;
        }

        let (count, at) = (self.sessions.len(), self.sessions.get_index_of(&name));
        let index = at.unwrap_or(count);
        let directory = folder(self.folder.path(), index);
        let session = self
            .sessions
            .entry(Arc::clone(&name))
            .or_insert_with(|| SessionWriter::new(&self.files, directory));
        session.has_tail = self.viewer.has_tail(&name);
        let too_many =
            || Error::new(ErrorKind::Limit, "more sessions or messages than an archive holds");
        let row = FrameRow {
            session: u32::try_from(index).map_err(|_| too_many())?,
            sequence: frame.sequence,
            message: message
                .map(|message| u32::try_from(message).ok().filter(|message| *message < u32::MAX))
                .map(|message| message.ok_or_else(too_many))
                .transpose()?,
            captured,
            has_tail: session.has_tail,
        };
        self.unsaved += session.push(frame.sequence, &archived)?;
        self.frames.push(row, &frame.to_json())?;
        if self.unsaved > MOST_UNSAVED {
            self.sessions.values_mut().try_for_each(SessionWriter::save)?;
            self.unsaved = 0;
        }
        Ok(())
    }

    /// Adds an exchange that the transcript holds. Its requests then are those of the archive, and
    /// none is worked out from the frames. O(its bodies).
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] where the bodies have more bytes than an archive may hold;
    /// [`ErrorKind::Io`]. Nothing more can be written then: [`ErrorKind::Conflict`].
    pub fn push_exchange(&mut self, exchange: &Exchange) -> Result<()> {
        self.unbroken()?;
        // It is whole again only where all of this is done.
        self.is_broken = true;
        let mut writer = match self.exchanges.take() {
            Some(writer) => writer,
            None => ExchangesWriter::create(&self.files, self.folder.path())?,
        };
        writer.push(exchange)?;
        self.exchanges = Some(writer);
        self.is_broken = false;
        Ok(())
    }

    /// Writes the rest, with what reading the transcript said; of the records that were not
    /// understood, and of the notes, the first is kept. O(what is not written yet).
    ///
    /// # Errors
    /// What the format has against the tail of a session; [`ErrorKind::Conflict`] where something
    /// could not be written before; [`ErrorKind::Io`].
    pub fn finish(self, report: &ImportReport) -> Result<WrittenTranscript> {
        self.unbroken()?;
        let frame_table = self.frames.finish()?;
        let exchanges = self.exchanges.map(ExchangesWriter::finish).transpose()?;
        let mut sessions = Vec::with_capacity(self.sessions.len());
        for (session, writer) in self.sessions {
            let tail = if writer.has_tail { self.viewer.tail(&session)? } else { None };
            let tail = tail.map(|tail| tail.snapshot);
            let system_from = self.viewer.system_from(&session);
            let totals = writer.finish()?;
            sessions.push(SessionEntry { session, totals, system_from, tail });
        }
        let mut report = report.clone();
        report.unknown.truncate(1);
        report.notes.truncate(1);
        let TranscriptSource { file, input_format, format } = self.source;
        let entry = TranscriptEntry {
            file,
            input_format,
            format,
            tokenizer: self.counter.id().to_owned(),
            context_frames: self.context_frames,
            exchanges: exchanges.unwrap_or_default(),
            report,
            frame_table,
            sessions,
        };
        Ok(WrittenTranscript::new(entry, self.folder, self.files))
    }
}
