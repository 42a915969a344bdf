use std::{fmt, path::Path, sync::Arc};

use crate::{Error, ErrorKind};

/// A stretch of a record file that holds no record that passes its checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, as it was opened.
    pub file: Arc<Path>,
    /// The index of the record that is there or, where its header is lost, that should be. The
    /// index of the next record that is found tells how many are lost.
    pub record: u64,
    /// Where the stretch begins, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// Which check failed.
    pub reason: DamageReason,
}

impl Damage {
    /// The damage as an error of kind [`ErrorKind::Damaged`].
    pub fn to_error(&self) -> Error {
        Error::new(ErrorKind::Damaged, self.reason.to_string()).in_file(&*self.file).at(|place| {
            place.record = Some(self.record);
            place.offset = Some(self.offset);
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, record, offset, length, reason } = self;
        write!(f, "{reason} ({}, record {record}, offset {offset}, {length} bytes)", file.display())
    }
}

/// Which check a record failed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageReason {
    /// No record begins here: the header is not one, or fails its check.
    Header,
    /// The file ends before the record does.
    Cut {
        /// How many bytes the record takes: those of its header, where that is cut.
        expected: u64,
        /// How many of them the file has.
        found: u64,
    },
    /// The payload is not what was written.
    Payload {
        /// The checksum in the header.
        expected: u32,
        /// The checksum of the payload.
        found: u32,
    },
    /// Bytes of the payload were never written: it lies over a hole in the file, which takes no
    /// room on the disk.
    Hole {
        /// Where the hole is, in bytes from the start of the file.
        at: u64,
    },
    /// The record is sound, but not the one that belongs here.
    Index {
        /// The index that follows the one before.
        expected: u64,
        /// The index in the header.
        found: u64,
    },
    /// The header is sound, but was written for another place: bytes before it are gone, or were
    /// put in.
    Displaced {
        /// The offset for which it was written.
        from: u64,
    },
}

impl fmt::Display for DamageReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header of the record fails its check"),
            Self::Cut { expected, found } => {
                write!(f, "the record is cut: expected {expected} bytes, found {found}")
            }
            Self::Payload { expected, found } => write!(
                f,
                "the payload of the record fails its check: expected {expected:08x}, found {found:08x}"
            ),
            Self::Hole { at } => {
                write!(
                    f,
                    "the payload of the record was never written: the file has a hole at offset {at}"
                )
            }
            Self::Index { expected, found } => {
                write!(f, "expected record {expected}, found record {found}")
            }
            Self::Displaced { from } => {
                write!(
                    f,
                    "the record was written for offset {from}, so bytes before it are missing or too many"
                )
            }
        }
    }
}
