//! Which ids a session's events have, as a writer knows them.

use std::collections::HashMap;

use super::EventId;

/// An id as 128 bits of its BLAKE3 hash: no two ids have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct IdHash(pub(super) [u8; IdHash::BYTES]);

impl IdHash {
    pub(super) const BYTES: usize = 16;

    pub(super) fn of(id: &EventId) -> Self {
        Self::of_bytes(id.as_str().as_bytes())
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut hash = [0; Self::BYTES];
        blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut hash);
        Self(hash)
    }
}

/// The sequences of a session's newest events by their ids.
#[derive(Clone, Debug)]
pub(super) struct KnownIds {
    /// Among how many of the newest events an id is found.
    window: u64,
    sequences: HashMap<IdHash, u64>,
}

impl KnownIds {
    pub(super) fn new(window: usize) -> Self {
        Self { window: window.max(1) as u64, sequences: HashMap::new() }
    }

    /// The newest event with this id, where the newest event of all is the one at `last`.
    pub(super) fn find(&self, id: &EventId, last: u64) -> Option<u64> {
        let found = self.sequences.get(&IdHash::of(id)).copied();
        found.filter(|sequence| self.has(*sequence, last))
    }

    pub(super) fn insert(&mut self, id: IdHash, sequence: u64) {
        self.sequences.insert(id, sequence);
        // Once in a while, so that it costs nothing.
        if self.sequences.len() as u64 > self.window.saturating_mul(2).saturating_add(16) {
            self.forget(sequence);
        }
    }

    /// Finds ids among so many of the newest events from now on.
    pub(super) fn keep(&mut self, window: usize, last: u64) {
        let window = window.max(1) as u64;
        if std::mem::replace(&mut self.window, window) > window {
            self.forget(last);
        }
    }

    fn has(&self, sequence: u64, last: u64) -> bool {
        last.saturating_sub(sequence) < self.window
    }

    fn forget(&mut self, last: u64) {
        let window = self.window;
        self.sequences.retain(|_, sequence| last.saturating_sub(*sequence) < window);
    }
}
