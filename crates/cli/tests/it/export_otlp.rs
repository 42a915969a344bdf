//! `export --otlp` of several files, of one of them that is refused, and of one session.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support::run;

use std::fs;

const CHAT: &str = "crates/cli/tests/data/chat.json";
const TRAFFIC: &str = "crates/cli/tests/data/traffic.json";

fn spans(document: &str) -> Vec<serde_json::Value> {
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

#[test]
fn a_refused_file_leaves_a_whole_otlp_document_of_the_others() {
    let all = run(&["export", "--otlp", CHAT, TRAFFIC]);
    assert_eq!(all.code, Some(0), "{}", all.err);
    let others = run(&["export", "--otlp", CHAT, "nofile.json", TRAFFIC]);
    assert_eq!(others.code, Some(2), "{}", others.err);
    assert!(others.err.contains("nofile.json"), "{}", others.err);
    assert_eq!(spans(&others.out), spans(&all.out));
    let none = run(&["export", "--otlp", "nofile.json"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
    assert!(spans(&none.out).is_empty() && !none.err.contains("note:"), "{}", none.err);
}

#[test]
fn an_otlp_session_of_calls_without_messages_is_exported_by_its_name() {
    let span = r#"{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"0000000000000001","name":"chat m","startTimeUnixNano":"1000000000","endTimeUnixNano":"2000000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.conversation.id","value":{"stringValue":"conv"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"7"}}]}"#;
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("spans.json");
    let document = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#);
    fs::write(&file, document).unwrap();
    let file = file.to_str().unwrap();
    let exported = run(&["export", "--otlp", "--session", "conv", file]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    assert_eq!(spans(&exported.out).len(), 2);
    let other = run(&["export", "--otlp", "--session", "other", file]);
    assert_eq!(other.code, Some(2), "{}", other.err);
}
