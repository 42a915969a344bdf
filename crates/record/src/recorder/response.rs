use std::time::{Duration, Instant};

use super::{Line, Note};
use crate::{End, ResponseHead};

/// A part of a response is handed over when it has so many bytes,
pub(super) const PART: usize = 64 << 10;
/// or when its first byte is so old and another comes.
const PART_AGE: Duration = Duration::from_secs(1);

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
    pub(super) fn new(line: Line, of: u64, most: u64) -> Self {
        let began = Instant::now();
        Self {
            line,
            of,
            began,
            most,
            part: Vec::new(),
            part_began: began,
            total: 0,
            stored: 0,
            is_behind: false,
            is_ended: false,
        }
    }

    /// Takes what comes before the body.
    pub fn head(&mut self, status: u16, headers: Vec<(String, String)>) {
        let after_ms = self.elapsed();
        self.line.send(Note::Response(self.of, ResponseHead { status, after_ms, headers }));
    }

    /// Takes the next bytes of the body. Copies them: O(bytes).
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
