//! Chat lists: the messages of OpenAI's chat completions and of everyone who writes like them.

use super::{
    answer,
    draft::{CompactionRecord, FrameDraft},
    parts::{self, Arguments, with_origin},
    sdk_parts,
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, Source},
};

/// Reads `[message]`, `{"messages": [message]}`, and either of them, or bare messages, by line.
#[derive(Default)]
pub(super) struct ChatReader {
    documents: u64,
}

impl ChatReader {
    /// A document: a list of messages, or an object that holds one.
    pub(super) fn is_document(value: &Value) -> bool {
        messages_of(value).is_some_and(|list| list.iter().all(is_message))
    }

    /// A line that is a message by itself.
    pub(super) fn is_line(value: &Value) -> bool {
        is_message(value) || value.get("messages").is_some() && Self::is_document(value)
    }
}

pub(super) fn messages_of(value: &Value) -> Option<&[Value]> {
    value.as_array().or_else(|| value.get("messages")?.as_array())
}

fn is_message(value: &Value) -> bool {
    value.str_at("role").is_some()
        && value.get("type").is_none_or(|kind| kind == &Value::from("message"))
}

impl super::Decoder for ChatReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let (messages, mut rest) = match value {
            Value::Array(messages) => (messages, Object::new()),
            Value::Object(mut object) => match object.shift_remove("messages") {
                Some(Value::Array(messages)) => (messages, object),
                Some(other) => {
                    object.put("messages", other);
                    return sink.unknown(line, "messages is not a list", object.into());
                }
                None => return message_or_unknown(object.into(), line, sink),
            },
            other => return sink.unknown(line, format!("{} is no message", other.kind()), other),
        };
        self.documents += 1;
        sink.session(&self.documents.to_string());
        if let Some(system) = rest.shift_remove("system") {
            system_prompt(system, line, sink);
        }
        for message in messages {
            message_or_unknown(message, line, sink);
        }
    }
}

/// A system prompt that stands apart from the messages. It is no message.
pub(super) fn system_prompt(system: Value, line: u64, sink: &mut Sink) {
    let mut draft = FrameDraft::record(Source::System, line);
    content(system, &FacetType::SYSTEM, &mut draft);
    if !draft.facets.is_empty() {
        sink.push(draft);
    }
}

/// A message into the sink, or what it is instead.
pub(super) fn message_or_unknown(value: Value, line: u64, sink: &mut Sink) {
    match value {
        Value::Object(object) if object.get("role").is_some_and(|role| role.as_str().is_some()) => {
            sdk_parts::note_steps(&object, line, sink);
            let draft = message(object, line);
            sdk_parts::count_unsent(&draft, sink);
            sink.push(draft);
        }
        Value::Object(object) => sink.unknown(line, "a message without a role", object.into()),
        other => sink.unknown(line, format!("{} is no message", other.kind()), other),
    }
}

/// The source of a message with this role, and the type of the text that it holds.
pub(super) fn source_of_role(role: &str) -> (Source, FacetType) {
    match role {
        "system" | "developer" => (Source::System, FacetType::SYSTEM),
        "user" | "human" => (Source::User, FacetType::EVENT),
        "assistant" | "model" | "ai" => (Source::Agent, FacetType::SPEECH),
        "tool" | "function" => (Source::Environment, FacetType::RESULT),
        other => (Source::from(other), FacetType::EVENT),
    }
}

