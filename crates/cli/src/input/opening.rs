//! What the words of a command line stand for.

use std::{
    collections::HashSet,
    io::BufRead,
    path::{Path, PathBuf},
};

use afterimage::{
    session::archive::{self, ArchivedTranscript, DirectoryState},
    transcript::{Transcript, TranscriptFormat, subagent_files},
};

use super::{
    FolderContents, Found, FoundKind, Progress,
    passed_over::PassedOver,
    source::{NoTranscript, Source},
};
use crate::{failure::Outcome, input::is_stdin, store};

/// Something to read.
pub(crate) enum Opening {
    File(PathBuf),
    Folder(PathBuf, Box<Transcript<Box<dyn BufRead + Send>>>),
    Archived(Box<ArchivedTranscript>),
    /// A file or a recording in a folder.
    Found(Found),
}

/// What was opened.
pub(crate) enum Opened {
    Source(Box<Source>),
    /// A file in a folder that is no transcript, and why.
    NoTranscript(PathBuf, NoTranscript),
}

/// The files, with those of archives and of folders in place of these.
pub(super) fn expanded(files: &[PathBuf], passed_over: &mut PassedOver) -> Vec<Outcome<Opening>> {
    let mut all = Vec::with_capacity(files.len());
    let joined = joined(files);
    for path in files.iter().filter(|path| !is_joined(path, &joined)) {
        if is_stdin(path) || !path.is_dir() {
            all.push(Ok(Opening::File(path.clone())));
            continue;
        }
        match store::open(path) {
            Ok(Some(files)) => {
                all.extend(files.into_iter().map(|file| Ok(Opening::Archived(Box::new(file)))));
            }
            Ok(None) => match Transcript::open_folder(path) {
                Ok(Some(of)) => all.push(Ok(Opening::Folder(path.clone(), Box::new(of)))),
                Ok(None) => expand_folder(path, passed_over, &mut all),
                Err(error) => all.push(Err(error.into())),
            },
            Err(stop) => all.push(Err(stop)),
        }
    }
    all
}

fn expand_folder(path: &Path, passed_over: &mut PassedOver, all: &mut Vec<Outcome<Opening>>) {
    let contents = match FolderContents::of(path) {
        Ok(contents) => contents,
        Err(stop) => return all.push(Err(stop)),
    };
    passed_over.begin(path, contents.links);
    all.extend(contents.unread.into_iter().map(|failure| Err(failure.into())));
    for found in contents.found {
        if found.kind != FoundKind::Archive {
            all.push(Ok(Opening::Found(found)));
            continue;
        }
        passed_over.read(&found.path);
        match store::open(&found.path) {
            Ok(files) => all.extend(
                files.into_iter().flatten().map(|file| Ok(Opening::Archived(Box::new(file)))),
            ),
            Err(stop) => all.push(Err(stop)),
        }
    }
}

/// Whether it is a folder that stands for the files in it.
pub(crate) fn is_folder_of_files(path: &Path) -> bool {
    !is_stdin(path)
        && path.is_dir()
        && archive::state(path) == DirectoryState::NoArchive
        && matches!(Transcript::open_folder(path), Ok(None))
}

/// The files that are read with the session that they belong to.
fn joined(files: &[PathBuf]) -> HashSet<PathBuf> {
    // One file has nothing to be read twice with.
    let of_several = files.iter().filter(|_| files.len() > 1);
    let mains = of_several.filter(|path| !is_stdin(path) && path.is_file());
    let joined = mains.flat_map(subagent_files);
    joined.filter_map(|path| path.canonicalize().ok()).collect()
}

fn is_joined(path: &Path, joined: &HashSet<PathBuf>) -> bool {
    !joined.is_empty() && path.canonicalize().is_ok_and(|path| joined.contains(&path))
}

impl Opening {
    /// The file or the recording that is opened, where it is not of an archive.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Folder(path, _) => Some(path),
            Self::Found(found) => Some(&found.path),
            Self::Archived(_) => None,
        }
    }

    pub(crate) fn open(
        self,
        progress: Progress<'_>,
        format: Option<TranscriptFormat>,
    ) -> Outcome<Opened> {
        let source = match self {
            Self::File(path) => Source::open(&path, progress, format)?,
            Self::Folder(path, transcript) => Source::folder(&path, *transcript),
            Self::Archived(file) => Source::archive(*file, progress, format)?,
            Self::Found(found) if found.kind == FoundKind::Recording => {
                let opened = Transcript::open_folder(&found.path)?;
                let Some(transcript) = opened else {
                    let why = NoTranscript("it is no recording".to_owned());
                    return Ok(Opened::NoTranscript(found.path, why));
                };
                Source::folder(&found.path, transcript)
            }
            Self::Found(found) => match Source::open_found(&found, progress, format)? {
                Ok(source) => source,
                Err(why) => return Ok(Opened::NoTranscript(found.path, why)),
            },
        };
        Ok(Opened::Source(Box::new(source)))
    }
}
