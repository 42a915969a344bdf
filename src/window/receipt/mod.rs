//! What a context no longer says, and how it is found again.
//!
//! ```text
//! ContextWindow ─ originals ─→ what stands for frames, each with its frames
//!                 readable ──→ the words of the context as it is sent
//!                 lost ──────→ rules, numbers, paths and names of the ones that the other lacks
//! LossReceipt ── search ─→ the frame and the place of a text ─ page ─→ at most so many tokens of it
//! ```
//!
//! All of it is computed when it is asked for, and kept nowhere.

mod loss_receipt;
mod lost;
mod originals;
mod page;
mod readable;
mod written;

pub use loss_receipt::{
    LossReceipt, LostKind, LostText, OriginalsState, ReplacedFrames, ReplacementKind,
};
pub use originals::{FoundText, WindowOriginals};
pub use page::FramePage;
pub(super) use readable::ReadableText;
