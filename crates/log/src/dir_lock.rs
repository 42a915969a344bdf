use std::{io, path::Path, process};

use super::{Files, OpenFile, OpenMode, files::read_full};
use crate::{Error, ErrorKind, Result};

/// The name of the file that is locked.
const NAME: &str = "lock";

/// How often a lock file is opened again that another one replaced before it was locked.
const ATTEMPTS: usize = 4;

/// How much of who holds the lock is read.
const HOLDER: usize = 1024;

/// Who holds a lock, for whoever finds it held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    program: String,
    note: String,
}

impl Holder {
    /// The program that holds the lock.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), note: String::new() }
    }

    /// Says more, in one line: what the program does, or since when.
    pub fn noting(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    fn line(&self) -> String {
        let note = if self.note.is_empty() { String::new() } else { format!(", {}", self.note) };
        let line = format!("{}, process {}{note}", self.program, process::id());
        line.replace(|c: char| c.is_control(), " ") + "\n"
    }
}

/// The right to write in a directory, which one holder has at a time.
///
/// It is the operating system's lock of the file `lock` in the directory, so it ends when this is
/// dropped and when the process does, however that happens. That the file exists means nothing: it
/// stays, with the line of who held the lock last.
///
/// It keeps out other holders of the lock, in this process too, and nobody else. Whoever removes the
/// file or the directory while it is locked removes the lock. On a network file system it is worth
/// what that system's locks are worth.
#[derive(Debug)]
#[must_use = "the lock ends when this is dropped"]
pub struct DirLock {
    _file: Box<dyn OpenFile>,
}

impl DirLock {
    /// Takes the lock of a directory that is there, without waiting.
    ///
    /// Where somebody replaces the directory or the lock file in the meantime, it locks the file that
    /// is there now: with the lock of a file that is gone, two holders could write at once.
    ///
    /// Cost: O(1), a few calls of the system.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] where another holder has it, saying who where that can be read
    /// (Windows lets nobody read a locked file), and where the lock file is replaced again and again;
    /// [`ErrorKind::Io`]. All name the lock file.
    pub fn acquire(
        files: &dyn Files,
        directory: impl AsRef<Path>,
        holder: &Holder,
    ) -> Result<Self> {
        let path = directory.as_ref().join(NAME);
        let failed = |error| Error::io(error, "cannot lock").in_file(&path);
        for _ in 0..ATTEMPTS {
            let file = files.open(&path, OpenMode::Append).map_err(failed)?;
            if !file.try_lock().map_err(failed)? {
                let message = format!("already in use by {}", held_by(&*file));
                return Err(Error::new(ErrorKind::Locked, message).in_file(&path));
            }
            if file.is_at(&path).map_err(failed)? {
                describe(files, &path, &*file, holder).map_err(failed)?;
                return Ok(Self { _file: file });
            }
        }
        let message = "another program replaces the lock file whenever it is opened: stop that one";
        Err(Error::new(ErrorKind::Locked, message).in_file(&path))
    }
}

fn describe(
    files: &dyn Files,
    path: &Path,
    file: &dyn OpenFile,
    holder: &Holder,
) -> io::Result<()> {
    if file.length()? > 0 {
        files.truncate(path, 0)?;
    }
    file.append(holder.line().as_bytes())
}

fn held_by(file: &dyn OpenFile) -> String {
    let mut bytes = [0; HOLDER];
    let read = read_full(file, &mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(bytes.get(..read).unwrap_or_default());
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => line.replace(|c: char| c.is_control(), " "),
        _ => "a holder that cannot be read".to_owned(),
    }
}
