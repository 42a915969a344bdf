use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::Millis;

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// The snapshot that it began with; `None` for a full replay.
    pub snapshot: Option<SnapshotInfo>,
    /// The snapshots that it passed over, the newest first.
    pub skipped_snapshots: Vec<SkippedSnapshot>,
    /// How many events were replayed, those that were skipped included.
    pub events: u64,
    /// The bytes of their bodies.
    pub bytes: u64,
    /// How many events were skipped, by kind.
    pub skipped: BTreeMap<Arc<str>, u64>,
    /// The events that the state does not have, where that was
    /// [accepted](super::Journal::accept_loss).
    pub lost: Vec<LostEvents>,
    /// How many requests failed and were tried again.
    pub retries: u32,
}

/// Events that a state does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostEvents {
    /// The sequence of the first one.
    pub first: u64,
    /// The sequence of the last one.
    pub last: u64,
    /// What the state has against it, where the event is there and was refused.
    pub refusal: Option<String>,
}

impl fmt::Display for LostEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, refusal } = self;
        match refusal {
            Some(reason) => write!(
                f,
                "event {first} is lost: without those before it the state refuses it ({reason})"
            ),
            None if first == last => {
                write!(f, "event {first} is lost: it has expired, or been removed")
            }
            None => {
                write!(f, "events {first} to {last} are lost: they have expired, or been removed")
            }
        }
    }
}

/// A snapshot without its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The newest event that is in it.
    pub after_sequence: u64,
    /// When it was taken, by its writer's clock.
    pub created_at: Millis,
    /// The version of the state's form.
    pub schema: u32,
    /// The bytes that it takes where it is stored.
    pub stored_bytes: u64,
}

/// A snapshot that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedSnapshot {
    /// The newest event that it says to hold, where that can be read.
    pub after_sequence: Option<u64>,
    /// Why.
    pub reason: SkipReason,
}

/// Why a snapshot was not used.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// It is not what was written: the sentence says how.
    Damaged(String),
    /// It is there, and cannot be fetched, or may not be: the sentence says why.
    Unreadable(String),
    /// It is stored in a later form than this program knows.
    Format(u64),
    /// Its state is of another version.
    Schema {
        /// The version that this program knows.
        expected: u32,
        /// The version of the snapshot.
        found: u32,
    },
    /// It belongs to another log, which was here before this one.
    AnotherLog,
    /// It holds events that the log does not have.
    Ahead {
        /// The newest event of the log.
        last: u64,
    },
    /// The log has another event at that sequence.
    AnotherEvent,
    /// Events between it and the log's next one are gone, or its own event is.
    Unconnected,
    /// Its state cannot be read: the sentence says why.
    State(String),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(reason) => write!(f, "it is damaged: {reason}"),
            Self::Unreadable(reason) => write!(f, "it cannot be read: {reason}"),
            Self::Format(found) => {
                write!(f, "it is stored in form {found}, and 1 is the newest known here")
            }
            Self::Schema { expected, found } => {
                write!(f, "its state is of schema {found}, expected {expected}")
            }
            Self::AnotherLog => f.write_str("it belongs to another log, which this one replaced"),
            Self::Ahead { last } => {
                write!(f, "it is ahead of the log, whose newest event is {last}")
            }
            Self::AnotherEvent => f.write_str("the log has another event at its sequence"),
            Self::Unconnected => f.write_str("the event that it was taken after is gone"),
            Self::State(reason) => write!(f, "its state cannot be read: {reason}"),
        }
    }
}

impl fmt::Display for SkippedSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.after_sequence {
            Some(sequence) => write!(f, "the snapshot after event {sequence}: {}", self.reason),
            None => write!(f, "a snapshot: {}", self.reason),
        }
    }
}
