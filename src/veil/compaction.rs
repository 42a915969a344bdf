use std::ops::RangeInclusive;

use super::{Branch, Facet, Frame};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetType, FrameSeq},
    json::{Fields, Object, ObjectExt, Value},
};

/// The topic of the event by which a frame tells of a compaction.
pub const COMPACTION_TOPIC: &str = "afterimage:compaction";

/// A compaction that a frame tells of: from this frame on, a summary stood where other frames had
/// stood. Imports find them in recordings; `docs/FORMAT.md` has the event.
///
/// ```
/// use afterimage::{
///     id::FacetType,
///     veil::{Compaction, Facet, FacetOp, Frame, Source},
/// };
///
/// let summary = Facet::new("summary-7.0", FacetType::SUMMARY, "They looked for the key.");
/// let mut frame = Frame::new(7, Source::Environment).with(FacetOp::add(summary));
/// frame.events.push(Compaction::event(0.into(), 5.into(), "pi", None));
/// let told = Compaction::of(&frame)?.unwrap();
/// assert_eq!((told.from.get(), told.to.get(), told.told_at.get()), (0, 5, 7));
/// assert_eq!(told.summary.content, "They looked for the key.");
/// # Ok::<(), afterimage::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// The first frame that was replaced.
    pub from: FrameSeq,
    /// The last frame that was replaced. Those between it and the frame that reports the
    /// compaction were kept.
    pub to: FrameSeq,
    /// The frame that tells of it.
    pub told_at: FrameSeq,
    /// What made the summary: the name of a program or of an engine.
    pub engine: String,
    /// What stood in place of the frames.
    pub summary: Facet,
    /// Whether the frame itself says the summary: then it was read in the place of the frames that
    /// were replaced, and not at the frame's own.
    pub is_said: bool,
    /// Whether the summary is read at the frame's own place all the same, after what was kept. Then
    /// nothing stands in the place of the frames that were replaced.
    pub is_in_place: bool,
    /// The frames between `from` and `to` that were kept, in order. They stay at their places: the
    /// summary stands in the place of the first frames that were replaced, or at its own.
    pub kept: Vec<RangeInclusive<FrameSeq>>,
}

impl Compaction {
    /// The event by which a frame tells that `engine` put a summary in the place of the frames
    /// `from` to `to`. Without `summary` it is what the frame adds. O(the summary), which is
    /// written as JSON.
    pub fn event(from: FrameSeq, to: FrameSeq, engine: &str, summary: Option<&Facet>) -> Value {
        let mut payload = Self::payload(from, to, engine);
        payload.put_some("summary", summary.map(Facet::to_json));
        Self::event_of(payload)
    }

    /// As [`Compaction::event`], where the frame says the summary and it is read there: nothing stands
    /// in the place of the frames `from` to `to`. Those in `kept` stay. O(ranges in `kept`).
    pub fn event_in_place(
        from: FrameSeq,
        to: FrameSeq,
        engine: &str,
        kept: impl IntoIterator<Item = RangeInclusive<FrameSeq>>,
    ) -> Value {
        let mut payload = Self::payload(from, to, engine);
        payload.put("inPlace", true);
        let range = |range: RangeInclusive<FrameSeq>| (range.start().get(), range.end().get());
        let kept: Vec<Value> = kept.into_iter().map(range).map(Branch::range).collect();
        payload.put_some("kept", (!kept.is_empty()).then_some(Value::Array(kept)));
        Self::event_of(payload)
    }

    fn payload(from: FrameSeq, to: FrameSeq, engine: &str) -> Object {
        let mut payload = Object::new();
        payload.put("from", from.get());
        payload.put("to", to.get());
        payload.put("engine", engine);
        payload
    }

    fn event_of(payload: Object) -> Value {
        let mut event = Object::new();
        event.put("topic", COMPACTION_TOPIC);
        event.put("payload", payload);
        event.into()
    }

    /// The compaction that `frame` tells of; the first, where it tells of several. O(events of the
    /// frame).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where the event is not of the shape of one, or where there is no
    /// summary; [`ErrorKind::OutOfRange`] where its frames run backwards, or do not come before
    /// the frame that tells, and where frames that were kept lie outside of them.
    pub fn of(frame: &Frame) -> Result<Option<Self>> {
        let is_one = |event: &&Value| event.str_at("topic") == Some(COMPACTION_TOPIC);
        let Some(event) = frame.events.iter().find(is_one) else { return Ok(None) };
        let payload = event.get("payload").cloned().unwrap_or_default();
        let told = Self::told(frame, payload);
        told.map(Some).map_err(|error| error.at_frame(frame.sequence.get()))
    }

    fn told(frame: &Frame, payload: Value) -> Result<Self> {
        let mut fields = Fields::of(payload, "the payload of a compaction")?;
        let mut sequence = |key: &str| {
            Fields::required(fields.u64(key)?, key, "a sequence number").map(FrameSeq::new)
        };
        let (from, to) = (sequence("from")?, sequence("to")?);
        if from > to || to >= frame.sequence {
            let message = format!("expected frames before this one, found {from} to {to}");
            return Err(Error::new(ErrorKind::OutOfRange, message));
        }
        let is_in_place = fields.bool("inPlace")?.unwrap_or_default();
        let kept = fields.array("kept")?.unwrap_or_default();
        let kept = Branch::ranges(&kept, frame.sequence)?;
        if let Some(range) = kept.iter().find(|range| *range.start() < from || to < *range.end()) {
            let (first, last) = (range.start(), range.end());
            let message =
                format!("expected kept frames within {from} to {to}, found {first} to {last}");
            return Err(Error::new(ErrorKind::OutOfRange, message));
        }
        let engine = fields.string("engine")?.unwrap_or_else(|| "unknown".to_owned());
        let given = fields.nested("summary", Facet::from_json)?;
        let is_said = given.is_none();
        if is_in_place && !is_said {
            return Err(Error::expected("a summary that the frame says", "one in the event"));
        }
        let summary = given.or_else(|| summary_of(frame));
        let summary =
            summary.ok_or_else(|| Error::expected("a summary", "a frame that adds nothing"))?;
        Ok(Self { from, to, told_at: frame.sequence, engine, summary, is_said, is_in_place, kept })
    }
}

