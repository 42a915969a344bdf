//! A [`Duration`] as whole milliseconds, for `#[serde(with = "…::duration")]`.
//! What is less than a millisecond is cut off.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Writes the milliseconds; a duration beyond 64 bits of them as the most there are.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Reads milliseconds.
///
/// # Errors
/// What is no integer from zero.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
