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
/// How often each byte of a line that is damaged is looked at, at most.
const MOST_WORK: usize = 16;

/// How many bytes are read at a time. A hole that is shorter is read as the zeros that it is.
const BLOCK: u64 = 1 << 20;

/// The bytes of a file of at most `limit` bytes. Memory is taken for what is read, not for what the
/// length of the file says. O(file).
///
/// # Errors
/// [`ErrorKind::Limit`] for a longer file, of which nothing is read; [`ErrorKind::Damaged`] for one
/// with a hole: bytes that were never written, and take no room on the disk. [`ErrorKind::Io`],
/// also where the memory does not hold it. All name the file.
pub fn read_file(files: &dyn Files, path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let file = files.open(path, OpenMode::Read).map_err(|error| unread(error, path))?;
    let length = file.length().map_err(|error| unread(error, path))?;
    if length > limit {
        return Err(too_long(length, limit, path));
    }
    let bytes = read_to_hole(&*file, length, path)?;
    let read = bytes.len() as u64;
    if read < length && file.length().is_ok_and(|now| now >= length) {
        let message = format!("{} bytes were never written: the file has a hole", length - read);
        let error = Error::new(ErrorKind::Damaged, message).in_file(path);
        return Err(error.at(|place| place.offset = Some(read)));
    }
    Ok(bytes)
}

fn unread(error: io::Error, path: &Path) -> Error {
    Error::io(error, "cannot read").in_file(path)
}

fn too_long(length: u64, limit: u64, path: &Path) -> Error {
    let message = format!("expected a file of at most {limit} bytes, found {length}");
    Error::new(ErrorKind::Limit, message).in_file(path)
}

/// The first `length` bytes of a file, up to where a hole begins or the file ends.
fn read_to_hole(file: &dyn OpenFile, length: u64, path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let mut bytes = Vec::new();
        loop {
            let at = bytes.len() as u64;
            let wanted = (length - at).min(BLOCK);
            if wanted == 0 || length > BLOCK && file.next_data(at)? != Some(at) {
                return Ok(bytes);
            }
            // No more than a block.
            let wanted = usize::try_from(wanted).map_err(|_| io::ErrorKind::FileTooLarge)?;
            bytes.try_reserve(wanted).map_err(|_| io::ErrorKind::OutOfMemory)?;
            bytes.resize(bytes.len() + wanted, 0);
            let start = bytes.len() - wanted;
            let read = read_full(file, bytes.get_mut(start..).unwrap_or_default(), at)?;
            bytes.truncate(start + read);
            if read < wanted {
                return Ok(bytes);
            }
        }
    };
    read().map_err(|error| unread(error, path))
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
    /// Whether the file ends with it, and without a line end: so an append that did not come to its
    /// end leaves it.
    pub is_cut: bool,
}

impl LineDamage {
    /// The damage as an error of kind [`ErrorKind::Damaged`].
    pub fn to_error(&self, file: impl Into<PathBuf>) -> Error {
        Error::new(ErrorKind::Damaged, self.reason.as_str()).in_file(file).at(|place| {
            place.line = Some(self.number);
            place.offset = Some(self.offset);
        })
    }

    /// What it is at the end of a file, for people.
    pub fn tail_of(&self, file: &Path) -> String {
        let Self { number, length, reason, .. } = self;
        let (file, cause) = (file.display(), super::scan::cause(self.is_cut));
        format!(
            "{file} ends with a torn tail of {length} bytes: {reason} (line {number}), {cause}; it is passed over"
        )
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
    scan_at_most(bytes, usize::MAX)
}

/// [`scan_lines`] up to so many sound lines: the memory that they take is not that of their bytes.
/// O(bytes).
pub fn scan_at_most(bytes: &[u8], most: usize) -> LineScan {
    let mut scan = LineScan { is_ended: true, ..LineScan::default() };
    let mut bad: Option<LineDamage> = None;
    let mark = memchr::memmem::Finder::new(MARK);
    let (mut at, mut number) = (0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty())
        && scan.lines.len() < most
    {
        number += 1;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let is_ended = length < rest.len();
        let text = rest.get(..length).unwrap_or_default();
        // Of a stretch that is bad already nothing more is said, however many lines it has.
        let is_more_of_it =
            bad.is_some() && (text.len() < MARK.len() + DIGITS || mark.find(text).is_none());
        let parts = if is_more_of_it { Vec::new() } else { parts(text) };
        for (offset, part, opened) in parts {
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
                        is_cut: false,
                    };
                    bad.get_or_insert(begins);
                }
            }
        }
        at += length + usize::from(is_ended);
        scan.end += u64::from(scan.is_ended && bad.is_none());
        if let Some(bad) = &mut bad {
            bad.length = at as u64 - bad.offset;
            bad.is_cut = !is_ended;
        }
    }
    scan.torn = bad;
    scan
}