/// What a frame adds, as one facet: a summary itself, or one that holds all of it.
fn summary_of(frame: &Frame) -> Option<Facet> {
    let mut added: Vec<Facet> = frame.added().cloned().collect();
    match added.as_slice() {
        [] => None,
        [facet] if facet.facet_type == FacetType::SUMMARY => added.pop(),
        _ => {
            let id = format!("summary-{}", frame.sequence);
            Some(Facet { children: added, ..Facet::new(id, FacetType::SUMMARY, "") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        json,
        veil::{FacetOp, Source},
    };

    fn frame(event: &str) -> Frame {
        let mut frame = Frame::new(9, Source::User);
        frame.events = vec![json::read(event.as_bytes()).unwrap()];
        frame
    }

    #[test]
    fn what_an_event_tells_is_read_back() {
        let summary = Facet::new("s", FacetType::SUMMARY, "so far");
        let mut frame = Frame::new(9, Source::Environment);
        assert_eq!(Compaction::of(&frame).unwrap(), None);
        frame.events = vec![Compaction::event(2.into(), 8.into(), "codex", Some(&summary))];
        let frame = Frame::from_json(frame.to_json()).unwrap();
        let told = Compaction::of(&frame).unwrap().unwrap();
        let (from, to) = (FrameSeq::new(2), FrameSeq::new(8));
        let engine = "codex".to_owned();
        let told_at = frame.sequence;
        let (is_said, is_in_place, kept) = Default::default();
        let expected =
            Compaction { from, to, told_at, engine, summary, is_said, is_in_place, kept };
        assert_eq!(told, expected);
    }

    #[test]
    fn a_summary_may_stay_at_its_place_after_frames_that_were_kept() {
        let mut frame = Frame::new(9, Source::Environment).with(FacetOp::add(Facet::new(
            "s",
            FacetType::SUMMARY,
            "so far",
        )));
        let kept = [1.into()..=2.into(), 5.into()..=5.into()];
        frame.events = vec![Compaction::event_in_place(0.into(), 8.into(), "kimi", kept.clone())];
        let frame = Frame::from_json(frame.to_json()).unwrap();
        let told = Compaction::of(&frame).unwrap().unwrap();
        assert!(told.is_said && told.is_in_place);
        assert_eq!(told.kept, kept);
    }

    #[test]
    fn all_that_a_frame_adds_is_the_summary_where_none_is_given() {
        let mut frame = frame(r#"{"topic":"afterimage:compaction","payload":{"from":0,"to":8}}"#);
        for (id, kind) in [("a", FacetType::SUMMARY), ("b", FacetType::IMAGE)] {
            frame.ops.push(FacetOp::add(Facet::new(id, kind, id)));
        }
        let told = Compaction::of(&frame).unwrap().unwrap();
        let children: Vec<&str> =
            told.summary.children.iter().map(|child| child.content.as_str()).collect();
        assert_eq!((&*told.engine, children, told.is_said), ("unknown", vec!["a", "b"], true));
    }

    #[test]
    fn a_damaged_event_is_an_error_that_names_frame_and_place() {
        let expected = [
            (r#"{"topic":"afterimage:compaction"}"#, ErrorKind::Shape),
            (r#"{"topic":"afterimage:compaction","payload":{"from":0}}"#, ErrorKind::Shape),
            (
                r#"{"topic":"afterimage:compaction","payload":{"from":"0","to":1}}"#,
                ErrorKind::Shape,
            ),
            (r#"{"topic":"afterimage:compaction","payload":{"from":0,"to":1}}"#, ErrorKind::Shape),
            (
                r#"{"topic":"afterimage:compaction","payload":{"from":5,"to":4}}"#,
                ErrorKind::OutOfRange,
            ),
            (
                r#"{"topic":"afterimage:compaction","payload":{"from":0,"to":9}}"#,
                ErrorKind::OutOfRange,
            ),
            (
                r#"{"topic":"afterimage:compaction","payload":{"from":0,"to":1,"summary":7}}"#,
                ErrorKind::Shape,
            ),
            (
                r#"{"topic":"afterimage:compaction","payload":{"from":0,"to":3,"kept":[[2,9]]}}"#,
                ErrorKind::OutOfRange,
            ),
            (
                r#"{"topic":"afterimage:compaction","payload":{"from":0,"to":3,"kept":[[3,4]]}}"#,
                ErrorKind::OutOfRange,
            ),
            (
                r#"{"topic":"afterimage:compaction","payload":{"from":2,"to":3,"kept":[[1,2]]}}"#,
                ErrorKind::OutOfRange,
            ),
        ];
        for (event, kind) in expected {
            let error = Compaction::of(&frame(event)).unwrap_err();
            assert_eq!((error.kind(), error.place().frame), (kind, Some(9)), "{event}");
        }
    }
}
