//! Where a session stands: what compression carries on and never compresses again.
//!
//! ```text
//! passages ─ speaker ─→ who says what: the user, the agent, a program
//!          ─ action ──→ calls: which file, which command, which plan
//!          ─ outcome ─→ results: what came of it, what failed
//!          ─ sentence → rule, correction, decision
//! Ledger ─ sections ──→ lines by their worth, each with the frame that it is from
//! ```

mod act;
mod answer;
mod calls;
mod chronicle;
mod constraint;
mod context_texts;
mod correction;
mod decision;
mod decisions;

mod excerpt;
mod filling;
mod frames;
mod happened;
mod json_row;
mod left_out;
mod line_kind;
mod message_scan;
mod obstacle;
mod open_call;
mod open_result;
mod own_words;
mod quotations;
mod replies;
mod rule;
mod section;
mod sentence;
mod speaker;
mod standing;
mod state;
mod text_log;
mod topic;
mod trailer;

pub(crate) use answer::{brief, worth_keeping};
pub(crate) use chronicle::Chronicle;
pub(crate) use chronicle::Happened;
pub(crate) use context_texts::ContextTexts;
pub(super) use excerpt::{LEFT_OUT, ends, excerpt};
pub(super) use filling::{Filling, Form, take, write};
pub(super) use happened::quoted;
pub(super) use left_out::LeftOut;
pub(crate) use own_words::OwnWords;
pub(super) use rule::is_said;
pub(crate) use rule::rules;
pub use section::LedgerLine;
pub(super) use section::{Section, SectionLine};
pub(super) use speaker::{Speaker, is_of_program, may_be_words};
pub use state::Ledger;
pub(super) use text_log::{TextLog, fenced_command};
