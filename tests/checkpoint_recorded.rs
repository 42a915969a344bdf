//! Checkpoints and deltas that people and models wrote.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "support/data.rs"]
mod data;

use std::{collections::BTreeSet, fs, path::PathBuf};

use afterimage::checkpoint::{
    Checkpoint, CheckpointDelta, DiffOptions, Document, DocumentKind, Severity, apply, compose,
    diff, invert, lint, lint_delta, validate,
};

const TIME: &str = "2026-01-07T10:00:00Z";

/// The recorded documents with their names, and the checkpoint that one shows as code.
fn recorded() -> Vec<(String, String)> {
    let Some(folder) = data::recordings("G-delta-md") else { return Vec::new() };
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    let mut files: Vec<(String, String)> =
        data::files_under(&folder).into_iter().map(read).collect();
    let shown = files.iter().find(|(name, _)| name == "checkpoint-with-delta").unwrap();
    let code = shown.1.split("```markdown\n").nth(1).unwrap().split("\n```").next().unwrap();
    files.push(("shown".to_owned(), format!("{code}\n")));
    files
}

fn checkpoints() -> Vec<Checkpoint> {
    let files = recorded().into_iter();
    files.map(|(name, text)| Checkpoint::parse(text).unwrap().named(name)).collect()
}

fn delta(a: &Checkpoint, b: &Checkpoint) -> CheckpointDelta {
    diff(a, b, &DiffOptions::created(TIME)).unwrap()
}

#[test]
fn every_pair_is_led_over_by_its_delta_and_back_by_the_inverse() {
    let all = checkpoints();
    for a in &all {
        for b in &all {
            let there = delta(a, b);
            let names = format!("{:?} to {:?}", a.id(), b.id());
            let result = apply(a, &there).unwrap();
            assert_eq!(result.text(), b.text(), "{names}");
            assert!(validate(a, &there, b).unwrap().is_empty());
            let found = lint_delta(there.document());
            let errors = found.iter().filter(|found| found.severity == Severity::Error);
            assert_eq!(errors.count(), 0, "{names}: {found:#?}\n{}", there.text());
            let is_empty = found.iter().any(|found| found.code == "empty-delta");
            assert_eq!(is_empty, a == b, "{names}: {found:#?}\n{}", there.text());
            let back = invert(&there).unwrap();
            assert_eq!(apply(b, &back).unwrap().text(), a.text(), "{names}");
        }
    }
}

#[test]
fn every_three_are_led_over_by_composed_deltas() {
    let all = checkpoints();
    let of = |a: &Checkpoint| all.iter().map(|b| delta(a, b)).collect::<Vec<_>>();
    let deltas: Vec<Vec<CheckpointDelta>> = all.iter().map(of).collect();
    for (a, from_a) in all.iter().zip(&deltas) {
        for (there, from_b) in from_a.iter().zip(&deltas) {
            for (on, c) in from_b.iter().zip(&all) {
                let whole = compose(there, on).unwrap();
                assert_eq!(apply(a, &whole).unwrap().text(), c.text());
            }
        }
    }
}

#[test]
fn every_document_is_written_back_byte_for_byte() {
    for (name, text) in recorded() {
        let document = Document::parse(text.clone()).unwrap();
        assert_eq!(document.text(), text, "{name}");
        let checkpoint = Checkpoint::from(document).named(name);
        let nothing = delta(&checkpoint, &checkpoint);
        assert_eq!(apply(&checkpoint, &nothing).unwrap().text(), text);
    }
}

/// The findings of a recorded document, each as its line and code.
fn found(name: &str) -> BTreeSet<(usize, &'static str)> {
    let files = recorded();
    let Some((_, text)) = files.iter().find(|(file, _)| file == name) else {
        return BTreeSet::new();
    };
    let document = Document::parse(text.clone()).unwrap();
    let found = lint(&document, DocumentKind::of(&document));
    for finding in &found {
        assert!(!finding.expected.is_empty() && !finding.message.is_empty());
        assert!(finding.column - 1 + finding.length <= document.line(finding.line).len());
    }
    found.into_iter().map(|found| (found.line, found.code)).collect()
}

