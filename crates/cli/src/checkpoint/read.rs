//! Reading documents.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use afterimage::checkpoint::{
    self, Checkpoint, CheckpointDelta, Document, MAX_BYTES, Problem, ProblemKind,
};

use super::diagnostic;
use crate::{
    failure::{Failure, Outcome},
    input::{is_stdin, regular},
};

/// Reads a Markdown file, or standard input.
pub(super) fn document(path: &Path) -> Outcome<Document> {
    let bytes = bytes(path)?;
    Ok(Document::read(&bytes).map_err(|error| error.in_file(path))?)
}

fn bytes(path: &Path) -> Outcome<Vec<u8>> {
    if !is_stdin(path) {
        return regular(path, MAX_BYTES as u64);
    }
    let mut bytes = Vec::new();
    // One more than may be is enough to refuse it.
    let read = io::stdin().lock().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::cannot_open(&error).file(path))?;
    Ok(bytes)
}

/// Refuses to read standard input for more than one document: it is read to its end by the first.
pub(super) fn one_is_standard_input<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Outcome {
    if paths.into_iter().filter(|path| is_stdin(path)).count() > 1 {
        return Err(Failure::new("only one of the files can be `-`, standard input").into());
    }
    Ok(())
}

/// Reads a checkpoint. Without an id of its own it has that of its file.
pub(super) fn checkpoint(path: &Path) -> Outcome<Checkpoint> {
    Ok(Checkpoint::from(document(path)?).named(stem(path)))
}

/// A delta with the file that it was read from.
pub(super) struct DeltaFile {
    path: PathBuf,
    pub(super) delta: CheckpointDelta,
}

pub(super) fn delta(path: &Path) -> Outcome<DeltaFile> {
    let text = document(path)?.text().to_owned();
    let delta = CheckpointDelta::parse(text).map_err(|error| error.in_file(path))?;
    Ok(DeltaFile { path: path.to_owned(), delta })
}

impl DeltaFile {
    /// Reports why the delta cannot be applied, with its line.
    pub(super) fn refuse(&self, error: checkpoint::Error) -> crate::failure::Stop {
        diagnostic::refusal(&self.path, self.delta.document(), error)
    }

    /// Reports every reason why the delta cannot be applied, each with its line.
    pub(super) fn refuse_all(&self, errors: &[checkpoint::Error]) -> crate::failure::Stop {
        self.report(errors);
        crate::failure::Stop::Reported
    }

    /// Reports what of the delta is refused, each with its line.
    pub(super) fn report(&self, errors: &[checkpoint::Error]) {
        diagnostic::refusals(&self.path, self.delta.document(), errors);
    }
}

/// The documents of a folder, and what cannot be one.
pub(super) struct Folder {
    /// The Markdown files with their names, in the order of the names.
    pub(super) documents: Vec<(String, Document)>,
    /// The special files and the links to nothing.
    pub(super) special: Vec<Problem>,
}

pub(super) fn folder(path: &Path) -> Outcome<Folder> {
    let entries = fs::read_dir(path).map_err(|error| Failure::cannot_open(&error).file(path))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let file = entry.map_err(|error| Failure::cannot_open(&error).file(path))?.path();
        if !file.is_dir() && file.extension().is_some_and(|extension| extension == "md") {
            files.push(file);
        }
    }
    files.sort();
    let (files, special): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| file.is_file());
    let special = special.iter().map(|file| Problem {
        kind: ProblemKind::Unknown,
        file: Some(name(file)),
        message: "expected a regular file, found a special file or a link to nothing".to_owned(),
    });
    let special: Vec<Problem> = special.collect();
    if files.is_empty() {
        let failure = Failure::new("the folder has no Markdown files").file(path);
        return Err(failure.hint("a checkpoint or a delta is a file that ends in .md").into());
    }
    let read = |file: PathBuf| document(&file).map(|document| (name(&file), document));
    let documents = files.into_iter().map(read).collect::<Outcome<_>>()?;
    Ok(Folder { documents, special })
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a file is called without its ending.
pub(super) fn stem(path: &Path) -> String {
    if is_stdin(path) {
        return "stdin".to_owned();
    }
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
