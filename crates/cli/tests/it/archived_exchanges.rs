//! An archive of recorded traffic holds its requests: what is asked about them is answered as of the
//! file, and `stats` counts them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};
use support::run;

fn messages(count: usize) -> Value {
    let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
    (0..count).map(|at| json!({ "role": role(at), "content": format!("Word {at}, é.") })).collect()
}

/// The request before the answer with this number, as it went over the wire.
fn body(answer: usize) -> String {
    format!(
        "{{ \"model\":\"m\", \"max_tokens\": 9, \"system\": \"Be brief.\",\n \"tools\": [{{\"name\": \"look\"}}],\"messages\":{} }}",
        messages(2 * answer + 1)
    )
}

fn reply(answer: usize) -> Value {
    let usage = json!({ "input_tokens": 10 * answer, "output_tokens": 3 });
    let text = format!("Word {}, é.", 2 * answer + 1);
    json!({ "role": "assistant", "content": [{ "type": "text", "text": text }], "usage": usage })
}

const URL: &str = "https://x.example/v1/messages";

/// A HAR archive of 20 requests of one conversation, one that failed, and one of another.
fn har() -> Value {
    let entry = |body: String, status: u64, reply: &Value| {
        json!({ "request": { "url": URL, "postData": { "text": body } }, "time": 12.5,
            "startedDateTime": "2026-11-22T10:00:00Z",
            "response": { "status": status, "content": { "text": reply.to_string() } } })
    };
    let mut entries: Vec<Value> = (0..20).map(|at| entry(body(at), 200, &reply(at))).collect();
    entries.insert(3, entry(body(3), 529, &json!({ "error": "overloaded" })));
    entries.push(entry(
        json!({ "model": "m", "messages": [{ "role": "user", "content": "Else?" }] }).to_string(),
        200,
        &reply(0),
    ));
    json!({ "log": { "entries": entries } })
}

/// A list of interactions, whose requests are JSON or bytes.
fn interactions() -> Value {
    let interaction = |at: usize| {
        let text = body(at);
        let request = if at == 1 { serde_json::from_str(&text).unwrap() } else { json!(text) };
        json!({ "uri": URL, "status": 200, "request": request, "response": reply(at) })
    };
    json!({ "interactions": (0..3).map(interaction).collect::<Value>() })
}

/// A cassette in YAML, whose bodies are text.
fn cassette() -> String {
    let entry = |at: usize| {
        let (sent, reply) = (body(at).replace('\n', "\n        "), reply(at));
        format!(
            "- request:\n    body: |-\n        {sent}\n    method: POST\n    uri: {URL}\n  response:\n    body:\n      string: |-\n        {reply}\n    status: {{code: 200, message: OK}}\n"
        )
    };
    format!("interactions:\n{}{}version: 1\n", entry(0), entry(1))
}

/// A trace bundle of Codex, whose second inference failed.
fn bundle(folder: &Path) {
    fs::create_dir_all(folder.join("payloads")).unwrap();
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    let manifest = json!({ "schema_version": 2, "raw_event_log": "trace.jsonl" });
    write("manifest.json", manifest.to_string());
    let event = |time: u64, kind: &str, id: &str, rest: Value| {
        let mut payload = json!({ "type": kind, "inference_call_id": id });
        payload.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let event = json!({ "schema_version": 2, "wall_time_unix_ms": time, "payload": payload });
        format!("{event}\n")
    };
    let path = |name: &str| json!({ "path": format!("payloads/{name}.json") });
    let events = [
        event(1, "inference_started", "a", json!({ "request_payload": path("1") })),
        event(2, "inference_completed", "a", json!({ "response_payload": path("2") })),
        event(3, "inference_started", "b", json!({ "request_payload": path("3") })),
        event(4, "inference_failed", "b", json!({ "error": "stream closed" })),
    ];
    write("trace.jsonl", events.concat());
    let user = |text: &str| json!({ "role": "user", "content": text });
    let said = json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Yo." }] });
    let request =
        |input: Value| json!({ "model": "m", "tools": [{ "name": "f" }], "input": input });
    write("payloads/1.json", format!("{:#}", request(json!([user("Hi, é.")]))));
    write("payloads/2.json", json!({ "response_id": "r", "output_items": [said] }).to_string());
    let again = request(json!([user("Hi, é."), said, user("And the tide?")]));
    write("payloads/3.json", again.to_string());
}

