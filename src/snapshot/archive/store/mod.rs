//! The archive on disk: a directory with three record files, one record for each segment in each.
//! `docs/FORMAT.md` describes their bytes.
//!
//! [`SnapshotArchive::save`] writes all segments and [`SnapshotArchive::append`] those that are
//! new: first text and tables, synced, then the commit that makes a segment there. Opening reads
//! the commits alone; the store reads tables and text when they are asked for.

mod bytes;
mod codec;
mod commit;
mod files;
mod open;
mod save;

pub(super) use commit::Places;
pub(super) use files::StoreFiles;
pub use open::OpenedArchive;
pub(super) use save::Writers;
