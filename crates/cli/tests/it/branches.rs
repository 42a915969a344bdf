//! What a session left, what its harness put before the model, and whom it started.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{fs, path::Path};

use serde_json::{Value, json};
use support::{json as answer, json_lines, out, run};

/// A message of Claude Code; `after` is the record before it.
fn said(kind: &str, id: &str, after: Option<&str>, content: &Value) -> Value {
    json!({"type": kind, "sessionId": "s", "uuid": id, "parentUuid": after, "message": {"id": format!("m{id}"), "content": content}})
}

fn write(path: &Path, records: &[Value]) -> String {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(path, lines).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A session that goes back to its first answer.
fn rewound(folder: &Path) -> String {
    let records = [
        said("user", "u0", None, &json!("zero")),
        said("assistant", "a0", Some("u0"), &json!("ANSWER0")),
        said("user", "u1", Some("a0"), &json!("one")),
        said("assistant", "a1", Some("u1"), &json!("ANSWER1")),
        said("user", "u2", Some("a0"), &json!("two")),
        said("assistant", "a2", Some("u2"), &json!("ANSWER2")),
    ];
    write(&folder.join("s.jsonl"), &records)
}

/// The same session of Gemini CLI, which says before which message the user went back.
fn rewound_in_gemini(folder: &Path) -> String {
    let said =
        |kind: &str, id: &str, content: &str| json!({"type": kind, "id": id, "content": content});
    let records = [
        json!({"sessionId": "s", "projectHash": "h"}),
        said("user", "u0", "zero"),
        said("gemini", "a0", "ANSWER0"),
        said("user", "u1", "one"),
        said("gemini", "a1", "ANSWER1"),
        json!({"$rewindTo": "u1"}),
        said("user", "u2", "two"),
        said("gemini", "a2", "ANSWER2"),
    ];
    write(&folder.join("s.jsonl"), &records)
}

fn words(context: &str) -> Vec<&'static str> {
    let all = ["zero", "ANSWER0", "one", "ANSWER1", "two", "ANSWER2"];
    all.into_iter().filter(|word| context.contains(word)).collect()
}

#[test]
fn a_branch_that_was_left_is_in_no_context_unless_it_is_asked_for() {
    for write in [rewound, rewound_in_gemini] {
        check_branches(write);
    }
}

