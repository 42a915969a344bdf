//! What is derived from the turns: indexes, states, scenes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    dir::SessionDir,
    layout::{CURRENT, DELTA_INDEX, SCENES, SNAPSHOT_INDEX, TURN_INDEX, VERIFIED, ends_in},
    recover::keep,
    sealed,
};
use crate::{
    Data, Result, TurnRecord,
    json::{Object, ObjectExt, Value, from_value, object, to_value},
    log::{Files, create_dirs},
};

/// The documents that are derived, but for those of scenes.
const DERIVED: [&str; 5] = [TURN_INDEX, DELTA_INDEX, SNAPSHOT_INDEX, CURRENT, VERIFIED];

/// The names of the documents that are derived, those of the scenes that are there too.
///
/// # Errors
/// `Io`.
pub(super) fn documents(files: &dyn Files, directory: &Path) -> Result<Vec<String>> {
    let mut scenes = sealed::names(files, &directory.join(SCENES))?;
    scenes.retain(|name| ends_in(name, "json"));
    let scenes = scenes.iter().map(|name| format!("{SCENES}/{name}"));
    Ok(DERIVED.map(str::to_owned).into_iter().chain(scenes).collect())
}

/// Moves every derived document aside that knows turns after `last`, with which the log ends: it may
/// hold all that is left of them. Returns the new paths.
///
/// # Errors
/// `Io`.
pub(super) fn keep_ahead(files: &dyn Files, directory: &Path, last: u64) -> Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for path in documents(files, directory)?.iter().map(|name| directory.join(name)) {
        let Some(bytes) = sealed::read_if_there(files, &path)? else { continue };
        let document = sealed::open(&bytes).ok();
        let turn = document.and_then(|document| document.get("lastTurn")?.as_u64());
        if turn.is_some_and(|turn| turn > last) {
            kept.push(keep(files, &path, &bytes)?);
            sealed::remove(files, &path)?;
        }
    }
    Ok(kept)
}

/// Sums over turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) turns: u64,
    pub(super) deltas: u64,
    pub(super) targets: BTreeMap<String, TargetTally>,
    pub(super) scenes: Vec<Scene>,
    /// How many of `scenes` are written, as they are.
    written: usize,
}

/// How many deltas a target has, and the first and the last turn of those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetTally {
    pub(super) count: u64,
    pub(super) turn_range: (u64, u64),
}

/// Turns of one scene, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Scene {
    scene_id: String,
    number: usize,
    from_turn: u64,
    to_turn: u64,
    turn_count: u64,
    delta_count: u64,
}

impl Tally {
    pub(super) fn add(&mut self, record: &TurnRecord) {
        let turn = record.turn_id;
        self.turns = turn;
        self.deltas += record.deltas.len() as u64;
        for delta in &record.deltas {
            let of_target = self.targets.entry(delta.target.to_string());
            let none = TargetTally { count: 0, turn_range: (turn, turn) };
            let of_target = of_target.or_insert(none);
            of_target.count += 1;
            of_target.turn_range.1 = turn;
        }
        let deltas = record.deltas.len() as u64;
        match self.scenes.last_mut() {
            Some(scene) if scene.scene_id == record.scene_id => {
                scene.to_turn = turn;
                scene.turn_count += 1;
                scene.delta_count += deltas;
            }
            _ => self.scenes.push(Scene {
                scene_id: record.scene_id.clone(),
                number: self.scenes.len() + 1,
                from_turn: turn,
                to_turn: turn,
                turn_count: 1,
                delta_count: deltas,
            }),
        }
        self.written = self.written.min(self.scenes.len() - 1);
    }

    fn delta_index(&self, session: &SessionDir) -> Result<Value> {
        let snapshots = session.shelf.entries().into_iter().map(|(turn, entry)| {
            object! {
                "snapshotId": format!("snapshot-{turn}"),
                "turnId": turn,
                "deltasBefore": entry.delta_count,
            }
        });
        let mut object = session.heading();
        object.put("totalDeltas", self.deltas);
        object.put("byTarget", to_value(&self.targets)?);
        object.put("snapshots", snapshots.collect::<Value>());
        Ok(Value::Object(object))
    }

    fn turn_index(&self, session: &SessionDir) -> Result<Value> {
        let blocks = super::blocks::blocks(&*session.files, &session.directory)?;
        let files = blocks.iter().map(|block| {
            let name = block.path.file_name().unwrap_or_default().to_string_lossy();
            let last = block.last.unwrap_or(self.turns).min(self.turns);
            object! { "file": name, "fromTurn": block.first, "toTurn": last }
        });
        let mut object = session.heading();
        object.put("totalTurns", self.turns);
        object.put("files", files.collect::<Value>());
        object.put("scenes", to_value(&self.scenes)?);
        Ok(Value::Object(object))
    }

    /// The sums that the indexes of a directory say, where they are of its turns.
    fn read(session: &SessionDir) -> Option<Self> {
        let document = |name: &str| {
            let bytes =
                sealed::read_if_there(&*session.files, &session.directory.join(name)).ok()??;
            let value = sealed::open(&bytes).ok()?;
            let turn = value.get("lastTurn")?.as_u64()?;
            let is_same = value.str_at("lastTurnChecksum") == session.shelf.crc(turn).as_deref();
            (is_same && value.str_at("sessionId")? == session.meta.session_id).then_some(value)
        };
        let (turns, deltas) = (document(TURN_INDEX)?, document(DELTA_INDEX)?);
        let tally = Self {
            turns: turns.get("totalTurns")?.as_u64()?,
            deltas: deltas.get("totalDeltas")?.as_u64()?,
            targets: from_value(deltas.get("byTarget")?.clone()).ok()?,
            scenes: from_value(turns.get("scenes")?.clone()).ok()?,
            written: 0,
        };
        if turns.get("lastTurn") != deltas.get("lastTurn")
            || tally.turns > session.timeline.last_turn()
        {
            return None;
        }
        Some(tally)
    }
}

