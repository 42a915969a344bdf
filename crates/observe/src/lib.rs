//! What an agent knows of the world: the latest response of each tool, for each account, with its
//! age.
//!
//! An agent that cannot see how old a fact is asks for it again, every turn. [`Observations`]
//! looks at each tool call on its way back ([`Observations::intercept`]), keeps what a [`Policy`]
//! names as an observation of the world, and puts a few lines in the place of the payload
//! ([`Observations::summary`]): what the last response changed, what the policy marks, small
//! values, counts; how old each of them is, and which of them an action has made stale.
//!
//! ```
//! use afterimage_observe::{Millis, Moment, Observations, Pointer, Policy, Response, ToolCall};
//!
//! let place = |text| Pointer::parse(text).map(|place| vec![place]);
//! let policy = Policy {
//!     ticks: place("/current_tick")?,
//!     usernames: place("/username")?,
//!     login: vec!["login".to_owned()],
//!     ..Policy::default()
//! };
//! let observations = Observations::in_memory(policy)?;
//! let at = |tick: u64| Moment::at(Millis::new(1_700_000_000_000 + 10_000 * tick as i64)).on(tick);
//!
//! let login = Response::text("{\"username\": \"Ada\", \"current_tick\": 40}")?;
//! observations.intercept(&ToolCall::new("agent-1", "login", &login), at(40))?;
//! let status = Response::text("{\"credits\": 5000, \"current_tick\": 40}")?;
//! observations.intercept(&ToolCall::new("agent-1", "get_status", &status), at(40))?;
//!
//! let summary = observations.summary_of_agent("agent-1", at(42), 500)?;
//! assert!(summary.text().contains("### Status (get_status - 2 ticks ago)\n\n- Credits: 5,000\n"));
//! # Ok::<(), afterimage_observe::Error>(())
//! ```
//!
//! # The map
//!
//! ```text
//! tool call ─ Response: envelope, payload ─→ intercept ─ Policy ─→ account, observation, marks
//!                                               │  merge: by path, with an age for each path
//!                                               │  outline: the lines that a summary may show
//!                                               ↓
//!                                         ObservationStore (memory, or a database file)
//!                                               ↓
//! summary ←─ compose: the most useful lines within the limit, with their ages
//! ```
//!
//! The outline is worked out when a response is stored, so that a summary parses no payload; it
//! only compares each with its checksum. There is no clock: the caller says what time it is. What the
//! specification of the cache asks for, and where it is tested, is in
//! `docs/spec-observations.md`.

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod account;
mod accounts;
mod ages;
mod aside;
mod changes;
mod compose;
mod error;
mod figures;
mod freshness;
mod intercept;
mod interception;
mod keep;
mod memory;
mod merge;
mod moment;
mod nested;
mod observation;
mod observations;
mod outline;
mod pointer;
mod policy;
mod policy_json;
mod policy_match;
mod response;
mod shape;
mod shown;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_adopt;
#[cfg(feature = "sqlite")]
mod sqlite_checks;
#[cfg(feature = "sqlite")]
mod sqlite_copy;
#[cfg(feature = "sqlite")]
mod sqlite_load;
#[cfg(feature = "sqlite")]
mod sqlite_read;
#[cfg(feature = "sqlite")]
mod sqlite_rows;
#[cfg(feature = "sqlite")]
mod sqlite_schema;
#[cfg(feature = "sqlite")]
mod sqlite_write;
mod store;
mod substance;
mod summary;
mod template;
mod written;

pub use account::{Account, MAX_NAME_CHARS};
pub use ages::Ages;
pub use aside::{RejectedAnswer, RejectedAnswerInfo};
pub use figures::{Figures, Metrics};
pub use freshness::{Freshness, PlannedCall, Verdict};
pub use interception::{IgnoreReason, Interception, LoginChange, ToolCall};
pub use memory::MemoryStore;
pub use moment::{Age, Moment};
pub use observation::{Observation, ObservationInfo, StaleMark};
pub use observations::Observations;
pub use outline::{Outline, OutlineEntry, Rank};
pub use pointer::Pointer;
pub use policy::{
    ActionRule, Form, LineRule, PartialRule, Policy, ReplacementRule, SummaryEnding, Target,
    ToolRule,
};
pub use response::Response;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
#[cfg(feature = "sqlite")]
pub use sqlite_copy::open_read_only;
pub use store::{ObservationStore, StoreReader, StoreWriter};
pub use summary::{Summary, SummarySection};
pub use template::Template;

#[doc(no_inline)]
pub use afterimage_json as json;
pub use afterimage_json::Millis;
#[doc(no_inline)]
pub use afterimage_tokens as tokens;
pub use error::{Error, ErrorKind};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
