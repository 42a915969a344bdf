//! How a message of Gemini CLI becomes frames.

use super::{
    answer, chat,
    draft::{CompactionRecord, FrameDraft},
    parts::{self, Arguments, with_origin},
    sink::Sink,
    take,
    threads::says_nothing,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, MediaBlock, Source},
};

/// What the program says to the user alone.
const NOTICES: [&str; 3] = ["info", "warning", "error"];

/// Whether the program said it to the user alone: it is in no context.
pub(super) fn is_notice(message: &Object) -> bool {
    let kind = message.str_at("type");
    kind.is_some_and(|kind| NOTICES.contains(&kind))
}

/// Gives out a message, and the results of its calls as a frame of their own.
pub(super) fn give(
    mut message: Object,
    line: u64,
    compacted: Option<CompactionRecord>,
    sink: &mut Sink,
) {
    let kind = message.str_at("type").unwrap_or_default();
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
    let mut calls = Vec::new();
    for value in take::list(&mut message, "toolCalls").unwrap_or_default() {
        call(value, &mut calls, &mut results.facets);
    }
    // A message may hold its calls as parts, too.
    let said: Vec<String> = draft.facets.iter().filter_map(call_of).collect();
    calls.retain(|call| call_of(call).is_none_or(|id| !said.contains(&id)));
    draft.facets.append(&mut calls);
    draft.add_answer(answer::of(message.get("model"), message.get("tokens")));
    draft.payload.extend(message);
    sink.push(draft);
    if !results.facets.is_empty() {
        sink.push(results);
    }
}

/// The id of a call.
fn call_of(facet: &Facet) -> Option<String> {
    facet.call()?.id.map(str::to_owned)
}

