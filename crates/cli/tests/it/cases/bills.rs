//! What sessions cost: forks, copies, usage in odd places, prices.
#![allow(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that fails"
)]

use std::{fs, path::Path};

use afterimage_testkit::data;
use serde_json::{Value, json};

use crate::support::{self, json_lines, out, run};

/// A folder with these files.
fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Of each file of a folder, or of a file, what counts there: exchanges, input, output; and what of it
/// counts elsewhere: the session, input and output.
fn counted(path: &Path) -> Vec<(Value, Value)> {
    let said = run(&["stats", "--json", "--tokenizer", "chars4", path.to_str().unwrap()]);
    let stats: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |stats: &Value| {
        let total = &stats["usage"]["total"];
        let copied = stats["usage"]["copied"].as_object().cloned().unwrap_or_default();
        let copied: Vec<Value> =
            copied.iter().map(|(from, sum)| json!([from, sum["input"], sum["output"]])).collect();
        (json!([total["exchanges"], total["input"], total["output"]]), Value::from(copied))
    };
    stats.iter().map(of).collect()
}

#[track_caller]
fn check(text: &str, own: Value, copied: Value) {
    let folder = folder(&[("one.jsonl", text.to_owned())]);
    assert_eq!(counted(&folder.path().join("one.jsonl")), [(own, copied)], "{text}");
}

/// A record of a rollout.
fn rollout(stamp: &str, kind: &str, payload: Value) -> Value {
    json!({ "timestamp": format!("2026-06-02T{stamp}Z"), "type": kind, "payload": payload })
}

/// A turn of a rollout at these times: the question, the answer, and what it cost with what came before.
fn turn(times: [&str; 2], id: &str, [input, output]: [u64; 2], total: [u64; 2]) -> Vec<Value> {
    let usage = |[input, output]: [u64; 2]| {
        json!({ "input_tokens": input, "cached_input_tokens": 0, "output_tokens": output,
            "reasoning_output_tokens": 0, "total_tokens": input + output })
    };
    let said = |role: &str, kind: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": "Tide?" }] });
    let mut context = json!({ "model": "gpt-5.5" });
    if !id.is_empty() {
        context["turn_id"] = id.into();
    }
    vec![
        rollout(times[0], "turn_context", context),
        rollout(times[0], "response_item", said("user", "input_text")),
        rollout(times[1], "response_item", said("assistant", "output_text")),
        rollout(
            times[1],
            "event_msg",
            json!({ "type": "token_count", "info": {
                "total_token_usage": usage(total), "last_token_usage": usage([input, output]) } }),
        ),
    ]
}

const OLD: &str = "019e87c6-9900-7000-8000-000000000001";
const FORK: &str = "019e87fd-8780-7000-8000-00000000000b";

/// A rollout that copies two turns of 100/10 and 200/20 at these times, and goes on with one of 300/30.
fn forked(head: &[Value], times: [[&str; 2]; 2], ids: [&str; 2], tail: &[Value]) -> String {
    let mut all = head.to_vec();
    all.extend(turn(times[0], ids[0], [100, 10], [100, 10]));
    all.extend(turn(times[1], ids[0], [200, 20], [300, 30]));
    all.extend(tail.iter().cloned());
    all.extend(turn(["11:00:08.000", "11:00:12.000"], ids[1], [300, 30], [600, 60]));
    lines(&all)
}

fn header(stamp: &str, id: &str, from: Option<&str>) -> Value {
    let mut meta = json!({ "id": id, "timestamp": format!("2026-06-02T{stamp}Z"), "cwd": "/w" });
    if let Some(from) = from {
        meta["forked_from_id"] = from.into();
    }
    rollout(stamp, "session_meta", meta)
}

