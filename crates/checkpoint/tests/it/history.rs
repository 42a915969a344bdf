//! Histories, smaller checkpoints, and when a delta is due.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::series;

use afterimage_checkpoint::{
    Checkpoint, CheckpointDelta, DiffOptions, Document, DocumentKind, ErrorKind, History, Occasion,
    ProblemKind, SectionKind, Trigger, TriggerPolicy, apply, diff, lint, shrink,
};
use afterimage_tokens::{Chars4, TokenCounter};

const TIME: &str = "2026-03-10T10:00:00Z";

fn delta(a: &Checkpoint, b: &Checkpoint) -> CheckpointDelta {
    diff(a, b, &DiffOptions::created(TIME)).unwrap()
}

fn history(files: &[(&str, &str)]) -> History {
    let read = |(name, text): &(&str, &str)| ((*name).to_owned(), Document::parse(*text).unwrap());
    History::new(files.iter().map(read))
}

fn kinds(history: &History) -> Vec<ProblemKind> {
    history.problems().iter().map(|problem| problem.kind).collect()
}

/// A short checkpoint.
fn small(id: &str, parent: &str, text: &str) -> String {
    let parent = if parent.is_empty() { String::new() } else { format!("parent: {parent}\n") };
    format!("---\ncheckpoint: {id}\ncreated: {TIME}\n{parent}---\n\n## Problem\n\n{text}\n")
}

#[test]
fn every_checkpoint_of_a_series_is_made_anew_of_any_one_and_the_deltas() {
    let series: Vec<Checkpoint> = (0..12).map(step).collect();
    let deltas: Vec<CheckpointDelta> =
        series.windows(2).map(|pair| delta(&pair[0], &pair[1])).collect();
    for stored in [0, 5, 11] {
        // The files come in an order that says nothing.
        let mut files: Vec<(String, &str)> =
            deltas.iter().enumerate().map(|(n, delta)| (format!("{n}.md"), delta.text())).collect();
        files.reverse();
        files.insert(3, ("base.md".to_owned(), series[stored].text()));
        let read = files.into_iter().map(|(name, text)| (name, Document::parse(text).unwrap()));
        let history = History::new(read);
        let ids: Vec<&str> = series.iter().map(|checkpoint| checkpoint.id().unwrap()).collect();
        assert_eq!(history.order(), ids);
        assert_eq!(kinds(&history), []);
        for checkpoint in &series {
            let rebuilt = history.rebuild(checkpoint.id().unwrap()).unwrap();
            assert_eq!(rebuilt.text(), checkpoint.text());
        }
        // Those up to the stored one are absorbed by it.
        assert_eq!(history.absorbed().len(), stored);
        let pruned = history.without_absorbed();
        assert_eq!(pruned.deltas().len(), 11 - stored);
        assert_eq!(pruned.rebuild(ids[11]).unwrap().text(), series[11].text());
        if stored > 0 {
            assert_eq!(pruned.rebuild(ids[0]).unwrap_err().kind(), ErrorKind::Base);
        }
    }
}

