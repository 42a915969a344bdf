//! The bytes of a record file; `docs/FORMAT.md` describes them.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// How a record file begins. The first byte is no text, and line ends of every kind are in it, so
/// that a transfer that changes such things is noticed.
const FILE_MAGIC: [u8; 8] = *b"\x89AIR\r\n\x1a\n";

/// The version of the layout of headers.
const LAYOUT: u32 = 1;

/// The length of the header of a file.
pub(super) const FILE_HEADER: u64 = 32;

/// How a record begins. No UTF-8 text holds the first byte.
pub(super) const RECORD_MAGIC: [u8; 4] = *b"\xfeREC";

/// The length of the header of a record, in memory and in a file.
pub(super) const RECORD_HEADER_SIZE: usize = 36;
pub(super) const RECORD_HEADER: u64 = RECORD_HEADER_SIZE as u64;

/// What a record file holds: the name of the kind, and the version of what is in its records.
///
/// ```
/// use afterimage_log::FileKind;
///
/// const ARCHIVE: FileKind = FileKind::new(*b"archive\0", 1);
/// assert_eq!(ARCHIVE.to_string(), "archive, version 1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKind {
    name: [u8; 8],
    version: u32,
}

impl FileKind {
    /// A kind by its name, filled up with zeros, and the newest version that the caller knows.
    pub const fn new(name: [u8; 8], version: u32) -> Self {
        Self { name, version }
    }

    /// The header of a file of this kind.
    pub(super) fn header(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_HEADER as usize);
        bytes.extend(FILE_MAGIC);
        bytes.extend(LAYOUT.to_le_bytes());
        bytes.extend(self.name);
        bytes.extend(self.version.to_le_bytes());
        bytes.extend([0; 4]);
        seal(&mut bytes, 0);
        bytes
    }

    /// Refuses `header`, the first bytes of a file, where it is not that of this kind and version.
    pub(super) fn check(self, header: &[u8]) -> Result<()> {
        let unknown = |found: &dyn fmt::Display| {
            let message = format!("expected a record file ({self}), found {found}");
            Err(Error::new(ErrorKind::UnknownFormat, message))
        };
        let version_of = |what: &str, known: u32, found: u32| {
            let message = format!("expected {what} {known}, found {found}");
            Err(Error::new(ErrorKind::Version, message))
        };
        if header.is_empty() {
            return unknown(&"an empty file");
        }
        let mut rest = header;
        if take(&mut rest) != Some(FILE_MAGIC) {
            let start = header.get(..header.len().min(8)).unwrap_or_default();
            return unknown(&format_args!("a file that begins with \"{}\"", start.escape_ascii()));
        }
        let fields =
            (|| Some((take_u32(&mut rest)?, take::<8>(&mut rest)?, take_u32(&mut rest)?)))();
        let Some((layout, name, version)) =
            fields.filter(|_| is_sealed(header, FILE_HEADER as usize))
        else {
            return Err(Error::new(ErrorKind::Damaged, "the header of the file fails its check")
                .at(|place| place.offset = Some(0)));
        };
        if layout != LAYOUT {
            return version_of("a record file of layout", LAYOUT, layout);
        }
        let found = Self { name, version };
        if name != self.name {
            return unknown(&format_args!("one of another kind ({found})"));
        }
        if version != self.version {
            return version_of(&format!("{} of version", self.text()), self.version, version);
        }
        Ok(())
    }

    fn text(self) -> String {
        let name = self.name.split(|byte| *byte == 0).next();
        name.unwrap_or_default().escape_ascii().to_string()
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, version {}", self.text(), self.version)
    }
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) index: u64,
    /// Where the header was written: what lies elsewhere is a copy, or was moved.
    pub(super) offset: u64,
    /// The length of the payload.
    pub(super) length: u64,
    /// The checksum of the payload.
    pub(super) crc: u32,
}

impl RecordHeader {
    /// Appends the bytes of the header.
    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend(RECORD_MAGIC);
        bytes.extend(self.crc.to_le_bytes());
        bytes.extend(self.index.to_le_bytes());
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        seal(bytes, start);
    }

    /// The header of which `bytes` are; `None` where they fail their check.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        if take(&mut rest) != Some(RECORD_MAGIC) || !is_sealed(bytes, RECORD_HEADER_SIZE) {
            return None;
        }
        Some(Self {
            crc: take_u32(&mut rest)?,
            index: take_u64(&mut rest)?,
            offset: take_u64(&mut rest)?,
            length: take_u64(&mut rest)?,
        })
    }

    /// Where the record ends; `None` where no file is that long.
    pub(super) fn end(self) -> Option<u64> {
        self.offset.checked_add(RECORD_HEADER)?.checked_add(self.length)
    }
}

/// Appends the checksum of what follows `start`.
fn seal(bytes: &mut Vec<u8>, start: usize) {
    let crc = crc32fast::hash(bytes.get(start..).unwrap_or_default());
    bytes.extend(crc.to_le_bytes());
}

/// Whether the first `size` bytes end with the checksum of those before.
fn is_sealed(bytes: &[u8], size: usize) -> bool {
    let sealed = bytes.get(..size).and_then(|bytes| bytes.split_last_chunk::<4>());
    sealed.is_some_and(|(rest, crc)| crc32fast::hash(rest) == u32::from_le_bytes(*crc))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_le_bytes)
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let file = FileKind::new(*b"archive\0", 0x0102).header();
        let expected = [
            &b"\x89AIR\r\n\x1a\n\x01\0\0\0archive\0\x02\x01\0\0\0\0\0\0"[..],
            &0x3ff2_32b1_u32.to_le_bytes(),
        ];
        assert_eq!(file, expected.concat());
        assert_eq!(file.len() as u64, FILE_HEADER);

        let header =
            RecordHeader { index: 2, offset: 0x300, length: 5, crc: crc32fast::hash(b"bytes") };
        let mut record = Vec::new();
        header.write(&mut record);
        let expected = [
            &b"\xfeREC"[..],
            &0xb199_43ce_u32.to_le_bytes(),
            b"\x02\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\x05\0\0\0\0\0\0\0",
            &0x751e_7042_u32.to_le_bytes(),
        ];
        assert_eq!(record, expected.concat());
        assert_eq!(record.len() as u64, RECORD_HEADER);
        assert_eq!(RecordHeader::read(&record), Some(header));
    }
}
