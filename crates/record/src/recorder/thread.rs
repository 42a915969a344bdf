use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use super::{Done, Note, Open, Redaction, Tell};
use crate::{End, ExchangeId, RecordingWriter, RequestBody, ResponseHead, Result, Start};

/// What was appended is synced after so long.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// A recording that failed is opened again after so long.
const REOPEN_AFTER: Duration = Duration::from_secs(5);
const FAILED: &str = "the disk of the recorder failed";

/// The thread that writes a recording.
pub(super) struct Thread {
    /// `None` after a failure.
    writer: Option<RecordingWriter>,
    redaction: Option<Redaction>,
    open: Open,
    tell: Tell,
    waiting: Arc<AtomicUsize>,
    running: HashMap<u64, Running>,
    /// Since when something is not synced.
    unsynced: Option<Instant>,
    failed: Option<Instant>,
    /// How many exchanges were not recorded since the failure.
    missed: u64,
}

/// An exchange whose end, or whose request, is still to come.
struct Running {
    id: ExchangeId,
    has_request: bool,
    has_end: bool,
    /// A record of it could not be written.
    is_lost: bool,
}

impl Thread {
    pub(super) fn new(
        writer: RecordingWriter,
        redaction: Option<Redaction>,
        open: Open,
        tell: Tell,
        waiting: Arc<AtomicUsize>,
    ) -> Self {
        let (running, unsynced, failed, missed) = Default::default();
        Self {
            writer: Some(writer),
            redaction,
            open,
            tell,
            waiting,
            running,
            unsynced,
            failed,
            missed,
        }
    }

    pub(super) fn run(mut self, incoming: &Receiver<Note>) {
        loop {
            let note = match self.unsynced {
                None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(since) => incoming.recv_timeout(SYNC_AFTER.saturating_sub(since.elapsed())),
            };
            match note {
                Ok(Note::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(note) => {
                    self.waiting.fetch_sub(note.size(), Ordering::Relaxed);
                    self.take(note);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.unsynced.is_some_and(|since| since.elapsed() >= SYNC_AFTER) {
                self.sync();
            }
        }
        self.sync();
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Start(of, start) => {
                let start = match &mut self.redaction {
                    Some(redaction) => redaction.start(of, start),
                    None => start,
                };
                self.begin(of, &start);
            }
            Note::Request { of, lane, bytes, total, ended } => {
                self.request(of, &lane, bytes, (total, ended));
            }
            Note::Response(of, head) => {
                let head = match &mut self.redaction {
                    Some(redaction) => redaction.head(of, head),
                    None => head,
                };
                self.respond(of, &head);
            }
            Note::Part(of, bytes) => match &mut self.redaction {
                Some(redaction) => redaction.part(of, &bytes),
                None => self.append(of, |writer, id| writer.part(id, &bytes)),
            },
            Note::End(of, end, done) => {
                let (parts, end) = match &mut self.redaction {
                    Some(redaction) => redaction.end(of, end),
                    None => (Vec::new(), end),
                };
                for part in parts {
                    self.append(of, |writer, id| writer.part(id, &part));
                }
                self.end(of, end, done);
            }
            Note::Stop => {}
        }
    }

    fn request(&mut self, of: u64, lane: &str, bytes: Vec<u8>, (total, ended): (u64, bool)) {
        let is_whole = ended && total == bytes.len() as u64;
        let (bytes, total) = match &mut self.redaction {
            None => (bytes, total),
            Some(redaction) => match redaction.request(of, bytes, is_whole) {
                Some(redacted) => {
                    let total = redacted.len() as u64;
                    (redacted, total)
                }
                // The reader sees that of so many bytes none is stored.
                None => (Vec::new(), total),
            },
        };
        let body = RequestBody { bytes: &bytes, total, ended };
        self.append(of, |writer, id| writer.request(id, lane, body));
        self.settle(of, |running| running.has_request = true);
    }

    fn begin(&mut self, of: u64, start: &Start) {
        self.reopen();
        let Some(writer) = &mut self.writer else {
            self.missed += 1;
            return;
        };
        match writer.start(start) {
            Ok(id) => {
                let running = Running { id, has_request: false, has_end: false, is_lost: false };
                self.running.insert(of, running);
                self.unsynced.get_or_insert_with(Instant::now);
            }
            Err(error) => {
                self.missed += 1;
                self.fail(&error);
            }
        }
    }

    fn respond(&mut self, of: u64, head: &ResponseHead) {
        self.append(of, |writer, id| writer.response(id, head));
    }

    fn end(&mut self, of: u64, mut end: End, done: Done) {
        if let Some(running) = self.running.get_mut(&of)
            && std::mem::take(&mut running.is_lost)
        {
            self.reopen();
            end.cut = Some(FAILED.to_owned());
        }
        self.append(of, |writer, id| writer.end(id, &end));
        done();
        self.settle(of, |running| running.has_end = true);
    }

    /// Appends a record of an exchange, unless an earlier one of it was lost.
    fn append(
        &mut self,
        of: u64,
        append: impl FnOnce(&mut RecordingWriter, ExchangeId) -> Result<()>,
    ) {
        let Some(running) = self.running.get_mut(&of) else { return };
        if running.is_lost {
            return;
        }
        let Some(writer) = &mut self.writer else {
            running.is_lost = true;
            return;
        };
        match append(writer, running.id) {
            Ok(()) => {
                self.unsynced.get_or_insert_with(Instant::now);
            }
            Err(error) => {
                running.is_lost = true;
                self.fail(&error);
            }
        }
    }

    /// Forgets an exchange when all of it has come.
    fn settle(&mut self, of: u64, came: impl FnOnce(&mut Running)) {
        let Some(running) = self.running.get_mut(&of) else { return };
        came(running);
        if running.has_request && running.has_end {
            self.running.remove(&of);
        }
    }

    fn sync(&mut self) {
        self.unsynced = None;
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.sync()
        {
            // What was appended since the last sync may be gone: of these nobody knows.
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &crate::Error) {
        self.writer = None;
        self.unsynced = None;
        self.running.values_mut().for_each(|running| running.is_lost = true);
        if self.failed.replace(Instant::now()).is_none() {
            let message =
                format!("{error}; calls go on, and are not recorded until it works again");
            (self.tell)(&message);
        }
    }

    /// Opens the recording again after a failure, unless that is too soon.
    fn reopen(&mut self) {
        let is_due = self.failed.is_some_and(|failed| failed.elapsed() >= REOPEN_AFTER);
        if self.writer.is_some() || !is_due {
            return;
        }
        match (self.open)() {
            Ok(writer) => {
                self.writer = Some(writer);
                self.failed = None;
                let missed = std::mem::take(&mut self.missed);
                (self.tell)(&format!("recording again; {missed} calls were not recorded"));
            }
            Err(_) => self.failed = Some(Instant::now()),
        }
    }
}
