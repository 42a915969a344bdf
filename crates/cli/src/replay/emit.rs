//! Every request that was replayed, each in a file.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use afterimage::{
    export::Form,
    json::Object,
    log::{self, DiskFiles},
    replay::ReplayedTurn,
    window::Budget,
};

use crate::{
    failure::{Failure, Outcome, Stop},
    json::object,
    lens::Lens,
};

/// The list of the files, in their directory.
const LIST: &str = "requests.jsonl";
/// The version of the list: see `docs/FORMAT.md`.
const VERSION: u64 = 1;
/// How much of a session's name its folder has, in characters.
const LONGEST: usize = 60;

/// Writes requests into a directory.
pub(super) struct Emitter {
    directory: PathBuf,
    list: BufWriter<File>,
    sessions: u64,
}

/// Which session a request is of, and by which policy.
pub(super) struct Place<'p> {
    pub(super) file: &'p str,
    pub(super) session: &'p str,
    pub(super) number: u64,
    pub(super) policy: &'p str,
}

impl Emitter {
    /// Begins in a directory that is empty or not there yet.
    pub(super) fn create(
        directory: &Path,
        form: Form,
        budget: &Budget,
        lens: &Lens,
    ) -> Outcome<Self> {
        let refused = |error: &io::Error| refused(directory, error);
        log::create_dirs(&DiskFiles, directory)?;
        let mut there = fs::read_dir(directory).map_err(|error| refused(&error))?;
        if there.next().is_some() {
            let failure = Failure::new("the directory is not empty").file(directory);
            return Err(failure.hint("name one that is empty, or not there yet").into());
        }
        let list = new_file(&directory.join(LIST))?;
        let mut emitter =
            Self { directory: directory.to_owned(), list: BufWriter::new(list), sessions: 0 };
        let mut head = object! {
            "format": "afterimage-requests",
            "version": VERSION,
            "form": form.as_str(),
            "budget": budget.room(),
        };
        lens.put(&mut head);
        emitter.line(head)?;
        Ok(emitter)
    }

    /// The number of a session that begins.
    pub(super) fn next_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    /// Writes the request of a turn; of one that could not be made, that it was not.
    pub(super) fn write(
        &mut self,
        place: &Place<'_>,
        turn: u64,
        replayed: &ReplayedTurn<'_>,
    ) -> Outcome {
        let Place { file, session, number, policy } = *place;
        let mut line = object! { "policy": policy, "file": file, "session": session, "turn": turn };
        if let Some(request) = &replayed.exported {
            let folder = format!("{number:04}-{}", plain(session));
            let path = format!("{}/{folder}/{turn:05}.json", plain(policy));
            let whole = self.directory.join(&path);
            if let Some(parent) = whole.parent() {
                log::create_dirs(&DiskFiles, parent)?;
            }
            let mut text = request.value().to_string();
            text.push('\n');
            new_file(&whole)?
                .write_all(text.as_bytes())
                .map_err(|error| refused(&whole, &error))?;
            let tokens = replayed.exported_tokens;
            line.extend(object! { "path": path, "tokens": tokens });
        } else {
            line.extend(object! { "path": afterimage::json::Value::Null });
        }
        self.line(line)
    }

    /// Writes what is left of the list.
    pub(super) fn finish(mut self) -> Outcome {
        let path = self.directory.join(LIST);
        self.list.flush().map_err(|error| refused(&path, &error))
    }

    fn line(&mut self, line: Object) -> Outcome {
        let path = self.directory.join(LIST);
        let line = afterimage::json::Value::from(line);
        writeln!(self.list, "{line}").map_err(|error| refused(&path, &error))
    }
}

fn new_file(path: &Path) -> Outcome<File> {
    let file = log::private_options().write(true).create_new(true).open(path);
    file.map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &io::Error) -> Stop {
    Failure::new(format!("cannot write: {error}")).file(path).into()
}

/// A name of letters, digits, `_`, `.` and `-`.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    plain.take(LONGEST).collect()
}
