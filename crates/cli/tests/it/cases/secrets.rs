//! What is to be taken out, what is to stay, and who may read what is written.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use std::fs;

use afterimage_testkit::data;
use serde_json::{Value, json};

use crate::support::run;

const KEY: &str = "sk-ant-api03-Lq9vT2mX8cR4bN6pW1kZ5yD7fH3jG0sA";

#[test]
fn what_is_to_stay_stays_and_the_secrets_go() {
    let Some(answers) = data::case("18-redaction/answers.json") else { return };
    let session = data::case("18-redaction/session.jsonl").unwrap();
    let answers: Value = serde_json::from_str(&fs::read_to_string(answers).unwrap()).unwrap();
    let printed = run(&["render", "--redact", session.to_str().unwrap()]).out;
    for kept in answers["keep"].as_array().unwrap() {
        assert!(printed.contains(kept.as_str().unwrap()), "{kept}");
    }
    for gone in answers["drop"].as_array().unwrap() {
        assert!(!printed.contains(gone[2].as_str().unwrap()), "{gone}");
    }
}

#[test]
fn sessions_are_listed_without_their_secrets() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, words) in
        [("a", format!("Use {KEY} now")), ("b", format!("My key is \u{1b}[31m{KEY}"))]
    {
        let line = json!({"type": "user", "sessionId": "s", "uuid": "u1", "cwd": "/home/adalind/tides",
            "message": {"role": "user", "content": words}});
        fs::write(scratch.path().join(format!("{name}.jsonl")), format!("{line}\n")).unwrap();
    }
    let folder = scratch.path().to_str().unwrap();
    for args in
        [&["sessions", "--no-index", folder][..], &["sessions", "--no-index", "--json", folder]]
    {
        let plain = run(args);
        let redacted = run(&[args, &["--redact"]].concat());
        assert!(plain.out.contains("sk-ant-") && plain.code == Some(0), "{}", plain.out);
        assert_eq!(redacted.code, Some(0), "{}", redacted.err);
        assert!(
            !redacted.out.contains("sk-ant-") && !redacted.out.contains("adalind"),
            "{}",
            redacted.out
        );
        assert!(redacted.out.contains("[redacted:anth"), "{}", redacted.out);
        assert!(redacted.err.contains("redacted 2 secrets"), "{}", redacted.err);
    }
}

/// The modes of what is below a folder, whose own is the first.
#[cfg(unix)]
fn modes(path: &std::path::Path, all: &mut Vec<(String, u32)>) {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
    all.push((path.display().to_string(), mode));
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            modes(&entry.unwrap().path(), all);
        }
    }
}

#[test]
#[cfg(unix)]
fn what_is_written_of_sessions_its_owner_alone_can_read() {
    for umask in ["000", "022"] {
        let scratch = tempfile::tempdir().unwrap();
        let line = json!({"type": "user", "sessionId": "s", "uuid": "u1",
            "message": {"role": "user", "content": format!("My key is {KEY}")}});
        fs::write(scratch.path().join("s.jsonl"), format!("{line}\n")).unwrap();
        let turn = json!({"type": "note", "data": {"key": KEY}});
        fs::write(scratch.path().join("turn.json"), turn.to_string()).unwrap();
        let program = assert_cmd::cargo::cargo_bin!("afterimage");
        let commands = [
            "archive -o archive s.jsonl",
            "render --redact-report report.json s.jsonl",
            "sessions .",
            "world init world",
            "world append world turn.json",
            "world snapshot world",
            "world append --journal journal tale turn.json",
            "observe --db state.db put --account ada --tool read < turn.json",
        ];
        for command in commands {
            let line = format!("umask {umask}; exec \"$0\" {command}");
            let mut shell = std::process::Command::new("sh");
            shell.current_dir(&scratch).env("AFTERIMAGE_CACHE", scratch.path().join("cache"));
            let done = shell.args(["-c", &line]).arg(program).output().unwrap();
            assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        }
        let mut all = Vec::new();
        ["archive", "report.json", "cache", "world", "journal", "state.db"]
            .iter()
            .for_each(|name| modes(&scratch.path().join(name), &mut all));
        assert!(all.len() > 12, "{all:?}");
        for (path, mode) in all {
            let expected = if std::path::Path::new(&path).is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{path} with umask {umask}");
        }
    }
}
