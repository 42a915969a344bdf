//! No text of a message is lost in silence, whatever shape its provider gives it.

use std::fmt::Write;

use proptest::prelude::*;

use super::Transcript;
use crate::json::{Object, ObjectExt, Value, object};

/// A value with texts that stand nowhere else; `names` are the keys of objects.
fn value(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => "[a-z]{4}-[0-9a-f]{10}".prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => (0_u64..9).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let member = (prop::sample::select(names), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(member, 0..4).prop_map(|members| {
                let mut object = Object::new();
                members.into_iter().for_each(|(key, value)| object.put(key, value));
                object.into()
            }),
        ]
    })
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() >= 12 => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| texts(value, found)),
        Value::Object(object) => object.iter().for_each(|(_, value)| texts(value, found)),
        _ => {}
    }
}

/// The texts of a request and an answer that no frame holds, nor a record that was not understood.
fn lost(uri: &str, request: &Value, response: &Value) -> Vec<String> {
    let exchange = object! { "uri": uri, "request": request.clone(), "status": 200_u64, "response": response.clone() };
    let document = object! { "interactions": vec![Value::from(exchange)] };
    let document = Value::from(document).to_string();
    let mut held = String::new();
    for record in Transcript::new(document.as_bytes()).unwrap() {
        let _ = write!(held, "{}", record.unwrap().frame.to_json());
    }
    let mut all = Vec::new();
    texts(request, &mut all);
    texts(response, &mut all);
    all.retain(|text| !held.contains(text.as_str()));
    all
}

const GEMINI: &[&str] = &[
    "text",
    "thought",
    "thoughtSignature",
    "functionCall",
    "functionResponse",
    "function_response",
    "inlineData",
    "inline_data",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "name",
    "args",
    "response",
    "output",
    "error",
    "parts",
    "mimeType",
    "data",
    "outcome",
    "novel",
    "role",
];

const OLLAMA: &[&str] = &[
    "content",
    "thinking",
    "images",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "tool_name",
    "novel",
];

const CONVERSE: &[&str] = &[
    "text",
    "toolUse",
    "toolUseId",
    "toolResult",
    "name",
    "input",
    "content",
    "status",
    "json",
    "reasoningContent",
    "reasoningText",
    "redactedContent",
    "signature",
    "image",
    "format",
    "source",
    "bytes",
    "cachePoint",
    "type",
    "document",
    "novel",
];

proptest! {
    #[test]
    fn no_text_of_geminis_contents_is_lost(
        parts in prop::collection::vec(value(GEMINI), 0..5),
        content in value(GEMINI),
        system in value(GEMINI),
        said in prop::collection::vec(value(GEMINI), 0..5),
        stop in value(GEMINI),
    ) {
        let request = object! {
            "contents": vec![object! { "role": "user", "parts": parts }.into(), content],
            "systemInstruction": system,
        };
        let candidate = object! { "content": object! { "parts": said }, "finishReason": stop };
        let response = object! { "candidates": vec![Value::from(candidate)] };
        let uri = "https://generativelanguage.example/v1beta/models/m:generateContent";
        prop_assert_eq!(lost(uri, &request.into(), &response.into()), Vec::<String>::new());
    }

    #[test]
    fn no_text_of_ollamas_messages_is_lost(
        message in prop::collection::vec((prop::sample::select(OLLAMA), value(OLLAMA)), 0..5),
        said in prop::collection::vec((prop::sample::select(OLLAMA), value(OLLAMA)), 0..5),
        role in prop::sample::select(&["user", "assistant", "tool", "system"][..]),
        other in value(OLLAMA),
    ) {
        let of = |members: Vec<(&str, Value)>, role: &str| {
            let mut message = object! { "role": role };
            members.into_iter().for_each(|(key, value)| message.put(key, value));
            Value::from(message)
        };
        let request =
            object! { "model": "m", "messages": vec![of(message, role), other] };
        let response = object! { "message": of(said, "assistant"), "done": true };
        let uri = "http://127.0.0.1:11434/api/chat";
        prop_assert_eq!(lost(uri, &request.into(), &response.into()), Vec::<String>::new());
    }

    #[test]
    fn no_text_of_converses_messages_is_lost(
        content in value(CONVERSE),
        message in value(CONVERSE),
        system in prop::collection::vec(value(CONVERSE), 0..3),
        said in prop::collection::vec(value(CONVERSE), 0..5),
    ) {
        let request = object! {
            "messages": vec![object! { "role": "user", "content": content }.into(), message],
            "system": system,
        };
        let message = object! { "role": "assistant", "content": said };
        let response = object! { "output": object! { "message": message }, "stopReason": "end_turn" };
        let uri = "https://bedrock.example/model/m/converse";
        prop_assert_eq!(lost(uri, &request.into(), &response.into()), Vec::<String>::new());
    }
}
