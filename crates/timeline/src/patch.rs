//! JSON Patch (RFC 6902) and merge patches (RFC 7396), to deltas and back.

use super::{
    Applier, Data, Delta, DeltaOperation, Targets,
    change::{Change, Items, Splice},
    data::index_of,
    diff,
    inverse::{full_path, placed},
};
use crate::{
    Error, ErrorKind, Result,
    json::{Fields, Object, ObjectExt, Path, PathElement, Value},
};

/// The deltas of a JSON Patch, for the state that it is to be applied to.
///
/// All of its operations hold or none: an operation that fails, a `test` too, is an error.
///
/// ```
/// use afterimage_timeline::{json, Data, Targets, from_json_patch, to_json_patch};
///
/// let state = Data::from(json::read(br#"{"player": {"bag": ["rope"]}}"#)?);
/// let patch = json::read(br#"[{"op": "add", "path": "/player/bag/-", "value": "lamp"}]"#)?;
/// let targets = Targets::default();
/// let deltas = from_json_patch(&state, &patch, &targets)?;
/// assert_eq!(deltas[0].operation.as_str(), "append");
/// let patch = to_json_patch(&deltas, &targets)?;
/// assert_eq!(patch.to_string(), r#"[{"op":"add","path":"/player/bag/1","value":"lamp"}]"#);
/// # Ok::<(), afterimage_timeline::Error>(())
/// ```
///
/// Cost: O(operations), each applied to a state that shares what does not change.
///
/// # Errors
/// [`ErrorKind::Shape`] for what is no patch, [`ErrorKind::OutOfRange`] where a place is not there,
/// [`ErrorKind::Drift`] where a `test` fails. The place has the index of the operation.
pub fn from_json_patch(state: &Data, patch: &Value, targets: &Targets) -> Result<Vec<Delta>> {
    let operations =
        patch.as_array().ok_or_else(|| Error::expected("a JSON Patch (an array)", patch.kind()))?;
    let mut patcher = Patcher { state: state.clone(), targets, deltas: Vec::new() };
    for (index, operation) in operations.iter().enumerate() {
        patcher.operation(operation).map_err(|error| error.at(|place| place.op = Some(index)))?;
    }
    Ok(patcher.deltas)
}

struct Patcher<'t> {
    state: Data,
    targets: &'t Targets,
    deltas: Vec<Delta>,
}

