//! What each facet cost: the page and its JSON add up to the reported usage.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::fs;

use serde_json::{Value, json};
use support::{json as answer, out};

const FIGURES: [&str; 6] =
    ["input", "cacheRead", "cacheWrite", "cacheWrite1h", "uncached", "output"];

fn figure(share: &Value, name: &str) -> u64 {
    share[name].as_u64().unwrap_or(0)
}

#[test]
fn the_lines_and_the_remainder_add_up_to_the_reported_usage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    let mut lines = vec![json!({ "type": "session", "id": "s", "timestamp": "t", "cwd": "/x" })];
    for turn in 0..30_u64 {
        let path = format!("/harbour/{turn}.md");
        let usage =
            json!({ "input": 40, "output": 20 + turn, "cacheRead": 300 * turn, "cacheWrite": 300 });
        for message in [
            json!({ "role": "user", "content": format!("read {path}") }),
            json!({ "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage,
                "content": [{ "type": "toolCall", "id": format!("c{turn}"), "name": "read", "arguments": { "path": path } }] }),
            json!({ "role": "toolResult", "toolCallId": format!("c{turn}"), "toolName": "read",
                "content": [{ "type": "text", "text": "the tide is high ".repeat(20) }] }),
        ] {
            lines.push(json!({ "type": "message", "timestamp": "t", "message": message }));
        }
    }
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&file, text.join("\n")).unwrap();
    let file = file.to_str().unwrap();

    let stats = answer(&["stats", "--residency", "--json", file]);
    let residency = &stats["residency"];
    let (lines, total) = (residency["lines"].as_array().unwrap(), &residency["total"]);
    assert_eq!(lines.len(), 20);
    let remainder = residency["remainder"].as_object().unwrap();
    let shares: Vec<&Value> =
        lines.iter().chain([&residency["others"]]).chain(remainder.values()).collect();
    for name in FIGURES {
        let sum: u64 = shares.iter().map(|share| figure(share, name)).sum();
        assert_eq!(sum, figure(total, name), "{name}");
        if name != "uncached" {
            assert_eq!(sum, figure(&stats["usage"]["total"], name), "{name}");
        }
    }
    // So do the groups of each kind with what they do not list.
    for kind in ["byType", "byTool", "byDefinition", "byPath", "byTurn"] {
        let listed: Vec<&Value> = match &residency[kind] {
            Value::Array(list) => list.iter().collect(),
            groups => groups.as_object().unwrap().values().collect(),
        };
        let rest = &residency["rest"][kind];
        let rest = ["others", "ungrouped", "outside"].map(|name| &rest[name]);
        for name in FIGURES {
            let sum: u64 = listed.iter().chain(&rest).map(|share| figure(share, name)).sum();
            assert_eq!(sum, figure(total, name), "{kind}: {name}");
        }
    }
    assert_eq!(residency["rest"]["byTurn"]["others"]["groups"], 10);
    assert_eq!(residency["byTurn"][0]["text"], "read /harbour/0.md");
    assert_eq!(total["price"], stats["price"]["total"]);
    let first = &lines[0];
    assert_eq!((&first["tool"], &first["subject"]), (&json!("read"), &json!("/harbour/0.md")));
    assert_eq!((&first["requests"], &first["definition"]), (&json!(29), &json!(false)));
    assert_eq!(residency["byTool"].as_object().unwrap().keys().collect::<Vec<_>>(), ["read"]);
    assert_eq!(residency["byPath"].as_object().unwrap().len(), 20);
    assert_eq!(residency["byTurn"].as_array().unwrap().len(), 20);

    let page = out(&["stats", "--residency", file]);
    for says in [
        "THE 20 FACETS THAT COST MOST",
        "/harbour/0.md",
        "not in the transcript",
        "all that is reported",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
    // Nothing is reported in another file.
    let silent = folder.path().join("silent.json");
    fs::write(&silent, r#"[{"role":"user","content":"go"},{"role":"assistant","content":"gone"}]"#)
        .unwrap();
    let page = out(&["stats", "--residency", silent.to_str().unwrap()]);
    assert!(page.contains("No usage is reported."), "{page}");
}