/// A thought: its subject and its description. One of them may be missing.
fn thought(value: Value) -> Facet {
    let text = |key: &str| value.str_at(key).filter(|text| !text.is_empty());
    let text = match (text("subject"), text("description")) {
        (Some(subject), Some(description)) => format!("{subject}\n{description}"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => value.as_str().unwrap_or_default().to_owned(),
    };
    with_origin(parts::thought(text), value)
}

pub(super) fn content(body: Option<Value>, text_type: &FacetType, draft: &mut FrameDraft) {
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
pub(super) fn part(value: Value, text_type: &FacetType) -> Facet {
    let Value::Object(mut object) = value else { return chat::content_part(value, text_type) };
    respell(&mut object);
    if let Some(text) = take::text(&mut object, "text") {
        let is_thought = object.get("thought").and_then(Value::as_bool) == Some(true);
        let facet_type = if is_thought { FacetType::THOUGHT } else { text_type.clone() };
        return with_origin(parts::text(facet_type, text), object.into());
    }
    if let Some(mut call) = take::object(&mut object, "functionCall") {
        let (id, name) = (take::text(&mut call, "id"), take::text(&mut call, "name"));
        let arguments = Arguments::from(call.shift_remove("args"));
        put_rest(&mut object, "functionCall", call);
        let call = parts::call(id.as_deref(), name.as_deref().unwrap_or_default(), arguments);
        return with_origin(call, object.into());
    }
    if let Some(code) = take::object(&mut object, CODE) {
        object.put("field", CODE);
        return with_origin(
            parts::call(None, CODE_TOOL, Arguments::Json(code.into())),
            object.into(),
        );
    }
    if let Some(mut result) = take::object(&mut object, CODE_RESULT) {
        let output = take::text(&mut result, "output").unwrap_or_default();
        let stated = result.str_at("outcome").map(|outcome| outcome != "OUTCOME_OK");
        let stated = stated.map_or(CallOutcome::Unstated, CallOutcome::failed_if);
        object.put("field", CODE_RESULT);
        put_rest(&mut object, CODE_RESULT, result);
        return with_origin(parts::result(None, Some(CODE_TOOL), output, stated), object.into());
    }
    if let Some(response) = object.get(RESPONSE).filter(|response| response.as_object().is_some()) {
        let text = |key: &str| response.str_at(key).map(str::to_owned);
        let answer = response.get("response");
        let failed =
            answer.is_some_and(|of| of.get("error").is_some() && of.get("output").is_none());
        let stated = CallOutcome::failed_if(failed);
        let facet = parts::result(text("id").as_deref(), text("name").as_deref(), "", stated);
        return outcome(facet, object.into());
    }
    let text = |key: &str| {
        let data = MEDIA.iter().find_map(|member| object.get(member))?;
        data.str_at(key).map(str::to_owned)
    };
    let source = text("data").or_else(|| text("fileUri"));
    match (text("mimeType"), source) {
        (Some(kind), Some(source)) if kind.starts_with("image/") => {
            parts::image(Some(&kind), Some(&source), object.into())
        }
        _ => {
            let kind = object.keys().next().cloned().unwrap_or_else(|| "part".to_owned());
            parts::opaque(&kind, object.into())
        }
    }
}

/// The member of a part that is a result, and those of one that is an image or another file.
pub(super) const RESPONSE: &str = "functionResponse";
const MEDIA: [&str; 2] = ["inlineData", "fileData"];
/// Those of one that is code which the provider runs, and of what it gave.
pub(super) const CODE: &str = "executableCode";
pub(super) const CODE_RESULT: &str = "codeExecutionResult";
/// The provider's tool that runs code, as a request names it.
const CODE_TOOL: &str = "codeExecution";

/// The members by which the API takes them too.
const SPELLINGS: [(&str, &str); 9] = [
    ("function_call", "functionCall"),
    ("function_response", RESPONSE),
    ("inline_data", "inlineData"),
    ("file_data", "fileData"),
    ("executable_code", CODE),
    ("code_execution_result", CODE_RESULT),
    ("thought_signature", "thoughtSignature"),
    ("mime_type", "mimeType"),
    ("file_uri", "fileUri"),
];

/// Puts what the member of a part holds besides beside the part's own; in its place where they have the
/// same names.
fn put_rest(part: &mut Object, member: &str, rest: Object) {
    if rest.keys().any(|key| part.contains_key(key)) {
        part.put(member, rest);
    } else {
        part.extend(rest);
    }
}

/// Gives the members of a part one spelling.
fn respell(part: &mut Object) {
    for (written, name) in SPELLINGS {
        if !part.contains_key(name)
            && let Some(value) = part.shift_remove(written)
        {
            part.put(name, value);
        }
    }
    for member in MEDIA {
        if let Some(Value::Object(data)) = part.get_mut(member) {
            respell(data);
        }
    }
}

/// What a part is by its first member, where nobody here knows it.
pub(super) fn unknown_kind(part: &Object) -> Option<&str> {
    let is_known = |key: &String| {
        let known = SPELLINGS.iter().flat_map(|(written, name)| [*written, *name]);
        known.chain(["text", "type"]).any(|known| known == key)
    };
    let first = part.keys().next()?;
    (!part.keys().any(is_known)).then_some(first)
}

/// A result with what `stated` holds: its text, and the images and files in it as children. What else
/// is in it is the origin.
fn outcome(mut facet: Facet, mut stated: Value) -> Facet {
    take_media(&mut stated, &mut facet.children);
    facet.content = match &stated {
        Value::Null => String::new(),
        Value::Array(left) if left.is_empty() => String::new(),
        stated => said(stated).unwrap_or_else(|| stated.to_string()),
    };
    with_origin(facet, stated)
}

/// Takes images and files out of a value, wherever they stand in it: parts of Gemini's API, and blocks
/// of tools of MCP, which the client may put into the JSON of an answer.
fn take_media(value: &mut Value, found: &mut Vec<Facet>) {
    if is_media(value) {
        return found.push(media(value.take()));
    }
    match value {
        Value::Array(list) => {
            let all = std::mem::take(list);
            list.extend(all.into_iter().filter_map(|mut item| {
                let is_taken = is_media(&item);
                take_media(&mut item, found);
                (!is_taken).then_some(item)
            }));
        }
        Value::Object(object) => {
            object.values_mut().for_each(|inner| take_media(inner, found));
        }
        _ => {}
    }
}

fn is_media(value: &Value) -> bool {
    let block = MediaBlock::of(value);
    // A part that is a result too is read as one.
    value.get(RESPONSE).is_none()
        && (MEDIA.iter().any(|member| value.get(member).is_some())
            || block.media_type.is_some() && block.data.is_some())
}

/// An image or a file: a part, or a block.
fn media(value: Value) -> Facet {
    let is_image = MediaBlock::of(&value).media_type.is_some_and(|kind| kind.starts_with("image/"));
    match value {
        Value::Object(block)
            if is_image && !MEDIA.iter().any(|member| block.contains_key(member)) =>
        {
            super::blocks::image(block)
        }
        other => part(other, &FacetType::RESULT),
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
    let stated = CallOutcome::of_status(call.str_at("status"));
    let result = call.shift_remove("result");
    calls.push(with_origin(parts::call(id, name.unwrap_or_default(), arguments), call.into()));
    match result {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) if list.is_empty() => {}
        Some(Value::String(text)) => {
            results.push(parts::result(id, name, &*text, stated.said_as(&text)));
        }
        Some(other) => results.push(outcome(parts::result(id, name, "", stated), other)),
    }
}

/// What a result says as text: the output or error of its function responses, and its text parts.
fn said(result: &Value) -> Option<String> {
    let list = result.as_array().unwrap_or(std::slice::from_ref(result));
    let texts: Vec<_> = list.iter().filter_map(said_by).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// What a part says as text. The output of a tool may be a list of parts itself.
fn said_by(part: &Value) -> Option<String> {
    let response = part.get(RESPONSE).and_then(|function| function.get("response"));
    let answer = |key: &str| match response?.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            let texts: Option<Vec<_>> = list.iter().map(said_by).collect();
            texts.map(|texts| texts.join("\n"))
        }
        _ => None,
    };
    let whole = || response.filter(|response| !says_nothing(response)).map(Value::to_string);
    let only = answer("output").or_else(|| answer("error")).or_else(whole);
    only.or_else(|| part.str_at("text").or_else(|| part.as_str()).map(str::to_owned))
}
