//! What changes a session.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    Error, json,
    log::DiskFiles,
    timeline::{
        Data, Event, PushReport, Timeline, TimelineConfig, TurnRecord,
        session::{Durability, SessionDir},
    },
};

use super::{MendedEscapes, args::Target, close, folder_name, now, open, options, read_json};
use crate::{
    answer::answer,
    failure::{Failure, Outcome, Stop},
    output::{Output, note},
};

pub(super) fn init(
    target: &Target,
    id: Option<&str>,
    state: Option<&Path>,
    config: Option<&Path>,
    out: &mut Output,
) -> Outcome {
    let id = match id {
        Some(id) => id.to_owned(),
        None => folder_name(&target.directory)?,
    };
    let state = match state {
        Some(path) => match Data::from(read_json(path)?) {
            state @ Data::Object(_) => state,
            other => {
                let sentence = format!("expected a state (an object), found {}", kind(&other));
                return Err(Failure::new(sentence).file(path).into());
            }
        },
        None => Timeline::empty_state(),
    };
    let mut options = options();
    if let Some(path) = config {
        options = options.config(configuration(path)?);
    }
    let options = options.named(id);
    let session = SessionDir::create(Arc::new(DiskFiles), &target.directory, options, state)?;
    let id = session.meta().session_id.clone();
    close(session)?;
    if target.json {
        let directory = target.directory.display().to_string();
        return out.answer(&CreatedWorld { session_id: id, directory, at: None });
    }
    Ok(writeln!(out, "session {id:?} in {}", target.directory.display())?)
}

fn configuration(path: &Path) -> Outcome<TimelineConfig> {
    let value = read_json(path)?;
    Ok(TimelineConfig::from_json(value).map_err(|error| error.in_file(path))?)
}

fn kind(state: &Data) -> &'static str {
    match state {
        Data::Null => "null",
        Data::Bool(_) => "a boolean",
        Data::Number(_) => "a number",
        Data::String(_) => "a string",
        Data::Array(_) => "an array",
        Data::Object(_) => "an object",
    }
}

pub(super) fn append(
    target: &Target,
    file: &Path,
    lenient: bool,
    batch: Option<u64>,
    out: &mut Output,
) -> Outcome {
    let mut options = options().lenient(lenient);
    if let Some(turns) = batch {
        options = options.durability(Durability::Batch(turns));
    }
    let mut session = open(&target.directory, options)?;
    let appended = append_lines(&mut session, file, target.json, out);
    // What was added before a line that is refused stays.
    let closed = close(session);
    appended?;
    closed
}

/// The next turn whose durability is to be said.
struct DurabilityProgress {
    next: u64,
}

fn say_durable(
    session: &SessionDir,
    said: &mut DurabilityProgress,
    json: bool,
    out: &mut Output,
) -> Outcome {
    while said.next <= session.durable_turn() {
        if json {
            out.answer(&DurableTurn { turn_id: said.next })?;
        } else {
            writeln!(out, "turn {}", said.next)?;
        }
        said.next += 1;
    }
    Ok(out.flush()?)
}

fn append_lines(session: &mut SessionDir, file: &Path, json: bool, out: &mut Output) -> Outcome {
    let mut lines = Lines::open(file)?;
    let mut said = DurabilityProgress { next: session.timeline().last_turn() + 1 };
    let mut mended = MendedEscapes::default();
    let outcome = loop {
        let Some(line) = lines.next()? else { break Ok(()) };
        match turn(line, &mut mended).and_then(|turn| Ok(session.push(turn)?)) {
            Ok(pushed) => odd(&pushed),
            Err(error) => break Err(lines.refused(error)),
        }
        say_durable(session, &mut said, json, out)?;
    };
    session.sync()?;
    say_durable(session, &mut said, json, out)?;
    outcome
}

/// The lines of a file or of standard input, without those that are blank.
pub(super) struct Lines {
    name: PathBuf,
    from: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    pub(super) fn open(file: &Path) -> Outcome<Self> {
        let is_stdin = file == Path::new("-");
        let name = if is_stdin { PathBuf::from("standard input") } else { file.to_owned() };
        let from: Box<dyn BufRead> = if is_stdin {
            Box::new(io::stdin().lock())
        } else {
            let opened = File::open(file);
            let opened = opened.map_err(|error| Failure::cannot_open(&error).file(&name))?;
            Box::new(BufReader::new(opened))
        };
        Ok(Self { name, from, line: Vec::new(), number: 0 })
    }

