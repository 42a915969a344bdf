//! Who speaks in a session, what the user demands, what calls do, and what came of them: read once,
//! for all who ask.
//!
//! ```text
//! texts ───── TextLog, WordPlaces → the user, the agent, a program, the operator
//! message ─── OwnWords → what of it is certainly the user's
//! sentences ─ Demands ─→ rules, and what takes them back
//! arguments ─ Action ──→ kind, subject, files with what happens to each, plan, work asked for
//! command ─── shell, script ──→ the files that it touches
//! result ──── Class ───→ done, failed, not run, cancelled, denied, or going on
//! frames ──── FacetCalls → the call that each facet belongs to
//! ```
//!
//! What a source states of a call ([`CallOutcome`](crate::veil::CallOutcome)) stands before what the
//! words of its result suggest.

mod action;
mod contents;
mod demands;
mod envelope;
mod facet_calls;
mod file_read;
mod outcome;
mod own_words;
pub(crate) mod passage;
pub(crate) mod plan;
pub(crate) mod running;
mod script;
mod sentence;
mod shell;
mod speaker;
mod words_table;

pub(crate) use action::{Action, CallKind, arguments};
pub(crate) use contents::summarise_lines;
pub(crate) use demands::{Demand, Demands};
pub(crate) use envelope::{is_note, is_prompt, unwrap_output};
pub use facet_calls::{FacetCall, FacetCalls, ToolCall};
pub(crate) use file_read::{FileRead, LineRange};
pub(crate) use outcome::{
    Asked, Class, failing_lines, failure, is_error_line, is_silent, outcome_line, single_line,
    telling_line,
};
pub(crate) use own_words::OwnWords;
pub(crate) use passage::Passage;
pub(crate) use plan::{Item, PlanStep, Status};
pub(crate) use sentence::{
    correction::forbids, is_question, lower, rule::holds_rule, sentences, words,
};
pub use speaker::words_in;
pub(crate) use speaker::{
    Heard, Speaker, TextLog, WordPlaces, is_of_program, is_words, last_command, may_be_words,
    said_by_user,
};

pub use words_table::WORDS;
pub(crate) use words_table::WordsTable;

/// What a call does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Touch {
    /// It reads it.
    Read,
    /// It changes a part of it.
    Changed,
    /// It writes it as a whole.
    Written,
    /// It deletes it.
    Deleted,
    /// It moves it to where the next touch is.
    Moved,
    /// The file of the touch before is here now.
    MovedHere,
}

impl Touch {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Changed => "changed",
            Self::Written => "written",
            Self::Deleted => "deleted",
            Self::Moved => "moved",
            Self::MovedHere => "movedHere",
        }
    }
}
