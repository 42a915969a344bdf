//! `afterimage world`: world state as deltas and snapshots, in a directory.

pub(crate) mod args;
pub(crate) mod change;
mod journaled;
pub(crate) mod keep;
mod line_ids;
pub(crate) mod show;

use std::{path::Path, sync::Arc, time::SystemTime};

use afterimage::{
    id::Millis,
    json::{self, Path as JsonPath},
    log::{DiskFiles, Holder},
    timeline::{
        Difference, Drift, ErrorKind, Timeline,
        session::{ForeignTimeline, SessionDir, SessionOptions, read_recorded},
    },
};

use crate::{
    failure::{Failure, Outcome},
    input,
    output::{Output, note},
    text::counted,
};
use args::Command;
use journaled::Journaled;

const DAMAGED: &str =
    "`world verify DIR` names all that is damaged, `world repair DIR` brings back what is intact";

pub(crate) fn run(command: &Command, color: crate::args::Color) -> Outcome {
    let mut out = Output::new(color);
    answered(command, &mut out).map_err(|stop| stop.advised(DAMAGED))?;
    Ok(std::io::Write::flush(&mut out)?)
}

fn answered(command: &Command, out: &mut Output) -> Outcome {
    match command {
        Command::Init { target, id, state, config } => {
            change::init(target, id.as_deref(), state.as_deref(), config.as_deref(), out)?;
        }
        Command::Append { target, place, file, lenient, id, batch } => {
            out.outlive_reader();
            match Journaled::create(target, place)? {
                Some(journal) => journal.append(target, file, *lenient, id.as_deref(), out)?,
                None => change::append(target, file, *lenient, *batch, out)?,
            }
        }
        Command::Undo { target, to } => change::undo(target, *to, out)?,
        Command::Redo { target } => change::redo(target, out)?,
        Command::Branch { target, new, at, id } => {
            change::branch(target, new, *at, id.as_deref(), out)?;
        }
        Command::State { target, place, turn, path } => {
            let path = path.as_deref();
            match Journaled::open(target, place)? {
                Some(journal) => journal.state(*turn, path, out)?,
                None => show::state(target, *turn, path, out)?,
            }
        }
        Command::Log { target, place, from, to } => {
            let turns = *from..=to.unwrap_or(u64::MAX);
            if let Some(mut journal) = Journaled::open(target, place)? {
                show::log(target, journal.log()?.into_iter().map(Ok), &turns, out)?;
            } else {
                let reading = Reading::open(&target.directory)?;
                let timeline = reading.timeline();
                let last = turns.end().min(&timeline.last_turn()).to_owned();
                let there = (*from).max(1)..=last;
                let there = there.map(|turn| timeline.turn(turn));
                show::log(target, there, &turns, out)?;
            }
        }
        Command::Diff { target, from, to } => show::diff(target, *from, *to, out)?,
        Command::Blame { target, path, turn } => show::blame(target, path, *turn, out)?,
        Command::Snapshot { target, reason } => keep::snapshot(target, *reason, out)?,
        Command::Verify { target, place, recover } => {
            let found = match Journaled::open_torn(target, place)? {
                Some(journal) => journal.verify()?,
                None => keep::verify(target, *recover)?,
            };
            keep::verdict(target, &found, out)?;
        }
        Command::Repair { target } => keep::repair(target, out)?,
        Command::Prune { target, dry_run } => keep::prune(target, *dry_run, out)?,
        Command::Stats { target } => keep::stats(target, out)?,
    }
    Ok(())
}

fn now() -> Millis {
    SystemTime::now().into()
}

fn options() -> SessionOptions {
    SessionOptions::default().at(now()).holder(Holder::new("afterimage world"))
}

/// A session that is read: one of this program, or what another one wrote.
enum Reading {
    Own(Box<SessionDir>),
    Recorded(Box<ForeignTimeline>),
}

impl Reading {
    fn open(directory: &Path) -> Outcome<Self> {
        let opened = SessionDir::open_read(Arc::new(DiskFiles), directory, options());
        let reading = match opened {
            Ok(session) => {
                session.notes().iter().for_each(|text| note(text));
                Self::Own(Box::new(session))
            }
            Err(error) if error.kind() == ErrorKind::UnknownFormat => {
                let recorded = read_recorded(&DiskFiles, directory)?;
                recorded.notes.iter().for_each(|text| note(text));
                if !recorded.breaks.is_empty() {
                    note(&format!(
                        "{} deltas do not fit what came before them; `verify` names them",
                        recorded.breaks.len()
                    ));
                }
                if !recorded.differences.is_empty() {
                    note(&format!(
                        "states that were kept differ from what the turns come to in {}; `verify` names them",
                        counted(recorded.differences.len() as u64, "place")
                    ));
                }
                Self::Recorded(Box::new(recorded))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(reading)
    }

    fn timeline(&self) -> &Timeline {
        match self {
            Self::Own(session) => session.timeline(),
            Self::Recorded(recorded) => &recorded.timeline,
        }
    }

    fn breaks(&self) -> &[Drift] {
        match self {
            Self::Own(_) => &[],
            Self::Recorded(recorded) => &recorded.breaks,
        }
    }

    fn differences(&self) -> &[(u64, Difference)] {
        match self {
            Self::Own(_) => &[],
            Self::Recorded(recorded) => &recorded.differences,
        }
    }
}

/// A session that is written to.
fn open(directory: &Path, options: SessionOptions) -> Outcome<SessionDir> {
    let session = SessionDir::open(Arc::new(DiskFiles), directory, options)?;
    session.notes().iter().for_each(|text| note(text));
    Ok(session)
}

/// Lets a session go, and says what became odd meanwhile.
fn close(session: SessionDir) -> Outcome {
    let known = session.notes().len();
    session.close()?.iter().skip(known).for_each(|text| note(text));
    Ok(())
}

/// A JSON pointer; its first slash may be left out.
fn pointer(text: &str) -> Outcome<JsonPath> {
    let text =
        if text.is_empty() || text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
    Ok(JsonPath::from_pointer(&text)?)
}

/// The JSON of a file or of standard input.
fn read_json(path: &Path) -> Outcome<json::Value> {
    let bytes = input::whole(path)?;
    let (value, mended) =
        json::read_mended(&bytes).map_err(|error| error.in_file(input::name(path)))?;
    drop(MendedEscapes(mended));
    Ok(value)
}

/// How many escapes were read as U+FFFD, which is said when this goes.
#[derive(Default)]
struct MendedEscapes(u64);

impl Drop for MendedEscapes {
    fn drop(&mut self) {
        if self.0 > 0 {
            note(&json::mended_note(self.0));
        }
    }
}

/// The name of a directory, for a session without an id.
fn folder_name(directory: &Path) -> Outcome<String> {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| {
        Failure::new("the directory has no name: `--id` gives the session one").into()
    })
}
