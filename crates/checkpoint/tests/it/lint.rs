//! What lint finds: a document for each requirement, with the findings that it is to have.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::checkpoints;
use afterimage_testkit::data;

use std::{collections::BTreeSet, fs, path::Path};

use afterimage_checkpoint::{
    Checkpoint, CheckpointDelta, DiffOptions, Document, DocumentKind, ErrorKind, MAX_BYTES,
    Severity, apply, diff, lint,
};
use proptest::prelude::*;

fn findings(text: &str) -> Vec<String> {
    let document = Document::parse(text).unwrap();
    let found = lint(&document, DocumentKind::of(&document));
    found
        .iter()
        .map(|found| {
            let severity = match found.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            format!("{}:{} {severity} {}", found.line, found.column, found.code)
        })
        .collect()
}

#[test]
fn each_requirement_has_a_document_that_breaks_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint/lint");
    let mut codes = BTreeSet::new();
    let mut wrong = Vec::new();
    let files = data::files_under(&folder);
    for path in files.iter().filter(|path| path.extension().unwrap() == "md") {
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
        let expected: Vec<&str> = expected.lines().collect();
        codes.extend(expected.iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()));
        let found = findings(&fs::read_to_string(path).unwrap());
        if found != expected {
            wrong.push(format!("{}: expected {expected:#?}, found {found:#?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(codes.len() > 25, "{codes:?}");
}

#[test]
fn input_of_any_kind_has_an_answer() {
    let kind = |bytes: &[u8]| Document::read(bytes).err().map(|error| error.kind());
    assert_eq!(kind(b""), None);
    assert_eq!(kind(b"\xff\xfe\x00binary"), Some(ErrorKind::Utf8));
    assert_eq!(kind(b"text\0"), Some(ErrorKind::Markdown));
    assert_eq!(kind(&vec![b'a'; MAX_BYTES + 1]), Some(ErrorKind::Limit));
    assert_eq!(kind(&b">".repeat(10 << 20)), Some(ErrorKind::Limit));
    assert_eq!(kind(&b"> ".repeat(5 << 20)), Some(ErrorKind::Limit));
    assert_eq!(kind(&b"- ".repeat(300)), Some(ErrorKind::Limit));
    assert_eq!(kind(&b"> > text\n".repeat(1_000_000)), None);
    assert_eq!(kind(&b"-".repeat(1_000)), None);
    assert_eq!(kind(&b"*".repeat(1 << 20)), None);
    assert_eq!(kind(&b"[".repeat(1 << 20)), None);
    assert_eq!(kind(&b"|".repeat(1 << 16)), None);
    let error = Document::read(b"one\ntwo \xff").unwrap_err();
    assert_eq!((error.place().line, error.place().offset), (Some(2), Some(8)));
}

#[test]
fn large_documents_with_nothing_in_common_are_compared() {
    let text = |of: &str| (0..60_000).map(|n| format!("- {of} {n}\n\n")).collect::<String>();
    let [a, b] = ["one", "two"].map(|of| Checkpoint::parse(text(of)).unwrap().named(of));
    let delta = diff(&a, &b, &DiffOptions::created("2026-01-05T10:00:00Z")).unwrap();
    assert_eq!(apply(&a, &delta).unwrap().text(), b.text());
    // In the other order, every line moves.
    let turned: Vec<&str> = a.text().lines().rev().collect();
    let turned = Checkpoint::parse(turned.join("\n")).unwrap().named("turned");
    let delta = diff(&a, &turned, &DiffOptions::created("2026-01-05T10:00:00Z")).unwrap();
    assert_eq!(apply(&a, &delta).unwrap().document(), turned.document());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn deltas_that_are_computed_lint_without_errors(
        (old, new) in checkpoints::pair(), from in 0..3_usize, to in 0..3_usize,
    ) {
        let a = Checkpoint::parse(checkpoints::canonical(&old, from)).unwrap().named("a");
        let b = Checkpoint::parse(checkpoints::canonical(&new, to)).unwrap().named("b");
        let delta = diff(&a, &b, &DiffOptions::created("2026-01-05T10:00:00Z")).unwrap();
        let found = lint(delta.document(), DocumentKind::Delta);
        let allowed = ["empty-delta", "decision-gone"];
        prop_assert!(found.iter().all(|found| allowed.contains(&found.code)), "{found:#?}\n{}", delta.text());
        let is_empty = found.iter().any(|found| found.code == "empty-delta");
        prop_assert_eq!(is_empty, a.document() == b.document());
    }

    #[test]
    fn places_of_findings_are_in_the_text(text in "[ -~\n|#>`é-]{0,300}") {
        let document = Document::parse(text.clone()).unwrap();
        for kind in [DocumentKind::Checkpoint, DocumentKind::Delta] {
            for found in lint(&document, kind) {
                let line = document.line(found.line);
                prop_assert!(found.line >= 1 && found.column >= 1);
                prop_assert!(line.get(found.column - 1..found.column - 1 + found.length).is_some());
            }
        }
        let delta = CheckpointDelta::parse(text).unwrap();
        let _ = apply(&Checkpoint::parse("## Problem\n\nx\n").unwrap(), &delta);
    }
}
