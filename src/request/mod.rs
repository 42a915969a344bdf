//! Requests: what a model was sent, with its tools, its parameters and its system prompt.
//!
//! A [`Recording`] is a session's frames and its [`Exchange`]s: a request, its response and its
//! usage. What a [`Request`] holds depends on the source, and its [`Provenance`] says so: the bytes
//! of the wire, the JSON that a client logged, or what was worked out from a transcript, with the
//! list of what transcripts lack.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::{
//!     id::Millis, request::{Provenance, Recording}, tokens::Chars4, transcript::Transcript,
//! };
//!
//! let traffic = br#"{"interactions": [{"uri": "https://api.example/v1/messages",
//!     "request": "{\"model\":\"m\",\"tools\":[{\"name\":\"look\"}],\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}",
//!     "status": 200, "response": {"content": [{"type": "text", "text": "Hello."}]}}]}"#;
//! let transcript = Transcript::new(&traffic[..])?;
//! let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0))?;
//! let request = recording.request(1)?;
//! assert_eq!(request.provenance(), &Provenance::Sent);
//! assert!(request.body().starts_with(r#"{"model":"m""#));
//! let byte = request.body().find("look").unwrap();
//! let part = request.parts().into_iter().find(|part| part.range.contains(&byte)).unwrap();
//! assert_eq!(part.facet_id().as_str(), "tool:look");
//! # Ok::<(), afterimage::Error>(())
//! ```

mod answers;
mod cache_break;
mod chain;
mod cleared;
mod compare;
mod grown;
mod outline;
mod overhead;
mod parts;
mod recording;
mod reports;
#[expect(clippy::module_inception, reason = "the module is named for its main type")]
mod request;
mod strings;
mod tools;

pub(crate) use answers::{Answer, Answers};
pub use cache_break::{CacheBreak, CacheFrom};
pub use cleared::ClearedBlock;
pub(crate) use compare::Changes;
pub use compare::{
    FormChange, ParameterChange, RequestDiff, ReshapedContent, ToolChange, compare, reshaped,
};
pub(crate) use compare::{TOOL_CONFIG, tool_list};
#[cfg(feature = "rules")]
pub(crate) use compare::{changes, differing_tool, tool_names};
pub(crate) use grown::TurnStart;
pub(crate) use outline::RequestHead;
pub use overhead::RequestOverhead;
pub use parts::{PartKind, RequestPart};
pub use recording::Recording;
pub(crate) use reports::Reports;
pub use reports::answering_model;
pub(crate) use request::{CountedParts, form_of};
pub use request::{Request, RequestTokens};
pub(crate) use tools::{RecordedTools, written as tools_written};

pub use crate::transcript::{CopiedUsage, Exchange, ExchangeOutcome, Lack, Provenance};
