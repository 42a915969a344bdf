//! The events of one session in a record file: the record with index n is the event with sequence
//! n, and the record with index 0 says whose they are.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Event, SessionName, record,
    request::{Append, Head, Mark, Page, Position, PositionedEvent, Response},
    sealed,
    snapshot::Header,
};
use crate::{
    Error, ErrorKind, Result,
    json::{self, from_value, to_value},
    log::{
        self, CutTail, EndProblem, FileKind, Files, FoundMark, HighWater, LogMark, LostEnd,
        RecordFile, RecordWriter, ScanEntry, Survey, TornEnd,
    },
};

const KIND: FileKind = FileKind::new(*b"aievent\0", 1);
/// The extension of the file that remembers how far a log was acknowledged.
pub(super) const ACKNOWLEDGED: &str = "acknowledged";
const SESSION: &str = "afterimage journal session";

/// The most bytes of bodies in a page, but for its first event.
const PAGE_BYTES: usize = 16 << 20;

/// The events of one session.
#[derive(Debug)]
pub(super) struct SessionLog {
    records: Records,
    /// Where each record is.
    positions: Vec<log::Position>,
    /// Which log it is, from the first record; empty where that is not written yet.
    life: Arc<str>,
    /// What follows the last event, and is passed over.
    torn: Option<TornEnd>,
    /// How far the events were acknowledged; none for reading, and of a log without a record.
    mark: Option<HighWater>,
    /// Why the log does not end where it was acknowledged.
    lost: Option<LostEnd>,
    has_failed: bool,
    /// Whether the file may hold what a sync that failed did not write.
    is_unsure: bool,
}

/// Whose log a file is.
pub(super) enum LogOwner {
    Session(SessionName),
    /// No event is in it; what it ends with, where that is torn.
    Nobody(Option<TornEnd>),
}

#[derive(Debug)]
enum Records {
    Written(RecordWriter),
    Read(RecordFile),
}

impl SessionLog {
    /// Opens a log for writing; creates it where it is not there. A torn tail is cut. One that lost
    /// its end can be read, takes nothing, and is left as it is, unless the loss is accepted.
    pub(super) fn open(
        files: &Arc<dyn Files>,
        path: &Path,
        session: &SessionName,
        accepts: bool,
    ) -> Result<(Self, Option<CutTail>)> {
        let end = end_path(path);
        let mark = HighWater::read(&**files, &end);
        let acknowledged = mark.as_ref().ok().copied().flatten().map_or(0, |found| found.mark.last);
        let is_short = |found: &Survey| {
            acknowledged > 0 && found.records.len() as u64 <= acknowledged && !accepts
        };
        let opened = RecordWriter::open_unless(Arc::clone(files), path, KIND, is_short)?;
        let Some((writer, recovery)) = opened else {
            // What follows the last record is all that is left of what was acknowledged.
            let records = RecordFile::open(&**files, path, KIND)?;
            return Ok((Self::of(Records::Read(records), session, &mark)?, None));
        };
        if let Some(damage) = recovery.damage.first() {
            return Err(damage.to_error().into());
        }
        let mut log = Self::of(Records::Written(writer), session, &mark)?;
        if log.lost.is_none() {
            log.mark = HighWater::open(&**files, end)?;
        }
        Ok((log, recovery.cut))
    }

    /// Opens a log for reading, as it is now: what is appended later is not in it. A torn tail is
    /// passed over. `None` where the file is empty.
    pub(super) fn read(
        files: &dyn Files,
        path: &Path,
        session: &SessionName,
    ) -> Result<Option<Self>> {
        // A writer syncs the log first.
        let mark = HighWater::read(files, end_path(path));
        let records = RecordFile::open_unless_empty(files, path, KIND)?;
        records.map(|records| Self::of(Records::Read(records), session, &mark)).transpose()
    }

