//! Ollama's API. Messages have the form of Chat Completions, with images and reasoning of their own. A
//! request may hold a prompt alone. A streamed answer has a piece on each line.

use super::{
    chat,
    parts::{self, with_origin},
    sink::Sink,
    sse::{self, StreamedResponse},
    take,
};
use crate::{
    json::{Object, ObjectExt, Value, object},
    veil::CallOutcome,
};

/// Gives a message to the sink.
pub(super) fn push(message: Value, line: u64, sink: &mut Sink) {
    let Value::Object(mut message) = message else {
        return chat::message_or_unknown(message, line, sink);
    };
    if message.str_at("role").is_none() {
        return chat::message_or_unknown(message.into(), line, sink);
    }
    let thought = take::text(&mut message, "thinking").filter(|text| !text.is_empty());
    let field = || object! { "field": "thinking" }.into();
    let thought = thought.map(|text| with_origin(parts::thought(text), field()));
    let images = take::list(&mut message, "images").unwrap_or_default().into_iter();
    let images = images.map(|data| match data {
        Value::String(data) => {
            let block = object! { "field": "images", "data": &*data };
            parts::image(None, Some(&data), block.into())
        }
        other => parts::opaque("image", other),
    });
    let tool = message.str_at("tool_name").map(str::to_owned);
    let mut draft = chat::message(message, line);
    chat::complete_result(&mut draft, None, tool.as_deref(), CallOutcome::Unstated);
    let said = std::mem::take(&mut draft.facets);
    draft.facets = thought.into_iter().chain(said).chain(images).collect();
    sink.push(draft);
}

/// The prompt of a request without messages, as the message that it is.
pub(super) fn prompt(prompt: Value, request: &Object) -> Value {
    let mut message = object! { "role": "user", "content": prompt };
    for key in ["images", "suffix"] {
        message.put_some(key, request.get(key).cloned());
    }
    message.into()
}

/// The response whose pieces these are; a whole one is its only piece.
pub(super) fn joined(pieces: Vec<Value>) -> Option<StreamedResponse> {
    let mut response = Object::new();
    let mut is_whole = false;
    let is_alone = pieces.len() == 1;
    for piece in pieces {
        let Value::Object(mut piece) = piece else { continue };
        // What ends a stream in the place of an answer is told by the event.
        if !is_alone && piece.contains_key("error") {
            continue;
        }
        is_whole |= piece.get("done").and_then(Value::as_bool) != Some(false);
        let mut said = Object::new();
        for key in SAID {
            said.put_some(key, piece.shift_remove(key));
        }
        sse::join(&mut response, said);
        response.extend(piece);
    }
    let is_answer = SAID.iter().any(|key| response.contains_key(key));
    (is_answer || is_alone).then(|| StreamedResponse {
        response: response.into(),
        is_whole,
        is_ended: is_whole,
    })
}

/// What an answer says, by the API: a message, or a text and the reasoning before it.
const SAID: [&str; 3] = ["message", "response", "thinking"];

/// The message of a response.
pub(super) fn message_of(mut response: Object) -> Object {
    let mut message = take::object(&mut response, "message").unwrap_or_else(|| {
        let mut message = Object::new();
        message.put_some("content", response.shift_remove("response"));
        message.put_some("thinking", response.shift_remove("thinking"));
        message
    });
    take::default_role(&mut message, "assistant");
    message.put_some("done_reason", response.shift_remove("done_reason"));
    message
}

#[cfg(test)]
#[path = "ollama_tests.rs"]
mod tests;
