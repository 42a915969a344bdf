use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use super::{Line, MOST_WAITING, Note, packing::RequestToPack, response::PART};
use crate::{packer::MOST_BASE, writer::StreamedEnd};

/// While so many bytes wait, no request is held that has come to more than a part.
const MOST_HELD: usize = MOST_WAITING / 2;

/// Takes the body of a request as it passes.
#[derive(Debug)]
pub struct RequestRecorder {
    line: Line,
    of: u64,
    lane: Arc<str>,
    /// How the body is packed, as its header says.
    coding: Option<String>,
    most: usize,
    /// What is held of it.
    bytes: Vec<u8>,
    lease: Lease,
    total: u64,
    /// How many bytes were written as they came; `None` while all of them are held.
    streamed: Option<u64>,
    is_behind: bool,
    is_sent: bool,
}

/// So many bytes are counted among those that wait, until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    waiting: Arc<AtomicUsize>,
    size: usize,
}

impl Lease {
    pub(super) fn new(waiting: &Arc<AtomicUsize>) -> Self {
        Self { waiting: Arc::clone(waiting), size: 0 }
    }

    /// Counts more bytes; `None` where too many wait. Gives how many wait now.
    fn grow(&mut self, by: usize) -> Option<usize> {
        let waiting = self.waiting.fetch_add(by, Ordering::Relaxed) + by;
        if waiting > MOST_WAITING {
            self.waiting.fetch_sub(by, Ordering::Relaxed);
            return None;
        }
        self.size += by;
        Some(waiting)
    }

    fn take(&mut self) -> Self {
        Self { waiting: Arc::clone(&self.waiting), size: std::mem::take(&mut self.size) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.size, Ordering::Relaxed);
    }
}

impl RequestRecorder {
    pub(super) fn new(
        line: Line,
        of: u64,
        lane: Arc<str>,
        coding: Option<String>,
        most: u64,
    ) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let lease = Lease::new(&line.waiting);
        let (bytes, total, streamed) = (Vec::new(), 0, None);
        let (is_behind, is_sent) = (false, false);
        Self { line, of, lane, coding, most, bytes, lease, total, streamed, is_behind, is_sent }
    }

    /// Takes the next bytes. They are not kept where too much waits for the disk already. Copies
    /// them: O(bytes).
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let streamed = usize::try_from(self.streamed.unwrap_or_default()).unwrap_or(usize::MAX);
        let room = self.most.saturating_sub(streamed.saturating_add(self.bytes.len()));
        let kept = bytes.get(..room).unwrap_or(bytes);
        if self.is_behind || self.is_sent || kept.is_empty() {
            return;
        }
        let Some(waiting) = self.lease.grow(kept.len()) else {
            self.is_behind = true;
            return;
        };
        self.bytes.extend_from_slice(kept);
        let is_long = self.bytes.len() > MOST_BASE || waiting > MOST_HELD;
        if self.bytes.len() >= PART && (self.streamed.is_some() || self.line.can_stream && is_long)
        {
            self.stream();
        }
    }

    /// Writes what is held.
    fn stream(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        drop(self.lease.take());
        let streamed = self.streamed.get_or_insert_default();
        for part in bytes.chunks(PART) {
            if !self.line.send(Note::RequestPart(self.of, part.to_vec())) {
                self.is_behind = true;
                return;
            }
            *streamed += part.len() as u64;
        }
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
        let (of, total) = (self.of, self.total);
        if self.streamed.is_some() {
            self.stream();
            let stored = self.streamed.unwrap_or_default();
            self.line.send(Note::RequestEnd(of, StreamedEnd { total, stored, ended }));
            return true;
        }
        let (lane, bytes) = (Arc::clone(&self.lane), std::mem::take(&mut self.bytes));
        // The end of the answer waits for it from now on.
        self.line.send(Note::Coming(of));
        let (coding, lease) = (self.coding.take(), self.lease.take());
        let since = Instant::now();
        let request = RequestToPack { of, lane, coding, bytes, total, ended, since, lease };
        // A thread that is gone has said so, and what is sent to it is settled.
        let _ = self.line.to_pack.send(Some(request));
        true
    }
}

impl Drop for RequestRecorder {
    fn drop(&mut self) {
        self.send(false);
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;
    use crate::{Limits, Outcome, Recorder, Recording, RecordingWriter, Start};

    #[test]
    fn many_long_requests_at_once_are_recorded_whole() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().to_owned();
        let open = move || Ok(RecordingWriter::open_private(&folder)?.0);
        let recorder = Recorder::start(Limits::default(), open, |said| panic!("{said}")).unwrap();
        // Together more than may wait, and each shorter than what is always written as it comes.
        let body: Vec<u8> = (0..12 << 20).map(|at| b"abcdefgh"[(at / 7) % 8]).collect();
        let mut open: Vec<_> =
            (0..24).map(|_| recorder.exchange(Start::now("POST", "p"))).collect();
        for piece in body.chunks(1 << 20) {
            open.iter_mut().for_each(|(request, _)| request.push(piece));
            // The next ones come when the disk has these.
            while recorder.line.waiting.load(Ordering::Relaxed) > MOST_HELD + 24 * PART {
                thread::sleep(Duration::from_millis(1));
            }
        }
        for (request, response) in &mut open {
            request.end();
            response.head(200, Vec::new());
            response.end(None, || {});
        }
        drop(open);
        let waiting = Arc::clone(&recorder.line.waiting);
        recorder.finish().unwrap();
        assert_eq!(waiting.load(Ordering::Relaxed), 0);
        let recording = Recording::open(scratch.path()).unwrap().unwrap();
        assert_eq!(recording.exchanges().len(), 24);
        for exchange in recording.exchanges() {
            assert_eq!(exchange.outcome(), Outcome::Complete);
            assert!(recording.request(exchange).unwrap().whole() == Some(&body));
        }
    }
}
