//! Messages as conventions before 1.37 and other instrumentations write them: events of a span, and
//! attributes with a number for each message.

use std::collections::BTreeMap;

use super::{any_value::structured, message::SpanMessage, span::Event};
use crate::json::{Object, ObjectExt, Value};

/// The messages of the request that events tell of.
pub(super) fn events_in(events: &[Event]) -> Vec<SpanMessage> {
    let mut messages = Vec::new();
    for event in events {
        let role = match event.name.as_str() {
            "gen_ai.system.message" => "system",
            "gen_ai.user.message" => "user",
            "gen_ai.assistant.message" => "assistant",
            "gen_ai.tool.message" => "tool",
            "gen_ai.content.prompt" => {
                messages.extend(listed(&event.attributes, "gen_ai.prompt", "user"));
                continue;
            }
            _ => continue,
        };
        messages.extend(SpanMessage::of_chat(with_role(body(event), role)));
    }
    messages
}

/// The messages of the response that events tell of.
pub(super) fn events_out(events: &[Event]) -> Vec<SpanMessage> {
    let mut messages = Vec::new();
    for event in events {
        match event.name.as_str() {
            "gen_ai.choice" => {
                let mut choice = body(event);
                let message = match choice.shift_remove("message") {
                    Some(Value::Object(message)) => message,
                    Some(Value::String(text)) => match structured(&Value::from(text.as_str())) {
                        Ok(Value::Object(message)) => message,
                        _ => content(text.into()),
                    },
                    _ => choice,
                };
                messages.extend(SpanMessage::of_chat(with_role(message, "assistant")));
            }
            "gen_ai.content.completion" => {
                messages.extend(listed(&event.attributes, "gen_ai.completion", "assistant"));
            }
            _ => {}
        }
    }
    messages
}

fn content(content: Value) -> Object {
    let mut message = Object::new();
    message.put("content", content);
    message
}

fn with_role(mut message: Object, role: &str) -> Object {
    if message.str_at("role").is_none() {
        message.put("role", role);
    }
    message
}

/// What an event says: its body, JSON text in an attribute, or its attributes.
fn body(event: &Event) -> Object {
    if let Value::Object(body) = &event.body {
        return body.clone();
    }
    let written = event.attributes.get("gen_ai.event.content").map(structured);
    if let Some(Ok(Value::Object(body))) = written {
        return body;
    }
    let mut said = Object::new();
    for (key, value) in &event.attributes {
        // Lists stand in attributes as JSON text.
        let value = match (key.as_str(), value) {
            ("tool_calls", text) => structured(text).unwrap_or_else(Value::from),
            (_, value) => value.clone(),
        };
        said.put(key, value);
    }
    said
}

/// The messages that one attribute holds as JSON text: a list in the form of Chat Completions, or
/// bare text.
pub(super) fn listed(attributes: &Object, key: &str, role: &str) -> Vec<SpanMessage> {
    let Some(value) = attributes.get(key) else { return Vec::new() };
    let list = match structured(value) {
        Ok(Value::Array(list)) => list,
        Ok(Value::Object(message)) => vec![message.into()],
        Ok(_) | Err(_) => vec![content(value.clone()).into()],
    };
    let message = |value: Value| match value {
        Value::Object(message) => SpanMessage::of_message(with_role(message, role).into()),
        text => SpanMessage::of_chat(with_role(content(text), role)),
    };
    list.into_iter().filter_map(message).collect()
}

/// The messages that attributes `PREFIX.N.…` hold, in the order of their numbers.
pub(super) fn numbered(attributes: &Object, prefix: &str, role: &str) -> Vec<SpanMessage> {
    let entries = entries(attributes, prefix);
    let message = |entry: Object| {
        let mut message = match entry.get("message") {
            Some(Value::Object(message)) => message.clone(),
            _ => entry,
        };
        let calls = list_at(&mut message, "tool_calls", "tool_call");
        let contents = list_at(&mut message, "contents", "message_content");
        if !calls.is_empty() {
            message.put("tool_calls", calls);
        }
        if !contents.is_empty() {
            message.put("content", contents);
        } else if let Some(blocks) = message.get("content").and_then(blocks) {
            message.put("content", blocks);
        }
        SpanMessage::of_chat(with_role(message, role))
    };
    entries.into_iter().filter_map(message).collect()
}

