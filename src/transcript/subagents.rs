//! The files of the subagents of a session of Claude Code, which stand beside the session's own.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use crate::{
    Error, Result,
    json::{self, Value},
};

/// The beginning and the end of the name of a subagent's file.
const PREFIX: &str = "agent-";
const SUFFIX: &str = ".jsonl";
/// How many files of one session are read.
const FILES: usize = 4_096;
/// How deep folders may lie in that of the subagents.
const DEEPEST: usize = 8;
/// How much of a file is read to find out whose it is.
const FIRST_LINE: u64 = 4 << 20;

/// The files of the subagents of the session of Claude Code that `path` holds, in the order of
/// their names: those in `SESSION/subagents`, then those in folders in it, as those of workflows, and
/// those beside it that name the session themselves, as older versions wrote them. Empty for any other
/// file.
///
/// [`Transcript::open`](super::Transcript::open) reads them after the file itself. Lists these
/// folders, and reads the first line of each file beside it.
pub fn subagent_files(path: impl AsRef<Path>) -> Vec<PathBuf> {
    let path = path.as_ref();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(session) = name.split_once(SUFFIX).map(|(session, _)| session) else {
        return Vec::new();
    };
    if session.is_empty() || session.starts_with(PREFIX) {
        return Vec::new();
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    below(&folder.join(session).join("subagents"), DEEPEST, &mut files);
    files.sort_by_cached_key(|file| (file.components().count(), file.clone()));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut beside = named(here);
    beside.retain(|file| is_of(file, session));
    files.append(&mut beside);
    files.truncate(FILES);
    files
}

/// The files of a folder and of the folders in it. What a subagent started itself, in a folder of its
/// own, is not among them.
fn below(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    files.extend(named(folder));
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let is_own =
        |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
    let inner = entries.flatten().filter(|entry| is_folder(entry) && !is_own(entry));
    if depth > 0 && files.len() < FILES {
        inner.for_each(|entry| below(&entry.path(), depth - 1, files));
    }
}

/// The files of a folder that are named as those of subagents. A folder that cannot be listed has
/// none.
fn named(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)).collect();
    names.sort();
    names.truncate(FILES);
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// Whether the first record of a file is one of a subagent of this session.
fn is_of(file: &Path, session: &str) -> bool {
    let Ok(input) = open(file) else { return false };
    let mut line = Vec::new();
    if input.take(FIRST_LINE).read_until(b'\n', &mut line).is_err() {
        return false;
    }
    let Ok((record, _)) = json::read_mended(&line) else { return false };
    record.str_at("sessionId") == Some(session)
        && record.get("isSidechain").and_then(Value::as_bool) == Some(true)
}

/// Opens a file of a subagent; a pipe would be waited for.
pub(super) fn open(file: &Path) -> Result<Box<dyn BufRead + Send>> {
    let cannot = |error| Error::io(error, "cannot read");
    if !fs::metadata(file).map_err(cannot)?.is_file() {
        let error = std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no regular file");
        return Err(cannot(error));
    }
    let input = File::open(file).map_err(cannot)?;
    super::decoded(BufReader::with_capacity(1 << 16, input)).map_err(cannot)
}
