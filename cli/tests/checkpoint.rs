//! `afterimage checkpoint`: each command, for people and as JSON.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

mod support;

use std::fs;

use serde_json::Value;
use support::{files_of, json, out, root, run, run_with};

const ONE: &str = "cli/tests/data/checkpoints/one.md";
const TWO: &str = "cli/tests/data/checkpoints/two.md";
const BAD: &str = "cli/tests/data/checkpoints/bad-delta.md";
const HARBOUR: &str = "examples/sessions/harbour.jsonl";

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The delta of the two checkpoints, in a file of its own.
fn delta() -> tempfile::TempPath {
    let file = tempfile::Builder::new().suffix(".md").tempfile().unwrap();
    fs::write(file.path(), out(&["checkpoint", "diff", ONE, TWO])).unwrap();
    file.into_temp_path()
}

#[test]
fn a_delta_is_computed_checked_and_applied() {
    let delta = delta();
    let path = delta.to_str().unwrap();
    assert_eq!(out(&["checkpoint", "apply", ONE, path]), text(TWO));
    assert_eq!(out(&["checkpoint", "validate", ONE, path, TWO]), "one-to-two makes two of one\n");
    let lint = out(&["checkpoint", "lint", ONE, TWO, path]);
    assert_eq!(lint.matches("0 errors, 0 warnings").count(), 3, "{lint}");
    let found = fs::read_to_string(&delta).unwrap();
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::write(root().join("cli/tests/golden/checkpoint-delta.md"), &found).unwrap();
    }
    assert_eq!(found, text("cli/tests/golden/checkpoint-delta.md"));
}

#[test]
fn a_diff_ends_well_whether_or_not_the_documents_differ() {
    let same = out(&["checkpoint", "diff", ONE, ONE, "--created", "2026-02-01T00:00:00Z"]);
    assert!(same.contains("created: 2026-02-01T00:00:00Z") && same.contains("Nothing changes."));
    let applied = run_with(&["checkpoint", "apply", ONE, "-"], same);
    assert_eq!((applied.code, applied.out), (Some(0), text(ONE)));
    for time in ["soon", "2026-02-01 00:00:00Z", "2026-02-01T00:00:00"] {
        let wrong = run(&["checkpoint", "diff", ONE, TWO, "--created", time]);
        assert_eq!(wrong.code, Some(2), "{time}");
    }
}

#[test]
fn standard_input_is_one_document_and_no_more() {
    for args in [
        &["checkpoint", "diff", "-", "-"][..],
        &["checkpoint", "apply", "-", "-"],
        &["checkpoint", "validate", ONE, "-", "-"],
        &["checkpoint", "lint", "-", ONE, "-"],
    ] {
        let run = run_with(args, text(ONE));
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{args:?}");
        assert!(run.err.contains("only one of the files can be `-`"), "{}", run.err);
    }
    let run = run_with(&["checkpoint", "diff", "-", TWO], "## Problem\n".to_owned());
    assert!(run.out.starts_with("---\ndelta: stdin-to-two\n"), "{}", run.out);
}

#[test]
fn a_time_that_a_checkpoint_cannot_mean_is_not_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.md");
    fs::write(&path, text(TWO).replace("2026-01-06T10:00:00Z", "yesterday")).unwrap();
    let delta = out(&["checkpoint", "diff", ONE, path.to_str().unwrap()]);
    assert!(!delta.contains("created: yesterday\nfrom"), "{delta}");
    let lint = run_with(&["checkpoint", "lint", "-"], delta);
    assert_eq!(lint.code, Some(0), "{}", lint.out);
}

#[test]
fn without_a_header_the_id_is_the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.md");
    fs::write(&path, "## Problem\n\nx\n").unwrap();
    let diff = json(&["checkpoint", "diff", "--json", path.to_str().unwrap(), TWO]);
    assert_eq!(diff["delta"], "left-to-two");
    assert_eq!(diff["created"], "2026-01-06T10:00:00Z");
}

#[test]
fn what_differs_is_named_and_the_exit_code_says_so() {
    let delta = delta();
    let path = delta.to_str().unwrap();
    let run = run(&["checkpoint", "validate", ONE, path, ONE]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("  - - Assign berths\n  + - Show them on a page\n"), "{}", run.out);
    assert!(run.err.contains("the delta gives another checkpoint"), "{}", run.err);
    let run = support::run(&["checkpoint", "validate", "--json", ONE, path, ONE]);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &found["valid"]), (Some(1), &Value::Bool(false)));
    assert!(found["differences"].as_array().unwrap().len() > 3);
}

