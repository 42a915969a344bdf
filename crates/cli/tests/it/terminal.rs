//! What reaches a terminal, and what reaches a pipe, of texts and names that hold control
//! characters.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::string_slice,
    reason = "a test that fails"
)]

use crate::support;

use std::{fs, path::Path};

use serde_json::{Value, json};
use support::{
    run, run_with,
    terminal::{HOSTILE, acted_on, hostile_file, on_terminal},
};

/// A history in which every name and every text is hostile.
fn frames() -> String {
    let name = |what: &str| format!("{HOSTILE}{what}");
    let add = |facet: Value| json!({ "type": "addFacet", "facet": facet });
    let frame = |session: &str, sequence: u64, source: &str, facets: Vec<Value>| {
        let deltas: Vec<Value> = facets.into_iter().map(add).collect();
        json!({ "session": name(session), "sequence": sequence, "source": source, "events": [], "deltas": deltas })
    };
    let event = |id: &str| json!({ "id": name(id), "type": "event", "displayName": "ask", "content": format!("Please {HOSTILE} now.\nAnd {}", "more ".repeat(60)) });
    let odd = json!({ "id": name("odd"), "type": name("type"), "content": HOSTILE });
    let call = json!({ "id": name("call"), "type": "action", "content": "", "part": { "kind": "call", "name": name("tool"), "parameters": { name("key"): name("value") } } });
    let sky =
        json!({ "id": name("sky"), "type": "ambient", "displayName": "sky", "content": HOSTILE });
    let lines = [
        frame("a", 0, "user", vec![event("ask"), odd, sky]),
        frame("a", 1, "agent", vec![call]),
        frame("b", 2, "user", vec![event("other")]),
        frame(
            "b",
            3,
            "agent",
            vec![json!({ "id": name("said"), "type": "speech", "content": HOSTILE })],
        ),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn checkpoint(id: &str, next: &str) -> String {
    format!(
        "# Checkpoint: {id}{HOSTILE}\n\n**Created:** 2026-01-01T00:00:00Z\n\n## Problem\n\n{HOSTILE}\n\n## Next Actions\n\n- {next} {HOSTILE}\n"
    )
}

/// Asserts that nothing of what a command says on a terminal is acted on, and that the name was
/// shown as text. `false` where there is no terminal.
#[track_caller]
fn shown_as_text(args: &[&str], colors: bool) -> bool {
    let Some(shown) = on_terminal(args, colors) else { return false };
    assert!(!shown.contains("panicked"), "{args:?}: {shown:?}");
    let found = acted_on(&shown);
    assert!(found.is_empty(), "{args:?}: {found:#?}");
    let is_shown = ["␛]", "]52;c;", "U+202E", "u202e", "u{202e}", "U+200F"]
        .iter()
        .any(|name| shown.contains(name));
    assert!(is_shown, "{args:?} shows none of it: {shown:?}");
    true
}

#[test]
fn no_command_over_transcripts_lets_a_control_reach_a_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let file = hostile_file(scratch.path(), "jsonl", &frames());
    let other = hostile_file(scratch.path(), "2.jsonl", &frames());
    let archive = scratch.path().join(format!("{HOSTILE}.archive"));
    let archive = archive.to_str().unwrap();
    if !shown_as_text(&["archive", &file, "-o", archive], true) {
        return;
    }
    let facet = format!("{HOSTILE}ask");
    let session = format!("{HOSTILE}b");
    let table: &[&[&str]] = &[
        &["frames", &file],
        &["frames", &file, &other],
        &["frames", "--json", &file],
        &["frames", "--capture", &file],
        &["render", &file],
        &["render", &file, &other],
        &["render", "--color", "always", &file],
        &["render", "--format", "native", &file],
        &["render", "--as", "messages", &file],
        &["render", "--as", "snapshots", &file],
        &["render", "--from", "77", &file],
        &["trace", "--text", "Please", &file],
        &["trace", "--text", "Please", &file, &other],
        &["trace", "--text", "Please", "--json", &file],
        &["trace", "--facet", &facet, &file],
        &["trace", "--at", "0:9", "--session", &session, &file],
        &["trace", "--at", "99:9", &file],
        &["stats", &file],
        &["stats", "--json", &file],
        &["compress", "--budget", "600", "--keep-recent", "1", &file],
        &["compress", "--budget", "600", "--as", "blocks", &file],
        &["compress", "--budget", "600", "--as", "openai", &file],
        &["compress", "--budget", "600", "--json", &file],
        &["compress", "--budget", "5", &file],
        &["replay", "--budget", "600", &file],
        &["replay", "--budget", "600", "--json", &file],
        &["diff", &file, &other],
        &["diff", "--session", &session, &file, &other],
        &["checkpoint", "draft", &file],
        &["checkpoint", "draft", "--json", &file],
        &["checkpoint", "draft", "--delta-since", "0", &file],
        &["observe", "replay", &file],
        &["observe", "--json", "replay", &file],
        &["sessions", "--no-index", &file],
        &["sessions", "--no-index", "--json", &file],
        &["sessions", "--no-index", "--paths", &file],
        &[
            "sessions",
            "--no-index",
            "--project",
            "no such project",
            &file,
            "no-such-\u{1b}]52;c;aGk=\u{7}",
        ],
    ];
    for args in table {
        for of_archive in [false, true] {
            let args: Vec<&str> = args
                .iter()
                .map(|word| if of_archive && *word == file { archive } else { *word })
                .collect();
            for colors in [true, false] {
                shown_as_text(&args, colors);
            }
        }
    }
}

#[test]
fn no_command_over_documents_lets_a_control_reach_a_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let before = hostile_file(scratch.path(), "1.md", &checkpoint("one", "first"));
    let after = hostile_file(scratch.path(), "2.md", &checkpoint("two", "second"));
    let delta = run(&["checkpoint", "diff", &before, &after]);
    assert_eq!(delta.code, Some(0), "{}", delta.err);
    let delta = hostile_file(scratch.path(), "delta.md", &delta.out);
    let wrong = "# Checkpoint Delta: d\n\n**From:** one\n**To:** two\n\n## Modified\n\n- Something that is not there\n";
    let wrong = hostile_file(scratch.path(), "wrong.md", &format!("{wrong}- {HOSTILE}\n"));
    let folder = scratch.path().to_str().unwrap();
    for args in [
        &["checkpoint", "lint", &before, &delta][..],
        &["checkpoint", "lint", "--json", &before, &delta],
        &["checkpoint", "diff", &before, &after],
        &["checkpoint", "diff", "--json", &before, &after],
        &["checkpoint", "apply", &before, &delta],
        &["checkpoint", "apply", &before, &wrong],
        &["checkpoint", "validate", &before, &delta, &after],
        &["checkpoint", "validate", &before, &delta, &before],
        &["checkpoint", "shrink", "--tokens", "4000", &before],
        &["checkpoint", "history", folder],
        &["checkpoint", "history", "--json", folder],
    ] {
        for colors in [true, false] {
            if !shown_as_text(args, colors) {
                return;
            }
        }
    }
}

