use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

/// The few operations on files that stores need.
///
/// Everything that is stored goes through this trait, so that a test can put a disk under a store
/// that fails where it wants. [`DiskFiles`](super::DiskFiles) is the operating system's.
///
/// Errors are the operating system's; what is built upon this adds which file and what for.
pub trait Files: fmt::Debug + Send + Sync {
    /// Opens a regular file, without following a symbolic link and without waiting for a pipe.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] for [`OpenMode::Read`] and [`OpenMode::Write`] of a file that is
    /// not there, one of its own for a link and for what is no regular file, and whatever the system
    /// refuses.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>>;

    /// Cuts a file to its first `length` bytes, durably.
    ///
    /// This takes a path and no open file, since not every system lets a file that was opened for
    /// appending be cut.
    ///
    /// # Errors
    /// What the system refuses.
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()>;

    /// Gives a file another name, in place of a file that has it.
    ///
    /// Which of the two a crash leaves is certain only after [`Files::sync_dir`].
    ///
    /// # Errors
    /// What the system refuses.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system refuses.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, sorted by their bytes. O(names · log names).
    ///
    /// # Errors
    /// What the system refuses.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Creates one directory in a directory that is there.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where something has the name, and whatever the system
    /// refuses.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable: files that were created, renamed or removed.
    ///
    /// # Errors
    /// What the system refuses.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;

    /// Whether a symbolic link has this name. There are none where this is not implemented.
    ///
    /// # Errors
    /// What the system refuses; that nothing has the name is no error.
    fn is_link(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(false)
    }
}

/// An open file. A lock on it ends when it is dropped, or with the process.
pub trait OpenFile: fmt::Debug + Send + Sync {
    /// The length in bytes.
    ///
    /// # Errors
    /// What the system refuses.
    fn length(&self) -> io::Result<u64>;

    /// Reads into `buffer` from `offset` on, and tells how many bytes; zero at the end of the file.
    ///
    /// # Errors
    /// What the system refuses; [`io::ErrorKind::Interrupted`] is to be tried again.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at the end of the file. O(bytes).
    ///
    /// # Errors
    /// What the system refuses; a part of `bytes` may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Writes all of `bytes` from `offset` on, over what is there; for a file that was opened with
    /// [`OpenMode::Write`].
    ///
    /// # Errors
    /// What the system refuses; a part of `bytes` may have been written. Where this is not
    /// implemented, [`io::ErrorKind::Unsupported`].
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _ = (bytes, offset);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes the file's bytes and its length durable.
    ///
    /// # Errors
    /// What the system refuses; it is then unknown what the disk holds, and trying again would not
    /// tell.
    fn sync(&self) -> io::Result<()>;

    /// Takes the exclusive lock of the file; false where another open file has it.
    ///
    /// # Errors
    /// What the system refuses.
    fn try_lock(&self) -> io::Result<bool>;

    /// Whether `path` still leads to this file, and not to another one or to nothing.
    ///
    /// Where this is not implemented, true.
    ///
    /// # Errors
    /// What the system refuses; that nothing has the name is no error.
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(true)
    }

    /// The first offset from `from` on where bytes may have been written: between them is a hole,
    /// which takes no room on the disk and reads as zeros. `None` where nothing but a hole follows.
    ///
    /// Where holes cannot be told, `from`.
    ///
    /// # Errors
    /// What the system refuses.
    fn next_data(&self, from: u64) -> io::Result<Option<u64>> {
        Ok(Some(from))
    }
}

/// How a file is opened. Every mode reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading, a file that is there.
    Read,
    /// For writing at any place of a file that is there.
    Write,
    /// For appending; created where it is not there.
    Append,
    /// For appending, from empty: created, or emptied where it is there.
    Create,
}

/// Fills `buffer` from `offset` on, and tells how much of it there was.
pub(super) fn read_full(
    file: &dyn OpenFile,
    buffer: &mut [u8],
    mut offset: u64,
) -> io::Result<usize> {
    let wanted = buffer.len();
    let mut rest = buffer;
    while !rest.is_empty() {
        match file.read_at(rest, offset) {
            Ok(0) => break,
            Ok(read) => {
                rest = rest.get_mut(read..).unwrap_or_default();
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - rest.len())
}

/// The directory that `path` is in.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `path` with `suffix` at its end.
pub(super) fn with_suffix(path: &Path, suffix: impl AsRef<std::ffi::OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
