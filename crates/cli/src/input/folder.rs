//! What there is to read in a folder.
//!
//! A folder is read as its files, those in its folders too, in the order of their names. What is
//! hidden is passed over, and no symbolic link is followed. A folder that is a recording or an
//! archive stands for itself.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use afterimage::{
    json::{self, Value},
    session::archive::{self, DirectoryState},
    transcript::{DatabaseSession, database_sessions, is_recording_folder},
};

use crate::failure::{Failure, Outcome};

/// How deep folders may lie in each other.
const DEEPEST: usize = 64;
/// How much of a file is read to find out whose it is.
const FIRST_LINE: u64 = 4 << 20;

/// What there is to read in a folder.
#[derive(Debug, Default)]
pub(crate) struct FolderContents {
    pub(crate) found: Vec<Found>,
    /// Symbolic links that were not followed.
    pub(crate) links: u64,
    /// Folders that could not be listed, and why.
    pub(crate) unread: Vec<Failure>,
}

/// Something in a folder that may be a transcript.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) kind: FoundKind,
    /// The files of the subagents of its session, which are read with it.
    pub(crate) parts: Vec<PathBuf>,
    /// The session of a database that alone is meant.
    pub(crate) session: Option<DatabaseSession>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundKind {
    /// A file, whatever is in it.
    File,
    /// A folder that is a recording.
    Recording,
    /// A folder that is an archive.
    Archive,
}

impl Found {
    /// A source that is named.
    pub(super) fn of(path: &Path, kind: FoundKind, parts: Vec<PathBuf>) -> Self {
        Self { path: path.to_owned(), kind, parts, session: None }
    }

    /// What is to be listed of it: of a database each session. One that cannot be read, or is none of an
    /// agent, stays as it is: who reads it hears why.
    pub(super) fn sessions(self) -> Vec<Self> {
        let may_be = self.kind == FoundKind::File && is_named_database(&self.path);
        match may_be.then(|| database_sessions(&self.path)) {
            Some(Ok(Some(sessions))) => {
                let of = |session| Self { session: Some(session), ..self.clone() };
                sessions.into_iter().map(of).collect()
            }
            _ => vec![self],
        }
    }

    /// The files that are read with it, where the listing told all of them: of a packed session it
    /// does not.
    pub(super) fn subagents(&self) -> Option<&[PathBuf]> {
        self.path.extension().is_some_and(|end| end == "jsonl").then_some(&self.parts)
    }
}

impl FolderContents {
    /// Lists a folder and the folders in it.
    pub(crate) fn of(folder: &Path) -> Outcome<Self> {
        let mut contents = Self::default();
        let names = listed(folder).map_err(|error| cannot_list(&error, folder))?;
        contents.add(folder, &names, DEEPEST);
        contents.join_subagents();
        Ok(contents)
    }

    fn add(&mut self, folder: &Path, names: &[(OsString, fs::FileType)], depth: usize) {
        let has = |name: &str| names.iter().any(|(other, _)| other == name);
        // The context of Kimi repeats its wire log.
        let repeated = if has("wire.jsonl") { "context.jsonl" } else { "" };
        for (name, kind) in names {
            let path = folder.join(name);
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if is_hidden || *name == *repeated {
                continue;
            }
            if kind.is_symlink() {
                self.links += 1;
            } else if kind.is_file() {
                self.push(path, FoundKind::File);
            } else if kind.is_dir() && depth > 0 {
                self.add_folder(path, depth - 1);
            }
        }
    }

    fn add_folder(&mut self, folder: PathBuf, depth: usize) {
        match archive::state(&folder) {
            DirectoryState::NoArchive => {}
            // Maybe by this very command.
            DirectoryState::BeingMade => return,
            _ => return self.push(folder, FoundKind::Archive),
        }
        match listed(&folder) {
            Ok(names) if is_recording(&names) => self.push(folder, FoundKind::Recording),
            Ok(names) => self.add(&folder, &names, depth),
            Err(error) => self.unread.push(cannot_list(&error, &folder)),
        }
    }

