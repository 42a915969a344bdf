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
mod action;
mod answer;
mod calls;
mod chronicle;
mod constraint;
mod contents;
mod context_texts;
mod correction;
mod decision;
mod decisions;

mod envelope;
mod excerpt;
mod file_read;
mod filling;
mod frames;
mod happened;
mod json_row;
mod left_out;
mod line_kind;
mod material_words;
mod message_scan;
mod obstacle;
mod open_call;
mod open_result;
mod outcome;
mod own_words;
mod plan;
mod quotations;
mod replies;
mod rule;
mod running;
mod script;
mod section;
mod sentence;
mod shell;
mod speaker;
mod standing;
mod state;
mod text_log;
mod topic;
mod trailer;

pub(crate) use action::command_subject;
pub(crate) use answer::{brief, worth_keeping};
pub(crate) use chronicle::Chronicle;
pub(crate) use chronicle::Happened;
pub(crate) use context_texts::ContextTexts;
pub(super) use excerpt::{LEFT_OUT, ends, excerpt};
pub(crate) use file_read::{FileRead, LineRange};
pub(super) use filling::{Filling, Form, take, write};
pub(super) use happened::quoted;
pub(super) use left_out::LeftOut;
pub(crate) use open_call::Touched;
pub(crate) use outcome::Class;
pub(crate) use own_words::OwnWords;
pub(super) use rule::is_said;
pub(crate) use rule::rules;
pub use section::LedgerLine;
pub(super) use section::{Section, SectionLine};
pub(super) use speaker::{Speaker, is_of_program, may_be_words};
pub use state::Ledger;
pub(super) use text_log::{TextLog, fenced_command, words_behind};
