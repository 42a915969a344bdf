//! Directories that other programs wrote: those of the document's example code, and recordings of a
//! game that keeps its deltas in files of their own.

use std::path::Path;

use super::{
    blocks::blocks,
    layout::{META, SNAPSHOTS, ends_in, snapshot_turn},
    sealed,
};
use crate::{
    Error, ErrorKind, Result,
    json::{self, ObjectExt, Value},
    log::{Files, read_file},
    timeline::{Data, Delta, Drift, StateSnapshot, Targets, Timeline, TimelineConfig, TurnRecord},
};

/// What another program wrote, as a timeline in memory.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The turns, numbered anew from 1 in the order of the files: other programs repeat numbers.
    /// One that had another number says it in `sourceTurnId`.
    pub timeline: Timeline,
    /// Each delta that does not fit what came before it.
    pub breaks: Vec<Drift>,
    /// What is odd about the files.
    pub notes: Vec<String>,
}

/// Reads a directory that another program wrote, leniently: what does not fit is applied as well as
/// that can be done, and said.
///
/// It begins with the earliest snapshot; without one with the state that the program kept last,
/// with every delta taken back.
///
/// # Errors
/// [`ErrorKind::UnknownFormat`] where there are neither turns nor deltas, [`ErrorKind::Io`], and what
/// reading a line gives, with file and line.
pub fn read_recorded(files: &dyn Files, directory: impl AsRef<Path>) -> Result<Recorded> {
    let directory = directory.as_ref();
    let turns = turns(files, directory)?;
    let loose = deltas(files, directory)?;
    if turns.is_empty() && loose.is_empty() {
        let message = "neither a session nor turns of another program are there";
        return Err(Error::new(ErrorKind::UnknownFormat, message).in_file(directory));
    }
    let mut notes = Vec::new();
    let turns = assigned(turns, loose);
    let initial = initial(files, directory, &turns, &mut notes)?;
    let meta = sealed::read_if_there(files, &directory.join(META))?;
    let meta = meta.and_then(|bytes| json::read(&bytes).ok());
    let folder = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let session_id = meta.as_ref().and_then(|meta| meta.str_at("sessionId").or(meta.str_at("id")));
    let session_id = session_id.map(str::to_owned).or(folder).filter(|id| !id.is_empty());
    let config =
        TimelineConfig { lenient: true, verify_every_n_turns: 0, ..TimelineConfig::default() };
    let mut timeline =
        Timeline::builder(session_id.unwrap_or_else(|| "session".to_owned()), initial)
            .config(config)
            .build()?;
    let mut breaks = Vec::new();
    for (number, mut turn) in (1..).zip(turns) {
        if turn.turn_id != number {
            turn.extra.put("sourceTurnId", turn.turn_id);
            turn.turn_id = number;
        }
        breaks.extend(timeline.push(turn)?.drift);
    }
    Ok(Recorded { timeline, breaks, notes })
}

/// The records of a file of JSON lines.
fn lines(files: &dyn Files, path: &Path) -> Result<Vec<Value>> {
    let bytes = read_file(files, path)?;
    let mut values = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        values.push(json::read(line).map_err(|error| error.in_file(path).at_line(number))?);
    }
    Ok(values)
}

fn turns(files: &dyn Files, directory: &Path) -> Result<Vec<TurnRecord>> {
    let mut turns = Vec::new();
    for block in blocks(files, directory)?.iter().filter(|block| !block.is_packed) {
        for (number, value) in (1..).zip(lines(files, &block.path)?) {
            let turn = TurnRecord::from_json(value);
            let mut turn = turn.map_err(|error| error.in_file(&block.path).at_line(number))?;
            // The deltas are those that are written, however few.
            turn.given = true;
            turns.push(turn);
        }
    }
    Ok(turns)
}

/// The deltas of files of their own.
fn deltas(files: &dyn Files, directory: &Path) -> Result<Vec<Delta>> {
    let folder = directory.join("deltas");
    let mut deltas = Vec::new();
    for name in sealed::names(files, &folder)?.iter().filter(|name| ends_in(name, "jsonl")) {
        let path = folder.join(name);
        for (number, value) in (1..).zip(lines(files, &path)?) {
            let delta = Delta::from_json(value);
            deltas.push(delta.map_err(|error| error.in_file(&path).at_line(number))?);
        }
    }
    Ok(deltas)
}

/// The turns with the deltas that belong to them. Where a program counts its turns from 1 again,
/// the numbers of the deltas in a turn begin anew.
fn assigned(mut turns: Vec<TurnRecord>, deltas: Vec<Delta>) -> Vec<TurnRecord> {
    let mut rest = deltas.into_iter().peekable();
    for turn in &mut turns {
        let mut last = 0;
        while let Some(delta) =
            rest.next_if(|delta| delta.turn_id == turn.turn_id && delta.sequence > last)
        {
            last = delta.sequence;
            turn.deltas.push(delta);
        }
    }
    let left: Vec<Delta> = rest.collect();
    if !left.is_empty() {
        turns.push(TurnRecord::new("").with_deltas(left));
    }
    turns
}

/// The state that the turns begin with.
fn initial(
    files: &dyn Files,
    directory: &Path,
    turns: &[TurnRecord],
    notes: &mut Vec<String>,
) -> Result<Data> {
    let folder = directory.join(SNAPSHOTS);
    let names = sealed::names(files, &folder)?;
    let first = names.iter().filter_map(|name| Some((snapshot_turn(name)?, name))).min();
    if let Some((turn, name)) = first.filter(|(_, name)| ends_in(name, "json")) {
        let path = folder.join(name);
        let snapshot = json::read(&read_file(files, &path)?).and_then(StateSnapshot::from_json);
        if turn > 0 {
            notes.push(format!("the earliest snapshot is of turn {turn}"));
        }
        return Ok(snapshot.map_err(|error| error.in_file(path))?.state);
    }
    let mut state = Timeline::empty_state();
    let Data::Object(members) = &mut state else { return Ok(state) };
    for name in sealed::names(files, directory)? {
        if let Some(member) = name.strip_suffix(".state.json") {
            let path = directory.join(&name);
            let value =
                json::read(&read_file(files, &path)?).map_err(|error| error.in_file(path))?;
            members.insert(member, value);
        }
    }
    notes.push(
        "there is no snapshot: the beginning is the last state, with every delta taken back"
            .to_owned(),
    );
    let targets = Targets::default();
    for delta in turns.iter().rev().flat_map(|turn| turn.deltas.iter().rev()) {
        take_back(&mut state, delta, &targets);
    }
    Ok(state)
}

/// Takes a delta back as another program means it: `null` before is nothing before, and an append
/// names the one item.
fn take_back(state: &mut Data, delta: &Delta, targets: &Targets) {
    let applier = crate::timeline::Applier::lenient(targets);
    let was_nothing = delta.previous_value.as_ref().is_none_or(Data::is_null);
    let is_item = !matches!(delta.new_value, Some(Data::Array(_)));
    let back = match delta.operation {
        crate::timeline::DeltaOperation::Append if was_nothing && is_item => Delta {
            operation: crate::timeline::DeltaOperation::Remove,
            previous_value: delta.new_value.clone(),
            new_value: None,
            ..delta.clone()
        },
        _ => match delta.reversed() {
            Ok(back) => {
                Delta { new_value: back.new_value.filter(|value| !value.is_null()), ..back }
            }
            Err(_) => return,
        },
    };
    // What cannot be taken back stays.
    let _ = applier.apply(state, &back);
}
