//! Directories that other programs wrote: those of the document's example code, and recordings of a
//! game that keeps its deltas in files of their own.

use std::path::Path;

use super::{
    blocks::blocks,
    kept::RecordedStates,
    layout::{META, MOST_BYTES, ends_in},
    sealed,
};
use crate::{
    Data, Delta, Difference, Drift, Error, ErrorKind, Result, Timeline, TimelineConfig, TurnRecord,
    apply::shown,
    json::{self, ObjectExt, Value},
    log::{Files, borrowed_within, read_file},
};

/// What another program wrote, as a timeline in memory.
#[derive(Clone, Debug)]
pub struct ForeignTimeline {
    /// The turns, numbered anew from 1 in the order of the files: other programs repeat numbers.
    /// One that had another number says it in `sourceTurnId`.
    pub timeline: Timeline,
    /// Each delta that does not fit what came before it.
    pub breaks: Vec<Drift>,
    /// Where a state that the program kept, in a snapshot or as its last one, is not what the turns
    /// come to, with the turn.
    pub differences: Vec<(u64, Difference)>,
    /// What is odd about the files.
    pub notes: Vec<String>,
}

/// Reads a directory that another program wrote, leniently: what does not fit is applied as well as
/// that can be done, and said.
///
/// It begins with the earliest snapshot, from which the turns up to its own are taken back; without
/// one with the state that the program kept last, with every delta taken back. The other states that
/// the program kept are compared. Reads the whole directory, and applies every turn.
///
/// # Errors
/// [`ErrorKind::UnknownFormat`] where there are neither turns nor deltas, [`ErrorKind::Io`], and what
/// reading a line gives, with file and line.
pub fn read_recorded(files: &dyn Files, directory: impl AsRef<Path>) -> Result<ForeignTimeline> {
    let directory = directory.as_ref();
    let files = &borrowed_within(files, directory) as &dyn Files;
    let mut mended = 0;
    let turns = turns(files, directory, &mut mended)?;
    let loose = deltas(files, directory, &mut mended)?;
    if turns.is_empty() && loose.is_empty() {
        let message = "neither a session nor turns of another program are there";
        return Err(Error::new(ErrorKind::UnknownFormat, message).in_file(directory));
    }
    let mut notes = Vec::new();
    let mut breaks = Vec::new();
    let turns = assigned(turns, loose, &mut notes, &mut breaks);
    let kept = RecordedStates::read(files, directory, &mut notes, &mut mended)?;
    if mended > 0 {
        notes.push(json::mended_note(mended));
    }
    let initial = kept.beginning(&turns, &mut notes);
    let ids: Vec<u64> = turns.iter().map(|turn| turn.turn_id).collect();
    let meta = sealed::read_if_there(files, &directory.join(META))?;
    let meta = meta.and_then(|bytes| json::read_mended(&bytes).ok()).map(|(meta, _)| meta);
    let folder = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    let session_id = meta.as_ref().and_then(|meta| meta.str_at("sessionId").or(meta.str_at("id")));
    let session_id = session_id.map(str::to_owned).or(folder).filter(|id| !id.is_empty());
    let config =
        TimelineConfig { lenient: true, verify_every_n_turns: 0, ..TimelineConfig::default() };
    let mut timeline =
        Timeline::builder(session_id.unwrap_or_else(|| "session".to_owned()), initial)
            .config(config)
            .build()?;
    for (number, mut turn) in (1..).zip(turns) {
        if turn.turn_id != number {
            turn.extra.put("sourceTurnId", turn.turn_id);
            turn.turn_id = number;
        }
        breaks.extend(timeline.push(turn)?.drift);
    }
    let differences = kept.compare(&timeline, &ids, &mut notes)?;
    Ok(ForeignTimeline { timeline, breaks, differences, notes })
}

/// The records of a file of JSON lines; `mended` counts the escapes that are read as U+FFFD.
fn lines(files: &dyn Files, path: &Path, mended: &mut u64) -> Result<Vec<Value>> {
    let bytes = read_file(files, path, MOST_BYTES)?;
    let mut values = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let read = json::read_mended(line);
        let (value, count) = read.map_err(|error| error.in_file(path).on_line(number))?;
        *mended += count;
        values.push(value);
    }
    Ok(values)
}

