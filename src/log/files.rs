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
    /// Opens a file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] for [`OpenMode::Read`] of a file that is not there, and whatever
    /// the system refuses.
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

    /// The names in a directory, sorted by their bytes.
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

    /// Writes all of `bytes` at the end of the file.
    ///
    /// # Errors
    /// What the system refuses; a part of `bytes` may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

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
}

/// How a file is opened. Every mode reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading, a file that is there.
    Read,
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