fn scene_name(number: usize) -> String {
    format!("{SCENES}/scene-{number:03}.json")
}

impl SessionDir {
    /// What every derived document begins with: of which session it is, and up to which turn.
    fn heading(&self) -> Object {
        let mut object = Object::new();
        object.put("formatVersion", 1_u64);
        object.put("sessionId", self.meta.session_id.as_str());
        object.put("lastTurn", self.timeline.last_turn());
        object.put_some("lastTurnChecksum", self.shelf.crc(self.timeline.last_turn()));
        object
    }

    /// Writes indexes, states and scenes. They can be made again, so that it goes on without them
    /// is a note and no error.
    pub(super) fn write_derived(&mut self) {
        if let Err(error) = self.try_write_derived() {
            self.note(format!("indexes, states and scenes are not up to date: {error}"));
        }
    }

    /// # Errors
    /// `Io`.
    pub(super) fn try_write_derived(&mut self) -> Result<()> {
        let tally = self.take_tally()?;
        let turn_index = tally.turn_index(self);
        let delta_index = tally.delta_index(self);
        let scenes: Vec<Scene> = tally.scenes.iter().skip(tally.written).cloned().collect();
        self.tally = Some(Tally { written: tally.scenes.len(), ..tally });
        let entries = self.shelf.entries();
        let mut snapshots = self.heading();
        let listed = entries.iter().map(|(turn, entry)| entry.to_json(*turn));
        snapshots.put("snapshots", listed.collect::<Value>());
        self.write(TURN_INDEX, &turn_index?)?;
        self.write(DELTA_INDEX, &delta_index?)?;
        self.write(SNAPSHOT_INDEX, &Value::Object(snapshots))?;
        let state = self.timeline.state().clone();
        self.write(CURRENT, &self.state_document(self.timeline.last_turn(), &state))?;
        if let Some(last) = self.timeline.snapshots().last().cloned() {
            self.write(VERIFIED, &self.state_document(last.turn_id, &last.state))?;
        }
        if !scenes.is_empty() {
            create_dirs(&*self.files, self.directory.join(SCENES))?;
        }
        for scene in scenes {
            let mut document = self.heading();
            if let Value::Object(members) = to_value(&scene)? {
                document.extend(members);
            }
            self.write(&scene_name(scene.number), &Value::Object(document))?;
        }
        Ok(())
    }

    fn state_document(&self, turn: u64, state: &Data) -> Value {
        let mut document = self.heading();
        document.put("turnId", turn);
        document.put("checksum", state.checksum());
        document.put("state", state);
        Value::Object(document)
    }

    fn write(&self, name: &str, value: &Value) -> Result<()> {
        let path = self.directory.join(name);
        if let Some(folder) = path.parent() {
            create_dirs(&*self.files, folder)?;
        }
        sealed::write(&*self.files, &path, value).map(drop)
    }

    /// The sums over all turns: those at hand, those of the indexes and what came after them, or
    /// made from every turn.
    fn take_tally(&mut self) -> Result<Tally> {
        let known = self.tally.take().or_else(|| Tally::read(self));
        let mut tally = known.unwrap_or_default();
        for turn in tally.turns + 1..=self.timeline.last_turn() {
            tally.add(&*self.timeline.turn(turn)?);
        }
        Ok(tally)
    }

    /// The sums over all turns.
    ///
    /// # Errors
    /// What reading the turns gives.
    pub(super) fn sums(&mut self) -> Result<&Tally> {
        let tally = self.take_tally()?;
        Ok(self.tally.insert(tally))
    }

    /// Puts what is derived in order where it is missing, stale or damaged, when the directory is
    /// opened for writing; notes what is ahead of the log, and keeps it beside.
    pub(super) fn check_derived(&mut self) {
        let mut is_current = true;
        for name in DERIVED {
            let read = sealed::read_if_there(&*self.files, &self.directory.join(name));
            let value = read.and_then(|bytes| bytes.map(|bytes| sealed::open(&bytes)).transpose());
            let last = self.timeline.last_turn();
            match value {
                Ok(Some(value)) => {
                    let turn = value.get("lastTurn").and_then(Value::as_u64).unwrap_or_default();
                    if turn > last {
                        self.note(format!("{name} is ahead of the log: it knows turn {turn}, and the log ends with turn {last}"));
                    }
                    let crc = self.shelf.crc(turn);
                    is_current &=
                        turn == last && value.str_at("lastTurnChecksum") == crc.as_deref();
                }
                Ok(None) => is_current = false,
                Err(error) => {
                    is_current = false;
                    self.note(format!("{name} is damaged: {error}"));
                }
            }
        }
        if self.lock.is_some() && !(is_current && self.has_scenes()) {
            match keep_ahead(&*self.files, &self.directory, self.timeline.last_turn()) {
                Ok(kept) => {
                    for path in kept {
                        self.note(format!("what was ahead is kept as {}", path.display()));
                    }
                    self.write_derived();
                }
                Err(error) => {
                    self.note(format!("what is ahead of the log cannot be kept: {error}"));
                }
            }
        }
    }

    /// Whether the documents of all scenes are there, and sound.
    fn has_scenes(&self) -> bool {
        let Some(tally) = Tally::read(self) else { return false };
        (1..=tally.scenes.len()).all(|number| {
            let path = self.directory.join(scene_name(number));
            let read = sealed::read_if_there(&*self.files, &path);
            matches!(read, Ok(Some(bytes)) if sealed::open(&bytes).is_ok())
        })
    }
}
