use std::{
    borrow::Borrow,
    fmt::{self, Write},
    ops::Deref,
};

use smol_str::SmolStr;

mod convert;

use super::seq::{Item, Seq};
use crate::json::{Number, PathElement, Value, write_array, write_object, write_string};

/// A JSON value whose copies share what they have in common: the state of a world, or a part of it.
///
/// A clone takes constant time and memory. A change after it copies the nodes on the way to what
/// changed, so that keeping the state of every turn costs what changed in each.
///
/// The members of objects are sorted by the bytes of their keys, and numbers keep their digits:
/// [`Display`](fmt::Display) writes the one canonical text of a value. Two values are equal if their
/// texts are.
///
/// ```
/// use afterimage_timeline::{json, Data};
///
/// let data = Data::from(json::read(br#"{"b": [1, 1.50], "a": null}"#)?);
/// assert_eq!(data.to_string(), r#"{"a":null,"b":[1,1.50]}"#);
/// # Ok::<(), afterimage_timeline::Error>(())
/// ```
#[derive(Clone, Default)]
pub enum Data {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, with its digits as they were written.
    Number(Number),
    /// A string.
    String(Text),
    /// An array.
    Array(List),
    /// An object.
    Object(Map),
}

/// The elements of an array.
#[derive(Clone, Debug, Default)]
pub struct List(pub(super) Seq<Data>);

/// The members of an object, sorted by their keys.
#[derive(Clone, Debug, Default)]
pub struct Map(pub(super) Seq<Member>);

pub(super) type Member = (Text, Data);

/// A string that is cheap to copy: a short one is kept in place, a long one is shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(SmolStr);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Item for Data {
    type Key = ();

    fn key_ref(&self) -> &() {
        &()
    }
}

impl Item for Member {
    type Key = Text;

    fn key_ref(&self) -> &Text {
        &self.0
    }
}

impl Data {
    /// An object without members.
    pub fn object() -> Self {
        Self::Object(Map::default())
    }

    /// The value as plain JSON. Runs in O(n) time.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::from(&**text),
            Self::Array(list) => list.iter().map(Self::to_json).collect(),
            Self::Object(map) => {
                let members = map.iter().map(|(key, value)| (key, value.to_json()));
                Value::Object(members.collect())
            }
        }
    }

    /// The member `key` of an object. Runs in O(log n) time.
    pub fn get(&self, key: &str) -> Option<&Data> {
        self.as_object()?.get(key)
    }

    /// The value at a path. In an array a key counts as the index with these digits, in an object
    /// an index as the key. A look-up for each element of the path.
    pub fn at(&self, path: &[PathElement]) -> Option<&Data> {
        path.iter().try_fold(self, Self::step)
    }

    fn step(&self, element: &PathElement) -> Option<&Data> {
        match (self, element) {
            (Self::Object(map), PathElement::Key(key)) => map.get(key),
            (Self::Object(map), PathElement::Index(index)) => map.get(&index.to_string()),
            (Self::Array(list), element) => list.get(index_of(element)?),
            _ => None,
        }
    }

    /// As [`Data::at`]. What is shared on the way is copied.
    pub(super) fn at_mut(&mut self, path: &[PathElement]) -> Option<&mut Data> {
        path.iter().try_fold(self, |at, element| match (at, element) {
            (Self::Object(map), PathElement::Key(key)) => map.get_mut(key),
            (Self::Object(map), PathElement::Index(index)) => map.get_mut(&index.to_string()),
            (Self::Array(list), element) => list.0.get_mut(index_of(element)?),
            _ => None,
        })
    }

    /// The members where this is an object.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The elements where this is an array.
    pub fn as_array(&self) -> Option<&List> {
        match self {
            Self::Array(list) => Some(list),
            _ => None,
        }
    }

    /// The text where this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number where this is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The name of the value's type with its article, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// How deep arrays and objects are nested; 0 of anything else. O(size).
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(list) => 1 + list.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(map) => 1 + map.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The checksum of the canonical text: BLAKE3, the first 128 bits in hexadecimal digits. Runs
    /// in O(n) time.
    pub fn checksum(&self) -> String {
        let mut text = HashedState(blake3::Hasher::new(), String::new());
        // Hashing cannot fail.
        let _ = self.write(&mut text);
        text.0.update(text.1.as_bytes());
        text.0.finalize().to_hex().chars().take(32).collect()
    }

    fn write(&self, out: &mut impl Write) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(flag) => out.write_str(if *flag { "true" } else { "false" }),
            Self::Number(number) => write!(out, "{number}"),
            Self::String(text) => write_string(out, text),
            Self::Array(list) => write_array(out, list.iter(), |out, value| value.write(out)),
            Self::Object(map) => write_object(out, map.iter(), |out, value| value.write(out)),
        }
    }
}

/// What is written is hashed, a block at a time.
struct HashedState(blake3::Hasher, String);

impl Write for HashedState {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.1.push_str(text);
        if self.1.len() > 1 << 16 {
            self.0.update(self.1.as_bytes());
            self.1.clear();
        }
        Ok(())
    }
}

/// The array index that an element names: an index, or its digits without leading zeros.
pub(super) fn index_of(element: &PathElement) -> Option<usize> {
    match element {
        PathElement::Index(index) => Some(*index),
        PathElement::Key(key) => {
            let is_plain = key.bytes().all(|byte| byte.is_ascii_digit())
                && (key.len() == 1 || !key.starts_with('0'));
            if is_plain { key.parse().ok() } else { None }
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

/// Runs in constant time where both are one, in O(n) otherwise.
impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Data {}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&other.0) || self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for List {}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&other.0) || self.len() == other.len() && self.0.iter().eq(other.0.iter())
    }
}

impl Eq for Map {}

impl List {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An element. Runs in O(log n) time.
    pub fn get(&self, index: usize) -> Option<&Data> {
        self.0.get(index)
    }

    /// The elements in order. O(n) for all of them.
    pub fn iter(&self) -> impl Iterator<Item = &Data> {
        self.0.iter()
    }

    /// Adds an element at the end. Runs in O(log n) time.
    pub fn push(&mut self, value: impl Into<Data>) {
        self.0.push(value.into());
    }
}

impl Map {
    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The member `key`. Runs in O(log n) time.
    pub fn get(&self, key: &str) -> Option<&Data> {
        self.0.find(key).map(|(_, value)| value)
    }

    /// The members, sorted by their keys. O(n) for all of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Data)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// Puts a member, and gives the one that had the key. Runs in O(log n) time.
    pub fn insert(&mut self, key: &str, value: impl Into<Data>) -> Option<Data> {
        let value = value.into();
        if let Some(member) = self.get_mut(key) {
            return Some(std::mem::replace(member, value));
        }
        let at = self.0.position(key);
        self.0.insert(at, (Text::from(key), value));
        None
    }

    /// Takes a member away. Runs in O(log n) time.
    pub fn remove(&mut self, key: &str) -> Option<Data> {
        let at = self.0.position(key);
        self.0.get(at).filter(|(found, _)| &**found == key)?;
        self.0.remove(at).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Data> {
        self.0.find_mut(key).map(|(_, value)| value)
    }
}