#[test]
fn a_forked_rollout_counts_its_own_answers_and_names_what_it_copied() {
    let named = [header("11:00:00.000", FORK, Some("first"))];
    let at_once = [["11:00:00.010", "11:00:00.011"], ["11:00:00.012", "11:00:00.013"]];
    let (own, copied) = (json!([1, 300, 30]), json!([["first", 300, 30]]));
    check(&forked(&named, at_once, ["", ""], &[]), own.clone(), copied.clone());
    // The times of the first session were kept.
    let kept = [["09:00:00.000", "09:00:05.000"], ["10:00:00.000", "10:00:05.000"]];
    check(&forked(&named, kept, ["", ""], &[]), own.clone(), copied.clone());
    // Writing took seconds, and the ids of the turns say when they were.
    let slow = [["11:00:01.000", "11:00:02.000"], ["11:00:03.000", "11:00:04.000"]];
    let ids = [OLD, "019e87fd-a6c0-7000-8000-000000000002"];
    check(&forked(&named, slow, ids, &[]), own.clone(), copied.clone());
    // The header of the first session stands behind that of the fork.
    let two = [header("11:00:00.000", FORK, None), header("09:00:00.000", "first", None)];
    check(&forked(&two, at_once, ["", ""], &[]), own.clone(), copied.clone());
    // The fork's own header comes again behind the copies.
    let again = [header("11:00:00.015", FORK, Some("first"))];
    check(&forked(&two, at_once, ["", ""], &again), own.clone(), copied);
    // Nothing says that it was forked, and all was answered before anybody could.
    let plain = [header("11:00:00.010", FORK, None)];
    let instant = [["11:00:00.010", "11:00:00.010"], ["11:00:00.011", "11:00:00.011"]];
    check(&forked(&plain, instant, ["", ""], &[]), own, json!([["", 300, 30]]));
    // Fast answers of a session of its own are no copies.
    let fast = [["11:00:00.100", "11:00:00.140"], ["11:00:00.150", "11:00:00.190"]];
    check(&forked(&plain, fast, ["", ""], &[]), json!([3, 600, 60]), json!([]));
}

#[test]
fn a_fork_that_nothing_separates_says_so() {
    let at = ["11:00:00.000", "11:00:00.000"];
    let mut all = vec![header("11:00:00.000", FORK, Some("first"))];
    all.extend(turn(at, "", [100, 10], [100, 10]));
    all.extend(turn(at, "", [200, 20], [300, 30]));
    let folder = folder(&[("one.jsonl", lines(&all))]);
    let file = folder.path().join("one.jsonl");
    let said = run(&["stats", "--tokenizer", "chars4", file.to_str().unwrap()]);
    assert!(said.err.contains("nothing tells its own answers"), "{}", said.err);
    assert!(said.out.contains("2 more exchanges are copies"), "{}", said.out);
}

/// An answer of Claude Code, and the question before it.
fn claude(session: &str, number: u64, from: Option<&str>) -> Vec<Value> {
    let record = |kind: &str, uuid: String, parent: Value, message: Value| {
        let mut record = json!({ "type": kind, "sessionId": session, "uuid": uuid, "parentUuid": parent,
            "timestamp": format!("2026-06-02T10:0{number}:00.000Z"), "cwd": "/w", "message": message });
        if let Some(from) = from {
            record["forkedFrom"] = json!({ "sessionId": from, "messageUuid": uuid });
        }
        record
    };
    let parent = if number == 1 { Value::Null } else { format!("a{}", number - 1).into() };
    let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": 100 * number,
        "cache_creation_input_tokens": 0, "output_tokens": number });
    vec![
        record("user", format!("q{number}"), parent, json!({ "role": "user", "content": "Tide?" })),
        record(
            "assistant",
            format!("a{number}"),
            format!("q{number}").into(),
            json!({ "id": format!("msg_{number}"), "role": "assistant", "model": "claude-opus-4-5",
                "content": [{ "type": "text", "text": "Low." }], "usage": usage }),
        ),
    ]
}

fn claude_session(session: &str, numbers: std::ops::RangeInclusive<u64>) -> Vec<Value> {
    numbers.flat_map(|number| claude(session, number, None)).collect()
}

#[test]
fn a_forked_session_of_claude_code_counts_its_own_answers() {
    let mut fork = claude("fork", 1, Some("first"));
    fork.extend(claude("fork", 2, Some("second")));
    fork.extend(claude("fork", 3, None));
    let copied = json!([["first", 110, 1], ["second", 210, 2]]);
    check(&lines(&fork), json!([1, 310, 3]), copied);
    // The rows of the copies say so, and hold no figures.
    let folder = folder(&[("one.jsonl", lines(&fork))]);
    let file = folder.path().join("one.jsonl");
    let rows = json_lines(&["requests", "--json", file.to_str().unwrap()]);
    assert_eq!(rows[0]["usage"], Value::Null);
    assert_eq!(rows[0]["copied"]["from"], "first");
    assert_eq!((&rows[2]["usage"]["input"], &rows[2]["copied"]), (&json!(310), &Value::Null));
    let table = out(&["requests", file.to_str().unwrap()]);
    assert_eq!(table.matches("copied; ").count(), 2, "{table}");
}