fn check_branches(write: fn(&Path) -> String) {
    let scratch = tempfile::tempdir().unwrap();
    let file = write(scratch.path());
    let archive = scratch.path().join("archive");
    let archive = archive.to_str().unwrap();
    assert_eq!(run(&["archive", &file, "-o", archive]).code, Some(0));
    let frames = scratch.path().join("frames.jsonl");
    fs::write(&frames, out(&["frames", &file])).unwrap();
    for input in [&file, archive, frames.to_str().unwrap()] {
        let context = |options: &[&str]| {
            words(&out(&[&["render", "--as", "messages"], options, &[input]].concat()))
        };
        assert_eq!(context(&[]), ["zero", "ANSWER0", "two", "ANSWER2"]);
        assert_eq!(words(&out(&["render", input])), ["zero", "ANSWER0", "two", "ANSWER2"]);
        let hits = answer(&["trace", "--json", "--text", "ANSWER1", input]);
        assert_eq!(hits[0]["inContext"], false, "{hits}");
        let all = ["zero", "ANSWER0", "one", "ANSWER1", "two", "ANSWER2"];
        assert_eq!(context(&["--all-branches"]), all);
        assert_eq!(context(&["--branch", "a1"]), ["zero", "ANSWER0", "one", "ANSWER1"]);
        assert_eq!(context(&["--branch", "u2"]), ["zero", "ANSWER0", "two"]);
        let compressed = out(&["compress", "--budget", "100k", "--as", "openai", input]);
        assert_eq!(words(&compressed), ["zero", "ANSWER0", "two", "ANSWER2"]);
        let branch = scratch.path().join("branch.json");
        fs::write(&branch, out(&["render", "--as", "messages", "--branch", "a1", input])).unwrap();
        let same = |options: &[&str]| {
            let compared = ["diff", "--json", input, branch.to_str().unwrap()];
            answer(&[&compared, options].concat())["same"] == json!(true)
        };
        assert!(same(&["--branch", "a1"]) && !same(&["--branch", "a2"]) && !same(&[]));
        let requests = json_lines(&["requests", "--json", input]);
        assert_eq!(requests.len(), 3);
        let third = run(&["render", "--request", "3", input]).out;
        assert_eq!(words(&third), ["zero", "ANSWER0", "two"]);
        // Frames are the whole of it, with what they tell.
        let events = out(&["frames", "--json", input]);
        assert_eq!(words(&events), all);
        assert!(events.contains(r#"{"outside":[[2,3]]}"#), "{events}");
        assert_eq!(json_lines(&["frames", "--branch", "a1", "--json", input]).len(), 4);
    }
}

/// A session of pi that goes back to its first answer.
#[test]
fn an_entry_of_pi_names_its_branch() {
    let scratch = tempfile::tempdir().unwrap();
    let entry = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"type": "message", "id": id, "parentId": parent, "message": {"role": role, "content": content}})
    };
    let records = [
        json!({"type": "session", "version": 3, "id": "s", "cwd": "/"}),
        entry("m1", None, "user", "zero"),
        entry("m2", Some("m1"), "assistant", "ANSWER0"),
        entry("m3", Some("m2"), "user", "one"),
        entry("m4", Some("m3"), "assistant", "ANSWER1"),
        entry("m5", Some("m2"), "user", "two"),
        entry("m6", Some("m5"), "assistant", "ANSWER2"),
    ];
    let file = write(&scratch.path().join("pi.jsonl"), &records);
    let context = |options: &[&str]| {
        words(&out(&[&["render", "--as", "messages"], options, &[file.as_str()]].concat()))
    };
    assert_eq!(context(&[]), ["zero", "ANSWER0", "two", "ANSWER2"]);
    assert_eq!(context(&["--branch", "m4"]), ["zero", "ANSWER0", "one", "ANSWER1"]);
    assert_eq!(context(&["--branch", "m5"]), ["zero", "ANSWER0", "two"]);
}

