use super::Frame;
use crate::{
    Result,
    id::FrameSeq,
    json::{Fields, Object, ObjectExt, Value},
};

/// The topic of the event by which the first frame of a subagent's session tells what started it.
pub const SUBAGENT_TOPIC: &str = "afterimage:subagent";

/// What started the session of a subagent: a call that another session made. Imports find it in
/// recordings; `docs/FORMAT.md` has the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentStart {
    /// The session that made the call.
    pub session: String,
    /// The id of the call.
    pub call: String,
    /// The frame of that session that holds the call, where it is known.
    pub frame: Option<FrameSeq>,
}

impl SubagentStart {
    /// The event by which a frame tells of it.
    pub fn event(&self) -> Value {
        let mut payload = Object::new();
        payload.put("session", self.session.as_str());
        payload.put("call", self.call.as_str());
        payload.put_some("frame", self.frame.map(FrameSeq::get));
        let mut event = Object::new();
        event.put("topic", SUBAGENT_TOPIC);
        event.put("payload", payload);
        event.into()
    }

    /// What `frame` tells of the start of its session; the first event, where there are several.
    /// O(events of the frame).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where the event is not of the shape of one.
    pub fn of(frame: &Frame) -> Result<Option<Self>> {
        let is_one = |event: &&Value| event.str_at("topic") == Some(SUBAGENT_TOPIC);
        let Some(event) = frame.events.iter().find(is_one) else { return Ok(None) };
        let payload = event.get("payload").cloned().unwrap_or_default();
        Self::read(payload).map(Some).map_err(|error| error.at_frame(frame.sequence.get()))
    }

    fn read(payload: Value) -> Result<Self> {
        let mut fields = Fields::of(payload, "the payload of a subagent")?;
        let session = Fields::required(fields.string("session")?, "session", "a name")?;
        let call = Fields::required(fields.string("call")?, "call", "an id")?;
        Ok(Self { session, call, frame: fields.u64("frame")?.map(FrameSeq::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, json, veil::Source};

    #[test]
    fn what_an_event_tells_is_read_back() {
        let mut frame = Frame::new(9, Source::User);
        assert_eq!(SubagentStart::of(&frame).unwrap(), None);
        for at in [None, Some(FrameSeq::new(3))] {
            let start = SubagentStart { session: "s".to_owned(), call: "c".to_owned(), frame: at };
            frame.events = vec![start.event()];
            assert_eq!(SubagentStart::of(&frame).unwrap(), Some(start));
        }
        let damaged = format!(r#"{{"topic":"{SUBAGENT_TOPIC}","payload":{{"session":"s"}}}}"#);
        frame.events = vec![json::read(damaged.as_bytes()).unwrap()];
        assert_eq!(SubagentStart::of(&frame).unwrap_err().kind(), ErrorKind::Shape);
    }
}
