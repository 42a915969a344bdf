use super::{
    Applier, Data, Delta, DeltaOperation, Targets,
    change::{Change, Items, Splice},
    diff,
};
use crate::{Result, json::Path};

impl Delta {
    /// The delta that takes this one back. It keeps the id, the turn and the cause. O(its values).
    ///
    /// `create` and `destroy`, `increment` and `decrement`, `append` and `remove`, `insert` and
    /// `remove` answer each other; `set` and `delete` are taken back by `set`.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where the delta makes no sense for any state.
    pub fn reversed(&self) -> Result<Self> {
        let swapped = Self {
            previous_value: self.new_value.clone(),
            new_value: self.previous_value.clone(),
            previous_length: None,
            ..self.clone()
        };
        Ok(match Change::of(self)? {
            Change::Splice(splice) => self.unspliced(&splice),
            Change::Replace { .. } => {
                let operation = match self.operation {
                    // A counter that was not there is taken away as a whole.
                    DeltaOperation::Increment if self.previous_value.is_some() => {
                        DeltaOperation::Decrement
                    }
                    DeltaOperation::Decrement if self.previous_value.is_some() => {
                        DeltaOperation::Increment
                    }
                    // An array that was not there is taken away as a whole.
                    DeltaOperation::Append if self.previous_value.is_some() => {
                        DeltaOperation::Remove
                    }
                    DeltaOperation::Remove => DeltaOperation::Append,
                    DeltaOperation::Create => DeltaOperation::Destroy,
                    DeltaOperation::Destroy => DeltaOperation::Create,
                    _ => DeltaOperation::Set,
                };
                // What was created was not there, whatever its delta says of the time before.
                let new_value =
                    swapped.new_value.filter(|_| self.operation != DeltaOperation::Create);
                let previous_value = swapped.previous_value.filter(|_| {
                    !matches!(self.operation, DeltaOperation::Delete | DeltaOperation::Destroy)
                });
                Self { operation, previous_value, new_value, ..swapped }
            }
        })
    }

    fn unspliced(&self, splice: &Splice<'_>) -> Self {
        let Splice { path, index, removed, inserted, length, .. } = *splice;
        let before = length.unwrap_or(index);
        let after = before.saturating_add(inserted.len()).saturating_sub(removed.len());
        let base = Self { path: path.into(), previous_length: Some(after as u64), ..self.clone() };
        if inserted.len() > 0 {
            let previous = placed(index, inserted);
            // Without the length before there is none after, either.
            let previous_length = base.previous_length.filter(|_| length.is_some());
            let base = Self { previous_length, ..base };
            return Self { operation: DeltaOperation::Remove, ..base }.replacing(previous, None);
        }
        if index == after {
            let items: Data = removed.iter().cloned().collect();
            return Self { operation: DeltaOperation::Append, ..base }.replacing(None, items);
        }
        Self { operation: DeltaOperation::Insert, ..base }.replacing(None, placed(index, removed))
    }
}

/// `{index, item}` or `{index, items}`.
pub(super) fn placed(index: usize, items: Items<'_>) -> Data {
    let index = ("index", Data::from(index as u64));
    match items {
        Items::One(item) => Data::from_iter([index, ("item", item.clone())]),
        items => Data::from_iter([index, ("items", items.iter().cloned().collect())]),
    }
}

/// The deltas that take a turn back: the inverses of its deltas, the last one first.
///
/// Cost: O(deltas).
///
/// # Errors
/// Those of [`Delta::reversed`].
pub fn invert(deltas: &[Delta]) -> Result<Vec<Delta>> {
    deltas.iter().rev().map(Delta::reversed).collect()
}

/// The net effect of a run of deltas on `before`: what is left of it when everything that was
/// changed back, or changed again, is left out.
///
/// Cost: applies the deltas, and compares both states.
///
/// # Errors
/// Those of [`Applier::apply`], strictly.
pub fn squash(before: &Data, deltas: &[Delta], targets: &Targets) -> Result<Vec<Delta>> {
    let mut after = before.clone();
    Applier::strict(targets).apply_all(&mut after, deltas)?;
    Ok(diff(before, &after, targets))
}

/// The path of a delta in the whole state.
pub(super) fn full_path(delta: &Delta, targets: &Targets) -> Result<Path> {
    let base = targets.place(&delta.target)?.elements();
    Ok(base.iter().chain(delta.path.elements()).cloned().collect())
}
