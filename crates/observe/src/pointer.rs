use std::fmt;

use crate::{Error, Result, json::Value};

/// A place inside of a response: a JSON pointer (RFC 6901) with two additions.
///
/// An element of an array that is merged by a key can be named by it, as in `/cargo/id=ore/size`;
/// and in the places of [`ToolRule::arrays`](super::ToolRule::arrays) a `*` is any element or
/// member.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Reads a pointer: the empty text is the whole value, any other begins with `/`. O(text).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it does not.
    pub fn parse(text: &str) -> Result<Self> {
        match text.strip_prefix('/') {
            _ if text.is_empty() => Ok(Self::default()),
            Some(rest) => Ok(Self(rest.split('/').map(unescaped).collect())),
            None => {
                let found: String = text.chars().take(40).collect();
                Err(Error::expected("a JSON pointer, which begins with /", format!("{found:?}")))
            }
        }
    }

    pub(super) fn of(segments: &[String]) -> Self {
        Self(segments.to_vec())
    }

    pub(super) fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether it is the whole value.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the two places lie in one another.
    pub(super) fn overlaps(&self, other: &Pointer) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }

    /// Whether `path` is of this form, with `*` for any segment.
    pub(super) fn matches(&self, path: &[String]) -> bool {
        self.0.len() == path.len() && self.0.iter().zip(path).all(|(a, b)| a == "*" || a == b)
    }

    /// What stands there in `value`. Runs in O(length), or in that of the arrays that it looks
    /// through for a key.
    pub fn of_value<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |at, segment| match at {
            Value::Object(object) => object.get(segment.as_str()),
            Value::Array(array) => match segment.split_once('=') {
                Some((key, id)) => array.iter().find(|element| key_is(element, key, id)),
                None => array.get(segment.parse::<usize>().ok()?),
            },
            _ => None,
        })
    }
}

fn key_is(element: &Value, key: &str, id: &str) -> bool {
    element.get(key).and_then(id_text).is_some_and(|found| found == id)
}

/// What a key's value is called: a text, or the digits of a number.
pub(super) fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|segment| write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1")))
    }
}
