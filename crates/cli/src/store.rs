//! Archives of transcripts, with what may help where one cannot be read or made.

use std::path::Path;

use afterimage::{
    ErrorKind,
    session::archive::{self, ArchiveBuilder, ArchivedTranscript, DirectoryState},
};

use crate::{
    failure::{Outcome, Stop},
    output::note,
};

/// The transcripts in a directory; `None` where it is no archive.
pub(crate) fn open(path: &Path) -> Outcome<Option<Vec<ArchivedTranscript>>> {
    match archive::state(path) {
        DirectoryState::NoArchive => Ok(None),
        state => {
            let transcripts = archive::open(path).map_err(|error| advised(error, state))?;
            let hear = |problem: &_| note(&format!("damage in the archive: {problem}"));
            let transcripts = transcripts.into_iter().map(|archived| archived.on_damage(hear));
            Ok(Some(transcripts.collect()))
        }
    }
}

/// Begins an archive in a directory.
pub(crate) fn create(path: &Path) -> Outcome<ArchiveBuilder> {
    let builder =
        ArchiveBuilder::create(path).map_err(|error| advised(error, archive::state(path)))?;
    if builder.replaces_unfinished() {
        note(&format!("{}: replacing an unfinished archive", path.display()));
    }
    Ok(builder)
}

/// The error of a directory in this state, with what to do.
fn advised(error: afterimage::Error, state: DirectoryState) -> Stop {
    let hint = match (error.kind(), state) {
        (ErrorKind::Locked, _) => "wait until it is done",
        (ErrorKind::Conflict, DirectoryState::Archive) => {
            "name it as an input, too: `afterimage archive DIR FILE -o OTHER`"
        }
        (ErrorKind::Conflict, _) if error.message() == "the directory is not empty" => {
            "name one that is empty, or not there yet"
        }
        (ErrorKind::Damaged, DirectoryState::Unfinished) => {
            "`afterimage archive FILE… -o DIR` makes it anew, in the same directory"
        }
        (ErrorKind::Damaged, DirectoryState::ListMissing) => {
            "remove the directory, and make it again: `afterimage archive FILE… -o DIR`"
        }
        _ => return error.into(),
    };
    match Stop::from(error) {
        Stop::Failure(failure) => failure.hint(hint).into(),
        stop => stop,
    }
}
