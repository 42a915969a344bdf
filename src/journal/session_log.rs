//! The events of one session in a record file: the record with index n is the event with sequence
//! n, and the record with index 0 says whose they are.

use std::{path::Path, sync::Arc};

use super::{
    Event, SessionName, record,
    request::{Append, Head, Mark, Page, Placed, Position, Response},
};
use crate::{
    Error, ErrorKind, Result,
    json::{self, Fields, Object, ObjectExt, Value},
    log::{self, CutTail, Entry, FileKind, Files, RecordFile, RecordWriter, Torn},
};

const KIND: FileKind = FileKind::new(*b"aievent\0", 1);
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
    torn: Option<Torn>,
    has_failed: bool,
}

/// Whose log a file is.
pub(super) enum Whose {
    Session(SessionName),
    /// No event is in it; what it ends with, where that is torn.
    Nobody(Option<Torn>),
}

#[derive(Debug)]
enum Records {
    Written(RecordWriter),
    Read(RecordFile),
}

impl SessionLog {
    /// Opens a log for writing; creates it where it is not there. A torn tail is cut.
    pub(super) fn open(
        files: &Arc<dyn Files>,
        path: &Path,
        session: &SessionName,
    ) -> Result<(Self, Option<CutTail>)> {
        let (writer, recovery) = RecordWriter::open(Arc::clone(files), path, KIND)?;
        if let Some(damage) = recovery.damage.first() {
            return Err(damage.to_error());
        }
        let log = Self::of(Records::Written(writer), session)?;
        Ok((log, recovery.cut))
    }

    /// Opens a log for reading, as it is now: what is appended later is not in it. A torn tail is
    /// passed over. `None` where the file is empty.
    pub(super) fn read(
        files: &dyn Files,
        path: &Path,
        session: &SessionName,
    ) -> Result<Option<Self>> {
        let records = RecordFile::open_unless_empty(files, path, KIND)?;
        records.map(|records| Self::of(Records::Read(records), session)).transpose()
    }

    /// The session whose log a file is.
    pub(super) fn name_of(files: &dyn Files, path: &Path) -> Result<Whose> {
        let Some(records) = RecordFile::open_unless_empty(files, path, KIND)? else {
            return Ok(Whose::Nobody(None));
        };
        let first = records.outline()?.take(3).collect::<Result<Vec<_>>>()?;
        if first.iter().filter(|entry| matches!(entry, Entry::Record(_))).count() < 3 {
            // A crash may have kept the header of the only event, and not all of it.
            let found = records.survey()?;
            if let Some(damage) = found.damage.first() {
                return Err(damage.to_error());
            }
            if found.records.len() < 2 {
                return Ok(Whose::Nobody(found.torn));
            }
        }
        let Some(Entry::Record(record)) = first.first() else { return Ok(Whose::Nobody(None)) };
        session_record(&records.read(record.position)?)
            .and_then(|(name, _)| SessionName::new(name))
            .map(Whose::Session)
            .map_err(|error| error.in_file(path))
    }

    fn of(records: Records, session: &SessionName) -> Result<Self> {
        let mut log =
            Self { records, positions: Vec::new(), life: "".into(), torn: None, has_failed: false };
        let found = log.file().survey()?;
        if let Some(damage) = found.damage.first() {
            return Err(damage.to_error());
        }
        let positions: Vec<_> = found.records.iter().map(|record| record.position).collect();
        if let Some(first) = positions.first() {
            let (name, life) = session_record(&log.file().read(*first)?)
                .map_err(|error| error.in_file(log.file().path()))?;
            if name != session.as_str() {
                let message = format!("expected events of the session {session:?}, found {name:?}");
                return Err(Error::new(ErrorKind::Damaged, message).in_file(log.file().path()));
            }
            log.life = life.into();
        }
        log.positions = positions;
        log.torn = found.torn;
        Ok(log)
    }

    /// What follows the last event, and was passed over when the log was opened.
    pub(super) fn torn(&self) -> Option<&Torn> {
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
        Ok(Head { life, last, floor: 0, ceiling: sequence, reached: sequence })
    }

    fn event(&self, sequence: u64) -> Result<Event> {
        let at = usize::try_from(sequence).ok().and_then(|index| self.positions.get(index));
        let Some(at) = at else {
            return Err(Error::new(ErrorKind::OutOfRange, "no event has this sequence"));
        };
        let record = self.file().read(*at)?;
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
            page.events.push(Placed { position: sequence, event });
            sequence += 1;
        }
        page.is_end = sequence > self.last();
        Ok(page)
    }

    pub(super) fn append(&mut self, append: &Append, session: &SessionName) -> Result<Response> {
        self.usable()?;
        if append.after != self.last() {
            return Ok(Response::Refused);
        }
        let result = self.write(append, session);
        self.has_failed |= result.is_err();
        let life = Some(Arc::clone(&self.life));
        result.map(|()| Response::Appended { last: self.last(), life })
    }

    fn write(&mut self, append: &Append, session: &SessionName) -> Result<()> {
        let Records::Written(writer) = &mut self.records else {
            return Err(Error::new(ErrorKind::Locked, "the journal was opened for reading only"));
        };
        let mut positions = Vec::new();
        if self.positions.is_empty() {
            let begun = append.events.first().map_or(0, |writing| writing.recorded_at.get());
            let life: Arc<str> = begun.to_string().into();
            let mut object = Object::new();
            object.put("kind", SESSION);
            object.put("session", session.as_str());
            object.put("life", &*life);
            positions.push(writer.append(Value::from(object).to_string().as_bytes())?);
            // A disk may write the event and lose this; then nobody could say whose it is.
            writer.sync()?;
            self.life = life;
        }
        let mut bytes = Vec::new();
        for (sequence, writing) in append.numbered() {
            bytes.clear();
            record::put(&mut bytes, sequence, &writing.event, writing.recorded_at);
            positions.push(writer.append(&bytes)?);
        }
        writer.sync()?;
        self.positions.extend(positions);
        Ok(())
    }
}

/// The name of a session and the life of its log, from the first record.
fn session_record(record: &[u8]) -> Result<(String, String)> {
    let value = json::read(record)?;
    if value.str_at("kind") != Some(SESSION) {
        return Err(Error::expected("the name of a session", "another record"));
    }
    let mut fields = Fields::of(value, "a session")?;
    let name = Fields::required(fields.string("session")?, "session", "a string")?;
    let life = Fields::required(fields.string("life")?, "life", "a string")?;
    Ok((name, life))
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
