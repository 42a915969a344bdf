//! The facets that hold, and how frames change them.
//!
//! A [`Frame`] carries [`FacetOp`]s; [`Veil::apply`] is the one place where ops take effect. It
//! applies a frame whole or not at all, and answers with what the frame shows: the facets in the
//! order and the final form in which a renderer writes them. A [`History`] is the sequence of
//! frames with the veil that they lead to, and with the [`Pairs`] of their calls and results.

mod answer;
mod branch;
mod compaction;
mod context_edit;
mod facet;
mod frame;
mod frames;
mod held;
mod history;
mod imported;
mod kept;
mod media;
mod op;
mod open_calls;
mod origin;
mod outcome;
mod packed;
mod pairs;
mod part;
mod state;
mod subagent;
mod tags;
mod wire;

pub use answer::{AnswerId, CopyOf, ModelAnswer};
pub(crate) use branch::without;
pub use branch::{BRANCH_TOPIC, Branch};
pub use compaction::{COMPACTION_TOPIC, Compaction};
pub use context_edit::{CONTEXT_EDIT_TOPIC, ContextEdit};
pub use facet::{Call, Facet, Saliency};
pub use frame::{Frame, Source};
pub use frames::Frames;
pub use history::History;
pub(crate) use history::SealedFrame;
pub use imported::Imported;
pub(crate) use kept::Kept;
pub use media::Media;
pub(crate) use media::{MediaBlock, base64_len, data_url, is_text_document};
pub use op::{FacetChange, FacetOp};
pub use open_calls::{Answered, OpenCalls};
pub use origin::Origin;
pub use outcome::CallOutcome;
pub(crate) use packed::{HeldOp, LastRead};
pub(crate) use pairs::calls_and_results;
pub use pairs::{Pair, Pairs, PartPlace};
pub(crate) use part::is_cache_mark;
pub use part::{CacheMark, ContentForm, FacetPart, PartContent, PartSource};
pub use state::{Veil, VisibleFacets};
pub use subagent::{SUBAGENT_TOPIC, SubagentStart};
pub use tags::TagSet;
