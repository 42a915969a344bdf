use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Damage, FileKind, Files, OpenMode, Position, RecordFile, Survey, TornEnd,
    atomic::replace,
    files::with_suffix,
    layout::{RECORD_HEADER, RecordHeader},
    survey::after,
    write_atomic,
};
use crate::{Error, ErrorKind, Result};

/// Payloads up to this length are written together with their header.
const JOINED: usize = 1 << 16;

/// How many bytes of a torn tail are copied at a time.
const BLOCK: usize = if cfg!(test) { 7 } else { 1 << 20 };

/// A torn tail with a longer hole before other bytes is no crash's, and is not copied.
const MOST_HOLE: u64 = 64 << 20;

/// Appends records to a file.
///
/// A record is durable once [`RecordWriter::sync`] has returned; until then a crash may take it, or
/// leave a part of it, which is cut when the file is opened again.
///
/// There must be one writer for a file at a time: hold the [`DirLock`](super::DirLock) of its
/// directory.
#[derive(Debug)]
pub struct RecordWriter {
    files: Arc<dyn Files>,
    records: RecordFile,
    /// The end of the last record, where the next one goes.
    end: u64,
    next: u64,
    poisoned: bool,
    joined: Vec<u8>,
}

/// What a [`RecordWriter`] found in a file that it opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// How many sound records there are; their payloads are checked when they are read, and those
    /// at the end have been.
    pub records: u64,
    /// Damage in the middle, which is left as it is: records may be appended nevertheless.
    pub damage: Vec<Damage>,
    /// The torn tail that was cut.
    pub cut: Option<CutTail>,
}

/// A torn tail that was cut from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutTail {
    /// What was cut, and why.
    pub torn: TornEnd,
    /// Where a copy of the bytes is: the path of the file with `.torn-` and the offset at its end,
    /// and a further number where that is taken. A hole at the end of the file is not in it.
    pub copy: PathBuf,
}

impl fmt::Display for CutTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { torn, copy } = self;
        write!(f, "{torn}, {}; it was cut, and its bytes are in {}", torn.cause(), copy.display())
    }
}

/// A torn tail that was seen, and left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornFile {
    /// The file, as it was opened.
    pub file: PathBuf,
    /// What it ends with.
    pub torn: TornEnd,
}

impl fmt::Display for TornFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, torn } = self;
        let (file, cause) = (file.display(), torn.cause());
        write!(f, "{file} ends with a {torn}, {cause}; it is passed over")
    }
}

impl RecordWriter {
    /// Opens a file of `kind` for appending; creates it, durably, if it is not there or empty.
    ///
    /// Reads the headers of all records (36 bytes of each), and the payload of the last. A torn
    /// tail is copied beside the file and cut; whatever happens in between, the bytes are in one of
    /// the two. Damage in the middle stays where it is and is reported. What is found is synced once:
    /// a process that was killed may have left records that its system alone knows.
    ///
    /// # Errors
    /// Those of [`RecordFile::open`]; [`ErrorKind::Damaged`] where the last records were written for other
    /// places in the file, so that it is not safe to say where it ends.
    pub fn open(
        files: Arc<dyn Files>,
        path: impl AsRef<Path>,
        kind: FileKind,
    ) -> Result<(Self, Recovery)> {
        let (records, found) = survey_for_append(&*files, path.as_ref(), kind)?;
        Self::resume(files, records, found)
    }

