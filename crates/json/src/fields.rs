//! Taking an object apart field by field: typed, named in errors, and the rest kept.

use super::{Number, Object, Value, from_value};
use crate::{Error, Result, WithPlace};

/// The members of an object that are not taken yet.
///
/// ```
/// use afterimage_json::{Fields, read};
///
/// let mut fields = Fields::of(read(br#"{"id": 7, "note": null, "more": []}"#)?, "an entry")?;
/// assert_eq!(fields.u64("id")?, Some(7));
/// assert_eq!(fields.string("note")?, None);
/// assert_eq!(fields.rest().len(), 1);
/// # Ok::<(), afterimage_json::Error>(())
/// ```
pub struct Fields(Object);

impl Fields {
    /// Takes an object apart.
    ///
    /// # Errors
    /// `Shape` unless `value` is an object; `what` says whose.
    pub fn of(value: Value, what: &str) -> Result<Self> {
        match value {
            Value::Object(object) => Ok(Self(object)),
            other => Err(Error::expected(format_args!("{what} (an object)"), other.kind())),
        }
    }

    /// The member `key`, `null` included. O(members).
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key)
    }

    fn typed<T>(
        &mut self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Result<Option<T>> {
        match self.take(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => convert(value)
                .map(Some)
                .map_err(|value| Error::expected(expected, found(&value)).under(key)),
        }
    }

    /// The member `key` through `load`, which names places inside of it; `null` is nothing.
    /// O(members), besides what `load` costs.
    ///
    /// # Errors
    /// Those of `load`, with the member's name in their path.
    pub fn nested<T, E: WithPlace>(
        &mut self,
        key: &str,
        load: impl FnOnce(Value) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let value = self.take(key).filter(|value| !value.is_null());
        value.map(load).transpose().map_err(|error| error.at(|place| place.nest(key)))
    }

    /// The member `key` as a string; `None` where it is absent or `null`. O(members).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn string(&mut self, key: &str) -> Result<Option<String>> {
        self.nested(key, from_value)
    }

    /// The member `key` as a boolean; `None` where it is absent or `null`. O(members).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn bool(&mut self, key: &str) -> Result<Option<bool>> {
        self.nested(key, from_value)
    }

    /// The member `key` as an integer from zero; `None` where it is absent or `null`. O(members).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn u64(&mut self, key: &str) -> Result<Option<u64>> {
        self.nested(key, from_value)
    }

    /// The member `key` as an integer of 64 bits; `None` where it is absent or `null`. O(members).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn i64(&mut self, key: &str) -> Result<Option<i64>> {
        self.nested(key, from_value)
    }

    /// The member `key` as a number; `None` where it is absent or `null`. O(members).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn number(&mut self, key: &str) -> Result<Option<Number>> {
        self.typed(key, "a number", |value| match value {
            Value::Number(number) => Ok(number),
            other => Err(other),
        })
    }

    /// The member `key` as an object; `None` where it is absent or `null`. O(members).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn object(&mut self, key: &str) -> Result<Option<Object>> {
        self.typed(key, "an object", |value| match value {
            Value::Object(object) => Ok(object),
            other => Err(other),
        })
    }

    /// The member `key` as an array; `None` where it is absent or `null`. O(members).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn array(&mut self, key: &str) -> Result<Option<Vec<Value>>> {
        self.typed(key, "an array", |value| match value {
            Value::Array(array) => Ok(array),
            other => Err(other),
        })
    }

    /// The member `key` as an array of strings; `None` where it is absent or `null`. O(its
    /// elements).
    ///
    /// # Errors
    /// `Shape` for a value of another type.
    pub fn strings(&mut self, key: &str) -> Result<Option<Vec<String>>> {
        self.nested(key, from_value)
    }

    /// A member that must be there.
    ///
    /// # Errors
    /// `Shape` where it is absent.
    pub fn required<T>(value: Option<T>, key: &str, expected: &str) -> Result<T> {
        value.ok_or_else(|| Error::expected(expected, "nothing").under(key))
    }

    /// What was not taken.
    pub fn rest(self) -> Object {
        self.0
    }
}

/// What was found instead: a number by its digits, anything else by its type.
fn found(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string().chars().take(40).collect(),
        other => other.kind().to_owned(),
    }
}

/// Building an object without its absent members.
pub trait ObjectExt {
    /// Sets the member `key`.
    fn put(&mut self, key: &str, value: impl Into<Value>);
    /// Sets the member `key` where there is a value.
    fn put_some<V: Into<Value>>(&mut self, key: &str, value: Option<V>);
    /// Puts the members that are not known here after those that are; a known one stays as it is.
    /// O(size of `extra`).
    fn put_unknown(&mut self, extra: &Object);
}

impl ObjectExt for Object {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.insert(key.to_owned(), value.into());
    }

    fn put_some<V: Into<Value>>(&mut self, key: &str, value: Option<V>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn put_unknown(&mut self, extra: &Object) {
        for (key, value) in extra {
            if !self.contains_key(key) {
                self.put(key, value.clone());
            }
        }
    }
}
