//! The ids of lines that become turns of a journal.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use afterimage::journal::{Event, EventId, Result};
use sha2::{Digest, Sha256};

/// Which lines are which: an id has the name of the input, the number of the line, and a hash of what
/// it says. So an input that is given again under its name has the ids that it had, and equal lines
/// are told apart.
pub(super) struct LineIds {
    /// The name and what ends it.
    name: String,
    /// The turns of lines of this name.
    known: HashMap<EventId, u64>,
}

impl LineIds {
    /// The ids of an input with a name, or of one that no other run has.
    pub(super) fn new(name: Option<&str>) -> Self {
        let name = name.map_or_else(nowhere_else, |name| format!("{name}:"));
        Self { name, known: HashMap::new() }
    }

    /// The id of a line.
    pub(super) fn id(&self, number: u64, line: LineDigest) -> Result<EventId> {
        EventId::new(format!("{}{number}:{:016x}", self.name, line.0))
    }

    /// Takes note of an event that is there.
    pub(super) fn note(&mut self, event: &Event) {
        if event.id.as_str().starts_with(&self.name) {
            self.known.insert(event.id.clone(), event.sequence);
        }
    }

    /// The turn of a line that was appended.
    pub(super) fn turn(&self, id: &EventId) -> Option<u64> {
        self.known.get(id).copied()
    }
}

/// A line by its hash.
#[derive(Clone, Copy)]
pub(super) struct LineDigest(u64);

impl LineDigest {
    pub(super) fn of(line: &[u8]) -> Self {
        let hash = Sha256::digest(line.trim_ascii());
        Self(hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// 128 random bits, from the keys that the system gives to hash tables.
fn nowhere_else() -> String {
    let keys = RandomState::new();
    format!("{:016x}{:016x}:", keys.hash_one(0_u8), keys.hash_one(1_u8))
}
