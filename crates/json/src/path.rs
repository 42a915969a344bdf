use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;
use crate::{Error, Result};

/// One step into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged, try_from = "Value")]
pub enum PathElement {
    /// The member of an object.
    Key(String),
    /// The element of an array, from zero.
    Index(usize),
}

/// A path into a JSON value. On the wire an array of strings and array indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(Vec<PathElement>);

impl Path {
    /// The path of these object keys. O(keys).
    pub fn of_keys<K: Into<String>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self(keys.into_iter().map(|key| PathElement::Key(key.into())).collect())
    }

    /// The path that a JSON pointer (RFC 6901) names. Its elements are keys; that of an array is
    /// the index with these digits. O(pointer).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where the text is no pointer: it is neither
    /// empty nor begins with `/`, or has a `~` that is not part of `~0` or `~1`.
    pub fn from_pointer(pointer: &str) -> Result<Self> {
        if pointer.is_empty() {
            return Ok(Self::default());
        }
        let expected = || Error::expected("a JSON pointer", format_args!("{pointer:?}"));
        let tokens = pointer.strip_prefix('/').ok_or_else(expected)?;
        let key = |token: &str| {
            let is_escape = |rest: &str| rest.starts_with(['0', '1']);
            let is_pointer = token.split('~').skip(1).all(is_escape);
            is_pointer.then(|| token.replace("~1", "/").replace("~0", "~")).ok_or_else(expected)
        };
        tokens.split('/').map(|token| key(token).map(PathElement::Key)).collect()
    }

    /// The path with one more step. Copies the others: O(n).
    pub fn child(&self, element: impl Into<PathElement>) -> Self {
        let mut elements = Vec::with_capacity(self.0.len() + 1);
        elements.extend_from_slice(&self.0);
        elements.push(element.into());
        Self(elements)
    }

    /// The steps, from the outside in.
    pub fn elements(&self) -> &[PathElement] {
        &self.0
    }

    /// The path in its wire form. O(elements).
    pub fn to_json(&self) -> Value {
        self.0
            .iter()
            .map(|element| match element {
                PathElement::Key(key) => Value::from(key.as_str()),
                PathElement::Index(index) => Value::from(*index as u64),
            })
            .collect()
    }
}

impl TryFrom<Value> for PathElement {
    type Error = Error;

    fn try_from(value: Value) -> Result<Self> {
        match value {
            Value::String(key) => Ok(Self::Key(key)),
            Value::Number(number) => {
                let index = number.as_u64().and_then(|index| usize::try_from(index).ok());
                let index = index.ok_or_else(|| Error::expected("an array index", number))?;
                Ok(Self::Index(index))
            }
            other => Err(Error::expected("a key or an array index", other.kind())),
        }
    }
}

impl From<&str> for PathElement {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for PathElement {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl From<&[PathElement]> for Path {
    fn from(elements: &[PathElement]) -> Self {
        Self(elements.to_vec())
    }
}

impl FromIterator<PathElement> for Path {
    fn from_iter<I: IntoIterator<Item = PathElement>>(elements: I) -> Self {
        Self(elements.into_iter().collect())
    }
}

/// Writes the path as a JSON pointer (RFC 6901).
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| match element {
            PathElement::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")),
            PathElement::Index(index) => write!(f, "/{index}"),
        })
    }
}