#[test]
fn no_command_over_stores_lets_a_control_reach_a_terminal() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let session = path(&format!("{HOSTILE}session"));
    let turns = json!({
        "actor": HOSTILE,
        "events": [],
        "deltas": [{
            "target": "player", "operation": "create", "path": [HOSTILE],
            "newValue": HOSTILE, "cause": HOSTILE, "eventId": HOSTILE
        }]
    });
    let turns = hostile_file(scratch.path(), "turns.jsonl", &format!("{turns}\n"));
    let db = path("state.db");
    let journal = path("journal");
    if !shown_as_text(&["world", "init", &session], true) {
        return;
    }
    for args in [
        &["world", "append", &session, &turns][..],
        &["world", "append", HOSTILE, &turns, "--journal", &journal],
    ] {
        let appended = run(args);
        assert_eq!(appended.code, Some(0), "{}", appended.err);
    }
    let answer = json!({ "tick": 3, "location": HOSTILE, HOSTILE: 1 }).to_string();
    let put = ["observe", "--db", &db, "put", "--account", HOSTILE, "--tool", HOSTILE];
    let put = run_with(&put, answer);
    assert_eq!(put.code, Some(0), "{}", put.err);
    for args in [
        &["world", "state", &session][..],
        &["world", "log", &session],
        &["world", "log", "--json", &session],
        &["world", "diff", &session, "0", "1"],
        &["world", "stats", &session],
        &["world", "blame", &session, &format!("/player/{HOSTILE}")],
        &["world", "state", "--path", HOSTILE, &path(HOSTILE)],
        &["journal", "ls", &journal],
        &["journal", "ls", "--json", &journal],
        &["journal", "load", &journal, HOSTILE],
        &["journal", "load", &journal, &format!("{HOSTILE}2")],
        &["observe", "--db", &db, "accounts"],
        &["observe", "--db", &db, "summary", "--account", HOSTILE],
        &["observe", "--db", &db, "get", "--account", HOSTILE, "--tool", HOSTILE],
        &["observe", "--db", &db, "stats"],
        &["observe", "--db", &db, "--policy", HOSTILE, "stats"],
    ] {
        for colors in [true, false] {
            shown_as_text(args, colors);
        }
    }
}