/// A message with its parts in the order in which a model writes them: reasoning, text, calls.
pub(super) fn message(mut object: Object, line: u64) -> FrameDraft {
    let role = object.str_at("role").unwrap_or_default().to_owned();
    let (source, text_type) = source_of_role(&role);
    let mut draft = FrameDraft::message(source, line);
    draft.timestamp = object.str_at("timestamp").map(str::to_owned);
    sdk_parts::unify(&mut object);
    for key in ["reasoning_content", "reasoning"] {
        if let Some(Value::String(text)) = object.get(key)
            && !text.is_empty()
        {
            let mut origin = Object::new();
            origin.put("field", key);
            draft.facets.push(with_origin(parts::thought(text.as_str()), origin.into()));
            object.shift_remove(key);
        }
    }
    let is_result = text_type == FacetType::RESULT;
    let body = object.shift_remove("content");
    if let Some(Value::Array(list)) =
        object.get_mut("parts").filter(|_| says_nothing(body.as_ref()))
    {
        draft.facets.extend(sdk_parts::of_ui(std::mem::take(list), &text_type));
        object.shift_remove("parts");
        draft.payload.put("form", "parts");
    } else if is_result && has_results(body.as_ref()) {
        // Each part is a result, with its own id.
        content(body.unwrap_or_default(), &text_type, &mut draft);
    } else if is_result {
        let call_id = take::text_or_null(&mut object, "tool_call_id");
        let name = object.str_at("name").map(str::to_owned);
        result(body, call_id.as_deref(), name.as_deref(), &mut draft);
    } else if let Some(body) = body {
        content(body, &text_type, &mut draft);
    } else {
        draft.payload.put("form", "absent");
    }
    if let Some(Value::String(refusal)) = object.get("refusal") {
        let mut origin = Object::new();
        origin.put("field", "refusal");
        draft.facets.push(with_origin(parts::text(text_type, refusal.as_str()), origin.into()));
        object.shift_remove("refusal");
    }
    if let Some(Value::Array(calls)) = object.get_mut("tool_calls")
        && !calls.is_empty()
    {
        draft.facets.extend(std::mem::take(calls).into_iter().map(tool_call));
        object.shift_remove("tool_calls");
    }
    if object.get("function_call").is_some_and(|call| call.as_object().is_some()) {
        let call = object.shift_remove("function_call").unwrap_or_default();
        draft.facets.push(function_call(call));
    }
    draft.add_answer(answer::of_message(&object));
    draft.payload.extend(object);
    // The API ignores all that comes before the last summary.
    if draft.source == Source::Agent && draft.facets.iter().any(parts::is_compaction) {
        draft.compacted = Some(CompactionRecord::in_place("messages-api"));
    }
    draft
}

fn says_nothing(content: Option<&Value>) -> bool {
    content.is_none_or(|content| content.is_null() || content.as_str() == Some(""))
}

/// Whether the parts of a message of a tool are results themselves.
fn has_results(content: Option<&Value>) -> bool {
    let parts = content.and_then(Value::as_array).unwrap_or_default();
    parts.iter().any(|part| part.str_at("type") == Some("tool-result"))
}

/// A message whose content parts are read by `part`, for formats with parts of their own. A part
/// may become several facets.
pub(super) fn message_with_parts(
    mut object: Object,
    line: u64,
    part: impl Fn(Value, &FacetType) -> Vec<Facet>,
) -> FrameDraft {
    let parts = match object.get_mut("content") {
        Some(Value::Array(list)) => std::mem::take(list),
        _ => Vec::new(),
    };
    let role = object.str_at("role").unwrap_or_default();
    let (_, text_type) = source_of_role(role);
    let mut draft = message(object, line);
    let facets = parts.into_iter().flat_map(|value| part(value, &text_type));
    if let Some(result) =
        draft.facets.iter_mut().find(|facet| facet.facet_type == FacetType::RESULT)
    {
        result.children.extend(facets);
    } else {
        // After the reasoning, before the calls, as in any message.
        let is_thought = |facet: &&Facet| facet.facet_type == FacetType::THOUGHT;
        let tail = draft.facets.split_off(draft.facets.iter().take_while(is_thought).count());
        draft.facets.extend(facets);
        draft.facets.extend(tail);
    }
    draft
}

/// Says of the result that a message is what its format writes in places of its own.
pub(super) fn complete_result(
    draft: &mut FrameDraft,
    call_id: Option<&str>,
    name: Option<&str>,
    stated: CallOutcome,
) {
    let results = draft.facets.iter_mut().filter(|facet| facet.facet_type == FacetType::RESULT);
    results.for_each(|facet| parts::complete_result(facet, call_id, name, stated));
}