    /// The session whose log a file is.
    pub(super) fn name_of(files: &dyn Files, path: &Path) -> Result<LogOwner> {
        let Some(records) = RecordFile::open_unless_empty(files, path, KIND)? else {
            return Ok(LogOwner::Nobody(None));
        };
        let first = records.outline()?.take(3).collect::<Result<Vec<_>, log::Error>>()?;
        if first.iter().filter(|entry| matches!(entry, ScanEntry::Record(_))).count() < 3 {
            // A crash may have kept the header of the only event, and not all of it.
            let found = records.survey()?;
            if let Some(damage) = found.damage.first() {
                return Err(damage.to_error().into());
            }
            if found.records.len() < 2 {
                return Ok(LogOwner::Nobody(found.torn));
            }
        }
        let Some(ScanEntry::Record(record)) = first.first() else {
            return Ok(LogOwner::Nobody(None));
        };
        session_record(&records.read(record.position)?)
            .and_then(|first| SessionName::new(first.session))
            .map(LogOwner::Session)
            .map_err(|error| error.in_file(path))
    }

    fn of(
        records: Records,
        session: &SessionName,
        mark: &log::Result<Option<FoundMark>>,
    ) -> Result<Self> {
        let mut log = Self {
            records,
            positions: Vec::new(),
            life: "".into(),
            torn: None,
            mark: None,
            lost: None,
            has_failed: false,
            is_unsure: false,
        };
        let found = log.file().survey()?;
        if let Some(damage) = found.damage.first() {
            return Err(damage.to_error().into());
        }
        let positions: Vec<_> = found.records.iter().map(|record| record.position).collect();
        if let Some(first) = positions.first() {
            let first = session_record(&log.file().read(*first)?)
                .map_err(|error| error.in_file(log.file().path()))?;
            let name = first.session;
            if name != session.as_str() {
                let message = format!("expected events of the session {session:?}, found {name:?}");
                return Err(Error::new(ErrorKind::Damaged, message).in_file(log.file().path()));
            }
            log.life = first.life;
        }
        log.positions = positions;
        log.torn = found.torn;
        // It is there before the first record is.
        let has_mark = !log.positions.is_empty();
        let path = log.file().path();
        let check = |sequence| log.check(sequence);
        let paths = (path, &*end_path(path));
        log.lost = LostEnd::find(paths, "event", mark, has_mark, log.last(), check);
        Ok(log)
    }

    /// The checksum of an event's record; nothing where it cannot be read, which is said where it
    /// is asked for.
    fn check(&self, sequence: u64) -> Option<u32> {
        let at = self.positions.get(usize::try_from(sequence).ok()?)?;
        self.file().read(*at).ok().map(|record| crc32fast::hash(&record))
    }

    /// Why the log does not end where it was acknowledged.
    pub(super) fn lost(&self) -> Option<&LostEnd> {
        self.lost.as_ref()
    }

    /// The log ends where it does from now on, whatever was acknowledged. Where a snapshot has the
    /// state after events that are missing, `covered` says up to which one, and the log keeps their
    /// places, so that the snapshot still fits it.
    pub(super) fn accept(&mut self, files: &dyn Files, covered: u64) -> Result<Option<LostEnd>> {
        if self.lost.is_some() {
            self.keep_places(files, covered)?;
            let (last, end) = (self.last(), end_path(self.file().path()));
            let mark = LogMark { last, check: self.check(last) };
            self.mark = Some(HighWater::create(files, end, mark)?);
        }
        Ok(self.lost.take())
    }

    /// Up to which event a snapshot may stand for what is missing; none where nothing is missing.
    pub(super) fn covered_by(&self, header: &Header) -> Option<u64> {
        let Some(EndProblem::Lost { acknowledged, last }) =
            self.lost.as_ref().map(|lost| &lost.problem)
        else {
            return None;
        };
        let at = &header.mark;
        let is_of_log = header.life == self.life;
        let is_missing =
            at.position == at.sequence && (last + 1..=*acknowledged).contains(&at.sequence);
        (is_of_log && is_missing).then_some(at.sequence)
    }

