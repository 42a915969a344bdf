//! The archive: all snapshots of a history in one arena, with what is asked of them answered in
//! time that does not depend on how long the history is.
//!
//! A [`SnapshotArchive`] takes snapshots, an [`ArchiveReader`] answers. Frames gather in a
//! *segment*: one text, and `tables` of its frames and chunks with their facets and words. A full
//! segment is sealed: it never changes again, so readers share it (`open_tables`, `sealed_tables`). The `directory` lists the
//! segments with what stands before each, so any range is found by two binary searches and its
//! sums are two differences. The `index` knows which segments hold a facet, the tables which chunks.

mod archived_frame;
mod check;
mod directory;
mod frame_rows;
mod index;
mod names;
mod open_tables;
mod place;
mod range_by_role;
mod reader;
mod sealed_tables;
mod state;
#[cfg(feature = "storage")]
mod store;
mod tables;
mod text;
mod view;
mod writer;

pub(crate) use archived_frame::{ArchivedFrame, SealedSegment, SegmentBuilder};
pub use directory::Totals;
pub(super) use place::{ArchivedFacets, ArchivedPlace};
pub use range_by_role::RangeByRole;
pub use reader::ArchiveReader;
#[cfg(feature = "storage")]
pub use store::OpenedArchive;
pub use view::{RangeText, RangeView};
pub use writer::{ArchiveOptions, SnapshotArchive};
