use std::fmt;

use super::{Data, Delta, Map, Targets, change::Change, data::index_of, lenient};
use crate::{
    Error, ErrorKind, Result,
    json::{Path, PathElement},
};

/// The deepest nesting of a state: what holds it in a file still has to be read.
pub const MAX_STATE_DEPTH: usize = 112;

/// The one place where deltas take effect.
///
/// A delta applies when the state shows its previous value, and does nothing when the state already
/// shows the result, so that applying it twice in a row is applying it once (but for an insert of
/// another program that does not say how long the array was: see
/// [`DeltaOperation`](super::DeltaOperation)). Anything else is drift: an error, and the state
/// stays as it is, or, leniently, the best that can be done, which is then said.
#[derive(Clone, Copy, Debug)]
pub struct Applier<'t> {
    targets: &'t Targets,
    lenient: bool,
}

/// What became of a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeltaOutcome {
    /// The state showed the previous value, and now shows the new one.
    Changed,
    /// The state showed the new value already.
    Unchanged,
    /// The state showed neither; what was done instead.
    BestEffort(Drift),
}

/// Where a state is not what a delta expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The turn of the delta.
    pub turn_id: u64,
    /// The delta.
    pub delta_id: String,
    /// Where in the state, as a JSON pointer.
    pub path: String,
    /// What the delta expects there; its beginning, where it is long.
    pub expected: String,
    /// What is there; its beginning, where it is long.
    pub found: String,
    /// What was done about it.
    pub done: String,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { turn_id, delta_id, path, expected, found, done } = self;
        write!(
            f,
            "turn {turn_id}, delta {delta_id:?}, at {path:?}: expected {expected}, found {found}; {done}"
        )
    }
}

impl<'t> Applier<'t> {
    /// One that refuses what does not fit.
    pub fn strict(targets: &'t Targets) -> Self {
        Self { targets, lenient: false }
    }

    /// One that does its best with what does not fit: real logs have broken chains.
    pub fn lenient(targets: &'t Targets) -> Self {
        Self { targets, lenient: true }
    }

    /// Applies a delta. Runs in O(length of the path · log n) time, and in that of comparing the
    /// previous value.
    ///
    /// # Errors
    /// [`ErrorKind::Drift`] where the state shows something else, [`ErrorKind::Shape`] where the
    /// delta makes no sense for any state, [`ErrorKind::Limit`] where the state would be nested
    /// deeper than [`MAX_STATE_DEPTH`]. They name turn, delta and path, and the state is as it was.
    /// A lenient applier gives only the last two.
    pub fn apply(&self, state: &mut Data, delta: &Delta) -> Result<DeltaOutcome> {
        self.try_apply(state, delta).map_err(|error| {
            error.at(|place| {
                place.turn = Some(delta.turn_id).filter(|turn| *turn > 0).or(place.turn);
                if !delta.delta_id.is_empty() {
                    place.delta = Some(delta.delta_id.clone());
                }
            })
        })
    }

    /// Applies deltas in order; all of them or, after an error, none.
    ///
    /// Cost: what [`Applier::apply`] costs for each; the state is shared, not copied.
    ///
    /// # Errors
    /// Those of [`Applier::apply`].
    pub fn apply_all<'d>(
        &self,
        state: &mut Data,
        deltas: impl IntoIterator<Item = &'d Delta>,
    ) -> Result<Vec<Drift>> {
        let mut next = state.clone();
        let mut drift = Vec::new();
        for delta in deltas {
            if let DeltaOutcome::BestEffort(found) = self.apply(&mut next, delta)? {
                drift.push(found);
            }
        }
        *state = next;
        Ok(drift)
    }

    /// Takes a delta back: applies its inverse. Costs what [`Applier::apply`] does.
    ///
    /// # Errors
    /// Those of [`Applier::apply`].
    pub fn reverse(&self, state: &mut Data, delta: &Delta) -> Result<DeltaOutcome> {
        self.apply(state, &delta.reversed()?)
    }

    fn try_apply(&self, state: &mut Data, delta: &Delta) -> Result<DeltaOutcome> {
        let base = self.targets.place(&delta.target)?.elements();
        let strictly = Change::of(delta).and_then(|change| match change {
            Change::Replace { previous, new } => {
                replace(state, base, delta.path.elements(), previous, new)
            }
            Change::Splice(splice) => splice.apply(state, base),
        });
        match strictly {
            Err(error)
                if self.lenient && matches!(error.kind(), ErrorKind::Drift | ErrorKind::Shape) =>
            {
                lenient::apply(state, base, delta, &error).map(DeltaOutcome::BestEffort)
            }
            other => other,
        }
    }
}

