//! Bringing back all that is intact.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Serialize, Serializer};

use super::{
    blocks::{self, blocks, scan},
    derived::keep_ahead,
    dir::SessionDir,
    end::{self, SessionMark},
    layout::{
        ACKNOWLEDGED, META, MOST_BYTES, MOST_DOCUMENT, SNAPSHOTS, block_path, first_of_file,
        snapshot_turn,
    },
    meta::SessionMeta,
    opening,
    options::SessionOptions,
    recover::keep,
    sealed,
    shelf::Shelf,
};
use crate::{
    Applier, Data, Error, ErrorKind, Result, StateSnapshot, Summary, Targets, TimelineConfig,
    TurnRecord, diff, invert,
    json::{self, Object, ObjectExt},
    log::{
        DirLock, EndProblem, Files, HighWater, Holder, line, pack_file, read_file, unpack_file,
        within, write_atomic,
    },
};

/// How many turns in a row are filled in: a number in one line may be any.
const MOST_FILLED: u64 = 100_000;

/// What repairing a directory did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// How many turns there are now.
    pub turns: u64,
    /// The turns whose records are lost. One stands in for them that changes the state as they did,
    /// where a later snapshot tells how.
    pub lost: Vec<u64>,
    /// The first and the last of the turns that were acknowledged, are missing at the end, and are
    /// accepted as lost: the next turn takes the number of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<(u64, u64)>,
    /// Files that were set aside, or copies of them.
    #[serde(serialize_with = "shown")]
    pub kept: Vec<PathBuf>,
    /// What was done, in sentences.
    pub notes: Vec<String>,
}

/// Writes paths as they are shown, those that are not UTF-8 too.
fn shown<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// Puts a directory in order: keeps every line that passes its check, fills in for lost turns what
/// the snapshots after them tell, sets damaged snapshots aside, and makes anew what is derived.
/// Whatever is replaced is kept beside. Reads the whole directory: O(its bytes).
///
/// # Errors
/// [`ErrorKind::Locked`], [`ErrorKind::Io`], [`ErrorKind::Version`], [`ErrorKind::Limit`] where
/// more than 100,000 turns in a row are missing, and [`ErrorKind::Damaged`] where no state is left
/// to begin with.
pub fn repair(
    files: &Arc<dyn Files>,
    directory: impl AsRef<Path>,
    options: &SessionOptions,
) -> Result<RepairReport> {
    let directory = directory.as_ref();
    let files = &within(Arc::clone(files), directory);
    let holder = options.holder.clone().unwrap_or_else(|| Holder::new("afterimage"));
    let lock = DirLock::acquire(&**files, directory, &holder)?;
    let mut repair = Repair { files, directory, done: RepairReport::default() };
    let meta = repair.meta(options)?;
    let past = opening::past(files, directory, &meta, 0)?;
    let first = past.slots.len() as u64 + 1;
    let remembered = SessionMark::read(&**files, directory);
    let turns = blocks::read(&**files, directory, first)?;
    let lost = remembered.lost_end(directory, first, &turns);
    let shelf = Shelf::new(Arc::clone(files), directory, (first, turns.crcs.clone()), past.shelf)?;
    let has_base = crate::SnapshotSource::nearest(&shelf, first - 1)?.is_some();
    if !turns.problems.is_empty() || !turns.spare.is_empty() || !has_base || lost.is_some() {
        repair.turns(&meta.targets, first, remembered.last(), &shelf)?;
    }
    repair.derived(turns.last)?;
    repair.snapshots(first)?;
    repair.end(first)?;
    drop(lock);
    let mut session = SessionDir::open(Arc::clone(files), directory, options.clone())?;
    session.try_write_derived()?;
    repair.done.turns = session.timeline().last_turn();
    repair.done.notes.extend(session.close()?);
    Ok(repair.done)
}

struct Repair<'r> {
    files: &'r Arc<dyn Files>,
    directory: &'r Path,
    done: RepairReport,
}

