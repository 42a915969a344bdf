//! A writer on threads of its own, for those who pass bytes on and wait for nothing.

mod packing;
mod redaction;
mod request;
mod response;
mod syncing;
mod thread;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    time::Duration,
};

use self::{
    packing::{Pack, PackedRequest, RequestToPack, Shared},
    redaction::{CaughtRedact, Redaction},
    syncing::Syncing,
    thread::{Calls, Thread},
};
pub use self::{redaction::Redact, request::RequestRecorder, response::ResponseRecorder};
use crate::{
    End, Error, ErrorKind, MOST_STORED, RecordingWriter, ResponseHead, Result, Start,
    writer::StreamedEnd,
};

/// So many bytes may wait for the disk, those of requests that still come in among them. What comes
/// then is not recorded.
const MOST_WAITING: usize = 256 << 20;
/// A disk has so long to take what waits when the recorder ends.
const LAST: Duration = Duration::from_secs(10);

/// How much of a body is stored. A longer one is stored cut, and marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of a request.
    pub request: u64,
    /// Of a response.
    pub response: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { request: MOST_STORED, response: MOST_STORED }
    }
}

/// What a recorder is started with.
pub struct RecorderOptions {
    /// How much of a body is stored.
    pub limits: Limits,
    /// Takes secrets out of all that is written; see [`Recorder::start_redacting`].
    pub redact: Option<Box<dyn Redact>>,
    /// Counts an exchange as a model request where it says so; see
    /// [`Recorder::exchanges_for_model`].
    pub is_for_model: fn(&Start) -> bool,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), redact: None, is_for_model: Start::is_for_model }
    }
}

impl fmt::Debug for RecorderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecorderOptions")
            .field("limits", &self.limits)
            .field("redacts", &self.redact.is_some())
            .finish_non_exhaustive()
    }
}

/// A recording that is written on threads of its own.
///
/// No method but [`Recorder::finish`] waits for the disk. What could not be written is told to the
/// function that was given, once, and the exchanges that it is missing from are marked as cut. The
/// recorder then opens the recording anew, every few seconds at most.
///
/// One thread appends, one packs the bodies of requests, one syncs. Answers are written as they come.
/// So are requests of more than 16 MiB, and those of more than 64 KiB while 128 MiB wait; shorter ones
/// are held until they can be packed. At most 256 MiB of bodies wait for the threads; what comes then
/// is passed over, and marked.
#[derive(Debug)]
pub struct Recorder {
    line: Line,
    limits: Limits,
    shared: Arc<Shared>,
    /// Nothing is sent there: it closes when the last thread has ended.
    ended: Mutex<Option<Receiver<Closing>>>,
}

/// Said by a thread that ended as it should.
#[derive(PartialEq, Eq)]
enum Closing {
    Done,
    /// The thread that packs requests failed.
    PackerFailed,
    /// The file at this path was removed, and no exchange was recorded there since.
    Removed(PathBuf),
}

/// The way to the threads.
#[derive(Clone, Debug)]
struct Line {
    notes: Sender<Note>,
    to_pack: Sender<Option<RequestToPack>>,
    waiting: Arc<AtomicUsize>,
    next: Arc<AtomicU64>,
    /// Whether a long request is written as it comes. One that is redacted has to be whole before.
    can_stream: bool,
}

/// Called when an exchange is in the hands of the system.
type Done = Box<dyn FnOnce() + Send>;
/// Opens the recording, at first and after it failed.
type Open = Box<dyn FnMut() -> Result<RecordingWriter> + Send>;
/// Told what could not be recorded.
type Tell = Box<dyn FnMut(&str) + Send>;

