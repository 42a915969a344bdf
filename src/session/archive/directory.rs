//! Recognising a directory of archived transcripts.

use std::{fs, path::Path, sync::Arc};

use super::{ArchivedTranscript, FRAMES, LOCK, MANIFEST, UNFINISHED, folder, holder, manifest};
use crate::{
    Error, ErrorKind, Result,
    log::{DirLock, DiskFiles, within},
};

/// What a directory is, as far as archives go.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryState {
    /// Nothing here is an archive; there may be no directory at all.
    NoArchive,
    /// An archive with its list.
    Archive,
    /// Somebody is making an archive here.
    BeingMade,
    /// Making an archive here was broken off; [`ArchiveBuilder::create`](super::ArchiveBuilder::create)
    /// makes it anew.
    Unfinished,
    /// There are files of an archive without its list, and nothing says that it was being made.
    ListMissing,
}

/// What a directory is.
///
/// Where an archive was begun and has no list, this takes the lock of the directory for a moment, to
/// learn whether somebody holds it. The lock file is then created where it is missing, and names this
/// program where nobody holds it; whoever begins to make an archive at that moment is refused.
///
/// Cost: a few calls of the system, whatever the directory holds.
pub fn state(directory: &Path) -> DirectoryState {
    // A link or a pipe of that name is refused when it is read, with the reason.
    if kind_of(&directory.join(MANIFEST)).is_some_and(|kind| !kind.is_dir()) {
        return DirectoryState::Archive;
    }
    let first = folder(directory, 0);
    let is_begun = is_unfinished(directory)
        || is_there(&first.join(FRAMES))
        || is_there(&directory.join(LOCK)) && kind_of(&first).is_some_and(|kind| kind.is_dir());
    if !is_begun {
        return DirectoryState::NoArchive;
    }
    match DirLock::acquire(&DiskFiles, directory, &holder()) {
        Err(error) if error.kind() == crate::log::ErrorKind::Locked => DirectoryState::BeingMade,
        _ if is_unfinished(directory) => DirectoryState::Unfinished,
        _ => DirectoryState::ListMissing,
    }
}

/// The transcripts of an archive. Each is opened when it is read.
///
/// Cost: O(transcripts): reads their list, and nothing of their frames.
///
/// # Errors
/// [`ErrorKind::UnknownFormat`] where the directory is no archive, [`ErrorKind::Locked`] where it is
/// still being made, [`ErrorKind::Damaged`] where it was not finished or its list fails its check,
/// [`ErrorKind::Version`] for that of a newer program, [`ErrorKind::Shape`] for a list with other
/// members, [`ErrorKind::Io`].
pub fn open(directory: &Path) -> Result<Vec<ArchivedTranscript>> {
    match state(directory) {
        DirectoryState::Archive => {}
        DirectoryState::NoArchive => {
            let message = "expected an archive of transcripts, found none";
            return Err(Error::new(ErrorKind::UnknownFormat, message).in_file(directory));
        }
        other => return Err(not_finished(directory, other)),
    }
    let files = within(Arc::new(DiskFiles), directory);
    let entries = manifest::read(directory)?.into_iter().enumerate();
    let of = |(index, entry)| {
        let folder = folder(directory, index);
        ArchivedTranscript::new(Arc::clone(&files), folder, directory.to_owned(), entry)
    };
    Ok(entries.map(of).collect())
}

/// Whether somebody began an archive here, and says so: no list was ever there.
pub(super) fn is_unfinished(path: &Path) -> bool {
    kind_of(&path.join(UNFINISHED)).is_some_and(|kind| kind.is_file())
        && !is_there(&path.join(MANIFEST))
}

/// Whether there is anything of this name, a link that leads nowhere too.
pub(super) fn is_there(path: &Path) -> bool {
    kind_of(path).is_some()
}

/// What has this name; a link is a link, whatever it leads to.
fn kind_of(path: &Path) -> Option<fs::FileType> {
    fs::symlink_metadata(path).ok().map(|metadata| metadata.file_type())
}

/// What is wrong with a directory that has no list: it is being made, or nobody finished it.
pub(super) fn not_finished(directory: &Path, state: DirectoryState) -> Error {
    let (kind, message) = match state {
        DirectoryState::BeingMade => (ErrorKind::Locked, being_made(directory)),
        DirectoryState::ListMissing => (
            ErrorKind::Damaged,
            "the archive was not finished: its list, archive.json, is missing".to_owned(),
        ),
        _ => (ErrorKind::Damaged, "the archive was not finished".to_owned()),
    };
    Error::new(kind, message).in_file(directory)
}

/// Names whoever makes it, as far as the lock tells.
fn being_made(directory: &Path) -> String {
    match DirLock::acquire(&DiskFiles, directory, &holder()) {
        Err(error) => format!("the archive is still being made: {}", error.message()),
        Ok(_) => "the archive was still being made".to_owned(),
    }
}