#[test]
fn gaps_forks_loops_and_what_does_not_fit_are_reported() {
    let [a, b, c] = ["a", "b", "c"].map(|id| small(id, "", id));
    let read = |text: &String| Checkpoint::parse(text.as_str()).unwrap();
    let ab = delta(&read(&a), &read(&b));
    let (ac, ba) = (delta(&read(&a), &read(&c)), delta(&read(&b), &read(&a)));
    assert_eq!(kinds(&history(&[("a.md", &a), ("b.md", &b), ("ab.md", ab.text())])), []);
    assert_eq!(kinds(&history(&[("a.md", &a), ("b.md", &b)])), [ProblemKind::Gap]);
    let forked = history(&[("a.md", &a), ("ab.md", ab.text()), ("ac.md", ac.text())]);
    assert_eq!(kinds(&forked), [ProblemKind::Fork]);
    let circle = history(&[("a.md", &a), ("ab.md", ab.text()), ("ba.md", ba.text())]);
    assert_eq!(kinds(&circle), [ProblemKind::Loop]);
    assert_eq!(circle.rebuild("b").unwrap().text(), b);
    let gone = history(&[("ab.md", ab.text())]);
    assert_eq!(kinds(&gone), [ProblemKind::Gap, ProblemKind::Gap]);
    let orphan = small("d", "z", "d");
    assert_eq!(kinds(&history(&[("d.md", &orphan)])), [ProblemKind::Gap]);
    let child = small("b", "a", "b");
    assert_eq!(kinds(&history(&[("a.md", &a), ("b.md", &child)])), []);
    assert_eq!(kinds(&history(&[("a.md", &a), ("twice.md", &a)])), [ProblemKind::Duplicate]);
    assert_eq!(
        kinds(&history(&[("a.md", &a), ("d.md", "# Delta: b vs a\n")])),
        [ProblemKind::Unnamed]
    );
    let other = small("b", "", "other");
    let wrong = history(&[("a.md", &a), ("b.md", &other), ("ab.md", ab.text())]);
    assert_eq!(kinds(&wrong), [ProblemKind::Mismatch]);
    let itself = delta(&read(&a), &read(&a));
    assert_eq!(kinds(&history(&[("a.md", &a), ("aa.md", itself.text())])), [ProblemKind::Loop]);
}

#[test]
fn a_file_that_is_no_document_of_a_history_is_a_problem_and_no_checkpoint() {
    let a = small("a", "", "a");
    for text in
        ["", "root:x:0:0:root:/root:/bin/bash\n", "# Notes\n\nx\n", "---\ncheckpoint:\n---\n"]
    {
        let history = history(&[("a.md", &a), ("b.md", text)]);
        assert_eq!(kinds(&history), [ProblemKind::Unknown], "{text:?}");
        assert_eq!(
            (history.order().len(), history.problems()[0].file.as_deref()),
            (1, Some("b.md"))
        );
    }
    assert_eq!(history(&[("b.md", "## Problem\n\nx\n")]).order(), ["b"]);
}

