//! Moments in time.

/// A moment in milliseconds since the Unix epoch. The library has no clock: the caller passes it.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct Millis(i64);

impl Millis {
    /// The moment this many milliseconds after the epoch.
    pub const fn new(millis: i64) -> Self {
        Self(millis)
    }

    /// The milliseconds since the epoch.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl From<std::time::SystemTime> for Millis {
    /// Saturates at the ends of `i64`.
    fn from(time: std::time::SystemTime) -> Self {
        let millis = |duration: std::time::Duration| i64::try_from(duration.as_millis());
        Self(match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => millis(after).unwrap_or(i64::MAX),
            Err(before) => millis(before.duration()).map_or(i64::MIN, i64::wrapping_neg),
        })
    }
}
