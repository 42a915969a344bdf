//! What every store writes through: files of checksummed records, atomic writes, one lock.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::log::{DirLock, DiskFiles, Entry, FileKind, Holder, RecordFile, RecordWriter};
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
//!         Entry::Record(record) => assert!(record.index < 2),
//!         Entry::Damage(damage) => eprintln!("{damage}"),
//!         Entry::Torn(torn) => eprintln!("{torn}"),
//!     }
//! }
//! # Ok::<(), afterimage::Error>(())
//! ```
//!
//! Everything goes through [`Files`], an object-safe trait over the few operations that stores
//! need: [`DiskFiles`] is the operating system's. [`RecordWriter`] appends records and
//! [`RecordFile`] reads them; a [`Scan`] tells sound records, [`Damage`] and a [`Torn`] tail apart,
//! and covers each byte of the file. [`write_atomic`] is for small files that are replaced as a
//! whole, [`line`](mod@line) for lines of JSON that carry their checksum. The bytes are described in [`format_of_files`](crate::format_of_files).
//!
//! Checksums find what disks and crashes do. They are no protection against someone who forges
//! them.

mod atomic;
mod damage;
mod dir_lock;
mod disk;
mod files;
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

pub use atomic::{create_dirs, write_atomic};
pub use damage::{Damage, Reason};
pub use dir_lock::{DirLock, Holder};
pub use disk::DiskFiles;
pub use files::{Files, OpenFile, OpenMode};
pub use layout::FileKind;
pub use line_file::{LineDamage, LineScan, LineWriter, SoundLine, read_file, scan_lines};
pub use name::file_name;
pub use packed::{pack, pack_file, unpack, unpack_file};
pub use record_file::{Position, RecordFile, RecordInfo};
pub use record_writer::{CutTail, RecordWriter, Recovery, TornTail};
pub use scan::{Entry, Scan, Torn};
pub use survey::Survey;
