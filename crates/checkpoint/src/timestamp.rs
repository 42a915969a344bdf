//! Timestamps of ISO 8601, as far as the headers use it.

use afterimage_json::Millis;
use jiff::{Timestamp, civil::DateTime};

/// What a header's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// A moment: date, time and offset.
    Moment(Timestamp),
    /// Date and time somewhere.
    Local(DateTime),
}

/// The time that `text` names in the extended form of ISO 8601: `2025-12-14T16:00:00Z`.
pub(super) fn time(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    // More than ISO 8601 is read by the library: time zones in brackets, blanks, lower case.
    let allowed = |b: &u8| b.is_ascii_digit() || b"-+:.,TZ".contains(b);
    if bytes.get(10) != Some(&b'T') || !bytes.iter().all(allowed) {
        return None;
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(Time::Moment(moment));
    }
    let has_offset = bytes.iter().skip(11).any(|b| b"-+Z".contains(b));
    if has_offset { None } else { text.parse().ok().map(Time::Local) }
}

/// Whether [`lint`](super::lint()) takes a text for a time in ISO 8601: date, `T`, time and, where
/// it does not lead to a warning, an offset.
///
/// ```
/// use afterimage_checkpoint::is_timestamp;
///
/// assert!(is_timestamp("2025-12-14T16:00:00Z"));
/// assert!(!is_timestamp("2025-12-14 16:00"));
/// ```
pub fn is_timestamp(text: &str) -> bool {
    time(text).is_some()
}

/// Whether a text is a time that says where it is one: date, `T`, time and offset.
pub fn is_moment(text: &str) -> bool {
    matches!(time(text), Some(Time::Moment(_)))
}

/// The moment as a header writes it; the Unix epoch where it lies outside of the calendar.
pub fn timestamp(moment: Millis) -> String {
    Timestamp::from_millisecond(moment.get()).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

impl Time {
    /// The moment, with a time somewhere taken as one of UTC: for an order, nothing else.
    pub(super) fn approximate(self) -> Timestamp {
        match self {
            Self::Moment(moment) => moment,
            Self::Local(local) => local
                .to_zoned(jiff::tz::TimeZone::UTC)
                .map_or(Timestamp::UNIX_EPOCH, |zoned| zoned.timestamp()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_iso_8601_are_read_and_others_are_not() {
        for text in ["2025-12-14T16:00:00Z", "2025-12-14T16:00:00.5+02:00", "2024-02-29T16:00Z"] {
            assert!(matches!(time(text), Some(Time::Moment(_))), "{text}");
        }
        assert!(matches!(time("2025-12-14T16:00:00"), Some(Time::Local(_))));
        let others = [
            "",
            "yesterday",
            "2025-12-14",
            "2025-13-14T16:00:00Z",
            "2025-02-30T16:00:00Z",
            "14.12.2025 16:00",
            "2025-12-14 16:00:00Z",
            "2025-12-14T25:00:00Z",
            "2025-12-14T16:00:00[UTC]",
            "2025-12-14T16:00:00Zx",
        ];
        for text in others {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
