//! An archive stands for the files that it was made of: what reads it prints the same.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{fmt::Write, fs, path::Path};

use serde_json::Value;
use support::{afterimage, json, out, run};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const HARBOUR: &str = "examples/sessions/harbour.jsonl";
const OWN: [&str; 3] = [CHAT, SESSIONS, HARBOUR];

/// What every kind of file is asked.
const QUESTIONS: &[&[&str]] = &[
    &["frames"],
    &["frames", "--table"],
    &["frames", "--capture"],
    &["render"],
    &["render", "--color", "always"],
    &["render", "--json"],
    &["render", "--as", "snapshots"],
    &["stats"],
    &["stats", "--json"],
    &["trace", "--text", "the"],
    &["trace", "--text", "e", "--json"],
    &["trace", "--text", "no such text", "--json"],
    &["trace", "--facet", "event-0.0", "--json"],
    &["trace", "--facet", "wood"],
    &["trace", "--at", "0:0"],
    &["trace", "--at", "1:3", "--json"],
];

/// A directory that does not outlive the test.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Archives files under a name, and gives the path.
    #[track_caller]
    fn archive(&self, name: &str, args: &[&str]) -> String {
        let path = self.path(name);
        let run = run(&[&["archive", "-o", &path][..], args].concat());
        assert_eq!(run.code, Some(0), "{}", run.err);
        path
    }
}