impl Repair<'_> {
    /// Keeps a file under another name.
    fn keep(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.done.kept.push(keep(&**self.files, path, bytes)?);
        Ok(())
    }

    fn meta(&mut self, options: &SessionOptions) -> Result<SessionMeta> {
        let path = self.directory.join(META);
        match SessionMeta::read(&**self.files, self.directory) {
            Ok(Some(meta)) => return Ok(meta),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let bytes = read_file(&**self.files, &path, MOST_DOCUMENT)?;
                self.keep(&path, &bytes)?;
            }
            Err(error) => return Err(error),
        }
        let session_id = match &options.session_id {
            Some(id) => id.clone(),
            None => self.session_id()?,
        };
        let meta = SessionMeta {
            session_id,
            created_at: String::new(),
            config: TimelineConfig::default(),
            targets: Targets::default(),
            parent: None,
            extra: Object::new(),
            config_extra: Object::new(),
        };
        sealed::write(&**self.files, &path, &meta.to_json()?)?;
        self.done.notes.push(format!("{META} was made anew: its configuration is the default one"));
        Ok(meta)
    }

    /// The session's id, as a turn says it.
    fn session_id(&self) -> Result<String> {
        for block in blocks(&**self.files, self.directory)? {
            for line in scan(&**self.files, &block)?.0.lines {
                let id = json::read(line.text.as_bytes())?.str_at("sessionId").map(str::to_owned);
                if let Some(id) = id.filter(|id| !id.is_empty()) {
                    return Ok(id);
                }
            }
        }
        let folder = self.directory.file_name().map(|name| name.to_string_lossy().into_owned());
        folder.ok_or_else(|| {
            Error::new(ErrorKind::UnknownFormat, "no session is there").in_file(self.directory)
        })
    }

    /// Writes the files of turns anew. Where turns up to `acknowledged` are missing at the end,
    /// those are filled in of which a snapshot still tells.
    fn turns(
        &mut self,
        targets: &Targets,
        first: u64,
        acknowledged: u64,
        shelf: &Shelf,
    ) -> Result<()> {
        let old = blocks(&**self.files, self.directory)?;
        let mut records: BTreeMap<u64, TurnRecord> = BTreeMap::new();
        for block in &old {
            for line in scan(&**self.files, block)?.0.lines {
                if let Ok(record) = json::read(line.text.as_bytes())
                    .map_err(Error::from)
                    .and_then(TurnRecord::from_json)
                    && record.turn_id >= first
                {
                    records.entry(record.turn_id).or_insert(record);
                }
            }
        }
        let last = records.last_key_value().map_or(first - 1, |(turn, _)| *turn);
        let entries = shelf.entries();
        let ahead = entries.keys().rev().find(|turn| {
            (last + 1..=acknowledged.min(last.saturating_add(MOST_FILLED))).contains(turn)
                && shelf.load_unbound(**turn).is_ok()
        });
        let last = ahead.copied().unwrap_or(last);
        let mut state = self.beginning(targets, first, shelf, &records)?;
        let mut turn = first;
        while turn <= last {
            let next = records.range(turn..).next().map_or(last + 1, |(next, _)| *next);
            if next > turn {
                self.fill(targets, (turn, next), shelf, &mut records, &mut state)?;
                turn = next;
                continue;
            }
            if let Some(record) = records.get_mut(&turn) {
                apply(targets, record, &mut state)?;
            }
            turn += 1;
        }
        self.write_turns(&old, &records)
    }

    /// The state before the first turn: of its snapshot or, where that is lost, from a later one
    /// with the turns before it taken back.
    fn beginning(
        &mut self,
        targets: &Targets,
        first: u64,
        shelf: &Shelf,
        records: &BTreeMap<u64, TurnRecord>,
    ) -> Result<Data> {
        if let Some(base) = crate::SnapshotSource::nearest(shelf, first - 1)? {
            return Ok(base.state.clone());
        }
        for (turn, _) in shelf.entries().range(first..) {
            if let Some(state) = taken_back(targets, shelf, *turn, first - 1, records) {
                let snapshot = StateSnapshot {
                    session_id: "".into(),
                    turn_id: first - 1,
                    timestamp: String::new(),
                    reason: crate::SnapshotReason::Initial,
                    state: state.clone(),
                    delta_range: crate::DeltaRange::default(),
                    turn_checksum: None,
                    extra: Object::new(),
                };
                shelf.write(&snapshot)?;
                self.done
                    .notes
                    .push(format!("the initial snapshot was made anew from that of turn {turn}"));
                return Ok(state);
            }
        }
        let message =
            "no sound snapshot is left, so nobody knows the state that the turns begin with";
        Err(Error::new(ErrorKind::Damaged, message).in_file(self.directory.join(SNAPSHOTS)))
    }

    /// Puts turns in the place of those from `gap.0` up to `gap.1`, which is not lost.
    fn fill(
        &mut self,
        targets: &Targets,
        gap: (u64, u64),
        shelf: &Shelf,
        records: &mut BTreeMap<u64, TurnRecord>,
        state: &mut Data,
    ) -> Result<()> {
        if gap.1 - gap.0 > MOST_FILLED {
            let message = format!(
                "turns {} to {} are missing, more than the {MOST_FILLED} that are filled in",
                gap.0,
                gap.1 - 1
            );
            return Err(Error::new(ErrorKind::Limit, message).in_file(self.directory));
        }
        let later = shelf.entries();
        let after = later
            .range(gap.1 - 1..)
            .find_map(|(turn, _)| taken_back(targets, shelf, *turn, gap.1 - 1, records));
        let known =
            if after.is_some() { "as a later snapshot tells" } else { "which nothing tells" };
        self.done.notes.push(format!(
            "turns {} to {} are lost; their changes are filled in {known}",
            gap.0,
            gap.1 - 1
        ));
        for turn in gap.0..gap.1 {
            let mut deltas = match &after {
                Some(after) if turn == gap.0 => diff(state, after, targets),
                _ => Vec::new(),
            };
            for (sequence, delta) in (1..).zip(&mut deltas) {
                delta.turn_id = turn;
                delta.sequence = sequence;
                delta.delta_id = format!("repair-{turn}-{sequence}");
                "repair".clone_into(&mut delta.cause);
            }
            let mut record = TurnRecord::new("repair").with_deltas(deltas);
            record.turn_id = turn;
            record.summary = Summary::of(&record.deltas);
            record.extra.put("repaired", true);
            apply(targets, &mut record, state)?;
            records.insert(turn, record);
            self.done.lost.push(turn);
        }
        Ok(())
    }

    fn write_turns(
        &mut self,
        old: &[super::layout::Block],
        records: &BTreeMap<u64, TurnRecord>,
    ) -> Result<()> {
        let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
        let start = records.first_key_value().map_or(1, |(turn, _)| *turn);
        let last = records.last_key_value().map_or(0, |(turn, _)| *turn);
        for (turn, record) in records {
            let first = first_of_file(*turn).max(start);
            let mut path = block_path(self.directory, first).into_os_string();
            if first_of_file(*turn) + super::layout::TURNS_PER_FILE - 1 <= last {
                path.push(".zst");
            }
            let sealed = line::seal(&record.to_json().to_string())?;
            let text = files.entry(path.into()).or_default();
            text.push_str(&sealed);
            text.push('\n');
        }
        let mut replaced = Vec::new();
        for block in old {
            let bytes = read_file(&**self.files, &block.path, MOST_BYTES)?;
            let is_same = files.get(&block.path).is_some_and(|text| {
                if block.is_packed {
                    let (unpacked, error) = unpack_file(&bytes, MOST_BYTES);
                    error.is_none() && unpacked == text.as_bytes()
                } else {
                    bytes == text.as_bytes()
                }
            });
            if is_same {
                files.remove(&block.path);
            } else {
                self.keep(&block.path, &bytes)?;
                replaced.push(block);
            }
        }
        for (path, text) in &files {
            let is_packed = path.extension().is_some_and(|extension| extension == "zst");
            let bytes =
                if is_packed { pack_file(text.as_bytes())? } else { text.clone().into_bytes() };
            write_atomic(&**self.files, path, &bytes)?;
        }
        for block in replaced.iter().filter(|block| !files.contains_key(&block.path)) {
            sealed::remove(&**self.files, &block.path)?;
        }
        Ok(())
    }

    /// Sets derived documents aside that know turns after `last`, with which the log ended: a state
    /// among them may be all that is left of the turns that are lost.
    fn derived(&mut self, last: u64) -> Result<()> {
        let kept = keep_ahead(&**self.files, self.directory, last)?;
        if !kept.is_empty() {
            self.done.notes.push(format!(
                "states and indexes that know turns after {last} are kept: a state there may be all that is left of them"
            ));
        }
        self.done.kept.extend(kept);
        Ok(())
    }

    /// Remembers the turns as they are now, and says what was acknowledged and is accepted as lost.
    fn end(&mut self, first: u64) -> Result<()> {
        let files = &**self.files;
        let remembered = SessionMark::read(files, self.directory);
        let turns = blocks::read(files, self.directory, first)?;
        let Some(lost) = remembered.lost_end(self.directory, first, &turns) else {
            return Ok(());
        };
        let path = self.directory.join(ACKNOWLEDGED);
        if let Some(bytes) = sealed::read_if_there(files, &path)? {
            self.keep(&path, &bytes)?;
        }
        let last = turns.last;
        if let EndProblem::Lost { acknowledged, .. } = lost.problem {
            self.done.accepted = Some((last + 1, acknowledged));
        }
        self.done.notes.push(format!("accepted: {lost}"));
        let mark = end::mark(last, turns.crcs.last().map(String::as_str));
        HighWater::create(files, path, mark)?;
        Ok(())
    }

    /// Sets snapshots aside that cannot be read, or are of a turn whose line was written anew.
    /// Those that are based on one of them are written in full before.
    fn snapshots(&mut self, first: u64) -> Result<()> {
        let turns = blocks::read(&**self.files, self.directory, first)?;
        let last = first + turns.slots.len() as u64 - 1;
        let shelf = Shelf::new(Arc::clone(self.files), self.directory, (first, turns.crcs), None)?;
        let mut aside: BTreeMap<u64, (PathBuf, Error)> = BTreeMap::new();
        for (turn, entry) in shelf.entries() {
            match shelf.load(turn) {
                Ok(snapshot) if entry.base.is_some_and(|base| aside.contains_key(&base)) => {
                    shelf.write(&snapshot)?;
                }
                Ok(_) => {}
                // It is ahead of the log.
                Err(error) if error.kind() == ErrorKind::Base && turn > last => {}
                Err(error) => {
                    let path = self.directory.join(SNAPSHOTS).join(&entry.file);
                    aside.insert(turn, (path, error));
                }
            }
        }
        aside.values().try_for_each(|(path, error)| self.set_aside(path, error))
    }

    fn set_aside(&mut self, path: &Path, error: &Error) -> Result<()> {
        let bytes = read_file(&**self.files, path, MOST_BYTES)?;
        self.keep(path, &bytes)?;
        sealed::remove(&**self.files, path)?;
        let turn = path.file_name().and_then(|name| snapshot_turn(&name.to_string_lossy()));
        let turn = turn.unwrap_or_default();
        self.done.notes.push(format!("the snapshot of turn {turn} was set aside: {error}"));
        Ok(())
    }
}

