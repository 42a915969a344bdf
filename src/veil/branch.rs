use std::ops::{Range, RangeInclusive};

use super::Frame;
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    json::{Fields, Object, ObjectExt, Value},
};

/// The topic of the event by which a frame tells that the session went on from an earlier place.
pub const BRANCH_TOPIC: &str = "afterimage:branch";

/// That a session went on from an earlier frame: what was said since then is in no context from
/// this frame on. Imports find it in recordings; `docs/FORMAT.md` has the event.
///
/// The frames stay in the history. A later event replaces the list, so that a session may return to
/// an earlier branch.
///
/// ```
/// use afterimage::veil::{Branch, Frame, Source};
///
/// let mut frame = Frame::new(7, Source::User);
/// frame.events.push(Branch::event([(3, 6)]));
/// let branch = Branch::of(&frame)?.unwrap();
/// assert_eq!(branch.outside, [3.into()..=6.into()]);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// All earlier frames of the session that are not in the context from here on, in order.
    pub outside: Vec<RangeInclusive<FrameSeq>>,
}

impl Branch {
    /// The event by which a frame tells that these earlier frames of its session, each range with
    /// its first and its last, are outside of the context from here on. O(ranges).
    pub fn event(outside: impl IntoIterator<Item = (u64, u64)>) -> Value {
        let mut payload = Object::new();
        payload.put("outside", Value::Array(outside.into_iter().map(Self::range).collect()));
        let mut event = Object::new();
        event.put("topic", BRANCH_TOPIC);
        event.put("payload", payload);
        event.into()
    }

    /// A range of frames as JSON.
    pub(super) fn range((from, to): (u64, u64)) -> Value {
        Value::Array(vec![Value::from(from), Value::from(to)])
    }

    /// Ranges of frames before `next`, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where they are none, [`ErrorKind::OutOfRange`] where they overlap, are out
    /// of order, or do not come before `next`.
    pub(super) fn ranges(list: &[Value], next: FrameSeq) -> Result<Vec<RangeInclusive<FrameSeq>>> {
        let mut ranges: Vec<RangeInclusive<FrameSeq>> = Vec::with_capacity(list.len());
        for range in list {
            let ends = range.as_array().unwrap_or_default();
            let [Some(from), Some(to)] = [ends.first(), ends.get(1)].map(|end| end?.as_u64())
            else {
                return Err(Error::expected("a range of two sequence numbers", range.kind()));
            };
            let (from, to) = (FrameSeq::new(from), FrameSeq::new(to));
            let follows = ranges.last().is_none_or(|before| *before.end() < from);
            if from > to || to >= next || !follows {
                let message = format!(
                    "expected ranges of frames before this one, in order, found {from} to {to}"
                );
                return Err(Error::new(ErrorKind::OutOfRange, message));
            }
            ranges.push(from..=to);
        }
        Ok(ranges)
    }

    /// Whether an event is of this kind.
    pub fn is_event(event: &Value) -> bool {
        event.str_at("topic") == Some(BRANCH_TOPIC)
    }

    /// What `frame` tells of its branch; the first event, where there are several. O(events of the
    /// frame).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where the event is not of the shape of one, [`ErrorKind::OutOfRange`]
    /// where its ranges overlap, are out of order, or do not come before the frame.
    pub fn of(frame: &Frame) -> Result<Option<Self>> {
        let Some(event) = frame.events.iter().find(|event| Self::is_event(event)) else {
            return Ok(None);
        };
        let payload = event.get("payload").cloned().unwrap_or_default();
        Self::read(frame, payload).map(Some).map_err(|error| error.at_frame(frame.sequence.get()))
    }

    fn read(frame: &Frame, payload: Value) -> Result<Self> {
        let mut fields = Fields::of(payload, "the payload of a branch")?;
        let list = Fields::required(fields.array("outside")?, "outside", "a list of ranges")?;
        let outside = Self::ranges(&list, frame.sequence)?;
        Ok(Self { outside })
    }
}

/// What is left of a range without those in `kept`, which are in order.
pub(crate) fn without<T: Copy + Ord>(range: Range<T>, kept: &[Range<T>]) -> Vec<Range<T>> {
    let (mut left, mut start) = (Vec::new(), range.start);
    for kept in kept {
        let end = kept.start.clamp(start, range.end);
        left.push(start..end);
        start = kept.end.clamp(end, range.end);
    }
    left.push(start..range.end);
    left.retain(|left| !left.is_empty());
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, veil::Source};

    #[test]
    fn what_an_event_tells_is_read_back() {
        let mut frame = Frame::new(9, Source::User);
        assert_eq!(Branch::of(&frame).unwrap(), None);
        frame.events = vec![Branch::event([(1, 1), (4, 8)])];
        let frame = Frame::from_json(frame.to_json()).unwrap();
        let expected = vec![1.into()..=1.into(), 4.into()..=8.into()];
        assert_eq!(Branch::of(&frame).unwrap().unwrap().outside, expected);
    }

    #[test]
    fn what_is_kept_is_left_out_of_a_range() {
        assert_eq!(without(2..9, &[]).first(), Some(&(2..9)));
        assert_eq!(without(2..9, &[0..1, 1..3, 5..6, 8..12, 20..21]), [3..5, 6..8]);
        assert!(without(2..9, std::slice::from_ref(&(0..9))).is_empty());
    }

    #[test]
    fn a_damaged_event_is_an_error_that_names_frame_and_place() {
        let expected = [
            (r"{}", ErrorKind::Shape),
            (r#"{"outside":7}"#, ErrorKind::Shape),
            (r#"{"outside":[7]}"#, ErrorKind::Shape),
            (r#"{"outside":[["1",2]]}"#, ErrorKind::Shape),
            (r#"{"outside":[[2,1]]}"#, ErrorKind::OutOfRange),
            (r#"{"outside":[[3,9]]}"#, ErrorKind::OutOfRange),
            (r#"{"outside":[[3,4],[4,5]]}"#, ErrorKind::OutOfRange),
        ];
        for (payload, kind) in expected {
            let event = format!(r#"{{"topic":"{BRANCH_TOPIC}","payload":{payload}}}"#);
            let mut frame = Frame::new(9, Source::User);
            frame.events = vec![json::read(event.as_bytes()).unwrap()];
            let error = Branch::of(&frame).unwrap_err();
            assert_eq!((error.kind(), error.place().frame), (kind, Some(9)), "{payload}");
        }
    }
}
