//! Recorded traffic and logs of gateways.

use std::fs;

use afterimage_testkit::data::case;
use serde_json::{Value, json};

use crate::support::{json_lines, run};

/// Runs `requests` on a HAR archive with these entries: standard output and standard error.
fn requests(entries: &[Value], more: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traffic.har");
    fs::write(&file, json!({ "log": { "entries": entries } }).to_string()).unwrap();
    let run = run(&[&["requests", file.to_str().unwrap()], more].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
    (run.out, run.err)
}

fn entry(url: &str, body: Option<&Value>, response: &str) -> Value {
    let mut request = json!({ "method": "POST", "url": url });
    if let Some(body) = body {
        request["postData"] = json!({ "text": body.to_string() });
    }
    json!({ "request": request, "response": { "status": 200, "content": { "text": response } } })
}

const CHAT: &str = "https://api.example/v1/chat/completions";

/// The stream of an answer with usage.
const STREAM: &str = "data: {\"model\":\"gpt-5.5\",\"choices\":[{\"delta\":{\"content\":\"At noon.\"}}]}\n\n\
                      data: {\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":5}}\n\n\
                      data: [DONE]\n\n";

#[test]
fn requests_that_cannot_be_read_are_counted_by_their_apis() {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi" }] });
    let cohere = entry("https://api.cohere.example/v2/chat", Some(&body), "{}");
    let page =
        json!({ "request": { "method": "GET", "url": "https://x.example/" }, "response": {} });
    let (out, err) = requests(&[cohere.clone(), page.clone()], &[]);
    assert!(out.contains("There is no request to a model in it that can be read."), "{out}");
    assert!(err.contains("1 request cannot be read: 1 to Cohere"), "{err}");
    let (out, _) = requests(&[page], &[]);
    assert!(out.contains("There is no request to a model in it."), "{out}");
    // Beside one that can be.
    let chat = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi" }] });
    let (out, err) = requests(&[cohere, entry(CHAT, Some(&chat), STREAM)], &["--json"]);
    // A row, and the sums.
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(err.contains("1 request cannot be read: 1 to Cohere"), "{err}");
}

#[test]
fn an_answer_in_a_form_of_the_hosts_own_is_one_that_cannot_be_read() {
    let url = "https://bedrock-runtime.a.amazonaws.com/model/anthropic.claude/invoke-with-response-stream";
    let body = json!({ "anthropic_version": "bedrock-2023-05-31", "messages": [{ "role": "user", "content": "Hi" }] });
    let mut framed = entry(url, Some(&body), "AAAA/gAAAEsAAAAA");
    framed["response"]["content"]["encoding"] = json!("base64");
    for answer in [framed, entry(url, Some(&body), "frames")] {
        let (out, err) = requests(&[answer], &[]);
        assert!(out.contains("There is no request to a model in it that can be read."), "{out}");
        assert!(err.contains("1 request cannot be read: 1 to Amazon Bedrock"), "{err}");
    }
    // What can be read is, and so is that the host refused.
    let stream = "data: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":9}}}\n\n";
    let (out, _) = requests(&[entry(url, Some(&body), stream)], &["--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(out.lines().next().unwrap()).unwrap()["usage"]["input"],
        9
    );
    let mut refused = entry(url, Some(&body), "no");
    refused["response"]["status"] = json!(429);
    assert!(requests(&[refused], &[]).0.contains("failed: stat"));
}

#[test]
fn a_socket_that_is_not_read_is_told_with_its_entry() {
    let page = entry("https://x.example/", None, "");
    let mut socket = entry("wss://api.openai.com/v1/realtime?model=m", None, "");
    socket["_webSocketMessages"] = json!([{ "type": "send", "data": "{}" }]);
    let (_, err) = requests(&[page, socket], &[]);
    assert!(err.contains("at line 2: a request to OpenAI Realtime"), "{err}");
}

