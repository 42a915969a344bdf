//! Bodies of requests and responses in the forms in which recorders keep them.

use super::{BodyText, bytes};
use crate::json::{self, ErrorKind, Object, Value};

/// A body as a recorder kept it.
#[derive(Debug, Default)]
pub(super) enum Payload {
    /// There is none.
    #[default]
    Absent,
    /// The text that went over the wire.
    Text(BodyText),
    /// Its JSON, which the recorder parsed.
    Json(Value),
    /// Bytes that no text can be made of, with why.
    Unreadable(String),
}

impl Payload {
    /// A body that stands for itself: text, or JSON.
    pub(super) fn of_value(value: Value) -> Self {
        match value {
            Value::Null => Self::Absent,
            Value::String(text) => Self::Text(text.into()),
            other => Self::Json(other),
        }
    }

    /// The bytes of a body, unpacked where they are packed.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() {
            return Self::Absent;
        }
        let sent = bytes.len();
        match bytes::unpacked(bytes, sent) {
            Ok(bytes) => Self::of_unpacked(&bytes, BodyText::of_bytes),
            Err(reason) => Self::Unreadable(reason),
        }
    }

    /// As [`Payload::of_bytes`], of bytes that somebody else holds, and that were sent in so many.
    /// `text` makes a text of them.
    #[cfg(feature = "record")]
    pub(super) fn of_slice(
        held: &[u8],
        sent: usize,
        text: impl FnOnce(&[u8]) -> Option<BodyText>,
    ) -> Self {
        match held {
            [] => Self::Absent,
            held if bytes::is_packed(held) => match bytes::unpacked(held.to_vec(), sent) {
                Ok(bytes) => Self::of_unpacked(&bytes, text),
                Err(reason) => Self::Unreadable(reason),
            },
            held => Self::of_unpacked(held, text),
        }
    }

    /// Frames of an event stream are the events that they hold.
    fn of_unpacked(bytes: &[u8], text: impl FnOnce(&[u8]) -> Option<BodyText>) -> Self {
        #[cfg(feature = "record")]
        if let Some(events) = super::event_stream::as_events(bytes) {
            return Self::Text(events.into());
        }
        let none = || Self::Unreadable("a body that is no text".to_owned());
        text(bytes).map_or_else(none, Self::Text)
    }

    /// The JSON of the body, where it is some.
    pub(super) fn value(&self) -> Option<Value> {
        match self {
            Self::Text(text) => json::read_mended(text.as_bytes()).ok().map(|(value, _)| value),
            Self::Json(value) => Some(value.clone()),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// Why the body of `what` is no object of JSON, as a sentence.
    pub(super) fn why_no_object(&self, what: &str) -> String {
        let other = |value: &Value| format!("{what} is {}, and no object", value.kind());
        match self {
            Self::Absent => format!("{what} has no body"),
            Self::Unreadable(reason) => reason.clone(),
            Self::Json(value) => other(value),
            Self::Text(text) => match json::read_mended(text.as_bytes()) {
                Ok((value, _)) => other(&value),
                Err(error) if error.kind() == ErrorKind::Limit => {
                    format!("{what} cannot be read: {}", error.message())
                }
                Err(_) => format!("{what} is no JSON"),
            },
        }
    }

    /// The body as JSON: a text stays one.
    pub(super) fn into_value(self) -> Option<Value> {
        match self {
            Self::Text(text) => Some(text.as_str().into()),
            Self::Json(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// The text of the body: as it was sent, or as its JSON is written.
    pub(super) fn text(&self) -> Option<BodyText> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Json(value) => Some(value.to_string().into()),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// Whether the text is that of the wire.
    pub(super) fn is_as_sent(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

/// The body of a message of a cassette: `body` is text, or holds it as `string`, or as
/// `base64_string`; a `parsed_body` is its JSON.
pub(super) fn of_message(message: Value) -> Payload {
    let Value::Object(mut message) = message else { return Payload::of_value(message) };
    match message.shift_remove("body") {
        None | Some(Value::Null) => {}
        Some(Value::Object(body)) => return of_body(body),
        Some(other) => return Payload::of_value(other),
    }
    message.shift_remove("parsed_body").map_or(Payload::Absent, Payload::of_value)
}

fn of_body(mut body: Object) -> Payload {
    for key in ["base64_string", BINARY] {
        if let Some(Value::String(text)) = body.get(key) {
            return of_base64(text);
        }
    }
    match body.shift_remove("string") {
        Some(Value::Object(inner)) => of_body(inner),
        Some(value) => Payload::of_value(value),
        // The body is JSON that the recorder parsed.
        None => Payload::Json(body.into()),
    }
}

/// The `postData` of a HAR request, or the `content` of a response.
pub(super) fn of_har(content: Option<Value>) -> Payload {
    let Some(Value::Object(mut content)) = content else { return Payload::Absent };
    let is_base64 = content.str_at("encoding") == Some("base64");
    match content.shift_remove("text") {
        Some(Value::String(text)) if is_base64 => of_base64(&text),
        Some(Value::String(text)) if text.is_empty() => Payload::Absent,
        Some(value) => Payload::of_value(value),
        None => Payload::Absent,
    }
}

/// The member under which the binary text of a cassette stands as base64.
pub(super) const BINARY: &str = "!!binary";

fn of_base64(text: &str) -> Payload {
    match bytes::of_base64(text) {
        Ok(bytes) => Payload::of_bytes(bytes),
        Err(reason) => Payload::Unreadable(reason),
    }
}