#[test]
fn a_checkpoint_that_a_delta_does_not_lead_to_absorbs_nothing() {
    let text = |id: &str, parent: &str| small(id, parent, &format!("{id}\n\nmore\n\nmost"));
    let [a, b, c] = [text("a", ""), text("b", "a"), text("c", "b")];
    let read = |text: &String| Checkpoint::parse(text.as_str()).unwrap();
    let (ab, bc) = (delta(&read(&a), &read(&b)), delta(&read(&b), &read(&c)));
    let (ab, bc) = (ab.text(), bc.text());
    let cut = c.replace("\nmost\n", "");
    let absorbed = |files: &[(&str, &str)]| history(files).absorbed().join(" ");
    let deltas = [("ab", ab), ("bc", bc)];
    let with = |more: &[(&'static str, &'static str)]| [deltas.as_slice(), more].concat();
    let [a, b, c, cut]: [&'static str; 4] = [a, b, c, cut].map(|text| &*text.leak());
    assert_eq!(absorbed(&with(&[("a.md", a), ("c.md", c)])), "ab bc");
    assert_eq!(absorbed(&with(&[("c.md", c)])), "ab bc");
    for damaged in [cut, ""] {
        assert_eq!(absorbed(&with(&[("a.md", a), ("c.md", damaged)])), "");
        assert_eq!(absorbed(&with(&[("c.md", damaged)])), "");
        assert_eq!(absorbed(&with(&[("b.md", b), ("c.md", damaged)])), "ab");
    }
}

#[test]
fn a_checkpoint_shrinks_by_priority_and_what_is_never_dropped_stays() {
    let whole = step(30);
    let tokens = Chars4.count(whole.text());
    let same = shrink(&whole, tokens, &Chars4).unwrap();
    assert_eq!((same.checkpoint.text(), same.gone.len()), (whole.text(), 0));
    let never = [
        SectionKind::Problem,
        SectionKind::SessionIntent,
        SectionKind::Decisions,
        SectionKind::CurrentState,
        SectionKind::NextActions,
    ];
    let mut went = 0;
    for limit in (0..tokens).rev().step_by(97) {
        let shrunk = match shrink(&whole, limit, &Chars4) {
            Ok(shrunk) => shrunk,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Limit);
                assert!(error.message().contains("Decisions"), "{error}");
                break;
            }
        };
        assert!(shrunk.tokens <= limit && Chars4.count(shrunk.checkpoint.text()) == shrunk.tokens);
        for kind in never {
            assert_eq!(shrunk.checkpoint.body(kind), whole.body(kind));
        }
        assert!(shrunk.gone.len() >= went, "what went stays gone");
        went = shrunk.gone.len();
        let first: Vec<&str> = shrunk.gone.iter().map(|gone| gone.section.as_str()).collect();
        assert!(first.iter().take(19).all(|section| *section == "Play-By-Play"));
        let found = lint(shrunk.checkpoint.document(), DocumentKind::Checkpoint);
        assert!(found.is_empty(), "{found:#?}");
    }
    assert!(went > 40, "{went}");
    assert_eq!(shrink(&whole, 100, &Chars4).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn deltas_are_due_at_checkpoints_audits_turns_and_large_changes() {
    let policy = TriggerPolicy::default();
    let a = step(12);
    let due = |b: &Checkpoint, occasion| policy.due(&a, b, occasion, &Chars4);
    assert_eq!(due(&a, Occasion::Work), None);
    assert_eq!(due(&a, Occasion::Checkpoint), Some(Trigger::CheckpointMade));
    assert_eq!(due(&a, Occasion::Audit), Some(Trigger::AuditRequired));
    let changed = |from: &str, to: &str| {
        assert!(a.text().contains(from));
        Checkpoint::parse(a.text().replace(from, to)).unwrap()
    };
    assert_eq!(due(&changed("tests pass", "tests fail"), Occasion::Work), None);
    let turned = changed("Find what is slow", "Find what is wrong");
    assert_eq!(due(&turned, Occasion::Work), Some(Trigger::DirectionChanged));
    let large = changed("→ Complete", "→ Closed and archived");
    assert_eq!(due(&large, Occasion::Work), Some(Trigger::SignificantChange));
    let patient = TriggerPolicy::default().with_shares(0.9, 0.9);
    assert_eq!(patient.due(&a, &large, Occasion::Work, &Chars4), None);
}

/// A checkpoint whose sections have headings of their own.
const NESTED: &str = "\
---
checkpoint: nested
created: 2026-03-10T10:00:00Z
---

## Problem

#### Where

Searches are slow.

## Session Intent

They are fast.

## Essential Information

### Decisions

#### Storage

- SQLite, since everything is in one file

### Technical Context

#### Tools

- A compiler

### Current State

#### Works

- The index

### Next Actions

#### Soon

- Measure

### Elsewhere

What nobody needs.

## User Rules

#### Style

- Small steps
";

#[test]
fn what_stands_under_headings_inside_of_a_section_goes_as_the_section_does() {
    let whole = Checkpoint::parse(NESTED).unwrap();
    let smallest = shrink(&whole, 0, &Chars4).unwrap_err();
    assert_eq!(smallest.kind(), ErrorKind::Limit);
    let tokens = Chars4.count(NESTED);
    let titles = |limit: usize| -> Vec<String> {
        shrink(&whole, limit, &Chars4).unwrap().gone.into_iter().map(|gone| gone.section).collect()
    };
    let least = (0..tokens).find(|limit| shrink(&whole, *limit, &Chars4).is_ok()).unwrap();
    assert_eq!(titles(least), ["Elsewhere", "Tools", "Style"]);
    let shrunk = shrink(&whole, least, &Chars4).unwrap().checkpoint;
    for text in ["Searches are slow", "SQLite, since", "The index", "- Measure"] {
        assert!(shrunk.text().contains(text), "{text}: {}", shrunk.text());
    }
    let changed = Checkpoint::parse(NESTED.replace("SQLite", "Files")).unwrap();
    let due = TriggerPolicy::default().due(&whole, &changed, Occasion::Work, &Chars4);
    assert_eq!(due, Some(Trigger::DirectionChanged));
    assert_eq!(
        whole.body(SectionKind::Decisions).as_deref(),
        Some("#### Storage\n\n- SQLite, since everything is in one file")
    );
}

#[test]
fn a_section_that_is_replaced_keeps_nothing_of_what_stood_under_its_headings() {
    let delta = "## Merge Instructions\n\n1. Replace Current State with \"All is new\"\n";
    let delta = CheckpointDelta::parse(delta).unwrap();
    let after = apply(&Checkpoint::parse(NESTED).unwrap(), &delta).unwrap();
    assert_eq!(after.text(), NESTED.replace("#### Works\n\n- The index", "All is new"));
}

#[test]
fn what_only_a_delta_without_a_way_back_leads_from_is_a_gap() {
    let [a, b, c] = ["a", "b", "c"].map(|id| small(id, "", id));
    let read = |text: &String| Checkpoint::parse(text.as_str()).unwrap();
    let by_hand = "---\ndelta: a-to-b\ncreated: 2026-03-10T10:00:00Z\nfrom: a\nto: b\n---\n\n\
                   ## Merge Instructions\n\n1. Replace Problem with \"b\"\n";
    let files = [("b.md", b.as_str()), ("ab.md", by_hand)];
    let gap = history(&files);
    assert_eq!(kinds(&gap), [ProblemKind::Gap]);
    assert!(!gap.leads_to("a") && gap.leads_to("b"));
    assert_eq!(gap.rebuild("a").unwrap_err().kind(), ErrorKind::Base);
    // Another delta leads back, though the first file does not.
    let ac = delta(&read(&a), &read(&c));
    let history = history(&[files[0], files[1], ("c.md", &c), ("ac.md", ac.text())]);
    assert_eq!(kinds(&history), [ProblemKind::Fork]);
    assert_eq!(history.rebuild("a").unwrap().text(), a);
}

#[test]
fn a_delta_that_people_wrote_makes_its_source_the_parent() {
    let by_hand = "---\ndelta: b-to-c\ncreated: 2026-03-11T10:00:00Z\nfrom: b\nto: c\n---\n\n\
                   ## Merge Instructions\n\n1. Replace Problem with \"c\"\n";
    let (a, b) = (small("a", "", "a"), small("b", "a", "b"));
    let delta = CheckpointDelta::parse(by_hand).unwrap();
    let c = apply(&Checkpoint::parse(b.as_str()).unwrap(), &delta).unwrap();
    assert_eq!(c.parent(), Some("b"));
    let all = history(&[("a.md", &a), ("b.md", &b), ("c.md", c.text()), ("bc.md", by_hand)]);
    assert_eq!(kinds(&all), []);
    assert_eq!(all.order(), ["a", "b", "c"]);
    // Without the delta the order is still told.
    assert_eq!(kinds(&history(&[("a.md", &a), ("b.md", &b), ("c.md", c.text())])), []);
    // Where nobody writes parents, none is asked for.
    let (b, c) = (small("b", "", "b"), small("c", "", "c").replace(TIME, "2026-03-11T10:00:00Z"));
    assert_eq!(kinds(&history(&[("b.md", &b), ("c.md", &c), ("bc.md", by_hand)])), []);
}

fn step(step: usize) -> Checkpoint {
    Checkpoint::parse(series::checkpoint(step)).unwrap()
}
