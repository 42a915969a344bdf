//! Checkpoints and deltas that people and models wrote.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::{header_lines, lint_against, lint_delta};
use afterimage_testkit::data;

use std::{collections::BTreeSet, fmt::Write as _, fs, path::PathBuf};

use afterimage_checkpoint::{
    Checkpoint, CheckpointDelta, DiffForm, DiffOptions, Document, DocumentKind, History, Severity,
    apply, compose, diff, invert, lint, preview, validate,
};
use afterimage_tokens::{TokenCounter, default_counter};

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

/// A text whose quoted words are hashes: what recordings say does not stand in this repository.
fn hashed(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, quoted)) = rest.split_once('"') {
        let is_end = |at: &usize| !quoted[..*at].ends_with('\\');
        let end = quoted.match_indices('"').map(|(at, _)| at).find(is_end).unwrap();
        let _ = write!(out, "{before}{}", hash(&quoted[..end]));
        rest = &quoted[end + 1..];
    }
    out + rest
}

fn hash(text: &str) -> String {
    format!("#{:08x}", crc32fast::hash(text.as_bytes()))
}

/// What lint finds, a line for each.
fn linted(out: &mut String, document: &Document) {
    let kind = DocumentKind::of(document);
    let found = lint(document, kind);
    let _ = writeln!(out, "lint: {kind:?}, {} findings", found.len());
    for found in found {
        let severity = if found.severity == Severity::Error { "error" } else { "warning" };
        let _ = writeln!(out, "  {}:{} {severity} {}", found.line, found.column, found.code);
    }
}

/// What applying a delta to a checkpoint does.
fn applied(out: &mut String, base: &Checkpoint, delta: &CheckpointDelta) {
    let base_id = base.id().unwrap_or("none");
    let said = preview(base, delta);
    let found = lint_against(delta, base);
    let _ = writeln!(out, "against {base_id}: {} refusals", found.len());
    for found in &found {
        let _ = match (hashed(&found.message), found.expected.as_str()) {
            (message, "") => writeln!(out, "  {}: {message}", found.line),
            (message, expected) => {
                writeln!(out, "  {}: {message}; expected {}", found.line, hashed(expected))
            }
        };
    }
    for effect in said.effects() {
        let (line, section) = (effect.line, &effect.section);
        let _ = writeln!(out, "  {line}: {section} -{} +{}", effect.gone, effect.come);
    }
    match apply(base, delta) {
        Ok(result) => {
            assert!(found.is_empty());
            let header = header_lines(result.document());
            let _ = writeln!(
                out,
                "apply: {} lines, {header} of them header",
                result.document().line_count()
            );
        }
        Err(error) => {
            assert_eq!(error.place().line, Some(found[0].line as u64));
            let _ = writeln!(out, "apply: refused at line {}", found[0].line);
        }
    }
}

fn told_by_history(out: &mut String, files: Vec<(String, String)>) {
    let read = files
        .into_iter()
        .map(|(name, text)| (format!("{name}.md"), Document::parse(text).unwrap()));
    let history = History::new(read);
    let order: Vec<String> = history.order().iter().map(|id| hash(id)).collect();
    let _ = writeln!(out, "history: {}", order.join(", "));
    for problem in history.problems() {
        let file = problem.file.as_deref().unwrap_or("-");
        let message = hashed(&problem.message);
        let _ = writeln!(out, "  {} {file}: {message}", problem.kind.as_str());
    }
}

/// The code blocks of the specification that are deltas.
fn specified() -> Vec<(String, String)> {
    let path = data::beside("specs/checkpoint-delta-format.md");
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    let blocks =
        text.split("```markdown\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let names = ["specification-structure", "specification-example"];
    names.iter().zip(blocks).map(|(name, text)| ((*name).to_owned(), format!("{text}\n"))).collect()
}

#[test]
fn every_recorded_document_has_the_outcome_that_was_checked_by_hand() {
    let files = recorded();
    let specified = specified();
    if files.is_empty() || specified.is_empty() {
        eprintln!("skipped: no recorded documents");
        return;
    }
    let text_of = |name: &str| files.iter().find(|(file, _)| file == name).unwrap().1.clone();
    let mut out = String::new();
    for (name, text) in files.iter().chain(&specified) {
        let _ = writeln!(out, "# {name}");
        let document = Document::parse(text.clone()).unwrap();
        linted(&mut out, &document);
        let base = match name.as_str() {
            "delta-001-002" => Checkpoint::parse(text_of("chk-001")).unwrap().named("chk-001"),
            "delta-002-003" => Checkpoint::parse(text_of("chk-002")).unwrap().named("chk-002"),
            "specification-example" | "specification-structure" => {
                let path = "tests/fixtures/checkpoint/before-example.md";
                let text = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path));
                let phases =
                    CheckpointDelta::parse(text_of_example(&specified)).unwrap().transitions();
                let text = text.unwrap().replace("PHASE-3", &phases[0].item);
                Checkpoint::parse(text.replace("PHASE-4", &phases[1].item)).unwrap()
            }
            _ => continue,
        };
        applied(&mut out, &base, &CheckpointDelta::parse(text.clone()).unwrap());
    }
    let _ = writeln!(out, "# the folder");
    told_by_history(&mut out, files.clone());
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint/recorded.txt");
    if std::env::var_os("AFTERIMAGE_BLESS").is_some() {
        fs::write(&path, &out).unwrap();
    }
    assert_eq!(out, fs::read_to_string(&path).unwrap());
}

fn text_of_example(specified: &[(String, String)]) -> String {
    specified.iter().find(|(name, _)| name == "specification-example").unwrap().1.clone()
}

#[test]
fn a_bounded_delta_is_never_larger_than_its_target_and_a_header() {
    let counter = default_counter();
    let bounded = DiffOptions::created(TIME).with_form(DiffForm::Bounded);
    let all = checkpoints();
    let (mut whole, mut exact) = (0, 0);
    for a in &all {
        for b in &all {
            let delta = diff(a, b, &bounded).unwrap();
            let names = format!("{:?} to {:?}", a.id(), b.id());
            assert_eq!(apply(a, &delta).unwrap().text(), b.text(), "{names}");
            let found = lint_delta(delta.document());
            assert!(found.iter().all(|found| found.severity != Severity::Error), "{found:#?}");
            // The header, the headings, and one sentence.
            let room = 1_000;
            assert!(delta.text().len() <= b.text().len() + room, "{names}: {}", delta.text().len());
            let (of_delta, of_b) = (counter.count(delta.text()), counter.count(b.text()));
            assert!(of_delta <= of_b + room / 3, "{names}: {of_delta} for {of_b}");
            match invert(&delta) {
                Ok(back) => {
                    exact += 1;
                    assert_eq!(apply(b, &back).unwrap().text(), a.text());
                }
                Err(error) => {
                    whole += 1;
                    assert!(error.message().contains("this delta has no way back"), "{error}");
                    if a != b {
                        assert!(apply(b, &delta).is_err(), "{names}");
                    }
                }
            }
        }
    }
    assert!(all.is_empty() || whole > 0 && exact > 0, "{whole} whole, {exact} exact");
}