/// An entry of `tool_calls`. inspect writes the name as `function`, and the arguments beside it.
pub(super) fn tool_call(call: Value) -> Facet {
    let Value::Object(mut call) = call else { return parts::opaque("tool call", call) };
    let id = take::text_or_null(&mut call, "id");
    let name_in = |object: &mut Object| take::text_or_null(object, "name");
    let (name, arguments, mut inner) =
        if let Some(mut function) = take::object(&mut call, "function") {
            (name_in(&mut function), function.shift_remove("arguments"), function)
        } else if let Some(mut custom) = take::object(&mut call, "custom") {
            // Custom tools: `{"type": "custom", "custom": {"name", "input"}}`.
            (name_in(&mut custom), custom.shift_remove("input"), custom)
        } else {
            let name = take::text_or_null(&mut call, "function").or_else(|| name_in(&mut call));
            (name, call.shift_remove("arguments"), Object::new())
        };
    let facet = parts::call(id.as_deref(), name.as_deref().unwrap_or_default(), arguments.into());
    if call.get("type").is_some_and(|kind| kind == &Value::from("function")) {
        call.shift_remove("type");
    }
    if !inner.is_empty() {
        call.put("function", std::mem::take(&mut inner));
    }
    with_origin(facet, call.into())
}

/// The legacy `function_call`, which has no id.
fn function_call(call: Value) -> Facet {
    let Value::Object(mut call) = call else { return parts::opaque("function call", call) };
    let name = take::text_or_null(&mut call, "name").unwrap_or_default();
    let arguments = Arguments::from(call.shift_remove("arguments"));
    let mut origin = call;
    origin.put("field", "function_call");
    with_origin(parts::call(None, &name, arguments), origin.into())
}

/// A message that is the result of a call. Text is its own; other parts are children.
fn result(body: Option<Value>, call_id: Option<&str>, name: Option<&str>, draft: &mut FrameDraft) {
    let facet = match body {
        Some(Value::String(text)) => parts::result(call_id, name, text, CallOutcome::Unstated),
        Some(Value::Array(list)) => {
            draft.payload.put("form", "parts");
            let mut facet = parts::result(call_id, name, "", CallOutcome::Unstated);
            facet.children =
                list.into_iter().map(|part| content_part(part, &FacetType::RESULT)).collect();
            facet
        }
        None | Some(Value::Null) => {
            draft.payload.put("form", "null");
            parts::result(call_id, name, "", CallOutcome::Unstated)
        }
        Some(other) => {
            draft.payload.put("form", "json");
            let text = other.to_string();
            with_origin(parts::result(call_id, name, text, CallOutcome::Unstated), other)
        }
    };
    draft.facets.push(facet);
}

/// The content of a message: a string, a list of parts, `null`, or something else.
pub(super) fn content(body: Value, text_type: &FacetType, draft: &mut FrameDraft) {
    match body {
        Value::String(text) if text.is_empty() => draft.payload.put("form", "empty"),
        Value::String(text) => draft.facets.push(parts::text(text_type.clone(), text)),
        Value::Null => draft.payload.put("form", "null"),
        Value::Array(list) => {
            draft.payload.put("form", "parts");
            draft.facets.extend(list.into_iter().map(|part| content_part(part, text_type)));
        }
        other => {
            draft.payload.put("form", "json");
            draft.facets.push(parts::opaque("content", other));
        }
    }
}

/// A part of a content list. Blocks of the Messages API may stand among them.
pub(super) fn content_part(part: Value, text_type: &FacetType) -> Facet {
    let Value::Object(mut object) = part else {
        return match part {
            Value::String(text) => {
                let mut origin = Object::new();
                origin.put("form", "string");
                with_origin(parts::text(text_type.clone(), text), origin.into())
            }
            other => parts::opaque("part", other),
        };
    };
    let kind = object.str_at("type").unwrap_or_default().to_owned();
    match kind.as_str() {
        "text" | "input_text" | "output_text" | "refusal" => {
            let key = if kind == "refusal" { "refusal" } else { "text" };
            match object.shift_remove(key) {
                Some(Value::String(text)) => {
                    with_origin(parts::text(text_type.clone(), text), object.into())
                }
                other => {
                    object.put_some(key, other);
                    parts::opaque(&kind, object.into())
                }
            }
        }
        "image_url" | "image" | "input_image" => {
            let url = object.get("image_url").map(|url| url.get("url").unwrap_or(url));
            let source = url.or_else(|| object.get("image")).and_then(Value::as_str);
            match source.map(str::to_owned) {
                Some(source) => parts::image(None, Some(&source), object.into()),
                None => super::blocks::block(object, text_type),
            }
        }
        "input_audio" => parts::opaque("audio", object.into()),
        _ => super::blocks::block(object, text_type),
    }
}
