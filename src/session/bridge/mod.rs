//! What joins two modules that know nothing of each other.
//!
//! [`observed`] puts observations into contexts: the summary as an ambient facet, and lines in the
//! place of payloads. With the feature `storage`, `ReplayedVeil` is a veil, and
//! `ReplayedTimeline` a world state, that replays from a journal.

pub mod checkpoint;
pub mod observed;
#[cfg(feature = "storage")]
mod replayed_timeline;
#[cfg(feature = "storage")]
mod replayed_veil;

#[cfg(feature = "storage")]
pub use replayed_timeline::ReplayedTimeline;
#[cfg(feature = "storage")]
pub use replayed_veil::ReplayedVeil;
