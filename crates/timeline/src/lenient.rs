//! What is done with a delta that does not fit the state.

use super::{
    Data, Delta, DeltaOperation, Drift, List,
    apply::{check_depth, parent, pointer, shown},
    change::{Change, Items, Splice},
    data::index_of,
};
use crate::{
    Error, ErrorKind, Result,
    json::{Number, PathElement},
};

/// Applies a delta as well as that can be done, after `refusal`.
///
/// # Errors
/// `Limit` where the state would become too deep, `Shape` where nothing can be done.
pub(super) fn apply(
    state: &mut Data,
    base: &[PathElement],
    delta: &Delta,
    refusal: &Error,
) -> Result<Drift> {
    let path = delta.path.elements();
    let found = state.at(base).and_then(|at| at.at(path)).cloned();
    if let Some(new) = &delta.new_value {
        check_depth(base, path, new)?;
    }
    let done = match delta.operation {
        DeltaOperation::Append => append(state, base, path, delta, found.as_ref())?,
        DeltaOperation::Remove | DeltaOperation::Insert => {
            splice(state, base, path, delta, found.as_ref())?
        }
        DeltaOperation::Delete | DeltaOperation::Destroy => remove_at(state, base, path),
        DeltaOperation::Increment | DeltaOperation::Decrement => {
            let new = counted(delta, found.as_ref());
            put(state, base, path, new)?
        }
        DeltaOperation::Set | DeltaOperation::Create => match &delta.new_value {
            Some(new) => put(state, base, path, new.clone())?,
            None => remove_at(state, base, path),
        },
    };
    // Where the delta makes no sense in itself, the refusal names a member of the delta.
    let in_state = refusal.place().path.clone().filter(|_| refusal.kind() == ErrorKind::Drift);
    Ok(Drift {
        turn_id: delta.turn_id,
        delta_id: delta.delta_id.clone(),
        path: in_state.unwrap_or_else(|| pointer(base, path)),
        expected: shown(delta.previous_value.as_ref()),
        found: shown(found.as_ref()),
        done,
    })
}

/// Puts a value at a path, with objects on the way where nothing is.
fn put(state: &mut Data, base: &[PathElement], path: &[PathElement], new: Data) -> Result<String> {
    let mut at = state;
    for element in base.iter().chain(path) {
        if !matches!(at, Data::Object(_) | Data::Array(_)) {
            *at = Data::object();
        }
        at = match at {
            Data::Array(list) => {
                let Some(index) = index_of(element) else {
                    return Ok("nothing was done: an array has no such place".to_owned());
                };
                if index >= list.len() {
                    list.push(Data::Null);
                }
                let last = list.len() - 1;
                list.0.get_mut(index.min(last))
            }
            Data::Object(map) => {
                let key: &str = match element {
                    PathElement::Key(key) => key,
                    PathElement::Index(index) => &index.to_string(),
                };
                if map.get(key).is_none() {
                    map.insert(key, Data::Null);
                }
                map.get_mut(key)
            }
            _ => None,
        }
        .ok_or_else(|| Error::expected("a place for it", "none"))?;
    }
    *at = new;
    Ok("the new value was put there".to_owned())
}

fn remove_at(state: &mut Data, base: &[PathElement], path: &[PathElement]) -> String {
    let Some((above, below, last)) = parent(base, path) else {
        return "nothing was done: the whole state cannot go".to_owned();
    };
    let removed = match state.at_mut(above).and_then(|at| at.at_mut(below)) {
        Some(Data::Object(map)) => match last {
            PathElement::Key(key) => map.remove(key),
            PathElement::Index(index) => map.remove(&index.to_string()),
        },
        Some(Data::Array(list)) => index_of(last).and_then(|index| list.0.remove(index)),
        _ => None,
    };
    if removed.is_some() { "what was there was removed" } else { "nothing was there to remove" }
        .to_owned()
}