    pub(super) fn next(&mut self) -> Outcome<Option<&[u8]>> {
        loop {
            self.line.clear();
            // One more than may be is enough to refuse it; a line end is none of the line.
            let most = json::MAX_BYTES as u64 + 2;
            let read = self.from.by_ref().take(most).read_until(b'\n', &mut self.line);
            if read.map_err(|error| Failure::cannot_open(&error).file(&self.name))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.strip_suffix(b"\n").unwrap_or(&self.line).len() > json::MAX_BYTES {
                let failure = Failure::new("expected a line of at most 256 MiB, found more");
                return Err(failure.file(&self.name).at("line", self.number).into());
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                break;
            }
        }
        Ok(Some(&self.line))
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The error of the line that was read last; an error of what it is added to has its own place.
    pub(super) fn refused(&self, error: Error) -> Stop {
        if error.place().file.is_some() || error.place().session.is_some() {
            return error.into();
        }
        error.in_file(&self.name).on_line(self.number).into()
    }
}

/// A line as a turn: an event by itself is a turn of its actor.
pub(super) fn turn(line: &[u8], mended: &mut MendedEscapes) -> Result<TurnRecord, Error> {
    let (value, count) = json::read_mended(line)?;
    mended.0 += count;
    let has = |key: &str| value.get(key).is_some();
    let is_event =
        value.str_at("type").is_some() && !has("events") && !has("deltas") && !has("actions");
    let mut turn = if is_event {
        let actor = value.str_at("actor").unwrap_or_default().to_owned();
        TurnRecord::new(actor).with_event(Event::from_json(value)?)
    } else {
        TurnRecord::from_json(value)?
    };
    if turn.timestamp.get() == 0 {
        turn.timestamp = now();
    }
    Ok(turn)
}

/// Says what was odd about a turn.
pub(super) fn odd(pushed: &PushReport) {
    pushed.drift.iter().for_each(|drift| note(&drift.to_string()));
    let turn = pushed.record.turn_id;
    for id in &pushed.repeated {
        note(&format!("turn {turn}: the log has the delta {id:?} already"));
    }
    for event_type in &pushed.unmapped {
        note(&format!("turn {turn}: events of type {event_type:?} change nothing"));
    }
    if let Some(verification) = pushed.verification.as_ref().filter(|found| !found.valid) {
        note(&format!("turn {turn}: {}", verification.suggestion.unwrap_or_default()));
    }
}

pub(super) fn undo(target: &Target, to: u64, out: &mut Output) -> Outcome {
    let mut session = open(&target.directory, options())?;
    let pushed = session.undo(to, now())?;
    said(session, &pushed, target.json, &format!("takes back what came after turn {to}"), out)
}

pub(super) fn redo(target: &Target, out: &mut Output) -> Outcome {
    let mut session = open(&target.directory, options())?;
    let pushed = session.redo(now())?;
    said(session, &pushed, target.json, "takes the undo back", out)
}

fn said(
    session: SessionDir,
    pushed: &PushReport,
    json: bool,
    what: &str,
    out: &mut Output,
) -> Outcome {
    close(session)?;
    let (turn, deltas) = (pushed.record.turn_id, pushed.record.deltas.len() as u64);
    if json {
        return out.answer(&ReversedTurn { turn_id: turn, deltas });
    }
    Ok(writeln!(out, "turn {turn} {what}: {}", crate::text::counted(deltas, "delta"))?)
}

pub(super) fn branch(
    target: &Target,
    new: &Path,
    at: u64,
    id: Option<&str>,
    out: &mut Output,
) -> Outcome {
    let id = match id {
        Some(id) => id.to_owned(),
        None => folder_name(new)?,
    };
    // The branch finds it again from wherever it is opened.
    let directory =
        std::path::absolute(&target.directory).unwrap_or_else(|_| target.directory.clone());
    let session = SessionDir::open_read(Arc::new(DiskFiles), directory, options())?;
    let options = options().named(id.clone());
    let branch = session.branch(at, new, &options)?;
    close(branch)?;
    if target.json {
        let directory = new.display().to_string();
        return out.answer(&CreatedWorld { session_id: id, directory, at: Some(at) });
    }
    Ok(writeln!(out, "session {id:?} in {}, with the past up to turn {at}", new.display())?)
}

answer! {
    /// A world that was begun, or branched off.
    pub(crate) struct CreatedWorld {
        /// the id of its session
        session_id: String,
        /// where it is
        directory: String,
        /// of a branch: the last turn that both share
        at?: u64,
    }

    /// A turn that is durable.
    pub(crate) struct DurableTurn {
        /// the number of the turn
        turn_id: u64,
    }

    /// A turn that undoes others, or does them again.
    pub(crate) struct ReversedTurn {
        /// the number of the turn that does it
        turn_id: u64,
        /// how many deltas it has
        deltas: u64,
    }
}
