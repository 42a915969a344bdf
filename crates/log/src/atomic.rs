use std::{io, path::Path};

use super::{
    Files, OpenFile, OpenMode,
    files::{directory_of, with_suffix},
};
use crate::{Error, Result};

/// Writes a file whole or not at all: whoever opens `path`, after a crash too, finds what was there
/// before or all of `bytes`.
///
/// The bytes go to `path` with `.tmp` at its end, are synced, and the file is renamed; then the
/// directory is synced. A file of that temporary name is overwritten: it is what a killed process
/// left. There must be one writer at a time ([`DirLock`](super::DirLock)). O(bytes), and two syncs.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io), naming `path`. The temporary file is then removed,
/// where the system still lets it be. `path` is as it was, unless the last step failed: then it
/// holds `bytes`, but a crash may yet bring back what was there before.
pub fn write_atomic(files: &dyn Files, path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    replace(files, path.as_ref(), |file| file.append(bytes))
}

/// [`write_atomic`] of whatever `write` appends.
pub(super) fn replace(
    files: &dyn Files,
    path: &Path,
    write: impl FnOnce(&dyn OpenFile) -> io::Result<()>,
) -> Result<()> {
    let temporary = with_suffix(path, ".tmp");
    let written = files.open(&temporary, OpenMode::Create).and_then(|file| {
        write(&*file)?;
        file.sync()
    });
    let renamed = written.and_then(|()| files.rename(&temporary, path));
    if let Err(error) = renamed {
        // What went wrong first is what the caller has to know.
        let _ = files.remove(&temporary);
        return Err(Error::io(error, "cannot write").in_file(path));
    }
    files
        .sync_dir(directory_of(path))
        .map_err(|error| Error::io(error, "cannot sync the directory of").in_file(path))
}

/// Creates a directory and those above it that are not there, durably. The name of one that is
/// there is made durable too, for who created it may have been killed before; unless the directory
/// that holds it cannot be opened. Costs a sync for each, and a listing of one that is there.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io), naming the directory; also where a file has its name.
pub fn create_dirs(files: &dyn Files, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let failed = |error| Error::io(error, "cannot create the directory").in_file(path);
    let created = match files.create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = directory_of(path);
            if above == Path::new(".") || above == path {
                return Err(failed(error));
            }
            create_dirs(files, above)?;
            files.create_dir(path)
        }
        other => other,
    };
    match created {
        Ok(()) => files.sync_dir(directory_of(path)).map_err(failed),
        // To list it tells a directory from a file of that name.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            files.list(path).map_err(failed)?;
            match files.sync_dir(directory_of(path)) {
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(failed(error)),
                _ => Ok(()),
            }
        }
        Err(error) => Err(failed(error)),
    }
}
