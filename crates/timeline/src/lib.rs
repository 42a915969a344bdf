//! World state as deltas and snapshots.
//!
//! ```
//! use afterimage_timeline::{Millis, json::Path, Data, Event, Timeline, TurnRecord};
//!
//! let state = Data::from_iter([("player", Data::object()), ("world", Data::object())]);
//! let mut timeline = Timeline::builder("tale", state).build()?;
//! let item = |name: &str| Event::new("item_gain", Data::from_iter([("item", Data::from(name))]));
//! timeline.push(TurnRecord::new("player").with_event(item("rope")))?;
//! timeline.push(TurnRecord::new("player").with_event(item("lamp")))?;
//!
//! // Any state of the past, and who made it so.
//! assert_eq!(timeline.state_at(1)?.to_string(), r#"{"player":{"inventory":["rope"]},"world":{}}"#);
//! let blame = timeline.blame(&Path::from_pointer("/player/inventory/1")?, 2)?.unwrap();
//! assert_eq!((blame.turn_id, blame.delta.cause.as_str()), (2, "item_gain"));
//!
//! // Another way from there, which shares the past; and back, without rewriting it.
//! let mut branch = timeline.branch(1, "what-if")?;
//! branch.push(TurnRecord::new("player").with_event(item("oil")))?;
//! timeline.undo(1, Millis::new(0))?;
//! assert_eq!(timeline.state(), &timeline.state_at(1)?);
//! # Ok::<(), afterimage_timeline::Error>(())
//! ```
//!
//! ```text
//! Event ─ Mappers ─→ Delta ─ Applier ─→ Data        one applier; a state is shared, never copied
//!                      │                 │
//!                  TurnRecord       StateSnapshot    seven reasons; kept, thinned, compressed
//!                      └── Timeline ─────┘           state_at, undo, redo, branch, blame, verify
//!                             │
//!                        session::SessionDir         feature `storage`: lines, synced; the rest derived
//! ```
//!
//! [`Data`] is a JSON value whose copies share what they have in common. A [`Delta`] says what was
//! before and what is after, so that it can be taken back, and drift is noticed. [`diff`] finds the
//! deltas between two states; JSON Patch and merge patches become deltas and back.
//! `docs/spec-timeline.md` compares every part with the specification.

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod apply;
mod blame;
mod builder;
mod change;
mod changes;
mod compressed;
mod config;
mod data;
mod delta;
mod delta_target;
mod diff;
mod error;
mod event;
mod history;
mod inverse;
mod lenient;
mod mappers;
mod patch;
mod retention;
mod seq;
#[cfg(feature = "storage")]
pub mod session;
mod slot;
mod snapshot;
mod splice;
mod target;
#[allow(clippy::module_inception, reason = "the type after which the module is named")]
mod timeline;
mod turn;
mod verify;
mod world;

pub use apply::{Applier, DeltaOutcome, Drift, MAX_STATE_DEPTH};
pub use blame::{Blame, ValueChange};
pub use builder::TimelineBuilder;
pub use changes::Changes;
pub use compressed::CompressedSnapshot;
pub use config::{SnapshotPolicy, TimelineConfig};
pub use data::{Data, List, Map, Text};
pub use delta::{Delta, DeltaOperation};
pub use diff::{Difference, diff, differences};
pub use event::Event;
pub use inverse::{invert, squash};
pub use mappers::{MappedEvents, Mappers};
pub use patch::{from_json_patch, from_merge_patch, merge, to_json_patch, to_merge_patch};
pub use retention::{RetentionPlan, SnapshotInfo};
pub use snapshot::{DeltaRange, SnapshotReason, StateSnapshot};
pub use target::Targets;
pub use timeline::{MAX_ID, PushReport, SnapshotSource, Timeline};
pub use turn::{LlmContext, Summary, TurnRecord};
pub use verify::Verification;

#[doc(no_inline)]
pub use afterimage_json as json;
pub use afterimage_json::Millis;
#[cfg(feature = "storage")]
#[doc(no_inline)]
pub use afterimage_log as log;
pub use delta_target::DeltaTarget;
pub use error::{Error, ErrorKind};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
