//! Gemini CLI sessions: one document, or a log by line in which later lines replace messages.

use indexmap::IndexMap;

use super::{
    chat, joining,
    parts::{self, Arguments, with_origin},
    recent::Recent,
    sink::{FrameDraft, Sink},
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{Facet, Source},
};

/// How many messages are held back, so that a later line can still replace them. A line replaces
/// the message that it was written for: the last one, or one of the same turn.
#[cfg(not(test))]
const HELD: usize = 256;
#[cfg(test)]
const HELD: usize = 4;
/// How much they may hold, in bytes.
const HELD_BYTES: usize = 64 << 20;

/// Reads `{sessionId, projectHash, messages}`, and the same messages by line.
#[derive(Default)]
pub(super) struct GeminiReader {
    /// The messages that may still be replaced, in the order of their first lines.
    held: IndexMap<Key, (u64, Object)>,
    held_bytes: usize,
    /// The ids of messages that were given out.
    given: Recent<()>,
    nameless: u64,
}

/// What a message is replaced by.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Id(String),
    /// Without an id it is not replaced; this is the how manieth of those it is.
    Nameless(u64),
}

impl GeminiReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let Some(messages) = value.get("messages").and_then(Value::as_array) else { return false };
        let is_gemini = |message: &Value| message.str_at("type") == Some("gemini");
        value.get("projectHash").is_some() || messages.iter().any(is_gemini)
    }

    /// The header of a log by line, or an answer in it.
    pub(super) fn is_line(value: &Value) -> bool {
        let has = |key: &str| value.str_at(key).is_some();
        let is_header = has("sessionId") && has("projectHash") && value.get("type").is_none();
        is_header || value.str_at("type") == Some("gemini") && has("id")
    }

    /// Takes a message of a line; one with an id that is held replaces what is held.
    fn hold(&mut self, message: Object, line: u64, sink: &mut Sink) {
        let key = match id_of(&message) {
            Some(id) if self.given.get(&id).is_some() => {
                let reason = format!("replaces a message more than {HELD} messages before it");
                return sink.unknown(line, reason, message.into());
            }
            Some(id) => Key::Id(id),
            None => {
                self.nameless += 1;
                Key::Nameless(self.nameless)
            }
        };
        self.held_bytes += joining::size_of_members(&message);
        match self.held.get_mut(&key) {
            Some((_, held)) => {
                self.held_bytes -= joining::size_of_members(held);
                *held = message;
                sink.skip("replaced message");
            }
            None => {
                self.held.insert(key, (line, message));
            }
        }
        while self.held.len() > HELD || self.held.len() > 1 && self.held_bytes > HELD_BYTES {
            self.give_first(sink);
        }
    }

    fn give_first(&mut self, sink: &mut Sink) {
        if let Some((key, (line, message))) = self.held.shift_remove_index(0) {
            self.held_bytes -= joining::size_of_members(&message);
            if let Key::Id(id) = key {
                self.given.insert(&id, ());
            }
            give(message, line, sink);
        }
    }

    /// `$set` with messages writes the model's context anew. Messages that were seen stay as they
    /// were first sent; the others (a resumed session, a summary) are new.
    fn set(&mut self, change: Value, line: u64, sink: &mut Sink) {
        sink.skip("$set");
        let Value::Object(mut change) = change else { return };
        for message in take::list(&mut change, "messages").unwrap_or_default() {
            match message {
                Value::Object(message) => {
                    let is_seen = |id: String| {
                        self.given.get(&id).is_some() || self.held.contains_key(&Key::Id(id))
                    };
                    if !id_of(&message).is_some_and(is_seen) {
                        self.hold(message, line, sink);
                    }
                }
                other => sink.unknown(line, format!("{} is no message", other.kind()), other),
            }
        }
    }
}

fn id_of(message: &Object) -> Option<String> {
    message.get("id")?.as_str().map(str::to_owned)
}

impl super::Decoder for GeminiReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let mut object = match value {
            Value::Object(object) => object,
            other => return sink.unknown(line, format!("{} is no message", other.kind()), other),
        };
        if let Some(change) = object.shift_remove("$set") {
            self.set(change, line, sink);
        } else if object.contains_key("$rewindTo") {
            // What the user went back before was said all the same.
            sink.skip("$rewindTo");
        } else if let Some(Value::Array(messages)) = object.get_mut("messages") {
            // The whole session, or the header of a log that goes on.
            let messages = std::mem::take(messages);
            sink.skip("header");
            for message in messages {
                match message {
                    Value::Object(message) => {
                        if let Some(id) = id_of(&message) {
                            self.given.insert(&id, ());
                        }
                        give(message, line, sink);
                    }
                    other => sink.unknown(line, format!("{} is no message", other.kind()), other),
                }
            }
        } else if object.contains_key("sessionId") && !object.contains_key("type") {
            sink.skip("header");
        } else {
            self.hold(object, line, sink);
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        while !self.held.is_empty() {
            self.give_first(sink);
        }
    }
}