#[test]
fn findings_underline_their_line() {
    let run = run(&["checkpoint", "lint", BAD]);
    assert_eq!(run.code, Some(1));
    let expected = "\
error[created-not-a-time]: `today` is no ISO 8601 timestamp
 --> cli/tests/data/checkpoints/bad-delta.md:3:10
3 | created: today
  |          ^^^^^ expected a time such as `2025-12-14T16:00:00Z`

error[instruction]: \"Sort it out\" cannot be carried out
  --> cli/tests/data/checkpoints/bad-delta.md:21:4
21 | 2. Sort it out
   |    ^^^^^^^^^^^ expected an instruction such as `Append";
    assert!(run.out.starts_with(expected), "{}", run.out);
    assert!(run.out.ends_with("bad-delta.md: delta, 2 errors, 0 warnings\n"), "{}", run.out);
    let run = support::run(&["checkpoint", "lint", "--json", BAD, ONE]);
    let lines: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["findings"][0]["code"], "created-not-a-time");
    assert_eq!((&lines[0]["errors"], &lines[1]["errors"]), (&2.into(), &0.into()));
}

#[test]
fn a_refused_delta_underlines_the_instruction_and_prints_nothing() {
    let run = run(&["checkpoint", "apply", ONE, BAD]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(run.err.contains("bad-delta.md:21:1\n21 | 2. Sort it out\n"), "{}", run.err);
    let run = support::run(&["checkpoint", "lint", "no-such-file.md"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("no-such-file.md"));
    let run = run_with(&["checkpoint", "lint", "-"], b"\xff\xfe".to_vec());
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("expected Markdown in UTF-8"), "{}", run.err);
}

#[test]
fn a_folder_is_put_in_order_and_checkpoints_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root().join(ONE), folder.path().join("b.md")).unwrap();
    fs::copy(delta(), folder.path().join("a.md")).unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(out(&["checkpoint", "history", path, "--at", "two"]), text(TWO));
    let history = json(&["checkpoint", "history", "--json", path]);
    let ids: Vec<&str> = history["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|checkpoint| checkpoint["checkpoint"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["one", "two"]);
    assert_eq!(history["deltas"][0]["absorbed"], false);
    assert_eq!(history["problems"].as_array().unwrap().len(), 0);
    // Once the second is there, the delta is absorbed, and leads back.
    fs::copy(root().join(TWO), folder.path().join("c.md")).unwrap();
    fs::remove_file(folder.path().join("b.md")).unwrap();
    assert_eq!(json(&["checkpoint", "history", "--json", path])["deltas"][0]["absorbed"], true);
    assert_eq!(out(&["checkpoint", "history", path, "--at", "one"]), text(ONE));
    let by_hand = "---\ndelta: zero-to-one\nfrom: zero\nto: one\n---\n\n## Merge Instructions\n\n1. Set anchor to x\n";
    fs::write(folder.path().join("z.md"), by_hand).unwrap();
    let page = run(&["checkpoint", "history", path]);
    assert!(page.out.contains("(not there)"), "{}", page.out);
    assert!(page.err.contains("gap: z.md: the checkpoint \"zero\" is not there"), "{}", page.err);
    assert!(page.out.contains("(made by deltas)"), "{}", page.out);
    let run = run(&["checkpoint", "history", path, "--at", "three"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("there is no checkpoint \"three\""), "{}", run.err);
}

#[test]
fn a_draft_lints_clean_and_the_delta_since_an_earlier_one_is_that_of_the_two() {
    let folder = tempfile::tempdir().unwrap();
    let draft = out(&["checkpoint", "draft", HARBOUR, "--created", "2026-01-05T10:00:00Z"]);
    let lint = run_with(&["checkpoint", "lint", "-"], draft.clone());
    assert!(lint.out.ends_with("checkpoint, 0 errors, 0 warnings\n"), "{}", lint.out);
    assert!(draft.starts_with("---\ncheckpoint: harbour-"));
    let since = [
        "checkpoint",
        "draft",
        HARBOUR,
        "--since",
        "harbour-5",
        "--created",
        "2026-01-05T10:00:00Z",
    ];
    let delta = out(&since);
    assert!(delta.contains("from: harbour-5\n"), "{delta}");
    let path = folder.path().join("delta.md");
    fs::write(&path, delta).unwrap();
    let lint = run(&["checkpoint", "lint", path.to_str().unwrap()]);
    assert_eq!(lint.code, Some(0), "{}", lint.out);
    assert_eq!(json(&[&since[..], &["--json"]].concat())["from"], "harbour-5");
    let drafted = json(&["checkpoint", "draft", "--json", HARBOUR, "--tokens", "300"]);
    assert!(drafted["tokens"].as_u64().unwrap() <= 300);
    let wrong = run(&["checkpoint", "draft", HARBOUR, "--since", "never"]);
    assert_eq!(wrong.code, Some(1));
}

#[test]
fn every_recorded_transcript_can_be_drafted() {
    for path in files_of(&["B-anthropic", "C-codex-responses", "D-swe-agent"]) {
        let run = run(&["checkpoint", "draft", "--json", path.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{}: {}", path.display(), run.err);
        let drafted: Value = serde_json::from_str(&run.out).unwrap();
        assert!(drafted["tokens"].as_u64().unwrap() <= 4_000);
        let lint = run_with(&["checkpoint", "lint", "-"], drafted["markdown"].as_str().unwrap());
        assert!(lint.out.ends_with("0 errors, 0 warnings\n"), "{}: {}", path.display(), lint.out);
    }
}

#[test]
fn a_checkpoint_shrinks_by_its_priorities_and_says_what_went() {
    let run = run(&["checkpoint", "shrink", TWO, "--tokens", "170"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    for kept in
        ["berths are assigned by hand", "Draught decides", "assigned for a week", "Show them"]
    {
        assert!(run.out.contains(kept), "{kept}: {}", run.out);
    }
    assert!(run.err.contains("Play-By-Play"), "{}", run.err);
    let shrunk = json(&["checkpoint", "shrink", "--json", TWO, "--tokens", "170"]);
    assert!(shrunk["tokens"].as_u64().unwrap() <= 170);
    assert!(!shrunk["gone"].as_array().unwrap().is_empty());
    let run = support::run(&["checkpoint", "shrink", TWO, "--tokens", "20"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("cannot be made smaller"), "{}", run.err);
}
