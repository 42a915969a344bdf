//! Events with snapshots of what they lead to, for any state.
//!
//! A journal holds **sessions**. A session is a log of events, numbered from 1 without a gap, and
//! snapshots of the state that they lead to. The events are the authority: they are written first,
//! and a snapshot that is stale, ahead, damaged or of another form is passed over for an older one
//! or for all events. A state is whatever implements [`Replay`].
//!
//! ```
//! use afterimage_journal::{Result, Millis, *};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! struct Notes(Vec<String>);
//!
//! impl Replay for Notes {
//!     type Event = String;
//!     const SCHEMA: u32 = 1;
//!     fn apply(&mut self, _: u64, note: &String) -> Result<()> {
//!         self.0.push(note.clone());
//!         Ok(())
//!     }
//! }
//!
//! let memory = Memory::new();
//! let session = SessionName::new("harbour")?;
//! let now = Millis::new(0);
//!
//! let mut journal = Journal::in_memory(&memory, JournalOptions::default());
//! let (mut notes, _) = journal.live::<Notes>(&session, SnapshotPolicy::Events(2))?;
//! for note in ["moored", "loaded", "sailed"] {
//!     let recorded = journal.record(&mut notes, EventId::new(note)?, &note.to_owned(), now)?;
//!     assert!(recorded.snapshot.is_none_or(|written| written.is_ok()));
//! }
//!
//! // Another process, later: a snapshot and one event.
//! let mut journal = Journal::in_memory(&memory, JournalOptions::default());
//! let loaded = journal.load::<Notes>(&session)?;
//! assert_eq!(loaded.state.0, ["moored", "loaded", "sailed"]);
//! assert_eq!(loaded.report.snapshot.unwrap().after_sequence, 2);
//! assert_eq!(loaded.report.events, 1);
//! # Ok::<(), afterimage_journal::Error>(())
//! ```
//!
//! # Where it is
//!
//! | journal | is for | opened by |
//! |---|---|---|
//! | [`Journal`] | tests, and what need not last | [`Journal::in_memory`] |
//! | [`Journal`] | one process at a time | [`Journal::open`] |
//! | `NatsJournal` (feature `nats`) | many processes on many machines | `NatsJournal::connect` |
//!
//! All have the same methods; those of `NatsJournal` are async. What decides anything is one piece of
//! code without IO, which asks the store for plain things (the newest event, a page of events, to
//! write an event at one place) and is answered.
//!
//! # What it promises
//!
//! * An append that returned is there, once, at the sequence that it returned. Two writers with the
//!   same expectation: one gets a conflict with the sequence of the newest event.
//! * An event whose id is in the session already is not appended again. So a step that failed may be
//!   tried again with the same id, and a process that was killed may make all of its steps again.
//! * A load gives the state after all events, or an error; never a part.
//! * Events that are missing are an error that says which, never a state that is quietly wrong. Who
//!   accepts their loss says so ([`Journal::accept_loss`]).

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod append;
mod directory;
mod error;
mod event;
mod face;
mod fetch;
#[cfg(test)]
mod flaky_tests;
mod id_parts;
mod kinds;
mod known;
mod live;
mod load;
mod locate;
mod machine;
mod memory;
mod name;
#[cfg(feature = "nats")]
mod nats;
mod options;
mod policy;
mod read;
mod record;
mod replay;
mod report;
mod request;
mod retry;
mod save;
mod sealed;
mod session_log;
mod snapshot;
mod status;
mod store;
mod sync;
mod tail;

pub use event::{AppendReceipt, Event, EventId, Expected, NewEvent};
pub use live::{LiveState, RecordOutcome};
pub use load::LoadedState;
pub use memory::Memory;
pub use name::{MAX_SESSION_NAME, SessionName};
#[cfg(feature = "nats")]
pub use nats::{Credentials, NatsJournal, NatsOptions};
pub use options::JournalOptions;
pub use policy::SnapshotPolicy;
pub use replay::{Replay, refused};
pub use report::{LoadReport, LostEvents, SkipReason, SkippedSnapshot, SnapshotInfo};
pub use retry::Retries;
pub use snapshot::Snapshot;
pub use status::SessionStatus;
pub use sync::Journal;

#[doc(no_inline)]
pub use afterimage_json as json;
pub use afterimage_json::Millis;
#[doc(no_inline)]
pub use afterimage_log as log;
pub use error::{Error, ErrorKind};
pub use json::Place;

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
