//! One transcript, or one from an archive, as it is read.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::VecDeque,
    io::{BufRead, BufReader, Cursor},
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    Error, ErrorKind, json,
    session::{ViewedFrame, Viewer, archive::ArchivedTranscript},
    snapshot::FrameSnapshot,
    tokens::TokenCounter,
    transcript::{
        Exchange, ImportReport, Record, SourceContent, Transcript, TranscriptFormat, decoded,
    },
    veil::Branch,
};
use indexmap::IndexSet;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    Found, branch,
    counted::{CountedFrame, Progress, is_stdin},
    folder, name, project,
    redaction::Redaction,
};
use crate::{
    failure::{Failure, Outcome, Stop},
    moment::moment,
    output,
    text::{grouped, plural},
};

/// Progress is shown of an archive with this many bytes of text.
const LARGE: u64 = 16 << 20;

/// A transcript that is being read.
pub(crate) struct Source {
    path: PathBuf,
    reader: Reader,
    bar: ProgressBar,
    /// Of an archive: what its frames rendered to is not used.
    is_rendered_anew: bool,
    is_empty: bool,
    exchanges: Exchanges,
    /// The session that alone is given out, and its first record.
    chosen: Option<(Arc<str>, Option<Record>)>,
    /// Whether the command reads several files, so that each must be named.
    pub(crate) is_one_of_several: bool,
    branches: Branches,
    /// The folder that the session of a database worked in.
    directory: Option<String>,
    redaction: Option<Redaction>,
    /// What the import said when that was asked for last, with what was shown of it.
    redacted_report: RefCell<Option<(ImportReport, ImportReport)>>,
}

/// Why a file that nobody named is passed over.
pub(crate) struct NoTranscript(pub(crate) String);

impl NoTranscript {
    /// Whether a file that is refused so is something else than a transcript.
    fn is_told_by(kind: ErrorKind) -> bool {
        use ErrorKind::{Json, Limit, UnknownFormat, Utf8};
        matches!(kind, Json | Limit | UnknownFormat | Utf8)
    }
}

/// Whether recorded requests are given out beside the frames.
#[derive(PartialEq)]
enum Exchanges {
    LeftOut,
    Kept,
}

/// Which branches of sessions that went back are given out.
#[derive(PartialEq)]
enum Branches {
    /// All, and frames tell which of them are in the context.
    Told,
    /// All, as if the session had never gone back.
    All,
    /// The frames of one.
    One(VecDeque<Record>),
}

enum Reader {
    Transcript(Box<Transcript<Box<dyn BufRead + Send>>>),
    /// From an archive, with the index of the next frame.
    Archived(Box<ArchivedTranscript>, usize),
}

impl Source {
    /// Opens a file and recognises its format.
    pub(super) fn open(
        path: &Path,
        progress: Progress<'_>,
        format: Option<TranscriptFormat>,
    ) -> Outcome<Self> {
        match Self::database(path, None) {
            Some(opened) => Ok(opened?),
            None => Ok(Self::recognise(path, progress, format, None)??),
        }
    }

