//! Elements of an array that come and go.

use super::{
    Data, DeltaOutcome, List,
    apply::{check_depth, drifted, shown},
    change::Splice,
};
use crate::{Error, Result, json::PathElement};

impl Splice<'_> {
    /// Applies it strictly, below `base`.
    ///
    /// # Errors
    /// `Drift` where the array is neither the one before nor the one after, `Limit`.
    pub(super) fn apply(&self, state: &mut Data, base: &[PathElement]) -> Result<DeltaOutcome> {
        let Self { path, index, removed, inserted, .. } = *self;
        for item in inserted.iter() {
            check_depth(base, path, item)?;
        }
        let list = match state.at_mut(base).and_then(|at| at.at_mut(path)) {
            Some(Data::Array(list)) => list,
            Some(other) => return Err(drifted(base, path, "an array", other.kind())),
            None if inserted.len() == 0 => return Ok(DeltaOutcome::Unchanged),
            None => return Err(drifted(base, path, "an array", "nothing")),
        };
        if self.fits(list) {
            for _ in 0..removed.len() {
                list.0.remove(index);
            }
            for (offset, item) in inserted.iter().enumerate() {
                list.0.insert(index + offset, item.clone());
            }
            return Ok(DeltaOutcome::Changed);
        }
        if self.is_done(list) { Ok(DeltaOutcome::Unchanged) } else { Err(self.drift(base, list)) }
    }

    /// Whether a list is the one before.
    fn fits(&self, list: &List) -> bool {
        self.length.is_none_or(|length| length == list.len())
            && self.whole.is_none_or(|whole| whole == list)
            && self.index.checked_add(self.removed.len()).is_some_and(|end| end <= list.len())
            && shows(list, self.index, self.removed.iter())
    }

    /// Whether a list is the one after.
    fn is_done(&self, list: &List) -> bool {
        let Some(length) = self.length else {
            // An insert can always take place. What was removed is nowhere.
            let is_there = |item: &Data| list.iter().any(|other| other == item);
            return self.inserted.len() == 0 && !self.removed.iter().any(is_there);
        };
        let rest = length.checked_sub(self.removed.len());
        rest.and_then(|rest| rest.checked_add(self.inserted.len())) == Some(list.len())
            && shows(list, self.index, self.inserted.iter())
            && self.whole.is_none_or(|whole| {
                let (before, after) =
                    (whole.iter().take(self.index), whole.iter().skip(self.index));
                list.iter().eq(before.chain(self.inserted.iter()).chain(after))
            })
    }

    fn drift(&self, base: &[PathElement], list: &List) -> Error {
        let Self { path, index, removed, length, whole, .. } = *self;
        let of_length = length.is_none_or(|length| length == list.len());
        if let Some(whole) = whole.filter(|whole| index <= whole.len()) {
            return drifted(base, path, text(whole.iter()), text(list.iter()));
        }
        if of_length && removed.len() > 0 {
            let expected = format!("{} from index {index} on", text(removed.iter()));
            let found = text(list.iter().skip(index).take(removed.len()));
            return drifted(base, path, expected, found);
        }
        let least = if of_length { "at least " } else { "" };
        let expected = length.filter(|_| !of_length).unwrap_or(index);
        let elements = if expected == 1 { "element" } else { "elements" };
        let expected = format_args!("an array of {least}{expected} {elements}");
        drifted(base, path, expected, format_args!("one of {}", list.len()))
    }
}

fn text<'d>(items: impl Iterator<Item = &'d Data>) -> String {
    shown(Some(&items.cloned().collect::<Data>()))
}

/// Whether a list holds these elements from an index on.
fn shows<'d>(list: &List, index: usize, items: impl Iterator<Item = &'d Data>) -> bool {
    let at = |offset: usize| index.checked_add(offset).and_then(|index| list.get(index));
    items.enumerate().all(|(offset, item)| at(offset) == Some(item))
}