#[test]
fn a_session_of_qwen_code_that_goes_on_from_another_counts_its_own_answers() {
    let record = |session: &str, number: u64| {
        let at = |part: u64| format!("2026-06-02T10:0{number}:0{part}.000Z");
        let common = |uuid: String, part: u64| json!({ "uuid": uuid, "sessionId": session, "timestamp": at(part), "cwd": "/w" });
        let mut question = common(format!("q{number}"), 0);
        question["type"] = json!("user");
        question["message"] = json!({ "role": "user", "parts": [{ "text": "Tide?" }] });
        let mut answer = common(format!("a{number}"), 5);
        answer["type"] = json!("assistant");
        answer["model"] = json!("qwen3");
        answer["message"] = json!({ "role": "model", "parts": [{ "text": "Low." }] });
        answer["usageMetadata"] = json!({ "promptTokenCount": 100 * number,
            "candidatesTokenCount": number, "totalTokenCount": 101 * number });
        [question, answer]
    };
    let session = |name: &str, last: u64| {
        lines(&(1..=last).flat_map(|number| record(name, number)).collect::<Vec<_>>())
    };
    let folder = folder(&[("a.jsonl", session("first", 1)), ("b.jsonl", session("again", 2))]);
    let expected =
        [(json!([1, 100, 1]), json!([])), (json!([1, 200, 2]), json!([["first", 100, 1]]))];
    assert_eq!(counted(folder.path()), expected);
}

#[test]
fn an_answer_of_two_files_counts_in_the_one_that_ended_first_whatever_their_order() {
    for names in [["a.jsonl", "b.jsonl", "c.jsonl"], ["c.jsonl", "b.jsonl", "a.jsonl"]] {
        let folder = folder(&[
            (names[0], lines(&claude_session("first", 1..=2))),
            (names[1], lines(&claude_session("resumed", 1..=3))),
            (names[2], lines(&claude_session("again", 1..=4))),
        ]);
        let mut counts = counted(folder.path());
        let path = folder.path().to_str().unwrap();
        let residency = json_lines(&["stats", "--residency", "--json", path]);
        let mut inputs: Vec<&Value> =
            residency.iter().map(|of| &of["residency"]["total"]["input"]).collect();
        if names[0] != "a.jsonl" {
            counts.reverse();
            inputs.reverse();
        }
        assert_eq!(inputs, [&json!(320), &json!(310), &json!(410)]);
        let expected = [
            (json!([2, 320, 3]), json!([])),
            (json!([1, 310, 3]), json!([["first", 320, 3]])),
            (json!([1, 410, 4]), json!([["first", 320, 3], ["resumed", 310, 3]])),
        ];
        assert_eq!(counts, expected);
        // Alone, a file has nothing that it could be compared with.
        let alone = counted(&folder.path().join(names[1]));
        assert_eq!(alone, [(json!([3, 630, 6]), json!([]))]);
    }
}

