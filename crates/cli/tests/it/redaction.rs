//! `--redact`: no secret is in what a command prints or writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use std::{fs, path::Path};

use afterimage::record::{End, RecordingWriter, RequestBody, ResponseHead, Start};
use afterimage_testkit::secrets::{planted, text};
use serde_json::{Value, json};

use crate::support::run;

const KEY: &str = "sk-ant-api03-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sA";
const PASSWORD: &str = "calm-tide-77";
const NESTED: &str = "gale-warning-31";
/// A model and a session that are called by a secret.
const MODEL: &str = "/home/adalind/models/qwen.gguf";
const SESSION: &str = "ada@harbour.example";
const SECRETS: [&str; 5] = [KEY, PASSWORD, NESTED, "ada@harbour.example", "/home/adalind"];

/// A session of Claude Code that holds each secret: in words, in arguments, in a result, and in what
/// is kept of its records.
fn session(folder: &Path) -> String {
    let user = json!({"type": "user", "sessionId": SESSION, "uuid": "u1", "cwd": "/home/adalind/tides",
        "message": {"role": "user", "content": format!("My key is {KEY}, the password {PASSWORD}. Mail ada@harbour.example.")}});
    // A member that holds a secret may be called by one.
    let arguments = json!({"command": format!("PGPASSWORD={PASSWORD} psql"), "password": PASSWORD,
        "/home/adalind/tides": {"ada@harbour.example": {KEY: {"password": NESTED}}}});
    let agent = json!({"type": "assistant", "sessionId": SESSION, "uuid": "a1",
        "message": {"id": "m1", "role": "assistant", "model": MODEL, "content": [
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": arguments}],
            "usage": {"input_tokens": 10, "output_tokens": 3}}});
    let result = json!({"type": "user", "sessionId": SESSION, "uuid": "u2",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
            "content": format!("/home/adalind/tides: {KEY}")}]}});
    let path = folder.join("session.jsonl");
    fs::write(&path, format!("{user}\n{agent}\n{result}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Standard output of a run that must succeed.
fn out(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.err);
    run.out
}

fn assert_without_secrets(text: &str, place: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{place}: {secret} in {text}");
    }
}

#[test]
fn no_secret_is_in_what_is_printed() {
    let scratch = tempfile::tempdir().unwrap();
    let session = session(scratch.path());
    for command in [
        vec!["render"],
        vec!["render", "--json"],
        vec!["frames", "--json"],
        vec!["frames"],
        vec!["render", "--as", "messages"],
        vec!["render", "--as", "snapshots"],
        vec!["export", "--otlp"],
        vec!["stats", "--json"],
        vec!["trace", "--text", "My key"],
    ] {
        let mut args = command.clone();
        args.extend(["--redact", &session]);
        let printed = out(&args);
        assert_without_secrets(&printed, &format!("{command:?}"));
        // Without it the secrets are there, but for commands that print no text.
        let plain = out(&args.iter().copied().filter(|arg| *arg != "--redact").collect::<Vec<_>>());
        if matches!(command[0], "render") {
            assert!(SECRETS.iter().all(|secret| plain.contains(secret)), "{command:?}: {plain}");
            assert!(printed.contains("[redacted:anthropic-key:"), "{command:?}: {printed}");
        }
    }
    let said = run(&["render", "--redact", &session]);
    let said = said.err;
    assert_without_secrets(&said, "what is said of them");
    assert!(said.contains("redacted 5 secrets in"), "{said}");
    assert!(said.contains("1 anthropic-key"), "{said}");
    assert_eq!(said.matches(", first in ").count(), 5, "{said}");
}