/// Appends what is new: with both arrays known, the elements by which they differ; else the value.
fn append(
    state: &mut Data,
    base: &[PathElement],
    path: &[PathElement],
    delta: &Delta,
    found: Option<&Data>,
) -> Result<String> {
    let mut list = match found {
        Some(Data::Array(list)) => list.clone(),
        _ => List::default(),
    };
    let items = match (&delta.previous_value, &delta.new_value) {
        (Some(Data::Array(previous)), Some(Data::Array(new)))
            if delta.previous_length.is_none() =>
        {
            without(new, previous)
        }
        (_, Some(Data::Array(new))) => new.iter().cloned().collect(),
        (_, Some(item)) => vec![item.clone()],
        (_, None) => Vec::new(),
    };
    let count = items.len();
    items.into_iter().for_each(|item| list.push(item));
    put(state, base, path, Data::Array(list))?;
    Ok(format!("{} appended", were(count, "element")))
}

fn splice(
    state: &mut Data,
    base: &[PathElement],
    path: &[PathElement],
    delta: &Delta,
    found: Option<&Data>,
) -> Result<String> {
    let Some(Data::Array(list)) = found else {
        return Ok("nothing was done: there is no array".to_owned());
    };
    let mut list = list.clone();
    let gone = match (Change::of(delta), &delta.previous_value, &delta.new_value) {
        (Ok(Change::Splice(Splice { index, removed, inserted, .. })), ..) => {
            let at = index.min(list.len());
            for (offset, item) in inserted.iter().enumerate() {
                list.0.insert(at + offset, item.clone());
            }
            removed.iter().cloned().collect()
        }
        (_, Some(Data::Array(previous)), Some(Data::Array(new))) => without(previous, new),
        (_, Some(item), _) => vec![item.clone()],
        _ => Items::None.iter().cloned().collect(),
    };
    let mut count = 0;
    for item in &gone {
        let at = list.iter().position(|other| other == item);
        if let Some(at) = at {
            list.0.remove(at);
            count += 1;
        }
    }
    put(state, base, path, Data::Array(list))?;
    let done = if delta.operation == DeltaOperation::Insert {
        "it was inserted as near as it goes".to_owned()
    } else {
        format!("{} removed", were(count, "equal element"))
    };
    Ok(done)
}

fn were(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what} was"),
        _ => format!("{count} {what}s were"),
    }
}

/// The elements of `list` that `other` does not have, by value; of equal ones, as many as it has
/// more.
fn without(list: &List, other: &List) -> Vec<Data> {
    let mut rest: Vec<&Data> = other.iter().collect();
    let is_new = |item: &&Data| match rest.iter().position(|known| known == item) {
        Some(at) => {
            rest.swap_remove(at);
            false
        }
        None => true,
    };
    list.iter().filter(is_new).cloned().collect()
}

/// What was found, moved by as much as the delta moves; the delta's new value where that is not a
/// number that 64 bits hold.
fn counted(delta: &Delta, found: Option<&Data>) -> Data {
    let integer = |value: Option<&Data>| -> Option<i128> {
        let number = value?.as_number()?;
        number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
    };
    let float = |value: Option<&Data>| value.and_then(Data::as_number).map(Number::as_f64);
    let new = delta.new_value.as_ref();
    let previous = delta.previous_value.as_ref();
    let moved = || {
        let (found, new, previous) =
            (integer(found)?, integer(new)?, integer(previous).unwrap_or(0));
        let sum = found + new - previous;
        let unsigned = u64::try_from(sum).ok().map(Data::from);
        unsigned.or_else(|| i64::try_from(sum).ok().map(Data::from))
    };
    let approximately = || {
        let sum = float(found)? + float(new)? - float(previous).unwrap_or(0.0);
        Number::from_f64(sum).map(Data::Number)
    };
    moved().or_else(approximately).or_else(|| new.cloned()).unwrap_or_default()
}