    /// Opens a file that nobody named. Where it is no transcript, that is the reason.
    pub(super) fn open_found(
        found: &Found,
        progress: Progress<'_>,
        format: Option<TranscriptFormat>,
    ) -> Outcome<Result<Self, NoTranscript>> {
        let path = &found.path;
        let session = found.session.as_ref().map(|session| session.id.as_str());
        let opened = match Self::database(path, session) {
            Some(opened) => opened,
            None if folder::is_binary(path) => {
                return Ok(Err(NoTranscript("it is no text".to_owned())));
            }
            None => Self::recognise(path, progress, format, found.subagents())?,
        };
        match opened {
            Ok(source) => {
                let directory = found.session.as_ref().and_then(|of| of.directory.clone());
                Ok(Ok(Self { directory, ..source }))
            }
            Err(error) if NoTranscript::is_told_by(error.kind()) => {
                Ok(Err(NoTranscript(error.message().to_owned())))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a database, or one session of it; `None` where the file is none.
    fn database(path: &Path, session: Option<&str>) -> Option<afterimage::Result<Self>> {
        if is_stdin(path) {
            return None;
        }
        let opened = Transcript::open_database(path, session).transpose()?;
        Some(opened.map(|transcript| Self::folder(path, transcript)))
    }

    /// `subagents` are the files that are read with it, where they are known.
    fn recognise(
        path: &Path,
        progress: Progress<'_>,
        format: Option<TranscriptFormat>,
        subagents: Option<&[PathBuf]>,
    ) -> Outcome<afterimage::Result<Self>> {
        let counted = CountedFrame::open(path, progress)?;
        let bar = counted.bar.clone();
        let reader = decoded(BufReader::with_capacity(1 << 16, counted)).map_err(|error| {
            bar.finish_and_clear();
            Failure::cannot_open(&error).file(&name(path))
        })?;
        let mut transcript = match Transcript::with_format(reader, format) {
            Ok(transcript) => transcript,
            Err(error) => {
                bar.finish_and_clear();
                return Ok(Err(error.in_file(name(path))));
            }
        };
        if !is_stdin(path) {
            transcript.name_session(path);
        }
        match subagents {
            Some(files) => transcript.join_subagent_files(files.iter().cloned()),
            None if is_stdin(path) => {}
            None => transcript.join_subagents(path),
        }
        Ok(Ok(Self::of(path, transcript, bar)))
    }

    /// Takes a file that was read whole; `None` where it is no transcript.
    pub(crate) fn of_bytes(path: &Path, bytes: Vec<u8>) -> Option<Self> {
        let reader: Box<dyn BufRead + Send> = Box::new(Cursor::new(bytes));
        Some(Self::folder(path, Transcript::new(reader).ok()?))
    }

    /// Takes a folder that is a recording.
    pub(super) fn folder(path: &Path, transcript: Transcript<Box<dyn BufRead + Send>>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self::of(path, transcript, bar)
    }

    fn of(path: &Path, transcript: Transcript<Box<dyn BufRead + Send>>, bar: ProgressBar) -> Self {
        Self::with(path.to_owned(), Reader::Transcript(Box::new(transcript)), bar)
    }

    fn with(path: PathBuf, reader: Reader, bar: ProgressBar) -> Self {
        Self {
            path,
            reader,
            bar,
            is_rendered_anew: false,
            is_empty: true,
            exchanges: Exchanges::LeftOut,
            chosen: None,
            is_one_of_several: false,
            branches: Branches::Told,
            directory: None,
            redaction: None,
            redacted_report: RefCell::default(),
        }
    }

    /// Takes a transcript from an archive in place of the file.
    pub(super) fn archive(
        file: ArchivedTranscript,
        progress: Progress<'_>,
        format: Option<TranscriptFormat>,
    ) -> Outcome<Self> {
        let rows = file.rows()?.len();
        let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::hidden());
        if progress.is_shown() && output::shows_progress() && file.entry().totals().bytes > LARGE {
            bar.set_draw_target(output::progress_target());
        }
        let template = "{bar:30.cyan/dim} {pos:>10} of {len} frames, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let (path, is_empty) = (PathBuf::from(&file.entry().file), rows == 0);
        let (own, reader) = (file.entry().input_format, Reader::Archived(Box::new(file), 0));
        let source = Self { is_empty, ..Self::with(path, reader, bar) };
        if let Some(other) = format.filter(|format| *format != own) {
            source.note(&format!("it was archived as {own}, and is not read anew as {other}"));
        }
        Ok(source)
    }

    /// The archive that it comes from.
    pub(crate) fn own_archive(&self) -> Option<&ArchivedTranscript> {
        match &self.reader {
            Reader::Transcript(_) => None,
            Reader::Archived(file, _) => Some(file),
        }
    }

    /// The archive that it comes from, which can answer without reading all frames, unless these
    /// are rendered anew, or tell that others left the context.
    pub(crate) fn archived(&self) -> Option<&ArchivedTranscript> {
        let archived = self.own_archive().filter(|file| !file.entry().may_replace());
        archived.filter(|_| {
            !self.is_rendered_anew && self.chosen.is_none() && self.branches == Branches::Told
        })
    }

    /// From now on only the records of this session are given out. Says whether there are any, and
    /// adds the sessions that it met to `known`.
    pub(super) fn choose(&mut self, wanted: &str, known: &mut IndexSet<Arc<str>>) -> Outcome<bool> {
        while let Some(record) = self.read_next() {
            let record = record?;
            if *record.session == *wanted {
                self.chosen = Some((Arc::clone(&record.session), Some(record)));
                return Ok(true);
            }
            known.insert(record.session);
        }
        Ok(false)
    }

    /// From now on secrets are taken out of all that is given out. What an archive's frames rendered
    /// to holds them, and is not used.
    pub(super) fn redact(&mut self, redaction: Redaction) {
        self.path = redaction.path(&self.path);
        self.redaction = Some(redaction);
        self.is_rendered_anew = true;
    }

    /// From now on frames tell of no branches: all of them are in the context.
    pub(super) fn take_all_branches(&mut self) {
        self.branches = Branches::All;
    }

    /// From now on only the branch that ends with this record is given out. Says whether there is
    /// one. The frames before it are held in memory.
    pub(super) fn choose_branch(&mut self, id: &str) -> Outcome<bool> {
        let mut records = Vec::new();
        while let Some(record) = self.read_next() {
            let record = record?;
            let is_last = branch::is_of(&record.frame, id);
            records.push(record);
            if is_last {
                self.branches = Branches::One(branch::path(records));
                // What an archive knows is of all of its frames.
                self.is_rendered_anew = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many sessions are given out, as far as they were read.
    pub(crate) fn sessions(&self) -> u64 {
        if self.chosen.is_some() || matches!(self.branches, Branches::One(_)) {
            1
        } else {
            self.own_report().sessions
        }
    }

    /// Takes of an archive the frames alone: they are to be rendered in another format.
    pub(crate) fn render_anew(&mut self) {
        self.is_rendered_anew = true;
    }

    /// Begins again with the first frame of an archive, whole as it is.
    pub(crate) fn rewind(&mut self) {
        if let Reader::Archived(_, next) = &mut self.reader {
            *next = 0;
        }
    }

    /// Keeps whole requests too, where the source holds them.
    pub(crate) fn keep_exchanges(&mut self) {
        self.exchanges = Exchanges::Kept;
        if let Reader::Transcript(transcript) = &mut self.reader {
            transcript.keep_exchanges();
        }
    }

    /// As [`Source::take_exchanges`], of an archive whatever of its frames was read.
    pub(crate) fn take_all_exchanges(&mut self) -> Outcome<Vec<Exchange>> {
        if let Reader::Archived(file, next) = &mut self.reader {
            *next = file.rows()?.len();
        }
        self.take_exchanges()
    }

    /// The exchanges that were kept and not taken yet: those of an archive once all frames were
    /// read.
    pub(crate) fn take_exchanges(&mut self) -> Outcome<Vec<Exchange>> {
        let mut exchanges = match &mut self.reader {
            Reader::Transcript(transcript) => transcript.take_exchanges(),
            Reader::Archived(file, next)
                if self.exchanges == Exchanges::Kept && *next >= file.rows()?.len() =>
            {
                self.exchanges = Exchanges::LeftOut;
                file.exchanges()?
            }
            Reader::Archived(..) => Vec::new(),
        };
        if let Some(redaction) = &self.redaction {
            for exchange in &mut exchanges {
                exchange.session = redaction.session(&exchange.session);
            }
        }
        if let Some((session, _)) = &self.chosen {
            exchanges.retain(|exchange| exchange.session == *session);
        }
        if let Some(redaction) = &self.redaction {
            exchanges.iter_mut().for_each(|exchange| redaction.exchange(exchange));
        }
        Ok(exchanges)
    }

    /// Where it was opened; of an archive where its file was once.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name, where answers say which of several files they are of.
    pub(crate) fn file(&self) -> Option<String> {
        self.is_one_of_several.then(|| self.name())
    }

    /// The folder that its session worked in, as its records say, or else a file beside it.
    pub(crate) fn project(&self) -> Option<String> {
        let beside = || self.directory.clone().or_else(|| project::beside(&self.path));
        // What is said beside it is not redacted.
        let is_there = self.own_archive().is_none() && self.redaction.is_none();
        self.report().folder.clone().or_else(|| is_there.then(beside).flatten())
    }

    /// What the file is called in output.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn format(&self) -> TranscriptFormat {
        match &self.reader {
            Reader::Transcript(transcript) => transcript.format(),
            Reader::Archived(file, _) => file.entry().input_format,
        }
    }

    /// Whether it is a recording of the wire, and no archive of one.
    pub(crate) fn is_recording(&self) -> bool {
        matches!(self.reader, Reader::Transcript(_))
            && self.format().holds() == SourceContent::Recording
    }

    /// What the import says of what was read.
    pub(crate) fn report(&self) -> Cow<'_, ImportReport> {
        let report = self.own_report();
        let Some(redaction) = &self.redaction else { return Cow::Borrowed(report) };
        // What is asked for again is one place, however often.
        let mut redacted = self.redacted_report.borrow_mut();
        match &*redacted {
            Some((own, shown)) if own == report => Cow::Owned(shown.clone()),
            _ => {
                let shown = redaction.import_report(report);
                *redacted = Some((report.clone(), shown.clone()));
                Cow::Owned(shown)
            }
        }
    }

    /// How many of what was read still runs, where the import says it.
    pub(crate) fn running(&self) -> Option<u64> {
        self.own_report().running
    }

    /// As [`Source::report`], with any secret in it.
    fn own_report(&self) -> &ImportReport {
        match &self.reader {
            Reader::Transcript(transcript) => transcript.report(),
            Reader::Archived(file, _) => &file.entry().report,
        }
    }

    /// What the frame that was read last rendered to, where an archive knows.
    fn rendered(&self) -> Outcome<Option<Arc<FrameSnapshot>>> {
        let Reader::Archived(file, next) = &self.reader else { return Ok(None) };
        if self.is_rendered_anew {
            return Ok(None);
        }
        let index = next.saturating_sub(1);
        let row = file.rows()?.get(index).copied();
        Ok(row.map(|row| file.snapshot(index, row)).transpose()?)
    }

    /// The frame that was read last, and what it rendered to where it does not bring that along
    /// and an archive knows.
    pub(crate) fn with_rendered(
        &self,
        record: Record,
    ) -> Outcome<(Record, Option<Arc<FrameSnapshot>>)> {
        let is_sealed = record.frame.rendered_snapshot.is_some();
        let rendered = if is_sealed { None } else { self.rendered()? };
        Ok((record, rendered))
    }

    /// Renders the frame that was read last, unless what it rendered to is known.
    pub(crate) fn see(&self, viewer: &mut Viewer<'_>, record: Record) -> Outcome<ViewedFrame> {
        let (record, rendered) = self.with_rendered(record)?;
        let now = moment(&record.frame);
        viewer.view(record, rendered.as_ref(), now).map_err(|error| self.refuse(error))
    }

    /// Shows a viewer the exchanges that were kept and not taken yet, and counts them by this counter.
    pub(crate) fn see_exchanges(
        &mut self,
        viewer: &mut Viewer<'_>,
        counter: Option<&dyn TokenCounter>,
    ) -> Outcome {
        let exchanges = self.take_exchanges()?.into_iter();
        exchanges.for_each(|exchange| viewer.exchange(exchange, counter));
        Ok(())
    }

    /// The frame that was read last, with what it rendered to where that is known.
    pub(crate) fn sealed(&self, mut record: Record) -> Outcome<Record> {
        if record.frame.rendered_snapshot.is_none() {
            record.frame.rendered_snapshot = self.rendered()?;
        }
        Ok(record)
    }

    /// Names the file in an error of something that was made of its frames.
    pub(crate) fn refuse(&self, error: Error) -> Stop {
        if error.place().file.is_some() { error.into() } else { self.fail_with(error) }
    }

    fn fail_with(&self, error: Error) -> Stop {
        match (error.in_file(name(&self.path)).into(), self.own_archive()) {
            (Stop::Failure(failure), Some(file)) => {
                failure.at("archive", file.archive().display()).into()
            }
            (stop, _) => stop,
        }
    }

    pub(crate) fn fail(&self, sentence: impl Into<String>) -> Failure {
        let failure = Failure::new(sentence).file(&name(&self.path));
        match self.own_archive() {
            Some(file) => failure.at("archive", file.archive().display()),
            None => failure,
        }
    }

    pub(crate) fn note(&self, text: &str) {
        let text = if self.is_one_of_several {
            format!("{}: {text}", self.name())
        } else {
            text.to_owned()
        };
        self.bar.suspend(|| output::note(&text));
    }

    /// Ends the progress, and says what was odd where all was read.
    pub(super) fn finish(&self, is_read: bool) {
        self.bar.finish_and_clear();
        if is_read {
            self.say_what_was_odd();
        }
    }

    fn say_what_was_odd(&self) {
        let report = self.report();
        if self.is_empty {
            self.note(&format!("there is no message in it ({} was recognised)", self.format()));
        }
        if report.renumbered > 0 {
            let frames = plural(report.renumbered, "frame");
            let count = grouped(report.renumbered);
            self.note(&format!(
                "{count} {frames} got the next sequence: theirs does not rise, or is too large"
            ));
        }
        if let Some(first) = report.notes.first() {
            let (count, line) = (report.noted, first.line);
            self.note(&format!(
                "ignored {} {}, {} line {}: {}",
                grouped(count),
                if count == 1 { "inconsistency" } else { "inconsistencies" },
                if count == 1 { "at" } else { "first at" },
                grouped(line),
                crate::text::printable(&first.text)
            ));
        }
        if report.mended_surrogates > 0 {
            self.note(&json::mended_note(report.mended_surrogates));
        }
        let Some(first) = report.unknown.first() else { return };
        let (count, line) = (report.unknown_records, first.line);
        let (records, were) = (plural(count, "record"), if count == 1 { "was" } else { "were" });
        let at = if count == 1 { "at" } else { "first at" };
        self.note(&format!(
            "{} {records} {were} not understood, {at} line {}: {}",
            grouped(count),
            grouped(line),
            crate::text::printable(&first.reason)
        ));
    }
}

impl Iterator for Source {
    type Item = Outcome<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = match &mut self.chosen {
            None => self.read_next(),
            Some((session, first)) => {
                let (session, first) = (Arc::clone(session), first.take());
                let is_wanted = |record: &Outcome<Record>| {
                    record.as_ref().map_or(true, |record| record.session == session)
                };
                match first {
                    Some(record) => Some(Ok(record)),
                    None => std::iter::from_fn(|| self.read_next()).find(is_wanted),
                }
            }
        };
        if record.is_none() {
            // What is printed of it begins on a line of its own.
            self.bar.finish_and_clear();
        }
        record
    }
}

impl Source {
    fn read_next(&mut self) -> Option<Outcome<Record>> {
        if let Branches::One(branch) = &mut self.branches {
            return branch.pop_front().map(Ok);
        }
        let mut record = match &mut self.reader {
            Reader::Transcript(transcript) => {
                let record = transcript.next()?;
                record.map_err(|error| self.refuse(error))
            }
            Reader::Archived(file, next) => {
                let index = *next;
                let record = file.rows().map(|rows| rows.get(index).copied());
                let record =
                    record.and_then(|row| row.map(|row| file.record(index, row)).transpose());
                // What is damaged is not read past: the rest would be only a part.
                *next = if record.is_ok() { index + 1 } else { usize::MAX };
                self.bar.inc(1);
                record.map_err(Stop::from).transpose()?
            }
        };
        self.is_empty = false;
        if let Some(redaction) = &self.redaction {
            record = record
                .and_then(|record| redaction.record(record).map_err(|error| self.refuse(error)));
        }
        if let (Ok(record), Branches::All) = (&mut record, &self.branches) {
            record.frame.events.retain(|event| !Branch::is_event(event));
        }
        Some(record)
    }
}
