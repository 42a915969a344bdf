//! What a journal writes beside events: a line of JSON with its checksum.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Error, ErrorKind, Result,
    json::{self, Value},
    log::line,
};

/// A value as a line without its line end.
pub(super) fn seal<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    Ok(line::seal(&json::to_value(value)?.to_string())?.into_bytes())
}

/// The JSON of a line, which is given without its line end.
pub(super) fn open(line: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(line)
        .map_err(|_| Error::new(ErrorKind::Damaged, "its first line is not UTF-8"))?;
    Ok(json::read(line::open(text)?.as_bytes())?)
}

/// The value in a line that says that it is of this kind and version; `None` for another one.
pub(super) fn open_as<T: DeserializeOwned>(line: &[u8], kind: &str, version: u64) -> Option<T> {
    let value = open(line).ok()?;
    let is_it = value.str_at("kind") == Some(kind)
        && value.get("version").and_then(Value::as_u64) == Some(version);
    json::from_value(value).ok().filter(|_| is_it)
}

/// A shared text, for `#[serde(with = "…::shared")]`.
pub(super) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(text).map(Arc::from)
    }
}