/// Own samples, and every recording of traffic that is there.
fn samples(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for (name, document) in [
        ("traffic.har", har().to_string()),
        ("list.json", interactions().to_string()),
        ("cassette.yaml", cassette()),
        ("request.json", body(2)),
        (
            "requests.jsonl",
            format!("{}\n{}\n", body(1).replace('\n', ""), body(2).replace('\n', "")),
        ),
    ] {
        let path = folder.join(name);
        fs::write(&path, document).unwrap();
        files.push(path);
    }
    bundle(&folder.join("bundle"));
    let raw = folder.join("raw");
    fs::create_dir(&raw).unwrap();
    fs::write(raw.join("a.request.json"), body(0)).unwrap();
    fs::write(raw.join("a.response.json"), reply(0).to_string()).unwrap();
    files.extend([folder.join("bundle"), raw]);
    let is_wire = |path: &Path| path.to_string_lossy().contains("/wire-");
    files.extend(support::recordings().into_iter().filter(|path| is_wire(path)));
    files.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

fn archived(folder: &Path, name: &str, files: &[&str]) -> String {
    let archive = folder.join(name).to_str().unwrap().to_owned();
    let run = run(&[&["archive", "-o", &archive][..], files].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
    archive
}

#[track_caller]
fn same(question: &[&str], file: &str, archive: &str) -> String {
    let place = |from: &str| -> Vec<String> {
        question.iter().map(|word| word.replace("FILE", from)).collect()
    };
    let ask = |from: &str| {
        let words = place(from);
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (expected, found) = (ask(file), ask(archive));
    assert_eq!(found.code, expected.code, "{question:?} of {file}: {}", found.err);
    assert_eq!(found.out.replace(archive, file), expected.out, "{question:?} of {file}");
    expected.out
}

/// The lines of standard output as JSON; notes may stand beside them.
fn json_lines(args: &[&str]) -> Vec<Value> {
    run(args).out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("expected a number, found {value}"))
}

#[test]
fn an_archive_of_traffic_answers_about_the_requests_that_were_sent() {
    let scratch = tempfile::tempdir().unwrap();
    for (at, file) in samples(scratch.path()).iter().enumerate() {
        let archive = archived(scratch.path(), &format!("{at}.archive"), &[file]);
        let requests = same(&["requests", "--json", "FILE"], file, &archive);
        assert!(!requests.is_empty() && !requests.contains("reconstructed"), "{file}");
        same(&["requests", "FILE"], file, &archive);
        same(&["stats", "FILE"], file, &archive);
        let last = requests.lines().count();
        for request in BTreeSet::from([1, last]).into_iter().map(|number| number.to_string()) {
            let (one, request) = (format!("FILE@{request}"), request.as_str());
            same(&["render", "--request", request, "FILE"], file, &archive);
            same(&["render", "--response", request, "--json", "FILE"], file, &archive);
            same(&["trace", "--json", "--request", request, "--text", "e", "FILE"], file, &archive);
            same(&["diff", "--json", "FILE@1", &one], file, &archive);
        }
    }
}

#[test]
fn an_archive_of_archives_and_of_one_session_keeps_its_requests() {
    let scratch = tempfile::tempdir().unwrap();
    let files = samples(scratch.path());
    let (har, list) = (files[0].as_str(), files[1].as_str());
    let first = archived(scratch.path(), "first", &[har]);
    let again = archived(scratch.path(), "again", &[&first, list]);
    let ask = |files: &[&str]| run(&[&["requests", "--json"][..], files].concat()).out;
    assert!(ask(&[&again]) == ask(&[har, list]));
    let one = archived(scratch.path(), "one", &["--session", "2", har]);
    let lines = requests_of(&one);
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["session"], &lines[0]["provenance"]), (&json!("2"), &json!("sent")));
}

