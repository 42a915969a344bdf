//! What joins two modules that know nothing of each other.
//!
//! [`observed`] puts observations into contexts: the summary as an ambient facet, and lines in the
//! place of payloads. With the feature `journal`, `ReplayedVeil` is a veil that replays from a
//! journal, and with `timeline` too, `ReplayedTimeline` a world state that does.

#[cfg(feature = "checkpoint")]
pub mod checkpoint;
#[cfg(feature = "observe")]
pub mod observed;
#[cfg(all(feature = "journal", feature = "timeline"))]
mod replayed_timeline;
#[cfg(feature = "journal")]
mod replayed_veil;

#[cfg(all(feature = "journal", feature = "timeline"))]
pub use replayed_timeline::ReplayedTimeline;
#[cfg(feature = "journal")]
pub use replayed_veil::ReplayedVeil;