/// The bytes of a file of lines, and what is in it. A hole at its end, however long, is part of a
/// torn tail and is not read. O(file).
///
/// # Errors
/// [`ErrorKind::Limit`] for a file with more than `limit` bytes before that; [`ErrorKind::Damaged`]
/// for one with bytes behind a hole, which no crash leaves; [`ErrorKind::Io`]. All name the file.
pub fn scan_file(
    files: &dyn Files,
    path: impl AsRef<Path>,
    limit: u64,
) -> Result<(Vec<u8>, LineScan)> {
    let path = path.as_ref();
    let file = files.open(path, OpenMode::Read).map_err(|error| unread(error, path))?;
    let length = file.length().map_err(|error| unread(error, path))?;
    let bytes = read_to_hole(&*file, length.min(limit.saturating_add(1)), path)?;
    let read = bytes.len() as u64;
    if read > limit {
        return Err(too_long(length, limit, path));
    }
    let mut scan = scan_lines(&bytes);
    // Whoever writes may have cut it meanwhile.
    let length = file.length().map_err(|error| unread(error, path))?.min(length);
    if read >= length {
        return Ok((bytes, scan));
    }
    let behind = file.next_data(read).map_err(|error| unread(error, path))?;
    if let Some(behind) = behind {
        let hole = behind - read;
        let message = format!("{hole} bytes were never written, and others follow them");
        let error = Error::new(ErrorKind::Damaged, message).in_file(path);
        return Err(error.at(|place| place.offset = Some(read)));
    }
    let hole = length - read;
    let torn = scan.torn.get_or_insert_with(|| LineDamage {
        number: scan.lines.last().map_or(0, |line| line.number) + 1,
        before: scan.lines.len(),
        offset: read,
        length: 0,
        reason: "the bytes were never written: the file has a hole at its end".to_owned(),
        is_cut: true,
    });
    torn.length += hole;
    Ok((bytes, scan))
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
    // Lines that somebody made may begin as one and end as thousands.
    let mut work = text.len().saturating_mul(MOST_WORK);
    'marks: for mark in memchr::memmem::find_iter(text, MARK) {
        let end = mark + MARK.len() + DIGITS + "\"}".len();
        let Some(left) = work.checked_sub(mark.saturating_sub(from)) else { break };
        work = left;
        // A damaged line end is one byte; where more is damaged, the rest is looked through.
        let starts = memchr::memchr_iter(b'{', text.get(from..mark).unwrap_or_default()).take(4);
        for start in starts.map(|start| from + start) {
            let Some(part) = text.get(start..end) else { continue };
            let Some(left) = work.checked_sub(part.len()) else { break 'marks };
            work = left;
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

    /// Opens a file of at most `limit` bytes for appending. A torn tail is copied beside it,
    /// durably, and cut; whatever happens in between, the bytes are in one of the two. The file and
    /// its name are synced once: a process that was killed may have left what its system alone
    /// knows. Gives what is in the file, and where the copy is. O(file).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`], with the line, where something that is not sound stands before a
    /// sound line; those of [`scan_file`].
    pub fn open(
        files: Arc<dyn Files>,
        path: impl Into<PathBuf>,
        limit: u64,
    ) -> Result<(Self, LineScan, Option<PathBuf>)> {
        let path = path.into();
        let failed = |error| Error::io(error, "cannot open").in_file(&path);
        let (bytes, mut scan) = scan_file(&*files, &path, limit)?;
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

    /// Appends sealed lines, each with its line end, in one write. O(bytes).
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

    /// Takes nothing more: something that belongs to the lines went wrong.
    pub fn poison(&mut self) {
        self.poisoned = true;
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