/// Traffic that holds each secret, in a request and in an answer.
fn traffic(folder: &Path) -> String {
    let request = json!({"model": MODEL, "max_tokens": 9, "messages": [
        {"role": "user", "content": format!("In /home/adalind, mail ada@harbour.example: {KEY}.")}],
        "metadata": {"password": NESTED}});
    let response = json!({"id": "m1", "role": "assistant", "content": [
        {"type": "text", "text": format!("{KEY} and PGPASSWORD={PASSWORD} are /home/adalind's.")}]});
    let traffic = json!({"interactions": [{"uri": "https://api.example/v1/messages", "status": 200,
        "request": request.to_string(), "response": response}]});
    let path = folder.join("traffic.json");
    fs::write(&path, traffic.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn bytes_under(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(bytes_under(&path));
        } else {
            all.extend(fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn no_secret_is_in_an_archive_and_one_of_an_archive_is_taken_out() {
    let scratch = tempfile::tempdir().unwrap();
    let session = session(scratch.path());
    let traffic = traffic(scratch.path());
    // What stands in an archive is packed: it is read back.
    let commands: [&[&str]; 4] =
        [&["render"], &["render", "--json"], &["frames", "--json"], &["requests", "--json"]];
    let of_traffic: [&[&str]; 2] = [&["render", "--request", "1"], &["render", "--response", "1"]];
    for (name, source, of_source) in
        [("session", &session, &[][..]), ("traffic", &traffic, of_traffic.as_slice())]
    {
        let archive = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
        let (redacted, whole) =
            (archive(&format!("{name}-redacted")), archive(&format!("{name}-whole")));
        out(&["archive", "--redact", "-o", &redacted, source]);
        out(&["archive", "-o", &whole, source]);
        let mut plain = String::new();
        for command in commands.iter().chain(of_source) {
            let of = |archive: &str| out(&[*command, &[archive]].concat());
            assert_without_secrets(&of(&redacted), &format!("{command:?} of {name}"));
            plain.push_str(&of(&whole));
        }
        assert!(SECRETS.iter().all(|secret| plain.contains(secret)), "{name}");
        let written = bytes_under(Path::new(&redacted));
        for secret in SECRETS {
            let is_there = written.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
            assert!(!is_there, "{secret}");
        }
        assert!(out(&["render", &redacted]).contains("[redacted:anthropic-key:"));
    }
    // One that was made without it keeps them, and gives them out redacted.
    let whole = scratch.path().join("whole");
    let whole = whole.to_str().unwrap();
    out(&["archive", "-o", whole, &session]);
    assert!(out(&["render", whole]).contains(KEY));
    assert_without_secrets(&out(&["render", "--redact", whole]), "an archive");
}

#[test]
fn two_hundred_planted_secrets_are_in_no_archive_export_or_print() {
    let scratch = tempfile::tempdir().unwrap();
    let planted = planted(200);
    let lines = planted.iter().enumerate().map(|(at, one)| {
        let content = match at % 2 {
            0 => json!(text(one)),
            _ => json!([{"type": "tool_result", "tool_use_id": format!("t{at}"), "content": text(one)}]),
        };
        json!({"type": "user", "sessionId": "s", "uuid": format!("u{at}"),
            "message": {"role": "user", "content": content}})
    });
    let path = scratch.path().join("planted.jsonl");
    fs::write(&path, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let session = path.to_str().unwrap();
    let archive = scratch.path().join("archive").to_str().unwrap().to_owned();
    out(&["archive", "--redact", "-o", &archive, session]);
    let mut texts = vec![String::from_utf8_lossy(&bytes_under(Path::new(&archive))).into_owned()];
    for command in [
        &["render"][..],
        &["render", "--as", "messages"],
        &["frames", "--json"],
        &["export", "--otlp"],
    ] {
        texts.push(out(&[command, &[&archive]].concat()));
        texts.push(out(&[command, &["--redact", session]].concat()));
    }
    for (secret, around) in &planted {
        let escaped = Value::from(secret.as_str()).to_string();
        for text in &texts {
            let is_in = text.contains(secret.as_str()) || text.contains(escaped.trim_matches('"'));
            assert!(!is_in, "{secret} of {around:?}");
        }
    }
}

#[test]
fn a_report_that_cannot_be_written_is_told_also_where_a_file_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let session = session(scratch.path());
    let report = scratch.path().join("gone/report.json");
    let report = report.to_str().unwrap();
    let refused = scratch.path().join("refused.jsonl");
    fs::write(&refused, "no transcript").unwrap();
    let refused = refused.to_str().unwrap();
    for files in [&[session.as_str()][..], &[&session, refused]] {
        let told = run(&[&["stats", "--redact-report", report][..], files].concat());
        assert_eq!(told.code, Some(2), "{}", told.err);
        assert!(told.err.contains("gone/report.json"), "{}", told.err);
        assert_eq!(told.err.contains("refused.jsonl"), files.len() > 1, "{}", told.err);
    }
}

#[test]
fn rules_of_ones_own_are_taken_too_and_wrong_ones_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let session = session(scratch.path());
    let rules = scratch.path().join("rules.toml");
    fs::write(&rules, "[[rules]]\nid = \"place\"\nregex = \"tides\"\n").unwrap();
    let printed = out(&["render", "--redact-rules", rules.to_str().unwrap(), &session]);
    assert!(printed.contains("[redacted:place:"), "{printed}");
    assert_without_secrets(&printed, "own rules");
    fs::write(&rules, "[[rules]]\nid = \"place\"\nregex = \"(\"\n").unwrap();
    let failed = run(&["render", "--redact-rules", rules.to_str().unwrap(), &session]);
    let said = failed.err;
    assert!(failed.code != Some(0) && said.contains("rule \"place\""), "{said}");
}

#[test]
fn no_name_of_a_model_or_a_session_holds_a_secret() {
    let scratch = tempfile::tempdir().unwrap();
    let (session, traffic) = (session(scratch.path()), traffic(scratch.path()));
    let mut plain = String::new();
    for command in [
        &["export", "--otlp"][..],
        &["export", "--otlp", "--lines"],
        &["requests"],
        &["requests", "--json"],
        &["stats"],
        &["stats", "--json"],
        &["guard"],
        &["guard", "--json"],
        &["frames"],
        &["frames", "--json"],
        &["compress", "--budget", "100k"],
        &["render", "--as", "messages"],
    ] {
        for file in [&session, &traffic] {
            let redacted = run(&[command, &["--redact", file]].concat());
            assert_without_secrets(&redacted.out, &format!("{command:?} of {file}"));
            let said: Vec<&str> =
                redacted.err.lines().filter(|line| !line.contains(file)).collect();
            assert_without_secrets(&said.join("\n"), &format!("{command:?} of {file}"));
            plain.push_str(&run(&[command, &[file]].concat()).out);
        }
    }
    assert!(plain.contains(MODEL) && plain.contains(SESSION), "{plain}");
}

#[test]
fn a_session_is_chosen_by_the_name_that_is_shown() {
    let scratch = tempfile::tempdir().unwrap();
    let session = session(scratch.path());
    let sessions = |printed: &str| -> Vec<String> {
        let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["session"].as_str().unwrap().to_owned()).collect()
    };
    let frames = out(&["frames", "--json", "--redact", &session]);
    let shown = sessions(&frames)[0].clone();
    assert!(shown.starts_with("[redacted:email:"), "{shown}");
    for command in [&["frames", "--json"][..], &["requests", "--json"], &["export", "--otlp"]] {
        let all = out(&[command, &["--redact", &session]].concat());
        let chosen = out(&[command, &["--redact", "--session", &shown, &session]].concat());
        assert_eq!(all, chosen, "{command:?}");
        assert_without_secrets(&chosen, &format!("{command:?}"));
    }
    let other = run(&["frames", "--redact", "--session", "other", &session]);
    assert!(other.code == Some(2) && other.err.contains(&shown), "{}", other.err);
}

#[test]
fn the_message_of_an_error_is_redacted_before_it_is_cut() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    let start = Start { path: "/messages".to_owned(), ..Start::now("POST", "anthropic") };
    let id = writer.start(&start).unwrap();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Open?"}]}"#;
    writer.request(id, "anthropic", RequestBody::whole(body.as_bytes())).unwrap();
    writer.response(id, &ResponseHead { status: 200, after_ms: 1, headers: Vec::new() }).unwrap();
    let message = format!("{}{KEY} is wrong. {}", "The tide is high. ".repeat(10), "x".repeat(400));
    let error = json!({"type": "error", "error": {"type": "invalid", "message": message}});
    let started = json!({"type": "message_start", "message": {"id": "m", "role": "assistant"}});
    let answer = format!("data: {started}\n\ndata: {error}\n\n");
    writer.part(id, answer.as_bytes()).unwrap();
    let stored = answer.len() as u64;
    writer.end(id, &End { after_ms: 2, bytes: stored, stored, cut: None }).unwrap();
    drop(writer);
    let folder = folder.to_str().unwrap();
    for command in [&["requests"][..], &["requests", "--json"], &["export", "--otlp"]] {
        let printed = out(&[command, &["--redact", folder]].concat());
        assert!(printed.contains("invalid: The tide"), "{printed}");
        assert!(!printed.contains("sk-ant"), "{command:?}: {printed}");
    }
    // A row has no room for all of it.
    let row = out(&["requests", "--redact", folder]);
    assert!(row.contains("[redacted:anthropic-") && !row.contains(&"x".repeat(200)), "{row}");
    assert!(out(&["requests", "--json", folder]).contains(&"x".repeat(400)));
}

#[test]
fn half_of_a_key_at_the_end_of_a_cut_answer_is_not_shown() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("recording");
    let (mut writer, _) = RecordingWriter::open_private(&folder).unwrap();
    let delta = |text: &str| {
        let data = json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}});
        format!("data: {data}\n\n")
    };
    let (key, half) = ("The key is sk-ant-ap", "data: {\"delta\":{\"text\":\"i03-Lq9vT2");
    let stream = [&delta("The key is sk-"), &delta("ant-ap"), half].concat();
    let text = format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"{key}");
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Open?"}]}"#;
    for answer in [&stream, &text] {
        let start = Start { path: "/messages".to_owned(), ..Start::now("POST", "anthropic") };
        let id = writer.start(&start).unwrap();
        writer.request(id, "anthropic", RequestBody::whole(body.as_bytes())).unwrap();
        let head = ResponseHead { status: 200, after_ms: 1, headers: Vec::new() };
        writer.response(id, &head).unwrap();
        writer.part(id, answer.as_bytes()).unwrap();
        let (bytes, cut) = (answer.len() as u64, Some("the provider went away".to_owned()));
        writer.end(id, &End { after_ms: 2, bytes, stored: bytes, cut }).unwrap();
    }
    drop(writer);
    let folder = folder.to_str().unwrap();
    for number in ["1", "2"] {
        let args = ["render", "--response", number, "--redact", folder];
        for args in [&args[..], &[&args[..], &["--json"]].concat()] {
            let printed = run(args);
            let all = format!("{}{}", printed.out, printed.err);
            assert!(all.contains("[redacted:anthropic-key:1]"), "{args:?}: {all}");
            assert!(!all.contains("ant-ap") && !all.contains("Lq9v"), "{args:?}: {all}");
        }
    }
    for command in [&["frames", "--json"][..], &["render"], &["requests", "--json"]] {
        let printed = run(&[command, &["--redact", folder]].concat()).out;
        assert!(!printed.contains("ant-ap") && !printed.contains("Lq9v"), "{command:?}: {printed}");
    }
}

