//! A writer on a thread of its own, for those who pass bytes on and wait for nothing.

mod redaction;
mod thread;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

pub use self::redaction::Redact;
use self::{redaction::Redaction, thread::Thread};
use crate::{End, RecordingWriter, ResponseHead, Result, Start};

/// A part of a response is handed over when it has so many bytes,
const PART: usize = 64 << 10;
/// or when its first byte is so old and another comes.
const PART_AGE: Duration = Duration::from_secs(1);
/// So many bytes may wait for the disk. What comes then is not recorded.
const MOST_WAITING: usize = 256 << 20;

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
        Self { request: crate::MOST_STORED, response: crate::MOST_STORED }
    }
}

/// A recording that is written on a thread of its own.
///
/// No method waits for the disk, and none fails: what could not be written is told to the function
/// that was given, once, and the exchanges that it is missing from are marked as cut. The recorder
/// then opens the recording anew, every few seconds at most.
#[derive(Debug)]
pub struct Recorder {
    line: Line,
    limits: Limits,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The way to the thread.
#[derive(Clone, Debug)]
struct Line {
    notes: Sender<Note>,
    waiting: Arc<AtomicUsize>,
    next: Arc<AtomicU64>,
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
    Request { of: u64, lane: Arc<str>, bytes: Vec<u8>, total: u64, ended: bool },
    Response(u64, ResponseHead),
    Part(u64, Vec<u8>),
    End(u64, End, Done),
    Stop,
}

impl Note {
    fn size(&self) -> usize {
        match self {
            Self::Request { bytes, .. } | Self::Part(_, bytes) => bytes.len(),
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
    /// Starts the thread. `open` opens the recording, now and after a failure; `tell` is told of
    /// failures.
    ///
    /// # Errors
    /// Those of `open` at first, and [`ErrorKind::Io`](crate::ErrorKind::Io) where the system starts
    /// no thread.
    pub fn start(
        limits: Limits,
        open: impl FnMut() -> Result<RecordingWriter> + Send + 'static,
        tell: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self> {
        Self::start_with(limits, None, Box::new(open), Box::new(tell))
    }

    /// As [`Recorder::start`]; what is written is redacted before. Answers are held in memory until
    /// their ends, all together up to 256 MiB. What cannot be unpacked, or is no text, is left out, and
    /// the exchange says so.
    ///
    /// # Errors
    /// Those of [`Recorder::start`].
    pub fn start_redacting(
        limits: Limits,
        by: Box<dyn Redact>,
        open: impl FnMut() -> Result<RecordingWriter> + Send + 'static,
        tell: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self> {
        Self::start_with(limits, Some(Redaction::new(by)), Box::new(open), Box::new(tell))
    }

    fn start_with(
        limits: Limits,
        redaction: Option<Redaction>,
        mut open: Open,
        tell: Tell,
    ) -> Result<Self> {
        let writer = open()?;
        let (notes, incoming) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let thread = Thread::new(writer, redaction, open, tell, Arc::clone(&waiting));
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || thread.run(&incoming))
            .map_err(|error| crate::Error::io(error, "cannot start a thread"))?;
        let line = Line { notes, waiting, next: Arc::default() };
        Ok(Self { line, limits, thread: Mutex::new(Some(thread)) })
    }

    /// Begins an exchange. Of one whose recorders are dropped before their ends, what is missing is
    /// marked.
    pub fn exchange(&self, start: Start) -> (RequestRecorder, ResponseRecorder) {
        let of = self.line.next.fetch_add(1, Ordering::Relaxed);
        let lane = Arc::from(start.provider.as_str());
        self.line.send(Note::Start(of, start));
        let (line, began) = (self.line.clone(), Instant::now());
        let request = RequestRecorder {
            line: line.clone(),
            of,
            lane,
            most: usize::try_from(self.limits.request).unwrap_or(usize::MAX),
            bytes: Vec::new(),
            total: 0,
            is_sent: false,
        };
        let response = ResponseRecorder {
            line,
            of,
            began,
            most: self.limits.response,
            part: Vec::new(),
            part_began: began,
            total: 0,
            stored: 0,
            is_behind: false,
            is_ended: false,
        };
        (request, response)
    }

    /// How much of a body is stored.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// How many exchanges began.
    pub fn exchanges(&self) -> u64 {
        self.line.next.load(Ordering::Relaxed)
    }

    /// Writes what waits, syncs it, and ends the thread. Dropping does the same.
    pub fn finish(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            self.line.send(Note::Stop);
            let _ = thread.join();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Takes the body of a request as it passes.
#[derive(Debug)]
pub struct RequestRecorder {
    line: Line,
    of: u64,
    lane: Arc<str>,
    most: usize,
    bytes: Vec<u8>,
    total: u64,
    is_sent: bool,
}

impl RequestRecorder {
    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.most.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Counts bytes that nobody kept: the body is stored cut.
    #[cfg(feature = "wire")]
    pub(crate) fn push_unseen(&mut self, count: u64) {
        self.total += count;
    }

    /// The body came to its end. Says whether this was not known before.
    pub fn end(&mut self) -> bool {
        self.send(true)
    }

    fn send(&mut self, ended: bool) -> bool {
        if std::mem::replace(&mut self.is_sent, true) {
            return false;
        }
        let (lane, bytes) = (Arc::clone(&self.lane), std::mem::take(&mut self.bytes));
        let (of, total) = (self.of, self.total);
        // A body that the disk is too slow for is missing, and the reader says so.
        self.line.send(Note::Request { of, lane, bytes, total, ended });
        true
    }
}

impl Drop for RequestRecorder {
    fn drop(&mut self) {
        self.send(false);
    }
}

/// Takes a response as it passes.
#[derive(Debug)]
pub struct ResponseRecorder {
    line: Line,
    of: u64,
    began: Instant,
    most: u64,
    part: Vec<u8>,
    part_began: Instant,
    total: u64,
    stored: u64,
    is_behind: bool,
    is_ended: bool,
}

impl ResponseRecorder {
    /// Takes what comes before the body.
    pub fn head(&mut self, status: u16, headers: Vec<(String, String)>) {
        let after_ms = self.elapsed();
        self.line.send(Note::Response(self.of, ResponseHead { status, after_ms, headers }));
    }

    /// Takes the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = usize::try_from(self.most.saturating_sub(self.stored)).unwrap_or(usize::MAX);
        let kept = bytes.get(..room).unwrap_or(bytes);
        if self.is_behind || kept.is_empty() {
            return;
        }
        let now = Instant::now();
        if self.part.is_empty() {
            self.part_began = now;
        }
        self.part.extend_from_slice(kept);
        self.stored += kept.len() as u64;
        if self.part.len() >= PART || now.duration_since(self.part_began) >= PART_AGE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.part.is_empty() {
            return;
        }
        let part = std::mem::take(&mut self.part);
        self.is_behind |= !self.line.send(Note::Part(self.of, part));
    }

    /// The response came to its end, or broke off for this reason. `done` is called when that is in
    /// the hands of the system, or never will be. Does nothing the second time.
    pub fn end(&mut self, cut: Option<&str>, done: impl FnOnce() + Send + 'static) {
        if std::mem::replace(&mut self.is_ended, true) {
            return done();
        }
        self.flush();
        let behind = self.is_behind.then_some("the disk was slower than the answers");
        let end = End {
            after_ms: self.elapsed(),
            bytes: self.total,
            stored: self.stored,
            cut: behind.or(cut).map(str::to_owned),
        };
        self.line.send(Note::End(self.of, end, Box::new(done)));
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for ResponseRecorder {
    fn drop(&mut self) {
        self.end(Some("the client went away"), || {});
    }
}
