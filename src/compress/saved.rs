//! Reading what was saved, strictly: state that is half right gives contexts that are wrong.

use crate::{
    Error, ErrorKind, Result,
    json::{self, Fields, Value},
};

/// The version of saved state; an object that has it begins with it.
pub(crate) fn expect_version(fields: &mut Fields, key: &str, version: u64) -> Result<()> {
    let found = Fields::required(fields.u64(key)?, key, "a version")?;
    if found != version {
        let message = format!("expected version {version} of saved state, found {found}");
        return Err(Error::new(ErrorKind::Version, message).under(key));
    }
    Ok(())
}

pub(crate) fn text(fields: &mut Fields, key: &str) -> Result<String> {
    Ok(Fields::required(fields.string(key)?, key, "a string")?)
}

pub(crate) fn number(fields: &mut Fields, key: &str) -> Result<u64> {
    Ok(Fields::required(fields.u64(key)?, key, "an integer from zero")?)
}

/// An index or an end of indices, at most `most`.
pub(crate) fn index(fields: &mut Fields, key: &str, most: usize) -> Result<usize> {
    let found = number(fields, key)?;
    small(found, most).map_err(|error| error.under(key))
}

fn small(found: u64, most: usize) -> Result<usize> {
    let index = usize::try_from(found).ok().filter(|index| *index <= most);
    index.ok_or_else(|| Error::expected(format_args!("an index of at most {most}"), found))
}

pub(crate) fn flag(fields: &mut Fields, key: &str) -> Result<bool> {
    Ok(Fields::required(fields.bool(key)?, key, "a boolean")?)
}

pub(crate) fn list<T>(
    fields: &mut Fields,
    key: &str,
    mut load: impl FnMut(Value) -> Result<T>,
) -> Result<Vec<T>> {
    let values = Fields::required(fields.array(key)?, key, "a list")?;
    let loaded = values.into_iter().enumerate();
    loaded.map(|(at, value)| load(value).map_err(|error| error.under(at).under(key))).collect()
}

/// An index of at most `most`, as a value.
pub(crate) fn index_of(value: &Value, most: usize) -> Result<usize> {
    let found = value.as_u64();
    small(found.ok_or_else(|| Error::expected("an index", value.kind()))?, most)
}

/// A range of indices `[start, end]`, the end not within, of at most `most`.
pub(crate) fn range_of(value: &Value, most: usize) -> Result<std::ops::Range<usize>> {
    let ends = value.as_array().and_then(|ends| <&[Value; 2]>::try_from(ends).ok());
    let [start, end] = ends.ok_or_else(|| Error::expected("a start and an end", value.kind()))?;
    let (start, end) = (index_of(start, most)?, index_of(end, most)?);
    if start > end {
        return Err(Error::expected("an end after the start", format_args!("{start} to {end}")));
    }
    Ok(start..end)
}

/// A range of indices as it is saved.
pub(crate) fn range_to_json(range: &std::ops::Range<usize>) -> Value {
    [range.start, range.end].into_iter().map(|at| Value::from(at as u64)).collect()
}

/// What serde describes, as JSON; `load` is its inverse.
pub(crate) fn to_json(value: &impl serde::Serialize) -> Value {
    json::to_value(value).unwrap_or_default()
}

pub(crate) fn load<T: serde::de::DeserializeOwned>(fields: &mut Fields, key: &str) -> Result<T> {
    let value = Fields::required(fields.take(key), key, "an object")?;
    Ok(json::from_value(value).map_err(|error| error.under(key))?)
}

/// That nothing is left of an object.
pub(crate) fn finish(fields: Fields) -> Result<()> {
    match fields.rest().keys().next() {
        None => Ok(()),
        Some(key) => Err(Error::expected("no other member", format_args!("{key:?}"))),
    }
}
