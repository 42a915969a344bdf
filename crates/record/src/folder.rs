//! The folder of a recording.

use std::{io, path::Path, sync::Arc};

use afterimage_log::{FileKind, Files, create_dirs, within};

use crate::{Error, ErrorKind, Result};

/// The file of the records.
pub const FILE_NAME: &str = "wire.rec";

pub(crate) const KIND: FileKind = FileKind::new(*b"aiwire\0\0", 1);

/// The files that may be beside it: the lock, and what opening a file leaves.
const LOCK: &str = "lock";

/// Whether a folder is a recording: whether it holds its file.
pub fn is_recording(folder: &Path) -> bool {
    folder.join(FILE_NAME).is_file()
}

/// Makes the folder of a recording, or takes one that is there.
///
/// # Errors
/// [`ErrorKind::UnknownFormat`] where it holds something else, [`ErrorKind::Io`].
pub(crate) fn prepare(files: &Arc<dyn Files>, folder: &Path) -> Result<Arc<dyn Files>> {
    create_dirs(&**files, folder)?;
    let names =
        files.list(folder).map_err(|error| Error::io(error, "cannot list").in_file(folder))?;
    let is_ours = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        name.starts_with(FILE_NAME) || name == LOCK
    };
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        let message = format!(
            "the folder holds {}, and a recording wants a folder of its own",
            other.display()
        );
        return Err(Error::new(ErrorKind::UnknownFormat, message).in_file(folder));
    }
    Ok(within(Arc::clone(files), folder))
}

/// Takes the rights of everybody but the owner from a folder that is there, and from its files.
///
/// # Errors
/// [`ErrorKind::Io`].
pub(crate) fn close_to_others(folder: &Path) -> Result<()> {
    let closed = close(folder);
    closed.map_err(|error| Error::io(error, "cannot take the rights of others").in_file(folder))
}

#[cfg(unix)]
fn close(folder: &Path) -> io::Result<()> {
    use std::{fs, os::unix::fs::PermissionsExt};
    let close = |path: &Path, to: u32| {
        let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
        if mode.trailing_zeros() >= 6 {
            return Ok(());
        }
        fs::set_permissions(path, fs::Permissions::from_mode(to))
    };
    close(folder, 0o700)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A link would lead to the file of somebody else.
        if entry.file_type()?.is_file() {
            close(&entry.path(), 0o600)?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn close(_folder: &Path) -> io::Result<()> {
    Ok(())
}
