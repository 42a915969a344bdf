//! Recognising a directory of archived transcripts.

use std::path::{Path, PathBuf};

use afterimage::{
    ErrorKind,
    log::{DirLock, DiskFiles},
};

use super::{ArchivedFile, FRAMES, MANIFEST, folder, holder, manifest};
use crate::failure::{Failure, Outcome};

/// The transcripts in a directory; `None` where it is no archive.
///
/// Each is opened when it is read, so that what is wrong with one does not stand in the way of the
/// others.
pub(crate) fn open(path: &Path) -> Outcome<Option<Vec<ArchivedFile>>> {
    if !path.join(MANIFEST).is_file() {
        if is_half_built(path) {
            return Err(half_built(path).into());
        }
        return Ok(None);
    }
    let files = manifest::read(path)?.into_iter().enumerate();
    let of = |(index, entry)| ArchivedFile::new(folder(path, index), path.to_owned(), entry);
    Ok(Some(files.map(of).collect()))
}

/// Whether someone began to write an archive here, and did not finish, or has not yet.
pub(super) fn is_half_built(path: &Path) -> bool {
    let first: PathBuf = folder(path, 0);
    first.join(FRAMES).exists() || path.join("lock").exists() && first.is_dir()
}

/// What is wrong with a directory that has no list: it is being made, or nobody finished it.
pub(super) fn half_built(path: &Path) -> Failure {
    match DirLock::acquire(&DiskFiles, path, &holder()) {
        Err(error) if error.kind() == ErrorKind::Locked => {
            Failure::new(format!("the archive is still being made: {}", error.message()))
                .hint("wait until it is done")
        }
        _ => Failure::new("the archive was not finished: its list, archive.json, is missing")
            .hint("remove the directory, and make it again: `afterimage archive FILE… -o DIR`"),
    }
    .file(path)
}
