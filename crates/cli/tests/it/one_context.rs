//! Whoever is asked about a request, it is the same request: invariant `one_context`, for the
//! program.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use support::{json as answer, json_lines, out, run};

/// A session of pi with two compactions, the second over the first, and its path.
fn session(folder: &Path) -> String {
    let message = |id: &str, role: &str, text: &str| {
        let block = json!({ "type": "text", "text": text });
        json!({ "type": "message", "id": id, "message": { "role": role, "content": [block] } })
    };
    let summary = |id: &str, text: &str, kept: &str| json!({ "type": "compaction", "id": id, "summary": text, "firstKeptEntryId": kept });
    let lines = [
        json!({ "type": "session", "id": "s", "cwd": "/", "version": 2 }),
        message("a", "user", "Where is the oldest tide gauge?"),
        message("b", "assistant", "In Amsterdam, since 1700."),
        message("c", "user", "And the oldest lighthouse?"),
        message("d", "assistant", "At La Coruña."),
        summary("e", "They spoke of gauges.", "c"),
        message("f", "user", "Is it Roman?"),
        message("g", "assistant", "It is."),
        summary("h", "They spoke of gauges and of lights.", "f"),
        message("i", "user", "How tall is it?"),
        message("j", "assistant", "55 metres."),
    ];
    let path = folder.join("session.jsonl");
    std::fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn archived(folder: &Path, file: &str) -> String {
    let archive = folder.join("archive").to_str().unwrap().to_owned();
    assert_eq!(run(&["archive", file, "-o", &archive]).code, Some(0));
    archive
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("expected a number, found {value}"))
}

fn contents(context: &Value) -> Vec<&str> {
    let messages = context["messages"].as_array().unwrap();
    messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
}

/// What `render --as messages` prints of a session up to a frame.
fn messages(file: &str, session: &str, to: &str, format: &str) -> Value {
    let run = run(&[
        "render",
        "--json",
        "--tokenizer",
        "chars4",
        "--format",
        format,
        "--session",
        session,
        "--to",
        to,
        file,
    ]);
    serde_json::from_str(&run.out).unwrap()
}

/// Asks every command of each `every`th request of a file.
fn check(file: &str, every: u64) -> usize {
    let exact = ["--tokenizer", "chars4", file];
    let ask = |words: &[&str]| run(&[words, &exact].concat()).out;
    let lines = ask(&["requests", "--json"]);
    let mut requests: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The sums of their usage follow them.
    requests.retain(|line| line.get("request").is_some());
    let tokens = |request: &Value| {
        number(&request["tokens"]["system"]) + number(&request["tokens"]["messages"])
    };

    // The sums over all requests.
    let sums: Value =
        serde_json::from_str(&ask(&["stats", "--json", "--format", "native"])).unwrap();
    assert_eq!(number(&sums["requests"]["count"]), requests.len() as u64, "{file}");
    let all: u64 = requests.iter().map(tokens).sum();
    assert_eq!(number(&sums["requests"]["tokens"]), all, "{file}");
    let last: BTreeMap<&str, u64> = requests
        .iter()
        .map(|request| (request["session"].as_str().unwrap(), tokens(request)))
        .collect();
    assert_eq!(number(&sums["context"]["tokens"]), last.values().sum::<u64>(), "{file}");

    let replayed = ask(&["observe", "--json", "replay"]);
    let turns: Vec<Value> = replayed
        .lines()
        .flat_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["turns"].as_array().unwrap().clone()
        })
        .collect();
    assert_eq!(turns.len(), requests.len(), "{file}");

    let mut checked = 0;
    for request in
        requests.iter().filter(|request| number(&request["request"]) % every == 1 % every)
    {
        let (id, answer) = (number(&request["request"]), number(&request["frame"]));
        let (id, to) = (id.to_string(), (answer - 1).to_string());
        let session = request["session"].as_str().unwrap();
        let name = format!("{file} request {id}");
        let context = messages(file, session, &to, "native");
        let contents = contents(&context);
        let bytes: usize = contents.iter().map(|content| content.len()).sum();
        let text = run(&["render", "--format", "native", "--session", session, "--to", &to, file]);
        assert_eq!(text.out, contents.join("\n\n") + "\n", "{name}: render");
        let of: Value = serde_json::from_str(&ask(&["stats", "--json", "--request", &id])).unwrap();
        let found = &of["context"];
        assert_eq!(
            (number(&found["bytes"]), number(&found["messages"]), number(&found["tokens"])),
            (bytes as u64, contents.len() as u64, tokens(request)),
            "{name}: stats"
        );
        let shown = messages(file, session, &to, "xml");
        let expected = (
            self::contents(&shown).iter().map(|content| content.len() as u64).sum::<u64>(),
            number(&shown["tokens"]["chunks"]),
        );
        let turn = turns.iter().find(|turn| number(&turn["frame"]) == answer).unwrap();
        let found = (number(&turn["without"]["bytes"]), number(&turn["without"]["tokens"]));
        assert_eq!(found, expected, "{name}: observe replay");
        checked += 1;
    }

    // Messages have one number, and one length.
    for session in last.keys() {
        let context = messages(file, session, &u64::MAX.to_string(), "native");
        for (index, content) in contents(&context).iter().enumerate().step_by(every as usize) {
            if content.is_empty() {
                continue;
            }
            let at = |byte: usize| {
                let place = format!("{index}:{byte}");
                let words =
                    ["trace", "--json", "--format", "native", "--session", session, "--at", &place];
                run(&[&words[..], &[file]].concat())
            };
            let found = at(content.len() - 1);
            assert_eq!(found.code, Some(0), "{file} message {index}: {}", found.err);
            let hit: Value = serde_json::from_str(&found.out).unwrap();
            assert_eq!(hit[0]["message"], json!(index));
            assert_eq!(at(content.len()).code, Some(2), "{file} message {index}");
        }
    }
    checked
}