/// Gives out a message, and the results of its calls as a frame of their own.
fn give(mut message: Object, line: u64, sink: &mut Sink) {
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
    let (source, text_type) = match kind {
        "user" => (Source::User, FacetType::EVENT),
        "gemini" => (Source::Agent, FacetType::SPEECH),
        "info" | "warning" | "error" => return sink.skip(kind),
        other => {
            let has_type = message.contains_key("type");
            let reason = if has_type {
                format!("a message of type {other:?}")
            } else {
                "a record without a type".to_owned()
            };
            return sink.unknown(line, reason, message.into());
        }
    };
    let mut draft = FrameDraft::message(source, line);
    let mut results = FrameDraft::record(Source::Environment, line);
    draft.uuid = take::text(&mut message, "id");
    draft.timestamp = take::text(&mut message, "timestamp");
    let thoughts = take::list(&mut message, "thoughts").unwrap_or_default();
    draft.facets.extend(thoughts.into_iter().map(thought));
    content(message.shift_remove("content"), &text_type, &mut draft);
    for value in take::list(&mut message, "toolCalls").unwrap_or_default() {
        call(value, &mut draft.facets, &mut results.facets);
    }
    draft.payload.extend(message);
    sink.push(draft);
    if !results.facets.is_empty() {
        sink.push(results);
    }
}

/// A thought: its subject and its description, one of which may be missing.
fn thought(value: Value) -> Facet {
    let text = |key: &str| value.str_at(key).filter(|text| !text.is_empty());
    let text = match (text("subject"), text("description")) {
        (Some(subject), Some(description)) => format!("{subject}\n{description}"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => value.as_str().unwrap_or_default().to_owned(),
    };
    with_origin(parts::thought(text), value)
}

fn content(body: Option<Value>, text_type: &FacetType, draft: &mut FrameDraft) {
    match body {
        Some(Value::Array(list)) => {
            draft.payload.put("form", "parts");
            draft.facets.extend(list.into_iter().map(|value| part(value, text_type)));
        }
        // A message with one part may have it as it is.
        Some(Value::Object(only)) => {
            draft.payload.put("form", "part");
            draft.facets.push(part(only.into(), text_type));
        }
        Some(other) => chat::content(other, text_type, draft),
        None => draft.payload.put("form", "absent"),
    }
}

/// A part of Gemini's API: one member says what it is.
fn part(value: Value, text_type: &FacetType) -> Facet {
    let Value::Object(mut object) = value else { return chat::content_part(value, text_type) };
    if let Some(text) = take::text(&mut object, "text") {
        let is_thought = object.get("thought").and_then(Value::as_bool) == Some(true);
        let facet_type = if is_thought { FacetType::THOUGHT } else { text_type.clone() };
        return with_origin(parts::text(facet_type, text), object.into());
    }
    let data = object.get("inlineData");
    let text = |key: &str| data.and_then(|data| data.str_at(key)).map(str::to_owned);
    match (text("mimeType"), text("data")) {
        (Some(kind), Some(data)) if kind.starts_with("image/") => {
            parts::image(Some(&kind), Some(&data), object.into())
        }
        _ => {
            let kind = object.keys().next().cloned().unwrap_or_else(|| "part".to_owned());
            parts::opaque(&kind, object.into())
        }
    }
}

/// A call and, where it has one, its result: also of a call that failed or was cancelled.
fn call(value: Value, calls: &mut Vec<Facet>, results: &mut Vec<Facet>) {
    let Value::Object(mut call) = value else {
        return calls.push(parts::opaque("tool call", value));
    };
    let (id, name) = (take::text(&mut call, "id"), take::text(&mut call, "name"));
    let (id, name) = (id.as_deref(), name.as_deref());
    let arguments = Arguments::from(call.shift_remove("args"));
    let status = call.get("status").and_then(Value::as_str).unwrap_or_default();
    let failed = matches!(status, "error" | "cancelled");
    let outcome = call.shift_remove("result");
    calls.push(with_origin(parts::call(id, name.unwrap_or_default(), arguments), call.into()));
    match outcome {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) if list.is_empty() => {}
        Some(Value::String(text)) => results.push(parts::result(id, name, text, failed)),
        Some(other) => {
            let text = said(&other).unwrap_or_else(|| other.to_string());
            results.push(with_origin(parts::result(id, name, text, failed), other));
        }
    }
}

/// What a result says as text: the output or error of its function responses, and its text parts.
fn said(result: &Value) -> Option<String> {
    let list = result.as_array().unwrap_or(std::slice::from_ref(result));
    let of_part = |part: &Value| {
        let response = part.get("functionResponse").and_then(|function| function.get("response"));
        let text = |key: &str| response.and_then(|response| response.str_at(key));
        let only = text("output").or_else(|| text("error")).or_else(|| part.str_at("text"));
        only.or_else(|| part.as_str()).map(str::to_owned)
    };
    let texts: Vec<_> = list.iter().filter_map(of_part).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
