use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Files, OpenFile, OpenMode,
    atomic::replace,
    files::{directory_of, read_full, with_suffix},
    line,
    record_writer::free_name,
};
use crate::{Error, ErrorKind, Result};

/// How many hexadecimal digits a checksum has.
const DIGITS: usize = 8;
const MARK: &[u8] = b"\"crc\":\"";

/// The bytes of a file.
///
/// # Errors
/// [`ErrorKind::Io`], naming the file; also where the memory does not hold it.
pub fn read_file(files: &dyn Files, path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let read = files.open(path, OpenMode::Read).and_then(|file| {
        let length = usize::try_from(file.length()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(length, 0);
        let read = read_full(&*file, &mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    });
    read.map_err(|error| Error::io(error, "cannot read").in_file(path))
}

/// A sealed line that passes its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoundLine {
    /// Its number, from 1. Where line ends are damaged, several records stand on one.
    pub number: u64,
    /// The text that was sealed.
    pub text: String,
    /// The checksum, as it is written.
    pub crc: String,
}

/// A stretch of a file of lines that holds none that passes its check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineDamage {
    /// The line on which it begins, from 1.
    pub number: u64,
    /// How many sound lines stand before it.
    pub before: usize,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// Why it is no sound line.
    pub reason: String,
}

impl LineDamage {
    /// The damage as an error of kind [`ErrorKind::Damaged`].
    pub fn to_error(&self, file: impl Into<PathBuf>) -> Error {
        Error::new(ErrorKind::Damaged, self.reason.as_str()).in_file(file).at(|place| {
            place.line = Some(self.number);
            place.offset = Some(self.offset);
        })
    }
}

/// What there is in a file of sealed lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineScan {
    /// The lines that pass their check, in order.
    pub lines: Vec<SoundLine>,
    /// What lies before or between them.
    pub damage: Vec<LineDamage>,
    /// What follows the last of them: what a crash leaves of a write.
    pub torn: Option<LineDamage>,
    /// Where the last sound line ends, its line end included.
    pub end: u64,
    /// Whether the last sound line has its line end.
    pub is_ended: bool,
}

/// Tells sound lines, damage and a torn tail apart. Runs in O(n) time.
///
/// A line end that is damaged joins two lines; both are found.
pub fn scan_lines(bytes: &[u8]) -> LineScan {
    let mut scan = LineScan { is_ended: true, ..LineScan::default() };
    let mut bad: Option<LineDamage> = None;
    let (mut at, mut number) = (0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        number += 1;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let is_ended = length < rest.len();
        let text = rest.get(..length).unwrap_or_default();
        for (offset, part, opened) in parts(text) {
            match opened {
                Ok(sound) => {
                    scan.damage.extend(bad.take());
                    scan.end = (at + offset + part.len()) as u64;
                    scan.lines.push(SoundLine { number, text: sound, crc: digits(part) });
                    scan.is_ended = is_ended && offset + part.len() == text.len();
                }
                Err(reason) => {
                    let begins = LineDamage {
                        number,
                        before: scan.lines.len(),
                        offset: (at + offset) as u64,
                        length: 0,
                        reason,
                    };
                    bad.get_or_insert(begins);
                }
            }
        }
        at += length + usize::from(is_ended);
        scan.end += u64::from(scan.is_ended && bad.is_none());
        if let Some(bad) = &mut bad {
            bad.length = at as u64 - bad.offset;
        }
    }
    scan.torn = bad;
    scan
}

type Part<'t> = (usize, &'t [u8], std::result::Result<String, String>);

/// A line as it is, if it is sound; else the sound lines in it, and what is between them.
fn parts(text: &[u8]) -> Vec<Part<'_>> {
    let reason = match open(text) {
        Ok(sound) => return vec![(0, text, Ok(sound))],
        Err(reason) => reason,
    };
    let mut parts = Vec::new();
    let mut from = 0;
    for mark in memchr::memmem::find_iter(text, MARK) {
        let end = mark + MARK.len() + DIGITS + "\"}".len();
        // A damaged line end is one byte; where more is damaged, the rest is looked through.
        let starts = memchr::memchr_iter(b'{', text.get(from..mark).unwrap_or_default()).take(4);
        for start in starts.map(|start| from + start) {
            let Some(part) = text.get(start..end) else { continue };
            if let Ok(sound) = open(part) {
                if start > from {
                    let gap = text.get(from..start).unwrap_or_default();
                    parts.push((
                        from,
                        gap,
                        Err("expected a line end, found other bytes".to_owned()),
                    ));
                }
                parts.push((start, part, Ok(sound)));
                from = end;
                break;
            }
        }
    }
    if from < text.len() {
        let rest = text.get(from..).unwrap_or_default();
        let reason =
            if from == 0 { reason } else { "expected a line end, found other bytes".to_owned() };
        parts.push((from, rest, Err(reason)));
    }
    parts
}

