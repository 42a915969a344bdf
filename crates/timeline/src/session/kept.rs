//! The states that another program kept: snapshots, and its last state in files of their own.

use std::path::Path;

use super::{
    layout::{CURRENT, MOST_DOCUMENT, SNAPSHOTS, ends_in, snapshot_turn},
    sealed,
};
use crate::{
    Applier, CompressedSnapshot, Data, Delta, DeltaOperation, Difference, Result, SnapshotReason,
    StateSnapshot, Targets, Timeline, TurnRecord, differences,
    json::{self, Value},
    log::{Files, read_file},
    snapshot::PARTS,
};

/// The states that another program kept.
#[derive(Debug)]
pub(super) struct RecordedStates {
    /// In the order of their turns.
    snapshots: Vec<StateSnapshot>,
    /// The members of the last state that are there.
    last: Option<Data>,
}

impl RecordedStates {
    /// # Errors
    /// `Io`, and what reading the earliest snapshot or a file of the last state gives. What is wrong
    /// with the other snapshots is noted.
    pub(super) fn read(
        files: &dyn Files,
        directory: &Path,
        notes: &mut Vec<String>,
        mended: &mut u64,
    ) -> Result<Self> {
        let folder = directory.join(SNAPSHOTS);
        let mut names: Vec<(u64, String)> = sealed::names(files, &folder)?
            .into_iter()
            .filter(|name| ends_in(name, "json"))
            .filter_map(|name| Some((snapshot_turn(&name)?, name)))
            .collect();
        names.sort();
        let mut snapshots: Vec<StateSnapshot> = Vec::with_capacity(names.len());
        for (_, name) in names {
            let path = folder.join(&name);
            let value = read_counted(&read_file(files, &path, MOST_DOCUMENT)?, mended);
            match value
                .map_err(crate::Error::from)
                .and_then(|value| snapshot(value, &name, &snapshots, notes))
            {
                Ok(snapshot) => snapshots.push(snapshot),
                Err(error) if snapshots.is_empty() => return Err(error.in_file(path)),
                Err(error) => notes.push(format!("{name} is passed over: {error}")),
            }
        }
        Ok(Self { snapshots, last: last(files, directory, mended)? })
    }

    /// The state that the turns begin with.
    pub(super) fn beginning(&self, turns: &[TurnRecord], notes: &mut Vec<String>) -> Data {
        let (mut state, turns) = if let Some(first) = self.snapshots.first() {
            let before = turns.iter().take_while(|turn| turn.turn_id <= first.turn_id).count();
            if first.turn_id > 0 {
                let turn = first.turn_id;
                notes.push(format!(
                    "the earliest snapshot is of turn {turn}: the beginning is its state, with the deltas up to there taken back"
                ));
            }
            (first.state.clone(), turns.get(..before).unwrap_or_default())
        } else {
            notes.push(
                "there is no snapshot: the beginning is the last state, with every delta taken back"
                    .to_owned(),
            );
            let mut state = Timeline::empty_state();
            if let (Data::Object(state), Some(Data::Object(last))) = (&mut state, &self.last) {
                for (member, value) in last.iter() {
                    state.insert(member, value.clone());
                }
            }
            (state, turns)
        };
        let targets = Targets::default();
        for delta in turns.iter().rev().flat_map(|turn| turn.deltas.iter().rev()) {
            take_back(&mut state, delta, &targets);
        }
        state
    }

    /// Where the states are not what the turns, which had these ids, come to.
    ///
    /// # Errors
    /// Those of [`Timeline::state_at`].
    pub(super) fn compare(
        &self,
        timeline: &Timeline,
        ids: &[u64],
        notes: &mut Vec<String>,
    ) -> Result<Vec<(u64, Difference)>> {
        let mut found = Vec::new();
        if ids.is_sorted() {
            for snapshot in &self.snapshots {
                let turn = ids.partition_point(|id| *id <= snapshot.turn_id) as u64;
                let expected = timeline.state_at(turn)?;
                let differing = differences(&expected, &snapshot.state).into_iter();
                found.extend(differing.map(|difference| (turn, difference)));
            }
        } else if !self.snapshots.is_empty() {
            notes.push("the numbers of the turns fall, so no snapshot is compared".to_owned());
        }
        if let Some(Data::Object(last)) = &self.last {
            let members = last
                .iter()
                .filter_map(|(member, _)| Some((member, timeline.state().get(member).cloned()?)));
            let expected: Data = members.collect();
            let differing = differences(&expected, &Data::Object(last.clone())).into_iter();
            found.extend(differing.map(|difference| (timeline.last_turn(), difference)));
        }
        Ok(found)
    }
}

/// A snapshot, whole or as what differs from one before it. A reason that is not known is noted:
/// nothing here depends on it.
fn snapshot(
    mut value: Value,
    name: &str,
    before: &[StateSnapshot],
    notes: &mut Vec<String>,
) -> Result<StateSnapshot> {
    let reason = value.str_at("reason");
    if let Some(reason) = reason.filter(|reason| SnapshotReason::from_name(reason).is_none()) {
        notes.push(format!("{name} has a reason that is not known: {reason:?}"));
        if let Value::Object(members) = &mut value {
            members.shift_remove("reason");
        }
    }
    if value.get("baseSnapshot").is_none() {
        return StateSnapshot::from_json(value);
    }
    let compressed = CompressedSnapshot::from_json(value)?;
    let base = before.iter().find(|snapshot| snapshot.turn_id == compressed.base_turn);
    let base = base.ok_or_else(|| {
        let message = format!("the snapshot of turn {} is not there", compressed.base_turn);
        crate::Error::new(crate::ErrorKind::Base, message)
    })?;
    compressed.expand(base)
}

/// The members of the state that a program kept last: files of their own, or `state/current.json`.
fn last(files: &dyn Files, directory: &Path, mended: &mut u64) -> Result<Option<Data>> {
    let mut read = |path: &Path| {
        let value = read_counted(&read_file(files, path, MOST_DOCUMENT)?, mended);
        Ok::<_, crate::Error>(value.map(Data::from).map_err(|error| error.in_file(path))?)
    };
    let mut members = Vec::new();
    for name in sealed::names(files, directory)? {
        if let Some(member) = name.strip_suffix(".state.json") {
            members.push((member.to_owned(), read(&directory.join(&name))?));
        }
    }
    let current = directory.join(CURRENT);
    if members.is_empty() && sealed::read_if_there(files, &current)?.is_some() {
        let document = read(&current)?;
        let state = document.get("state").unwrap_or(&document).clone();
        return Ok(Some(state).filter(|state| PARTS.iter().any(|part| state.get(part).is_some())));
    }
    Ok(Some(members).filter(|members| !members.is_empty()).map(Data::from_iter))
}

/// Reads JSON; `mended` counts the escapes that are read as U+FFFD.
fn read_counted(bytes: &[u8], mended: &mut u64) -> json::Result<Value> {
    let (value, count) = json::read_mended(bytes)?;
    *mended += count;
    Ok(value)
}

/// Takes a delta back as another program means it: `null` before is nothing before, and an append
/// names the one item.
fn take_back(state: &mut Data, delta: &Delta, targets: &Targets) {
    let applier = Applier::lenient(targets);
    let was_nothing = delta.previous_value.as_ref().is_none_or(Data::is_null);
    let is_item = !matches!(delta.new_value, Some(Data::Array(_)));
    let back = match delta.operation {
        DeltaOperation::Append if was_nothing && is_item => Delta {
            operation: DeltaOperation::Remove,
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