/// The sessions of a folder as they are listed, each with its requests, its input and what it copied from,
/// and the notes.
fn listed(folder: &Path, cache: &Path, args: &[&str]) -> (Vec<Value>, String) {
    let path = folder.to_str().unwrap();
    let args: Vec<&str> =
        ["sessions", "--json"].iter().chain(args).chain([&path]).copied().collect();
    let mut command = support::afterimage(&args);
    let output = command.env("AFTERIMAGE_CACHE", cache).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let of = |line: &str| {
        let of: Value = serde_json::from_str(line).unwrap();
        assert_eq!(of["answers"], Value::Null);
        let copied = of["copied"].as_array().unwrap().iter().map(|of| of["from"].clone());
        let copied: Vec<Value> = copied.collect();
        json!([of["session"], of["requests"], of["usage"]["input"], copied])
    };
    (text.lines().map(of).collect(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_last_session_is_compared_with_those_beside_it() {
    let folder = folder(&[
        ("a.jsonl", lines(&claude_session("resumed", 1..=3))),
        ("b.jsonl", lines(&claude_session("first", 1..=2))),
        ("c.txt", "nothing".to_owned()),
    ]);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
    let file = fs::File::options().append(true).open(folder.path().join("a.jsonl")).unwrap();
    file.set_modified(later).unwrap();
    let cache = tempfile::tempdir().unwrap();
    for args in [&["--last", "--no-index"][..], &["--last"], &["--last"]] {
        let expected = vec![json!(["resumed", 1, 310, ["first"]])];
        assert_eq!(listed(folder.path(), cache.path(), args), (expected, String::new()));
    }
}

#[test]
fn an_index_names_the_source_of_copies_that_there_is_now() {
    let folder = folder(&[
        ("b.jsonl", lines(&claude_session("resumed", 1..=3))),
        ("c.jsonl", lines(&claude_session("again", 1..=4))),
    ]);
    let cache = tempfile::tempdir().unwrap();
    let again = || listed(folder.path(), cache.path(), &[]).0.remove(0);
    assert_eq!(again(), json!(["again", 1, 410, ["resumed"]]));
    fs::write(folder.path().join("a.jsonl"), lines(&claude_session("first", 1..=2))).unwrap();
    assert_eq!(again(), json!(["again", 1, 410, ["first", "resumed"]]));
}

#[test]
fn where_each_session_went_on_a_note_says_that_the_copy_is_not_known() {
    let went_on = [claude_session("first", 1..=2), claude("first", 9, None)].concat();
    let folder = folder(&[
        ("a.jsonl", lines(&went_on)),
        ("b.jsonl", lines(&claude_session("resumed", 1..=3))),
    ]);
    let path = folder.path().to_str().unwrap();
    let note = "2 answers stand in 2 sessions, and nothing tells which session made them: each \
                counts in the one that ended first";
    for command in ["sessions", "stats", "requests"] {
        let run = support::run(&[command, "--json", path]);
        assert!(run.err.contains(note), "{command}: {}", run.err);
    }
    // A session that another one holds whole is the first.
    fs::write(folder.path().join("a.jsonl"), lines(&claude_session("first", 1..=2))).unwrap();
    let run = support::run(&["stats", "--json", path]);
    assert_eq!(run.err, "");
}

#[test]
fn the_list_of_sessions_counts_an_answer_once_with_and_without_its_index() {
    let folder = folder(&[
        ("b.jsonl", lines(&claude_session("first", 1..=2))),
        ("a.jsonl", lines(&claude_session("resumed", 1..=3))),
    ]);
    let cache = tempfile::tempdir().unwrap();
    let listed = |args: &[&str]| listed(folder.path(), cache.path(), args).0;
    let expected = [json!(["resumed", 1, 310, ["first"]]), json!(["first", 2, 320, []])];
    assert_eq!(listed(&["--no-index"]), expected);
    assert_eq!(listed(&[]), expected);
    assert_eq!(listed(&[]), expected);
    // Without the first one the other counts all.
    fs::remove_file(folder.path().join("b.jsonl")).unwrap();
    assert_eq!(listed(&[]), [json!(["resumed", 3, 630, []])]);
}

#[test]
fn a_session_of_pi_that_has_a_parent_counts_what_is_not_older_than_itself() {
    let entry = |id: &str, time: &str, message: Value| {
        json!({ "type": "message", "id": id, "parentId": null,
            "timestamp": format!("2026-06-02T{time}Z"), "message": message })
    };
    let answer = |input: u64| {
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "Low." }], "model": "m",
            "usage": { "input": input, "output": 1, "cacheRead": 0, "cacheWrite": 0 } })
    };
    let asked = json!({ "role": "user", "content": "Tide?" });
    let head = |time: &str| {
        json!({ "type": "session", "version": 3, "id": "fork", "cwd": "/w", "timestamp": time,
            "parentSession": "/home/ada/.pi/sessions/2026-06-02T10-00-00-000Z_first.jsonl" })
    };
    let entries = [
        entry("1", "10:00:00.000", asked.clone()),
        entry("2", "10:00:01.000", answer(7)),
        entry("3", "12:00:01.000", asked),
        entry("4", "12:00:02.000", answer(9)),
    ];
    let text = lines(&[&[head("2026-06-02T12:00:00.000Z")], &entries[..]].concat());
    check(&text, json!([1, 9, 1]), json!([["first", 7, 1]]));
    // Where the header has no time, nothing tells.
    let text = lines(&[&[head("t")], &entries[..]].concat());
    check(&text, json!([2, 16, 2]), json!([]));
}

/// What `stats` says of an answer with this usage to a request at this address.
fn of_answer(url: &str, model: &str, answer: &str) -> Value {
    let key = if url.ends_with("/responses") { "input" } else { "messages" };
    let request = json!({ "model": model, key: [{ "role": "user", "content": "Tide?" }] });
    let har = json!({ "log": { "entries": [{
        "request": { "url": url, "postData": { "text": request.to_string() } },
        "response": { "status": 200, "content": { "text": answer } } }] } });
    let folder = folder(&[("one.har", har.to_string())]);
    let file = folder.path().join("one.har");
    support::json(&["stats", "--json", "--tokenizer", "chars4", file.to_str().unwrap()])
}

