use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Moment, Pointer, pointer::id_text};
use crate::json::Value;

/// When each path of an observation was last seen.
///
/// A response names its scalars, its empty containers, and its arrays unless they are merged by a
/// key. Each of these is as old as the last response that named it; what holds several is as old
/// as the oldest of them. Only what differs from the observation's own moment is kept. Its wire
/// form is that of a database (`docs/FORMAT.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ages {
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Moment>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inside: BTreeMap<String, Ages>,
}

impl Ages {
    /// Whether every path is as old as the observation.
    pub fn is_empty(&self) -> bool {
        self.seen.is_none() && self.inside.is_empty()
    }

    /// Whether a part named all of a member since the whole was seen.
    pub(super) fn is_named(&self, member: &str) -> bool {
        self.inside.get(member).is_some_and(|inside| inside.seen.is_some())
    }

    /// What lies under a member or an element.
    pub(super) fn enter(&mut self, segment: &str) -> &mut Ages {
        if !self.inside.contains_key(segment) {
            self.inside.insert(segment.to_owned(), Ages::default());
        }
        // It was put there just now.
        self.inside.entry(segment.to_owned()).or_default()
    }

    /// Notes that everything here was seen.
    pub(super) fn set(&mut self, seen: Moment) {
        *self = Ages { seen: Some(seen), inside: BTreeMap::new() };
    }

    /// When the value at `pointer` was last seen, where `root` is when the observation was.
    /// `keys` says by which member the elements of an array are named, where one is.
    pub(super) fn of(
        &self,
        root: Moment,
        pointer: &Pointer,
        value: &Value,
        keys: &dyn Fn(&[String]) -> Option<String>,
    ) -> Moment {
        if self.is_empty() {
            return root;
        }
        let mut node = Some(self);
        let mut seen = self.seen.unwrap_or(root);
        let mut at = Some(value);
        let mut path: Vec<String> = Vec::new();
        for segment in pointer.segments() {
            let segment = match at {
                // An index of an array that is merged by a key means the element there.
                Some(Value::Array(array)) if !segment.contains('=') => {
                    element_name(array, segment, keys(&path)).unwrap_or_else(|| segment.clone())
                }
                _ => segment.clone(),
            };
            at = at.and_then(|at| Pointer::of(std::slice::from_ref(&segment)).of_value(at));
            node = node.and_then(|node| node.inside.get(&segment));
            seen = node.and_then(|node| node.seen).unwrap_or(seen);
            path.push(segment);
        }
        match (node, at) {
            (Some(node), Some(at)) => node.oldest(seen, at, &mut path, keys),
            _ => seen,
        }
    }

    /// The oldest of what `value` holds.
    fn oldest(
        &self,
        above: Moment,
        value: &Value,
        path: &mut Vec<String>,
        keys: &dyn Fn(&[String]) -> Option<String>,
    ) -> Moment {
        let seen = self.seen.unwrap_or(above);
        if self.inside.is_empty() {
            return seen;
        }
        let mut oldest: Option<Moment> = None;
        let mut take = |segment: &str, value: &Value, path: &mut Vec<String>| {
            let found = self.inside.get(segment).map_or(seen, |inside| {
                path.push(segment.to_owned());
                let found = inside.oldest(seen, value, path, keys);
                path.pop();
                found
            });
            oldest = Some(oldest.map_or(found, |oldest| oldest.earliest(found)));
        };
        match value {
            Value::Object(object) => {
                object.iter().for_each(|(key, value)| take(key, value, path));
            }
            Value::Array(array) => {
                let key = keys(path);
                for (index, element) in array.iter().enumerate() {
                    let index = index.to_string();
                    let name = element_name(array, &index, key.clone()).unwrap_or(index);
                    take(&name, element, path);
                }
            }
            _ => {}
        }
        oldest.unwrap_or(seen)
    }
}

/// What an element of an array is called: by its key where there is one.
pub(super) fn element_name(array: &[Value], index: &str, key: Option<String>) -> Option<String> {
    let key = key?;
    let element = array.get(index.parse::<usize>().ok()?)?;
    let id = element.get(&key).and_then(id_text)?;
    Some(format!("{key}={id}"))
}
