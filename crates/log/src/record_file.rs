use std::{fmt, io, path::Path, sync::Arc};

use super::{
    Damage, DamageReason, FileKind, Files, OpenFile, OpenMode, Scan,
    files::read_full,
    layout::{FILE_HEADER, RECORD_HEADER, RECORD_HEADER_SIZE, RecordHeader},
    scan::Depth,
};
use crate::{Error, ErrorKind, Result};

/// How many bytes are read at a time where a payload is only checked.
const BLOCK: usize = if cfg!(test) { 16 } else { 1 << 18 };

/// A payload that is longer is looked through for holes before memory is taken for it.
const UNPROBED: u64 = 64 << 20;

/// A hole of twice as many bytes is found; a shorter one is read as the zeros that it is, as some file
/// systems keep them.
const PROBED: u64 = 1 << 20;

/// Where a record begins: the offset of its header in the file, in bytes.
///
/// It stays the same as long as the file is there, so an index of records may keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// The position at an offset. That a record begins there is checked when it is read.
    pub const fn new(offset: u64) -> Self {
        Self(offset)
    }

    /// The offset in the file.
    pub const fn offset(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the header of a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordInfo {
    /// The index of the record in its file, from zero.
    pub index: u64,
    /// Where it is.
    pub position: Position,
    /// The length of its payload in bytes.
    pub length: u64,
}

impl RecordInfo {
    /// Where the record ends.
    pub(super) fn end(&self) -> u64 {
        self.position.0.saturating_add(RECORD_HEADER).saturating_add(self.length)
    }
}

/// A record file that is open for reading.
///
/// Every read looks at the file anew, so records that are appended meanwhile are found. Reading
/// takes `&self`; several threads may read at once.
#[derive(Debug)]
pub struct RecordFile {
    file: Box<dyn OpenFile>,
    path: Arc<Path>,
}

impl RecordFile {
    /// Opens a file of `kind` and its version.
    ///
    /// Reads 32 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFormat`] for an empty file, a file that is no record file and one of
    /// another kind, [`ErrorKind::Version`] for another version, [`ErrorKind::Damaged`] where the
    /// header fails its check, [`ErrorKind::Io`]; all name the file.
    pub fn open(files: &dyn Files, path: impl AsRef<Path>, kind: FileKind) -> Result<Self> {
        let records = Self::unchecked(files, path.as_ref())?;
        records.check_header(kind)?;
        Ok(records)
    }

    /// As [`RecordFile::open`]; `None` where the file is empty, which a writer takes for none too.
    ///
    /// # Errors
    /// Those of [`RecordFile::open`].
    pub fn open_unless_empty(
        files: &dyn Files,
        path: impl AsRef<Path>,
        kind: FileKind,
    ) -> Result<Option<Self>> {
        let records = Self::unchecked(files, path.as_ref())?;
        if records.length()? == 0 {
            return Ok(None);
        }
        records.check_header(kind)?;
        Ok(Some(records))
    }

    fn unchecked(files: &dyn Files, path: &Path) -> Result<Self> {
        let file = files.open(path, OpenMode::Read);
        let file = file.map_err(|error| Error::io(error, "cannot open").in_file(path))?;
        Ok(Self::of(file, path))
    }

    pub(super) fn of(file: Box<dyn OpenFile>, path: &Path) -> Self {
        Self { file, path: path.into() }
    }

    pub(super) fn check_header(&self, kind: FileKind) -> Result<()> {
        let mut header = [0; FILE_HEADER as usize];
        let read = self.fill(&mut header, 0)?;
        let header = header.get(..read).unwrap_or_default();
        kind.check(header).map_err(|error| error.in_file(&*self.path))
    }

    /// The path, as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], naming the file.
    pub fn length(&self) -> Result<u64> {
        self.file.length().map_err(|error| self.failed(error))
    }

    /// The payload of the record at `position`. O(record).
    ///
    /// Two reads, one allocation of the payload's length, and its checksum. Memory is taken only
    /// once the header has passed its check and the file is known to be as long as it says.
    ///
    /// # Errors
    /// As [`RecordFile::read_into`].
    pub fn read(&self, position: Position) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        self.read_into(position, &mut payload)?;
        Ok(payload)
    }

    /// Reads the payload of the record at `position` into `payload`, in place of what it holds.
    /// O(record): two reads, and its checksum.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where the header or the payload fails its check or the file ends
    /// before the record, with file, offset and, where the header is sound, record;
    /// [`ErrorKind::OutOfRange`] for a position where no record can begin, [`ErrorKind::Limit`] for
    /// a payload that the memory does not hold, [`ErrorKind::Io`]. `payload` is then empty.
    pub fn read_into(&self, position: Position, payload: &mut Vec<u8>) -> Result<RecordInfo> {
        let result = self.try_read_into(position, payload);
        if result.is_err() {
            payload.clear();
        }
        result
    }

    fn try_read_into(&self, position: Position, payload: &mut Vec<u8>) -> Result<RecordInfo> {
        let at = position.0;
        let end = self.length()?;
        if at < FILE_HEADER || at >= end {
            let message = format!("no record begins at offset {at} of {end}");
            let error = Error::new(ErrorKind::OutOfRange, message);
            return Err(error.in_file(&*self.path).at(|place| place.offset = Some(at)));
        }
        let damaged = |record: Option<u64>, reason: DamageReason| {
            Error::new(ErrorKind::Damaged, reason.to_string()).in_file(&*self.path).at(|place| {
                place.record = record;
                place.offset = Some(at);
            })
        };
        let header = self.header(at, end)?.map_err(|reason| damaged(None, reason))?;
        let fitting = header.fitting(end).map_err(|reason| damaged(Some(header.index), reason))?;
        let too_large = || {
            let message = format!("a record of {} bytes does not fit into memory", header.length);
            Error::new(ErrorKind::Limit, message).in_file(&*self.path).at(|place| {
                place.record = Some(header.index);
                place.offset = Some(at);
            })
        };
        if let Some(reason) = self.hole_in(fitting)? {
            return Err(damaged(Some(header.index), reason));
        }
        let length = usize::try_from(fitting.length).map_err(|_| too_large())?;
        // What is there is overwritten, and need not be zero.
        let more = length.saturating_sub(payload.len());
        payload.try_reserve_exact(more).map_err(|_| too_large())?;
        payload.resize(length, 0);
        let read = self.fill(payload, at + RECORD_HEADER)?;
        if read < length {
            // Somebody has cut the file since its length was asked for.
            let (expected, found) = (RECORD_HEADER + header.length, RECORD_HEADER + read as u64);
            return Err(damaged(Some(header.index), DamageReason::Cut { expected, found }));
        }
        let found = crc32fast::hash(payload);
        if found != header.crc {
            let reason = DamageReason::Payload { expected: header.crc, found };
            return Err(damaged(Some(header.index), reason));
        }
        Ok(fitting)
    }

    /// Reads the whole file from its first record on and checks every payload.
    ///
    /// Reads each byte once, and holds a block of them at a time: payloads are given by
    /// [`RecordFile::read`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`], here and from the iterator. Damage is no error but an
    /// [`ScanEntry`](super::ScanEntry).
    pub fn scan(&self) -> Result<Scan<'_>> {
        Ok(Scan::new(self, self.length()?, Depth::Payloads))
    }

    /// Reads the headers of the records, and no payload: where each record is.
    ///
    /// One read of 36 bytes for each record. Damage in a payload goes unnoticed here; reading the
    /// record tells.
    ///
    /// # Errors
    /// As [`RecordFile::scan`].
    pub fn outline(&self) -> Result<Scan<'_>> {
        Ok(self.outline_to(self.length()?))
    }

    pub(super) fn outline_to(&self, end: u64) -> Scan<'_> {
        Scan::new(self, end, Depth::Headers)
    }

    /// The header at `at` in a file of `end` bytes, if it was written for that place.
    pub(super) fn header(&self, at: u64, end: u64) -> Result<Result<RecordHeader, DamageReason>> {
        let mut bytes = [0; RECORD_HEADER_SIZE];
        let read = self.fill(&mut bytes, at)?;
        let found = (read as u64).min(end.saturating_sub(at));
        if found < RECORD_HEADER {
            return Ok(Err(DamageReason::Cut { expected: RECORD_HEADER, found }));
        }
        Ok(match RecordHeader::read(&bytes) {
            None => Err(DamageReason::Header),
            Some(header) if header.offset != at => {
                Err(DamageReason::Displaced { from: header.offset })
            }
            Some(header) => Ok(header),
        })
    }

    /// A hole in a long record. Whoever makes a file can make a hole of any length, and reading it
    /// would take as much time and memory as if somebody had written it.
    fn hole_in(&self, record: RecordInfo) -> Result<Option<DamageReason>> {
        let (mut at, end) = (record.position.0.saturating_add(RECORD_HEADER), record.end());
        while record.length > UNPROBED && at < end {
            let next = self.next_data(at)?.unwrap_or(end).min(end);
            if next.saturating_sub(at) >= PROBED {
                return Ok(Some(DamageReason::Hole { at }));
            }
            at = at.saturating_add(PROBED);
        }
        Ok(None)
    }

    /// The first offset from `from` on where bytes may have been written, if there is one.
    pub(super) fn next_data(&self, from: u64) -> Result<Option<u64>> {
        self.file.next_data(from).map_err(|error| self.failed(error))
    }

    /// Whether the payload of a record passes its check. Holds a block of it at a time.
    pub(super) fn check(
        &self,
        header: RecordHeader,
        block: &mut Vec<u8>,
    ) -> Result<Option<DamageReason>> {
        let position = Position(header.offset);
        let record = RecordInfo { index: header.index, position, length: header.length };
        if let Some(reason) = self.hole_in(record)? {
            return Ok(Some(reason));
        }
        let size = usize::try_from(header.length).unwrap_or(BLOCK).min(BLOCK);
        block.resize(size.max(block.len()), 0);
        let mut at = header.offset.saturating_add(RECORD_HEADER);
        let mut left = header.length;
        let mut crc = crc32fast::Hasher::new();
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            let part = block.get_mut(..wanted).unwrap_or_default();
            let read = self.fill(part, at)?;
            crc.update(part.get(..read).unwrap_or_default());
            at += read as u64;
            left -= read as u64;
            if read < wanted {
                let expected = RECORD_HEADER + header.length;
                return Ok(Some(DamageReason::Cut { expected, found: expected - left }));
            }
        }
        let (expected, found) = (header.crc, crc.finalize());
        Ok((expected != found).then_some(DamageReason::Payload { expected, found }))
    }

    /// Fills `buffer` from `offset` on, and tells how much of it there was.
    pub(super) fn fill(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        read_full(&*self.file, buffer, offset)
            .map_err(|error| self.failed(error).at(|place| place.offset = Some(offset)))
    }

    pub(super) fn file(&self) -> &dyn OpenFile {
        &*self.file
    }

    pub(super) fn damage(
        &self,
        record: u64,
        offset: u64,
        length: u64,
        reason: DamageReason,
    ) -> Damage {
        Damage { file: Arc::clone(&self.path), record, offset, length, reason }
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io(error, "cannot read").in_file(&*self.path)
    }
}

impl RecordHeader {
    /// The record, if a file of `end` bytes holds all of it.
    pub(super) fn fitting(self, end: u64) -> Result<RecordInfo, DamageReason> {
        if self.end().is_some_and(|last| last <= end) {
            let position = Position(self.offset);
            return Ok(RecordInfo { index: self.index, position, length: self.length });
        }
        let expected = RECORD_HEADER.saturating_add(self.length);
        Err(DamageReason::Cut { expected, found: end.saturating_sub(self.offset) })
    }
}