    /// Writes empty records in the places of lost events.
    fn keep_places(&mut self, files: &dyn Files, last: u64) -> Result<()> {
        let Records::Written(writer) = &mut self.records else { return Ok(()) };
        let (begun, known) = (writer.end(), self.positions.len());
        if known == 0 || known as u64 > last {
            return Ok(());
        }
        let mut positions = Vec::new();
        for _ in known as u64..=last {
            positions.push(writer.append(b"")?);
        }
        self.sync(files, begun)?;
        self.positions.extend(positions);
        Ok(())
    }

    /// What follows the last event, and was passed over when the log was opened.
    pub(super) fn torn(&self) -> Option<&TornEnd> {
        self.torn.as_ref()
    }

    fn file(&self) -> &RecordFile {
        match &self.records {
            Records::Written(writer) => writer.records(),
            Records::Read(file) => file,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether the log is what the disk has: then it can be opened anew, and gone on with.
    pub(super) fn is_sure(&self) -> bool {
        !self.is_unsure
    }

    fn usable(&self) -> Result<()> {
        if self.has_failed {
            let message = "an earlier write failed, so what the file holds is unknown until the journal is opened anew";
            return Err(Error::new(ErrorKind::Poisoned, message).in_file(self.file().path()));
        }
        Ok(())
    }

    /// The sequence of the newest event, which is its position too; 0 without one.
    pub(super) fn last(&self) -> u64 {
        self.positions.len().saturating_sub(1) as u64
    }

    pub(super) fn head(&self) -> Result<Head> {
        self.usable()?;
        let sequence = self.last();
        let last = if sequence == 0 {
            None
        } else {
            let event = self.event(sequence)?;
            Some(Mark { sequence, position: sequence, id: event.id })
        };
        let life = Arc::clone(&self.life);
        let reached = match self.lost.as_ref().map(|lost| &lost.problem) {
            Some(EndProblem::Lost { acknowledged, .. }) => *acknowledged,
            _ => sequence,
        };
        Ok(Head { life, last, floor: 0, ceiling: sequence, reached })
    }

    fn event(&self, sequence: u64) -> Result<Event> {
        let at = usize::try_from(sequence).ok().and_then(|index| self.positions.get(index));
        let Some(at) = at else {
            return Err(Error::new(ErrorKind::OutOfRange, "no event has this sequence"));
        };
        let record = self.file().read(*at)?;
        if record.is_empty() {
            return Event::lost(sequence);
        }
        event_of(sequence, &record).map_err(|error| {
            error.in_file(self.file().path()).at(|place| place.record = Some(sequence))
        })
    }

    pub(super) fn page(&self, from: Position, most: usize) -> Result<Page> {
        self.usable()?;
        let mut page = Page::default();
        let (mut sequence, mut bytes) = (from.max(1), 0);
        while sequence <= self.last() && page.events.len() < most && bytes < PAGE_BYTES {
            let event = self.event(sequence)?;
            bytes += event.body.len();
            page.events.push(PositionedEvent { position: sequence, event });
            sequence += 1;
        }
        page.is_end = sequence > self.last();
        Ok(page)
    }

    pub(super) fn append(
        &mut self,
        files: &dyn Files,
        append: &Append,
        session: &SessionName,
    ) -> Result<Response> {
        self.usable()?;
        // What is appended would take the place of what is missing.
        if let Some(lost) = &self.lost {
            return Err(unrepaired(lost));
        }
        if append.after != self.last() {
            return Ok(Response::Refused);
        }
        let result = self.write(files, append, session);
        self.has_failed |= result.is_err();
        let life = Some(Arc::clone(&self.life));
        result.map(|()| Response::AppendReceipt { last: self.last(), life })
    }

    fn write(&mut self, files: &dyn Files, append: &Append, session: &SessionName) -> Result<()> {
        let Records::Written(writer) = &mut self.records else {
            return Err(Error::new(ErrorKind::Locked, "the journal was opened for reading only"));
        };
        let (mut positions, begun) = (Vec::new(), writer.end());
        let end = end_path(writer.records().path());
        if self.positions.is_empty() {
            self.mark = Some(HighWater::create(files, &end, LogMark::default())?);
            let life = life_of(append);
            let (kind, session) = (SESSION.to_owned(), session.as_str().to_owned());
            let first = to_value(&FirstRecord { kind, session, life: Arc::clone(&life) })?;
            positions.push(writer.append(first.to_string().as_bytes())?);
            // A disk may write the event and lose this; then nobody could say whose it is.
            self.sync(files, begun)?;
            self.life = life;
        }
        let Records::Written(writer) = &mut self.records else { return Ok(()) };
        let begun = writer.end();
        let mut bytes = Vec::new();
        for (sequence, writing) in append.numbered() {
            bytes.clear();
            record::put(&mut bytes, sequence, &writing.event, writing.recorded_at);
            positions.push(writer.append(&bytes)?);
        }
        self.sync(files, begun)?;
        self.positions.extend(positions);
        let check = Some(crc32fast::hash(&bytes));
        let mark = LogMark { last: self.last(), check };
        self.mark.as_ref().map_or(Ok(()), |high_water| Ok(high_water.raise(mark)?))
    }

    /// Makes what was appended durable. Where that fails it is cut from `begun` on: the system may give
    /// it back, say that it is durable at the next sync, and lose it with the power.
    fn sync(&mut self, files: &dyn Files, begun: u64) -> Result<()> {
        let Records::Written(writer) = &mut self.records else { return Ok(()) };
        let synced = writer.sync();
        if synced.is_err() {
            self.is_unsure = files.truncate(writer.records().path(), begun).is_err();
        }
        Ok(synced?)
    }
}

/// Where how far a log was acknowledged is remembered.
pub(super) fn end_path(log: &Path) -> PathBuf {
    // Twice: of `events.rec`.
    log.with_extension("").with_extension(ACKNOWLEDGED)
}

/// The life of a log that begins with these events: the moment and the first of them. Another log of
/// the session has the same one only if it began in the same millisecond with the same event.
fn life_of(append: &Append) -> Arc<str> {
    let Some(first) = append.events.first() else { return "".into() };
    let mut bytes = Vec::new();
    record::put(&mut bytes, 1, &first.event, first.recorded_at);
    let hash = blake3::hash(&bytes).to_hex();
    format!("{}-{}", first.recorded_at.get(), hash.get(..16).unwrap_or_default()).into()
}

/// The error of a log that does not end where it was acknowledged.
pub(super) fn unrepaired(lost: &LostEnd) -> Error {
    let message = format!("{lost}; `afterimage journal repair` accepts the loss");
    Error::new(ErrorKind::Damaged, message).in_file(&lost.file)
}

/// What the first record of a log says.
#[derive(serde::Serialize, serde::Deserialize)]
struct FirstRecord {
    kind: String,
    session: String,
    #[serde(with = "sealed::shared")]
    life: Arc<str>,
}

fn session_record(record: &[u8]) -> Result<FirstRecord> {
    let value = json::read(record)?;
    if value.str_at("kind") != Some(SESSION) {
        return Err(Error::expected("the name of a session", "another record"));
    }
    Ok(from_value(value)?)
}

fn event_of(sequence: u64, bytes: &[u8]) -> Result<Event> {
    let (event, rest) = record::take(bytes)?;
    if event.sequence != sequence {
        let (expected, found) = (format!("event {sequence}"), format!("event {}", event.sequence));
        return Err(Error::expected(expected, found));
    }
    if !rest.is_empty() {
        return Err(Error::expected("an event", format_args!("{} bytes more", rest.len())));
    }
    Ok(event)
}
