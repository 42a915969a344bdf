//! The times of requests, and what stands for those that a source does not tell.

use super::span::SpanTimes;
use crate::{
    request::{Exchange, Provenance, Recording},
    veil::History,
};

/// Nanoseconds in a millisecond, and in a second.
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

crate::json::name_enum! {
    /// Where the times of a span come from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum TimeSource {
        /// The source tells when it began and when it ended.
        Recorded = "recorded",
        /// The source tells when it began, and not how long it took.
        Start = "start",
        /// The request before it, or after it, in the session has a time.
        Neighbour = "neighbour",
        /// No request of the session has a time: they stand a second apart, from 1970 on.
        Order = "order",
    }
}

/// The times of the requests of a session, in their order; none is zero, which is no time to most
/// programs.
pub(super) fn of_session(
    recording: &Recording,
    exchanges: &[&Exchange],
    moment: &dyn Fn(&str) -> Option<u64>,
) -> Vec<(SpanTimes, TimeSource)> {
    let told: Vec<_> =
        exchanges.iter().map(|exchange| recorded(recording, exchange, moment)).collect();
    let mut before: Option<u64> = None;
    let mut times = Vec::with_capacity(told.len());
    let first = told.iter().find_map(|told| told.map(|(times, _)| times.start));
    for (index, told) in told.iter().enumerate() {
        let (found, source) = match (told, before.or(first)) {
            (Some(told), _) => *told,
            (None, Some(at)) => (SpanTimes { start: at, end: at }, TimeSource::Neighbour),
            (None, None) => {
                let start = (index as u64 + 1).saturating_mul(SECOND);
                (SpanTimes { start, end: start }, TimeSource::Order)
            }
        };
        if source != TimeSource::Order {
            before = Some(found.end);
        }
        times.push((found, source));
    }
    times
}

/// The times of what comes after the last request of a session.
pub(super) fn after(last: Option<(SpanTimes, TimeSource)>) -> (SpanTimes, TimeSource) {
    match last {
        Some((SpanTimes { end, .. }, TimeSource::Order)) => {
            (SpanTimes { start: end, end }, TimeSource::Order)
        }
        Some((SpanTimes { end, .. }, _)) => (SpanTimes { start: end, end }, TimeSource::Neighbour),
        None => (SpanTimes { start: SECOND, end: SECOND }, TimeSource::Order),
    }
}

/// The times of an exchange as its source tells them.
fn recorded(
    recording: &Recording,
    exchange: &Exchange,
    moment: &dyn Fn(&str) -> Option<u64>,
) -> Option<(SpanTimes, TimeSource)> {
    let time = exchange.time.as_deref().and_then(moment).filter(|time| *time > 0)?;
    if !matches!(exchange.provenance, Provenance::Reconstructed { .. }) {
        let Some(duration) = exchange.duration_ms else {
            return Some((SpanTimes { start: time, end: time }, TimeSource::Start));
        };
        let end = time.saturating_add(duration.saturating_mul(MILLISECOND));
        return Some((SpanTimes { start: time, end }, TimeSource::Recorded));
    }
    // A transcript tells when what was said was written down.
    let history = recording.history(&exchange.session);
    let at = |frame| time_of(history?, frame, moment);
    let ends = exchange.answer_frames.iter().rev().find_map(|frame| at(*frame));
    let end = ends.unwrap_or(time).max(time);
    let start = exchange.last_frame.and_then(at).filter(|start| *start <= end);
    Some((SpanTimes { start: start.unwrap_or(time), end }, TimeSource::Recorded))
}

/// The time of a frame.
pub(super) fn time_of(
    history: &History,
    frame: crate::id::FrameSeq,
    moment: &dyn Fn(&str) -> Option<u64>,
) -> Option<u64> {
    let frame = history.get(frame)?;
    frame.timestamp.as_deref().and_then(moment).filter(|time| *time > 0)
}
