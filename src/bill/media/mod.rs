//! Images, sounds and documents: what they cost by the rules that providers publish.
//!
//! A [`MediaItem`] is what the rules count of one: its size in pixels or pages, and how closely a
//! model is to look at it. It comes from a frame, or from the body of a request. Nothing is fetched.

mod dimensions;
mod documents;
mod held;
mod item;
mod rules;
mod sizing;

pub use dimensions::image_size;
pub use documents::{document_tokens, pdf_pages};
pub(super) use held::RequestMedia;
pub use held::{MediaCount, media_counts};
pub use item::{MediaGap, MediaItem, MediaKind};
pub(super) use rules::ImageRule;
pub use rules::{ImageDetail, MediaRule, image_tokens, image_tokens_at};
