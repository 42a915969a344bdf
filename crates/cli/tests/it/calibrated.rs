//! Counts that were fitted to usage, through the program.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{fs, path::PathBuf};

use afterimage_testkit::data;
use serde_json::Value;
use support::{json, json_lines, out, run};

/// A recording of Claude Code with enough usage, and one with too little.
fn sessions() -> Option<(String, String)> {
    let folder = data::recordings("B-anthropic")?.join("claude-code/spotter");
    let name = |file: &str| folder.join(file).to_str().unwrap().to_owned();
    Some((name("8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl"), name("short.jsonl")))
}

fn folder() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let root: PathBuf = folder.path().to_owned();
    (folder, move |name: &str| root.join(name).to_str().unwrap().to_owned())
}

#[test]
fn a_session_is_calibrated_and_budgets_take_what_its_transcript_lacks() {
    let Some((session, _)) = sessions() else { return };
    let (_folder, at) = folder();
    let file = at("claude.json");
    let said = out(&["stats", &session, "--calibrate", &file]);
    for word in ["claude-opus-4-6", "slope", "± ", "held-out exchanges", "WHAT TRANSCRIPTS LACK"] {
        assert!(said.contains(word), "{word} in {said}");
    }
    assert!(said.contains("claude-haiku-4-5-20251001 stays estimated: 13 exchanges"), "{said}");

    let by_file = format!("calibrated:{file}");
    let by_session = format!("calibrated:{session}");
    let by_model = format!("calibrated:{file}@claude-opus-4-6");
    let stats = json(&["stats", "--json", &session, "--tokenizer", &by_file]);
    assert_eq!(stats["counts"], "calibrated");
    assert!(stats["tokenizer"].as_str().unwrap().starts_with("calibrated:o200k_base*1.1"));
    for other in [&by_session, &by_model] {
        assert_eq!(json(&["stats", "--json", &session, "--tokenizer", other]), stats);
    }
    let plain = json(&["stats", "--json", &session]);
    assert_eq!(plain["counts"], "estimated");
    assert!(stats["tokens"].as_u64() > plain["tokens"].as_u64());

    let budget = ["--budget", "90k", "--json", "--tokenizer", &by_file];
    let run = run(&[&["compress", &session][..], &budget].concat());
    let lines: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let main = &lines[0];
    let figure = |name: &str| main[name].as_u64().unwrap();
    assert_eq!(main["counts"], "calibrated");
    assert!(figure("lacks") > 20_000, "{}", figure("lacks"));
    assert_eq!(figure("budget") + figure("lacks"), 90_000);
    assert!(figure("tokensAfter") <= figure("budget"));
    // Of the session that was compacted away the transcript lacks more than the budget.
    assert_eq!(run.code, Some(3), "{}", run.err);
    assert!(run.err.contains("what the transcript lacks takes 166,320 tokens"), "{}", run.err);
    let replay = json(&["replay", "--json", &session, "--budget", "200k", "--tokenizer", &by_file]);
    assert_eq!(
        (&replay["counts"], &replay["all"]["overBudget"]),
        (&"calibrated".into(), &0.into())
    );
}

#[test]
fn requests_say_what_their_counts_are() {
    let Some((session, _)) = sessions() else { return };
    let by = format!("calibrated:{session}");
    let lines = json_lines(&["requests", "--json", &session, "--tokenizer", &by]);
    let (mut inside, mut calibrated) = (0, 0);
    for line in lines.iter().filter(|line| line["counted"]["counts"] == "calibrated") {
        let counted = |name: &str| line["counted"][name].as_u64().unwrap();
        let input = line["usage"]["input"].as_u64().unwrap();
        calibrated += 1;
        inside += u32::from((counted("low")..=counted("high")).contains(&input));
    }
    assert!(calibrated >= 140 && inside * 100 >= calibrated * 85, "{inside} of {calibrated}");
    assert_eq!(lines[0]["counted"]["counts"], "estimated");

    let Some(folder) = data::recordings("C-codex-responses") else { return };
    let traffic =
        folder.join("wire-openai_responses/test_openai_responses_compact_stateful_mode.json");
    let lines = json_lines(&["requests", "--json", traffic.to_str().unwrap()]);
    let of = |index: usize| (&lines[index]["counted"]["counts"], &lines[index]["counted"]["input"]);
    assert_eq!(of(0), (&"exact".into(), &25.into()));
    // The recorder changed the text of the second: the report contradicts the count.
    assert_eq!(of(1).0, "estimated");
}

#[test]
fn an_archive_keeps_calibrated_counts_without_the_file() {
    let Some((session, _)) = sessions() else { return };
    let (_folder, at) = folder();
    let (file, archive) = (at("claude.json"), at("archive"));
    out(&["stats", &session, "--calibrate", &file]);
    let by = format!("calibrated:{file}");
    out(&["archive", &session, "-o", &archive, "--tokenizer", &by]);
    let expected = json(&["stats", "--json", &session, "--tokenizer", &by]);
    fs::remove_file(&file).unwrap();
    let found = json(&["stats", "--json", &archive]);
    for name in ["tokens", "byRole", "byType", "tokenizer", "counts"] {
        assert_eq!(found[name], expected[name], "{name}");
    }
}

#[test]
fn what_cannot_be_calibrated_is_said_and_nothing_is_counted() {
    let Some((session, short)) = sessions() else { return };
    let (_folder, at) = folder();
    let check = |args: &[&str], says: &[&str]| {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{args:?} {}", run.err);
        for word in says {
            assert!(run.err.contains(word), "{word:?} in {}", run.err);
        }
    };
    let by = |of: &str| format!("calibrated:{of}");
    let few = ["claude-opus-4-6: 1 exchange with usage, at least 20 are needed"];
    check(&["stats", &short, "--tokenizer", &by(&short)], &few);
    check(&["stats", &short, "--calibrate", &at("few.json")], &few);
    assert!(!fs::exists(at("few.json")).unwrap());
    let haiku = format!("{session}@claude-haiku-4-5-20251001");
    check(
        &["stats", &short, "--tokenizer", &by(&haiku)],
        &["13 exchanges with usage, at least 20 are needed"],
    );
    let unheard = format!("{session}@unheard-of");
    check(
        &["stats", &short, "--tokenizer", &by(&unheard)],
        &["no exchange with unheard-of reports usage"],
    );
    check(&["stats", &short, "--tokenizer", &by(&at("nowhere"))], &["cannot open the file"]);
    check(&["stats", &short, "--tokenizer", "calibrated:"], &["`calibrated:` names no file"]);
    check(
        &["stats", &short, "--tokenizer", "o300k"],
        &["possible values: o200k", "calibrated:FILE"],
    );

    // A calibration is read strictly, and no other file is overwritten.
    let file = at("claude.json");
    out(&["stats", &session, "--calibrate", &file]);
    out(&["stats", &session, "--calibrate", &file]);
    let written = fs::read_to_string(&file).unwrap();
    fs::write(&file, written.replacen("\"slope\":1", "\"slope\":7", 1)).unwrap();
    check(&["stats", &short, "--tokenizer", &by(&file)], &["/models/0/slope", "claude.json"]);
    fs::write(&file, "{\"calibration\":2}").unwrap();
    check(&["stats", &short, "--tokenizer", &by(&file)], &["expected version 1"]);
    let other = at("notes.txt");
    fs::write(&other, "precious").unwrap();
    check(&["stats", &session, "--calibrate", &other], &["found another", "notes.txt"]);
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
}