    fn push(&mut self, path: PathBuf, kind: FoundKind) {
        self.found.push(Found { path, kind, parts: Vec::new(), session: None });
    }

    /// Gives the files of subagents to the sessions that they belong to.
    fn join_subagents(&mut self) {
        let places: HashMap<&Path, usize> =
            self.found.iter().map(|found| found.path.as_path()).zip(0..).collect();
        let owner_of = |found: &Found| places.get(owner(&found.path)?.as_path()).copied();
        let owners: Vec<Option<usize>> = self.found.iter().map(owner_of).collect();
        let all = std::mem::take(&mut self.found);
        let mut kept: Vec<Option<Found>> = all.into_iter().map(Some).collect();
        for (index, owner) in owners.iter().copied().enumerate() {
            // What a subagent started itself is read by itself: its starter is read with another.
            let is_read =
                |owner: &usize| *owner != index && owners.get(*owner).is_some_and(Option::is_none);
            let Some(owner) = owner.filter(is_read) else { continue };
            let part = kept.get_mut(index).and_then(Option::take);
            let owner = kept.get_mut(owner).and_then(Option::as_mut);
            if let (Some(part), Some(owner)) = (part, owner) {
                owner.parts.push(part.path);
            }
        }
        self.found = kept.into_iter().flatten().collect();
        // Those in folders of their own come first, as where one session is read.
        let place = |part: &PathBuf| {
            let is_beside = !part.ancestors().any(|of| of.ends_with("subagents"));
            (is_beside, part.components().count())
        };
        self.found.iter_mut().for_each(|found| found.parts.sort_by_key(place));
    }
}

/// The names in a folder, in order.
fn listed(folder: &Path) -> io::Result<Vec<(OsString, fs::FileType)>> {
    let mut names = fs::read_dir(folder)?
        .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(names)
}

fn cannot_list(error: &io::Error, folder: &Path) -> Failure {
    let reason = error.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default().to_lowercase();
    Failure::new(format!("cannot list the folder: {reason}")).file(folder)
}

/// Whether a folder with these names is a recording. Opening it decides.
fn is_recording(names: &[(OsString, fs::FileType)]) -> bool {
    let files = names.iter().filter(|(_, kind)| kind.is_file());
    is_recording_folder(&files.filter_map(|(name, _)| name.to_str()).collect::<Vec<_>>())
}

/// The file of the session that a subagent's file belongs to: the one that its folder is named for,
/// or the one that its first record names.
fn owner(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
    let folder = path.parent()?;
    let of = |session: &Path| {
        let mut name = session.as_os_str().to_owned();
        name.push(".jsonl");
        PathBuf::from(name)
    };
    // What stands in the folder of a subagent is not read with it.
    let is_subagents = |folder: &Path| {
        folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"agent-"))
    };
    // The runs of a workflow have folders of their own in that of the subagents.
    if let Some(all) = folder.ancestors().find(|of| of.ends_with("subagents")) {
        let session = all.parent()?;
        let is_own = folder.ancestors().take_while(|of| *of != all).any(is_subagents);
        return (!is_own && !is_subagents(session)).then(|| of(session));
    }
    let mut line = Vec::new();
    let input = BufReader::new(File::open(path).ok()?);
    input.take(FIRST_LINE).read_until(b'\n', &mut line).ok()?;
    let (record, _) = json::read_mended(&line).ok()?;
    let is_subagent = record.get("isSidechain").and_then(Value::as_bool) == Some(true);
    record.str_at("sessionId").filter(|_| is_subagent).map(|session| of(&folder.join(session)))
}

/// Whether a file has the name of a database.
pub(crate) fn is_named_database(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "db")
}

/// Whether a file begins as no text does, and is not packed either.
pub(super) fn is_binary(path: &Path) -> bool {
    const PACKED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xfe\xff"];
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(512).read_to_end(&mut head));
    read.is_ok() && head.contains(&0) && !PACKED.iter().any(|magic| head.starts_with(magic))
}
