//! What joins the other modules: sessions, archives of transcripts, a viewer, budgets for requests, bridges.
//!
//! | item | does |
//! |---|---|
//! | `archive` (feature `storage`) | writes and reads the directories of `afterimage archive` |
//! | [`Session`] | owns an agent's memory: its loop says, asks, answers |
//! | [`Viewer`] | renders the frames of a transcript as they come |
//! | [`RequestFitter`] | fits a session's request into a budget |
//! | [`bridge`] | joins observations, journals and checkpoints with frames |
//!
//! This is the only layer that may use all others.

#[cfg(feature = "storage")]
pub mod archive;
pub mod bridge;
mod fitting;
mod live;
mod request_sums;
mod viewer;

pub use fitting::{Fit, FittedRequest, FittingStep, RequestFitter};
#[cfg(feature = "storage")]
pub use live::JournalStore;
#[cfg(feature = "nats")]
pub use live::NatsSession;
pub use live::{
    AnswerStream, Awaits, MemoryStore, Model, PaidAnswer, Receipt, Session, SessionAnswer,
    SessionOptions, SessionRequest, SessionStore, StreamedText, Tool, ToolCall,
};
pub use request_sums::RequestSums;
pub use viewer::{ViewedFrame, ViewedTail, Viewer, unknown_records};