    /// Begins a file of `kind`, from empty, that nobody reads before something else says so: one of a
    /// store that is being made. Its header is as durable as its records, and may be there in part
    /// after a crash; its name is durable once its directory is synced.
    ///
    /// Cost: one write, and no sync.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn create(files: Arc<dyn Files>, path: impl AsRef<Path>, kind: FileKind) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error| Error::io(error, "cannot create").in_file(path);
        let file = files.open(path, OpenMode::Create).map_err(failed)?;
        file.append(&kind.header()).map_err(failed)?;
        let records = RecordFile::of(file, path);
        let ((next, end), joined) = (after(None), Vec::new());
        Ok(Self { files, records, end, next, poisoned: false, joined })
    }

    /// As [`RecordWriter::open`]; `None` where `refuses` what is there, and then nothing is cut.
    /// Reads what that reads.
    ///
    /// # Errors
    /// Those of [`RecordWriter::open`].
    pub fn open_unless(
        files: Arc<dyn Files>,
        path: &Path,
        kind: FileKind,
        refuses: impl FnOnce(&Survey) -> bool,
    ) -> Result<Option<(Self, Recovery)>> {
        let (records, found) = survey_for_append(&*files, path, kind)?;
        if refuses(&found) {
            return Ok(None);
        }
        Self::resume(files, records, found).map(Some)
    }

    /// Cuts what follows the last sound record, and goes on after that one.
    fn resume(
        files: Arc<dyn Files>,
        records: RecordFile,
        found: Survey,
    ) -> Result<(Self, Recovery)> {
        let (recovery, next, end) = recover(&*files, &records, found)?;
        if recovery.records > 0 {
            let synced = records.file().sync();
            synced.map_err(|error| Error::io(error, "cannot sync").in_file(records.path()))?;
        }
        let joined = Vec::new();
        Ok((Self { files, records, end, next, poisoned: false, joined }, recovery))
    }

    /// Appends a record and gives its position. It is durable only after [`RecordWriter::sync`].
    ///
    /// One write, or two of a payload over 64 KiB, which is not copied. O(payload).
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the writer is poisoned then, and what was written of the record is taken
    /// back where the system lets it be. [`ErrorKind::Poisoned`] after any earlier error. Both name
    /// the file, the record and the offset.
    pub fn append(&mut self, payload: &[u8]) -> Result<Position> {
        self.usable()?;
        let header = RecordHeader {
            index: self.next,
            offset: self.end,
            length: payload.len() as u64,
            crc: crc32fast::hash(payload),
        };
        if let Err(error) = self.write(header, payload) {
            self.poisoned = true;
            // Opening the file again cuts the tail too; but on a full disk that could not copy it.
            let _ = self.files.truncate(self.records.path(), self.end);
            return Err(self.here(Error::io(error, "cannot append")));
        }
        self.end += RECORD_HEADER + header.length;
        self.next = self.next.saturating_add(1);
        Ok(Position::new(header.offset))
    }

    fn write(&mut self, header: RecordHeader, payload: &[u8]) -> io::Result<()> {
        self.joined.clear();
        header.write(&mut self.joined);
        let file = self.records.file();
        if payload.len() <= JOINED {
            self.joined.extend_from_slice(payload);
            return file.append(&self.joined);
        }
        file.append(&self.joined)?;
        file.append(payload)
    }

    /// Makes every record that was appended durable.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: it is then unknown which of the records since the last sync are durable,
    /// and the writer is poisoned. [`ErrorKind::Poisoned`] after any earlier error.
    pub fn sync(&mut self) -> Result<()> {
        self.usable()?;
        self.records.file().sync().map_err(|error| {
            self.poisoned = true;
            Error::io(error, "cannot sync").in_file(self.records.path())
        })
    }

    /// The index that the next record gets.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Where the next record goes: the length of the file in bytes.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The file, for reading records back, those that are not yet synced included.
    pub fn records(&self) -> &RecordFile {
        &self.records
    }

    fn usable(&self) -> Result<()> {
        if self.poisoned {
            let message = "an earlier write or sync failed, so what the file holds is unknown until it is opened anew";
            return Err(self.here(Error::new(ErrorKind::Poisoned, message)));
        }
        Ok(())
    }

    fn here(&self, error: Error) -> Error {
        error.in_file(self.records.path()).at(|place| {
            place.record = Some(self.next);
            place.offset = Some(self.end);
        })
    }
}

/// Opens a file for appending, creates it if it is not there or empty, and reads what it holds.
fn survey_for_append(
    files: &dyn Files,
    path: &Path,
    kind: FileKind,
) -> Result<(RecordFile, Survey)> {
    let failed = |error| Error::io(error, "cannot open").in_file(path);
    let is_new = match files.open(path, OpenMode::Read) {
        Ok(file) => file.length().map_err(failed)? == 0,
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(failed(error)),
    };
    if is_new {
        write_atomic(files, path, &kind.header())?;
    }
    let file = files.open(path, OpenMode::Append).map_err(failed)?;
    let records = RecordFile::of(file, path);
    records.check_header(kind)?;
    let found = records.survey()?;
    Ok((records, found))
}

/// Cuts what follows the last sound record. Gives the next record's index and offset as well.
fn recover(files: &dyn Files, records: &RecordFile, found: Survey) -> Result<(Recovery, u64, u64)> {
    let Survey { records: found, damage, torn } = found;
    let (next, end) = after(found.last());
    let mut recovery = Recovery { records: found.len() as u64, damage, cut: None };
    if let Some(torn) = torn {
        let copy = copy_tail(files, records, &torn)?;
        files.truncate(records.path(), end).map_err(|error| {
            Error::io(error, "cannot cut the torn tail").in_file(records.path())
        })?;
        recovery.cut = Some(CutTail { torn, copy });
    }
    Ok((recovery, next, end))
}

/// Writes a copy of a torn tail beside the file, durably.
fn copy_tail(files: &dyn Files, records: &RecordFile, torn: &TornEnd) -> Result<PathBuf> {
    let copy = free_name(files, &with_suffix(records.path(), format!(".torn-{}", torn.offset)))?;
    let mut block = vec![0; usize::try_from(torn.length).unwrap_or(BLOCK).min(BLOCK)];
    replace(files, &copy, |file| {
        let (mut at, end) = (torn.offset, torn.offset + torn.length);
        while at < end {
            // A hole at the end is nothing to copy.
            let Some(data) = records.next_data(at).map_err(io::Error::other)? else { break };
            if data.saturating_sub(at) > MOST_HOLE {
                let message = format!("{} bytes were never written, and others follow", data - at);
                return Err(io::Error::other(message));
            }
            let wanted = usize::try_from(end - at).unwrap_or(BLOCK).min(BLOCK);
            let part = block.get_mut(..wanted).unwrap_or_default();
            let read = records.fill(part, at).map_err(io::Error::other)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file.append(part.get(..read).unwrap_or_default())?;
            at += read as u64;
        }
        Ok(())
    })?;
    Ok(copy)
}

/// `path`, or with the first further number at its end that no file has.
pub(super) fn free_name(files: &dyn Files, path: &Path) -> Result<PathBuf> {
    let mut candidate = path.to_owned();
    let mut number = 1_u64;
    loop {
        match files.open(&candidate, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(candidate),
            Err(error) => return Err(Error::io(error, "cannot open").in_file(candidate)),
            Ok(_) => {
                number += 1;
                candidate = with_suffix(path, format!("-{number}"));
            }
        }
    }
}
