//! Appends exchanges to a recording.

use std::{path::Path, sync::Arc, thread, time::Duration};

use afterimage_log::{
    DirLock, DiskFiles, ErrorKind as LogKind, Files, Holder, Position, RecordWriter, Recovery, pack,
};

use crate::{
    Result,
    coding::{self, Effort},
    entry::{self, End, Kind, RequestBody, ResponseHead, Start},
    folder::{self, FILE_NAME, KIND},
    packer::Packer,
    place::Place,
};

/// How often and after how long the lock is tried again.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// An exchange of a recording: the index of the record with its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub(crate) u64);

impl ExchangeId {
    /// The index of the record with its start.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Appends exchanges to a recording. There is one writer of a folder at a time.
///
/// What a method has appended, another process sees, and killing this one loses nothing of it. After
/// [`RecordingWriter::sync`] a loss of power does not either.
#[derive(Debug)]
pub struct RecordingWriter {
    _lock: DirLock,
    log: RecordWriter,
    packer: Packer,
    place: Place,
    /// How many records there were when it was opened.
    before: u64,
}

/// How a request ends whose body was appended in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamedEnd {
    pub(crate) total: u64,
    pub(crate) stored: u64,
    pub(crate) ended: bool,
}

impl RecordingWriter {
    /// Opens the recording in a folder, or begins one there, that its owner alone can read.
    ///
    /// Reads the headers of all records. A torn tail is copied and cut, as the recovery says.
    /// Exchanges of an earlier writer that have no end are cut from then on.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`](crate::ErrorKind::Locked) where another recorder writes there,
    /// [`ErrorKind::UnknownFormat`](crate::ErrorKind::UnknownFormat) where the folder holds something
    /// else, [`ErrorKind::Version`](crate::ErrorKind::Version),
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) and [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn open_private(folder: impl AsRef<Path>) -> Result<(Self, Recovery)> {
        let folder = folder.as_ref();
        let opened = Self::open(Arc::new(DiskFiles), folder)?;
        folder::close_to_others(folder)?;
        Ok(opened)
    }

    /// As [`RecordingWriter::open_private`], through these files. Reads what that reads.
    ///
    /// # Errors
    /// Those of [`RecordingWriter::open_private`].
    #[expect(clippy::needless_pass_by_value, reason = "as the stores of other crates take it")]
    pub fn open(files: Arc<dyn Files>, folder: impl AsRef<Path>) -> Result<(Self, Recovery)> {
        let folder = folder.as_ref();
        let files = folder::prepare(&files, folder)?;
        let lock = lock(&*files, folder)?;
        let path = folder.join(FILE_NAME);
        let (mut log, recovery) = RecordWriter::open(Arc::clone(&files), &path, KIND)?;
        let place = Place::open(files, path)?;
        let before = log.next_index();
        if recovery.records > 0 {
            // A reader could not tell those that were cut from those that run.
            let index = log.next_index();
            log.append(&entry::to_bytes(Kind::Run, index, &[]))?;
        }
        let packer = Packer::default();
        Ok((Self { _lock: lock, log, packer, place, before }, recovery))
    }

    /// Whether an exchange of an earlier writer is in the file, by its number: it may have been
    /// removed since.
    pub(crate) fn has_earlier(&self, of: ExchangeId) -> bool {
        of.0 < self.before
    }

    /// Whether somebody wrote exchanges before.
    pub(crate) fn has_any_earlier(&self) -> bool {
        self.before > 0
    }

    /// The file of the records.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Begins an exchange. Appends one record: O(its headers).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io), and from then on
    /// [`ErrorKind::Poisoned`](crate::ErrorKind::Poisoned), as of every method that appends.
    pub fn start(&mut self, start: &Start) -> Result<ExchangeId> {
        let id = self.log.next_index();
        self.log.append(&entry::json_bytes(Kind::Start, id, start)?)?;
        Ok(ExchangeId(id))
    }

    /// Appends the body of a request. It is stored after the earlier body of the same `lane` that is
    /// most like it.
    ///
    /// Reads the body twice; at most [`MOST_STORED`](crate::MOST_STORED) bytes of it are stored.
    ///
    /// # Errors
    /// Those of [`RecordingWriter::start`].
    pub fn request(&mut self, of: ExchangeId, lane: &str, body: RequestBody<'_>) -> Result<()> {
        let packed = self.packer.pack(lane, &body, Effort::Smallest);
        let position = self.packed(of, &packed.content)?;
        self.packer.keep(lane, position, body.bytes, packed);
        Ok(())
    }

    /// Appends the body of a request that is packed already.
    ///
    /// # Errors
    /// Those of [`RecordingWriter::start`].
    pub(crate) fn packed(&mut self, of: ExchangeId, content: &[u8]) -> Result<Position> {
        Ok(self.log.append(&entry::to_bytes(Kind::Request, of.0, content))?)
    }

    /// Appends the next part of the body of a request that is not held in memory.
    ///
    /// # Errors
    /// Those of [`RecordingWriter::start`].
    pub(crate) fn request_part(&mut self, of: ExchangeId, bytes: &[u8]) -> Result<()> {
        self.log.append(&entry::to_bytes(Kind::RequestPart, of.0, &pack(bytes)))?;
        Ok(())
    }

    /// Appends the end of a request whose body was appended in parts.
    ///
    /// # Errors
    /// Those of [`RecordingWriter::start`].
    pub(crate) fn request_end(&mut self, of: ExchangeId, end: StreamedEnd) -> Result<()> {
        let StreamedEnd { total, stored, ended } = end;
        self.packed(of, &coding::in_parts(total, stored, ended)).map(drop)
    }

    /// Appends what comes before the body of the response: O(its headers).
    ///
    /// # Errors
    /// Those of [`RecordingWriter::start`].
    pub fn response(&mut self, of: ExchangeId, head: &ResponseHead) -> Result<()> {
        self.log.append(&entry::json_bytes(Kind::Response, of.0, head)?)?;
        Ok(())
    }

    /// Appends the next part of the body of the response. Packs and writes it: O(bytes).
    ///
    /// # Errors
    /// Those of [`RecordingWriter::start`].
    pub fn part(&mut self, of: ExchangeId, bytes: &[u8]) -> Result<()> {
        self.log.append(&entry::to_bytes(Kind::Part, of.0, &pack(bytes)))?;
        Ok(())
    }

    /// Ends an exchange. Appends one record.
    ///
    /// # Errors
    /// Those of [`RecordingWriter::start`].
    pub fn end(&mut self, of: ExchangeId, end: &End) -> Result<()> {
        self.log.append(&entry::json_bytes(Kind::End, of.0, end)?)?;
        Ok(())
    }

    /// Makes everything durable that was appended. Cost: one sync of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io): it is then unknown what the disk holds, and the writer
    /// takes nothing more.
    pub fn sync(&mut self) -> Result<()> {
        Ok(self.log.sync()?)
    }
}

/// The lock of the folder. A reader takes it for a moment to find out whether somebody writes.
fn lock(files: &dyn Files, folder: &Path) -> Result<DirLock> {
    let mut tries = 0..TRIES;
    loop {
        match DirLock::acquire(files, folder, &Holder::new("afterimage record")) {
            Err(error) if error.kind() == LogKind::Locked && tries.next().is_some() => {
                thread::sleep(PAUSE);
            }
            taken => return Ok(taken?),
        }
    }
}
