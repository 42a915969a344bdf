//! Every command does on an archive what it does on the files that the archive was made of.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{collections::BTreeSet, path::Path};

use support::{Run, run, run_with};

const CHAT: &str = "crates/cli/tests/data/chat.json";
const SESSIONS: &str = "crates/cli/tests/data/sessions.jsonl";
const HARBOUR: &str = "examples/sessions/harbour.jsonl";
const SPANS: &str = "crates/cli/tests/data/spans.jsonl";
/// Without it a draft of frames that have no time is made now.
const NOON: &str = "2026-01-01T12:00:00Z";

/// Where the file or the archive stands in a command line.
const FILE: &str = "FILE";

/// The command lines over transcripts, with every form that they print.
const COMMANDS: &[&[&str]] = &[
    &["frames", FILE],
    &["frames", "--table", FILE],
    &["frames", "--table", "--format", "plain", FILE],
    &["frames", "--capture", FILE],
    &["frames", "--capture", "--format", "native", FILE],
    &["render", FILE],
    &["render", "--color", "always", FILE],
    &["render", "--format", "native", FILE],
    &["render", "--format", "plain", "--as", "messages", FILE],
    &["render", "--as", "messages", "--tokenizer", "cl100k", FILE],
    &["render", "--as", "snapshots", FILE],
    &["render", "--as", "snapshots", "--format", "plain", "--from", "1", "--to", "5", FILE],
    &["render", "--from", "2", "--to", "5", FILE],
    &["render", "--from", "1000", FILE],
    &["trace", "--text", "the", FILE],
    &["trace", "--text", "THE", "-i", "--json", FILE],
    &["trace", "--text", r"\d+ \w+$", "--regex", "--json", FILE],
    &["trace", "--text", "the", "--format", "native", "--json", FILE],
    &["trace", "--text", "\"berth\": ", FILE],
    &["trace", "--text", "no such text", FILE],
    &["trace", "--facet", "event-1.0", FILE],
    &["trace", "--facet", "event-1.0", "--format", "native", "--json", FILE],
    &["trace", "--at", "1:3", FILE],
    &["trace", "--at", "1:3", "--format", "plain", "--json", FILE],
    &["trace", "--at", "1000:3", FILE],
    &["stats", FILE],
    &["stats", "--json", FILE],
    &["stats", "--json", "--format", "native", FILE],
    &["stats", "--json", "--tokenizer", "chars4", FILE],
    &["compress", "--budget", "0.6k", "--keep-recent", "2", FILE],
    &["compress", "--budget", "600", "--keep-recent", "2", "--color", "always", FILE],
    &["compress", "--budget", "600", "--keep-recent", "2", "--json", FILE],
    &["compress", "--budget", "600", "--keep-recent", "2", "--as", "blocks", FILE],
    &["compress", "--budget", "600", "--keep-recent", "2", "--as", "openai", FILE],
    &["compress", "--budget", "600", "--keep-recent", "2", "--as", "responses", FILE],
    &["compress", "--budget", "600", "--keep-recent", "2", "--as", "anthropic", FILE],
    &["compress", "--budget", "600", "--keep-recent", "2", "--as", "openai", "--json", FILE],
    &["compress", "--budget", "600", "--as", "openai", "--format", "xml", FILE],
    &["compress", "--budget", "600", "--format", "plain", FILE],
    &["compress", "--budget", "10", FILE],
    &["compress", "--budget", "400", "--receipt", FILE],
    &["compress", "--budget", "400", "--receipt", "--json", "--as", "openai", FILE],
    &["expand", "--budget", "400", "--around", "berth", "--limit", "40", FILE],
    &["expand", "--budget", "400", "--frame", "3", FILE],
    &["expand", "--budget", "600", "--keep-recent", "2", "--block", "no-such-block", FILE],
    &["expand", "--budget", "600", "--as", "openai", "--block", "no-such-block", FILE],
    &["replay", "--budget", "600", FILE],
    &["replay", "--budget", "600", "--policy", "sliding", "--json", FILE],
    &["replay", "--budget", "600", "--policy", "none", FILE],
    &["replay", "--budget", "600", "--policy", "masking,keep-user", "--as", "openai", FILE],
    &["audit", HARBOUR, FILE],
    &["audit", "--json", FILE, HARBOUR],
    &["export", "--otlp", FILE],
    &["export", "--otlp", "--lines", FILE],
    &["requests", FILE],
    &["requests", "--json", "--cache", "openai", FILE],
    &["guard", FILE],
    &["guard", "--json", FILE],
    &["diff", HARBOUR, FILE],
    &["diff", "--full", FILE, HARBOUR],
    &["diff", "--json", "--format", "plain", "--tokenizer", "cl100k", FILE, HARBOUR],
    &["diff", "--session", "birch", FILE, FILE],
    &["checkpoint", "draft", "--created", NOON, FILE],
    &["checkpoint", "draft", "--created", NOON, "--json", "--tokens", "1k", FILE],
    &["checkpoint", "draft", "--created", NOON, "--delta-since", "2", FILE],
    &["observe", "replay", FILE],
    &["observe", "--json", "replay", "--tokenizer", "chars4", FILE],
];

/// The commands that read no transcripts.
const OTHERS: &[&str] = &[
    "demo",
    "archive",
    "record",
    "world",
    "sessions",
    "journal",
    "formats",
    "completions",
    "man",
    "help",
];

fn at(words: &[&str], file: &str) -> Run {
    let words: Vec<&str> =
        words.iter().map(|word| if *word == FILE { file } else { *word }).collect();
    run(&words)
}

