//! Google's `generateContent`: contents with parts, and answers that come as streams of candidates.

use std::collections::BTreeMap;

use super::{
    chat,
    draft::FrameDraft,
    gemini_message,
    sink::Sink,
    sse::{self, StreamedResponse},
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{ModelAnswer, Source},
};

/// Gives a content of a request, or one that was answered, to the sink.
pub(super) fn push(content: Value, line: u64, sink: &mut Sink) {
    match content {
        Value::Object(content) => {
            note_unknown(content.get("parts"), line, sink);
            let stop = content.str_at("finishReason").map(Box::from);
            let mut draft = message(content, line);
            draft.add_answer(ModelAnswer { stop, ..ModelAnswer::default() });
            sink.push(draft);
        }
        other => sink.unknown(line, format!("{} is no content", other.kind()), other),
    }
}

/// A content as a message; without a role it is the user who speaks.
pub(super) fn message(mut content: Object, line: u64) -> FrameDraft {
    let (source, text_type) = chat::source_of_role(content.str_at("role").unwrap_or("user"));
    let mut draft = FrameDraft::message(source, line);
    gemini_message::content(content.shift_remove("parts"), &text_type, &mut draft);
    draft.payload.extend(content);
    draft
}

/// A system prompt: a content, or what a client writes in its place.
pub(super) fn push_system(system: Value, line: u64, sink: &mut Sink) {
    let mut draft = FrameDraft::record(Source::System, line);
    let parts = match system {
        Value::Object(mut content) if content.contains_key("parts") => {
            let parts = content.shift_remove("parts").unwrap_or_default();
            draft.payload.extend(content);
            parts
        }
        other => other,
    };
    note_unknown(Some(&parts), line, sink);
    gemini_message::content(Some(parts), &FacetType::SYSTEM, &mut draft);
    if !draft.facets.is_empty() || !draft.payload.is_empty() {
        sink.push(draft);
    }
}

/// Notes the parts that nobody here knows.
fn note_unknown(parts: Option<&Value>, line: u64, sink: &mut Sink) {
    let listed = parts.and_then(Value::as_array).unwrap_or_default();
    let objects = listed.iter().filter_map(Value::as_object);
    for kind in objects.filter_map(gemini_message::unknown_kind) {
        sink.note(line, &format!("a part of type {kind:?} is not understood, and kept as it is"));
    }
}

/// The response of a stream, of events or of the elements of a list.
pub(super) fn of_stream(stream: &str) -> Option<StreamedResponse> {
    joined(sse::events(stream))
}

/// The response whose pieces these are. `None` where no candidate came, and nothing says why.
pub(super) fn joined(pieces: Vec<Value>) -> Option<StreamedResponse> {
    let mut response = Object::new();
    let mut candidates = BTreeMap::<u64, Object>::new();
    for piece in pieces {
        let Value::Object(mut piece) = piece else { continue };
        let list = take::list(&mut piece, CANDIDATES).unwrap_or_default();
        for (position, candidate) in (0..).zip(list) {
            let Value::Object(candidate) = candidate else { continue };
            let index = candidate.get("index").and_then(Value::as_u64).unwrap_or(position);
            add(candidates.entry(index).or_default(), candidate);
        }
        // What went wrong is told by the event, as of other streams.
        piece.shift_remove("error");
        for (key, value) in piece {
            match (response.get_mut(&key), value) {
                // Later events say more of the usage.
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (_, value) => response.put(&key, value),
            }
        }
    }
    let is_blocked = block_reason(&response).is_some();
    if candidates.is_empty() && !is_blocked {
        return None;
    }
    let is_whole =
        is_blocked || candidates.values().any(|candidate| candidate.contains_key("finishReason"));
    response.put(CANDIDATES, candidates.into_values().map(Value::from).collect::<Value>());
    Some(StreamedResponse { response: response.into(), is_whole, is_ended: is_whole })
}

/// The member of a response that holds the answers.
pub(super) const CANDIDATES: &str = "candidates";

/// Adds what a piece says of a candidate: a text goes on with the last part of its kind.
fn add(whole: &mut Object, mut piece: Object) {
    let mut content = take::object(&mut piece, "content").unwrap_or_default();
    let parts = take::list(&mut content, "parts");
    let mut known = take::object(whole, "content").unwrap_or_default();
    let mut all = take::list(&mut known, "parts").unwrap_or_default();
    for part in parts.into_iter().flatten() {
        match (all.last_mut(), part) {
            (Some(Value::Object(last)), Value::Object(mut part)) if goes_on(last, &part) => {
                let more = take::text(&mut part, "text").unwrap_or_default();
                if let Some(Value::String(text)) = last.get_mut("text") {
                    text.push_str(&more);
                }
                last.extend(part);
            }
            (Some(Value::Object(last)), Value::Object(mut part)) if call_goes_on(last, &part) => {
                let more = take::object(&mut part, CALL).unwrap_or_default();
                if let Some(Value::Object(call)) = last.get_mut(CALL) {
                    add_to_call(call, more);
                }
                last.extend(part);
            }
            (_, Value::Object(mut part)) if is_in_pieces(&part) => {
                let (begun, mut call) =
                    (take::object(&mut part, CALL).unwrap_or_default(), Object::new());
                add_to_call(&mut call, begun);
                part.put(CALL, call);
                all.push(part.into());
            }
            (_, part) => all.push(part),
        }
    }
    known.extend(content);
    known.put("parts", all);
    whole.extend(piece);
    whole.put("content", known);
}

