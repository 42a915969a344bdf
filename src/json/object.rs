use std::ops::{Deref, DerefMut};

use indexmap::IndexMap;

use super::Value;

/// The members of a JSON object in insertion order. Dereferences to the map itself.
///
/// Removing with `shift_remove` keeps the order. Equality does not depend on it.
///
/// ```
/// use afterimage::json::{Object, Value};
///
/// let mut object = Object::from_iter([("b", Value::from(1_u64)), ("a", Value::Null)]);
/// object.insert("c".to_owned(), true.into());
/// object.shift_remove("b");
/// assert_eq!(Value::from(object).to_string(), r#"{"a":null,"c":true}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object(Map);

/// The hash is seeded for each process, and decides nothing that can be seen.
type Map = IndexMap<String, Value, foldhash::fast::RandomState>;

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Deref for Object {
    type Target = Map;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<K: Into<String>> FromIterator<(K, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(members: I) -> Self {
        Self(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl Extend<(String, Value)> for Object {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, members: I) {
        self.0.extend(members);
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = indexmap::map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a String, &'a Value);
    type IntoIter = indexmap::map::Iter<'a, String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
