//! Contexts that fit: the budget of a model's context window is kept, not warned about.
//!
//! A [`ContextWindow`] remembers what it did to one history so that its contexts fit a [`Budget`].
//! Blocks replace frames, long texts lose their middle, and some frames are dropped. Each change
//! costs the provider's prompt cache from there on. So changes come rarely, many at a time, and
//! stay until another replaces them. An [`Epoch`](crate::compress::Epoch) reports each.
//!
//! A very large tool result is shortened when it first comes, before any provider has cached it.
//! The window then takes these steps, and stops as soon as the context fits:
//!
//! 1. It compresses older frames down to the low mark.
//! 2. It shortens a text that takes more than half of the free room.
//! 3. It compresses newer frames too.
//! 4. It drops frames and blocks, the least valuable first.
//! 5. It shortens what stays.
//!
//! If the context still does not fit, the answer is an error that says who takes the room
//! ([`Breakdown`]), and no context.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::{
//!     compress::{CompressionOptions, OutlineEngine},
//!     hud::{Hud, RenderRequest}, id::{FacetType, Millis}, tokens::Chars4,
//!     veil::{Facet, FacetOp, Frame, History, Source},
//!     window::{Budget, ContextWindow},
//! };
//!
//! let hud = Hud::new(Arc::new(Chars4));
//! let mut history = History::new();
//! for n in 0..40_u64 {
//!     let text = format!("Reading {n} of sensor S-{}: {}", 1000 + n, "calm ".repeat(20));
//!     let facet = Facet::new(format!("reading-{n}"), FacetType::EVENT, text);
//!     let frame = Frame::new(n, Source::Environment).with(FacetOp::add(facet));
//!     hud.capture(&mut history, frame, Millis::new(0))?;
//! }
//! let budget = Budget::new(800);
//! let options = CompressionOptions { protected_frames: 4, ..budget.compression() };
//! let mut window = ContextWindow::new(hud, budget, options);
//! let fitted = window.render(&mut history, &RenderRequest::default(), &OutlineEngine, Millis::new(0))?;
//! assert!(fitted.context.tokens().total <= 800);
//! assert_eq!(window.transform().blocks().count(), 1);
//! # Ok::<(), afterimage::Error>(())
//! ```
//!
//! [`ContextWindow::receipt`] says what a context no longer says, and
//! [`ContextWindow::originals`] finds it again: a search, and pages of a few tokens.
//!
//! A program that calls its model itself, for example without blocking, asks for
//! [`ContextWindow::next_job`] until there is none, and then for [`ContextWindow::finish`].

mod breakdown;
mod budget;
mod change;
mod context_in_force;
mod context_window;
mod keep_rank;
mod last_context;
mod ledger;
mod live_results;
mod mask;
mod on_demand;
mod plan;
mod receipt;
mod recorded_compactions;
mod recorded_edits;
mod save;
mod shortening;
mod shrink;
mod standing;
mod unseen;
mod without_text;

pub use breakdown::Breakdown;
pub use budget::Budget;
pub use change::{DroppedFrames, ShortenedFrame};
pub(crate) use context_in_force::context_items;
pub use context_in_force::{ContextInForce, ContextItem, ContextSize, FormerBlock, LeftAt};
pub use context_window::{ContextWindow, FittedContext};
#[cfg(all(test, feature = "record"))]
pub(crate) use live_results::classes_of_results;
pub use on_demand::RangePreview;
pub use receipt::{
    FoundText, FramePage, LossReceipt, LostKind, LostText, OriginalsState, ReplacedFrames,
    ReplacementKind, WindowOriginals,
};
pub use recorded_compactions::RecordedCompactions;
#[cfg(feature = "storage")]
pub(crate) use without_text::tells_of_context;
pub(crate) use without_text::without_text;
