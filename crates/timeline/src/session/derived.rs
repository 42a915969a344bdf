//! What is derived from the turns: indexes, states, scenes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    dir::SessionDir,
    layout::{CURRENT, DELTA_INDEX, SCENES, SNAPSHOT_INDEX, TURN_INDEX, VERIFIED, ends_in},
    recover::keep,
    sealed,
};
use crate::{
    Data, Error, Result, TurnRecord,
    json::{Object, ObjectExt, Value},
    log::{Files, create_dirs},
};

/// The documents that are derived, but for those of scenes.
pub(super) const DERIVED: [&str; 5] = [TURN_INDEX, DELTA_INDEX, SNAPSHOT_INDEX, CURRENT, VERIFIED];

/// Moves every derived document aside that knows turns after `last`, with which the log ends: it may
/// hold all that is left of them. Returns the new paths.
///
/// # Errors
/// `Io`.
pub(super) fn keep_ahead(files: &dyn Files, directory: &Path, last: u64) -> Result<Vec<PathBuf>> {
    let scenes = sealed::names(files, &directory.join(SCENES))?;
    let scenes = scenes.iter().filter(|name| ends_in(name, "json"));
    let names = DERIVED.map(str::to_owned).into_iter();
    let names = names.chain(scenes.map(|name| format!("{SCENES}/{name}")));
    let mut kept = Vec::new();
    for path in names.map(|name| directory.join(name)) {
        let Some(bytes) = sealed::read_if_there(files, &path)? else { continue };
        let document = sealed::open(&bytes).ok();
        let turn = document.and_then(|document| document.get("lastTurn")?.as_u64());
        if turn.is_some_and(|turn| turn > last) {
            kept.push(keep(files, &path, &bytes)?);
            let removed = files.remove(&path);
            removed.map_err(|error| Error::io(error, "cannot remove").in_file(&path))?;
        }
    }
    Ok(kept)
}

/// Sums over turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) turns: u64,
    pub(super) deltas: u64,
    /// Of each target: how many deltas, the first and the last turn.
    pub(super) targets: BTreeMap<String, (u64, u64, u64)>,
    pub(super) scenes: Vec<Scene>,
    /// How many of `scenes` are written, as they are.
    written: usize,
}

/// Turns of one scene, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    scene_id: String,
    from: u64,
    to: u64,
    deltas: u64,
}

impl Tally {
    pub(super) fn add(&mut self, record: &TurnRecord) {
        let turn = record.turn_id;
        self.turns = turn;
        self.deltas += record.deltas.len() as u64;
        for delta in &record.deltas {
            let of_target = self.targets.entry(delta.target.to_string()).or_insert((0, turn, turn));
            of_target.0 += 1;
            of_target.2 = turn;
        }
        let deltas = record.deltas.len() as u64;
        match self.scenes.last_mut() {
            Some(scene) if scene.scene_id == record.scene_id => {
                scene.to = turn;
                scene.deltas += deltas;
            }
            _ => {
                let scene_id = record.scene_id.clone();
                self.scenes.push(Scene { scene_id, from: turn, to: turn, deltas });
            }
        }
        self.written = self.written.min(self.scenes.len() - 1);
    }

    fn delta_index(&self, session: &SessionDir) -> Value {
        let mut targets = Object::new();
        for (target, (count, from, to)) in &self.targets {
            let mut of_target = Object::new();
            of_target.put("count", *count);
            of_target.put("turnRange", [*from, *to].into_iter().collect::<Value>());
            targets.put(target, of_target);
        }
        let snapshots = session.shelf.entries().into_iter().map(|(turn, entry)| {
            let mut object = Object::new();
            object.put("snapshotId", format!("snapshot-{turn}"));
            object.put("turnId", turn);
            object.put("deltasBefore", entry.delta_count);
            Value::Object(object)
        });
        let mut object = session.heading();
        object.put("totalDeltas", self.deltas);
        object.put("byTarget", targets);
        object.put("snapshots", snapshots.collect::<Value>());
        Value::Object(object)
    }

    fn turn_index(&self, session: &SessionDir) -> Result<Value> {
        let blocks = super::blocks::blocks(&*session.files, &session.directory)?;
        let files = blocks.iter().map(|block| {
            let mut object = Object::new();
            let name = block.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            object.put("file", name);
            object.put("fromTurn", block.first);
            object.put("toTurn", block.last.unwrap_or(self.turns).min(self.turns));
            Value::Object(object)
        });
        let mut object = session.heading();
        object.put("totalTurns", self.turns);
        object.put("files", files.collect::<Value>());
        let numbered = (1..).zip(&self.scenes);
        object.put(
            "scenes",
            numbered.map(|(number, scene)| scene.to_json(number)).collect::<Value>(),
        );
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
        let mut tally = Self {
            turns: turns.get("totalTurns")?.as_u64()?,
            deltas: deltas.get("totalDeltas")?.as_u64()?,
            ..Self::default()
        };
        if turns.get("lastTurn") != deltas.get("lastTurn")
            || tally.turns > session.timeline.last_turn()
        {
            return None;
        }
        for (target, sums) in deltas.get("byTarget")?.as_object()? {
            let range = sums.get("turnRange")?;
            let number = |value: Option<&Value>| value.and_then(Value::as_u64);
            let (from, to) = (number(range.at(0))?, number(range.at(1))?);
            tally.targets.insert(target.clone(), (number(sums.get("count"))?, from, to));
        }
        for scene in turns.get("scenes")?.as_array()? {
            let number = |key: &str| scene.get(key).and_then(Value::as_u64);
            tally.scenes.push(Scene {
                scene_id: scene.str_at("sceneId")?.to_owned(),
                from: number("fromTurn")?,
                to: number("toTurn")?,
                deltas: number("deltaCount")?,
            });
        }
        Some(tally)
    }
}

fn scene_name(number: usize) -> String {
    format!("{SCENES}/scene-{number:03}.json")
}

impl Scene {
    fn to_json(&self, number: u64) -> Value {
        let mut object = Object::new();
        object.put("sceneId", self.scene_id.as_str());
        object.put("number", number);
        object.put("fromTurn", self.from);
        object.put("toTurn", self.to);
        object.put("turnCount", self.to - self.from + 1);
        object.put("deltaCount", self.deltas);
        Value::Object(object)
    }
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
        let written = tally.written;
        let scenes: Vec<(usize, Value)> = (tally.scenes.iter().enumerate().skip(written))
            .map(|(index, scene)| (index + 1, scene.to_json(index as u64 + 1)))
            .collect();
        self.tally = Some(Tally { written: tally.scenes.len(), ..tally });
        let entries = self.shelf.entries();
        let mut snapshots = self.heading();
        let listed = entries.iter().map(|(turn, entry)| entry.to_json(*turn));
        snapshots.put("snapshots", listed.collect::<Value>());
        self.write(TURN_INDEX, &turn_index?)?;
        self.write(DELTA_INDEX, &delta_index)?;
        self.write(SNAPSHOT_INDEX, &Value::Object(snapshots))?;
        let state = self.timeline.state().clone();
        self.write(CURRENT, &self.state_document(self.timeline.last_turn(), &state))?;
        if let Some(last) = self.timeline.snapshots().last().cloned() {
            self.write(VERIFIED, &self.state_document(last.turn_id, &last.state))?;
        }
        if !scenes.is_empty() {
            create_dirs(&*self.files, self.directory.join(SCENES))?;
        }
        for (number, scene) in scenes {
            let mut document = self.heading();
            document.put_unknown(scene.as_object().unwrap_or(&Object::new()));
            self.write(&scene_name(number), &Value::Object(document))?;
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