#[test]
fn a_report_in_a_file_has_each_secret_and_none_of_its_letters() {
    let scratch = tempfile::tempdir().unwrap();
    let session = session(scratch.path());
    let many = scratch.path().join("many.jsonl");
    let mails: String = (10..40).map(|number| format!("a{number}@harbour.example ")).collect();
    let line = json!({"type": "user", "sessionId": "m", "uuid": "u1",
        "message": {"role": "user", "content": mails}});
    fs::write(&many, format!("{line}\n")).unwrap();
    let path = scratch.path().join("report.json");
    let report = path.to_str().unwrap();
    let archive = scratch.path().join("archive");
    let read = || -> Value { serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap() };
    for command in [
        &["render"][..],
        &["frames", "--json"],
        &["requests", "--json"],
        &["stats"],
        &["export", "--otlp"],
        &["compress", "--budget", "100k"],
        &["trace", "--text", "key"],
        &["archive", "-o", archive.to_str().unwrap()],
    ] {
        let _ = fs::remove_file(&path);
        // The option alone redacts too.
        let printed = out(&[command, &["--redact-report", report, &session]].concat());
        assert_without_secrets(&printed, &format!("{command:?}"));
        let found = read();
        assert_without_secrets(&found.to_string(), &format!("{command:?}"));
        assert_eq!(found["redaction"], 1, "{command:?}");
        let found = found["found"].as_array().unwrap().clone();
        assert_eq!(found.len(), 5, "{command:?}: {found:?}");
        let key = found.iter().find(|of| of["rule"] == "anthropic-key").unwrap();
        assert!(key["placeholder"].as_str().unwrap().starts_with("[redacted:anthropic-key:"));
        assert!(key["times"].as_u64().unwrap() > 1 && key["first"].as_str().unwrap().len() > 3);
    }
    // Another run replaces it. A line says where to find what the lines do not tell.
    let many = many.to_str().unwrap();
    let said = run(&["render", "--redact", "--redact-report", report, many]).err;
    assert!(said.contains("… and 10 secrets: ") && said.contains(report), "{said}");
    assert_eq!(read()["found"].as_array().unwrap().len(), 30);
    assert!(run(&["render", "--redact", many]).err.contains("`--redact-report FILE` has all"));
    // No other file is replaced, nor standard output taken for one.
    let before = fs::read(&session).unwrap();
    for file in [session.as_str(), "-", scratch.path().to_str().unwrap()] {
        let refused = run(&["render", "--redact-report", file, &session]);
        assert!(refused.code == Some(2) && refused.out.is_empty(), "{}", refused.err);
    }
    assert_eq!(fs::read(&session).unwrap(), before);
}
