use std::{
    any::Any,
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
};

use afterimage_json::most_unpacked;

use super::{
    MOST_WAITING, Note,
    packing::{RequestToPack, Shared},
    response::PART,
};
use crate::{End, MOST_STORED, ResponseHead, Start, reader::TOO_LONG, unpacked_start};

/// What is said of an answer that is not written.
const LEFT_OUT: &str = "the answer could not be redacted, and was left out";

/// What stands in the place of a line that could not be redacted.
const NO_LINE: &str = "[left out]";

/// Takes secrets out of what is to be written.
///
/// A call that panics is caught: its text is left out and nothing of it written. Later calls are made
/// all the same.
pub trait Redact: Send {
    /// A line without its secrets: of a header, or of a path.
    fn line(&mut self, text: &str) -> String;

    /// A body of a request or an answer without its secrets, JSON or a stream of events. `place` says
    /// which one it is.
    fn body(&mut self, text: &str, place: &str) -> String;

    /// As [`Redact::body`], of an answer that broke off: as far as no secret can be cut in it. `None`
    /// where that is nowhere.
    fn broken(&mut self, text: &str, place: &str) -> Option<String>;
}

/// What redacts requests and answers, so that a secret has one placeholder in both.
pub(super) struct CaughtRedact {
    by: Mutex<Box<dyn Redact>>,
    /// Whether a panic was told of.
    has_told: AtomicBool,
    notes: Sender<Note>,
    shared: Arc<Shared>,
}

impl CaughtRedact {
    pub(super) fn new(by: Box<dyn Redact>, notes: Sender<Note>, shared: Arc<Shared>) -> Self {
        Self { by: Mutex::new(by), has_told: AtomicBool::new(false), notes, shared }
    }

    /// Whether there is time for one more body; else it is left out, and counted.
    fn has_time(&self) -> bool {
        let is_late = self.shared.is_late.load(Ordering::Relaxed);
        self.shared.left_out.fetch_add(is_late.into(), Ordering::Relaxed);
        !is_late
    }

    /// What a call gives; `None` where it panics, which is told of once.
    fn call<T>(&self, place: &str, call: impl FnOnce(&mut dyn Redact) -> T) -> Option<T> {
        let mut by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        let called = catch_unwind(AssertUnwindSafe(|| call(&mut **by)));
        drop(by);
        called.map_err(|panic| self.tell(place, &*panic)).ok()
    }

    fn tell(&self, place: &str, panic: &(dyn Any + Send)) {
        if self.has_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("it does not say why");
        let _ = self.notes.send(Note::RedactPanicked(format!("{place}: {text}")));
    }

    fn line(&self, text: &str) -> String {
        self.call("a line", |by| by.line(text)).unwrap_or_else(|| NO_LINE.to_owned())
    }

    /// A request as it may be written: without its secrets, or, where that cannot be, without its
    /// bytes, so that the reader sees that of so many none is stored.
    pub(super) fn request(&self, request: RequestToPack) -> RequestToPack {
        let RequestToPack { of, lane, coding, bytes, total, ended, since, lease } = request;
        let is_whole = ended && total == bytes.len() as u64;
        let can_read = is_whole && self.has_time();
        let text = can_read.then(|| text(bytes, coding.as_deref())).flatten();
        let place = place(of, "request");
        let redacted = text.and_then(|text| self.call(&place, |by| by.body(&text, &place)));
        let bytes = redacted.and_then(stored);
        let total = bytes.as_ref().map_or(total, |bytes| bytes.len() as u64);
        let bytes = bytes.unwrap_or_default();
        RequestToPack { of, lane, coding: None, bytes, total, ended, since, lease }
    }
}

/// Holds answers until they can be redacted.
pub(super) struct Redaction {
    by: Arc<CaughtRedact>,
    held: HashMap<u64, PendingAnswer>,
    /// How many bytes are held.
    bytes: usize,
}

