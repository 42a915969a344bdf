//! Directories of archived transcripts: the frames of each, and what they rendered to.
//!
//! An [`ArchiveBuilder`] makes one, transcript by transcript, and [`open`] reads one. An
//! [`ArchivedTranscript`] answers from tables where it can, and reads single frames where it must:
//! so a search over a large archive reads little of it. `docs/FORMAT.md` describes the bytes.
//!
//! ```
//! use afterimage::{
//!     Error, hud::{Hud, NativeFormat}, id::{FacetType, Millis},
//!     session::archive::{self, ArchiveBuilder, TranscriptSource},
//!     tokens::Chars4, transcript::{Record, ImportReport, TranscriptFormat},
//!     veil::{Facet, FacetOp, Frame, Source},
//! };
//! use std::sync::Arc;
//!
//! # let scratch = tempfile::tempdir().map_err(|error| Error::io(error, "make a folder"))?;
//! # let directory = &scratch.path().join("made");
//! let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
//! let source = TranscriptSource {
//!     file: "harbour.jsonl".to_owned(),
//!     input_format: TranscriptFormat::Frames,
//!     format: "native".to_owned(),
//! };
//! let builder = ArchiveBuilder::create(directory)?;
//! let mut transcript = builder.transcript(source, &hud, hud.counter())?;
//! let facet = Facet::new("tide", FacetType::EVENT, "high water at 06:10");
//! let frame = Frame::new(1, Source::Environment).with(FacetOp::add(facet));
//! let record = Record { session: "harbour".into(), frame };
//! transcript.push(record, None, Millis::new(0))?;
//! builder.add(transcript.finish(&ImportReport::default())?)?;
//! builder.finish()?;
//!
//! let transcripts = archive::open(directory)?;
//! let row = transcripts[0].rows()?[0];
//! let text = transcripts[0].view(row, |view| view.text().join().into_owned())?;
//! assert!(text.contains("high water"));
//! # Ok::<(), afterimage::Error>(())
//! ```

mod archived_transcript;
mod builder;
mod directory;
mod exchange_record;
mod exchanges_reader;
mod exchanges_writer;
mod frame_table;
mod frames_reader;
mod frames_writer;
mod late_sync;
mod manifest;
mod recount;
mod session_writer;
mod sessions;
mod transcript_writer;
mod written_transcript;

use std::path::{Path, PathBuf};

use crate::{
    Error, ErrorKind,
    log::{FileKind, Holder},
};

pub use archived_transcript::ArchivedTranscript;
pub use builder::{ArchiveBuilder, ArchiveSummary};
pub use directory::{DirectoryState, open, state};
pub use frame_table::FrameRow;
pub use manifest::{SessionEntry, TranscriptEntry};
pub use transcript_writer::{TranscriptSource, TranscriptWriter};
pub use written_transcript::WrittenTranscript;

/// The list of what is in the directory, which is written last.
const MANIFEST: &str = "archive.json";
/// What is there while a directory is being made: who finds it without a list may make it anew.
const UNFINISHED: &str = "unfinished";
/// The folder of the transcripts that are being written; each gets its place when it is whole, and
/// those before it have theirs.
const MAKING: &str = "making";
/// The frames of a transcript.
const FRAMES: &str = "frames.rec";
const FRAMES_KIND: FileKind = FileKind::new(*b"aiframe\0", 1);
/// Its recorded exchanges.
const EXCHANGES: &str = "exchanges.rec";
const EXCHANGES_KIND: FileKind = FileKind::new(*b"aiexchg\0", 1);

/// The folder of the transcript, or of the session, with this index.
fn folder(inside: &Path, index: usize) -> PathBuf {
    inside.join(format!("{:04}", index + 1))
}

/// Who holds the lock while an archive is made, and the file of the lock.
const HOLDER: &str = "afterimage archive";
const LOCK: &str = "lock";

fn holder() -> Holder {
    Holder::new(HOLDER)
}

/// What is not as an archive was written.
fn damaged(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Damaged, format!("the archive is damaged: {what}")).in_file(path)
}