/// Applies a turn; leniently, and marked so, where it does not fit any more.
fn apply(targets: &Targets, record: &mut TurnRecord, state: &mut Data) -> Result<()> {
    let applier = if record.lenient { Applier::lenient(targets) } else { Applier::strict(targets) };
    if applier.apply_all(state, &record.deltas).is_err() {
        Applier::lenient(targets).apply_all(state, &record.deltas)?;
        record.lenient = true;
    }
    Ok(())
}

/// The state after `to`, from the snapshot of a later turn with the turns in between taken back.
fn taken_back(
    targets: &Targets,
    shelf: &Shelf,
    from: u64,
    to: u64,
    records: &BTreeMap<u64, TurnRecord>,
) -> Option<Data> {
    let mut state = shelf.load_unbound(from).ok()?.state;
    for turn in (to + 1..=from).rev() {
        let record = records.get(&turn).filter(|record| !record.lenient)?;
        let back = invert(&record.deltas).ok()?;
        Applier::strict(targets).apply_all(&mut state, &back).ok()?;
    }
    Some(state)
}

impl RepairReport {
    /// How many turns are lost: those that another record stands in for, and those at the end that
    /// are accepted as lost.
    pub fn lost_turns(&self) -> u64 {
        let at_end = self.accepted.map_or(0, |(first, last)| (last + 1).saturating_sub(first));
        self.lost.len() as u64 + at_end
    }
}