#[test]
fn a_branch_that_is_nowhere_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let file = rewound(scratch.path());
    let refused = run(&["render", "--branch", "nowhere", &file]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains(r#"there is no frame of a record "nowhere""#), "{}", refused.err);
    let both = run(&["render", "--branch", "a1", "--all-branches", &file]);
    assert_eq!(both.code, Some(2));
}

#[test]
fn what_was_attached_is_traced_to_its_file() {
    let scratch = tempfile::tempdir().unwrap();
    let memory = json!({"type": "nested_memory", "path": "/r/CLAUDE.md", "displayPath": "CLAUDE.md", "content": {"content": "Use tabs."}});
    let records = [
        said("user", "u0", None, &json!("zero")),
        json!({"type": "attachment", "uuid": "t0", "parentUuid": "u0", "attachment": memory}),
        json!({"type": "attachment", "uuid": "t1", "parentUuid": "t0", "attachment": {"type": "hook_success", "content": ""}}),
        json!({"type": "result", "uuid": "x"}),
        said("assistant", "a0", Some("t0"), &json!("ANSWER0")),
    ];
    let file = write(&scratch.path().join("s.jsonl"), &records);
    let hits = answer(&["trace", "--json", "--text", "Use tabs.", &file]);
    assert_eq!(hits.as_array().unwrap().len(), 1);
    assert_eq!(hits[0]["facetIds"], json!(["event-1.0:CLAUDE.md"]));
    assert_eq!(hits[0]["role"], "user");
    let page = out(&["stats", &file]);
    assert!(page.contains("Records that the model never saw: attachment/hook_success 1"), "{page}");
    assert!(page.contains("Metadata that is in no context: result 1"), "{page}");
}

#[test]
fn subagents_are_read_with_their_session_and_once() {
    let scratch = tempfile::tempdir().unwrap();
    let call =
        json!([{"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "content": "found"}]);
    let mut answered = said("user", "r0", Some("a0"), &result);
    answered["toolUseResult"] = json!({"agentId": "ab"});
    let records = [
        said("user", "u0", None, &json!("zero")),
        said("assistant", "a0", Some("u0"), &call),
        answered,
        said("assistant", "a1", Some("r0"), &json!("ANSWER1")),
    ];
    let of_agent = |agent: &str| {
        let one = |kind: &str, id: &str, after: Option<&str>, text: &str| {
            let mut record = said(kind, id, after, &json!(text));
            (record["agentId"], record["isSidechain"]) = (json!(agent), json!(true));
            record
        };
        [one("user", "su", None, "look"), one("assistant", "sa", Some("su"), "I see.")]
    };
    let file = write(&scratch.path().join("s.jsonl"), &records);
    let subagent = write(&scratch.path().join("s/subagents/agent-ab.jsonl"), &of_agent("ab"));
    // As older versions wrote them, one of another session, and one that cannot be read.
    write(&scratch.path().join("agent-cd.jsonl"), &of_agent("cd"));
    let mut other = of_agent("ef");
    other.iter_mut().for_each(|record| record["sessionId"] = json!("other"));
    write(&scratch.path().join("agent-ef.jsonl"), &other);
    fs::create_dir(scratch.path().join("s/subagents/agent-gh.jsonl")).unwrap();
    for files in [vec![&*file], vec![&*file, &*subagent], vec![&*subagent, &*file]] {
        let read = run(&[&["requests", "--json"], &*files].concat());
        assert_eq!(read.code, Some(0), "{}", read.err);
        assert!(read.err.contains("agent-gh.jsonl"), "{}", read.err);
        let lines: Vec<Value> =
            read.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sessions: Vec<_> = lines.iter().map(|line| line["session"].clone()).collect();
        assert_eq!(sessions, ["s", "s", "s/ab", "s/cd"]);
        let start = json!({"session": "s", "call": "t1", "frame": 1});
        assert_eq!(lines[2]["startedBy"], start);
        // Its prompt is that of the call.
        assert_eq!(lines[3]["startedBy"], start);
        assert_eq!(lines[0].get("startedBy"), None);
    }
    let page = run(&["requests", &file]).out;
    assert!(page.contains("started by call t1 in frame 1 of session s"), "{page}");
    // By itself it is read as ever.
    assert_eq!(json_lines(&["frames", "--json", &subagent]).len(), 2);
}

#[test]
fn the_text_of_another_session_begins_with_its_name() {
    let scratch = tempfile::tempdir().unwrap();
    let of_subagent = |mut record: Value| {
        record["isSidechain"] = json!(true);
        record
    };
    let records = [
        said("user", "u0", None, &json!("Watch the tide.")),
        said("assistant", "a0", Some("u0"), &json!("I do.")),
        of_subagent(said("user", "v0", None, &json!("Rules:\n- Open the lock."))),
        of_subagent(said("assistant", "b0", Some("v0"), &json!("Open."))),
        said("user", "u1", Some("a0"), &json!("Thanks.")),
    ];
    let file = write(&scratch.path().join("s.jsonl"), &records);
    let apart = "[Session s/sidechain-1]\n\nRules:\n- Open the lock.";
    let commands: [&[&str]; 2] = [&["render"], &["compress", "--budget", "1500"]];
    for command in commands {
        let text = out(&[command, &[&file]].concat());
        assert!(text.starts_with("Watch the tide.") && text.contains(apart), "{text}");
        let own = text.find("Thanks.").unwrap();
        // Frames come in the order of the file, contexts one after the other.
        let is_named = text.get(..own).unwrap().contains("[Session s]");
        assert_eq!(is_named, command == ["render"], "{text}");
    }
}
