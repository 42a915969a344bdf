//! Who changed what, and when.

use std::sync::Arc;

use super::{
    Data, Delta, Event, Timeline, TurnRecord,
    change::{Change, Splice},
    data::index_of,
};
use crate::{
    Result,
    json::{Path, PathElement},
};

/// The last change of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The turn that made it.
    pub turn_id: u64,
    /// The delta.
    pub delta: Delta,
    /// The event that caused it, where the turn has it.
    pub event: Option<Event>,
    /// Who acted in the turn.
    pub actor: String,
}

/// A value that changed in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueChange {
    /// The turn.
    pub turn: Arc<TurnRecord>,
    /// The value before it; `None` where there was none.
    pub before: Option<Data>,
    /// The value after it; `None` where there is none.
    pub after: Option<Data>,
}

impl Timeline {
    /// Which delta made the value at a path what it is after `turn`, or changed something in it
    /// last; `None` where it is as it was in the beginning.
    ///
    /// Elements of an array are followed as others come and go before them. Reads turns from `turn`
    /// back to the one that answers.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) past the last turn; what cannot be
    /// read, where turns are in files.
    pub fn blame(&self, path: &Path, turn: u64) -> Result<Option<Blame>> {
        if turn > self.last_turn() {
            return Err(self.no_turn(turn));
        }
        let mut path = path.elements().to_vec();
        for turn in (1..=turn).rev() {
            let record = self.turn(turn)?;
            for delta in record.deltas.iter().rev() {
                if self.touches(delta, &mut path)? {
                    let event =
                        record.events.iter().find(|event| event.event_id() == delta.event_id);
                    return Ok(Some(Blame {
                        turn_id: turn,
                        delta: delta.clone(),
                        event: event.filter(|event| !event.event_id().is_empty()).cloned(),
                        actor: record.actor.clone(),
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Whether a delta changed the value at `path`, or something in it. Where it moved the value,
    /// `path` becomes the place before.
    fn touches(&self, delta: &Delta, path: &mut [PathElement]) -> Result<bool> {
        let base = self.targets.place(&delta.target)?.elements();
        let change = match Change::of(delta) {
            Ok(change) => change,
            // What was applied leniently is believed to be about its path.
            Err(_) => Change::Replace { previous: None, new: None },
        };
        let at = match &change {
            Change::Replace { .. } => delta.path.elements(),
            Change::Splice(splice) => splice.path,
        };
        let full: Vec<&PathElement> = base.iter().chain(at).collect();
        let common = full.iter().zip(path.iter()).take_while(|(a, b)| same(a, b)).count();
        if common == path.len() {
            return Ok(true);
        }
        if common < full.len() {
            return Ok(false);
        }
        let Some((next, inside)) = path.get_mut(common..).and_then(<[_]>::split_first_mut) else {
            return Ok(true);
        };
        Ok(match change {
            Change::Replace { previous: None, new: None } => true,
            Change::Replace { previous, new } => {
                let value = |whole: Option<&Data>| {
                    let found = whole.and_then(|whole| whole.at(std::slice::from_ref(next)));
                    found.and_then(|found| found.at(inside)).cloned()
                };
                value(previous) != value(new)
            }
            Change::Splice(splice) => moved(&splice, next),
        })
    }

    /// The turns in which the value at a path changed, up to `turn`, in order. Replays them all.
    ///
    /// Cost: O(deltas up to the turn), and one comparison of the value for each turn.
    ///
    /// # Errors
    /// Those of [`Timeline::state_at`].
    pub fn changes(&self, path: &Path, turn: u64) -> Result<Vec<ValueChange>> {
        if turn > self.last_turn() {
            return Err(self.no_turn(turn));
        }
        let mut state = self.nearest_snapshot(0)?.state.clone();
        let mut changes = Vec::new();
        for turn in 1..=turn {
            let record = self.turn(turn)?;
            let before = state.at(path.elements()).cloned();
            self.applier(record.lenient).apply_all(&mut state, &record.deltas)?;
            let after = state.at(path.elements());
            if before.as_ref() != after {
                let after = after.cloned();
                changes.push(ValueChange { turn: record, before, after });
            }
        }
        Ok(changes)
    }
}

fn same(a: &PathElement, b: &PathElement) -> bool {
    a == b || index_of(a).is_some_and(|index| Some(index) == index_of(b))
}

/// Whether a splice brought the element; else `element` becomes where it was before.
fn moved(splice: &Splice<'_>, element: &mut PathElement) -> bool {
    let Some(index) = index_of(element) else { return true };
    let (from, come, gone) = (splice.index, splice.inserted.len(), splice.removed.len());
    if index < from {
        return false;
    }
    if index - from < come {
        return true;
    }
    *element = PathElement::Index((index - come).saturating_add(gone));
    false
}
