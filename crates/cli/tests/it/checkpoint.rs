//! `afterimage checkpoint`: each command, for people and as JSON.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::fs;

use serde_json::Value;
use support::{files_of, json, out, root, run, run_with};

const ONE: &str = "crates/cli/tests/data/checkpoints/one.md";
const TWO: &str = "crates/cli/tests/data/checkpoints/two.md";
const BAD: &str = "crates/cli/tests/data/checkpoints/bad-delta.md";
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
        fs::write(root().join("crates/cli/tests/golden/checkpoint-delta.md"), &found).unwrap();
    }
    assert_eq!(found, text("crates/cli/tests/golden/checkpoint-delta.md"));
}

#[test]
fn a_delta_from_a_checkpoint_to_itself_is_refused() {
    let same = run(&["checkpoint", "diff", ONE, ONE, "--created", "2026-02-01T00:00:00Z"]);
    assert_eq!((same.code, same.out.as_str()), (Some(2), ""), "{}", same.err);
    assert!(same.err.contains("both are the checkpoint \"one\": nothing changed"), "{}", same.err);
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
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{args:?}");
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
 --> crates/cli/tests/data/checkpoints/bad-delta.md:3:10
3 | created: today
  |          ^^^^^ expected a time such as `2025-12-14T16:00:00Z`

error[instruction]: found \"Sort it out\"
  --> crates/cli/tests/data/checkpoints/bad-delta.md:21:1
21 | 2. Sort it out
   | ^^^^^^^^^^^^^^ expected `Append WORDS to SECTION`";
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
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.contains("bad-delta.md:21:1\n21 | 2. Sort it out\n"), "{}", run.err);
    let run = support::run(&["checkpoint", "lint", "no-such-file.md"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("no-such-file.md"));
    let run = run_with(&["checkpoint", "lint", "-"], b"\xff\xfe".to_vec());
    assert_eq!(run.code, Some(2));
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
    let by_hand = "---\ndelta: zero-to-one\nfrom: zero\nto: one\n---\n\n## Merge Instructions\n\n1. Append \"x\" to Decisions\n";
    fs::write(folder.path().join("z.md"), by_hand).unwrap();
    let page = run(&["checkpoint", "history", path]);
    assert!(page.out.contains("(not there)"), "{}", page.out);
    assert!(page.err.contains("gap: z.md: the checkpoint \"zero\" is not there"), "{}", page.err);
    assert!(page.out.contains("(made by deltas)"), "{}", page.out);
    let run = run(&["checkpoint", "history", path, "--at", "three"]);
    assert_eq!(run.code, Some(2));
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
        "--delta-since",
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
    let wrong = run(&["checkpoint", "draft", HARBOUR, "--delta-since", "never"]);
    assert_eq!(wrong.code, Some(2));
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
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("cannot be made smaller"), "{}", run.err);
}

/// A delta that somebody wrote, from the first checkpoint to the second, in a file of its own.
fn by_hand(body: &str) -> tempfile::TempPath {
    let head = "---\ndelta: one-to-two\ncreated: 2026-01-06T10:00:00Z\nfrom: one\nto: two\n---\n\n\
                ## Summary\n\nBerths.\n\n";
    let file = tempfile::Builder::new().suffix(".md").tempfile().unwrap();
    fs::write(file.path(), format!("{head}{body}")).unwrap();
    file.into_temp_path()
}

