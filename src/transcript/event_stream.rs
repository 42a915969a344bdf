//! The event streams of Amazon: frames with headers and a payload, each with checksums, as the events
//! of a stream of text.
//!
//! A frame is its length, the length of its headers and the checksum of both; the headers; the
//! payload; and the checksum of all of that. Numbers are big-endian, checksums CRC-32.

use std::fmt::Write;

use super::bytes;
use crate::json::{self, Object, ObjectExt, Value, object};

/// What a frame has around its headers and its payload.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;
/// The type of a header whose value is a text.
const TEXT: u8 = 7;

/// The events of a stream of frames, as server-sent events; `None` for other bytes.
///
/// A piece of a provider's own form is written as that provider writes it. Other payloads stand under the
/// name of their event. A frame that is cut at the end is left out. After a damaged frame nothing is read,
/// and an error event says so.
pub(super) fn as_events(bytes: &[u8]) -> Option<String> {
    let mut rest = bytes;
    length(rest)?;
    let mut events = String::new();
    while !rest.is_empty() {
        let Some(length) = length(rest) else {
            // The beginning of a frame that broke off is no damage.
            if rest.len() >= PRELUDE {
                damaged(&mut events);
            }
            break;
        };
        let Some((frame, after)) = rest.split_at_checked(length) else { break };
        let Some(event) = Frame::of(frame).and_then(|frame| frame.event()) else {
            damaged(&mut events);
            break;
        };
        let _ = write!(events, "data: {event}\n\n");
        rest = after;
    }
    Some(events)
}

fn damaged(events: &mut String) {
    let error = object! { "type": "damage", "message": "a frame of the event stream is damaged" };
    let event = Value::from(object! { "type": "error", "error": error });
    let _ = write!(events, "data: {event}\n\n");
}

/// The length of the frame that begins here, if one does.
fn length(bytes: &[u8]) -> Option<usize> {
    let (prelude, rest) = bytes.split_at_checked(PRELUDE - CHECKSUM)?;
    let length = number(prelude)? as usize;
    let headers = number(prelude.get(4..)?)? as usize;
    let is_one = number(rest)? == crc32fast::hash(prelude)
        && length.checked_sub(headers)? >= PRELUDE + CHECKSUM;
    is_one.then_some(length)
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// A frame whose checksums are right.
struct Frame<'b> {
    headers: Vec<(&'b str, &'b str)>,
    payload: &'b [u8],
}

impl<'b> Frame<'b> {
    fn of(frame: &'b [u8]) -> Option<Self> {
        let (body, checksum) = frame.split_at_checked(frame.len().checked_sub(CHECKSUM)?)?;
        if number(checksum)? != crc32fast::hash(body) {
            return None;
        }
        let headers = number(body.get(4..)?)? as usize;
        let (headers, payload) = body.get(PRELUDE..)?.split_at_checked(headers)?;
        Some(Self { headers: texts(headers)?, payload })
    }

    fn header(&self, name: &str) -> Option<&'b str> {
        self.headers.iter().find(|(of, _)| *of == name).map(|(_, value)| *value)
    }

    /// The frame as an event; `None` where its payload is not JSON.
    fn event(&self) -> Option<Value> {
        let payload = || json::read_mended(self.payload).ok().map(|(value, _)| value);
        let exception = self.header(":exception-type").or_else(|| self.header(":error-code"));
        if let Some(kind) = exception {
            let said = payload();
            let message = said.as_ref().and_then(|said| said.str_at("message"));
            let message = message.or_else(|| self.header(":error-message")).unwrap_or_default();
            let error = object! { "type": kind, "message": message };
            return Some(object! { "type": "error", "error": error }.into());
        }
        let mut payload = payload()?;
        if let Some(piece) = payload.str_at("bytes") {
            return Some(json::read_mended(&bytes::of_base64(piece).ok()?).ok()?.0);
        }
        // It makes all frames of about one length.
        if let Value::Object(payload) = &mut payload {
            payload.shift_remove("p");
        }
        let mut event = Object::new();
        event.put(self.header(":event-type")?, payload);
        Some(event.into())
    }
}

/// The headers that are texts; others are passed over.
fn texts(mut headers: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = headers.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let (prefix, size) = match kind {
            0 | 1 => (0, 0),
            2 => (0, 1),
            3 => (0, 2),
            4 => (0, 4),
            5 | 8 => (0, 8),
            6 | 7 => (2, usize::from(u16::from_be_bytes(*rest.first_chunk()?))),
            9 => (0, 16),
            _ => return None,
        };
        let (value, after) = rest.get(prefix..)?.split_at_checked(size)?;
        if *kind == TEXT {
            found.push((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?));
        }
        headers = after;
    }
    Some(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A frame with these headers.
    pub(in super::super) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let mut written = Vec::new();
        for (name, value) in headers {
            written.push(name.len() as u8);
            written.extend(name.as_bytes());
            written.push(TEXT);
            written.extend((value.len() as u16).to_be_bytes());
            written.extend(value.as_bytes());
        }
        let length = PRELUDE + written.len() + payload.len() + CHECKSUM;
        let mut frame = (length as u32).to_be_bytes().to_vec();
        frame.extend((written.len() as u32).to_be_bytes());
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame.extend(written);
        frame.extend(payload.as_bytes());
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    fn event(kind: &str, payload: &str) -> Vec<u8> {
        let headers = [(":event-type", kind), (":message-type", "event")];
        frame(&headers, payload)
    }

    #[test]
    fn frames_are_events_under_their_names() {
        // `{"type":"message_stop"}`
        let piece = r#"{"bytes":"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0=","p":"abcd"}"#;
        let stopped = [(":message-type", "exception"), (":exception-type", "throttlingException")];
        let stream = [
            event("messageStart", r#"{"role":"assistant","p":"abc"}"#),
            event("chunk", piece),
            frame(&stopped, r#"{"message":"Too many ask."}"#),
        ];
        let expected = "data: {\"messageStart\":{\"role\":\"assistant\"}}\n\n\
                        data: {\"type\":\"message_stop\"}\n\n\
                        data: {\"type\":\"error\",\"error\":{\"type\":\"throttlingException\",\"message\":\"Too many ask.\"}}\n\n";
        assert_eq!(as_events(&stream.concat()).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_cut_is_read_up_to_there_and_damage_is_told() {
        let (first, second) = (event("a", "{}"), event("b", "{}"));
        let whole = [first.clone(), second].concat();
        for end in first.len()..whole.len() {
            let found = as_events(&whole[..end]);
            assert_eq!(found.as_deref(), Some("data: {\"a\":{}}\n\n"), "{end}");
        }
        for at in first.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let found = as_events(&damaged).unwrap();
            assert!(
                found.starts_with("data: {\"a\":{}}\n\ndata: {\"type\":\"error\""),
                "{at}: {found}"
            );
        }
        for none in [&b""[..], b"{}", b"data: {}\n\n", &[0; 40]] {
            assert_eq!(as_events(none), None);
        }
    }
}
