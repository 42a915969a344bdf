use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{MOST_WAITING, packing::Unpacked, response::PART};
use crate::{End, MOST_STORED, ResponseHead, Start, unpacked};

/// What is said of an answer that is not written.
const LEFT_OUT: &str = "the answer could not be redacted, and was left out";

/// Takes secrets out of what is to be written.
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
pub(super) type SharedRedact = Arc<Mutex<Box<dyn Redact>>>;

fn locked(by: &SharedRedact) -> MutexGuard<'_, Box<dyn Redact>> {
    by.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds answers until they can be redacted.
pub(super) struct Redaction {
    by: SharedRedact,
    held: HashMap<u64, Held>,
    /// How many bytes are held.
    bytes: usize,
}

/// An exchange whose answer is still to come.
#[derive(Default)]
struct Held {
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
    pub(super) fn new(by: SharedRedact) -> Self {
        Self { by, held: HashMap::new(), bytes: 0 }
    }

    pub(super) fn start(&mut self, of: u64, mut start: Start) -> Start {
        self.held.insert(of, Held::default());
        start.path = locked(&self.by).line(&start.path);
        self.headers(&mut start.headers);
        Start { is_redacted: true, ..start }
    }

    pub(super) fn head(&mut self, of: u64, mut head: ResponseHead) -> ResponseHead {
        if let Some(held) = self.held.get_mut(&of) {
            held.response_coding = coding(&head.headers);
        }
        self.headers(&mut head.headers);
        head
    }

    fn headers(&mut self, headers: &mut [(String, String)]) {
        for (_, value) in headers {
            *value = locked(&self.by).line(value);
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
        let Held { response_coding: coding, response: bytes, is_lost } = held;
        self.bytes -= bytes.len();
        let is_stored = !is_lost && end.stored == bytes.len() as u64;
        let is_whole = end.cut.is_none() && end.stored == end.bytes;
        let text = text(bytes, coding.as_deref()).filter(|_| is_stored);
        let redacted = text.and_then(|text| {
            let place = place(of, "response");
            let mut by = locked(&self.by);
            if is_whole { Some(by.body(&text, &place)) } else { by.broken(&text, &place) }
        });
        let Some(redacted) = redacted.and_then(stored) else {
            let cut =
                end.cut.map_or_else(|| LEFT_OUT.to_owned(), |cut| format!("{cut}; {LEFT_OUT}"));
            return (Vec::new(), End { stored: 0, cut: Some(cut), ..end });
        };
        let length = redacted.len() as u64;
        let too_long = (end.stored < end.bytes)
            .then(|| "the body is longer than what is stored of it".to_owned());
        let end = End { bytes: length, stored: length, cut: end.cut.or(too_long), ..end };
        (redacted.chunks(PART).map(<[u8]>::to_vec).collect(), end)
    }
}

/// A request as it may be written: without its secrets, or, where that cannot be, without its bytes,
/// so that the reader sees that of so many none is stored.
pub(super) fn redacted_request(by: &SharedRedact, unpacked: Unpacked) -> Unpacked {
    let Unpacked { of, ended, .. } = unpacked;
    let is_whole = ended && unpacked.total == unpacked.bytes.len() as u64;
    let text = text(unpacked.bytes, unpacked.coding.as_deref()).filter(|_| is_whole);
    let bytes = text.and_then(|text| stored(locked(by).body(&text, &place(of, "request"))));
    let total = bytes.as_ref().map_or(unpacked.total, |bytes| bytes.len() as u64);
    let (lane, bytes) = (unpacked.lane, bytes.unwrap_or_default());
    Unpacked { of, lane, coding: None, bytes, total, ended }
}

/// What is stored of a redacted body: all of it, or nothing where it is too long, as placeholders may
/// make it.
fn stored(redacted: String) -> Option<Vec<u8>> {
    (redacted.len() as u64 <= MOST_STORED).then(|| redacted.into_bytes())
}

fn place(of: u64, what: &str) -> String {
    format!("exchange {}, {what}", of + 1)
}

pub(super) fn coding(headers: &[(String, String)]) -> Option<String> {
    let mut of = headers.iter().filter(|(name, _)| name == "content-encoding");
    of.next().map(|(_, value)| value.clone())
}

/// The text of a body; `None` where it has none.
fn text(bytes: Vec<u8>, coding: Option<&str>) -> Option<String> {
    let bytes = match coding.filter(|_| !bytes.is_empty()) {
        Some(coding) => unpacked(bytes, coding, MOST_STORED).ok()?,
        None => bytes,
    };
    String::from_utf8(bytes).ok()
}
