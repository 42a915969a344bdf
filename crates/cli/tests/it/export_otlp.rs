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

#[test]
fn spans_of_new_messages_are_smaller_and_read_back_as_the_same_requests() {
    const WORDS: &str = "The tide is low and the berth is free, so nothing has to wait.";
    let scratch = tempfile::tempdir().unwrap();
    let of = |name: &str, file: &str, more: &[&str]| {
        let written = run(&[&["export", "--otlp"], more, &[file]].concat());
        let bytes = format!("{} bytes", written.out.len());
        let said = written.err.replace(',', "");
        assert!(written.code == Some(0) && said.contains(&bytes), "{bytes}: {}", written.err);
        let path = scratch.path().join(name);
        fs::write(&path, &written.out).unwrap();
        (written.out.len(), path.to_str().unwrap().to_owned())
    };
    let mut turns = vec![serde_json::json!({"role": "user", "content": "Move berth 7."})];
    for turn in 0..40 {
        turns.push(
            serde_json::json!({"role": "assistant", "content": format!("Step {turn}. {WORDS}")}),
        );
        turns.push(serde_json::json!({"role": "user", "content": format!("Go on after {turn}.")}));
    }
    let long = scratch.path().join("long.json");
    fs::write(&long, serde_json::to_string(&turns).unwrap()).unwrap();
    for file in [CHAT, TRAFFIC, long.to_str().unwrap()] {
        let (all, new) = (of("all.json", file, &[]), of("new.json", file, &["--messages", "new"]));
        let read = |path: &str, number: &str| {
            let found = run(&["render", "--request", number, path]);
            (found.code, found.out)
        };
        for number in ["1", "2", "3", "9", "40"] {
            assert_eq!(read(&new.1, number), read(&all.1, number), "{file} {number}");
        }
        if file == long.to_str().unwrap() {
            assert!(new.0 * 3 < all.0, "{} of {}", new.0, all.0);
        }
    }
}