fn open(bytes: &[u8]) -> std::result::Result<String, String> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| format!("the line is not UTF-8: {error}"))?;
    line::open(text).map_err(|error| error.message().to_owned())
}

/// The checksum of a sound line.
fn digits(line: &[u8]) -> String {
    let end = line.len().saturating_sub("\"}".len());
    let digits = line.get(end.saturating_sub(DIGITS)..end).unwrap_or_default();
    String::from_utf8_lossy(digits).into_owned()
}

/// Appends sealed lines to a file.
///
/// A line is durable once [`LineWriter::sync`] has returned. There must be one writer for a file at
/// a time: hold the [`DirLock`](super::DirLock) of its directory.
#[derive(Debug)]
pub struct LineWriter {
    files: Arc<dyn Files>,
    path: PathBuf,
    file: Arc<dyn OpenFile>,
    end: u64,
    poisoned: bool,
}

impl LineWriter {
    /// Creates an empty file, durably.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], naming the file.
    pub fn create(files: Arc<dyn Files>, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let failed = |error| Error::io(error, "cannot create").in_file(&path);
        let file = files.open(&path, OpenMode::Create).map_err(failed)?;
        file.sync().and_then(|()| files.sync_dir(directory_of(&path))).map_err(failed)?;
        Ok(Self { files, path, file: file.into(), end: 0, poisoned: false })
    }

    /// Opens a file for appending. A torn tail is copied beside it, durably, and cut; whatever
    /// happens in between, the bytes are in one of the two. The file and its name are synced
    /// once: a process that was killed may have left what its system alone knows. Gives what is in the file, and
    /// where the copy is.
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`], with the line, where something that is not sound stands before a
    /// sound line; [`ErrorKind::Io`].
    pub fn open(
        files: Arc<dyn Files>,
        path: impl Into<PathBuf>,
    ) -> Result<(Self, LineScan, Option<PathBuf>)> {
        let path = path.into();
        let failed = |error| Error::io(error, "cannot open").in_file(&path);
        let bytes = read_file(&*files, &path)?;
        let mut scan = scan_lines(&bytes);
        if let Some(damage) = scan.damage.first() {
            return Err(damage.to_error(&path));
        }
        let mut copy = None;
        if let Some(torn) = &scan.torn {
            let name = free_name(&*files, &with_suffix(&path, format!(".torn-{}", torn.offset)))?;
            let tail = usize::try_from(scan.end).ok().and_then(|end| bytes.get(end..));
            replace(&*files, &name, |file| file.append(tail.unwrap_or_default()))?;
            let cut = files.truncate(&path, scan.end);
            cut.map_err(|error| Error::io(error, "cannot cut the torn tail").in_file(&path))?;
            copy = Some(name);
        }
        let file = files.open(&path, OpenMode::Append).map_err(failed)?;
        if !scan.is_ended {
            file.append(b"\n").map_err(failed)?;
            scan.end += 1;
        }
        file.sync().and_then(|()| files.sync_dir(directory_of(&path))).map_err(failed)?;
        let writer = Self { files, path, file: file.into(), end: scan.end, poisoned: false };
        Ok((writer, scan, copy))
    }

    /// Appends sealed lines, each with its line end, in one write.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: what was written is taken back, so that appending can go on when there is
    /// room again; where the system does not let it be, the writer is poisoned.
    /// [`ErrorKind::Poisoned`] after that, and after a sync that failed.
    pub fn append(&mut self, lines: &str) -> Result<()> {
        self.usable()?;
        if let Err(error) = self.file.append(lines.as_bytes()) {
            self.poisoned = self.files.truncate(&self.path, self.end).is_err();
            return Err(Error::io(error, "cannot append").in_file(&self.path));
        }
        self.end += lines.len() as u64;
        Ok(())
    }

    /// Makes every line that was appended durable.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: it is then unknown which lines are durable, and the writer is poisoned.
    pub fn sync(&mut self) -> Result<()> {
        self.usable()?;
        let synced = self.file.sync();
        self.synced(synced)
    }

    /// The open file, to be synced by whoever does that for several; with what came of it then
    /// [`LineWriter::synced`].
    pub fn file(&self) -> Arc<dyn OpenFile> {
        Arc::clone(&self.file)
    }

    /// Takes the outcome of a sync over.
    ///
    /// # Errors
    /// As [`LineWriter::sync`].
    pub fn synced(&mut self, outcome: io::Result<()>) -> Result<()> {
        outcome.map_err(|error| {
            self.poisoned = true;
            Error::io(error, "cannot sync").in_file(&self.path)
        })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file in bytes.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn usable(&self) -> Result<()> {
        if self.poisoned {
            let message = "an earlier write or sync failed, so what the file holds is unknown until it is opened anew";
            return Err(Error::new(ErrorKind::Poisoned, message).in_file(&self.path));
        }
        Ok(())
    }
}