/// An exchange whose answer is still to come.
#[derive(Default)]
struct PendingAnswer {
    response_coding: Option<String>,
    response: Vec<u8>,
    /// Too much was held already.
    is_lost: bool,
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Redaction {
    pub(super) fn new(by: Arc<CaughtRedact>) -> Self {
        Self { by, held: HashMap::new(), bytes: 0 }
    }

    pub(super) fn start(&mut self, of: u64, mut start: Start) -> Start {
        self.held.insert(of, PendingAnswer::default());
        start.path = self.by.line(&start.path);
        self.headers(&mut start.headers);
        Start { is_redacted: true, ..start }
    }

    pub(super) fn head(&mut self, of: u64, mut head: ResponseHead) -> ResponseHead {
        if let Some(held) = self.held.get_mut(&of) {
            held.response_coding = head.content_encoding();
        }
        self.headers(&mut head.headers);
        head
    }

    fn headers(&mut self, headers: &mut [(String, String)]) {
        for (_, value) in headers {
            *value = self.by.line(value);
        }
    }

    /// Keeps a part of an answer until its end.
    pub(super) fn part(&mut self, of: u64, bytes: &[u8]) {
        let Some(held) = self.held.get_mut(&of).filter(|held| !held.is_lost) else { return };
        if self.bytes.saturating_add(bytes.len()) > MOST_WAITING {
            held.is_lost = true;
            self.bytes -= std::mem::take(&mut held.response).len();
            return;
        }
        self.bytes += bytes.len();
        held.response.extend_from_slice(bytes);
    }

    /// An answer as it may be written, in parts, and its end.
    pub(super) fn end(&mut self, of: u64, end: End) -> (Vec<Vec<u8>>, End) {
        let Some(held) = self.held.remove(&of) else { return (Vec::new(), end) };
        let PendingAnswer { response_coding: coding, response: bytes, is_lost } = held;
        self.bytes -= bytes.len();
        let is_stored = !is_lost && end.stored == bytes.len() as u64;
        let is_whole = end.cut.is_none() && end.stored == end.bytes;
        let place = place(of, "response");
        let redacted = match is_whole {
            _ if !is_stored || !self.by.has_time() => None,
            true => text(bytes, coding.as_deref())
                .and_then(|text| self.by.call(&place, |by| by.body(&text, &place))),
            false => text_start(bytes, coding.as_deref())
                .and_then(|text| self.by.call(&place, |by| by.broken(&text, &place)).flatten()),
        };
        let Some(redacted) = redacted.and_then(stored) else {
            let cut =
                end.cut.map_or_else(|| LEFT_OUT.to_owned(), |cut| format!("{cut}; {LEFT_OUT}"));
            return (Vec::new(), End { stored: 0, cut: Some(cut), ..end });
        };
        let length = redacted.len() as u64;
        let too_long = (end.stored < end.bytes).then(|| TOO_LONG.to_owned());
        let end = End { bytes: length, stored: length, cut: end.cut.or(too_long), ..end };
        (redacted.chunks(PART).map(<[u8]>::to_vec).collect(), end)
    }
}

/// What is stored of a redacted body: all of it, or nothing where it is too long, as placeholders may
/// make it.
fn stored(redacted: String) -> Option<Vec<u8>> {
    (redacted.len() as u64 <= MOST_STORED).then(|| redacted.into_bytes())
}

fn place(of: u64, what: &str) -> String {
    format!("exchange {}, {what}", of + 1)
}

/// The text of a body; `None` where it has none, or unpacks to more than is read.
fn text(bytes: Vec<u8>, coding: Option<&str>) -> Option<String> {
    let (bytes, broken) = unpacked_body(bytes, coding)?;
    String::from_utf8(bytes).ok().filter(|_| !broken)
}

/// The text of a body that broke off, as far as it can be read.
fn text_start(bytes: Vec<u8>, coding: Option<&str>) -> Option<String> {
    let (bytes, _) = unpacked_body(bytes, coding)?;
    String::from_utf8(bytes).or_else(whole_chars).ok()
}

/// The bytes of a body as far as they unpack, and whether they break off. What a reader of the
/// recording would not unpack is not redacted either.
fn unpacked_body(bytes: Vec<u8>, coding: Option<&str>) -> Option<(Vec<u8>, bool)> {
    let Some(coding) = coding.filter(|_| !bytes.is_empty()) else { return Some((bytes, false)) };
    let most = MOST_STORED.min(most_unpacked(bytes.len()) as u64);
    let (bytes, broken) = unpacked_start(bytes, coding, most).ok()?;
    Some((bytes, broken.is_some()))
}

/// The text without the character that was cut at its end.
fn whole_chars(error: std::string::FromUtf8Error) -> Result<String, std::string::FromUtf8Error> {
    let cut = error.utf8_error();
    if cut.error_len().is_some() {
        return Err(error);
    }
    let mut bytes = error.into_bytes();
    bytes.truncate(cut.valid_up_to());
    String::from_utf8(bytes)
}