/// What was said on standard error; of an archive errors name its directory too, or alone.
fn said(run: &Run) -> Vec<&str> {
    let is_place = |line: &str| ["  archive ", "  file "].iter().any(|name| line.starts_with(name));
    run.err.lines().filter(|line| !is_place(line)).collect()
}

fn archived(scratch: &Path, name: &str, file: &str) -> String {
    let path = scratch.join(name).to_str().unwrap().to_owned();
    let made = run(&["archive", file, "-o", &path]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    path
}

#[test]
fn every_command_does_on_an_archive_what_it_does_on_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    // Frames that bring along what they rendered to are archived as they are.
    let captured = scratch.path().join("captured.jsonl");
    std::fs::write(&captured, run(&["frames", "--capture", HARBOUR]).out).unwrap();
    let captured = captured.to_str().unwrap();
    for (index, file) in [CHAT, SESSIONS, HARBOUR, SPANS, captured].into_iter().enumerate() {
        let archive = archived(scratch.path(), &index.to_string(), file);
        let again = archived(scratch.path(), &format!("{index} again"), &archive);
        // `diff` takes a provider's messages for a context as they stand, which no archive keeps.
        for words in COMMANDS.iter().filter(|words| words[0] != "diff" || file != CHAT) {
            let expected = at(words, file);
            for archive in [&archive, &again] {
                let found = at(words, archive);
                assert_eq!(found.code, expected.code, "{words:?} {file}: {}", found.err);
                assert!(
                    found.out == expected.out,
                    "{words:?} {file}: {}\n{}",
                    expected.out,
                    found.out
                );
                assert_eq!(said(&found), said(&expected), "{words:?} {file}");
            }
        }
    }
}

#[test]
fn a_block_of_an_archive_is_expanded_as_one_of_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    let archive = archived(scratch.path(), "harbour", HARBOUR);
    let fit = ["--budget", "900", "--keep-recent", "4"];
    for form in [&[][..], &["--as", "openai"], &["--as", "anthropic", "--tokenizer", "cl100k"]] {
        let report = support::json(&[&["compress", "--json", HARBOUR], &fit[..], form].concat());
        let blocks = report["blocks"].as_array().unwrap();
        assert!(!blocks.is_empty());
        for block in blocks {
            let id = block["id"].as_str().unwrap();
            let expand = |file: &str| {
                support::out(&[&["expand", file, "--block", id], &fit[..], form].concat())
            };
            assert_eq!(expand(&archive), expand(HARBOUR));
        }
    }
}

#[test]
fn no_command_is_missing_among_those_that_are_held_to_it() {
    let help = support::out(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: BTreeSet<&str> = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let held: BTreeSet<&str> =
        COMMANDS.iter().map(|words| words[0]).chain(OTHERS.iter().copied()).collect();
    assert_eq!(listed, held);
}

#[test]
fn one_session_of_several_is_read_as_if_it_stood_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(support::root().join(SESSIONS)).unwrap();
    let is_birch = |line: &&str| line.contains("\"session\":\"birch\"");
    let alone: String = text.lines().filter(is_birch).flat_map(|line| [line, "\n"]).collect();
    assert!(!alone.is_empty() && alone.len() < text.len());
    let file = scratch.path().join("birch.jsonl");
    std::fs::write(&file, alone).unwrap();
    let file = file.to_str().unwrap();
    let archive = archived(scratch.path(), "sessions", SESSIONS);
    for words in [
        &["stats", "--json"][..],
        &["stats"],
        &["frames"],
        &["frames", "--table"],
        &["render"],
        &["render", "--json"],
        &["compress", "--budget", "900", "--json"],
        &["replay", "--budget", "900", "--json"],
        &["requests", "--json"],
        &["observe", "replay"],
    ] {
        let expected = run(&[words, &[file]].concat());
        for several in [SESSIONS, &archive] {
            let found = run(&[words, &["--session", "birch", several]].concat());
            assert_eq!(found.code, expected.code, "{words:?}: {}", found.err);
            // The file's name, and the numbers of requests and of messages in the whole file, are
            // its own.
            let same =
                |out: &str| out.replace(file, "FILE").replace(SESSIONS, "FILE").replace('─', "");
            if !matches!(words, ["requests", ..]) {
                assert_eq!(same(&found.out), same(&expected.out), "{words:?} {several}");
            }
        }
        let missing = run(&[words, &["--session", "oak", SESSIONS]].concat());
        assert_eq!(missing.code, Some(2), "{words:?}");
        assert!(missing.err.contains("there is no session \"oak\""), "{words:?}: {}", missing.err);
        assert!(missing.err.contains("birch"), "{words:?}: {}", missing.err);
    }
    let written = scratch.path().join("one.archive");
    let written = written.to_str().unwrap();
    let made = run(&["archive", "--session", "birch", SESSIONS, "-o", written]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert_eq!(support::json(&["stats", "--json", written])["sessions"], 1);
}

#[test]
fn standard_input_is_a_file_for_every_command() {
    let text = std::fs::read(support::root().join(HARBOUR)).unwrap();
    let twice = |words: &&&[&str]| words.iter().filter(|word| **word == FILE).count() > 1;
    for words in COMMANDS.iter().filter(|words| !twice(words)) {
        let expected = at(words, HARBOUR);
        let words: Vec<&str> =
            words.iter().map(|word| if *word == FILE { "-" } else { *word }).collect();
        let found = run_with(&words, text.clone());
        assert_eq!(found.code, expected.code, "{words:?}: {}", found.err);
    }
}
