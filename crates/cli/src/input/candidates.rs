//! The files that may be sessions: in folders, or where the agents keep theirs.

use std::path::{Path, PathBuf};

use afterimage::{session::archive::ArchivedTranscript, transcript::subagent_files};

use super::{
    FolderContents, Found, FoundKind, Opened, Opening, Progress, is_folder_of_files,
    places::{self, Place},
    stamp::Stamp,
};
use crate::{
    failure::{Failure, Outcome, Stop},
    store,
};

/// A shorter text is no id.
const SHORTEST_ID: usize = 6;
/// The characters of a UUID.
const UUID: usize = 36;
/// So many files are named where several have an id that begins alike.
const MOST_SHOWN: usize = 8;

/// The session whose file changed last, in these folders or where the agents keep theirs.
pub(crate) fn newest(folders: &[PathBuf]) -> Outcome<PathBuf> {
    let (_, mut candidates) = candidates(folders)?;
    let newest = candidates.newest().ok_or_else(|| no_session(folders))?;
    Ok(newest.path().to_owned())
}

/// The file of the session with this id, or with an id that begins so, where the agents keep theirs.
///
/// `None` where the text is no id, or no agent keeps a session with it.
pub(crate) fn by_id(id: &Path) -> Outcome<Option<PathBuf>> {
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let id = id.to_str().filter(|id| id.len() >= SHORTEST_ID && id.chars().all(is_of_id));
    let id = id.filter(|id| id.contains(|c: char| c.is_ascii_digit()));
    let Some(id) = id.filter(|_| places::all().iter().any(|place| place.folder.exists())) else {
        return Ok(None);
    };
    let (_, candidates) = candidates(&[])?;
    let mut found: Vec<Candidate> = candidates.all;
    found.retain(|candidate| candidate.has_id(id));
    match &*found {
        [] => Ok(None),
        [only] => match &only.found.session {
            None => Ok(Some(only.path().to_owned())),
            Some(session) => {
                let failure = Failure::new(format!("the session {id} is one of a database"));
                let hint = format!("name the file, and `--session {}`", session.id);
                Err(failure.file(only.path()).hint(hint).into())
            }
        },
        several => {
            let failure =
                Failure::new(format!("several sessions have an id that begins with {id}"));
            let shown = several.iter().take(MOST_SHOWN);
            let failure = shown.fold(failure, |failure, candidate| failure.file(candidate.path()));
            Err(failure.hint("write more of the id, or the path of the file").into())
        }
    }
}

/// What may be sessions in these folders; where none is named, the places where they are too.
pub(crate) fn candidates(folders: &[PathBuf]) -> Outcome<(Vec<Place>, Candidates)> {
    let mut candidates = Candidates::default();
    for folder in folders {
        candidates.add(folder)?;
    }
    if !folders.is_empty() {
        return Ok((Vec::new(), candidates));
    }
    let (there, missing): (Vec<Place>, Vec<Place>) =
        places::all().into_iter().partition(|place| place.folder.exists());
    if there.is_empty() {
        let failure = Failure::new("no agent keeps its sessions in one of the usual folders");
        let failure =
            missing.iter().fold(failure, |failure, place| failure.at("looked", place.shown()));
        return Err(failure.hint("name a folder: `afterimage sessions FOLDER`").into());
    }
    for folder in there.iter().flat_map(Place::sources) {
        // Of one agent nothing may be readable, and of the others all.
        match candidates.add(&folder) {
            Err(Stop::Failure(failure)) => crate::output::report(&failure),
            added => added?,
        }
    }
    Ok((there, candidates))
}

pub(crate) fn no_session(folders: &[PathBuf]) -> Failure {
    let failure = Failure::new("there is no session");
    folders.iter().map(PathBuf::as_path).fold(failure, |failure, path: &Path| failure.file(path))
}

/// A file that may hold a session, or one in an archive.
pub(crate) struct Candidate {
    pub(crate) found: Found,
    pub(crate) archived: Option<Box<ArchivedTranscript>>,
    pub(crate) stamp: Stamp,
    /// How the index names it; `None` where it cannot.
    pub(crate) key: Option<String>,
}

/// What was found in folders.
#[derive(Default)]
pub(crate) struct Candidates {
    pub(crate) all: Vec<Candidate>,
    pub(crate) links: u64,
    /// Whether something could not be read, which was reported.
    pub(crate) is_partial: bool,
}