#[test]
fn every_command_answers_about_the_same_requests() {
    let scratch = tempfile::tempdir().unwrap();
    let file = session(scratch.path());
    assert_eq!(check(&file, 1), 4);
    assert_eq!(check(&archived(scratch.path(), &file), 1), 4);
}

#[test]
fn recorded_compactions_are_one_context_for_every_command() {
    let recordings: [(&str, u64); 4] = [
        ("B-anthropic/claude-code/spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl", 29),
        ("B-anthropic/claude-code/codemie/session-624a4a58.jsonl", 11),
        ("B-anthropic/pi/before-compaction.jsonl", 97),
        ("C-codex-responses/rollout/agent-sessions-small.jsonl", 2),
    ];
    let scratch = tempfile::tempdir().unwrap();
    for (at, (recording, every)) in recordings.into_iter().enumerate() {
        let path: PathBuf = support::root().join("../shared/data").join(recording);
        if !path.exists() {
            continue;
        }
        let file = path.to_str().unwrap();
        assert!(check(file, every) > 0, "{file}");
        let folder = scratch.path().join(at.to_string());
        std::fs::create_dir(&folder).unwrap();
        assert!(check(&archived(&folder, file), every) > 0, "{file}");
    }
}

#[test]
fn a_context_is_printed_with_its_summary_and_the_history_on_demand() {
    let scratch = tempfile::tempdir().unwrap();
    let file = session(scratch.path());
    for input in [file.clone(), archived(scratch.path(), &file)] {
        let text = |args: &[&str]| out(&[&["render", "--format", "native", &input], args].concat());
        let now = "They spoke of gauges and of lights.\n\nIs it Roman?\n\nIt is.\n\nHow tall is it?\n\n55 metres.\n";
        assert_eq!(text(&[]), now);
        assert_eq!(
            text(&["--to", "4"]),
            "They spoke of gauges.\n\nAnd the oldest lighthouse?\n\nAt La Coruña.\n"
        );
        // What stands for the frames that are asked for is printed whole.
        assert_eq!(text(&["--from", "2"]), now);
        assert_eq!(text(&["--from", "6"]), "It is.\n\nHow tall is it?\n\n55 metres.\n");
        assert_eq!(text(&["--whole"]).matches("\n\n").count(), 9);
        let view = text(&["--color", "always"]);
        assert!(view.contains("0 user") && view.contains("summary of frames 0–4 · "), "{view}");
        let said = run(&["render", &input]).err;
        assert_eq!(
            said,
            "note: the context is reconstructed from a transcript, without the tools, the system prompt and the parameters: record, or use a version that logs its requests\n"
        );
    }
}

#[test]
fn what_a_summary_replaced_is_found_and_said_to_be_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let file = session(scratch.path());
    for input in [file.clone(), archived(scratch.path(), &file)] {
        let found = answer(&["trace", "--json", "--text", "gauge", &input]);
        let found: Vec<_> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| json!([hit["sequence"], hit["message"], hit["inContext"], hit["leftAt"]]))
            .collect();
        // The first summary was replaced by the second.
        let expected = json!([[0, null, false, 7], [4, null, false, 7], [7, 0, true, null]]);
        assert_eq!(json!(found), expected);
        let hits = answer(&["trace", "--json", "--text", "lights", &input]);
        assert_eq!(
            (&hits[0]["facetIds"], &hits[0]["type"]),
            (&json!(["summary-7.0"]), &json!("summary"))
        );
        let page = out(&["trace", "--text", "tide", &input]);
        assert!(page.contains("replaced by the summary of frame 7"), "{page}");
        let lines = json_lines(&["stats", "--json", &input]);
        assert_eq!(lines[0]["context"]["replaced"], json!(5), "{}", lines[0]);
    }
}

#[test]
fn a_parameter_that_takes_the_cache_is_named_and_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let request = |choice: &str| {
        json!({ "uri": "https://x.example/v1/messages", "status": 200, "response": {},
            "request": { "model": "m", "system": "You keep the harbour log.",
                "tool_choice": { "type": choice }, "tools": [{ "name": "tide" }],
                "messages": [{ "role": "user", "content": "When is high water?" }] } })
    };
    let path = scratch.path().join("traffic.json");
    let document = json!({ "interactions": [request("auto"), request("any")] });
    std::fs::write(&path, document.to_string()).unwrap();
    let file = path.to_str().unwrap();
    let (was, is) = (format!("{file}@1"), format!("{file}@2"));
    let page = out(&["diff", &was, &is]);
    assert!(page.contains("tool_choice: the messages are billed again"), "{page}");
    let diff = answer(&["diff", "--json", &was, &is]);
    assert_eq!(diff["breaks"], json!([{ "cause": "tool_choice", "from": "messages" }]));
    let line = &json_lines(&["requests", "--json", file])[1];
    let messages = number(&line["tokens"]["messages"]);
    assert!(number(&diff["tokens"]["billedAgain"]) >= messages && messages > 0, "{diff}");
    assert_eq!(line["differs"]["billedAgain"], diff["tokens"]["billedAgain"]);
    let table = out(&["requests", file]);
    assert!(table.contains("+ other tool_choice; "), "{table}");
}
