//! Recognising a directory of archived transcripts.

use std::path::{Path, PathBuf};

use super::{ArchivedFile, FRAMES, MANIFEST, folder, manifest};
use crate::failure::{Failure, Outcome};

/// The transcripts in a directory; `None` where it is no archive.
///
/// Each is opened when it is read, so that what is wrong with one does not stand in the way of the
/// others.
pub(crate) fn open(path: &Path) -> Outcome<Option<Vec<ArchivedFile>>> {
    if !path.join(MANIFEST).is_file() {
        if is_half_built(path) {
            return Err(half_built().file(path).into());
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

pub(super) fn half_built() -> Failure {
    Failure::new("the archive was not finished: its list, archive.json, is missing")
        .hint("remove the directory, and make it again: `afterimage archive FILE… -o DIR`")
}
