//! A secret that an answer says in pieces is found, whatever the API and the shape of its events.
#![cfg(feature = "rules")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::redact::redactor;

const KEY: &str = "sk-ant-api03-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sA";

/// How the events stand in the body.
#[derive(Clone, Copy)]
enum Form {
    Events,
    /// As a recorder writes the messages of a WebSocket.
    Data,
    Lines,
}

/// An API and a shape of its events: the event with `PIECE` and its `NUMBER`, and where the piece
/// stands in it.
type Row = (&'static str, Form, &'static str, &'static str);

const ROWS: [Row; 25] = [
    (
        "Messages, text",
        Form::Events,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":PIECE}}"#,
        "/delta/text",
    ),
    (
        "Messages, thinking",
        Form::Events,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":PIECE}}"#,
        "/delta/thinking",
    ),
    (
        "Messages, arguments",
        Form::Events,
        r#"{"delta":{"type":"input_json_delta","partial_json":PIECE},"type":"content_block_delta","index":2}"#,
        "/delta/partial_json",
    ),
    (
        "Messages, before its present form",
        Form::Events,
        r#"{"type":"completion","completion":PIECE,"stop_reason":null}"#,
        "/completion",
    ),
    (
        "Chat, content",
        Form::Events,
        r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":PIECE}}]}"#,
        "/choices/0/delta/content",
    ),
    (
        "Chat, refusal",
        Form::Events,
        r#"{"id":"c","choices":[{"index":0,"delta":{"refusal":PIECE}}]}"#,
        "/choices/0/delta/refusal",
    ),
    (
        "Chat, reasoning",
        Form::Events,
        r#"{"id":"c","choices":[{"delta":{"reasoning_content":PIECE}}]}"#,
        "/choices/0/delta/reasoning_content",
    ),
    (
        "Chat, arguments",
        Form::Events,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":PIECE}}]}}]}"#,
        "/choices/0/delta/tool_calls/0/function/arguments",
    ),
    (
        "Chat, a function call",
        Form::Events,
        r#"{"choices":[{"delta":{"function_call":{"arguments":PIECE}},"index":0}]}"#,
        "/choices/0/delta/function_call/arguments",
    ),
    (
        "Chat, whole messages",
        Form::Events,
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":PIECE}}]}"#,
        "/choices/0/message/content",
    ),
    (
        "Chat, arguments of whole messages",
        Form::Events,
        r#"{"choices":[{"index":0,"message":{"tool_calls":[{"function":{"arguments":PIECE}}]}}]}"#,
        "/choices/0/message/tool_calls/0/function/arguments",
    ),
    (
        "completions",
        Form::Events,
        r#"{"id":"c","choices":[{"text":PIECE,"index":0,"finish_reason":null}]}"#,
        "/choices/0/text",
    ),
    (
        "Responses, text",
        Form::Events,
        r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":PIECE}"#,
        "/delta",
    ),
    (
        "Responses, text, with another id in each event",
        Form::Events,
        r#"{"type":"response.output_text.delta","item_id":"m-NUMBER","output_index":0,"content_index":0,"delta":PIECE}"#,
        "/delta",
    ),
    (
        "Responses, arguments",
        Form::Events,
        r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":1,"delta":PIECE}"#,
        "/delta",
    ),
    (
        "Responses, arguments, with another id in each event",
        Form::Events,
        r#"{"type":"response.function_call_arguments.delta","delta":PIECE,"item_id":"f-NUMBER","output_index":1}"#,
        "/delta",
    ),
    (
        "Responses, a summary of reasoning",
        Form::Events,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"r","output_index":0,"summary_index":0,"delta":PIECE}"#,
        "/delta",
    ),
    (
        "Responses over a WebSocket",
        Form::Data,
        r#"{"type":"response.output_text.delta","response_id":"r","sequence_number":NUMBER,"item_id":"m-NUMBER","output_index":0,"content_index":0,"delta":PIECE}"#,
        "/delta",
    ),
    (
        "Responses over a WebSocket, arguments",
        Form::Data,
        r#"{"type":"response.custom_tool_call_input.delta","sequence_number":NUMBER,"item_id":"f","output_index":1,"delta":PIECE}"#,
        "/delta",
    ),
    (
        "lines, a message",
        Form::Lines,
        r#"{"model":"m","message":{"role":"assistant","content":PIECE},"done":false}"#,
        "/message/content",
    ),
    (
        "lines, thinking of a message",
        Form::Lines,
        r#"{"model":"m","message":{"role":"assistant","content":"","thinking":PIECE},"done":false}"#,
        "/message/thinking",
    ),
    (
        "lines, a response",
        Form::Lines,
        r#"{"model":"m","created_at":"2026-11-25T08:00:0NUMBERZ","response":PIECE,"done":false}"#,
        "/response",
    ),
    (
        "lines, thinking before a response",
        Form::Lines,
        r#"{"model":"m","response":"","thinking":PIECE,"done":false}"#,
        "/thinking",
    ),
    (
        "lines, chunks of Chat",
        Form::Lines,
        r#"{"choices":[{"index":0,"delta":{"content":PIECE}}]}"#,
        "/choices/0/delta/content",
    ),
    ("content of an event", Form::Data, r#"{"content":PIECE,"stop":false}"#, "/content"),
];

/// A body of events in which a text is split after every `size` characters.
fn body((_, form, event, _): Row, text: &str, size: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
    let lines = pieces.enumerate().map(|(number, piece)| {
        let piece = Value::from(piece).to_string();
        let data = event.replace("NUMBER", &number.to_string()).replace("PIECE", &piece);
        match form {
            Form::Events => format!("event: x\ndata: {data}\n\n: a comment\n\n"),
            Form::Data => format!("data: {data}\n\n"),
            Form::Lines => format!("{data}\n"),
        }
    });
    lines.collect()
}

fn events(body: &str) -> Vec<Value> {
    let data = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// What the pieces say together, and the events without them.
fn taken_apart(body: &str, pointer: &str) -> (String, Vec<Value>) {
    let mut said = String::new();
    let mut events = events(body);
    for event in &mut events {
        said.push_str(event.pointer_mut(pointer).unwrap().take().as_str().unwrap());
    }
    (said, events)
}

#[test]
fn a_secret_in_pieces_is_found_in_the_events_of_every_api() {
    let words = format!("The key is {KEY}, the mail ada@harbour.example.");
    let arguments = format!(r#"{{"command": "psql", "password": "p@ss\"word-9", "key": "{KEY}"}}"#);
    for row in ROWS {
        for (text, size) in
            [&words, &arguments].into_iter().flat_map(|text| (1..8).map(move |size| (text, size)))
        {
            let sent = body(row, text, size);
            let mut redactor = redactor();
            let kept = redactor.body(&sent, "response 1").into_owned();
            let (said, rest) = taken_apart(&kept, row.3);
            assert_eq!(said, redactor.text(text, "").into_owned(), "{}, {size}", row.0);
            assert_eq!(rest, taken_apart(&sent, row.3).1, "{}, {size}", row.0);
            assert_eq!(kept.lines().count(), sent.lines().count(), "{}", row.0);
            assert_eq!(redactor.body(&kept, "").into_owned(), kept, "{}", row.0);
        }
        let sent = body(row, "Nothing of this is a secret.", 3);
        assert!(matches!(redactor().body(&sent, ""), Cow::Borrowed(_)), "{}", row.0);
    }
}

#[test]
fn pieces_of_several_parts_are_kept_apart_by_their_indexes() {
    let chunk = |choices: &str| format!("data: {{\"choices\":[{choices}]}}\n\n");
    let choice = |index: usize, piece: &str| {
        format!("{{\"index\":{index},\"delta\":{{\"content\":\"{piece}\"}}}}")
    };
    let (start, end) = KEY.split_at(20);
    // Alone, and beside another choice, whatever comes first.
    let sent = [
        chunk(&choice(1, start)),
        chunk(&[choice(0, "Hello"), choice(1, end)].join(",")),
        chunk(&choice(0, " world")),
    ]
    .concat();
    let kept = redactor().body(&sent, "").into_owned();
    let expected = sent.replace(start, "[redacted:anthropic-key:1]").replace(end, "");
    assert_eq!(kept, expected);
}

#[test]
fn lines_with_a_text_of_their_own_lose_their_secrets_too() {
    // Joined, the one would hide the end of the other.
    let line = |text: &str| format!("{{\"message\":{{\"content\":\"{text}\"}}}}\n");
    let id = "AKIAQZ7WXLTP4MNBVC2E";
    let sent = line(id) + &line("AND MORE") + &line(id);
    let kept = redactor().body(&sent, "").into_owned();
    assert_eq!(kept, sent.replace(id, "[redacted:aws-key-id:1]"));
    // Of events that say all so far, none has a beginning of a secret.
    let said = format!("It is {KEY}, yes.");
    let event = |end: usize| {
        let text = &said[..end];
        format!("data: {{\"choices\":[{{\"message\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let sent: String = (1..=said.len()).map(event).collect();
    let kept = redactor().body(&sent, "").into_owned();
    assert!(!kept.contains("sk-ant"), "{kept}");
    assert!(kept.contains("It is [redacted:anthropic-key:1], yes."), "{kept}");
}

/// A text in pieces of four bytes.
fn split(text: &str) -> Vec<String> {
    text.as_bytes().chunks(4).map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect()
}

fn log_probabilities(text: &str) -> Value {
    let token = |token: String| {
        json!({"token": token, "logprob": -0.5, "bytes": token.as_bytes(),
            "top_logprobs": [{"token": token, "logprob": -0.5, "bytes": token.as_bytes()}]})
    };
    Value::Array(split(text).into_iter().map(token).collect())
}

fn chat(text: &str) -> Value {
    json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": text},
        "logprobs": {"content": log_probabilities(text), "refusal": null}}]})
}

fn chunk(piece: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": piece},
        "logprobs": {"content": [], "refusal": log_probabilities(piece)}}]})
}