#[test]
fn a_command_line_that_is_wrong_reaches_a_terminal_as_text() {
    for args in [
        &[HOSTILE][..],
        &["render", &format!("--{HOSTILE}")],
        &["render", "--format", HOSTILE, "x"],
        &["trace", "--at", HOSTILE, "x"],
        &["man", HOSTILE],
        &["render", HOSTILE],
    ] {
        for colors in [true, false] {
            if !shown_as_text(args, colors) {
                return;
            }
        }
    }
}

#[test]
fn help_completions_and_manual_reach_a_terminal_whole() {
    for args in [&["--help"][..], &["trace", "--help"], &["man"], &["completions", "bash"]] {
        let Some(shown) = on_terminal(args, true) else { return };
        assert!(acted_on(&shown).is_empty() && shown.len() > 500, "{args:?}: {shown:?}");
    }
    // Colours of help are kept.
    assert!(on_terminal(&["--help"], true).unwrap().contains("\u{1b}[1m"));
}

#[test]
fn a_document_in_a_pipe_or_a_file_keeps_every_byte() {
    let scratch = tempfile::tempdir().unwrap();
    let text = format!("a{HOSTILE}b");
    let frame = json!({ "sequence": 0, "source": "user", "deltas": [
        { "type": "addFacet", "facet": { "id": "ask", "type": "event", "content": text } }
    ] });
    let file = hostile_file(scratch.path(), "jsonl", &format!("{frame}\n"));
    let rendered = run(&["render", "--format", "native", &file]);
    assert_eq!(rendered.out, format!("{text}\n"));

    let before = hostile_file(scratch.path(), "1.md", &checkpoint("one", "first"));
    let after = hostile_file(scratch.path(), "2.md", &checkpoint("two", "second"));
    let delta = run(&["checkpoint", "diff", &before, &after]);
    let delta = hostile_file(scratch.path(), "delta.md", &delta.out);
    let applied = run(&["checkpoint", "apply", &before, &delta]);
    assert_eq!(applied.out, checkpoint("two", "second"));
}

#[test]
fn json_holds_controls_as_escapes_and_says_the_same_everywhere() {
    let scratch = tempfile::tempdir().unwrap();
    let file = hostile_file(scratch.path(), "jsonl", &frames());
    for args in [
        &["render", "--as", "messages", &file][..],
        &["frames", &file],
        &["stats", "--json", &file],
        &["trace", "--text", "Please", "--json", &file],
    ] {
        let piped = run(args).out;
        assert!(acted_on(&piped).is_empty(), "{args:?}: {:?}", acted_on(&piped));
        let first =
            piped.lines().next().unwrap().trim_start_matches('[').trim_end_matches([',', ']']);
        let value: Value = serde_json::from_str(first).unwrap();
        assert!(value.to_string().contains(&json!(HOSTILE).to_string().trim_matches('"')[..20]));
    }
    let frames_again = run(&["frames", &file]).out;
    let line: Value = serde_json::from_str(frames_again.lines().next().unwrap()).unwrap();
    assert_eq!(line["session"], format!("{HOSTILE}a"));
    let Some(shown) = on_terminal(&["frames", "--json", &file], true) else { return };
    assert_eq!(shown, frames_again);
}