impl Patcher<'_> {
    fn operation(&mut self, operation: &Value) -> Result<()> {
        let mut fields = Fields::of(operation.clone(), "an operation")?;
        let op = Fields::required(fields.string("op")?, "op", "an operation")?;
        let path = pointer(&mut fields, "path")?;
        match op.as_str() {
            "add" => self.add(&path, value(&mut fields)?),
            "remove" => self.remove(&path).map(drop),
            "replace" => self.replace(&path, value(&mut fields)?),
            "copy" => {
                let from = pointer(&mut fields, "from")?;
                let value = self.found(&from)?.clone();
                self.add(&path, value)
            }
            "move" => {
                let from = pointer(&mut fields, "from")?;
                let value = self.found(&from)?.clone();
                if from == path {
                    return Ok(());
                }
                if path.elements().starts_with(from.elements()) {
                    let message = format!("{from} cannot move into itself");
                    return Err(Error::new(ErrorKind::OutOfRange, message));
                }
                self.remove(&from)?;
                self.add(&path, value)
            }
            "test" => {
                let value = value(&mut fields)?;
                let found = self.found(&path)?;
                if equal(found, &value) {
                    return Ok(());
                }
                let message = format!("the test fails: expected {value}, found {found}");
                Err(at(Error::new(ErrorKind::Drift, message), &path))
            }
            _ => Err(Error::expected(
                "add, remove, replace, move, copy or test",
                format_args!("{op:?}"),
            )
            .under("op")),
        }
    }

    fn found(&self, path: &Path) -> Result<&Data> {
        self.state.at(path.elements()).ok_or_else(|| absent(path))
    }

    /// Applies a delta at a path of the whole state, and keeps it.
    fn emit(
        &mut self,
        path: &[PathElement],
        operation: DeltaOperation,
        fill: impl FnOnce(Delta) -> Delta,
    ) -> Result<()> {
        let (target, path) = self.targets.of_path(path);
        let delta = fill(Delta::new(target, operation, path.into()));
        Applier::strict(self.targets).apply(&mut self.state, &delta)?;
        self.deltas.push(delta);
        Ok(())
    }

    fn replace(&mut self, path: &Path, new: Data) -> Result<()> {
        let previous = self.found(path)?.clone();
        self.emit(path.elements(), DeltaOperation::Set, |delta| delta.replacing(previous, new))
    }

    fn add(&mut self, path: &Path, new: Data) -> Result<()> {
        let Some((last, above)) = path.elements().split_last() else {
            return self.replace(path, new);
        };
        match self.state.at(above) {
            Some(Data::Object(map)) => {
                let PathElement::Key(key) = last else { return Err(absent(path)) };
                let previous = map.get(key).cloned();
                let operation = match (&previous, &new) {
                    (None, Data::Object(_)) => DeltaOperation::Create,
                    _ => DeltaOperation::Set,
                };
                self.emit(path.elements(), operation, |delta| delta.replacing(previous, new))
            }
            Some(Data::Array(list)) => {
                let length = list.len();
                let is_end = *last == PathElement::Key("-".to_owned());
                let index = if is_end { Some(length) } else { index_of(last) };
                let index = index.filter(|index| *index <= length).ok_or_else(|| absent(path))?;
                if index == length {
                    let items = Data::from_iter([new]);
                    return self.emit(above, DeltaOperation::Append, |delta| {
                        delta.replacing(None, items).of_length(length)
                    });
                }
                let new = placed(index, Items::One(&new));
                self.emit(above, DeltaOperation::Insert, |delta| {
                    delta.replacing(None, new).of_length(length)
                })
            }
            _ => Err(absent(path)),
        }
    }

    fn remove(&mut self, path: &Path) -> Result<()> {
        let previous = self.found(path)?.clone();
        let Some((last, above)) = path.elements().split_last() else {
            return Err(Error::new(ErrorKind::OutOfRange, "the whole state cannot be removed"));
        };
        let Some(Data::Array(list)) = self.state.at(above) else {
            return self.emit(path.elements(), DeltaOperation::Delete, |delta| {
                delta.replacing(previous, None)
            });
        };
        let length = list.len();
        let index = index_of(last).ok_or_else(|| absent(path))?;
        let previous = placed(index, Items::One(&previous));
        self.emit(above, DeltaOperation::Remove, |delta| {
            delta.replacing(previous, None).of_length(length)
        })
    }
}

fn pointer(fields: &mut Fields, name: &str) -> Result<Path> {
    let text = Fields::required(fields.string(name)?, name, "a JSON pointer")?;
    Ok(Path::from_pointer(&text).map_err(|error| error.under(name))?)
}

fn value(fields: &mut Fields) -> Result<Data> {
    let value = fields.take("value").map(Data::from);
    Ok(Fields::required(value, "value", "a value")?)
}

fn absent(path: &Path) -> Error {
    at(Error::new(ErrorKind::OutOfRange, "the path does not exist in the state"), path)
}

fn at(error: Error, path: &Path) -> Error {
    error.at(|place| place.path = Some(path.to_string()))
}

