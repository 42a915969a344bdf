//! Opening a directory.

use std::{path::Path, sync::Arc};

use super::{
    blocks::{self, Turns},
    dir::{SessionDir, pack_block},
    end::SessionMark,
    family::{self, MOST_GENERATIONS},
    layout::{ACKNOWLEDGED, META, MOST_BYTES},
    meta::SessionMeta,
    options::SessionOptions,
    sealed,
    shelf::Shelf,
};
use crate::{
    Error, ErrorKind, Mappers, Result, SnapshotSource, StateSnapshot, Timeline, TimelineConfig,
    log::{DirLock, Files, HighWater, LineWriter, within},
    slot::Slot,
};

/// What the directory says of itself.
pub(super) fn meta(
    files: &dyn Files,
    directory: &Path,
    options: &SessionOptions,
) -> Result<SessionMeta> {
    let Some(meta) = SessionMeta::read(files, directory)? else {
        let message =
            "no session is there, or one of another program, which can be read and not changed";
        return Err(Error::new(ErrorKind::UnknownFormat, message).in_file(directory.join(META)));
    };
    match &options.session_id {
        Some(wanted) if *wanted != meta.session_id => {
            let message = format!("expected the session {wanted:?}, found {:?}", meta.session_id);
            Err(Error::new(ErrorKind::Conflict, message).in_file(directory.join(META)))
        }
        _ => Ok(meta),
    }
}

/// The turns that a branch shares with the session that it came from, and where their snapshots are.
#[derive(Default)]
pub(super) struct PastStates {
    pub(super) slots: Vec<Slot>,
    pub(super) shelf: Option<(Arc<Shelf>, u64)>,
    /// How many sessions came before the branch, one out of the other.
    pub(super) generations: usize,
}

/// Reads the past of a branch.
pub(super) fn past(
    files: &Arc<dyn Files>,
    directory: &Path,
    meta: &SessionMeta,
    depth: usize,
) -> Result<PastStates> {
    let Some(parent) = &meta.parent else { return Ok(PastStates::default()) };
    if depth >= MOST_GENERATIONS {
        let message =
            format!("more than {MOST_GENERATIONS} branches of branches, or a circle of them");
        return Err(Error::new(ErrorKind::Limit, message).in_file(directory.join(META)));
    }
    for place in family::places(directory, parent) {
        let files = &within(Arc::clone(files), &place);
        match SessionMeta::read(&**files, &place)? {
            Some(meta) if meta.session_id == parent.session_id => {
                let before = past(files, &place, &meta, depth + 1)?;
                let first = before.slots.len() as u64 + 1;
                let turns = blocks::read(&**files, &place, first)?;
                if let Some(problem) = turns.problems.into_iter().next() {
                    return Err(problem);
                }
                let mut slots = before.slots;
                slots.extend(turns.slots);
                if (slots.len() as u64) < parent.turn {
                    let message = format!(
                        "the branch shares {} turns, and {} are left",
                        parent.turn,
                        slots.len()
                    );
                    return Err(Error::new(ErrorKind::Damaged, message).in_file(place));
                }
                let shelf =
                    Shelf::new(Arc::clone(files), &place, (first, turns.crcs), before.shelf)?;
                slots.truncate(usize::try_from(parent.turn).unwrap_or(usize::MAX));
                let shelf = Some((Arc::new(shelf), parent.turn));
                return Ok(PastStates { slots, shelf, generations: before.generations + 1 });
            }
            _ => {}
        }
    }
    let message =
        format!("the session {:?}, whose past this one shares, is not there", parent.session_id);
    Err(Error::new(ErrorKind::Base, message).in_file(directory.join(&parent.directory)))
}

