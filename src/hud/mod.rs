//! The one renderer: from facets to text, chunks and contexts.
//!
//! A [`Hud`] is built once with a [`Format`], a token counter and a table of roles. It renders
//! each frame once: [`Hud::capture`] pushes a frame to a history and seals it with the snapshot
//! of what it rendered to; a [`CapturePolicy`] may put that off. [`Hud::render`] puts the snapshots of a history together into the
//! messages of a [`RenderedContext`], re-rendering only frames that have none, and renders the
//! tail: what the model sees besides frames. A [`Format`] decides how one facet looks; everything
//! around it (turn markers, separators, attribution, counting) is the renderer's.

mod assemble;
mod assembly;
mod canvas;
mod capture;
mod context;
mod format;
mod guard;
mod message;
mod messages;
mod native;
mod plain;
mod render;
mod shared;
#[cfg(test)]
mod shared_tests;
#[cfg(feature = "templates")]
mod template;
mod wire;
mod xml;

pub use assemble::{Merge, RenderRequest};
pub(crate) use assembly::Guard;
pub use canvas::Canvas;
pub use capture::CapturePolicy;
pub use context::{ContextTokens, Owner, ProviderFraming, RenderedContext, Run, Span};
pub use format::{Format, format_by_name};
pub use message::Message;
pub use messages::{Messages, MessagesIter};
pub use native::NativeFormat;
pub use plain::PlainFormat;
pub use render::{Hud, HudBuilder, RENDERER_VERSION, default_roles};
#[cfg(feature = "templates")]
pub use template::TemplateFormat;
pub use xml::XmlFormat;