impl Candidates {
    /// Looks into a folder, or takes a file as it is. What cannot be listed is reported.
    pub(crate) fn add(&mut self, path: &Path) -> Outcome {
        let found = if is_folder_of_files(path) {
            let contents = FolderContents::of(path)?;
            contents.unread.iter().for_each(crate::output::report);
            self.links += contents.links;
            contents.found
        } else if path.is_dir() {
            let is_archive = store::open(path)?.is_some();
            let kind = if is_archive { FoundKind::Archive } else { FoundKind::Recording };
            vec![Found::of(path, kind, Vec::new())]
        } else if path.exists() && !path.is_file() {
            // A pipe would be waited for.
            return Err(Failure::new("expected a file or a folder").file(path).into());
        } else {
            let parts = subagent_files(path);
            vec![Found::of(path, FoundKind::File, parts)]
        };
        // Below it no link is followed, so its own name is the only one that may have another.
        let real = path.canonicalize().map_err(|error| Failure::cannot_open(&error).file(path))?;
        for found in found.into_iter().flat_map(Found::sessions) {
            if found.kind == FoundKind::Archive {
                match self.add_archive(&found) {
                    Err(Stop::Failure(failure)) => {
                        crate::output::report(&failure);
                        self.is_partial = true;
                    }
                    added => added?,
                }
                continue;
            }
            let mut key = match found.path.strip_prefix(path) {
                Ok(below) if below.as_os_str().is_empty() => real.clone(),
                Ok(below) => real.join(below),
                Err(_) => found.path.clone(),
            };
            if let Some(session) = &found.session {
                key.push(&session.id);
            }
            // A file that is gone meanwhile is no session.
            if let Ok(stamp) = Stamp::of(&found) {
                let key = key.to_str().map(str::to_owned);
                self.all.push(Candidate { found, archived: None, stamp, key });
            }
        }
        Ok(())
    }

    /// Takes the transcripts of an archive: each has a folder of its own in it.
    fn add_archive(&mut self, found: &Found) -> Outcome {
        for file in store::open(&found.path)?.into_iter().flatten() {
            let folder = file.folder();
            let stamp = Stamp::of_folder(folder);
            let stamp = stamp.map_err(|error| Failure::cannot_open(&error).file(folder))?;
            let key = folder.canonicalize().ok();
            let key = key.and_then(|folder| folder.to_str().map(str::to_owned));
            let (found, archived) = (found.clone(), Some(Box::new(file)));
            self.all.push(Candidate { found, archived, stamp, key });
        }
        Ok(())
    }

    /// The session whose file changed last.
    pub(crate) fn newest(&mut self) -> Option<&Candidate> {
        self.all.sort_by(|one, other| {
            (other.stamp.modified, &other.found.path).cmp(&(one.stamp.modified, &one.found.path))
        });
        self.all.iter().find(|candidate| candidate.has_session())
    }
}

impl Candidate {
    /// Whether its session has this id, or one that begins so: by the name of its file, of the folder
    /// that the file is in, or in its database. Files of Codex have their id at the end.
    fn has_id(&self, id: &str) -> bool {
        let path = self.path();
        let folder = path.parent().and_then(Path::file_name);
        let names = [path.file_stem(), folder].into_iter().flatten().filter_map(|of| of.to_str());
        let ends = |name: &str| {
            let uuid = name.len().checked_sub(UUID).and_then(|at| name.get(at..));
            uuid.is_some_and(|uuid| uuid.starts_with(id))
        };
        let of_database = self.found.session.as_ref().map(|session| &*session.id);
        match of_database {
            Some(own) => own.starts_with(id),
            None => names.into_iter().any(|name| name.starts_with(id) || ends(name)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.found.path
    }

    /// Its file, and how the index names it.
    pub(crate) fn place(&self) -> (PathBuf, Option<String>) {
        (self.found.path.clone(), self.key.clone())
    }

    /// Whether there is a record of a session in it.
    fn has_session(&self) -> bool {
        if let Some(archived) = &self.archived {
            return !archived.entry().sessions.is_empty();
        }
        let opened = Opening::Found(self.found.clone()).open(Progress::Hidden, None);
        match opened {
            Ok(Opened::Source(mut source)) => source.next().is_some_and(|record| record.is_ok()),
            _ => false,
        }
    }
}