#[allow(clippy::needless_pass_by_value, reason = "options are made for one call")]
pub(super) fn open(
    files: Arc<dyn Files>,
    directory: &Path,
    options: SessionOptions,
    meta: SessionMeta,
    lock: Option<DirLock>,
) -> Result<SessionDir> {
    let files = within(files, directory);
    let past = past(&files, directory, &meta, 0)?;
    let generations = past.generations;
    let first = past.slots.len() as u64 + 1;
    let remembered = SessionMark::read(&*files, directory);
    let mut turns = blocks::read(&*files, directory, first)?;
    if !turns.problems.is_empty() {
        return Err(turns.problems.swap_remove(0));
    }
    let mut notes = torn_notes(&turns);
    let mut mark = None;
    match remembered.lost_end(directory, first, &turns) {
        // What would be appended would take the place of what is missing.
        Some(lost) if lock.is_some() => return Err(lost.to_error().into()),
        Some(lost) => notes.push(lost.to_string()),
        None if lock.is_some() => {
            mark = HighWater::open(&*files, directory.join(ACKNOWLEDGED))?.map(Arc::new);
        }
        None => {}
    }
    let last_block = turns.blocks.last().cloned();
    let mut writer = None;
    if lock.is_some() {
        turns.spare.iter().try_for_each(|spare| sealed::remove(&*files, spare))?;
        if let Some(block) = last_block.filter(|block| !block.is_packed) {
            let count = turns.slots.len() as u64 + first - block.first;
            let whole = block
                .last
                .map_or(u64::MAX, |last| last.saturating_add(1).saturating_sub(block.first));
            let (opened, _, copy) = LineWriter::open(Arc::clone(&files), &block.path, MOST_BYTES)?;
            if let Some(copy) = copy {
                notes.push(format!("its bytes are kept in {}", copy.display()));
            }
            if count < whole {
                writer = Some(opened);
            } else if let Err(error) = pack_block(&*files, &block.path) {
                notes.push(format!("{} stays as it is: {error}", block.path.display()));
            }
        }
    }
    let shelf = Shelf::new(Arc::clone(&files), directory, (first, turns.crcs), past.shelf)?;
    let shelf = Arc::new(shelf);
    let slots: Vec<Slot> = past.slots.into_iter().chain(turns.slots).collect();
    let last = slots.len() as u64;
    for turn in shelf.entries().range(last + 1..).map(|(turn, _)| *turn) {
        notes.push(format!(
            "the snapshot of turn {turn} is ahead of the log, which ends with turn {last}"
        ));
        if lock.is_some() {
            shelf.set_aside(turn)?;
        }
    }
    let config = options.config.clone().unwrap_or_else(|| meta.config.clone());
    let config = TimelineConfig { lenient: config.lenient || options.lenient, ..config };
    let durability = options.durability_by(&config);
    let (timeline, passed_over) = timeline(&meta, config, options.mappers.clone(), slots, &shelf)?;
    notes.extend(passed_over);
    let mut session = SessionDir {
        files,
        directory: directory.to_owned(),
        lock,
        meta,
        timeline,
        shelf,
        writer,
        mark,
        durability,
        durable: last,
        tally: None,
        notes,
        first,
        generations,
    };
    session.check_derived();
    Ok(session)
}

pub(super) fn torn_notes(turns: &Turns) -> Vec<String> {
    torn_tail(turns).into_iter().chain(end_notes(turns)).collect()
}

/// What follows the last whole turn, and what it is.
pub(super) fn torn_tail(turns: &Turns) -> Option<String> {
    turns.torn.as_ref().map(|(file, torn)| torn.tail_of(file))
}

/// What else is odd about how the turns end, and does no harm.
pub(super) fn end_notes(turns: &Turns) -> Vec<String> {
    let unended = turns.unended.iter();
    let unended =
        unended.map(|file| format!("the last line of {} lacks its line end", file.display()));
    let copies = turns.copies.iter();
    let copies = copies.map(|copy| format!("a torn tail was cut before; its bytes are in {copy}"));
    unended.chain(copies).collect()
}

/// The timeline of some turns, with the state after the last of them; and what is to be said of
/// snapshots that the turns do not go on from.
pub(super) fn timeline(
    meta: &SessionMeta,
    config: TimelineConfig,
    mappers: Mappers,
    slots: Vec<Slot>,
    shelf: &Arc<Shelf>,
) -> Result<(Timeline, Vec<String>)> {
    let mut notes = Vec::new();
    let mut base = nearest(shelf, slots.len() as u64)?;
    let mut timeline = Timeline::builder(meta.session_id.as_str(), base.state.clone())
        .config(config)
        .targets(meta.targets.clone())
        .mappers(mappers)
        .build()?;
    timeline.resume(slots, Arc::clone(shelf) as Arc<dyn SnapshotSource>);
    loop {
        let turn = base.turn_id;
        match timeline.resume_from(base) {
            // The log is the authority: an earlier snapshot may be right.
            Err(error) if error.kind() == ErrorKind::Drift && turn > 0 => {
                notes.push(format!("the snapshot of turn {turn} was passed over: {error}"));
                shelf.pass_over(turn);
                base = nearest(shelf, turn - 1).map_err(|_| error)?;
            }
            outcome => return outcome.map(|()| (timeline, notes)),
        }
    }
}

fn nearest(shelf: &Shelf, turn: u64) -> Result<Arc<StateSnapshot>> {
    shelf.nearest(turn)?.ok_or_else(|| {
        let message =
            "no sound snapshot is left to replay the turns from, not even the initial one";
        Error::new(ErrorKind::Damaged, message)
    })
}
