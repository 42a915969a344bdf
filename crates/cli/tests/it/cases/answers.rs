//! Documents and states: checkpoints, frames, observations.
#![allow(clippy::unwrap_used, reason = "a test that fails")]

use std::{fs, path::Path};

use crate::support::{out, run};

/// A file of its own with this text.
fn file(folder: &tempfile::TempDir, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_delta_gives_the_line_ends_of_its_target_and_validate_sees_others() {
    let folder = tempfile::tempdir().unwrap();
    let body = |says: &str| {
        format!(
            "---\ncheckpoint: {says}\ncreated: 2026-05-01T10:00:00Z\n---\n\n## Problem\n\n{says}\n"
        )
    };
    let plain = file(&folder, "plain.md", body("one"));
    let text = body("two");
    let targets = [
        text.clone(),
        text.replace('\n', "\r\n"),
        text.replace('\n', "\r"),
        text.trim_end().to_owned(),
        text.replacen('\n', "\r\n", 3),
        format!("\u{feff}{}", text.trim_end()),
        text.split("\n##").next().unwrap().to_owned(),
        String::new(),
    ];
    for (at, target) in targets.iter().enumerate() {
        let target_file = file(&folder, &format!("target-{at}.md"), target);
        let args =
            ["checkpoint", "diff", &plain, &target_file, "--created", "2026-05-02T10:00:00Z"];
        for bounded in [&[][..], &["--bounded"]] {
            let delta = file(&folder, "delta.md", out(&[&args[..], bounded].concat()));
            assert_eq!(&out(&["checkpoint", "apply", &plain, &delta]), target);
            out(&["checkpoint", "validate", &plain, &delta, &target_file]);
            let other = file(&folder, "other.md", format!("{target}\r\n"));
            let found = run(&["checkpoint", "validate", &plain, &delta, &other]);
            assert_eq!(found.code, Some(1), "{at}: {}", found.out);
        }
        let there = file(&folder, "there.md", out(&args));
        let back = file(&folder, "back.md", out(&["checkpoint", "invert", &there]));
        assert_eq!(out(&["checkpoint", "apply", &target_file, &back]), body("one"), "{at}");
    }
    let delta = file(&folder, "delta.md", out(&["checkpoint", "diff", &plain, &plain_of(&folder)]));
    let crlf = file(&folder, "crlf.md", text.replace('\n', "\r\n"));
    let found = run(&["checkpoint", "validate", &plain, &delta, &crlf]);
    assert!(found.out.contains("- ---␍␊\n  + ---␊\n"), "{}", found.out);
}

/// A target in canonical form.
fn plain_of(folder: &tempfile::TempDir) -> String {
    folder.path().join(Path::new("target-0.md")).to_str().unwrap().to_owned()
}

#[test]
fn frames_whose_snapshot_is_not_understood_are_read_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let ask = r#"{"id":"q","type":"event","content":"Is the tide high?"}"#;
    let first =
        format!(r#""sequence":1,"source":"user","deltas":[{{"type":"addFacet","facet":{ask}}}]"#);
    let second = r#"{"sequence":2,"source":"agent","deltas":[{"type":"addFacet","facet":{"id":"s","type":"speech","content":"It is."}}]}"#;
    let plain = file(&folder, "plain.jsonl", format!("{{{first}}}\n{second}\n"));
    let snapshot = r#""renderedSnapshot":{"parts":["Is the tide high?"],"version":2}"#;
    let other = file(&folder, "other.jsonl", format!("{{{first},{snapshot}}}\n{second}\n"));
    for command in ["render", "export"] {
        let args = |path: &str| match command {
            "export" => vec!["export".to_owned(), "--otlp".to_owned(), path.to_owned()],
            _ => vec![command.to_owned(), path.to_owned()],
        };
        let of = |path: &str| run(&args(path).iter().map(String::as_str).collect::<Vec<_>>());
        let (plain, other) = (of(&plain), of(&other));
        assert_eq!((other.code, &other.out), (Some(0), &plain.out), "{}", other.err);
        assert!(command != "render" || other.out.contains("Is the tide high?"));
        assert!(other.err.contains("the snapshot is left out"), "{}", other.err);
    }
}

/// What `checkpoint draft` says of a chat: its sections by their titles.
fn draft(chat: &serde_json::Value) -> String {
    let folder = tempfile::tempdir().unwrap();
    out(&["checkpoint", "draft", &file(&folder, "chat.json", chat.to_string())])
}

fn section<'d>(draft: &'d str, title: &str) -> &'d str {
    let (_, rest) = draft.split_once(&format!("# {title}\n")).unwrap();
    rest.split("\n#").next().unwrap_or(rest).trim()
}

#[test]
fn a_draft_takes_a_task_in_tags_for_the_users_and_a_notice_of_the_client_for_none() {
    let drafted = draft(&serde_json::json!([
        {"role": "user", "content": "<system-reminder>\nBe brief.\n</system-reminder>"},
        {"role": "user", "content": "<issue>Mend the gate of lock 3.</issue>"},
        {"role": "assistant", "content": "Mended."},
        {"role": "user", "content": "Thanks!"},
        {"role": "assistant", "content": "You are welcome."},
    ]));
    for title in ["Problem", "Session Intent"] {
        assert!(section(&drafted, title).contains("Mend the gate of lock 3."), "{drafted}");
    }
    assert!(!drafted.contains("Be brief"), "{drafted}");
}

#[test]
fn a_draft_has_the_files_of_tools_that_nobody_knows_and_counts_calls_that_failed() {
    let mut chat = vec![serde_json::json!({"role": "user", "content": "Build the harbour."})];
    let mut call = |id: &str, tool: &str, arguments: serde_json::Value, result: &str| {
        let function = serde_json::json!({"name": tool, "arguments": arguments.to_string()});
        let calls = [serde_json::json!({"id": id, "type": "function", "function": function})];
        chat.push(serde_json::json!({"role": "assistant", "content": null, "tool_calls": calls}));
        chat.push(serde_json::json!({"role": "tool", "tool_call_id": id, "content": result}));
    };
    for key in ["uri", "filepath", "relative_path", "file_path", "path"] {
        let arguments = serde_json::json!({key: format!("src/{key}.rs"), "content": "fn f() {}"});
        call(key, "lay_down_text", arguments, "Done.");
    }
    let shell = serde_json::json!({"command": "sed -i 's/a/b/' src/gate.rs"});
    call("sed", "shell", shell, "exit code: 0");
    let lost = serde_json::json!({"path": "src/lost.rs", "content": "x"});
    call("lost", "lay_down_text", lost, "Permission denied (exit code 1)");
    let last = serde_json::json!({"command": "make"});
    call("make", "shell", last, "Process exited with code 2\nOutput:\nmake: no rule");
    let drafted = draft(&chat.into());
    let trail = section(&drafted, "Artifact Trail");
    for path in ["uri", "filepath", "relative_path", "file_path", "path"] {
        assert!(trail.contains(&format!("| `src/{path}.rs` | created |")), "{drafted}");
    }
    assert!(trail.contains("| `src/gate.rs` | modified |"), "{drafted}");
    assert!(!trail.contains("lost.rs"), "{drafted}");
    assert!(section(&drafted, "Play-By-Play").contains("8 calls, 6 files, 2 failed"), "{drafted}");
}

#[test]
fn a_draft_shows_a_nul_as_a_sign() {
    let chat = serde_json::json!([
        {"role": "user", "content": "Please a\u{0}b."},
        {"role": "assistant", "content": "ok"},
    ]);
    assert!(section(&draft(&chat), "Problem").contains("a\u{2400}b"));
}
