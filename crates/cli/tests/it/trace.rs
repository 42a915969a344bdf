//! What `trace` finds, and what it says where it finds nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::{json as answer, run};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";

/// Writes a session of Codex in which these commands were run, each with its output, and gives its
/// path.
fn codex(folder: &Path, calls: &[(&str, &str)]) -> String {
    let mut lines = vec![
        json!({ "timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": { "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/", "originator": "codex", "cli_version": "1" } }),
        json!({ "timestamp": "2026-01-01T00:00:01Z", "type": "response_item", "payload": { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Go." }] } }),
    ];
    for (number, (command, output)) in calls.iter().enumerate() {
        let arguments = json!({ "command": ["bash", "-lc", command] }).to_string();
        let output = json!({ "output": output, "metadata": { "exit_code": 0 } }).to_string();
        let id = format!("call_{number}");
        lines.push(json!({ "timestamp": "2026-01-01T00:00:02Z", "type": "response_item", "payload": { "type": "function_call", "name": "shell", "arguments": arguments, "call_id": id } }));
        lines.push(json!({ "timestamp": "2026-01-01T00:00:03Z", "type": "response_item", "payload": { "type": "function_call_output", "call_id": id, "output": output } }));
    }
    let path = folder.join("rollout.jsonl");
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
    path.to_str().unwrap().to_owned()
}

fn hits(args: &[&str]) -> usize {
    answer(&[&["trace", "--json"], args].concat()).as_array().unwrap().len()
}

#[test]
fn a_call_names_the_files_of_its_command_and_where_a_search_looks_is_none() {
    let scratch = tempfile::tempdir().unwrap();
    let commands = [
        ("sed -i 's/low/high/' quay/tide.py && cat quay/log.md > quay/copy.md", "moored"),
        ("mv quay/old.md quay/new.md", "moored"),
        ("rg tide quay", "moored"),
    ];
    let file = codex(scratch.path(), &commands);
    let hits = answer(&["trace", "--text", "moored", "--json", &file]);
    let files: Vec<&Value> = hits.as_array().unwrap().iter().map(|hit| &hit["files"]).collect();
    let file = |path: &str, touch: &str| json!({ "path": path, "touch": touch });
    let expected = [
        json!([
            file("quay/tide.py", "changed"),
            file("quay/copy.md", "written"),
            file("quay/log.md", "read")
        ]),
        json!([file("quay/old.md", "moved"), file("quay/new.md", "movedHere")]),
        json!([]),
    ];
    assert_eq!(files, expected.iter().collect::<Vec<_>>());
}

#[test]
fn text_is_found_as_a_reader_sees_it_in_calls_and_results() {
    let scratch = tempfile::tempdir().unwrap();
    let command = "grep -n \"two words\" src/main.rs\n\tcat a.txt\nC:\\new \"naïve\"";
    let output = "12:    let s = \"two words\";\n13:\tprintln!(\"{s}\\n\");\n";
    let file = codex(scratch.path(), &[(command, output)]);
    let archive = scratch.path().join("archive");
    let archive = archive.to_str().unwrap();
    assert_eq!(run(&["archive", &file, "-o", archive]).code, Some(0));
    for input in [file.as_str(), archive] {
        for format in ["xml", "native"] {
            for line in command.lines().chain(output.lines()) {
                assert_eq!(
                    hits(&["--format", format, "--text", line, input]),
                    1,
                    "{format}: {line}"
                );
            }
            // Over the ends of lines too.
            assert_eq!(hits(&["--format", format, "--text", "main.rs\n\tcat a", input]), 1);
            assert_eq!(hits(&["--format", format, "--regex", "--text", r"^13:\s", input]), 1);
        }
    }
}

#[test]
fn a_place_that_is_found_unescaped_is_where_it_stands() {
    let scratch = tempfile::tempdir().unwrap();
    let file = codex(scratch.path(), &[("echo \"a b\"", "a b")]);
    let found = answer(&["trace", "--json", "--text", "echo \"a b\"", &file]);
    let hit = &found[0];
    let messages = answer(&["render", "--as", "messages", &file]);
    let message = &messages["messages"][hit["message"].as_u64().unwrap() as usize];
    let text = message["content"].as_str().unwrap();
    let range = hit["start"].as_u64().unwrap() as usize..hit["end"].as_u64().unwrap() as usize;
    assert_eq!(&text[range], r#"echo \"a b\""#);
    assert_eq!(hit["type"], "action");
}

#[test]
fn letters_may_be_small_or_large_and_a_text_a_pattern() {
    assert_eq!(hits(&["--text", "BRING", "--ignore-case", SESSIONS]), 1);
    assert_eq!(hits(&["-i", "--text", "AAA", SESSIONS]), 1);
    assert_eq!(hits(&["--regex", "--text", r"\d+ logs", SESSIONS]), 3);
    assert_eq!(hits(&["--regex", "-i", "--text", r"^\d+ LOGS$", SESSIONS]), 2);
    let wrong = run(&["trace", "--regex", "--text", "(", SESSIONS]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.starts_with("error: the text is no regular expression: unclosed group\n"),
        "{}",
        wrong.err
    );
    let alone = run(&["trace", "--regex", "--facet", "wood", SESSIONS]);
    assert_eq!(alone.code, Some(2));
}

#[test]
fn a_value_may_begin_with_a_hyphen() {
    let scratch = tempfile::tempdir().unwrap();
    let file = codex(scratch.path(), &[("ls -la --color", "-rw-r--r-- 1")]);
    for text in ["-la --color", "--color", "-rw-r--r--", "--json"] {
        let expected = usize::from(text != "--json");
        let run = run(&["trace", "--json", "--text", text, &file]);
        let found: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(found.as_array().unwrap().len(), expected, "{text}: {}", run.err);
    }
    for option in ["--facet", "--session"] {
        let run = run(&["trace", "--text", "x", option, "-1", &file]);
        assert!(!run.err.contains("unexpected argument"), "{}", run.err);
    }
}

#[test]
fn no_hit_is_one_line_for_any_number_of_files_and_exit_code_1() {
    let one = run(&["trace", "--text", "unicorn", CHAT]);
    assert_eq!((one.code, one.out.as_str(), one.err.as_str()), (Some(1), "", "note: no hit\n"));
    let many: Vec<&str> = std::iter::repeat_n(CHAT, 1000).collect();
    let many = run(&[&["trace", "--text", "unicorn"], &many[..]].concat());
    assert_eq!((many.code, many.err.as_str()), (Some(1), "note: no hit in 1,000 files\n"));
    // One that is found is enough.
    let some = run(&["trace", "--text", "11 logs", CHAT, SESSIONS]);
    assert_eq!((some.code, some.said().as_str()), (Some(0), ""));
}