fn name(what: &str) -> String {
    format!("{what}{HOSTILE}")
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A transcript of each format in which every name and every text is hostile.
fn transcripts() -> Vec<(&'static str, String)> {
    let call = json!({ "id": name("c"), "type": "function", "function": { "name": name("f"), "arguments": json!({ name("key"): HOSTILE }).to_string() } });
    let said = json!({ "role": "user", "content": HOSTILE });
    let called = json!({ "role": "assistant", "content": HOSTILE, "tool_calls": [call] });
    let answered =
        json!({ "role": "tool", "tool_call_id": name("c"), "name": name("f"), "content": HOSTILE });
    let odd = json!({ "type": name("odd"), "x": HOSTILE });
    let chat = json!([said, called, answered, { "role": name("role"), "content": [odd] }]);
    let tool_use = json!({ "type": "tool_use", "id": name("c"), "name": name("f"), "input": { name("key"): HOSTILE } });
    let tool_result = json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": name("c"), "content": HOSTILE }] });
    let claude = |kind: &str, message: &Value| json!({ "type": kind, "uuid": name(kind), "sessionId": name("s"), "message": message });
    let used = json!({ "role": "assistant", "content": [tool_use, odd] });
    let items = json!([
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": HOSTILE }] },
        { "type": "function_call", "call_id": name("c"), "name": name("f"), "arguments": HOSTILE },
        { "type": "function_call_output", "call_id": name("c"), "output": HOSTILE },
        odd
    ]);
    let item = |item: &Value| json!({ "type": "response_item", "payload": item });
    let mut all = sessions_by_line(&odd);
    all.extend([
        ("frames", frames()),
        ("openai-chat", chat.to_string()),
        ("anthropic", json!({ "system": HOSTILE, "messages": [said, used, tool_result] }).to_string()),
        ("openai-responses", json!({ "object": "response", "output": items }).to_string()),
        ("wire", json!({ "interactions": [{ "uri": name("https://x/chat/completions"), "status": 200, "request": { "model": HOSTILE, "messages": chat }, "response": { "choices": [{ "message": said }] } }, { "uri": HOSTILE, "request": {}, "response": {} }] }).to_string()),
        ("claude-web", json!({ "loglines": [claude("user", &said), claude("assistant", &used), claude("user", &tool_result), odd] }).to_string()),
        ("claude-code", lines(&[claude("user", &said), claude("assistant", &used), claude("user", &tool_result), odd.clone()])),
        ("codex", lines(&[json!({ "type": "session_meta", "payload": { "id": name("s"), "instructions": HOSTILE } }), item(&items[0]), item(&items[1]), item(&items[2]), item(&odd), odd.clone()])),
        ("pi", lines(&[
            json!({ "type": "session", "id": name("s"), "cwd": name("/") }),
            json!({ "type": "message", "id": name("a"), "message": said }),
            json!({ "type": "message", "id": "b", "parentId": name("a"), "message": { "role": "assistant", "content": [{ "type": "toolCall", "id": name("c"), "name": name("f"), "arguments": { name("key"): HOSTILE } }] } }),
            json!({ "type": "message", "id": "d", "parentId": "b", "message": { "role": "toolResult", "toolCallId": name("c"), "toolName": name("f"), "content": [{ "type": "text", "text": HOSTILE }] } }),
            odd.clone(),
        ])),
        ("inspect", json!({ "eval": { "task": HOSTILE }, "samples": [{ "id": name("s"), "epoch": 1, "messages": [said, { "role": "assistant", "content": HOSTILE, "tool_calls": [{ "id": name("c"), "function": name("f"), "arguments": { name("key"): HOSTILE } }] }, { "role": "tool", "tool_call_id": name("c"), "function": name("f"), "content": HOSTILE }] }] }).to_string()),
        ("toolbench", json!({ "answer_generation": { "train_messages": [[said, { "role": "assistant", "content": HOSTILE, "function_call": { "name": name("f"), "arguments": HOSTILE } }, { "role": "function", "name": name("f"), "content": HOSTILE }]] } }).to_string()),
        ("swe-agent", json!({ "history": [said, { "role": "assistant", "content": HOSTILE, "action": HOSTILE, "thought": HOSTILE }, { "role": name("role"), "content": 1 }], "trajectory": [] }).to_string()),
        ("mini-swe-agent", json!({ "messages": chat, "info": {}, "trajectory_format": name("mini") }).to_string()),
        ("gemini", json!({ "sessionId": name("s"), "projectHash": "h", "messages": [{ "id": name("a"), "type": "user", "content": HOSTILE }, { "id": "b", "type": "gemini", "content": HOSTILE, "toolCalls": [{ "id": name("c"), "name": name("f"), "args": { name("key"): HOSTILE }, "result": HOSTILE }] }, odd] }).to_string()),
        ("tau-bench", json!([{ "task_id": name("t"), "trial": HOSTILE, "traj": chat }]).to_string()),
        ("har", json!({ "log": { "entries": [{
            "request": { "url": name("https://a.example/v1/messages"), "postData": { "text": json!({ "model": name("m"), "messages": [{ "role": "user", "content": HOSTILE }], "tools": [{ "name": name("f") }] }).to_string() } },
            "response": { "status": 500, "content": { "text": json!({ "error": { "type": name("e") } }).to_string() } }
        }] } }).to_string()),
        ("otlp", json!({ "resourceSpans": [{ "scopeSpans": [{ "scope": { "name": HOSTILE }, "spans": [
            { "traceId": name("a"), "spanId": name("b"), "name": HOSTILE, "startTimeUnixNano": "5", "attributes": [
                { "key": "gen_ai.operation.name", "value": { "stringValue": "chat" } },
                { "key": "gen_ai.request.model", "value": { "stringValue": name("m") } },
                { "key": "gen_ai.conversation.id", "value": { "stringValue": name("s") } },
                { "key": "gen_ai.tool.definitions", "value": { "stringValue": json!([{ "type": "function", "name": name("f") }]).to_string() } },
                { "key": "gen_ai.input.messages", "value": { "stringValue": json!([{ "role": "user", "parts": [{ "type": "text", "content": HOSTILE }] }]).to_string() } },
                { "key": "gen_ai.output.messages", "value": { "stringValue": json!([{ "role": "assistant", "parts": [{ "type": "tool_call", "id": name("c"), "name": name("f"), "arguments": { name("key"): HOSTILE } }], "finish_reason": HOSTILE }]).to_string() } }
            ] },
            { "traceId": "c", "spanId": "d", "attributes": [{ "key": "gen_ai.operation.name", "value": { "stringValue": name("odd") } }] },
            { "traceId": "e", "spanId": "f", "attributes": [{ "key": "gen_ai.input.messages", "value": { "stringValue": HOSTILE } }] },
            HOSTILE
        ] }] }] }).to_string()),
        ("openhands", json!([
            { "id": 0, "source": "user", "action": "message", "args": { "content": HOSTILE } },
            { "id": 1, "source": "agent", "action": name("run"), "args": { "command": HOSTILE }, "tool_call_metadata": { "function_name": name("f"), "tool_call_id": name("c") } },
            { "id": 2, "source": "agent", "observation": name("out"), "content": HOSTILE, "cause": 1 }
        ]).to_string()),
        ("copilot", lines(&[
            json!({ "type": "session.start", "data": { "sessionId": name("s") } }),
            json!({ "type": "user.message", "data": { "content": HOSTILE } }),
            json!({ "type": "assistant.message", "data": { "content": HOSTILE, "toolRequests": [{ "toolCallId": name("c"), "name": name("f"), "arguments": { name("key"): HOSTILE } }] } }),
            json!({ "type": "tool.execution_complete", "data": { "toolCallId": name("c"), "result": { "content": HOSTILE } } }),
            json!({ "type": name("odd."), "data": {} }),
        ])),
        ("cline", json!({ "sessionId": name("s"), "system_prompt": HOSTILE, "messages": [said, { "role": "assistant", "content": [tool_use, odd], "modelInfo": { "id": name("m") }, "metrics": { "inputTokens": 7 } }, tool_result] }).to_string()),
        ("continue", json!({ "sessionId": name("s"), "title": HOSTILE, "workspaceDirectory": HOSTILE, "history": [
            { "message": { "role": "user", "content": HOSTILE }, "contextItems": [{ "content": HOSTILE, "name": name("n") }] },
            { "message": { "role": "assistant", "content": [odd], "toolCalls": [{ "id": name("c"), "function": { "name": name("f"), "arguments": HOSTILE } }], "usage": { "model": name("m"), "prompt_tokens": 7 } },
              "toolCallStates": [{ "toolCallId": name("c"), "status": name("s"), "output": [{ "content": HOSTILE }] }] }
        ] }).to_string()),
        ("atif", json!({ "schema_version": "ATIF-v1.7", "session_id": name("s"), "agent": { "name": name("a"), "model_name": name("m"), "tool_definitions": [{ "type": "function", "function": { "name": name("f") } }] }, "steps": [
            { "step_id": 1, "source": "user", "message": HOSTILE },
            { "step_id": 2, "source": "agent", "message": [odd], "reasoning_content": HOSTILE, "tool_calls": [{ "tool_call_id": name("c"), "function_name": name("f"), "arguments": { name("key"): HOSTILE } }],
              "observation": { "results": [{ "source_call_id": name("c"), "content": HOSTILE }] }, "metrics": { "prompt_tokens": 7 } }
        ] }).to_string()),
        ("goose", lines(&[
            json!({ "working_dir": HOSTILE, "description": HOSTILE, "message_count": 2 }),
            json!({ "id": name("m"), "role": "user", "created": 5, "content": [{ "type": "text", "text": HOSTILE }, odd] }),
            json!({ "role": "assistant", "created": 6, "content": [{ "type": "toolRequest", "id": name("c"), "toolCall": { "status": "success", "value": { "name": name("f"), "arguments": { name("key"): HOSTILE } } } }] }),
            json!({ "role": "user", "created": 7, "content": [{ "type": "toolResponse", "id": name("c"), "toolResult": { "status": "success", "value": { "content": [{ "type": "text", "text": HOSTILE }] } } }] }),
        ])),
        ("opencode", json!({ "info": { "id": name("s"), "title": HOSTILE }, "messages": [
            { "info": { "role": "user" }, "parts": [{ "type": "text", "text": HOSTILE }] },
            { "info": { "role": "assistant", "modelID": name("m") }, "parts": [{ "type": "tool", "tool": name("f"), "callID": name("c"), "state": { "status": "completed", "input": { name("key"): HOSTILE }, "output": HOSTILE } }, odd] }
        ] }).to_string()),
    ]);
    all
}

fn sessions_by_line(odd: &Value) -> Vec<(&'static str, String)> {
    vec![
        (
            "qwen-code",
            lines(&[
                json!({ "uuid": "a", "sessionId": name("s"), "type": "user", "provenance": "real_user", "message": { "role": "user", "parts": [{ "text": HOSTILE }] } }),
                json!({ "uuid": "b", "parentUuid": "a", "sessionId": name("s"), "type": "assistant", "model": name("m"), "message": { "role": "model", "parts": [{ "text": HOSTILE }, { "functionCall": { "id": name("c"), "name": name("f"), "args": { name("key"): HOSTILE } } }, odd] } }),
                json!({ "uuid": "d", "parentUuid": "b", "sessionId": name("s"), "type": "tool_result", "message": { "role": "user", "parts": [{ "functionResponse": { "id": name("c"), "name": name("f"), "response": { "output": HOSTILE } } }] } }),
            ]),
        ),
        (
            "kimi",
            lines(&[
                json!({ "type": "metadata", "protocol_version": name("1") }),
                json!({ "type": "context.append_message", "message": { "role": "user", "content": [{ "type": "text", "text": HOSTILE }] } }),
                json!({ "type": "context.append_loop_event", "event": { "type": "tool.call", "toolCallId": name("c"), "name": name("f"), "args": { name("key"): HOSTILE } } }),
                json!({ "type": name("context.odd") }),
            ]),
        ),
    ]
}

#[test]
fn of_no_format_a_control_reaches_a_page_a_message_or_json() {
    let scratch = tempfile::tempdir().unwrap();
    let transcripts = transcripts();
    let mut tried: Vec<&str> = transcripts.iter().map(|(format, _)| *format).collect();
    tried.sort_unstable();
    let formats = support::json_lines(&["formats", "--json"]);
    let names: Vec<&str> = formats.iter().map(|format| format["name"].as_str().unwrap()).collect();
    // Recordings that are folders have a test of their own.
    let names: Vec<&str> = names
        .into_iter()
        .filter(|name| !["claude-bodies", "codex-trace", "recording"].contains(name))
        .collect();
    assert_eq!(tried, names);
    for (format, text) in transcripts {
        let file = hostile_file(scratch.path(), format, &text);
        let stats = support::run(&["stats", "--json", &file]);
        let stats: Value = serde_json::from_str(&stats.out).unwrap();
        assert_eq!(stats["format"], format);
        for words in [
            &["stats"][..],
            &["stats", "--json"],
            &["stats", "--color", "always"],
            &["frames"],
            &["frames", "--table"],
            &["frames", "--capture"],
            &["render", "--json"],
            &["render", "--as", "snapshots"],
            &["render", "--color", "always"],
            &["render", "--from", "999"],
            &["trace", "--text", "]52;c;"],
            &["trace", "--text", "]52;c;", "--json"],
            &["trace", "--at", "0:0"],
            &["trace", "--at", "999:0"],
            &["trace", "--text", "a", "--session", HOSTILE],
            &["compress", "--budget", "2k", "--json"],
            &["compress", "--budget", "2k", "--as", "blocks"],
            &["compress", "--budget", "2k", "--as", "anthropic"],
            &["compress", "--budget", "2k", "--as", "openai"],
            &["compress", "--budget", "1"],
            &["compress", "--budget", "2k", "--receipt"],
            &["expand", "--budget", "2k", "--block", HOSTILE],
            &["expand", "--budget", "2k", "--around", "nothing like it"],
            &["replay", "--budget", "2k"],
            &["export", "--otlp"],
            &["replay", "--budget", "2k", "--json"],
            &["checkpoint", "draft", "--json"],
            &["observe", "--policy", "all", "replay"],
            &["observe", "--policy", "all", "--json", "replay"],
        ] {
            let run = run(&[words, &[&file]].concat());
            for said in [&run.out, &run.err] {
                let found = acted_on(said);
                assert!(found.is_empty(), "{words:?} {format}: {found:#?}");
            }
            assert!(!(run.out.is_empty() && run.err.is_empty()), "{words:?} {format}");
        }
    }
}

#[test]
fn no_source_file_but_the_module_of_output_names_the_streams() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(&sources).unwrap();
            if inside.starts_with("output") || inside == Path::new("output.rs") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let names = ["stdout()", "stderr()", "println!(", "print!(", "dbg!(", ".print()"];
            let found = names.iter().find(|name| {
                let whole = |at: usize| {
                    text[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_')
                };
                text.match_indices(**name).any(|(at, _)| name.starts_with('.') || whole(at))
            });
            assert_eq!(found, None, "{}", inside.display());
        }
    }
}