fn turns(files: &dyn Files, directory: &Path, mended: &mut u64) -> Result<Vec<TurnRecord>> {
    let mut turns = Vec::new();
    for block in blocks(files, directory)?.iter().filter(|block| !block.is_packed) {
        for (number, value) in (1..).zip(lines(files, &block.path, mended)?) {
            let turn = TurnRecord::from_json(value);
            let mut turn = turn.map_err(|error| error.in_file(&block.path).on_line(number))?;
            // The deltas are those that are written, however few.
            turn.given = true;
            turns.push(turn);
        }
    }
    Ok(turns)
}

/// The deltas of files of their own.
fn deltas(files: &dyn Files, directory: &Path, mended: &mut u64) -> Result<Vec<Delta>> {
    let folder = directory.join("deltas");
    let mut deltas = Vec::new();
    for name in sealed::names(files, &folder)?.iter().filter(|name| ends_in(name, "jsonl")) {
        let path = folder.join(name);
        for (number, value) in (1..).zip(lines(files, &path, mended)?) {
            let delta = Delta::from_json(value);
            deltas.push(delta.map_err(|error| error.in_file(&path).on_line(number))?);
        }
    }
    Ok(deltas)
}

/// The turns with the deltas that belong to them. Where a program counts its turns from 1 again,
/// the numbers of the deltas in a turn begin anew. Deltas of no turn that is there have one of
/// their own, where the files have them. A delta that the turn's line has too is one delta: where
/// the two differ, that of the line counts, and `breaks` says so.
fn assigned(
    turns: Vec<TurnRecord>,
    deltas: Vec<Delta>,
    notes: &mut Vec<String>,
    breaks: &mut Vec<Drift>,
) -> Vec<TurnRecord> {
    let mut rest = deltas.into_iter().peekable();
    let (mut all, mut strays) = (Vec::with_capacity(turns.len()), 0);
    for mut turn in turns {
        let mut stray = Vec::new();
        while let Some(delta) = rest.next_if(|delta| delta.turn_id < turn.turn_id) {
            stray.push(delta);
        }
        let (mut last, in_line) = (0, turn.deltas.len());
        while let Some(delta) =
            rest.next_if(|delta| delta.turn_id == turn.turn_id && delta.sequence > last)
        {
            last = delta.sequence;
            let is_it =
                |known: &&Delta| !delta.delta_id.is_empty() && known.delta_id == delta.delta_id;
            match turn.deltas.iter().take(in_line).find(is_it) {
                Some(known) => breaks.extend(contradiction(known, &delta)),
                None => turn.deltas.push(delta),
            }
        }
        strays += stray.len();
        all.extend(of_their_own(stray));
        all.push(turn);
    }
    let left: Vec<Delta> = rest.collect();
    strays += left.len();
    all.extend(of_their_own(left));
    if strays > 0 {
        notes.push(format!(
            "{strays} deltas belong to no turn that is there, and stand in turns of their own"
        ));
    }
    all
}

/// How a delta of a file of its own differs from the one with its id in the turn's line. A line need
/// not say which turn a delta belongs to, nor where it stands in it.
fn contradiction(line: &Delta, file: &Delta) -> Option<Drift> {
    let Delta { turn_id, sequence, .. } = *file;
    if (Delta { turn_id, sequence, ..line.clone() }) == *file {
        return None;
    }
    Some(Drift {
        turn_id,
        delta_id: file.delta_id.clone(),
        path: file.path.to_string(),
        expected: shown(Some(&Data::from(line.to_json()))),
        found: shown(Some(&Data::from(file.to_json()))),
        done: "the delta in the line of the turn is applied, and the one in `deltas/` is not"
            .to_owned(),
    })
}

fn of_their_own(deltas: Vec<Delta>) -> Option<TurnRecord> {
    let turn_id = deltas.first()?.turn_id;
    Some(TurnRecord { turn_id, ..TurnRecord::new("").with_deltas(deltas) })
}
