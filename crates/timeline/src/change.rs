//! What a delta's values say: which value takes the place of which, or which elements come and go.

use super::{Data, Delta, DeltaOperation, List};
use crate::{Error, Result, json::PathElement};

/// A delta's change, with where it happens below the target's place.
#[derive(Debug)]
pub(super) enum Change<'d> {
    /// The value at the path becomes another; absent values are `None`.
    Replace { previous: Option<&'d Data>, new: Option<&'d Data> },
    /// Elements of the array at `path` give way to others.
    Splice(Splice<'d>),
}

#[derive(Debug)]
pub(super) struct Splice<'d> {
    pub(super) path: &'d [PathElement],
    pub(super) index: usize,
    pub(super) removed: Items<'d>,
    pub(super) inserted: Items<'d>,
    /// The length before; `None` where a delta of another program does not say it.
    pub(super) length: Option<usize>,
    /// The whole array before, where a delta of another program holds it.
    pub(super) whole: Option<&'d List>,
}

/// Some elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Items<'d> {
    None,
    One(&'d Data),
    Many(&'d List),
}

impl<'d> Items<'d> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Many(list) => list.len(),
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'d Data> {
        let (one, many) = match self {
            Self::None => (None, None),
            Self::One(item) => (Some(item), None),
            Self::Many(list) => (None, Some(list)),
        };
        one.into_iter().chain(many.into_iter().flat_map(List::iter))
    }
}

impl<'d> Change<'d> {
    /// # Errors
    /// `Shape` where the values are not what the operation asks for.
    pub(super) fn of(delta: &'d Delta) -> Result<Self> {
        let Delta { previous_value, new_value, .. } = delta;
        let (previous, new) = (previous_value.as_ref(), new_value.as_ref());
        let length = delta.previous_length.and_then(|length| usize::try_from(length).ok());
        let splice = |index, removed, inserted| {
            let path = delta.path.elements();
            Ok(Self::Splice(Splice { path, index, removed, inserted, length, whole: None }))
        };
        match delta.operation {
            DeltaOperation::Set => Ok(Self::Replace { previous, new }),
            DeltaOperation::Increment | DeltaOperation::Decrement => {
                // A counter that was not there yet counts from nothing.
                previous.map_or(Ok(()), |value| number(value, "previousValue"))?;
                number(new.ok_or_else(|| missing("newValue", "a number"))?, "newValue")?;
                Ok(Self::Replace { previous, new })
            }
            DeltaOperation::Create => {
                let new = new.ok_or_else(|| missing("newValue", "the entity"))?;
                Ok(Self::Replace { previous: None, new: Some(new) })
            }
            DeltaOperation::Delete | DeltaOperation::Destroy => {
                match (length, delta.path.elements()) {
                    (Some(_), [path @ .., last]) => {
                        let index = super::data::index_of(last).ok_or_else(|| {
                            Error::expected("an array index", "a key").under("path")
                        })?;
                        let item =
                            previous.ok_or_else(|| missing("previousValue", "the element"))?;
                        let (removed, inserted) = (Items::One(item), Items::None);
                        let whole = None;
                        Ok(Self::Splice(Splice { path, index, removed, inserted, length, whole }))
                    }
                    _ => Ok(Self::Replace { previous, new: None }),
                }
            }
            DeltaOperation::Append if length.is_some() => {
                let items = array(new, "newValue")?;
                splice(length.unwrap_or_default(), Items::None, Items::Many(items))
            }
            DeltaOperation::Append => {
                array(new, "newValue")?;
                if previous.is_some() {
                    array(previous, "previousValue")?;
                }
                Ok(Self::Replace { previous, new })
            }
            DeltaOperation::Remove
                if length.is_some() || matches!(previous, Some(Data::Object(_))) =>
            {
                let (index, items) = placed(previous, "previousValue")?;
                splice(index, items, Items::None)
            }
            DeltaOperation::Remove => {
                array(previous, "previousValue")?;
                array(new, "newValue")?;
                Ok(Self::Replace { previous, new })
            }
            DeltaOperation::Insert => {
                let whole = previous.and_then(Data::as_array).filter(|_| length.is_none());
                if whole.is_some() && matches!(new, Some(Data::Array(_))) {
                    return Ok(Self::Replace { previous, new });
                }
                let (index, inserted) = placed(new, "newValue")?;
                let (path, removed) = (delta.path.elements(), Items::None);
                let length = length.or(whole.map(List::len));
                Ok(Self::Splice(Splice { path, index, removed, inserted, length, whole }))
            }
        }
    }
}

/// `{index, item}` or `{index, items}`.
fn placed<'d>(value: Option<&'d Data>, name: &str) -> Result<(usize, Items<'d>)> {
    let found = || value.map_or("nothing", Data::kind);
    let expected = || Error::expected("an index with an item or items", found()).under(name);
    let value = value.ok_or_else(expected)?;
    let index = value.get("index").and_then(Data::as_number).and_then(crate::json::Number::as_u64);
    let index = index.and_then(|index| usize::try_from(index).ok()).ok_or_else(expected)?;
    let items = match (value.get("item"), value.get("items")) {
        (Some(item), None) => Items::One(item),
        (None, Some(Data::Array(items))) => Items::Many(items),
        _ => return Err(expected()),
    };
    Ok((index, items))
}

fn array<'d>(value: Option<&'d Data>, name: &str) -> Result<&'d List> {
    let found = value.map_or("nothing", Data::kind);
    let array = value.and_then(Data::as_array);
    array.ok_or_else(|| Error::expected("an array of elements", found).under(name))
}

fn number(value: &Data, name: &str) -> Result<()> {
    match value {
        Data::Number(_) => Ok(()),
        other => Err(Error::expected("a number", other.kind()).under(name)),
    }
}

fn missing(name: &str, what: &str) -> Error {
    Error::expected(what, "nothing").under(name)
}
