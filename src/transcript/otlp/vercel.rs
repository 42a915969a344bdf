//! The attributes of the AI SDK of Vercel, which stand in the spans of its calls of providers
//! (`ai.generateText.doGenerate`, `ai.streamText.doStream`): messages, tools and answers as JSON text.
//! Its other spans hold the same calls again, as a whole.

use super::{any_value::structured, message::SpanMessage};
use crate::json::{Object, ObjectExt, Value, object};

/// Whether a span, by its `ai.operationId`, is a call of a provider; `None` for a span of another
/// program.
pub(super) fn is_call(attributes: &Object) -> Option<bool> {
    let id = attributes.get("ai.operationId")?.as_str()?;
    Some(id.ends_with(".doGenerate") || id.ends_with(".doStream"))
}

/// The messages of the request.
pub(super) fn input(attributes: &Object) -> Vec<SpanMessage> {
    let Some(Value::Array(messages)) = json_at(attributes, "ai.prompt.messages") else {
        return Vec::new();
    };
    messages.iter().filter_map(message).collect()
}

/// The message of the response, where it holds anything.
pub(super) fn output(attributes: &Object) -> Vec<SpanMessage> {
    let text = |key: &str| attributes.str_at(key);
    let mut parts: Vec<Value> = Vec::new();
    let mut add = |kind: &str, key: &str| {
        let text = text(key).filter(|text| !text.is_empty());
        parts.extend(text.map(|text| object! { "type": kind, "content": text }.into()));
    };
    add("reasoning", "ai.response.reasoning");
    add("text", "ai.response.text");
    // What was asked for in a form is the answer.
    add("text", "ai.response.object");
    if let Some(Value::Array(calls)) = json_at(attributes, "ai.response.toolCalls") {
        parts.extend(calls.into_iter().map(|call| part(call, Some("tool-call"))));
    }
    let said = (!parts.is_empty()).then(|| said("assistant", parts));
    said.flatten().into_iter().collect()
}

/// The definitions of tools, by the names of the conventions.
pub(super) fn tools(attributes: &Object) -> Vec<Value> {
    let Some(Value::Array(tools)) = json_at(attributes, "ai.prompt.tools") else {
        return Vec::new();
    };
    let tool = |tool: Value| {
        let Ok(Value::Object(mut tool)) = structured(&tool) else { return tool };
        if let Some(schema) = tool.shift_remove("inputSchema") {
            tool.put("parameters", schema);
        }
        tool.into()
    };
    tools.into_iter().map(tool).collect()
}

fn json_at(attributes: &Object, key: &str) -> Option<Value> {
    structured(attributes.get(key)?).ok()
}

fn message(message: &Value) -> Option<SpanMessage> {
    let role = message.str_at("role")?;
    let parts = match message.get("content")? {
        Value::String(text) => vec![object! { "type": "text", "content": text.as_str() }.into()],
        Value::Array(list) => list.iter().cloned().map(|of| part(of, None)).collect(),
        _ => return None,
    };
    said(role, parts)
}

fn said(role: &str, parts: Vec<Value>) -> Option<SpanMessage> {
    SpanMessage::of_message(object! { "role": role, "parts": parts }.into())
}

/// A part in the form of the conventions; `kind` is what one is that does not say it itself. What
/// is not known stays as it is.
fn part(part: Value, kind: Option<&str>) -> Value {
    let Value::Object(mut part) = part else { return part };
    let kind = part.str_at("type").or(kind).unwrap_or_default().to_owned();
    let kind = if part.contains_key("toolCallType") { "tool-call" } else { kind.as_str() };
    let mut take = |keys: &[&str]| keys.iter().find_map(|key| part.shift_remove(key));
    match kind {
        "text" | "reasoning" => {
            object! { "type": kind, "content": take(&["text"]).unwrap_or_default() }.into()
        }
        "tool-call" => {
            let (id, name) = (take(&["toolCallId"]), take(&["toolName"]));
            let arguments = take(&["input", "args"]).unwrap_or_default();
            // It is JSON text in the answer, and JSON in a message.
            let arguments = structured(&arguments).unwrap_or_else(Value::from);
            object! {
                "type": "tool_call",
                "id": id.unwrap_or_default(),
                "name": name.unwrap_or_default(),
                "arguments": arguments,
            }
            .into()
        }
        "tool-result" => {
            let id = take(&["toolCallId"]).unwrap_or_default();
            let response = match take(&["output", "result"]).unwrap_or_default() {
                // Since version 5 with the kind of the value.
                Value::Object(mut output) if output.contains_key("value") => {
                    output.shift_remove("value").unwrap_or_default()
                }
                other => other,
            };
            object! { "type": "tool_call_response", "id": id, "response": response }.into()
        }
        _ => part.into(),
    }
}