#[test]
fn a_conversation_that_the_answer_alone_names_is_gone_on_with() {
    let url = "https://api.example/v1/responses";
    let said = |number: u64, kept: Value| {
        let item = json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "At ten." }] });
        json!({ "id": format!("r{number}"), "output": [item], "conversation": kept }).to_string()
    };
    let asks = |text: &str, kept: Option<&str>| {
        let mut body = json!({ "model": "m", "input": text });
        kept.into_iter().for_each(|kept| body["conversation"] = json!(kept));
        body
    };
    for kept in [json!("c"), json!({ "id": "c" })] {
        let entries = [
            entry(url, Some(&asks("High?", None)), &said(1, kept.clone())),
            entry(url, Some(&asks("Ebb?", None)), &said(2, json!("d"))),
            entry(url, Some(&asks("Low?", Some("c"))), &said(3, kept)),
        ];
        let (out, _) = requests(&entries, &["--json"]);
        let rows: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            (&rows[2]["session"], &rows[2]["resolved"]["messages"]),
            (&rows[0]["session"], &json!(2))
        );
        assert_ne!(rows[1]["session"], rows[0]["session"]);
    }
}

#[test]
fn a_request_whose_body_the_exporter_left_out_has_its_answer_and_usage() {
    let (out, _) = requests(&[entry(CHAT, None, STREAM)], &["--json"]);
    let row: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(row["usage"]["input"], 20, "{row}");
    assert_eq!(row["outcome"], "answered", "{row}");
}

#[test]
fn a_rollout_that_holds_the_prompt_does_not_lack_it() {
    let message = |role: &str, kind: &str, text: &str| {
        let content = json!([{ "type": kind, "text": text }]);
        json!({ "timestamp": "t", "type": "response_item", "payload": { "type": "message", "role": role, "content": content } })
    };
    let lacks = |prompt: Value| {
        let meta = json!({ "timestamp": "t", "type": "session_meta", "payload": { "id": "s", "base_instructions": prompt } });
        let lines = [
            meta,
            message("developer", "input_text", "Rules."),
            message("user", "input_text", "Hi"),
            message("assistant", "output_text", "Yo"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rollout.jsonl");
        fs::write(&file, lines.map(|line| line.to_string()).join("\n")).unwrap();
        let rows = json_lines(&["requests", "--json", file.to_str().unwrap()]);
        rows[0]["lacks"].clone()
    };
    assert_eq!(lacks(json!({ "text": "You are it." })), json!(["tools", "parameters"]));
    assert_eq!(lacks(Value::Null), json!(["tools", "system", "parameters"]));
}

/// The rows of `requests --json` of a case.
fn rows(name: &str) -> Option<Vec<Value>> {
    let run = run(&["requests", "--json", case(name)?.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{name}: {}", run.err);
    let lines = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // The last line has the sums.
    Some(lines.filter(|line| !line["request"].is_null()).collect())
}

#[test]
fn traffic_from_the_field_is_read() {
    let Some(socket) = rows("15-har-websocket-codex/ws.har") else { return };
    let figures = |row: &Value| (row["usage"]["input"].as_u64(), row["usage"]["output"].as_u64());
    assert_eq!(socket.iter().map(figures).collect::<Vec<_>>(), [(Some(1_200), Some(9))]);
    let kept = rows("21-responses-conversation/conversation.har").unwrap();
    assert_eq!((kept.len(), &kept[0]["session"]), (2, &kept[1]["session"]));
    assert_eq!(kept[1]["provenance"], "resolved");
    for (name, calls) in [
        ("09-parallel-calls-same-index/same-index.har", 2),
        ("23-two-choices/chat.har", 1),
        ("19-other-tools-formats/ai-sdk/ui-messages.json", 1),
        ("19-other-tools-formats/ai-sdk/model-messages.json", 1),
        ("19-other-tools-formats/goose/20260501_100000.jsonl", 1),
    ] {
        let run = run(&["stats", "--json", case(name).unwrap().to_str().unwrap()]);
        let stats: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(stats["toolCalls"], calls, "{name}");
    }
    let log = rows("19-other-tools-formats/litellm/log.jsonl").unwrap();
    assert_eq!(log.iter().map(figures).collect::<Vec<_>>(), [(Some(100), Some(10))]);
    assert_eq!(rows("27-har-exporters/d-no-request-body.har").unwrap().len(), 1);
    assert_eq!(rows("29-urls-and-helper-calls/d-bedrock-invoke.har").unwrap().len(), 1);
}
