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
//! use afterimage::{
//!     id::Millis,
//!     observe::{Moment, Observations, Policy, Response, ToolCall},
//! };
//!
//! let observations = Observations::in_memory(Policy::spacemolt())?;
//! let at = |tick: u64| Moment::at(Millis::new(1_700_000_000_000 + 10_000 * tick as i64)).on(tick);
//!
//! let login = Response::text("{\"username\": \"Ada\", \"current_tick\": 40}")?;
//! observations.intercept(&ToolCall::new("agent-1", "login", &login), at(40))?;
//! let status = Response::text("{\"player\": {\"credits\": 5000}, \"current_tick\": 40}")?;
//! observations.intercept(&ToolCall::new("agent-1", "get_status", &status), at(40))?;
//!
//! let summary = observations.summary_of_agent("agent-1", at(42), 500)?;
//! assert!(summary.text().contains("### Status (get_status - 2 ticks ago)\n\n- Credits: 5,000\n"));
//! # Ok::<(), afterimage::Error>(())
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
//! The outline is worked out when a response is stored, so that a summary reads a few kilobytes
//! however large the payloads are. There is no clock: the caller says what time it is. What the
//! specification of the cache asks for, and where it is tested, is in
//! [`observations`](crate::observations).

mod account;
mod accounts;
mod ages;
mod changes;
mod compose;
mod figures;
mod intercept;
mod interception;
mod memory;
mod merge;
mod moment;
mod observation;
mod observations;
mod outline;
mod pointer;
mod policy;
mod policy_json;
mod policy_match;
mod response;
mod shown;
mod spacemolt;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_rows;
#[cfg(feature = "sqlite")]
mod sqlite_schema;
mod store;
mod summary;
mod template;
mod written;

pub use account::{Account, MAX_NAME_CHARS};
pub use ages::Ages;
pub use figures::{Figures, Metrics};
pub use interception::{Ignored, Interception, SessionChange, ToolCall};
pub use memory::MemoryStore;
pub use moment::{Age, Moment};
pub use observation::{Observation, ObservationInfo, StaleMark};
pub use observations::Observations;
pub use outline::{Outline, OutlineEntry, Rank};
pub use pointer::Pointer;
pub use policy::{ActionRule, Closing, Form, LineRule, PartialRule, Policy, Target, ToolRule};
pub use response::Response;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::{ObservationStore, StoreReader, StoreWriter};
pub use summary::{Summary, SummarySection};
pub use template::Template;
