//! Packs requests on a thread of its own: that takes a hundred times as long as to append them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use afterimage_log::Position;

use super::{Note, redaction::CaughtRedact, request::Lease};
use crate::{RequestBody, coding::Effort, packer::Packer};

/// While an answer waits, a request that has waited so long itself is not compared with earlier ones.
const COMPARED: Duration = Duration::from_millis(20);
/// After so long it is not packed at all.
const PACKED: Duration = Duration::from_millis(60);
/// Nor is a request of more bytes compared while an answer waits.
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
    /// When all of it had come.
    pub(super) since: Instant,
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
    /// So many exchanges are in the recording.
    pub(super) exchanges: AtomicU64,
    /// So many of them asked a model.
    pub(super) for_model: AtomicU64,
    /// Whether the recorder ends, and has no time to redact what still comes.
    pub(super) is_late: AtomicBool,
    /// So many bodies were left out since.
    pub(super) left_out: AtomicU64,
}

/// What packs: [`pack`], or what a test puts in its place.
pub(super) type Pack =
    fn(&Receiver<Option<RequestToPack>>, &Sender<Note>, &Shared, Option<&CaughtRedact>);

/// Packs what comes, until nobody sends any more or `None` comes; hands that on. Tells of a panic, and
/// then takes what comes without packing it.
pub(super) fn run(
    pack: Pack,
    incoming: &Receiver<Option<RequestToPack>>,
    notes: &Sender<Note>,
    shared: &Shared,
    by: Option<&CaughtRedact>,
) {
    if catch_unwind(AssertUnwindSafe(|| pack(incoming, notes, shared, by))).is_err() {
        let _ = notes.send(Note::PackerFailed);
        while let Ok(Some(_)) = incoming.recv() {}
    }
    let _ = notes.send(Note::Stop);
}

/// Packs what comes, until nobody sends any more or `None` comes.
pub(super) fn pack(
    incoming: &Receiver<Option<RequestToPack>>,
    notes: &Sender<Note>,
    shared: &Shared,
    by: Option<&CaughtRedact>,
) {
    let (mut packer, mut opening) = (Packer::default(), 0);
    while let Ok(Some(request)) = incoming.recv() {
        let waited = request.since.elapsed();
        let effort = if shared.held.load(Ordering::Relaxed) == 0 {
            Effort::Smallest
        } else if waited >= PACKED {
            Effort::AsIs
        } else if waited >= COMPARED || request.bytes.len() > MOST_COMPARED {
            Effort::Quick
        } else {
            Effort::Small
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding;

    /// So many growing requests, all of which had come at `since`.
    fn growing(count: u64, since: Instant, shared: &Shared) -> Receiver<Option<RequestToPack>> {
        let (requests, incoming) = mpsc::channel();
        for of in 0..count {
            let words = (0..2_000 + of).map(|at| format!("{:x} ", at.wrapping_mul(0x9e37_79b9)));
            let bytes = words.collect::<String>().into_bytes();
            let (total, lease) = (bytes.len() as u64, Lease::new(&shared.waiting));
            let (lane, coding, ended) = ("lane".into(), None, true);
            let request = RequestToPack { of, lane, coding, bytes, total, ended, since, lease };
            requests.send(Some(request)).unwrap();
        }
        incoming
    }

    /// Which of four growing requests, all of which had come at `since`, are stored after an earlier
    /// one, while so many answers wait.
    fn are_after(since: Instant, held: usize) -> Vec<bool> {
        let shared = Arc::new(Shared::default());
        shared.held.store(held, Ordering::Relaxed);
        let (notes, packed) = mpsc::channel();
        let incoming = growing(4, since, &shared);
        let thread = std::thread::spawn(move || run(pack, &incoming, &notes, &shared, None));
        let mut found = Vec::new();
        while let Ok(Note::Packed(request)) = packed.recv() {
            request.stored.send(Placement::At(Position::new(request.of + 1))).unwrap();
            found.push(coding::describe(&request.content).unwrap().base.is_some());
        }
        thread.join().unwrap();
        found
    }

    #[test]
    fn a_request_is_compared_with_earlier_ones_unless_it_waits_and_an_answer_with_it() {
        let now = Instant::now();
        // It has not waited yet, whenever the thread runs.
        let later = now + Duration::from_secs(3600);
        let (is_compared, is_not) = ([false, true, true, true], [false; 4]);
        assert_eq!(are_after(later, 0), is_compared);
        assert_eq!(are_after(later, 1), is_compared);
        for waited in [COMPARED, PACKED] {
            let earlier = now.checked_sub(waited).unwrap();
            assert_eq!(are_after(earlier, 0), is_compared);
            assert_eq!(are_after(earlier, 1), is_not);
        }
    }

    #[test]
    fn a_request_for_an_earlier_opening_is_packed_again_without_what_that_held() {
        let shared = Arc::new(Shared::default());
        let (notes, packed) = mpsc::channel();
        let incoming = growing(3, Instant::now(), &shared);
        let known = Arc::clone(&shared);
        let thread = std::thread::spawn(move || run(pack, &incoming, &notes, &shared, None));
        let mut found = Vec::new();
        while let Ok(Note::Packed(request)) = packed.recv() {
            let is_after = coding::describe(&request.content).unwrap().base.is_some();
            found.push((request.of, request.opening, is_after));
            // The recording is opened anew when the second request comes.
            let is_second = found.len() == 2;
            known.opening.fetch_add(u64::from(is_second), Ordering::Release);
            let at = Placement::At(Position::new(request.of + 1));
            request.stored.send(if is_second { Placement::Anew } else { at }).unwrap();
        }
        thread.join().unwrap();
        assert_eq!(found, [(0, 0, false), (1, 0, true), (1, 1, false), (2, 1, true)]);
    }
}