#[test]
fn lint_against_a_checkpoint_says_what_apply_does_and_refuses() {
    let refused = by_hand(
        "## Changes\n\n### Added\n\n**New ideas:**\n- A map\n\n- Draught\n\n### Removed\n\n- Nobody\n\n\
         ## Merge Instructions\n\n1. Append new ideas to Decisions\n\
         2. Replace Next Actions with the new plan\n",
    );
    let path = refused.to_str().unwrap();
    assert_eq!(run(&["checkpoint", "lint", path]).code, Some(0));
    let lint = run(&["checkpoint", "lint", path, "--against", ONE]);
    assert_eq!(lint.code, Some(1), "{}", lint.out);
    let gone = "the checkpoint has no entry \"Nobody\"";
    assert!(lint.out.contains(&format!("error[refused]: {gone}")), "{}", lint.out);
    assert!(lint.out.contains("found \"the new plan\""), "{}", lint.out);
    assert!(lint.out.contains("apply would leave one as it is: 2 refusals"), "{}", lint.out);
    let apply = run(&["checkpoint", "apply", ONE, path]);
    assert_eq!((apply.code, apply.out.as_str()), (Some(2), ""));
    for line in [gone, "found \"the new plan\""] {
        assert!(apply.err.contains(line), "{}", apply.err);
    }
    // Leniently, the rest is carried out, and what is not is listed in the same words.
    let lenient = run(&["checkpoint", "apply", "--lenient", ONE, path]);
    assert_eq!((lenient.code, lenient.err.as_str()), (Some(1), apply.err.as_str()));
    assert!(lenient.out.contains("- A map\n- Draught\n"), "{}", lenient.out);
    let lenient = support::run(&["checkpoint", "apply", "--lenient", "--json", ONE, path]);
    let object: Value = serde_json::from_str(&lenient.out).unwrap();
    assert_eq!((&object["left"][0]["line"], &object["left"][1]["line"]), (&23.into(), &28.into()));
    assert_eq!(object["checkpoint"], "two");
    let other = run(&["checkpoint", "apply", "--lenient", TWO, path]);
    assert_eq!((other.code, other.out.as_str()), (Some(2), ""), "{}", other.err);
    let taken = by_hand(
        "## Changes\n\n### Added\n\nNone.\n\n## Merge Instructions\n\n1. Append \"x\" to Decisions\n",
    );
    let path = taken.to_str().unwrap();
    let lint = run(&["checkpoint", "lint", path, "--against", ONE]);
    assert_eq!(lint.code, Some(0), "{}", lint.out);
    assert!(
        lint.out.contains("apply would change one\n  line 20: Decisions, -0 +1"),
        "{}",
        lint.out
    );
    let found = json(&["checkpoint", "lint", "--json", path, "--against", ONE]);
    assert_eq!(found["applies"], true);
    assert_eq!(found["effects"][0]["line"], 20);
    assert_eq!(run(&["checkpoint", "apply", ONE, path]).code, Some(0));
    let wrong = run(&["checkpoint", "lint", TWO, "--against", ONE]);
    assert!(wrong.err.contains("only a delta is applied to a checkpoint"), "{}", wrong.err);
}

#[test]
fn a_delta_in_a_fenced_block_is_recognised_and_its_fence_named() {
    let fenced = format!(
        "Sure, here it is:\n\n```markdown\n{}```\n",
        out(&["checkpoint", "diff", ONE, TWO])
    );
    let lint = run_with(&["checkpoint", "lint", "-"], fenced.clone());
    assert_eq!(lint.code, Some(1));
    let expected = "error[front-matter-place]: the delta stands in a code block, behind the fence \
                    \"```markdown\"\n --> -:3:1";
    assert!(lint.out.contains(expected), "{}", lint.out);
    let apply = run_with(&["checkpoint", "apply", ONE, "-"], fenced);
    assert_eq!((apply.code, apply.out.as_str()), (Some(2), ""));
    assert!(apply.err.contains("the delta stands in a code block"), "{}", apply.err);
}

#[test]
fn deltas_are_inverted_and_composed() {
    let delta = delta();
    let path = delta.to_str().unwrap();
    let back = out(&["checkpoint", "invert", path]);
    assert!(back.starts_with("---\ndelta: two-to-one\n"), "{back}");
    let applied = run_with(&["checkpoint", "apply", TWO, "-"], back.clone());
    assert_eq!(applied.out, text(ONE));
    let whole = run_with(&["checkpoint", "compose", path, "-"], back);
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    assert_eq!(run_with(&["checkpoint", "apply", ONE, "-"], whole.out).out, text(ONE));
    let wrong = run(&["checkpoint", "compose", path, path]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("the first delta leads to \"two\""), "{}", wrong.err);
    let hand = by_hand(
        "## Changes\n\n### Added\n\nNone.\n\n## Merge Instructions\n\n1. Append \"x\" to Decisions\n",
    );
    let wrong = run(&["checkpoint", "invert", hand.to_str().unwrap()]);
    assert!(wrong.err.contains("exact instructions, as `diff` writes them"), "{}", wrong.err);
}

