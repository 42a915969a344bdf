//! Where a session stands: what compression carries on and never compresses again.
//!
//! ```text
//! passages ─ speaker ─→ who says what: the user, the agent, a program
//!          ─ action ──→ calls: which file, which command, which plan
//!          ─ outcome ─→ results: what came of it, what failed
//!          ─ sentence → rules, decisions
//! Ledger ─ sections ──→ lines by their worth, each with the frame that it is from
//! ```

mod action;
mod chronicle;
mod excerpt;
mod frames;
mod open_result;
mod outcome;
mod plan;
mod section;
mod sentence;
mod shell;
mod speaker;
mod state;

pub(crate) use chronicle::Chronicle;
pub(super) use excerpt::excerpt;
pub(super) use outcome::flat;
pub(crate) use outcome::{brief, is_failure};
pub use section::LedgerLine;
pub(super) use section::{Filling, Section, SectionLine, take, write};
pub(crate) use sentence::rules;
pub(super) use speaker::{Speaker, command_in, may_be_words, speaker_of};
pub use state::Ledger;
