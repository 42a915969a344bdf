use super::{Facet, Frame};
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    json::{Fields, Object, ObjectExt, Value},
};

/// The topic of the event by which a frame tells that earlier frames are read otherwise.
pub const CONTEXT_EDIT_TOPIC: &str = "afterimage:edit";

/// That a context holds earlier frames with other content, from the frame on that tells of it: a client
/// cleared a result, or took a message out. The frames themselves stay; `docs/FORMAT.md` has the event.
///
/// ```
/// use afterimage::{id::FacetType, veil::{ContextEdit, Facet, Frame, Source}};
///
/// let cleared = Facet::new("result-2.0", FacetType::RESULT, "[cleared]");
/// let mut frame = Frame::new(7, Source::Environment);
/// frame.events.push(ContextEdit::event([(2.into(), vec![cleared.clone()])]));
/// let edit = ContextEdit::of(&frame)?.unwrap();
/// assert_eq!(edit.frames, [(2.into(), vec![cleared])]);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextEdit {
    /// The frames, with the facets that a context holds of each; none where it is left out.
    pub frames: Vec<(FrameSeq, Vec<Facet>)>,
}

impl ContextEdit {
    /// The event by which a frame tells what a context holds of these earlier frames. O(the facets),
    /// which are written as JSON.
    pub fn event(frames: impl IntoIterator<Item = (FrameSeq, Vec<Facet>)>) -> Value {
        let frames = frames.into_iter().map(|(frame, facets)| {
            let mut edit = Object::new();
            edit.put("frame", frame.get());
            edit.put("facets", facets.iter().map(Facet::to_json).collect::<Value>());
            Value::from(edit)
        });
        let (mut payload, mut event) = (Object::new(), Object::new());
        payload.put("frames", frames.collect::<Value>());
        event.put("topic", CONTEXT_EDIT_TOPIC);
        event.put("payload", payload);
        event.into()
    }

    /// What `frame` tells of earlier frames; the first event, where there are several. O(the event).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where the event is not of the shape of one, [`ErrorKind::OutOfRange`] where
    /// a frame does not come before the one that tells.
    pub fn of(frame: &Frame) -> Result<Option<Self>> {
        let is_one = |event: &&Value| event.str_at("topic") == Some(CONTEXT_EDIT_TOPIC);
        let Some(event) = frame.events.iter().find(is_one) else { return Ok(None) };
        let payload = event.get("payload").cloned().unwrap_or_default();
        let edit = Self::read(payload, frame.sequence);
        edit.map(Some).map_err(|error| error.at_frame(frame.sequence.get()))
    }

    fn read(payload: Value, told_at: FrameSeq) -> Result<Self> {
        let mut fields = Fields::of(payload, "the payload of an edit")?;
        let list = Fields::required(fields.array("frames")?, "frames", "a list of frames")?;
        let frames = list.into_iter().map(|edit| {
            let mut fields = Fields::of(edit, "an edited frame")?;
            let frame = Fields::required(fields.u64("frame")?, "frame", "a sequence number")?;
            if frame >= told_at.get() {
                let message = format!("expected a frame before this one, found {frame}");
                return Err(Error::new(ErrorKind::OutOfRange, message));
            }
            let facets = fields.array("facets")?.unwrap_or_default();
            let facets = facets.into_iter().map(Facet::from_json).collect::<Result<_>>()?;
            Ok((FrameSeq::new(frame), facets))
        });
        Ok(Self { frames: frames.collect::<Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, veil::Source};

    #[test]
    fn a_damaged_edit_is_an_error_that_names_the_frame() {
        for (payload, kind) in [
            ("{}", ErrorKind::Shape),
            (r#"{"frames":[{"facets":[]}]}"#, ErrorKind::Shape),
            (r#"{"frames":[{"frame":9}]}"#, ErrorKind::OutOfRange),
            (r#"{"frames":[{"frame":1,"facets":[{}]}]}"#, ErrorKind::Shape),
        ] {
            let event = format!(r#"{{"topic":"afterimage:edit","payload":{payload}}}"#);
            let mut frame = Frame::new(9, Source::Environment);
            frame.events = vec![json::read(event.as_bytes()).unwrap()];
            let error = ContextEdit::of(&frame).unwrap_err();
            assert_eq!(error.kind(), kind, "{payload}: {error}");
            assert!(error.to_string().contains("frame 9"), "{error}");
        }
    }
}