fn response(text: &str) -> Value {
    json!({"output": [{"type": "message", "content": [{"type": "output_text", "text": text,
        "annotations": [], "logprobs": log_probabilities(text)}]}]})
}

fn delta(piece: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece,
        "logprobs": log_probabilities(piece)})
}

fn completion(text: &str) -> Value {
    json!({"choices": [{"text": text, "logprobs": {"tokens": split(text),
        "token_logprobs": [-0.5], "top_logprobs": [{"sk": -0.5}], "text_offset": [0, 4]}}]})
}

fn stream(text: &str, event: fn(&str) -> Value) -> String {
    split(text).iter().map(|piece| format!("data: {}\n\n", event(piece))).collect()
}

/// A body that says a text, with log probabilities.
type Body = fn(&str) -> String;

#[test]
fn log_probabilities_say_nothing_of_a_secret_and_stay_where_there_is_none() {
    let said = format!("Key {KEY}.");
    let events = split(&said).len();
    let bodies: [(&str, Body, usize); 7] = [
        ("Chat", |text| chat(text).to_string(), 1),
        ("Responses", |text| response(text).to_string(), 1),
        ("completions", |text| completion(text).to_string(), 4),
        ("JSON in a string", |text| Value::from(chat(text).to_string()).to_string(), 1),
        ("chunks of Chat", |text| stream(text, chunk), 2 * events),
        ("events of Responses", |text| stream(text, delta), events),
        ("chunks of completions", |text| stream(text, completion), 4 * events),
    ];
    for (name, body, lists) in bodies {
        let kept = redactor().body(&body(&said), "").into_owned();
        assert!(kept.contains("[redacted:anthropic-key:1]"), "{name}: {kept}");
        let written = kept.replace('\\', "");
        for piece in &split(&said)[1..events - 1] {
            assert!(!written.contains(piece.as_str()), "{name}: {piece} in {kept}");
        }
        assert!(!written.contains("\"bytes\""), "{name}: {kept}");
        let annotations = written.matches("\"annotations\":[]").count();
        assert_eq!(written.matches(":[]").count() - annotations, lists, "{name}: {kept}");
        assert_eq!(redactor().body(&kept, "").into_owned(), kept, "{name}");
        let sent = body("Nothing of this is a secret.");
        assert!(matches!(redactor().body(&sent, ""), Cow::Borrowed(_)), "{name}");
    }
    // A tool that takes such a member has a schema with lists.
    let schema = serde_json::json!({"logprobs": {"type": ["integer", "null"], "enum": [1, 2]}});
    let tool = serde_json::json!({"model": "m", "metadata": KEY, "tools": [{"type": "function",
        "function": {"name": "ask", "parameters": {"type": "object", "properties": schema}}}]});
    let kept = redactor().body(&tool.to_string(), "").into_owned();
    assert!(kept.contains(&schema.to_string()) && !kept.contains(KEY), "{kept}");
    let value = afterimage::json::read(tool.to_string().as_bytes()).unwrap();
    assert!(redactor().value(value, "").to_string().contains(&schema.to_string()));
    // A placeholder from before is of a text that the lists may still say.
    let sent = chat("It was [redacted:anthropic-key:1].").to_string();
    assert!(redactor().body(&sent, "").contains("\"content\":[]"));
    // So are those of values that are no text.
    let value = afterimage::json::read(response(KEY).to_string().as_bytes()).unwrap();
    let kept = redactor().value(value, "").to_string();
    assert!(kept.contains("\"logprobs\":[]") && !kept.contains("Lq9v"), "{kept}");
}