/// What the thread is told.
enum Note {
    Start(u64, Start),
    /// The request has come to its end, and is packed now.
    Coming(u64),
    Packed(PackedRequest),
    /// A part of a request that is too long to be held.
    RequestPart(u64, Vec<u8>),
    /// The end of such a request.
    RequestEnd(u64, StreamedEnd),
    Response(u64, ResponseHead),
    Part(u64, Vec<u8>),
    End(u64, End, Done),
    /// A sync failed, of the opening with this number.
    NotSynced(u64, Error),
    /// The thread that syncs ended before its time.
    SyncingFailed,
    /// The thread that packs requests ended before its time.
    PackerFailed,
    /// What is to be told.
    #[cfg(feature = "wire")]
    Tell(String),
    /// A caller's [`Redact`] panicked, at this place.
    RedactPanicked(String),
    Stop,
}

impl Note {
    /// What is counted while it waits. Requests that are held are counted until they are packed.
    fn size(&self) -> usize {
        match self {
            Self::Part(_, bytes) | Self::RequestPart(_, bytes) => bytes.len(),
            _ => 0,
        }
    }
}

impl Line {
    /// Hands a note over; false where too much waits already.
    fn send(&self, note: Note) -> bool {
        let size = note.size();
        if size > 0 && self.waiting.load(Ordering::Relaxed) > MOST_WAITING {
            return false;
        }
        self.waiting.fetch_add(size, Ordering::Relaxed);
        self.notes.send(note).is_ok()
    }
}

