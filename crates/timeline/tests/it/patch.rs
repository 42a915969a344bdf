//! The suites of JSON Patch and merge patch, through deltas.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_json as json;
use afterimage_json::Value;
use afterimage_testkit::data::recordings;
use afterimage_timeline::{
    Applier, Data, Targets, from_json_patch, from_merge_patch, to_json_patch,
};

fn cases(file: &str) -> Option<Vec<Value>> {
    let path = recordings("E-state/json-patch")?.join(file);
    let suite = json::read(&std::fs::read(path).unwrap()).unwrap();
    Some(suite.as_array().unwrap().to_vec())
}

/// Runs the cases of a suite; gives how many there were of each outcome.
fn run(file: &str) -> Option<(usize, usize)> {
    let targets = Targets::default();
    let (mut applied, mut refused) = (0, 0);
    for case in cases(file)? {
        let comment = case.str_at("comment").unwrap_or("a case without a comment").to_owned();
        let document = Data::from(case.get("doc").unwrap().clone());
        if case.str_at("error").is_some_and(|error| error.contains("two 'op' members")) {
            // Of a doubled member the last counts, which the suite leaves open: it is disabled there.
            assert_eq!(case.get("disabled").and_then(Value::as_bool), Some(true));
            refused += 1;
            continue;
        }
        let patch = case.get("patch").unwrap();
        let mut state = document.clone();
        let deltas = from_json_patch(&document, patch, &targets);
        let outcome = deltas.and_then(|deltas| {
            Applier::strict(&targets).apply_all(&mut state, &deltas)?;
            Ok(deltas)
        });
        match (case.get("error"), outcome) {
            (Some(_), Err(error)) => {
                assert!(!error.message().is_empty());
                assert_eq!(state, document, "{comment}");
                refused += 1;
            }
            (None, Ok(deltas)) => {
                let expected =
                    case.get("expected").map_or(document.clone(), |e| Data::from(e.clone()));
                assert_eq!(state, expected, "{comment}");
                // Deltas say it as a patch again, and can be taken back.
                let again = to_json_patch(&deltas, &targets).unwrap();
                let again = from_json_patch(&document, &again, &targets).unwrap();
                let mut state = document.clone();
                Applier::strict(&targets).apply_all(&mut state, &again).unwrap();
                assert_eq!(state, expected, "{comment}");
                for delta in again.iter().rev() {
                    Applier::strict(&targets).reverse(&mut state, delta).unwrap();
                }
                assert_eq!(state, document, "{comment}");
                applied += 1;
            }
            (expected, found) => panic!("{comment}: expected {expected:?}, found {found:?}"),
        }
    }
    Some((applied, refused))
}

#[test]
fn the_json_patch_suites_pass() {
    let Some(counts) = run("spec_tests.json") else { return };
    assert_eq!(counts.0 + counts.1, 17);
    let counts = run("tests.json").unwrap();
    assert_eq!(counts.0 + counts.1, 95);
}

#[test]
fn a_patch_that_fails_midway_leaves_the_document_as_it_was() {
    let Some((applied, refused)) = run("revert_tests.json") else { return };
    assert_eq!((applied, refused), (0, 13));
}

#[test]
fn the_merge_patch_suite_passes() {
    let Some(cases) = cases("merge_tests.json") else { return };
    let targets = Targets::default();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let before = Data::from(case.get("doc").unwrap().clone());
        let deltas = from_merge_patch(&before, case.get("patch").unwrap(), &targets);
        let mut state = before;
        Applier::strict(&targets).apply_all(&mut state, &deltas).unwrap();
        assert_eq!(state, Data::from(case.get("expected").unwrap().clone()));
    }
}
