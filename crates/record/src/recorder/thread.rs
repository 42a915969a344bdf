use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use super::{
    Closing, Done, Note, Open, Redaction, Tell,
    packing::{PackedRequest, Placement, Shared},
    syncing::Syncing,
};
use crate::{End, ExchangeId, RecordingWriter, Result, Start};

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
    syncing: Syncing,
    shared: Arc<Shared>,
    running: HashMap<u64, OpenExchange>,
    /// Since when something is not synced.
    unsynced: Option<Instant>,
    failed: Option<Instant>,
    /// How many exchanges were not recorded since the failure.
    missed: u64,
    /// Whether the thread that packs requests is gone.
    has_no_packer: bool,
    /// Whether the thread that syncs is gone.
    has_no_syncing: bool,
}

/// How far the request of an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Passing,
    /// It has come to its end, and is packed.
    Coming,
    Stored,
}

/// An exchange whose end, or whose request, is still to come.
struct OpenExchange {
    id: ExchangeId,
    request: Request,
    has_end: bool,
    /// A record of it could not be written.
    is_lost: bool,
    /// Waits for the request.
    done: Option<Done>,
}

impl Thread {
    pub(super) fn new(
        writer: RecordingWriter,
        redaction: Option<Redaction>,
        open: Open,
        tell: Tell,
        syncing: Syncing,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            writer: Some(writer),
            redaction,
            open,
            tell,
            syncing,
            shared,
            running: HashMap::new(),
            unsynced: None,
            failed: None,
            missed: 0,
            has_no_packer: false,
            has_no_syncing: false,
        }
    }

    pub(super) fn run(mut self, incoming: &Receiver<Note>) -> Closing {
        loop {
            let note = match self.unsynced {
                None => incoming.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(since) => incoming.recv_timeout(SYNC_AFTER.saturating_sub(since.elapsed())),
            };
            match note {
                Ok(Note::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(note) => {
                    self.shared.waiting.fetch_sub(note.size(), Ordering::Relaxed);
                    self.take(note);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.unsynced.is_some_and(|since| since.elapsed() >= SYNC_AFTER) {
                self.begin_sync();
            }
        }
        if !self.is_removed() {
            self.sync();
        }
        if self.has_no_packer { Closing::PackerFailed } else { Closing::Done }
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
            Note::Coming(of) => {
                let has_no_packer = self.has_no_packer;
                let state = if has_no_packer { Request::Stored } else { Request::Coming };
                self.settle(of, |running| running.request = state);
            }
            Note::Packed(note) => self.packed(&note),
            Note::RequestPart(of, bytes) => {
                self.append(of, |writer, id| writer.request_part(id, &bytes));
            }
            Note::RequestEnd(of, end) => {
                self.append(of, |writer, id| writer.request_end(id, end));
                self.settle(of, |running| running.request = Request::Stored);
            }
            Note::Response(of, head) => {
                let head = match &mut self.redaction {
                    Some(redaction) => redaction.head(of, head),
                    None => head,
                };
                self.append(of, |writer, id| writer.response(id, &head));
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
            Note::NotSynced(opening, error) => {
                if opening == self.opening() {
                    // What was appended since the last sync may be gone: of these nobody knows.
                    self.fail(&error);
                }
            }
            Note::SyncingFailed => self.sync_without_thread(),
            Note::PackerFailed => self.packer_failed(),
            Note::RedactPanicked(place) => (self.tell)(&format!(
                "the redaction panicked at {place}; what it cannot redact is left out"
            )),
            Note::Stop => {}
        }
    }

    /// Of requests that are held nothing comes any more: no answer waits for one.
    fn packer_failed(&mut self) {
        self.has_no_packer = true;
        let message = "a thread of the recorder failed; calls go on, and their requests are not \
                       recorded";
        (self.tell)(message);
        let is_coming = |(_, running): &(&u64, &OpenExchange)| running.request == Request::Coming;
        let coming: Vec<u64> = self.running.iter().filter(is_coming).map(|(of, _)| *of).collect();
        for of in coming {
            self.settle(of, |running| running.request = Request::Stored);
        }
    }

    fn opening(&self) -> u64 {
        self.shared.opening.load(Ordering::Relaxed)
    }

    fn begin(&mut self, of: u64, start: &Start) {
        self.reopen();
        let Some(writer) = &mut self.writer else {
            self.missed += 1;
            return;
        };
        match writer.start(start) {
            Ok(id) => {
                let (request, done) = (Request::Passing, None);
                let running = OpenExchange { id, request, has_end: false, is_lost: false, done };
                self.running.insert(of, running);
                self.unsynced.get_or_insert_with(Instant::now);
            }
            Err(error) => {
                self.missed += 1;
                self.fail(&error);
            }
        }
    }

    /// Appends a request, and says where.
    fn packed(&mut self, note: &PackedRequest) {
        let of = note.of;
        let mut stored = Placement::Lost;
        if note.opening == self.opening() {
            self.append(of, |writer, id| {
                stored = Placement::At(writer.packed(id, &note.content)?);
                Ok(())
            });
        } else if self.running.get(&of).is_some_and(|running| !running.is_lost) {
            stored = Placement::Anew;
        }
        // Who packs waits for it, and does not go away before.
        let _ = note.stored.send(stored);
        if stored != Placement::Anew {
            self.settle(of, |running| running.request = Request::Stored);
        }
    }

    fn end(&mut self, of: u64, mut end: End, done: Done) {
        if let Some(running) = self.running.get_mut(&of)
            && std::mem::take(&mut running.is_lost)
        {
            self.reopen();
            end.cut = Some(FAILED.to_owned());
        }
        self.append(of, |writer, id| writer.end(id, &end));
        match self.running.get_mut(&of) {
            Some(running) if running.request == Request::Coming => {
                running.done = Some(done);
                self.shared.held.fetch_add(1, Ordering::Relaxed);
            }
            _ => done(),
        }
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
    fn settle(&mut self, of: u64, came: impl FnOnce(&mut OpenExchange)) {
        let Some(running) = self.running.get_mut(&of) else { return };
        came(running);
        if running.request != Request::Stored {
            return;
        }
        if let Some(done) = running.done.take() {
            self.shared.held.fetch_sub(1, Ordering::Relaxed);
            done();
        }
        if running.has_end {
            self.running.remove(&of);
        }
    }

    /// Syncs beside what goes on.
    fn begin_sync(&mut self) {
        if self.is_removed() {
            return self.begin_anew();
        }
        let Some(writer) = &self.writer else {
            self.unsynced = None;
            return;
        };
        match self.syncing.begin(writer.syncer(), self.opening()) {
            // While the disk is busy with the last sync, the next one is tried later.
            Some(is_begun) => self.unsynced = (!is_begun).then(Instant::now),
            None => self.sync_without_thread(),
        }
    }

    /// Syncs where the thread that does is gone: what is to be appended waits for it.
    fn sync_without_thread(&mut self) {
        if !std::mem::replace(&mut self.has_no_syncing, true) {
            let message =
                "the thread that syncs the recording failed; the one that appends does it";
            (self.tell)(message);
        }
        self.unsynced = None;
        self.sync();
    }

    /// Syncs, and waits for it.
    fn sync(&mut self) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.sync()
        {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &crate::Error) {
        self.drop_writer();
        if self.failed.replace(Instant::now()).is_none() {
            let message =
                format!("{error}; calls go on, and are not recorded until it works again");
            (self.tell)(&message);
        }
    }

    fn drop_writer(&mut self) {
        self.writer = None;
        self.unsynced = None;
        self.running.values_mut().for_each(|running| running.is_lost = true);
    }

    /// Whether somebody took the file away. Says so, and writes to it no more.
    fn is_removed(&mut self) -> bool {
        let Some(gone) = self.writer.as_ref().filter(|writer| !writer.is_in_place()) else {
            return false;
        };
        let path = gone.path().display();
        let message =
            format!("{path} was removed, moved or replaced while it was written; calls go on");
        self.drop_writer();
        (self.tell)(&message);
        true
    }

    /// Begins a new recording where the file was.
    fn begin_anew(&mut self) {
        match (self.open)() {
            Ok(writer) => self.take_up(writer),
            Err(error) => self.fail(&error),
        }
    }

    /// Opens the recording again after a failure, unless that is too soon.
    fn reopen(&mut self) {
        let is_due = self.failed.is_some_and(|failed| failed.elapsed() >= REOPEN_AFTER);
        if self.writer.is_some() || !is_due {
            return;
        }
        match (self.open)() {
            Ok(writer) => self.take_up(writer),
            Err(_) => self.failed = Some(Instant::now()),
        }
    }

    /// Goes on with a recording that was opened again.
    fn take_up(&mut self, writer: RecordingWriter) {
        // In a file that was removed since, the numbers of its exchanges are those of others.
        let is_gone = |(_, running): &(&u64, &OpenExchange)| !writer.has_earlier(running.id);
        let gone: Vec<u64> = self.running.iter().filter(is_gone).map(|(of, _)| *of).collect();
        self.missed += gone.len() as u64;
        gone.into_iter().for_each(|of| self.forget(of));
        self.writer = Some(writer);
        self.failed = None;
        // Bodies of before may be gone, and none may be stored after them.
        self.shared.opening.fetch_add(1, Ordering::Release);
        let missed = std::mem::take(&mut self.missed);
        let calls = if missed == 1 { "call was" } else { "calls were" };
        (self.tell)(&format!("recording again; {missed} {calls} not recorded"));
    }

    /// Lets an exchange go of which nothing can be written. Nobody waits for it any longer.
    fn forget(&mut self, of: u64) {
        let done = self.running.remove(&of).and_then(|running| running.done);
        if let Some(done) = done {
            self.shared.held.fetch_sub(1, Ordering::Relaxed);
            done();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        sync::{Mutex, mpsc},
    };

    use afterimage_log::{Files, testing::MemoryFiles};

    use super::*;
    use crate::{Error, ErrorKind, Recording, ResponseHead, coding::Effort, packer::Packer};

    struct Bench {
        thread: Thread,
        files: MemoryFiles,
        told: Arc<Mutex<Vec<String>>>,
        _notes: Receiver<Note>,
    }

    fn bench() -> Bench {
        let (files, told) = (MemoryFiles::new(), Arc::new(Mutex::new(Vec::new())));
        let (disk, heard) = (files.clone(), Arc::clone(&told));
        let mut open: Open = Box::new(move || {
            let disk: Arc<dyn Files> = Arc::new(disk.clone());
            Ok(RecordingWriter::open(disk, Path::new("r"))?.0)
        });
        let tell: Tell = Box::new(move |said| heard.lock().unwrap().push(said.to_owned()));
        let (notes, incoming) = mpsc::channel();
        let syncing = Syncing::start(notes).unwrap();
        let writer = open().unwrap();
        let thread = Thread::new(writer, None, open, tell, syncing, Arc::default());
        Bench { thread, files, told, _notes: incoming }
    }

    impl Bench {
        fn start(&mut self, of: u64) {
            self.thread.take(Note::Start(of, Start::now("POST", "p")));
        }

        /// Hands over a request that was packed for an opening; where it was stored.
        fn packed(&mut self, of: u64, opening: u64) -> Placement {
            let body = crate::RequestBody::whole(b"asked");
            let content = Packer::default().pack("p", &body, Effort::Small).content;
            let (stored, wait) = mpsc::channel();
            self.thread.take(Note::Coming(of));
            self.thread.take(Note::Packed(PackedRequest { of, content, opening, stored }));
            wait.recv().unwrap()
        }

        fn fail(&mut self) {
            self.thread.fail(&Error::new(ErrorKind::Io, "the disk is full"));
        }
    }

    #[test]
    fn a_recording_that_failed_is_opened_again_five_seconds_later() {
        assert_eq!(REOPEN_AFTER, Duration::from_secs(5));
        let mut bench = bench();
        bench.fail();
        // However slow the test is, the failure is not five seconds old.
        bench.thread.failed = Instant::now().checked_add(Duration::from_secs(3600));
        bench.start(0);
        assert!(bench.thread.writer.is_none());
        bench.thread.failed = Instant::now().checked_sub(REOPEN_AFTER);
        bench.start(1);
        assert!(bench.thread.writer.is_some());
        let said = bench.told.lock().unwrap().clone();
        assert_eq!(said.last().unwrap(), "recording again; 1 call was not recorded");
    }

    #[test]
    fn a_request_that_was_packed_for_an_earlier_opening_is_asked_for_anew() {
        let mut bench = bench();
        bench.start(0);
        assert!(matches!(bench.packed(0, 0), Placement::At(_)));
        bench.fail();
        bench.thread.failed = Instant::now().checked_sub(REOPEN_AFTER);
        bench.start(1);
        assert_eq!(bench.packed(1, 0), Placement::Anew);
        // Its answer waits until it is stored.
        let (done, wait) = mpsc::channel();
        bench.thread.take(Note::Response(1, ResponseHead::default()));
        let ends = Box::new(move || done.send(()).unwrap());
        bench.thread.take(Note::End(1, End::default(), ends));
        assert!(wait.try_recv().is_err());
        assert!(matches!(bench.packed(1, 1), Placement::At(_)));
        wait.try_recv().unwrap();
        // That of the exchange which was lost with the opening is stored nowhere.
        assert_eq!(bench.packed(0, 0), Placement::Lost);
        let recording = Recording::open_from(&bench.files, "r").unwrap().unwrap();
        let exchange = recording.exchanges().last().unwrap();
        assert_eq!(recording.request(exchange).unwrap().whole(), Some(&b"asked"[..]));
    }
}