/// The lines of requests; the sums of their usage follow them.
fn requests_of(file: &str) -> Vec<Value> {
    let mut lines = json_lines(&["requests", "--json", file]);
    lines.retain(|line| line.get("request").is_some());
    lines
}

#[test]
fn stats_of_traffic_are_those_of_its_requests() {
    let scratch = tempfile::tempdir().unwrap();
    for (at, file) in samples(scratch.path()).iter().enumerate() {
        let archive = archived(scratch.path(), &format!("{at}.archive"), &[file]);
        for file in [file, &archive] {
            let requests = requests_of(file);
            let tokens = |request: &Value| -> u64 {
                ["tools", "system", "messages"]
                    .map(|of| number(&request["tokens"][of]))
                    .iter()
                    .sum()
            };
            let last: BTreeMap<&str, &Value> = requests
                .iter()
                .map(|request| (request["session"].as_str().unwrap(), request))
                .collect();
            let stats = &json_lines(&["stats", "--json", file])[0];
            assert_eq!(number(&stats["requests"]["count"]), requests.len() as u64, "{file}");
            let all: u64 = requests.iter().map(tokens).sum();
            assert_eq!(number(&stats["requests"]["tokens"]), all, "{file}");
            let mut context = [0; 4];
            for request in last.values() {
                let id = request["request"].to_string();
                let one = &json_lines(&["stats", "--json", "--request", &id, file])[0]["context"];
                assert_eq!(number(&one["tokens"]), tokens(request), "{file} request {id}");
                for (sum, of) in context.iter_mut().zip(["frames", "messages", "bytes", "tokens"]) {
                    *sum += number(&one[of]);
                }
            }
            let found =
                ["frames", "messages", "bytes", "tokens"].map(|of| number(&stats["context"][of]));
            assert_eq!(found, context, "{file}");
            let is_sent = requests.iter().all(|request| request["provenance"] == "sent");
            let provenance = if is_sent { "sent" } else { "logged" };
            assert_eq!((&stats["provenance"], &stats["lacks"]), (&json!(provenance), &json!([])));
            let page = run(&["stats", file]).out;
            assert!(!page.contains("from a transcript"), "{page}");
        }
    }
}

#[test]
fn an_archive_without_exchanges_is_read_as_before() {
    let scratch = tempfile::tempdir().unwrap();
    let file = "crates/cli/tests/data/sessions.jsonl";
    let archive = archived(scratch.path(), "made", &[file]);
    assert!(!Path::new(&archive).join("0001/exchanges.rec").exists());
    let list = fs::read_to_string(Path::new(&archive).join("archive.json")).unwrap();
    assert!(!list.contains("exchanges"), "{list}");
    let lines = requests_of(&archive);
    assert!(lines.iter().all(|line| line["provenance"] == "reconstructed") && !lines.is_empty());
}

#[test]
fn exchanges_that_are_missing_or_damaged_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let file = samples(scratch.path()).swap_remove(0);
    let archive = archived(scratch.path(), "made", &[&file]);
    let path = Path::new(&archive).join("0001/exchanges.rec");
    let whole = fs::read(&path).unwrap();
    let refused = || {
        let run = run(&["requests", &archive]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{}", run.err);
        assert!(run.err.contains(path.to_str().unwrap()), "{}", run.err);
        run.err
    };
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(refused().contains("record"));
    fs::remove_file(&path).unwrap();
    refused();
    // What is not asked about requests is still answered.
    assert_eq!(run(&["render", &archive]).code, Some(0));
}
