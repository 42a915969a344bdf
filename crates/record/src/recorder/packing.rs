//! Packs requests on a thread of its own: that takes a hundred times as long as to append them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use afterimage_log::Position;

use super::{Note, redaction::CaughtRedact, request::Lease};
use crate::{RequestBody, coding::Effort, packer::Packer};

/// An answer that has waited so long for its request waits for no comparing with earlier ones,
const COMPARED: Duration = Duration::from_millis(20);
/// and after so long for no packing.
const PACKED: Duration = Duration::from_millis(60);
/// Nor does one wait for the comparing of a request of more bytes.
const MOST_COMPARED: usize = 4 << 20;

/// The body of a request, on its way to the recording.
#[derive(Debug)]
pub(super) struct RequestToPack {
    pub(super) of: u64,
    pub(super) lane: Arc<str>,
    /// How the body is packed, as its header says.
    pub(super) coding: Option<String>,
    pub(super) bytes: Vec<u8>,
    pub(super) total: u64,
    pub(super) ended: bool,
    /// Counts its bytes while it waits.
    pub(super) lease: Lease,
}

/// A request that is packed.
pub(super) struct PackedRequest {
    pub(super) of: u64,
    pub(super) content: Vec<u8>,
    /// Which opening of the recording the earlier bodies are of.
    pub(super) opening: u64,
    pub(super) stored: Sender<Placement>,
}

/// Where a packed request was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    At(Position),
    /// The recording was opened anew: the body is to be packed without earlier ones.
    Anew,
    Lost,
}

/// What the threads share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// So many bytes wait to be written.
    pub(super) waiting: Arc<AtomicUsize>,
    /// So many answers wait for their requests.
    pub(super) held: AtomicUsize,
    /// How often the recording was opened.
    pub(super) opening: AtomicU64,
}

/// Tells that the thread ended before its time, unless it says that it has ended.
struct EndNote<'n> {
    notes: &'n Sender<Note>,
    note: Note,
}

impl Drop for EndNote<'_> {
    fn drop(&mut self) {
        let _ = self.notes.send(std::mem::replace(&mut self.note, Note::Stop));
    }
}

/// Packs what comes, until nobody sends any more or `None` comes; hands that on.
pub(super) fn run(
    incoming: &Receiver<Option<RequestToPack>>,
    notes: &Sender<Note>,
    shared: &Shared,
    by: Option<&CaughtRedact>,
) {
    let mut end = EndNote { notes, note: Note::PackerFailed };
    let (mut packer, mut opening) = (Packer::default(), 0);
    // Since when some answer waits, and this thread always has a request to pack.
    let mut held: Option<Instant> = None;
    loop {
        let next = incoming.try_recv().or_else(|_| {
            held = None;
            incoming.recv()
        });
        let Ok(Some(request)) = next else { break };
        let is_held = shared.held.load(Ordering::Relaxed) > 0;
        held = is_held.then(|| held.unwrap_or_else(Instant::now));
        let effort = match held.map(|since| since.elapsed()) {
            Some(waited) if waited >= PACKED => Effort::AsIs,
            Some(waited) if waited >= COMPARED || request.bytes.len() > MOST_COMPARED => {
                Effort::Quick
            }
            _ => Effort::Small,
        };
        let request = match by {
            Some(by) => by.request(request),
            None => request,
        };
        // Its bytes are counted up to here.
        let RequestToPack { of, lane, bytes, total, ended, lease: _lease, .. } = request;
        let body = RequestBody { bytes: &bytes, total, ended };
        loop {
            let now = shared.opening.load(Ordering::Acquire);
            if std::mem::replace(&mut opening, now) != now {
                packer = Packer::default();
            }
            let mut packed = packer.pack(&lane, &body, effort);
            let (stored, wait) = mpsc::channel();
            let content = std::mem::take(&mut packed.content);
            let note = PackedRequest { of, content, opening, stored };
            if notes.send(Note::Packed(note)).is_err() {
                return;
            }
            match wait.recv().unwrap_or(Placement::Lost) {
                Placement::At(at) => packer.keep(&lane, at, &bytes, packed),
                Placement::Anew => continue,
                Placement::Lost => {}
            }
            break;
        }
    }
    end.note = Note::Stop;
}