/// Whether a part is the next piece of a text: both are texts of one kind. One with a signature ends
/// there.
fn goes_on(last: &Object, part: &Object) -> bool {
    let is_text = |part: &Object| part.str_at("text").is_some();
    is_text(last)
        && is_text(part)
        && last.get("thought") == part.get("thought")
        && last.keys().all(|key| matches!(key.as_str(), "text" | "thought"))
}

/// A call; what is said where more of it follows; and the pieces of its arguments.
const CALL: &str = "functionCall";
const GOES_ON: &str = "willContinue";
const PIECES: &str = "partialArgs";

/// Whether a part is the next piece of a call: it has no name of its own.
fn call_goes_on(last: &Object, part: &Object) -> bool {
    let is_open = |call: &Value| call.get(GOES_ON) == Some(&Value::Bool(true));
    let has_no_name = |call: &Value| call.str_at("name").is_none_or(str::is_empty);
    last.get(CALL).is_some_and(is_open) && part.get(CALL).is_some_and(has_no_name)
}

fn is_in_pieces(part: &Object) -> bool {
    part.get(CALL).is_some_and(|call| call.get(PIECES).is_some())
}

/// Adds what a piece says of a call. A piece of the arguments that has no place among them stays.
fn add_to_call(call: &mut Object, mut more: Object) {
    call.shift_remove(GOES_ON);
    let pieces = take::list(&mut more, PIECES).unwrap_or_default();
    call.extend(more);
    let mut arguments = call.shift_remove("args").unwrap_or_else(|| Object::new().into());
    let mut left = take::list(call, PIECES).unwrap_or_default();
    left.extend(pieces.into_iter().filter(|piece| put_argument(&mut arguments, piece).is_none()));
    call.put("args", arguments);
    call.put_some(PIECES, (!left.is_empty()).then_some(left));
}

/// Puts a piece at its place in the arguments: a string goes on there. `None` where it has none.
fn put_argument(arguments: &mut Value, piece: &Value) -> Option<()> {
    let mut kinds = ["stringValue", "numberValue", "boolValue", "nullValue"].into_iter();
    let (key, value) = kinds.find_map(|key| Some((key, piece.get(key)?)))?;
    let value = if key == "nullValue" { Value::Null } else { value.clone() };
    // A path of JSONPath: `$.places[0].name`, `$['a name']`.
    let path = piece.str_at("jsonPath")?.strip_prefix('$')?;
    let steps: Vec<&str> = path
        .split(['.', '[', ']'])
        .map(|step| step.trim_matches(['\'', '"']))
        .filter(|step| !step.is_empty())
        .collect();
    if steps.len() > DEEPEST {
        return None;
    }
    let mut place = arguments;
    for step in steps {
        let index = step.parse::<usize>().ok().filter(|_| place.as_object().is_none());
        if place.is_null() {
            *place = index.map_or_else(|| Object::new().into(), |_| Value::Array(Vec::new()));
        }
        place = match (place, index) {
            (Value::Object(members), _) => {
                if !members.contains_key(step) {
                    members.put(step, Value::Null);
                }
                members.get_mut(step)?
            }
            (Value::Array(list), Some(index)) => {
                if index == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(index)?
            }
            _ => return None,
        };
    }
    match (place, value) {
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (place, value) => *place = value,
    }
    Some(())
}

/// So deep arguments may nest that come in pieces.
const DEEPEST: usize = 64;

/// Why the provider answered nothing to a prompt, where it says that.
pub(super) fn block_reason(response: &Object) -> Option<&str> {
    response.get("promptFeedback")?.str_at("blockReason")
}

/// The first candidate as a content; others stay beside it.
pub(super) fn message_of(candidates: Vec<Value>) -> Option<Object> {
    let mut candidates = candidates.into_iter();
    let Some(Value::Object(mut first)) = candidates.next() else { return None };
    let mut message = take::object(&mut first, "content").unwrap_or_default();
    first.shift_remove("index");
    take::default_role(&mut message, "model");
    message.put_unknown(&first);
    let others: Vec<Value> = candidates.collect();
    message.put_some(CANDIDATES, (!others.is_empty()).then_some(others));
    Some(message)
}

#[cfg(test)]
#[path = "generate_content_tests.rs"]
mod tests;
