use super::{
    Applier, Data, Delta, DeltaOperation, Event, Targets, change::Items, diff, inverse::placed,
};
use crate::{
    DeltaTarget, Error, Result,
    json::{Path, PathElement},
};

/// Collects the deltas of an event, and applies each, so that what comes next sees it.
///
/// Every method reads the value before from the state. Where nothing holds a new value yet, what
/// holds it is created with it.
#[derive(Debug)]
pub struct Changes<'t> {
    state: Data,
    targets: &'t Targets,
    cause: String,
    event_id: String,
    deltas: Vec<Delta>,
}

impl<'t> Changes<'t> {
    pub(super) fn new(state: Data, targets: &'t Targets) -> Self {
        Self { state, targets, cause: String::new(), event_id: String::new(), deltas: Vec::new() }
    }

    /// What follows comes from this event.
    pub(super) fn of_event(&mut self, event: &Event) {
        event.event_type().clone_into(&mut self.cause);
        event.event_id().clone_into(&mut self.event_id);
    }

    pub(super) fn into_deltas(self) -> Vec<Delta> {
        self.deltas
    }

    /// The state with every change so far.
    pub fn state(&self) -> &Data {
        &self.state
    }

    /// The value at a path of a target. A look-up for each element of the path.
    pub fn value(&self, target: &DeltaTarget, path: &Path) -> Option<&Data> {
        let place = self.targets.find(target)?;
        self.state.at(place.elements())?.at(path.elements())
    }

    /// Adds a delta, with the event as its cause, and applies it. Costs what [`Applier::apply`]
    /// does.
    ///
    /// # Errors
    /// Those of [`Applier::apply`].
    pub fn push(&mut self, delta: Delta) -> Result<()> {
        let delta = delta.caused_by(self.cause.as_str(), self.event_id.as_str());
        Applier::strict(self.targets).apply(&mut self.state, &delta)?;
        self.deltas.push(delta);
        Ok(())
    }

    /// Sets a value; nothing where it is that already. Costs what [`Changes::push`] does.
    ///
    /// # Errors
    /// Those of [`Changes::push`].
    pub fn set(&mut self, target: DeltaTarget, path: Path, new: impl Into<Data>) -> Result<()> {
        let new = new.into();
        let previous = self.value(&target, &path).cloned();
        if previous.as_ref() == Some(&new) {
            return Ok(());
        }
        if previous.is_none()
            && let Some(created) = self.missing(&target, &path, &new)?
        {
            return self.push(created);
        }
        self.push(Delta::new(target, DeltaOperation::Set, path).replacing(previous, new))
    }

    /// Adds to a number; one that is not there counts from zero. Costs what [`Changes::push`] does.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where something else is there or the sum is out
    /// of range; those of [`Changes::push`].
    pub fn add(&mut self, target: DeltaTarget, path: Path, amount: i64) -> Result<()> {
        let Some(previous) = self.value(&target, &path).cloned() else {
            return self.set(target, path, amount);
        };
        let number = previous.as_number().and_then(crate::json::Number::as_i64);
        let sum = number.and_then(|number| number.checked_add(amount)).ok_or_else(|| {
            Error::expected("an integer that can be counted on", &previous)
                .at(|place| place.path = Some(path.to_string()))
        })?;
        let operation =
            if amount < 0 { DeltaOperation::Decrement } else { DeltaOperation::Increment };
        self.push(Delta::new(target, operation, path).replacing(previous, Data::from(sum)))
    }

    /// Appends to an array, which is created where it is not there. Costs what [`Changes::push`]
    /// does.
    ///
    /// # Errors
    /// Those of [`Changes::push`].
    pub fn append(&mut self, target: DeltaTarget, path: Path, item: impl Into<Data>) -> Result<()> {
        let items = Data::from_iter([item.into()]);
        let Some(list) = self.value(&target, &path) else { return self.set(target, path, items) };
        let length = list.as_array().map_or(0, super::List::len);
        let append = Delta::new(target, DeltaOperation::Append, path);
        self.push(append.replacing(None, items).of_length(length))
    }

    /// Removes the first element of an array that `is_it` picks; nothing where there is none.
    /// Linear in the array.
    ///
    /// # Errors
    /// Those of [`Changes::push`].
    pub fn remove(
        &mut self,
        target: DeltaTarget,
        path: Path,
        is_it: impl Fn(&Data) -> bool,
    ) -> Result<()> {
        let Some(Data::Array(list)) = self.value(&target, &path) else { return Ok(()) };
        let found = list.iter().enumerate().find(|(_, item)| is_it(item));
        let Some((index, item)) = found else { return Ok(()) };
        let (previous, length) = (placed(index, Items::One(item)), list.len());
        let remove = Delta::new(target, DeltaOperation::Remove, path);
        self.push(remove.replacing(previous, None).of_length(length))
    }

    /// Takes a member away; nothing where it is not there. Costs what [`Changes::push`] does.
    ///
    /// # Errors
    /// Those of [`Changes::push`].
    pub fn delete(&mut self, target: DeltaTarget, path: Path) -> Result<()> {
        let Some(previous) = self.value(&target, &path).cloned() else { return Ok(()) };
        self.push(Delta::new(target, DeltaOperation::Delete, path).replacing(previous, None))
    }

    /// Changes the state in any way: the deltas are those by which it then differs. Costs a
    /// comparison of both states, and [`Changes::push`] for each delta.
    ///
    /// # Errors
    /// Those of [`Changes::push`].
    pub fn become_state(&mut self, after: &Data) -> Result<()> {
        diff(&self.state, after, self.targets).into_iter().try_for_each(|delta| self.push(delta))
    }

    /// The delta that creates the first thing on the way that is missing, with `new` in it; `None`
    /// where only the last step is missing.
    fn missing(&self, target: &DeltaTarget, path: &Path, new: &Data) -> Result<Option<Delta>> {
        let place = self.targets.place(target)?.elements();
        let all: Vec<&PathElement> = place.iter().chain(path.elements()).collect();
        let mut at = Some(&self.state);
        let is_there = |element: &&&PathElement| {
            at = at.and_then(|at| at.at(std::slice::from_ref(**element)));
            at.is_some()
        };
        let there = all.iter().take_while(is_there).count();
        if there + 1 >= all.len() {
            return Ok(None);
        }
        let (way, rest) = all.split_at(there + 1);
        let value = rest.iter().rev().fold(new.clone(), |inner, element| {
            let key = match element {
                PathElement::Key(key) => key.clone(),
                PathElement::Index(index) => index.to_string(),
            };
            Data::from_iter([(key, inner)])
        });
        let way: Vec<PathElement> = way.iter().copied().cloned().collect();
        let (target, path) = self.targets.of_path(&way);
        Ok(Some(Delta::new(target, DeltaOperation::Create, path.into()).replacing(None, value)))
    }
}
