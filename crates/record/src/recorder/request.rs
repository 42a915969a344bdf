use std::sync::{Arc, atomic::Ordering};

use super::{Line, MOST_WAITING, Note, packing::Unpacked};

/// Takes the body of a request as it passes.
#[derive(Debug)]
pub struct RequestRecorder {
    line: Line,
    of: u64,
    lane: Arc<str>,
    /// How the body is packed, as its header says.
    coding: Option<String>,
    most: usize,
    bytes: Vec<u8>,
    total: u64,
    is_behind: bool,
    is_sent: bool,
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
        let (bytes, total) = (Vec::new(), 0);
        Self { line, of, lane, coding, most, bytes, total, is_behind: false, is_sent: false }
    }

    /// Takes the next bytes. They are not kept where too much waits for the disk already.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.most.saturating_sub(self.bytes.len());
        let kept = bytes.get(..room).unwrap_or(bytes);
        if self.is_behind || self.is_sent || kept.is_empty() {
            return;
        }
        let waiting = self.line.waiting.fetch_add(kept.len(), Ordering::Relaxed);
        if waiting + kept.len() > MOST_WAITING {
            self.line.waiting.fetch_sub(kept.len(), Ordering::Relaxed);
            self.is_behind = true;
            return;
        }
        self.bytes.extend_from_slice(kept);
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
        // The end of the answer waits for it from now on.
        self.line.send(Note::Coming(of));
        // Of a thread that is gone, the recorder has told.
        let coding = self.coding.take();
        let unpacked = Unpacked { of, lane, coding, bytes, total, ended };
        let _ = self.line.unpacked.send(Some(unpacked));
        true
    }
}

impl Drop for RequestRecorder {
    fn drop(&mut self) {
        self.send(false);
    }
}