#[test]
fn deltas_that_do_not_follow_the_format_are_told_what_to_change() {
    if recorded().is_empty() {
        return;
    }
    let expected = [
        (1, "front-matter-missing"),
        (1, "unknown-section"),
        (3, "unknown-section"),
        (10, "unknown-section"),
        (33, "unknown-section"),
        (38, "unknown-section"),
        (42, "unknown-section"),
        (49, "missing-changes"),
        (49, "missing-summary"),
        (49, "no-changes"),
    ];
    assert_eq!(found("delta-001-002"), BTreeSet::from(expected));
    let codes: BTreeSet<&str> = found("delta-002-003").into_iter().map(|(_, code)| code).collect();
    let expected = [
        "front-matter-missing",
        "unknown-section",
        "missing-changes",
        "missing-summary",
        "no-changes",
    ];
    assert_eq!(codes, BTreeSet::from(expected));
    let (_, text) = recorded().into_iter().find(|(name, _)| name == "delta-001-002").unwrap();
    let document = Document::parse(text).unwrap();
    let meant: Vec<String> = lint_delta(&document)
        .into_iter()
        .filter(|found| found.code == "unknown-section")
        .map(|found| found.expected.split(' ').take(3).collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "no title: the",
        "`### Modified` inside",
        "`### Added` inside",
        "`### Status Transitions`",
        "`### Added` inside",
        "`### Removed` inside",
    ];
    assert_eq!(meant, expected);
}

#[test]
fn a_delta_without_anything_to_apply_is_refused_and_says_what_it_needs() {
    let all = checkpoints();
    let files = recorded();
    for (name, text) in files.iter().filter(|(name, _)| name.starts_with("delta-")) {
        let delta = CheckpointDelta::parse(text.clone()).unwrap();
        for checkpoint in &all {
            let result = apply(checkpoint, &delta);
            let error = result.expect_err(name);
            assert_eq!(error.place().line, Some(1), "{error}");
        }
    }
}

#[test]
fn checkpoints_of_the_format_lint_without_errors_and_older_ones_do_not() {
    let errors = |name: &str| {
        let files = recorded();
        let text = files.into_iter().find(|(file, _)| file == name).map(|(_, text)| text)?;
        let document = Document::parse(text).unwrap();
        let found = lint(&document, DocumentKind::Checkpoint);
        Some(
            found
                .into_iter()
                .filter(|found| found.severity == Severity::Error)
                .map(|f| f.code)
                .collect::<Vec<_>>(),
        )
    };
    for name in ["chk-dialectic-audit", "chk-issue-backlog", "chk-003-breadcrumbs", "shown"] {
        assert_eq!(errors(name).unwrap_or_default(), Vec::<&str>::new(), "{name}");
    }
    for name in ["chk-001", "chk-002", "chk-003"] {
        let Some(errors) = errors(name) else { return };
        assert_eq!(errors[0], "front-matter-missing");
        assert_eq!(
            errors.iter().filter(|code| **code == "missing-section").count(),
            4,
            "{errors:?}"
        );
    }
}

#[test]
fn inline_deltas_are_read() {
    let Some((_, text)) = recorded().into_iter().find(|(name, _)| name == "shown") else { return };
    let deltas = Checkpoint::parse(text).unwrap().inline_deltas();
    let times: Vec<&str> = deltas.iter().map(|delta| delta.time.as_str()).collect();
    assert_eq!(times, ["2025-12-14T16:30:00Z", "2025-12-14T18:30:00Z"]);
    assert_eq!(deltas[0].artifacts.len(), 3);
    assert_eq!(deltas[0].transitions, [["Phase 2: Auth Endpoints", "In Progress", "Complete"]]);
    assert!(deltas[1].what_changed.starts_with("Added React auth context"));
}
