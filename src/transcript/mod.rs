//! Readers that turn what other programs recorded of their agents into frames.
//!
//! A [`Transcript`] recognises the format of its input by content, and then gives one [`Record`]
//! after the other: a frame and the session that it belongs to. Input by line is read in bounded
//! memory. Each format has a module with a decoder; all of them make their facets through `parts`
//! and hand their frames to one sink, which numbers them. `docs/transcripts.md` describes the
//! formats and what is counted.
//!
//! ```
//! use afterimage::transcript::Transcript;
//!
//! let file = br#"[{"role": "user", "content": "Is it open?"}, {"role": "assistant", "content": "Yes."}]"#;
//! let transcript = Transcript::new(&file[..])?;
//! let frames: Vec<_> = transcript.map(|record| Ok(record?.frame)).collect::<afterimage::Result<_>>()?;
//! assert_eq!(frames.len(), 2);
//! # Ok::<(), afterimage::Error>(())
//! ```

mod answer;
mod anthropic;
mod api;
mod atif;
mod attachments;
mod blocks;
mod body;
mod body_text;
mod branches;
mod bundle;
mod bytes;
mod chat;
mod choices;
mod claude_code;
mod claude_costs;
mod claude_requests;
mod claude_web;
mod cline;
mod codex;
mod codex_answer;
mod codex_fork;
mod codex_turns;
mod context_edit;
mod continue_dev;
mod converse;
mod copilot;
mod copilot_usage;
mod database;
mod draft;
mod echo;
#[cfg(feature = "record")]
mod event_stream;
mod exchange;
#[cfg(feature = "record")]
mod flight;
mod folder;
mod format;
mod frames;
mod gemini;
mod gemini_message;
mod generate_content;
mod goose;
mod har;
mod import_report;
mod input;
mod inspect;
mod interaction;
mod items;
mod joining;
mod kept;
mod kimi;
mod kimi_context;
mod kimi_request;
mod kimi_state;
mod limit_window;
mod lines;
mod live_messages;
mod logged_call;
#[cfg(test)]
mod logged_tests;
#[cfg(test)]
mod lossless_tests;
mod mini_swe_agent;
mod model_name;
mod names;
mod ollama;
mod opencode;
#[cfg(feature = "sqlite")]
mod opencode_database;
mod openhands;
mod otlp;
#[cfg(test)]
mod outcome_tests;
mod pairing;
mod parts;
mod pi;
mod places;
mod provenance;
pub(crate) mod provider_json;
mod qwen_code;
mod read_exchange;
mod recent;
mod reply;
pub(crate) mod request_body;
mod request_prints;
mod responses;
#[cfg(test)]
mod sample;
mod sdk_parts;
mod shards;
mod sink;
#[cfg(test)]
mod speaker_tests;
mod sse;
mod starts;
mod stream_text;
mod subagents;
mod swe_agent;
mod take;
mod tally;
mod tau_bench;
#[cfg(test)]
mod testing;
mod threads;
mod times;
mod toolbench;
mod unread;
mod wire;
#[cfg(feature = "record")]
mod yaml;

use std::sync::Arc;

pub use api::Api;
pub use body_text::BodyText;
pub use bytes::decoded;
pub use context_edit::AppliedEdit;
pub(crate) use context_edit::ClearedPart;
pub use database::{DatabaseSession, database_sessions};
pub(crate) use exchange::{Asked, CONVERSATION, PREVIOUS};
pub use exchange::{CopiedUsage, Exchange, ExchangeOutcome};
#[cfg(feature = "record")]
pub(crate) use flight::exchange_at;
pub use folder::is_recording_folder;
pub use format::{SourceContent, TranscriptFormat};
pub use import_report::{ImportReport, RecordNote, UnknownRecord};
pub use input::Transcript;
pub(crate) use kept::Kept;
pub use limit_window::LimitWindow;
#[cfg(feature = "rules")]
pub(crate) use model_name::HostedName;
pub(crate) use model_name::without_router;
pub use provenance::{Lack, Provenance};
pub(crate) use reply::ReplyFrames;
pub(crate) use sse::events as sse_events;
pub(crate) use stream_text::said_in;
pub use subagents::subagent_files;
pub use tally::Tally;

pub use crate::usage::{Currency, Money, Usage, UsageMembers};
use crate::{json::Value, veil::Frame};
use sink::Sink;

/// One frame of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The session that the frame belongs to. A file may hold several, one after the other or
    /// interleaved; contexts never cross them.
    pub session: Arc<str>,
    /// The frame. Sequences rise by one over the whole file; afterimage's own frames keep theirs.
    pub frame: Frame,
}

/// Turns the records of one format into frames.
trait Decoder: Send {
    /// Takes the next record: a line, or the whole document with line one.
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink);

    /// Gives out what was held back.
    fn finish(&mut self, _sink: &mut Sink) {}

    /// Ends the reading, once, after the last of the files that belong together.
    fn end(&mut self, _sink: &mut Sink) {}
}
