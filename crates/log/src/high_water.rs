use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Files, OpenFile, OpenMode, line, read_file, write_atomic};
use crate::{
    Error, ErrorKind, Result,
    json::{self, Object, ObjectExt, Value},
};

/// The bytes of a slot. We assume that a disk writes 512 bytes as a whole. The file has two.
const SLOT: usize = 512;
const VERSION: u64 = 1;

/// The last acknowledged record of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogMark {
    /// The number of the last record that was acknowledged; 0 where none was.
    pub last: u64,
    /// The CRC-32 of that record, where it is known.
    pub check: Option<u32>,
}

/// Remembers how far a log went, in a small file beside it.
///
/// A log that lost its last file, or was cut between two records, is a sound log of fewer records.
/// Only what is remembered apart from it tells. So the mark is raised, and synced, after the records
/// are synced and before anybody is told that they are: it is never ahead of the log that it is
/// compared with, and never behind what was acknowledged.
///
/// The file has two slots that are written by turns and in place: a write that is broken off leaves
/// the other one.
#[derive(Debug)]
pub struct HighWater {
    path: PathBuf,
    file: Box<dyn OpenFile>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    mark: LogMark,
    /// The slot that the next mark goes to.
    next: usize,
    failed: bool,
}

/// A mark that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundMark {
    /// The newest mark.
    pub mark: LogMark,
    /// Whether both slots are sound. One that is not is what a write leaves that was broken off.
    pub is_whole: bool,
    slot: usize,
}