/// Equality as a `test` asks for it: numbers by their value.
fn equal(a: &Data, b: &Data) -> bool {
    match (a, b) {
        (Data::Number(a), Data::Number(b)) => {
            let exact = |n: &crate::json::Number| n.as_u64().is_some() || n.as_i64().is_some();
            a == b || !(exact(a) && exact(b)) && a.as_f64().total_cmp(&b.as_f64()).is_eq()
        }
        (Data::Array(a), Data::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| equal(a, b))
        }
        (Data::Object(a), Data::Object(b)) => {
            let same = |((a, x), (b, y)): ((&str, &Data), (&str, &Data))| a == b && equal(x, y);
            a.len() == b.len() && a.iter().zip(b.iter()).all(same)
        }
        (a, b) => a == b,
    }
}

/// The deltas as a JSON Patch. It does what they do to a state that shows what they expect.
///
/// Cost: O(deltas, and the items that they move).
///
/// # Errors
/// [`ErrorKind::Shape`] for a delta that makes no sense for any state.
pub fn to_json_patch(deltas: &[Delta], targets: &Targets) -> Result<Value> {
    let mut operations = Vec::new();
    for delta in deltas {
        let path = full_path(delta, targets)?;
        match Change::of(delta)? {
            Change::Replace { previous, new } => {
                let op = match (previous, new) {
                    (_, None) => "remove",
                    (None, Some(_)) => "add",
                    (Some(_), Some(_)) => "replace",
                };
                operations.push(operation(op, &path, new));
            }
            Change::Splice(Splice { path: array, index, removed, inserted, .. }) => {
                let base = targets.place(&delta.target)?.elements();
                let array: Path = base.iter().chain(array).cloned().collect();
                for _ in 0..removed.len() {
                    operations.push(operation("remove", &array.child(index), None));
                }
                for (offset, item) in inserted.iter().enumerate() {
                    operations.push(operation("add", &array.child(index + offset), Some(item)));
                }
            }
        }
    }
    Ok(Value::Array(operations))
}

fn operation(op: &str, path: &Path, value: Option<&Data>) -> Value {
    let mut object = Object::new();
    object.put("op", op);
    object.put("path", path.to_string());
    object.put_some("value", value);
    Value::Object(object)
}

/// A state with a merge patch applied: objects merge, `null` removes, everything else replaces.
///
/// Cost: O(the patch), and the members of the objects that it changes.
pub fn merge(state: &Data, patch: &Data) -> Data {
    let Data::Object(changes) = patch else { return patch.clone() };
    let mut merged = match state {
        Data::Object(map) => map.clone(),
        _ => super::Map::default(),
    };
    for (key, change) in changes.iter() {
        if change.is_null() {
            merged.remove(key);
        } else {
            let value = merge(merged.get(key).unwrap_or(&Data::Null), change);
            merged.insert(key, value);
        }
    }
    Data::Object(merged)
}

/// The deltas of a merge patch, for the state that it is to be applied to.
///
/// Cost: as [`merge`], and the comparison of both states.
pub fn from_merge_patch(state: &Data, patch: &Value, targets: &Targets) -> Vec<Delta> {
    diff(state, &merge(state, &Data::from(patch.clone())), targets)
}

/// The merge patch that turns one state into another.
///
/// Cost: O(both states).
///
/// # Errors
/// [`ErrorKind::Shape`], with the path, where a member of the new state is `null` and was not
/// before: a merge patch cannot say that.
pub fn to_merge_patch(before: &Data, after: &Data) -> Result<Value> {
    let Data::Object(new) = after else { return Ok(after.to_json()) };
    let empty = super::Map::default();
    let old = before.as_object().unwrap_or(&empty);
    let mut patch = Object::new();
    for (key, value) in new.iter() {
        if old.get(key) == Some(value) {
            continue;
        }
        if value.is_null() {
            return Err(Error::expected("a value that a merge patch can set", "null").under(key));
        }
        let member = to_merge_patch(old.get(key).unwrap_or(&Data::Null), value);
        patch.put(key, member.map_err(|error| error.under(key))?);
    }
    for (key, _) in old.iter().filter(|(key, _)| new.get(key).is_none()) {
        patch.put(key, Value::Null);
    }
    Ok(Value::Object(patch))
}
