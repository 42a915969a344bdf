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

use super::{
    Note,
    redaction::{SharedRedact, redacted_request},
};
use crate::{RequestBody, coding::Effort, packer::Packer};

/// An answer that has waited so long for its request waits for no packing.
const PATIENCE: Duration = Duration::from_millis(20);

/// The body of a request, on its way to the recording.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) of: u64,
    pub(super) lane: Arc<str>,
    /// How the body is packed, as its header says.
    pub(super) coding: Option<String>,
    pub(super) bytes: Vec<u8>,
    pub(super) total: u64,
    pub(super) ended: bool,
}

/// A request that is packed.
pub(super) struct PackedNote {
    pub(super) of: u64,
    pub(super) content: Vec<u8>,
    /// Which opening of the recording the earlier bodies are of.
    pub(super) opening: u64,
    pub(super) stored: Sender<Stored>,
}

/// What became of a packed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
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

/// Packs what comes, until nobody sends any more or `None` comes; hands that on.
pub(super) fn run(
    incoming: &Receiver<Option<Unpacked>>,
    notes: &Sender<Note>,
    shared: &Shared,
    by: Option<&SharedRedact>,
) {
    let (mut packer, mut opening) = (Packer::default(), 0);
    // Since when some answer waits.
    let mut held: Option<Instant> = None;
    while let Ok(Some(unpacked)) = incoming.recv() {
        let is_held = shared.held.load(Ordering::Relaxed) > 0;
        held = is_held.then(|| held.unwrap_or_else(Instant::now));
        let effort = match held {
            None => Effort::Small,
            Some(since) if since.elapsed() < PATIENCE => Effort::Quick,
            Some(_) => Effort::AsIs,
        };
        let size = unpacked.bytes.len();
        let Unpacked { of, lane, bytes, total, ended, .. } = match by {
            Some(by) => redacted_request(by, unpacked),
            None => unpacked,
        };
        let body = RequestBody { bytes: &bytes, total, ended };
        loop {
            let now = shared.opening.load(Ordering::Acquire);
            if std::mem::replace(&mut opening, now) != now {
                packer = Packer::default();
            }
            let mut packed = packer.pack(&lane, &body, effort);
            let (stored, wait) = mpsc::channel();
            let content = std::mem::take(&mut packed.content);
            let note = PackedNote { of, content, opening, stored };
            if notes.send(Note::Packed(note)).is_err() {
                return;
            }
            match wait.recv().unwrap_or(Stored::Lost) {
                Stored::At(at) => packer.keep(&lane, at, &bytes, packed),
                Stored::Anew => continue,
                Stored::Lost => {}
            }
            break;
        }
        shared.waiting.fetch_sub(size, Ordering::Relaxed);
    }
    let _ = notes.send(Note::Stop);
}
