//! Directories of archived transcripts: the frames of each, and what they rendered to.
//!
//! A [`Builder`] makes one, transcript by transcript, and [`open`] reads one: each transcript in
//! it is an [`ArchivedFile`], which the input layer hands out in place of the file. `docs/FORMAT.md`
//! describes the bytes.

mod archived_file;
mod builder;
mod directory;
mod file_writer;
mod frame_table;
mod frames_reader;
mod frames_writer;
mod late_sync;
mod manifest;
mod recount;
mod session_writer;
mod sessions;

use std::path::{Path, PathBuf};

use afterimage::log::{FileKind, Holder};

pub(crate) use archived_file::ArchivedFile;
pub(crate) use builder::{Builder, Summary};
pub(crate) use directory::open;
pub(crate) use frame_table::Row;
pub(crate) use manifest::{FileEntry, SessionEntry};

/// The list of what is in the directory, which is written last.
const MANIFEST: &str = "archive.json";
/// The frames of a transcript.
const FRAMES: &str = "frames.rec";
const FRAMES_KIND: FileKind = FileKind::new(*b"aiframe\0", 1);

/// The folder of the transcript, or of the session, with this index.
fn folder(inside: &Path, index: usize) -> PathBuf {
    inside.join(format!("{:04}", index + 1))
}

fn holder() -> Holder {
    Holder::new("afterimage archive")
}