impl Recorder {
    /// Starts the threads. `open` opens the recording, now and after a failure; `tell` is told of
    /// failures.
    ///
    /// # Errors
    /// Those of `open` at first, and [`ErrorKind::Io`] where the system starts no thread.
    pub fn start(
        limits: Limits,
        open: impl FnMut() -> Result<RecordingWriter> + Send + 'static,
        tell: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self> {
        Self::start_with(RecorderOptions { limits, ..RecorderOptions::default() }, open, tell)
    }

    /// As [`Recorder::start`]; what is written is redacted before. Answers are held in memory until
    /// their ends, all together up to 256 MiB, and so are requests. What cannot be unpacked, or is no
    /// text, is left out, and the exchange says so. So is a text at which `by` panics, and `tell` is
    /// told of the first one.
    ///
    /// # Errors
    /// Those of [`Recorder::start`].
    pub fn start_redacting(
        limits: Limits,
        by: Box<dyn Redact>,
        open: impl FnMut() -> Result<RecordingWriter> + Send + 'static,
        tell: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self> {
        let options = RecorderOptions { limits, redact: Some(by), ..RecorderOptions::default() };
        Self::start_with(options, open, tell)
    }

    /// As [`Recorder::start`], with all that can be chosen.
    ///
    /// # Errors
    /// Those of [`Recorder::start`].
    pub fn start_with(
        options: RecorderOptions,
        open: impl FnMut() -> Result<RecordingWriter> + Send + 'static,
        tell: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self> {
        Self::start_threads(options, Box::new(open), Box::new(tell), packing::pack)
    }

    fn start_threads(
        options: RecorderOptions,
        mut open: Open,
        tell: Tell,
        pack: Pack,
    ) -> Result<Self> {
        let RecorderOptions { limits, redact: by, is_for_model } = options;
        let writer = open()?;
        let shared = Arc::new(Shared::default());
        let waiting = Arc::clone(&shared.waiting);
        let (notes, incoming) = mpsc::channel();
        let (to_pack, to_be_packed) = mpsc::channel();
        let (closing, ended) = mpsc::channel();
        let syncing = Syncing::start(notes.clone())?;
        let by = by.map(|by| Arc::new(CaughtRedact::new(by, notes.clone(), Arc::clone(&shared))));
        let can_stream = by.is_none();
        let redaction = by.clone().map(Redaction::new);
        let calls = Calls { redaction, is_for_model, open, tell };
        let thread = Thread::new(writer, calls, syncing, Arc::clone(&shared));
        spawn("recorder", move || {
            let _ = closing.send(thread.run(&incoming));
        })?;
        let (packed, of_packer) = (notes.clone(), Arc::clone(&shared));
        spawn("recorder-pack", move || {
            packing::run(pack, &to_be_packed, &packed, &of_packer, by.as_deref());
        })?;
        let line = Line { notes, to_pack, waiting, next: Arc::default(), can_stream };
        Ok(Self { line, limits, shared, ended: Mutex::new(Some(ended)) })
    }

    /// Begins an exchange. Of one whose recorders are dropped before their ends, what is missing is
    /// marked. O(its headers); the disk is written by another thread.
    pub fn exchange(&self, start: Start) -> (RequestRecorder, ResponseRecorder) {
        let of = self.line.next.fetch_add(1, Ordering::Relaxed);
        let lane = Arc::from(start.provider.as_str());
        let coding = start.content_encoding().filter(|_| !start.is_websocket);
        self.line.send(Note::Start(of, start));
        let line = self.line.clone();
        let request = RequestRecorder::new(line, of, lane, coding, self.limits.request);
        (request, ResponseRecorder::new(self.line.clone(), of, self.limits.response))
    }

    /// Tells the function that was given. O(1).
    #[cfg(feature = "wire")]
    pub(crate) fn tell(&self, text: String) {
        self.line.send(Note::Tell(text));
    }

    /// How much of a body is stored.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// How many exchanges of this recorder are in the recording. What began a moment ago is counted
    /// by [`Recorder::finish`] at the latest. A recording that is removed takes its count with it.
    pub fn exchanges(&self) -> u64 {
        self.shared.exchanges.load(Ordering::Relaxed)
    }

    /// How many of [`Recorder::exchanges`] asked a model: see [`RecorderOptions::is_for_model`].
    pub fn exchanges_for_model(&self) -> u64 {
        self.shared.for_model.load(Ordering::Relaxed)
    }

    /// Writes what waits, syncs it, and ends the threads. Dropping does the same.
    ///
    /// Waits ten seconds at most, and ten more where something is redacted: bodies that are not by
    /// then are left out, and their exchanges say so. Does nothing the second time.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] where redacting took longer. [`ErrorKind::Io`] where writing did: the last
    /// exchanges may be missing.
    /// [`ErrorKind::Other`] where a thread ended too early. [`ErrorKind::Removed`] where the recording
    /// was removed, moved or replaced, and no exchange was recorded in its place since.
    pub fn finish(&self) -> Result<()> {
        self.finish_within(LAST)
    }

    /// As [`Recorder::finish`], with another time for redaction.
    fn finish_within(&self, time: Duration) -> Result<()> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ended) = ended else { return Ok(()) };
        if self.line.to_pack.send(None).is_err() {
            // What packs has ended: the writer is to end nevertheless.
            self.line.send(Note::Stop);
        }
        let mut closing = ended.recv_timeout(time);
        if !self.line.can_stream && closing == Err(RecvTimeoutError::Timeout) {
            self.shared.is_late.store(true, Ordering::Relaxed);
            closing = ended.recv_timeout(LAST);
        }
        let left_out = self.shared.left_out.load(Ordering::Relaxed);
        let begun = self.line.next.load(Ordering::Relaxed);
        let (kind, message) = match closing {
            Ok(Closing::Done) if left_out == 0 => return Ok(()),
            Ok(Closing::Done) => (
                ErrorKind::Limit,
                format!(
                    "redacting took longer than {} s: {left_out} of the last bodies are left out, and \
                     their exchanges say so",
                    LAST.as_secs()
                ),
            ),
            Ok(Closing::PackerFailed) => (
                ErrorKind::Other,
                "a thread of the recorder failed: requests are missing".to_owned(),
            ),
            Ok(Closing::Removed(path)) => (
                ErrorKind::Removed,
                format!(
                    "{} was removed, moved or replaced while it was written: no call is recorded \
                     there",
                    path.display()
                ),
            ),
            Err(RecvTimeoutError::Timeout) => (
                ErrorKind::Io,
                format!(
                    "writing took longer than {} s: {} of {begun} exchanges are missing from the \
                     recording, and the last ones in it may be cut",
                    LAST.as_secs(),
                    begun.saturating_sub(self.exchanges())
                ),
            ),
            Err(RecvTimeoutError::Disconnected) => (
                ErrorKind::Other,
                "a thread of the recorder failed: the last exchanges are missing".to_owned(),
            ),
        };
        Err(Error::new(kind, message))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map(drop).map_err(|error| Error::io(error, "cannot start a thread"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, Recording};

    /// Redacts nothing until the recorder has no more time.
    struct Slow(Receiver<Arc<Shared>>);

    impl Redact for Slow {
        fn line(&mut self, text: &str) -> String {
            text.to_owned()
        }

        fn body(&mut self, text: &str, _: &str) -> String {
            if text == "slow" {
                let shared = self.0.recv().unwrap();
                while !shared.is_late.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
            text.to_owned()
        }

        fn broken(&mut self, _: &str, _: &str) -> Option<String> {
            None
        }
    }

    #[test]
    fn what_there_is_no_time_to_redact_is_recorded_as_left_out() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().to_owned();
        let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
        let (hand, shared) = mpsc::sync_channel(0);
        let redact = Some(Box::new(Slow(shared)) as Box<dyn Redact>);
        let options = RecorderOptions { redact, ..RecorderOptions::default() };
        let recorder = Recorder::start_with(options, open, |said| panic!("{said}")).unwrap();
        for answer in ["slow", "next", "last"] {
            let (mut request, mut response) = recorder.exchange(Start::now("POST", "p"));
            request.end();
            response.head(200, Vec::new());
            response.push(answer.as_bytes());
            response.end(None, || {});
        }
        hand.send(Arc::clone(&recorder.shared)).unwrap();
        let error = recorder.finish_within(Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.message().contains(" of the last bodies are left out"), "{error}");
        let recording = Recording::open(scratch.path()).unwrap().unwrap();
        let [slow, others @ ..] = recording.exchanges() else { panic!() };
        assert_eq!(recording.response(slow).unwrap().whole(), Some(&b"slow"[..]));
        assert_eq!((others.len(), recorder.exchanges()), (2, 3));
        for exchange in others {
            let reason = "the answer could not be redacted, and was left out".to_owned();
            assert_eq!(exchange.outcome(), Outcome::Cut { reason });
        }
    }

    #[test]
    fn transparent_without_the_thread_that_packs_answers_wait_no_longer_and_are_recorded() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, told) = (scratch.path().to_owned(), Arc::new(Mutex::new(Vec::new())));
        let open = Box::new(move || Ok(RecordingWriter::open_private(&folder)?.0));
        let heard = Arc::clone(&told);
        let tell = Box::new(move |said: &str| heard.lock().unwrap().push(said.to_owned()));
        let fails: Pack = |incoming, _, _, _| {
            let _request = incoming.recv();
            panic!("the thread that packs fails");
        };
        let recorder =
            Recorder::start_threads(RecorderOptions::default(), open, tell, fails).unwrap();
        for _ in 0..3 {
            let (mut request, mut response) = recorder.exchange(Start::now("POST", "p"));
            request.push(b"asked");
            request.end();
            response.head(200, Vec::new());
            response.push(b"answered");
            let (done, wait) = mpsc::channel();
            response.end(None, move || done.send(()).unwrap());
            wait.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        let error = recorder.finish().unwrap_err();
        // What came after the failure is held by nobody.
        assert_eq!(recorder.line.waiting.load(Ordering::Relaxed), 0);
        assert!(error.message().contains("requests are missing"), "{error}");
        let said = told.lock().unwrap().clone();
        assert!(matches!(said.as_slice(), [one] if one.contains("thread of the recorder failed")));
        let recording = Recording::open(scratch.path()).unwrap().unwrap();
        assert_eq!(recording.exchanges().len(), 3);
        for exchange in recording.exchanges() {
            assert_eq!(exchange.request_cut(), Some("no request body was recorded"));
            assert!(matches!(exchange.outcome(), Outcome::Cut { .. }));
            assert_eq!(recording.response(exchange).unwrap().whole(), Some(&b"answered"[..]));
        }
    }
}
