//! The moment of a frame.

use afterimage::{id::Millis, veil::Frame};

/// The moment of a frame: its timestamp, so that the same input gives the same snapshots on every
/// run. The epoch where it has none.
pub(crate) fn moment(frame: &Frame) -> Millis {
    let timestamp =
        frame.timestamp.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Millis::new(timestamp.map_or(0, jiff::Timestamp::as_millisecond))
}

/// A moment in milliseconds since the epoch as people write it, in UTC.
pub(crate) fn minute(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis)
        .map_or_else(|_| millis.to_string(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// The time of day in a time as a source writes it; all of it where it is none.
pub(crate) fn clock(time: &str) -> String {
    let stamp = time.parse::<jiff::Timestamp>().ok().or_else(|| {
        let millis = time.parse::<i64>().ok()?;
        jiff::Timestamp::from_millisecond(millis).ok()
    });
    stamp.map_or_else(|| time.to_owned(), |stamp| stamp.strftime("%H:%M:%S").to_string())
}
