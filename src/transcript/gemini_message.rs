//! How a message of Gemini CLI becomes frames.

use super::{
    chat,
    draft::{CompactionRecord, FrameDraft},
    parts::{self, Arguments, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{Facet, Source},
};

/// What the program says to the user alone.
const NOTICES: [&str; 3] = ["info", "warning", "error"];

/// Whether the program said it to the user alone: it is in no context.
pub(super) fn is_notice(message: &Object) -> bool {
    let kind = message.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| NOTICES.contains(&kind))
}

/// Gives out a message, and the results of its calls as a frame of their own.
pub(super) fn give(
    mut message: Object,
    line: u64,
    compacted: Option<CompactionRecord>,
    sink: &mut Sink,
) {
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
    let (source, text_type) = match kind {
        "user" => (Source::User, FacetType::EVENT),
        "gemini" => (Source::Agent, FacetType::SPEECH),
        kind if NOTICES.contains(&kind) => return sink.skip(kind),
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
    let mut draft = FrameDraft { compacted, ..FrameDraft::message(source, line) };
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