/// A refusal that says what was expected and found where.
pub(super) fn drifted(
    base: &[PathElement],
    path: &[PathElement],
    expected: impl fmt::Display,
    found: impl fmt::Display,
) -> Error {
    let message = format!("the state has drifted: expected {expected}, found {found}");
    Error::new(ErrorKind::Drift, message).at(|place| place.path = Some(pointer(base, path)))
}

pub(super) fn pointer(base: &[PathElement], path: &[PathElement]) -> String {
    shortened(&base.iter().chain(path).cloned().collect::<Path>().to_string(), 400)
}

/// A value for a message; its beginning, where it is long.
pub(super) fn shown(value: Option<&Data>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| shortened(&value.to_string(), 80))
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Refuses a value that would make the state too deep.
pub(super) fn check_depth(base: &[PathElement], path: &[PathElement], new: &Data) -> Result<()> {
    let depth = base.len() + path.len() + new.depth();
    if depth <= MAX_STATE_DEPTH {
        return Ok(());
    }
    let message =
        format!("the state would be nested {depth} levels deep; the limit is {MAX_STATE_DEPTH}");
    Err(Error::new(ErrorKind::Limit, message).at(|place| place.path = Some(pointer(base, path))))
}

/// The way to a value: to what holds it, and from there.
type Way<'p> = (&'p [PathElement], &'p [PathElement], &'p PathElement);

/// Splits off the last step of a path that is given in two parts; `None` at the root.
pub(super) fn parent<'p>(base: &'p [PathElement], path: &'p [PathElement]) -> Option<Way<'p>> {
    if let [above @ .., last] = path {
        return Some((base, above, last));
    }
    let (last, above) = base.split_last()?;
    Some((above, &[], last))
}

fn replace(
    state: &mut Data,
    base: &[PathElement],
    path: &[PathElement],
    previous: Option<&Data>,
    new: Option<&Data>,
) -> Result<DeltaOutcome> {
    let drift = |found: Option<&Data>| Err(drifted(base, path, shown(previous), shown(found)));
    if let Some(new) = new {
        check_depth(base, path, new)?;
    }
    let Some((above, below, last)) = parent(base, path) else {
        let Some(new) = new else {
            return Err(
                Error::expected("a new value for the whole state", "nothing").under("newValue")
            );
        };
        if previous == Some(state) {
            *state = new.clone();
            return Ok(DeltaOutcome::Changed);
        }
        return if state == new { Ok(DeltaOutcome::Unchanged) } else { drift(Some(state)) };
    };
    match state.at_mut(above).and_then(|at| at.at_mut(below)) {
        Some(Data::Object(map)) => {
            let key: &str = match last {
                PathElement::Key(key) => key,
                PathElement::Index(index) => &index.to_string(),
            };
            match replace_member(map, key, previous, new) {
                Some(applied) => Ok(applied),
                None => drift(map.get(key)),
            }
        }
        Some(Data::Array(list)) => {
            let found = index_of(last).and_then(|index| list.0.get_mut(index));
            match (found, previous, new) {
                (Some(slot), Some(previous), Some(new)) if slot == previous => {
                    *slot = new.clone();
                    Ok(DeltaOutcome::Changed)
                }
                (Some(slot), _, Some(new)) if slot == new => Ok(DeltaOutcome::Unchanged),
                (None, _, None) => Ok(DeltaOutcome::Unchanged),
                (found, Some(_), Some(_)) => drift(found.as_deref()),
                _ => Err(no_hole(base, path)),
            }
        }
        // What is not there is not there in nothing, either.
        None if new.is_none() => Ok(DeltaOutcome::Unchanged),
        Some(found) => {
            let found = found.kind();
            let above = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
            Err(drifted(base, above, "an object or an array", found))
        }
        None => Err(drifted(base, path, "something that holds it", "nothing")),
    }
}

fn no_hole(base: &[PathElement], path: &[PathElement]) -> Error {
    let message = "cannot set an element past the end of an array or delete one; use append, insert or remove (or delete with previousLength)";
    Error::new(ErrorKind::Shape, message).at(|place| place.path = Some(pointer(base, path)))
}

/// Replaces a member; `None` where it shows neither value.
fn replace_member(
    map: &mut Map,
    key: &str,
    previous: Option<&Data>,
    new: Option<&Data>,
) -> Option<DeltaOutcome> {
    match (map.get_mut(key), new) {
        (Some(slot), Some(new)) => {
            if previous == Some(slot) {
                *slot = new.clone();
                Some(DeltaOutcome::Changed)
            } else {
                (slot == new).then_some(DeltaOutcome::Unchanged)
            }
        }
        (Some(slot), None) => {
            if previous == Some(slot) {
                map.remove(key);
                Some(DeltaOutcome::Changed)
            } else {
                None
            }
        }
        (None, Some(new)) => previous.is_none().then(|| {
            map.insert(key, new.clone());
            DeltaOutcome::Changed
        }),
        (None, None) => Some(DeltaOutcome::Unchanged),
    }
}
