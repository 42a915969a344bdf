//! Merging a partial response into what is known.

use std::collections::HashMap;

use super::{Ages, Moment, Pointer, changes::Changes, pointer::id_text};
use crate::json::Value;

/// A partial response on its way into an observation.
///
/// Objects merge member by member, arrays with a key element by element; everything else takes the
/// place of what was there. Nothing that the response does not name is touched.
pub(super) struct Merging<'k> {
    /// The member by which the elements of the array at a path are told apart.
    pub(super) keys: &'k dyn Fn(&[String]) -> Option<String>,
    pub(super) seen: Moment,
    pub(super) changes: Changes,
    /// Places, and whether the response named all that stands there.
    pub(super) watched: Vec<(Pointer, bool)>,
}

impl Merging<'_> {
    /// Merges `new` into `known`. Says whether `new` named all that `known` now holds, which then
    /// has one age.
    pub(super) fn merge(&mut self, known: &mut Value, new: Value, ages: &mut Ages) -> bool {
        let is_whole = match (known, new) {
            (Value::Object(known), Value::Object(new)) => {
                let (members, mut is_whole) = (new.len(), true);
                for (key, value) in new {
                    self.changes.enter(&key);
                    let inside = ages.enter(&key);
                    if let Some(known) = known.get_mut(&key) {
                        is_whole &= self.merge(known, value, inside);
                    } else {
                        self.appears(inside);
                        known.insert(key, value);
                    }
                    self.changes.leave();
                }
                is_whole && known.len() == members
            }
            (known, new) => match (known, new, (self.keys)(self.changes.path())) {
                (Value::Array(known), Value::Array(new), Some(key))
                    if are_keyed(known, &key) && are_keyed(&new, &key) =>
                {
                    self.merge_elements(known, new, &key, ages)
                }
                (known, new, _) => {
                    if *known != new {
                        self.changes.note();
                        *known = new;
                    }
                    true
                }
            },
        };
        if is_whole {
            ages.set(self.seen);
            self.watch();
        }
        is_whole
    }

    /// Notes that something stands at the path that did not before.
    fn appears(&mut self, ages: &mut Ages) {
        self.changes.note();
        ages.set(self.seen);
        self.watch();
    }

    /// Notes that all that stands at the path was named.
    fn watch(&mut self) {
        let path = self.changes.path();
        for (place, is_named) in &mut self.watched {
            *is_named |= place.segments().starts_with(path);
        }
    }

    fn merge_elements(
        &mut self,
        known: &mut Vec<Value>,
        new: Vec<Value>,
        key: &str,
        ages: &mut Ages,
    ) -> bool {
        let mut places: HashMap<String, usize> = HashMap::with_capacity(known.len());
        for (index, element) in known.iter().enumerate() {
            if let Some(id) = element.get(key).and_then(id_text) {
                places.entry(id).or_insert(index);
            }
        }
        let before = known.len();
        let (mut named, mut is_whole) = (vec![false; before], true);
        for element in new {
            let Some(id) = element.get(key).and_then(id_text) else { continue };
            let name = format!("{key}={id}");
            self.changes.enter(&name);
            let inside = ages.enter(&name);
            let place = places.get(&id).copied();
            if let Some((place, found)) = place.and_then(|at| Some((at, known.get_mut(at)?))) {
                is_whole &= self.merge(found, element, inside);
                if let Some(named) = named.get_mut(place) {
                    *named = true;
                }
            } else {
                self.appears(inside);
                places.insert(id, known.len());
                known.push(element);
            }
            self.changes.leave();
        }
        is_whole && named.into_iter().all(|named| named)
    }
}

/// Whether every element has a name.
fn are_keyed(array: &[Value], key: &str) -> bool {
    array
        .iter()
        .all(|element| matches!(element.get(key), Some(Value::String(_) | Value::Number(_))))
}