/// Asserts that a question gets the same answer of the archive as of the files, with the same
/// notes.
#[track_caller]
fn same(question: &[&str], files: &[&str], archive: &str) {
    let expected = run(&[question, files].concat());
    let found = run(&[question, &[archive]].concat());
    assert_eq!(found.code, expected.code, "{question:?}: {}", found.err);
    assert!(found.out == expected.out, "{question:?}: {}\n{}", expected.out, found.out);
    // A file that is not read to its end does not tell what is odd behind that; and of an archive
    // errors name its directory as well.
    let is_part = question.iter().any(|word| ["--at", "--to"].contains(word));
    let said = |err: &str| -> Vec<String> {
        let odd = [" not understood, ", ": ignored "];
        let is_odd = |line: &str| is_part && odd.iter().any(|odd| line.contains(odd));
        let lines = err.lines().filter(|line| !is_odd(line) && !line.starts_with("  archive "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(said(&found.err), said(&expected.err), "{question:?}");
}

#[test]
fn every_command_says_of_an_archive_what_it_says_of_the_files() {
    let scratch = Scratch::new();
    for (name, files) in
        [("chat", &[CHAT][..]), ("sessions", &[SESSIONS]), ("harbour", &[HARBOUR]), ("all", &OWN)]
    {
        let archive = scratch.archive(name, files);
        QUESTIONS.iter().for_each(|question| same(question, files, &archive));
    }
    // An archive may be archived again, with others.
    let both = [scratch.path("chat"), scratch.path("sessions")];
    let again = scratch.archive("again", &[&both[0], &both[1], HARBOUR]);
    QUESTIONS.iter().for_each(|question| same(question, &OWN, &again));
}

#[test]
fn a_part_of_an_archive_ends_with_what_the_model_saw_then() {
    let scratch = Scratch::new();
    let archive = scratch.archive("sessions", &[SESSIONS]);
    let numbers: Vec<String> = (4..=9).map(|number| number.to_string()).collect();
    for (at, from) in numbers.iter().enumerate() {
        same(&["render", "--from", from], &[SESSIONS], &archive);
        for to in &numbers[at..] {
            for what in ["text", "messages", "snapshots"] {
                let range = ["render", "--as", what, "--from", from, "--to", to];
                same(&range, &[SESSIONS], &archive);
            }
        }
    }
    for range in [&["--to", "2"][..], &["--from", "90"], &["--from", "9", "--to", "90"]] {
        same(&[&["render"], range].concat(), &[SESSIONS], &archive);
    }
    for at in ["9:0", "2:500", "0:0", "3:2", "4:1"] {
        for session in ["ash", "birch", "oak"] {
            same(&["trace", "--at", at, "--session", session], &[SESSIONS], &archive);
        }
        same(&["trace", "--at", at], &[SESSIONS], &archive);
    }
    same(&["trace", "--text", "a", "--session", "birch"], &[SESSIONS], &archive);
}

#[test]
fn recorded_transcripts_are_archived_too() {
    let recordings = support::recordings();
    let files: Vec<&str> = recordings.iter().map(|path| path.to_str().unwrap()).collect();
    if files.is_empty() {
        return;
    }
    let scratch = Scratch::new();
    let archive = scratch.archive("recordings", &files);
    for question in [
        &["frames"][..],
        &["render", "--json"],
        &["render", "--as", "snapshots", "--to", "9"],
        &["stats"],
        &["trace", "--text", "error", "--json"],
        &["trace", "--facet", "event-0.0", "--json"],
        &["trace", "--at", "0:0", "--json"],
    ] {
        same(question, &files, &archive);
    }
}

#[test]
fn snapshots_that_frames_bring_along_are_kept_as_they_are() {
    let scratch = Scratch::new();
    for (name, tokenizer) in [("own", "o200k"), ("other", "chars4")] {
        let (captured, file) = (name.to_owned() + ".jsonl", scratch.path(name) + ".jsonl");
        let capture = ["frames", "--capture", "--format", "plain", "--tokenizer", tokenizer];
        let mut lines = out(&[&capture[..], &[SESSIONS]].concat());
        // And one of which nobody says who made it, with members that are not known.
        lines += r#"{"session":"ash","sequence":90,"source":"user","events":[],"deltas":[],"renderedSnapshot":{"chunks":[{"content":"declared","tokens":77,"facetIds":["sky"]}],"totalContent":"declared","totalTokens":77,"capturedAt":3,"hasContent":true,"exactTokens":5,"also":[1]}}"#;
        fs::write(&file, lines).unwrap();
        let archive = scratch.archive(&format!("{captured}.archive"), &[&file]);
        for question in QUESTIONS {
            same(question, &[&file], &archive);
        }
    }
}

#[test]
fn an_archive_keeps_its_format_and_its_tokenizer() {
    let scratch = Scratch::new();
    let archive = scratch
        .archive("plain", &["--format", "plain", "--tokenizer", "chars4", SESSIONS, HARBOUR]);
    let files = [SESSIONS, HARBOUR];
    let asked = |question: &[&str], args: &[&str]| out(&[question, args, &files].concat());
    for question in QUESTIONS {
        let found = run(&[*question, &[&archive]].concat()).out;
        let options = ["--format", "plain", "--tokenizer", "chars4"];
        let expected = run(&[*question, &options, &files].concat());
        assert_eq!(found, expected.out, "{question:?}");
    }
    // Another tokenizer counts again, as it does for frames that bring along what they rendered to.
    let counted = out(&["stats", "--tokenizer", "cl100k", &archive]);
    assert_eq!(counted, asked(&["stats"], &["--format", "plain", "--tokenizer", "cl100k"]));
    // Another format renders the frames again.
    assert_eq!(
        out(&["render", "--format", "native", &archive]),
        asked(&["render"], &["--format", "native"])
    );
}

#[test]
fn what_was_archived_is_said_for_people_and_for_machines() {
    let scratch = Scratch::new();
    let said = json(&["archive", "--json", "-o", &scratch.path("one"), CHAT, SESSIONS]);
    let stats = support::json_lines(&["stats", "--json", CHAT, SESSIONS]);
    for (of, stats) in said["files"].as_array().unwrap().iter().zip(&stats) {
        for key in ["file", "format", "sessions", "frames", "chunks", "bytes", "tokens"] {
            assert_eq!(of[key], stats[key], "{key}");
        }
        assert_eq!(of["tokenizer"], "o200k_base");
    }
    let sum = |key: &str| stats.iter().map(|stats| stats[key].as_u64().unwrap()).sum::<u64>();
    for key in ["frames", "chunks", "bytes", "tokens"] {
        assert_eq!(said[key], sum(key), "{key}");
    }
    assert_eq!(said["directory"], scratch.path("one"));
    assert_eq!(said["storedBytes"], size(Path::new(&scratch.path("one"))));
}

fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let size = |entry: fs::DirEntry| match entry.metadata().unwrap() {
        of if of.is_dir() => size(&entry.path()),
        of => of.len(),
    };
    entries.map(size).sum()
}

#[test]
fn standard_input_is_archived_like_a_file() {
    let scratch = Scratch::new();
    let text = fs::read(support::root().join(CHAT)).unwrap();
    let path = scratch.path("stdin");
    let output =
        afterimage(&["archive", "-", "--output", &path]).write_stdin(text).output().unwrap();
    assert!(output.status.success());
    assert_eq!(out(&["render", &path]), out(&["render", CHAT]));
    assert_eq!(json(&["stats", "--json", &path])["file"], "-");
}

#[test]
fn an_empty_directory_is_written_to_and_no_message_is_no_error() {
    let scratch = Scratch::new();
    let (path, empty) = (scratch.path("empty"), scratch.path("empty.json"));
    fs::create_dir(&path).unwrap();
    fs::write(&empty, "[]").unwrap();
    assert_eq!(run(&["archive", "-o", &path, &empty]).code, Some(0));
    for question in QUESTIONS {
        same(question, &[&empty], &path);
    }
}

#[test]
fn a_large_session_is_stored_in_parts_and_answers_as_a_whole() {
    let scratch = Scratch::new();
    let file = scratch.path("large.jsonl");
    let words = "Of a text that is long enough every part is kept. ".repeat(200);
    let mut lines = String::new();
    for number in 0..1_000 {
        let line = serde_json::json!({"role": "user", "content": format!("{number} {words}")});
        writeln!(lines, "{line}").unwrap();
    }
    fs::write(&file, lines).unwrap();
    let archive = scratch.archive("large", &["--tokenizer", "chars4", &file]);
    for question in [
        &["stats", "--json"][..],
        &["render", "--from", "990"],
        &["render", "--as", "snapshots", "--from", "500", "--to", "501"],
        &["trace", "--text", "999 Of", "--json"],
        &["trace", "--at", "999:3", "--json"],
    ] {
        let question = [question, &["--tokenizer", "chars4"]].concat();
        same(&question, &[&file], &archive);
    }
    let segments = fs::metadata(Path::new(&archive).join("0001/0001/segments.rec")).unwrap();
    assert!(segments.len() > 104 * 30);
    let sums: Value = json(&["stats", "--json", &archive]);
    assert_eq!(sums["frames"], 1_000);
}

/// 150 sessions whose frames take turns, with more text than waits in memory while it is written.
#[cfg(unix)]
#[test]
fn an_archive_of_many_sessions_is_written_and_read_with_few_open_files() {
    let scratch = Scratch::new();
    let (file, archive) = (scratch.path("many.jsonl"), scratch.path("many"));
    let words = "What is said here is said in each session. ".repeat(100);
    let mut lines = String::new();
    for sequence in 0..450 {
        let facet = serde_json::json!({
            "id": format!("note-{}", sequence / 150),
            "type": "text",
            "content": format!("number {sequence}: {words}"),
        });
        let frame = serde_json::json!({
            "session": format!("session {}", sequence % 150),
            "sequence": sequence,
            "source": "user",
            "deltas": [{"type": "addFacet", "facet": facet}],
        });
        writeln!(lines, "{frame}").unwrap();
    }
    fs::write(&file, lines).unwrap();
    let limited = |args: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_afterimage")]);
        let output = command.args(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (code, out, err) = (output.status.code(), text(output.stdout), text(output.stderr));
        let run = support::Run { code, out, err };
        assert_eq!((run.code, run.said().as_str()), (Some(0), ""), "{args:?}");
        run.out
    };
    limited(&["archive", "--json", "--tokenizer", "chars4", &file, "-o", &archive]);
    for question in [
        &["stats", "--json"][..],
        &["render", "--as", "snapshots"],
        &["trace", "--json", "--text", "number 14"],
        &["trace", "--json", "--facet", "note-1"],
    ] {
        let of_file = limited(&[question, &["--tokenizer", "chars4", &file]].concat());
        assert_eq!(limited(&[question, &[&archive]].concat()), of_file, "{question:?}");
    }
}

#[test]
fn a_chunk_that_names_a_facet_twice_counts_once_for_it() {
    let scratch = Scratch::new();
    let file = scratch.path("twice.jsonl");
    let frame = r#"{"sequence":0,"deltas":[],"renderedSnapshot":{"chunks":[{"content":"both ","tokens":2,"facetIds":["a","b","a"]},{"content":"one","tokens":1,"facetIds":["a"]}],"totalContent":"both one","totalTokens":3,"capturedAt":0,"madeBy":{"viewer":"agent","format":"xml","renderer":1,"tokenizer":"o200k_base"}}}"#;
    fs::write(&file, frame).unwrap();
    for path in [&file, &scratch.archive("twice", &[&file])] {
        let stats = json(&["stats", "--json", path]);
        let facets = stats["byFacet"].as_array().unwrap().iter();
        let costs: Vec<_> =
            facets.map(|of| (of["facet"].as_str().unwrap(), &of["tokens"], &of["bytes"])).collect();
        let number = Value::from;
        assert_eq!(costs, [("a", &number(3), &number(8)), ("b", &number(2), &number(5))]);
    }
}
