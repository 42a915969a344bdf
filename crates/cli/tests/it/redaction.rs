//! `--redact`: no secret is in what a command prints or writes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use std::{fs, path::Path};

use serde_json::json;

use crate::support::run;

const KEY: &str = "sk-ant-api03-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sA";
const PASSWORD: &str = "calm-tide-77";
const NESTED: &str = "gale-warning-31";
const SECRETS: [&str; 5] = [KEY, PASSWORD, NESTED, "ada@harbour.example", "/home/adalind"];

/// A session of Claude Code that holds each secret: in words, in arguments, in a result, and in what
/// is kept of its records.
fn session(folder: &Path) -> String {
    let user = json!({"type": "user", "sessionId": "s", "uuid": "u1", "cwd": "/home/adalind/tides",
        "message": {"role": "user", "content": format!("My key is {KEY}, the password {PASSWORD}. Mail ada@harbour.example.")}});
    // A member that holds a secret may be called by one.
    let arguments = json!({"command": format!("PGPASSWORD={PASSWORD} psql"), "password": PASSWORD,
        "/home/adalind/tides": {"ada@harbour.example": {KEY: {"password": NESTED}}}});
    let agent = json!({"type": "assistant", "sessionId": "s", "uuid": "a1",
        "message": {"id": "m1", "role": "assistant", "model": "claude-opus-4-5", "content": [
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": arguments}],
            "usage": {"input_tokens": 10, "output_tokens": 3}}});
    let result = json!({"type": "user", "sessionId": "s", "uuid": "u2",
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
    let request = json!({"model": "claude-opus-4-5", "max_tokens": 9, "messages": [
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