fn figures(stats: &Value) -> Value {
    let total = &stats["usage"]["total"];
    json!([total["input"], total["cacheRead"], total["output"], total["reasoning"]])
}

#[test]
fn null_in_a_stream_says_nothing_and_neither_does_a_zero_after_a_figure() {
    let stream = |start: &str, delta: &str| {
        let events = [
            format!(
                r#"{{"type":"message_start","message":{{"id":"m","role":"assistant","model":"x","content":[],"usage":{start}}}}}"#
            ),
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Low"}}"#
                .to_owned(),
            format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{delta}}}"#),
            r#"{"type":"message_stop"}"#.to_owned(),
        ];
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        of_answer("https://api.example/v1/messages", "x", &text)
    };
    for (start, delta, expected) in [
        (
            r#"{"input_tokens":0,"output_tokens":0}"#,
            r#"{"input_tokens":9,"output_tokens":2}"#,
            json!([9, null, 2, null]),
        ),
        (
            r#"{"input_tokens":9,"output_tokens":1}"#,
            r#"{"input_tokens":0,"output_tokens":2}"#,
            json!([9, null, 2, null]),
        ),
        (
            r#"{"input_tokens":9,"cache_read_input_tokens":30,"output_tokens":1}"#,
            r#"{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":2}"#,
            json!([39, 30, 2, null]),
        ),
        (
            r#"{"input_tokens":9,"output_tokens":1}"#,
            r#"{"output_tokens":8,"cache_read_input_tokens":30,"output_tokens_details":{"thinking_tokens":5}}"#,
            json!([39, 30, 8, 5]),
        ),
        // Nobody filled the place of the input.
        (
            r#"{"input_tokens":0,"output_tokens":0}"#,
            r#"{"output_tokens":2}"#,
            json!([null, null, 2, null]),
        ),
        (
            r#"{"input_tokens":9,"output_tokens":1}"#,
            r#"{"input_tokens":-1,"output_tokens":2}"#,
            json!([null, null, 2, null]),
        ),
    ] {
        assert_eq!(figures(&stream(start, delta)), expected, "{start} {delta}");
    }
    // What is missing is a dash.
    let folder = folder(&[(
        "one.jsonl",
        lines(&[
            json!({ "type": "session", "id": "s", "timestamp": "t", "cwd": "/" }),
            json!({ "type": "message", "message": { "role": "user", "content": "go" } }),
            json!({ "type": "message", "message": { "role": "assistant", "content": "gone", "usage": { "output": 5 } } }),
        ]),
    )]);
    let page = out(&["stats", folder.path().join("one.jsonl").to_str().unwrap()]);
    assert!(page.contains("input                    –"), "{page}");
    assert!(page.contains("1 without input or output"), "{page}");
}