#[test]
fn absorbed_deltas_are_listed_and_removed_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for (from, to) in [(ONE, "one.md"), (TWO, "two.md")] {
        fs::copy(root().join(from), folder.path().join(to)).unwrap();
    }
    fs::copy(delta(), folder.path().join("delta.md")).unwrap();
    let listed = out(&["checkpoint", "prune", path]);
    let expected =
        "absorbed delta.md\n1 delta absorbed by a later checkpoint; --remove removes them\n";
    assert_eq!(listed, expected);
    assert!(folder.path().join("delta.md").exists());
    fs::remove_file(folder.path().join("one.md")).unwrap();
    let listed = json(&["checkpoint", "prune", "--json", path]);
    assert_eq!((&listed["absorbed"][0], &listed["lost"][0]), (&"delta.md".into(), &"one".into()));
    let removed = out(&["checkpoint", "prune", path, "--remove"]);
    assert!(removed.contains("removed delta.md\none can no longer be made anew"), "{removed}");
    assert!(!folder.path().join("delta.md").exists());
    assert!(folder.path().join("two.md").exists());
}

#[test]
fn a_target_that_is_empty_or_cut_absorbs_nothing_and_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::copy(root().join(ONE), file("one.md")).unwrap();
    fs::copy(delta(), file("delta.md")).unwrap();
    let two = text(TWO);
    for (target, noted) in
        [("", "unknown: two.md: "), (&two[..two.len() / 2], "mismatch: delta.md: ")]
    {
        fs::write(file("two.md"), target).unwrap();
        let pruned = run(&["checkpoint", "prune", path, "--remove"]);
        assert_eq!(pruned.out, "0 deltas absorbed by a later checkpoint\n");
        assert!(pruned.err.contains(noted), "{}", pruned.err);
        assert!(file("delta.md").exists());
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_document_is_noted_and_no_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::copy(root().join(ONE), file("one.md")).unwrap();
    fs::write(file("empty.md"), "").unwrap();
    fs::write(file("plain.txt"), "root:x:0:0\n").unwrap();
    std::os::unix::fs::symlink(file("plain.txt"), file("link.md")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(file("socket.md")).unwrap();
    let listed = run(&["checkpoint", "history", path]);
    assert_eq!(listed.out.lines().count(), 2, "{}", listed.out);
    for name in ["empty.md", "link.md", "socket.md"] {
        assert!(listed.err.contains(&format!("unknown: {name}: ")), "{}", listed.err);
    }
    let listed = json(&["checkpoint", "history", "--json", path]);
    assert_eq!(listed["problems"].as_array().unwrap().len(), 3);
}

#[test]
fn a_delta_that_is_due_says_why() {
    let due = out(&["checkpoint", "due", ONE, ONE, "--occasion", "checkpoint"]);
    assert_eq!(due, "due: a checkpoint was made\n");
    let not = run(&["checkpoint", "due", ONE, ONE]);
    assert_eq!((not.code, not.out.as_str()), (Some(1), "not due: too little changed\n"));
    assert_eq!(json(&["checkpoint", "due", "--json", ONE, TWO])["due"], true);
    assert_eq!(run(&["checkpoint", "due", ONE, TWO, "--token-share", "2"]).code, Some(2));
}

#[test]
fn a_bounded_diff_is_never_larger_than_its_target_and_a_header() {
    let other = by_hand("## Problem\n\nSomething else.\n");
    let path = other.to_str().unwrap();
    let args = ["checkpoint", "diff", path, TWO, "--bounded"];
    let (exact, bounded) = (out(&args[..4]), out(&args));
    assert!(bounded.len() < text(TWO).len() + 600 && bounded.len() < exact.len(), "{bounded}");
    assert_eq!(run_with(&["checkpoint", "apply", path, "-"], bounded.clone()).out, text(TWO));
    let lint = run_with(&["checkpoint", "lint", "-"], bounded.clone());
    assert!(lint.out.ends_with("delta, 0 errors, 0 warnings\n"), "{}", lint.out);
    let back = run_with(&["checkpoint", "invert", "-"], bounded);
    assert!(back.err.contains("this delta has no way back"), "{}", back.err);
}
