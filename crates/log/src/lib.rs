//! What every store writes through: files of checksummed records, atomic writes, one lock.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage_log::{DirLock, DiskFiles, ScanEntry, FileKind, Holder, RecordFile, RecordWriter};
//!
//! const NOTES: FileKind = FileKind::new(*b"notes\0\0\0", 1);
//! # let scratch = tempfile::tempdir().unwrap();
//! # let directory = scratch.path();
//!
//! // One writer for a directory. Who comes second is told who is first.
//! let _lock = DirLock::acquire(&DiskFiles, directory, &Holder::new("example"))?;
//!
//! let path = directory.join("notes.rec");
//! let (mut writer, recovery) = RecordWriter::open(Arc::new(DiskFiles), &path, NOTES)?;
//! assert_eq!(recovery.cut, None);
//! let first = writer.append(b"the hull holds")?;
//! writer.append(b"\xff\x00 any bytes")?;
//! writer.sync()?; // From here on a crash loses neither.
//!
//! // One record by its position, or all that are there.
//! let records = RecordFile::open(&DiskFiles, &path, NOTES)?;
//! assert_eq!(records.read(first)?, b"the hull holds");
//! for entry in records.scan()? {
//!     match entry? {
//!         ScanEntry::Record(record) => assert!(record.index < 2),
//!         ScanEntry::Damage(damage) => eprintln!("{damage}"),
//!         ScanEntry::Torn(torn) => eprintln!("{torn}"),
//!     }
//! }
//! # Ok::<(), afterimage_log::Error>(())
//! ```
//!
//! Everything goes through [`Files`], an object-safe trait over the few operations that stores
//! need: [`DiskFiles`] is the operating system's. [`RecordWriter`] appends records and
//! [`RecordFile`] reads them; a [`Scan`] tells sound records, [`Damage`] and a [`TornEnd`] tail apart,
//! and covers each byte of the file. [`write_atomic`] is for small files that are replaced as a
//! whole, [`line`](mod@line) for lines of JSON that carry their checksum. `docs/FORMAT.md` describes the bytes.
//!
//! Checksums find what disks and crashes do. They are no protection against someone who forges
//! them.

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod atomic;
mod damage;
mod dir_lock;
mod disk;
mod error;
mod files;
mod high_water;
mod layout;
pub mod line;
mod line_file;
mod name;
mod packed;
mod record_file;
mod record_writer;
mod scan;
mod survey;
#[doc(hidden)]
pub mod testing;
mod whole_sync;
mod within;

pub use atomic::{create_dirs, write_atomic};
pub use damage::{Damage, DamageReason};
pub use dir_lock::{DirLock, Holder};
pub use disk::{DiskFiles, private_options};
pub use files::{Files, OpenFile, OpenMode};
pub use high_water::{EndProblem, FoundMark, HighWater, LogMark, LostEnd};
pub use layout::FileKind;
pub use line_file::scan_at_most;
pub use line_file::{
    LineDamage, LineScan, LineWriter, SoundLine, read_file, scan_file, scan_lines,
};
pub use name::{escape, file_name};
pub use packed::{pack, pack_file, unpack, unpack_file};
pub use record_file::{Position, RecordFile, RecordInfo};
pub use record_writer::{CutTail, RecordWriter, Recovery, TornFile};
pub use scan::{Scan, ScanEntry, TornEnd};
pub use survey::Survey;
pub use whole_sync::WholeSync;
pub use within::{borrowed_within, within};

#[doc(no_inline)]
pub use afterimage_json as json;
pub use error::{Error, ErrorKind};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