impl HighWater {
    /// Reads the mark in a file; `None` where there is no such file. Reads 1 KiB.
    ///
    /// Whoever reads beside a writer reads the mark first and the log after it.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where neither slot is sound, [`ErrorKind::Version`], [`ErrorKind::Io`];
    /// all name the file.
    pub fn read(files: &dyn Files, path: impl AsRef<Path>) -> Result<Option<FoundMark>> {
        let path = path.as_ref();
        match files.open(path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(error, "cannot open").in_file(path)),
            Ok(_) => {}
        }
        let bytes = read_file(files, path, 2 * SLOT as u64)?;
        let (first, second) = bytes.split_at_checked(SLOT).unwrap_or((&bytes, &[]));
        let slots = [take(first), take(second)];
        let newest = slots
            .iter()
            .enumerate()
            .filter_map(|(slot, taken)| taken.as_ref().ok().map(|mark| (mark.last, slot, *mark)));
        if let Some((_, slot, mark)) = newest.max_by_key(|(last, slot, _)| (*last, *slot)) {
            let is_whole = slots.iter().all(Result::is_ok);
            return Ok(Some(FoundMark { mark, is_whole, slot }));
        }
        let error = slots.into_iter().find_map(Result::err);
        Err(error.unwrap_or_else(|| Error::expected("a mark", "none")).in_file(path))
    }

    /// Opens a file for raising its mark; `None` where there is none. A slot that is damaged is put
    /// in order. Reads 1 KiB, and writes it anew with two syncs where a slot is damaged.
    ///
    /// # Errors
    /// Those of [`HighWater::read`].
    pub fn open(files: &dyn Files, path: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = path.as_ref();
        match Self::read(files, path)? {
            None => Ok(None),
            Some(found) if found.is_whole => Self::of(files, path, found).map(Some),
            Some(found) => Self::create(files, path, found.mark).map(Some),
        }
    }

    /// Puts a mark there, durably, whatever was there before: also a lower one. Writes 1 KiB, with
    /// two syncs.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], naming the file.
    pub fn create(files: &dyn Files, path: impl AsRef<Path>, mark: LogMark) -> Result<Self> {
        let path = path.as_ref();
        write_atomic(files, path, &[slot(mark)?, slot(mark)?].concat())?;
        Self::of(files, path, FoundMark { mark, is_whole: true, slot: 0 })
    }

    fn of(files: &dyn Files, path: &Path, found: FoundMark) -> Result<Self> {
        let file = files.open(path, OpenMode::Write);
        let file = file.map_err(|error| Error::io(error, "cannot open").in_file(path))?;
        let state = State { mark: found.mark, next: 1 - found.slot.min(1), failed: false };
        Ok(Self { path: path.to_owned(), file, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mark as it is.
    pub fn mark(&self) -> LogMark {
        self.state().mark
    }

    /// Raises the mark, durably, to a record that is durable. A mark that is not higher changes
    /// nothing.
    ///
    /// One write of 512 bytes in place, and a sync.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], naming the file: it is then unknown which mark is durable.
    /// [`ErrorKind::Poisoned`] after that.
    pub fn raise(&self, mark: LogMark) -> Result<()> {
        let mut state = self.state();
        if state.failed {
            let message = "an earlier write failed, so how far the log is remembered is unknown until it is opened anew";
            return Err(Error::new(ErrorKind::Poisoned, message).in_file(&self.path));
        }
        if mark.last <= state.mark.last {
            return Ok(());
        }
        let bytes = slot(mark)?;
        let written = self.file.write_at(&bytes, (state.next * SLOT) as u64);
        if let Err(error) = written.and_then(|()| self.file.sync()) {
            state.failed = true;
            let doing = "cannot remember how far the log goes";
            return Err(Error::io(error, doing).in_file(&self.path));
        }
        *state = State { mark, next: 1 - state.next, failed: false };
        Ok(())
    }
}

/// A mark as a sealed line, filled up with blanks.
fn slot(mark: LogMark) -> Result<Vec<u8>> {
    let mut object = Object::new();
    object.put("version", VERSION);
    object.put("last", mark.last);
    object.put_some("check", mark.check.map(|check| format!("{check:08x}")));
    let mut bytes = line::seal(&Value::Object(object).to_string())?.into_bytes();
    bytes.resize(SLOT - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}

fn take(slot: &[u8]) -> Result<LogMark> {
    let damaged =
        || Error::new(ErrorKind::Damaged, "expected a mark of 512 bytes, found other bytes");
    let text = std::str::from_utf8(slot).ok().filter(|_| slot.len() == SLOT);
    let text = text.and_then(|text| text.strip_suffix('\n')).ok_or_else(damaged)?;
    let value = json::read(line::open(text.trim_end_matches(' '))?.as_bytes())?;
    let version = value.get("version").and_then(Value::as_u64);
    if version != Some(VERSION) {
        let message = format!("expected a mark of version {VERSION}, found {version:?}");
        return Err(Error::new(ErrorKind::Version, message));
    }
    let last = value.get("last").and_then(Value::as_u64).ok_or_else(damaged)?;
    let check = value.str_at("check").map(|check| u32::from_str_radix(check, 16));
    Ok(LogMark { last, check: check.transpose().map_err(|_| damaged())? })
}

/// Why the end of a log is not the one that was acknowledged.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndProblem {
    /// The log ends before the last record that was acknowledged.
    Lost {
        /// The last record that was acknowledged.
        acknowledged: u64,
        /// The last record of the log.
        last: u64,
    },
    /// The log has another record in the place of the last one that was acknowledged: it lost its
    /// end, and grew again.
    Replaced {
        /// The last record that was acknowledged.
        acknowledged: u64,
    },
    /// The log says that its end is remembered, and the mark is missing or cannot be read.
    NoMark(String),
}

/// A log whose end is not the one that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostEnd {
    /// The log, or the mark where that is what is missing.
    pub file: PathBuf,
    /// What is wrong.
    pub problem: EndProblem,
    /// What a record is called.
    pub record: &'static str,
}

impl LostEnd {
    /// Compares a log with what is remembered of it: `mark` as it was read, whether there must be
    /// one, the last record, and the checksum of a record that the log has.
    pub fn find(
        (log, path): (&Path, &Path),
        record: &'static str,
        mark: &Result<Option<FoundMark>>,
        must_be_there: bool,
        last: u64,
        check: impl FnOnce(u64) -> Option<u32>,
    ) -> Option<Self> {
        let (file, problem) = match mark {
            Err(error) => (path, EndProblem::NoMark(error.message().to_owned())),
            Ok(None) if must_be_there => {
                (path, EndProblem::NoMark("the file is missing".to_owned()))
            }
            Ok(None) => return None,
            Ok(Some(FoundMark { mark: LogMark { last: acknowledged, .. }, .. }))
                if last < *acknowledged =>
            {
                (log, EndProblem::Lost { acknowledged: *acknowledged, last })
            }
            Ok(Some(FoundMark { mark, .. })) => {
                let found = mark.check.and_then(|_| check(mark.last));
                if mark.last == 0 || found == mark.check || found.is_none() {
                    return None;
                }
                (log, EndProblem::Replaced { acknowledged: mark.last })
            }
        };
        Some(Self { file: file.to_owned(), problem, record })
    }

    /// As an error of kind [`ErrorKind::Damaged`].
    pub fn to_error(&self) -> Error {
        Error::new(ErrorKind::Damaged, self.to_string()).in_file(&self.file)
    }
}

impl fmt::Display for LostEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.record;
        match &self.problem {
            EndProblem::Lost { acknowledged, last } => {
                if last + 1 == *acknowledged {
                    write!(f, "{record} {acknowledged} was acknowledged and is missing: ")?;
                } else {
                    let first = last + 1;
                    write!(
                        f,
                        "{record}s {first} to {acknowledged} were acknowledged and are missing: "
                    )?;
                }
                match last {
                    0 => write!(f, "the log is empty"),
                    last => write!(f, "the log ends with {record} {last}"),
                }
            }
            EndProblem::Replaced { acknowledged } => write!(
                f,
                "{record} {acknowledged} is not the one that was acknowledged: the log lost its end, and grew again"
            ),
            EndProblem::NoMark(reason) => {
                write!(f, "how far the log was acknowledged is not known: {reason}")
            }
        }
    }
}
