//! Compression: summaries replace ranges of frames, and the originals stay reachable.
//!
//! It is handed frames that are already rendered, and hands plain data back. A
//! [`CompressionTransform`] plans ranges of a history; a [`CompressionJob`] says what is to be
//! summarised; an [`Engine`] or the caller's own model answers; a [`CompressionBlock`] stands for
//! the frames from then on, and [expands](CompressionBlock::expand) to them.
//!
//! | engine | feature | answers |
//! |---|---|---|
//! | [`OutlineEngine`] | | without a model: who did what, and the names that will be needed |
//! | [`FnEngine`] | | with a closure; [`FnEngine::continued`] goes on from the session's last request |
//! | [`AsyncEngine`] | | with a future, for programs that do not block |
//! | `CommandEngine` | `command` | with a program that reads the [`prompt()`] |
//! | `CheckpointEngine` of the module `checkpoint` | `checkpoint` | with one running checkpoint, for which another engine reads what is new |
//!
//! Answers of models are checked: an [`AnswerCheck`] knows what they must not lose. [`CheckedEngine`]
//! checks those of any other engine.

mod answer_check;
mod async_engine;
mod block;
mod checked;
#[cfg(feature = "command")]
mod command;
mod continued;
mod engine;
mod failure_limit;
mod function;
mod job;
mod net;
mod options;
mod outline_engine;
mod prompt;
pub(crate) mod saved;
mod state;
mod transform;
mod unit;
mod walk;

#[doc(inline)]
pub use crate::{
    steps::passage::Passage,
    summary::{Ledger, LedgerLine},
};
pub use answer_check::{AnswerCheck, Essential, EssentialKind, Revision};
pub use async_engine::AsyncEngine;
pub use block::CompressionBlock;
pub use checked::CheckedEngine;
#[cfg(feature = "command")]
pub use command::CommandEngine;
pub use continued::{CONTINUED_TEMPLATE, ContinuedRequest, SentMessage, SentRequest};
pub use engine::{Engine, Summary, SummaryRequest};
pub use failure_limit::FailureLimit;
pub use function::FnEngine;
pub use job::CompressionJob;
pub use net::NetOps;
pub use options::CompressionOptions;
pub use outline_engine::OutlineEngine;
pub use prompt::{PROMPT_TEMPLATE, PromptParts, REVISION_TEMPLATE, prompt};
use prompt::{again, keep, mark, stands, transcript_of};
pub use state::CompressionState;
pub use transform::{
    CompressionTransform, Epoch, RangePlan, RangeState, SealedPlan, StayReason, StayingFrames,
};
pub(crate) use unit::Unit;
pub(crate) use walk::Step;
