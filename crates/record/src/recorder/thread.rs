use std::{
    collections::HashMap,
    path::PathBuf,
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
use crate::{End, ExchangeId, RecordingWriter, Result, Start, place::Place};

/// What was appended is synced after so long.
const SYNC_AFTER: Duration = Duration::from_secs(1);
/// A recording that failed is opened again after so long.
const REOPEN_AFTER: Duration = Duration::from_secs(5);
const FAILED: &str = "the disk of the recorder failed";

/// The thread that writes a recording.
pub(super) struct Thread {
    /// `None` after a failure.
    writer: Option<RecordingWriter>,
    /// The file that was opened last, also after a failure. `None` once it was taken away.
    place: Option<Place>,
    /// The file that was taken away. `None` once an exchange is begun in another one.
    removed: Option<PathBuf>,
    calls: Calls,
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

/// What the thread calls.
pub(super) struct Calls {
    pub(super) redaction: Option<Redaction>,
    pub(super) is_for_model: fn(&Start) -> bool,
    pub(super) open: Open,
    pub(super) tell: Tell,
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
        calls: Calls,
        syncing: Syncing,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            place: Some(writer.place().clone()),
            writer: Some(writer),
            removed: None,
            calls,
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
        self.lose_removed();
        self.sync();
        match self.removed {
            Some(path) => Closing::Removed(path),
            None if self.has_no_packer => Closing::PackerFailed,
            None => Closing::Done,
        }
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Start(of, start) => {
                let is_for_model = (self.calls.is_for_model)(&start);
                let start = match &mut self.calls.redaction {
                    Some(redaction) => redaction.start(of, start),
                    None => start,
                };
                self.begin(of, &start, is_for_model);
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
                let head = match &mut self.calls.redaction {
                    Some(redaction) => redaction.head(of, head),
                    None => head,
                };
                self.append(of, |writer, id| writer.response(id, &head));
            }
            Note::Part(of, bytes) => match &mut self.calls.redaction {
                Some(redaction) => redaction.part(of, &bytes),
                None => self.append(of, |writer, id| writer.part(id, &bytes)),
            },
            Note::End(of, end, done) => {
                let (parts, end) = match &mut self.calls.redaction {
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
            #[cfg(feature = "wire")]
            Note::Tell(text) => (self.calls.tell)(&text),
            Note::RedactPanicked(place) => (self.calls.tell)(&format!(
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
        (self.calls.tell)(message);
        let is_coming = |(_, running): &(&u64, &OpenExchange)| running.request == Request::Coming;
        let coming: Vec<u64> = self.running.iter().filter(is_coming).map(|(of, _)| *of).collect();
        for of in coming {
            self.settle(of, |running| running.request = Request::Stored);
        }
    }

    fn opening(&self) -> u64 {
        self.shared.opening.load(Ordering::Relaxed)
    }

    fn begin(&mut self, of: u64, start: &Start, is_for_model: bool) {
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
                self.removed = None;
                self.shared.exchanges.fetch_add(1, Ordering::Relaxed);
                self.shared.for_model.fetch_add(is_for_model.into(), Ordering::Relaxed);
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
        if self.tell_removed() {
            return self.begin_anew();
        }
        let Some(writer) = &self.writer else {
            self.unsynced = None;
            return;
        };
        match self.syncing.begin(writer.place().clone(), self.opening()) {
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
            (self.calls.tell)(message);
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
            (self.calls.tell)(&message);
        }
    }

    fn drop_writer(&mut self) {
        self.writer = None;
        self.unsynced = None;
        self.running.values_mut().for_each(|running| running.is_lost = true);
    }

    /// Lets the file go where somebody took it away, with all that is in it. Says whether it was.
    fn lose_removed(&mut self) -> bool {
        let Some(gone) = self.place.take_if(|place| !place.is_in_place()) else { return false };
        self.drop_writer();
        // The numbers of its exchanges are those of others in any other file.
        let running: Vec<u64> = self.running.keys().copied().collect();
        running.into_iter().for_each(|of| self.forget(of));
        self.missed = 0;
        self.shared.exchanges.store(0, Ordering::Relaxed);
        self.shared.for_model.store(0, Ordering::Relaxed);
        self.removed = Some(gone.path().to_owned());
        true
    }

    /// As [`Thread::lose_removed`], and tells of it.
    fn tell_removed(&mut self) -> bool {
        let is_removed = self.lose_removed();
        if let Some(path) = self.removed.as_ref().filter(|_| is_removed) {
            let path = path.display();
            (self.calls.tell)(&format!(
                "{path} was removed, moved or replaced while it was written; calls go on"
            ));
        }
        is_removed
    }

    /// Begins a new recording where the file was.
    fn begin_anew(&mut self) {
        match (self.calls.open)() {
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
        self.tell_removed();
        match (self.calls.open)() {
            Ok(writer) => self.take_up(writer),
            Err(_) => self.failed = Some(Instant::now()),
        }
    }

    /// Goes on with a recording that was opened again.
    fn take_up(&mut self, writer: RecordingWriter) {
        // A file that was cut since holds other exchanges under these numbers.
        let is_gone = |(_, running): &(&u64, &OpenExchange)| !writer.has_earlier(running.id);
        let gone: Vec<u64> = self.running.iter().filter(is_gone).map(|(of, _)| *of).collect();
        self.missed += gone.len() as u64;
        gone.into_iter().for_each(|of| self.forget(of));
        let message = self.of_new_recording(&writer);
        self.place = Some(writer.place().clone());
        self.writer = Some(writer);
        self.failed = None;
        // Bodies of before may be gone, and none may be stored after them.
        self.shared.opening.fetch_add(1, Ordering::Release);
        self.missed = 0;
        (self.calls.tell)(&message);
    }

    /// What is told of a recording that was opened again.
    fn of_new_recording(&self, writer: &RecordingWriter) -> String {
        let path = writer.place().path().display();
        // Nobody knows how many calls the one held that was taken away.
        if self.removed.is_some() && writer.has_any_earlier() {
            return format!("recording goes on in {path}; calls before this are not added to it");
        }
        if self.removed.is_some() {
            return format!("a new recording begins in {path}; calls before this are not in it");
        }
        let missed = self.missed;
        let calls = if missed == 1 { "call was" } else { "calls were" };
        format!("recording again; {missed} {calls} not recorded")
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
        fs,
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
        let files = MemoryFiles::new();
        let disk = files.clone();
        bench_with(files, move || {
            let disk: Arc<dyn Files> = Arc::new(disk.clone());
            Ok(RecordingWriter::open(disk, Path::new("r"))?.0)
        })
    }

    fn bench_in(folder: &Path) -> Bench {
        let folder = folder.to_owned();
        bench_with(MemoryFiles::new(), move || Ok(RecordingWriter::open_private(&folder)?.0))
    }

    fn bench_with(
        files: MemoryFiles,
        open: impl FnMut() -> Result<RecordingWriter> + Send + 'static,
    ) -> Bench {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let mut open: Open = Box::new(open);
        let tell: Tell = Box::new(move |said| heard.lock().unwrap().push(said.to_owned()));
        let (notes, incoming) = mpsc::channel();
        let syncing = Syncing::start(notes).unwrap();
        let writer = open().unwrap();
        let calls = Calls { redaction: None, is_for_model: Start::is_for_model, open, tell };
        let thread = Thread::new(writer, calls, syncing, Arc::default());
        Bench { thread, files, told, _notes: incoming }
    }

    impl Bench {
        fn start(&mut self, of: u64) {
            self.thread.take(Note::Start(of, Start::now("POST", "p")));
        }

        /// Hands over a request that was packed for an opening; where it was stored.
        fn packed(&mut self, of: u64, opening: u64) -> Placement {
            let body = crate::RequestBody::whole(b"asked");
            let content = Packer::default().pack("p", &body, Effort::Smallest).content;
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

    #[test]
    fn a_file_in_the_place_of_the_folder_is_told_of_once_until_a_new_recording_begins() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("r");
        let mut bench = bench_in(&folder);
        bench.start(0);
        fs::remove_dir_all(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        bench.thread.begin_sync();
        for of in 1..4 {
            bench.thread.failed = Instant::now().checked_sub(REOPEN_AFTER);
            bench.start(of);
        }
        let said = bench.told.lock().unwrap().clone();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("was removed, moved or replaced"), "{said:?}");
        assert!(said[1].contains("cannot create the directory"), "{said:?}");
        assert!(said[1].contains("not recorded until it works again"), "{said:?}");
        fs::remove_file(&folder).unwrap();
        bench.thread.failed = Instant::now().checked_sub(REOPEN_AFTER);
        bench.start(4);
        let said = bench.told.lock().unwrap().clone();
        let begins = "a new recording begins in ";
        assert!(said.len() == 3 && said[2].starts_with(begins), "{said:?}");
        assert!(said[2].ends_with("wire.rec; calls before this are not in it"), "{said:?}");
        let recording = Recording::open(&folder).unwrap().unwrap();
        assert_eq!(recording.exchanges().len(), 1);
        assert_eq!(bench.thread.shared.exchanges.load(Ordering::Relaxed), 1);
    }

    /// Exchanges of somebody else, each without an end.
    fn other_recording(folder: &Path, count: usize) {
        let (mut writer, _) = RecordingWriter::open_private(folder).unwrap();
        for _ in 0..count {
            writer.start(&Start::now("POST", "other")).unwrap();
        }
    }

    #[test]
    fn nothing_is_appended_to_the_exchanges_of_a_recording_that_took_the_place() {
        // It is noticed by a sync, or when the recording is opened again after a failure.
        for fails in [false, true] {
            let scratch = tempfile::tempdir().unwrap();
            let [folder, other] = ["r", "other"].map(|name| scratch.path().join(name));
            other_recording(&other, 5);
            let mut bench = bench_in(&folder);
            bench.start(0);
            if fails {
                bench.fail();
            }
            fs::rename(&folder, scratch.path().join("moved")).unwrap();
            fs::rename(&other, &folder).unwrap();
            if fails {
                bench.thread.failed = Instant::now().checked_sub(REOPEN_AFTER);
                bench.start(1);
            } else {
                bench.thread.begin_sync();
            }
            bench.thread.take(Note::Response(0, ResponseHead::default()));
            bench.thread.take(Note::Part(0, b"foreign".to_vec()));
            let (done, wait) = mpsc::channel();
            let ends = Box::new(move || done.send(()).unwrap());
            bench.thread.take(Note::End(0, End::default(), ends));
            wait.try_recv().unwrap();
            let recording = Recording::open(&folder).unwrap().unwrap();
            for exchange in recording.exchanges().iter().take(5) {
                assert!(exchange.response.is_none() && exchange.end.is_none(), "{exchange:?}");
            }
            let said = bench.told.lock().unwrap().last().unwrap().clone();
            assert!(said.starts_with("recording goes on in "), "{said}");
            assert_eq!(recording.exchanges().len(), 5 + usize::from(fails));
        }
    }
}