/// Blocks that an attribute holds as JSON text.
fn blocks(content: &Value) -> Option<Value> {
    let text = content.as_str().filter(|text| text.starts_with('['))?;
    let blocks = structured(content).ok().filter(|_| !text.is_empty())?;
    let list = blocks.as_array().filter(|list| !list.is_empty())?;
    list.iter().all(|block| block.str_at("type").is_some()).then(|| blocks.clone())
}

/// The tools that attributes `PREFIX.N.…` hold.
pub(super) fn tools(attributes: &Object) -> Vec<Value> {
    let functions = entries(attributes, "llm.request.functions");
    let function = |mut function: Object| {
        let parameters = function.get("parameters").map(structured);
        if let Some(Ok(parameters)) = parameters {
            function.put("parameters", parameters);
        }
        function.shift_insert(0, "type".to_owned(), "function".into());
        Value::Object(function)
    };
    let schemas = entries(attributes, "llm.tools");
    let schema = |tool: Object| {
        let tool = tool.get("tool").and_then(|tool| tool.get("json_schema"))?;
        structured(tool).ok()
    };
    functions.into_iter().map(function).chain(schemas.into_iter().filter_map(schema)).collect()
}

/// Takes the entries of a member whose keys are numbers, each out of its member `inner`.
fn list_at(message: &mut Object, key: &str, inner: &str) -> Vec<Value> {
    let Some(Value::Object(of_numbers)) = message.get(key) else { return Vec::new() };
    let mut entries: Vec<(u64, Value)> = Vec::new();
    for (number, value) in of_numbers {
        let Ok(number) = number.parse() else { return Vec::new() };
        entries.push((number, value.get(inner).unwrap_or(value).clone()));
    }
    message.shift_remove(key);
    entries.sort_by_key(|(number, _)| *number);
    entries.into_iter().map(|(_, value)| value).collect()
}

/// What the attributes `PREFIX.N.…` say of each number, as nested objects.
fn entries(attributes: &Object, prefix: &str) -> Vec<Object> {
    let mut entries: BTreeMap<u64, Object> = BTreeMap::new();
    for (key, value) in attributes {
        let rest = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.'));
        let Some((number, path)) = rest.and_then(|rest| rest.split_once('.')) else { continue };
        let Ok(number) = number.parse() else { continue };
        place(entries.entry(number).or_default(), path, value);
    }
    entries.into_values().collect()
}

/// Names of a path that are opened as objects; what is deeper stays one name.
const DEEPEST: usize = 8;

fn place(object: &mut Object, path: &str, value: &Value) {
    let mut at = object;
    let mut names = path.splitn(DEEPEST, '.').peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            at.put(name, value.clone());
            return;
        }
        if !matches!(at.get(name), Some(Value::Object(_))) {
            at.put(name, Object::new());
        }
        match at.get_mut(name) {
            Some(Value::Object(inner)) => at = inner,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json::object, transcript::Api};

    fn shown(messages: Vec<SpanMessage>) -> String {
        messages
            .into_iter()
            .flat_map(|said| said.into_api(Api::Chat))
            .collect::<Value>()
            .to_string()
    }

    #[test]
    fn attributes_with_numbers_are_messages_in_the_order_of_the_numbers() {
        let attributes = object! {
            "gen_ai.prompt.10.role": "user",
            "gen_ai.prompt.10.content": "ten",
            "gen_ai.prompt.2.role": "assistant",
            "gen_ai.prompt.2.tool_calls.0.id": "c",
            "gen_ai.prompt.2.tool_calls.0.name": "tide",
            "gen_ai.prompt.2.tool_calls.0.arguments": "{}",
            "gen_ai.prompt.3.role": "tool",
            "gen_ai.prompt.3.tool_call_id": "c",
            "gen_ai.prompt.3.content": "14:05",
            "gen_ai.prompt.x.content": "no number",
        };
        assert_eq!(
            shown(numbered(&attributes, "gen_ai.prompt", "user")),
            r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"tide","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"14:05"},{"role":"user","content":"ten"}]"#
        );
    }

    #[test]
    fn those_of_open_inference_are_read() {
        let attributes = object! {
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.contents.0.message_content.type": "text",
            "llm.input_messages.0.message.contents.0.message_content.text": "a",
            "llm.input_messages.1.message.role": "assistant",
            "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "f",
            "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": "{}",
        };
        assert_eq!(
            shown(numbered(&attributes, "llm.input_messages", "user")),
            r#"[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}]"#
        );
    }
}
