//! A timeline in a directory, which survives the power cut.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage_timeline::{Millis, log::DiskFiles, Data, Event, TurnRecord};
//! use afterimage_timeline::session::{SessionDir, SessionOptions};
//! # let scratch = tempfile::tempdir().unwrap();
//! # let path = scratch.path().join("tale");
//!
//! let options = SessionOptions::new("tale");
//! let state = Data::from_iter([("player", Data::object())]);
//! let mut session = SessionDir::create(Arc::new(DiskFiles), &path, options, state)?;
//! let moved = Event::new("move", Data::from_iter([("zone", Data::from("harbour"))]));
//! session.push(TurnRecord::new("player").at(Millis::new(1_000)).with_event(moved))?;
//! // From here on a crash does not lose the turn.
//! drop(session);
//!
//! let session = SessionDir::open(Arc::new(DiskFiles), &path, SessionOptions::default())?;
//! assert_eq!(session.timeline().last_turn(), 1);
//! assert_eq!(session.timeline().state().to_string(), r#"{"player":{"location":{"zone":"harbour"}}}"#);
//! # Ok::<(), afterimage_timeline::Error>(())
//! ```
//!
//! The lines in `turns/` are the authority. Snapshots are checked caches of what they come to;
//! `indexes/`, `state/` and `scenes/` are derived, and written anew whenever they are missing, stale
//! or damaged. `docs/FORMAT.md` describes the bytes.

mod blocks;
mod check;
mod derived;
mod dir;
mod end;
mod family;
mod foreign;
mod keep;
mod kept;
mod layout;
mod meta;
mod opening;
mod options;
mod recover;
mod repair;
mod sealed;
mod shared;
mod shelf;

pub use check::DirVerification;
pub use dir::SessionDir;
pub use foreign::{ForeignTimeline, read_recorded};
pub use keep::{PruneReport, TargetSum};
pub use meta::{Parent, SessionMeta};
pub use options::{Durability, SessionOptions};
pub use recover::RecoveryReport;
pub use repair::{RepairReport, repair};
pub use shared::SharedSession;
