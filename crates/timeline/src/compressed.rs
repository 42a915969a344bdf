use super::{
    Applier, Data, Map, StateSnapshot, Targets, diff,
    patch::{from_json_patch, merge, to_json_patch},
};
use crate::{
    Error, ErrorKind, Result,
    json::{Fields, Object, ObjectExt, Value},
};

crate::json::serde_through_json!(CompressedSnapshot);

/// How the differences are written, where they are not a document's partial state.
const DIFF_FORMAT: u64 = 1;

/// The member of a state that differences always hold whole.
const SCENE: &str = "scene";

/// A snapshot that holds only what differs from the one that it is based on.
///
/// Each top-level member of the state that differs is there as `{"patch": …}` (a JSON Patch),
/// `{"full": …}` or `{"removed": true}`. The scene is always full: scenes change completely. A
/// partial state, as the document has it, is read as a merge patch, but for its scene, which it
/// holds whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedSnapshot {
    /// The turn of the snapshot that it is based on.
    pub base_turn: u64,
    /// How many snapshots lie between it and a full one, itself included.
    pub depth: u64,
    /// What differs.
    pub state_diffs: Object,
    /// Whether `state_diffs` is of this format, and no partial state.
    is_ours: bool,
    checksums: Object,
    /// Everything but the state.
    head: StateSnapshot,
}

impl CompressedSnapshot {
    /// The snapshot as what differs from `base`, which has this depth itself; `None` where a state
    /// is no object. O(size): hashes the state, and compares it with that of `base`.
    ///
    /// # Errors
    /// None that a state of this library can cause.
    pub fn of(snapshot: &StateSnapshot, base: &StateSnapshot, depth: u64) -> Result<Option<Self>> {
        let (Data::Object(old), Data::Object(new)) = (&base.state, &snapshot.state) else {
            return Ok(None);
        };
        Ok(Some(Self {
            base_turn: base.turn_id,
            depth: depth + 1,
            state_diffs: differing(old, new)?,
            is_ours: true,
            checksums: snapshot.checksums(),
            head: StateSnapshot { state: Data::Null, ..snapshot.clone() },
        }))
    }

    /// The turn that it represents.
    pub fn turn_id(&self) -> u64 {
        self.head.turn_id
    }

    /// Everything but the state, which is `null`.
    pub fn head(&self) -> &StateSnapshot {
        &self.head
    }

    /// The whole snapshot, from the one that it is based on. O(size of the state), which is hashed.
    ///
    /// # Errors
    /// [`ErrorKind::Base`] where `base` is another, [`ErrorKind::Damaged`] where the outcome fails
    /// its checksums, and what the patches say of a base that they do not fit.
    pub fn expand(&self, base: &StateSnapshot) -> Result<StateSnapshot> {
        let snapshot = self.expand_unchecked(base)?;
        snapshot.check(&self.checksums)?;
        Ok(snapshot)
    }

    /// As [`CompressedSnapshot::expand`], without comparing checksums.
    pub(super) fn expand_unchecked(&self, base: &StateSnapshot) -> Result<StateSnapshot> {
        if base.turn_id != self.base_turn {
            let message = format!(
                "expected the snapshot of turn {}, found that of {}",
                self.base_turn, base.turn_id
            );
            return Err(Error::new(ErrorKind::Base, message));
        }
        let state =
            if self.is_ours { self.patched(&base.state)? } else { self.merged(&base.state) };
        Ok(StateSnapshot { state, ..self.head.clone() })
    }

    /// The state of a partial one.
    fn merged(&self, base: &Data) -> Data {
        let mut merged = merge(base, &Data::from(self.state_diffs.clone()));
        if let (Data::Object(members), Some(scene)) = (&mut merged, self.state_diffs.get(SCENE)) {
            members.insert(SCENE, scene.clone());
        }
        merged
    }

    /// The checksums of the whole snapshot.
    #[cfg(feature = "storage")]
    pub(super) fn checksums(&self) -> &Object {
        &self.checksums
    }

    fn patched(&self, base: &Data) -> Result<Data> {
        let mut state = base.as_object().cloned().unwrap_or_default();
        for (member, change) in &self.state_diffs {
            if let Some(full) = change.get("full") {
                state.insert(member, full.clone());
            } else if let Some(patch) = change.get("patch") {
                let mut part = state.get(member).cloned().unwrap_or_default();
                let targets = Targets::none();
                let deltas = from_json_patch(&part, patch, &targets)
                    .map_err(|error| error.under(member).under("stateDiffs"))?;
                Applier::strict(&targets).apply_all(&mut part, &deltas)?;
                state.insert(member, part);
            } else {
                state.remove(member);
            }
        }
        Ok(Data::Object(state))
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = self.head.header();
        object.put("baseSnapshot", format!("snapshot-{}", self.base_turn));
        object.put("depth", self.depth);
        object.put_some("diffFormat", self.is_ours.then_some(DIFF_FORMAT));
        object.put("stateDiffs", self.state_diffs.clone());
        object.put("checksums", self.checksums.clone());
        object.put_unknown(&self.head.extra);
        Value::Object(object)
    }

    /// Reads the wire form. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a member that is missing or of the wrong type,
    /// [`ErrorKind::Version`] for differences that are written in a way that is not known here.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a snapshot")?;
        let base = fields.string("baseSnapshot")?;
        let base = Fields::required(base, "baseSnapshot", "a snapshot's id")?;
        let base_turn = base.strip_prefix("snapshot-").and_then(|turn| turn.parse().ok());
        let base_turn = base_turn.ok_or_else(|| {
            Error::expected("a snapshot's id", format_args!("{base:?}")).under("baseSnapshot")
        })?;
        let format = fields.u64("diffFormat")?;
        if format.is_some_and(|format| format != DIFF_FORMAT) {
            let message = format!("expected differences of format {DIFF_FORMAT}, found another");
            return Err(Error::new(ErrorKind::Version, message).under("diffFormat"));
        }
        let state_diffs = fields.object("stateDiffs")?;
        Ok(Self {
            base_turn,
            depth: fields.u64("depth")?.unwrap_or(1),
            state_diffs: Fields::required(state_diffs, "stateDiffs", "what differs")?,
            is_ours: format.is_some(),
            checksums: fields.object("checksums")?.unwrap_or_default(),
            head: StateSnapshot::of(fields, Data::Null)?,
        })
    }
}

fn differing(old: &Map, new: &Map) -> Result<Object> {
    let mut diffs = Object::new();
    for (member, after) in new.iter() {
        let mut change = Object::new();
        match old.get(member) {
            Some(before) if before == after => continue,
            Some(before) if member != SCENE && before.depth() > 0 => {
                let targets = Targets::none();
                change.put("patch", to_json_patch(&diff(before, after, &targets), &targets)?);
            }
            _ => change.put("full", after),
        }
        diffs.put(member, change);
    }
    for (member, _) in old.iter().filter(|(member, _)| new.get(member).is_none()) {
        diffs.put(member, Object::from_iter([("removed", true.into())]));
    }
    Ok(diffs)
}