#[test]
fn zeros_beside_an_answer_are_no_figures() {
    let chat = |message: &str, usage: &str| {
        let answer = format!(
            r#"{{"choices":[{{"message":{{"role":"assistant",{message}}}}}],"usage":{usage}}}"#
        );
        let stats = of_answer("https://api.example/v1/chat/completions", "x", &answer);
        let total = &stats["usage"]["total"];
        json!([total["withoutUsage"], total["input"], total["output"]])
    };
    let (zeros, text) = (r#"{"prompt_tokens":0,"completion_tokens":0}"#, r#""content":"Low.""#);
    let call =
        r#""content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]"#;
    for message in [text, call, r#""content":"","reasoning_content":"Hm.""#] {
        assert_eq!(chat(message, zeros), json!([1, null, null]), "{message}");
    }
    let cached =
        r#"{"prompt_tokens":0,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}"#;
    assert_eq!(chat(text, cached), json!([1, null, null]));
    // One of them may be stated.
    assert_eq!(chat(text, r#"{"prompt_tokens":9,"completion_tokens":0}"#), json!([0, 9, null]));
    assert_eq!(chat(text, r#"{"prompt_tokens":0,"completion_tokens":2}"#), json!([0, null, 2]));
    // Where nothing was said, nothing may have been asked.
    assert_eq!(chat(r#""content":"""#, zeros), json!([0, 0, 0]));
    let messages = |content: &str| {
        let answer = format!(
            r#"{{"content":[{content}],"usage":{{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}}"#
        );
        figures(&of_answer("https://api.example/v1/messages", "x", &answer))
    };
    assert_eq!(messages(r#"{"type":"text","text":"Low."}"#), json!([null, null, null, null]));
    assert_eq!(messages(""), json!([0, 0, 0, null]));
    let item = r#"{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Low."}]}],"usage":{"input_tokens":0,"output_tokens":0}}"#;
    let responses = of_answer("https://api.example/v1/responses", "x", item);
    assert_eq!(figures(&responses), json!([null, null, null, null]));
    // In transcripts; a client that answers itself used nothing.
    let said = |more: Value| {
        let mut message = json!({ "role": "assistant", "model": "m", "content": [{ "type": "text", "text": "Low." }],
            "usage": { "input": 0, "output": 0, "cacheRead": 0, "cost": { "total": 0 } } });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let records = [
            json!({ "type": "session", "id": "s", "timestamp": "t", "cwd": "/" }),
            json!({ "type": "message", "message": { "role": "user", "content": "go" } }),
            json!({ "type": "message", "message": message }),
        ];
        let folder = folder(&[("one.jsonl", lines(&records))]);
        let file = folder.path().join("one.jsonl");
        figures(&support::json(&["stats", "--json", file.to_str().unwrap()]))
    };
    assert_eq!(said(json!({})), json!([null, null, null, null]));
    assert_eq!(said(json!({ "model": "<synthetic>" })), json!([0, 0, 0, null]));
    assert_eq!(said(json!({ "stopReason": "error" })), json!([null, null, null, null]));
}

#[test]
fn usage_is_read_wherever_a_provider_states_it() {
    let chat = |usage: &str| {
        let answer = format!(
            r#"{{"id":"c","choices":[{{"index":0,"message":{{"role":"assistant","content":"Low."}}}}],{usage}}}"#
        );
        of_answer("https://api.example/v1/chat/completions", "x", &answer)
    };
    for (usage, expected) in [
        // Reasoning stands beside the output where the total says so, and only there.
        (
            r#""usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":127,"completion_tokens_details":{"reasoning_tokens":20}}"#,
            json!([100, null, 27, 20]),
        ),
        (
            r#""usage":{"prompt_tokens":100,"completion_tokens":27,"total_tokens":127,"completion_tokens_details":{"reasoning_tokens":20}}"#,
            json!([100, null, 27, 20]),
        ),
        (
            r#""usage":{"prompt_tokens":100,"completion_tokens":27,"completion_tokens_details":{"reasoning_tokens":20}}"#,
            json!([100, null, 27, 20]),
        ),
        (
            r#""usage":{"input_tokens":100,"output_tokens":7,"total_tokens":127,"output_tokens_details":{"reasoning_tokens":20}}"#,
            json!([100, null, 27, 20]),
        ),
        (
            r#""usage":{"promptTokenCount":100,"candidatesTokenCount":7,"thoughtsTokenCount":20,"totalTokenCount":127}"#,
            json!([100, null, 27, 20]),
        ),
        (
            r#""usage":{"promptTokenCount":100,"candidatesTokenCount":27,"thoughtsTokenCount":20,"totalTokenCount":127,"cachedContentTokenCount":64}"#,
            json!([100, 64, 27, 20]),
        ),
        (
            r#""usage":{"inputTokens":10,"outputTokens":7,"cacheReadInputTokens":90,"cacheWriteInputTokens":0}"#,
            json!([100, 90, 7, null]),
        ),
        (
            r#""x_groq":{"usage":{"prompt_tokens":100,"completion_tokens":7}}"#,
            json!([100, null, 7, null]),
        ),
    ] {
        assert_eq!(figures(&chat(usage)), expected, "{usage}");
    }
    let ticks =
        chat(r#""usage":{"prompt_tokens":1,"completion_tokens":1,"cost_in_usd_ticks":232856000}"#);
    assert_eq!(ticks["usage"]["total"]["cost"][0]["amount"], "0.0232856");
    // In a stream: with a choice, in each event, or in the first one alone.
    let stream = |events: &[&str]| {
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        figures(&of_answer(
            "https://api.example/v1/chat/completions",
            "x",
            &(text + "data: [DONE]\n\n"),
        ))
    };
    let said = r#"{"id":"c","choices":[{"index":0,"delta":{"content":"Low"}}]}"#;
    let usage = r#""usage":{"prompt_tokens":100,"completion_tokens":7}"#;
    let with_choice =
        format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop",{usage}}}]}}"#);
    let first = format!(r#"{{"id":"c","choices":[],{usage}}}"#);
    let zeros = r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#;
    assert_eq!(stream(&[said, &with_choice]), json!([100, null, 7, null]));
    assert_eq!(stream(&[&first, said, zeros]), json!([100, null, 7, null]));
}

#[test]
fn a_mode_has_its_price_or_none() {
    let price = |model: &str, more: &str| {
        let answer = format!(
            r#"{{"id":"m","role":"assistant","content":[{{"type":"text","text":"Low."}}],"usage":{{"input_tokens":1000000,"cache_read_input_tokens":0,"output_tokens":100000{more}}}}}"#
        );
        let stats = of_answer("https://api.example/v1/messages", model, &answer);
        let price = &stats["price"];
        json!([price["total"]["amount"], price["partial"], price["unpricedTerms"]])
    };
    assert_eq!(price("claude-opus-4-8", ""), json!(["7.5", false, {}]));
    let fast = r#","speed":"fast","service_tier":"standard""#;
    assert_eq!(price("claude-opus-4-8", fast), json!(["15", false, {}]));
    assert_eq!(price("claude-opus-4-8", r#","inference_geo":"us""#), json!(["8.25", false, {}]));
    assert_eq!(price("claude-opus-4-8", r#","inference_geo":"global""#), json!(["7.5", false, {}]));
    let both = r#","speed":"fast","inference_geo":"us""#;
    assert_eq!(price("claude-opus-4-8", both), json!(["16.5", false, {}]));
    assert_eq!(price("claude-opus-4-8", r#","service_tier":"batch""#), json!(["3.75", false, {}]));
    let search = r#","server_tool_use":{"web_search_requests":1000}"#;
    assert_eq!(price("claude-opus-4-8", search), json!(["17.5", false, {}]));
    assert_eq!(price("claude-sonnet-4-5", fast), json!([null, true, { "speed=fast": 1 }]));
    // What the provider's own tools did has no price, unless it is known to cost nothing.
    let code =
        r#","server_tool_use":{"code_execution_requests":5,"web_fetch_requests":3,"other":0}"#;
    assert_eq!(
        price("claude-opus-4-8", code),
        json!([null, true, { "code_execution_requests": 1 }])
    );
    // The tier stands beside the usage.
    let chat = |more: &str| {
        let answer = format!(
            r#"{{"id":"c","choices":[{{"message":{{"role":"assistant","content":"Low."}}}}],"usage":{{"prompt_tokens":100,"completion_tokens":7}}{more}}}"#
        );
        let stats = of_answer("https://api.example/v1/chat/completions", "gpt-5.5", &answer);
        (stats["price"]["total"].is_null(), stats["price"]["unpricedTerms"].clone())
    };
    assert_eq!(chat(r#","service_tier":"default""#), (false, json!({})));
    assert_eq!(
        chat(r#","service_tier":"priority""#),
        (true, json!({ "service_tier=priority": 1 }))
    );
}

#[test]
fn the_sums_at_the_end_of_a_session_hold_what_was_told_before() {
    let event = |kind: &str, data: Value| json!({ "type": kind, "data": data, "id": "i" });
    let call = |id: &str, input: u64| {
        let usage = json!({ "model": "m", "inputTokens": input, "outputTokens": 5,
            "cacheReadTokens": 10, "apiCallId": id });
        [
            event("session.usage_record", json!({ "usage": usage })),
            event("assistant.message", json!({ "content": "Low.", "model": "m", "apiCallId": id })),
        ]
    };
    let end = |input: u64, output: u64| {
        let usage = json!({ "inputTokens": input, "outputTokens": output, "cacheReadTokens": 0 });
        event(
            "session.shutdown",
            json!({ "sessionStartTime": 7, "modelMetrics": { "m": { "usage": usage } } }),
        )
    };
    let mut all = vec![event("session.start", json!({ "sessionId": "s" }))];
    all.push(event("user.message", json!({ "content": "Tide?" })));
    all.extend(call("a", 100));
    all.push(end(100, 5));
    all.push(event("session.resume", json!({})));
    all.push(event("user.message", json!({ "content": "And now?" })));
    all.extend(call("b", 200));
    all.push(end(300, 10));
    check(&lines(&all), json!([2, 300, 10]), json!([]));
    // What no message shows is there all the same.
    all.truncate(3);
    check(&lines(&all), json!([1, 100, 5]), json!([]));
}

#[test]
fn a_call_that_two_spans_tell_of_counts_once() {
    let span = |id: &str, parent: &str, operation: &str, said: &str, usage: [u64; 2]| {
        let mut attributes =
            vec![json!({ "key": "gen_ai.operation.name", "value": { "stringValue": operation } })];
        if !said.is_empty() {
            let text = json!([{ "role": "user", "parts": [{ "type": "text", "content": said }] }]);
            attributes.push(json!({ "key": "gen_ai.input.messages", "value": { "stringValue": text.to_string() } }));
        }
        for (key, figure) in
            ["input_tokens", "output_tokens"].iter().zip(usage).filter(|(_, of)| *of > 0)
        {
            attributes.push(
                json!({ "key": format!("gen_ai.usage.{key}"), "value": { "intValue": figure } }),
            );
        }
        json!({ "traceId": "0af7", "spanId": id, "parentSpanId": parent, "name": operation,
            "startTimeUnixNano": "1777629600000000000", "endTimeUnixNano": "1777629603000000000",
            "attributes": attributes })
    };
    let check = |spans: &[Value], expected: Value| {
        let document = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
        let folder = folder(&[("one.json", document.to_string())]);
        assert_eq!(counted(&folder.path().join("one.json"))[0].0, expected, "{document}");
    };
    let plain = json!({ "traceId": "0af7", "spanId": "c5", "parentSpanId": "a1", "name": "POST" });
    let outer = span("a1", "", "chat", "Tide?", [100, 10]);
    check(&[outer.clone(), span("b1", "a1", "chat", "Tide?", [100, 10])], json!([1, 100, 10]));
    // Another name, other words, a span of no model between them.
    let root = span("a1", "", "generate_content", "Tide, please?", [100, 10]);
    check(
        &[root.clone(), plain, span("b1", "c5", "chat", "Tide?", [100, 10])],
        json!([1, 100, 10]),
    );
    // One has the usage, the other the messages.
    check(
        &[span("a1", "", "chat", "", [100, 10]), span("b1", "a1", "chat", "Tide?", [0, 0])],
        json!([1, 100, 10]),
    );
    check(
        &[span("a1", "", "chat", "Tide?", [0, 0]), span("b1", "a1", "chat", "", [100, 10])],
        json!([1, 100, 10]),
    );
    // The sum of two calls.
    let both = [
        root,
        span("b1", "a1", "chat", "Tide?", [40, 4]),
        span("b2", "a1", "chat", "More?", [60, 6]),
    ];
    check(&both, json!([2, 100, 10]));
    // A tool that asks a model is another call.
    let tool = span("c5", "a1", "execute_tool", "", [0, 0]);
    check(&[outer, tool, span("b1", "c5", "chat", "Tide?", [100, 10])], json!([2, 200, 20]));
}

#[test]
fn the_cases_from_the_field_have_their_right_sums() {
    let Some(forks) = data::case("01-codex-fork/sessions") else { return };
    let first = "01970000-0000-7000-8000-00000000000a";
    let expected =
        [(json!([2, 2200, 250]), json!([])), (json!([1, 1500, 90]), json!([[first, 2200, 250]]))];
    assert_eq!(counted(&forks), expected);
    let of = |path: &str| counted(&data::case(path).unwrap())[0].0.clone();
    let claude =
        "02-claude-fork-copies/projects/-work-harbour/22222222-2222-4222-8222-222222222222.jsonl";
    assert_eq!(of(claude), json!([1, 10510, 80]));
    for (path, expected) in [
        ("10-xai-reasoning/a-more-reasoning.har", json!([1, 10120, 4308])),
        ("11-anthropic-stream-usage/c-delta-null.har", json!([1, 55, 12])),
        ("11-anthropic-stream-usage/e-zero-claude.har", json!([1, 15, 12])),
        ("17-otlp-parent-and-child/a-invoke-agent-sum.json", json!([2, 300, 30])),
        ("17-otlp-parent-and-child/c-two-instrumentations-no-id.json", json!([1, 100, 10])),
        ("20-usage-in-odd-places/a-moonshot-choice-usage.har", json!([1, 90, 7])),
        ("client-copilot-1.0.102/events.jsonl", json!([6, 8900, 149])),
    ] {
        assert_eq!(of(path), expected, "{path}");
    }
    let price = |path: &str| {
        let path = data::case(path).unwrap();
        let stats = support::json(&["stats", "--json", path.to_str().unwrap()]);
        stats["price"]["total"]["amount"].clone()
    };
    assert_eq!(price("12-fast-mode/fast.jsonl"), "15");
    assert_eq!(price("12-fast-mode/websearch.jsonl"), "10.0045");
}
