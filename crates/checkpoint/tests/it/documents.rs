//! Checkpoints and the deltas between them: what holds for any document.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::{checkpoints, header_lines, lint_against, lint_delta};

use afterimage_checkpoint::{
    Checkpoint, CheckpointDelta, DiffForm, DiffOptions, Document, apply, compose, diff, invert,
    validate,
};
use checkpoints::{blocks, canonical, document, form, pair};
use proptest::prelude::*;

const TIME: &str = "2026-01-07T10:00:00Z";

fn checkpoint(text: &str, name: &str) -> Checkpoint {
    Checkpoint::parse(text).unwrap().named(name)
}

fn delta(a: &Checkpoint, b: &Checkpoint) -> CheckpointDelta {
    diff(a, b, &DiffOptions::created(TIME)).unwrap()
}

fn applied(a: &Checkpoint, delta: &CheckpointDelta) -> String {
    apply(a, delta).unwrap().text().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(300), ..ProptestConfig::default() })]

    #[test]
    fn a_delta_applied_is_the_second_checkpoint_byte_for_byte_in_canonical_form(
        (old, new) in pair(), from in 0..4_usize, to in 0..4_usize,
    ) {
        let (a, b) = (canonical(&old, from), canonical(&new, to));
        let (a, b) = (checkpoint(&a, "a"), checkpoint(&b, "b"));
        let delta = delta(&a, &b);
        prop_assert_eq!(applied(&a, &delta), b.text(), "{}", delta.text());
        prop_assert!(validate(&a, &delta, &b).unwrap().is_empty());
        let again = CheckpointDelta::parse(delta.text()).unwrap();
        prop_assert_eq!(applied(&a, &again), b.text());
    }

    #[test]
    fn a_delta_applied_is_the_second_checkpoint_byte_for_byte_in_any_form(
        (old, new) in pair(), of_a in form(), of_b in form(),
    ) {
        let (a, b) = (document(&old, &of_a), document(&new, &of_b));
        let (a, b) = (checkpoint(&a, "a"), checkpoint(&b, "b"));
        let delta = delta(&a, &b);
        let result = apply(&a, &delta).unwrap();
        prop_assert_eq!(result.text(), b.text(), "{}", delta.text());
        prop_assert!(validate(&a, &delta, &b).unwrap().is_empty());
        // A delta that was sent by someone whose lines end differently is the same.
        let sent = CheckpointDelta::parse(delta.text().replace('\n', "\r\n")).unwrap();
        prop_assert_eq!(applied(&a, &sent), result.text());
    }

    #[test]
    fn a_bounded_delta_applied_is_the_second_checkpoint_too(
        (old, new) in pair(), of_a in form(), of_b in form(),
    ) {
        let (a, b) = (document(&old, &of_a), document(&new, &of_b));
        let (a, b) = (checkpoint(&a, "a"), checkpoint(&b, "b"));
        let options = DiffOptions::created(TIME).with_form(DiffForm::Bounded);
        let delta = diff(&a, &b, &options).unwrap();
        let result = apply(&a, &delta).unwrap();
        prop_assert_eq!(result.text(), b.text(), "{}", delta.text());
        prop_assert!(delta.text().len() <= b.document().canonical().len() + 2_000);
    }

    #[test]
    fn before_and_after_never_read_the_same((old, new) in pair()) {
        let (a, b) = (canonical(&old, 0), canonical(&new, 1));
        let delta = delta(&checkpoint(&a, "a"), &checkpoint(&b, "b"));
        for change in delta.modified().into_iter().chain(delta.transitions()) {
            prop_assert_ne!(change.before, change.after, "{}", delta.text());
        }
    }

    #[test]
    fn what_lint_says_beforehand_is_what_apply_refuses(
        (old, new) in pair(), of_a in form(), of_b in form(), names in prop::sample::select(vec![
            "", "## Changes\n\n### Added\n\n", "## Changes\n\n### Removed\n\n",
            "## Merge Instructions\n\n",
        ]),
    ) {
        let a = checkpoint(&document(&old, &of_a), "a");
        let delta = CheckpointDelta::parse(format!("{names}{}", document(&new, &of_b))).unwrap();
        let found = lint_against(&delta, &a);
        let first = found.first().map(|found| found.line as u64);
        match apply(&a, &delta) {
            Ok(_) => prop_assert!(found.is_empty(), "{found:#?}"),
            Err(error) => prop_assert_eq!(error.place().line.or(Some(1)), first, "{}", error),
        }
        for found in found {
            let line = delta.document().line(found.line);
            prop_assert!(line.get(found.column - 1..found.column - 1 + found.length).is_some());
            prop_assert!(!found.message.is_empty());
        }
    }

    #[test]
    fn an_inverted_delta_leads_back(
        (old, new) in pair(), of_a in form(), of_b in form(),
    ) {
        let (a, b) = (document(&old, &of_a), document(&new, &of_b));
        let (a, b) = (checkpoint(&a, "a"), checkpoint(&b, "b"));
        let there = delta(&a, &b);
        let back = invert(&there).unwrap();
        prop_assert_eq!((back.from(), back.to()), (b.id(), a.id()));
        prop_assert_eq!(applied(&b, &back), a.text(), "{}", back.text());
        let twice = invert(&back).unwrap();
        prop_assert_eq!(applied(&a, &twice), b.text());
    }

    #[test]
    fn composed_deltas_do_what_both_do(
        (first, second) in pair(), third in blocks(), other in any::<bool>(), of in form(),
    ) {
        let c = if other { first.iter().rev().cloned().chain(third).collect() } else { third };
        let [a, b, c] = [(&first, "a"), (&second, "b"), (&c, "c")]
            .map(|(blocks, name)| checkpoint(&document(blocks, &of), name));
        let whole = compose(&delta(&a, &b), &delta(&b, &c));
        // Equal headers name all three alike.
        let whole = whole.unwrap();
        prop_assert_eq!((whole.from(), whole.to()), (a.id(), c.id()));
        prop_assert_eq!(applied(&a, &whole), c.text(), "{}", whole.text());
        let back = compose(&delta(&a, &b), &invert(&delta(&a, &b)).unwrap()).unwrap();
        prop_assert_eq!(applied(&a, &back), a.text());
    }

    #[test]
    fn an_unchanged_document_is_written_back_byte_for_byte(all in blocks(), of in form()) {
        let text = document(&all, &of);
        let read = Document::parse(text.clone()).unwrap();
        prop_assert_eq!(read.text(), &text);
        // Through the blocks and the lines between them too.
        let a = checkpoint(&text, "a");
        let delta = delta(&a, &a);
        prop_assert_eq!(&applied(&a, &delta), &text);
    }

    #[test]
    fn blocks_stand_in_order_and_hold_every_line_that_says_something(all in blocks(), of in form()) {
        let read = Document::parse(document(&all, &of)).unwrap();
        let mut next = header_lines(&read);
        for block in read.blocks() {
            let first = block.line() - 1;
            prop_assert!(first >= next, "{block:?}");
            for line in next..first {
                prop_assert!(read.line(line + 1).trim().is_empty());
            }
            next = first + read.text_of(block).split('\n').count();
        }
        for line in next..read.line_count() {
            prop_assert!(read.line(line + 1).trim().is_empty());
        }
    }
}

#[test]
fn entries_without_words_make_no_heading_of_what_stands_over_them() {
    let a = checkpoint("", "a");
    for text in ["## Merge Instructions\n\n-\n", "## Modified\n\n| |\n|---|\n| |\n", "#\n\n- \n"] {
        let b = checkpoint(text, "b");
        let delta = delta(&a, &b);
        assert_eq!(applied(&a, &delta), text, "{}", delta.text());
        assert_eq!(lint_delta(delta.document()), [], "{}", delta.text());
    }
}

#[test]
fn names_that_markdown_or_an_instruction_could_take_for_something_else_are_applied() {
    let table = |name: &str, state: &str| {
        format!("## Phases\n\n| Item | Status |\n|---|---|\n| {name} | {state} |\n")
    };
    for name in ["```", "~~~", "<!--", "<pre>", "<?", "# x", "- x", "1. x", "> x", "---"] {
        let (a, b) = (checkpoint(&table(name, "Open"), "a"), checkpoint(&table(name, "Done"), "b"));
        let delta = delta(&a, &b);
        assert_eq!(applied(&a, &delta), b.text(), "{}", delta.text());
        assert_eq!(lint_delta(delta.document()), [], "{}", delta.text());
    }
    for title in ["Foo after line 7", "Foo before line 1", "after line 2 (", "line 3"] {
        let a = checkpoint(&format!("## One\n\n- alpha\n\n## {title}\n\nbeta\n"), "a");
        let b = checkpoint(&format!("## One\n\n## {title}\n\nbeta\n\n- alpha\n"), "b");
        let delta = delta(&a, &b);
        assert_eq!(applied(&a, &delta), b.text(), "{}", delta.text());
    }
}

#[test]
fn an_id_or_a_time_that_no_header_could_hold_is_refused() {
    let (a, b) = (checkpoint("x\n", "a"), checkpoint("y\n", "\"'"));
    let error = |b: &Checkpoint, time: &str| diff(&a, b, &DiffOptions::created(time)).unwrap_err();
    assert!(error(&b, TIME).message().contains("the second checkpoint has no id"));
    for time in ["yesterday", "2026-01-07 10:00:00Z", "2026-01-07T10:00:00+01:00[Europe/Berlin]"] {
        assert!(error(&a, time).message().contains("expected a time such as"), "{time}");
    }
    // What a checkpoint says of itself may be of any form, and is not taken over.
    let b = checkpoint("---\ncheckpoint: b\ncreated: yesterday\n---\n", "");
    assert!(diff(&a, &b, &DiffOptions::default()).is_err());
    assert_eq!(delta(&a, &b).created(), Some(TIME));
}

#[test]
fn entries_that_changed_are_cut_where_they_differ() {
    let long = "The cache holds what was asked for last and is emptied whenever it is";
    let texts = [
        (format!("{long} full"), format!("{long} stale")),
        (format!("{long} full"), format!("{long} full, and then again")),
        ("a b".to_owned(), "a  b".to_owned()),
        (format!("First {long}"), format!("Then {long}")),
    ];
    let shown = texts.map(|(before, after)| {
        let of = |text: &str, id: &str| checkpoint(&format!("## Problem\n\n{text}\n"), id);
        let delta = delta(&of(&before, "a"), &of(&after, "b"));
        let change = delta.modified().remove(0);
        (change.before, change.after)
    });
    let expected = [
        ("…r it is full", "…r it is stale"),
        ("…is full", "…is full, and then again"),
        ("a·b", "a··b"),
        ("First The cache holds what was asked…", "Then The cache holds what was asked…"),
    ];
    for (found, expected) in shown.iter().zip(expected) {
        assert_eq!((found.0.as_str(), found.1.as_str()), expected);
    }
}

#[test]
fn a_bounded_delta_counts_the_shorter_of_two_fences() {
    let a = checkpoint("", "a");
    let options = DiffOptions::created(TIME).with_form(DiffForm::Bounded);
    let of = |text: &str| {
        let b = checkpoint(text, "b");
        let delta = diff(&a, &b, &options).unwrap();
        assert_eq!(applied(&a, &delta), text, "{}", delta.text());
        delta.text().len() - text.len()
    };
    let ticks = "`".repeat(10_000);
    assert!(of(&format!("## Problem\n\n{ticks}\n")) < 600);
    assert!(of(&format!("## Problem\n\n{ticks}\n\n~~~~~\nx\n~~~~~\n")) < 600);
    // Where both are long, the fences are as long as the shorter of them and one sign more.
    let both = format!("## Problem\n\n{ticks}\n\n{}\n", "~".repeat(2_000));
    assert!(of(&both) < 600 + 2 * 2_001);
}

#[test]
fn what_was_added_and_what_was_removed_never_read_the_same() {
    let long = "The cache holds what was asked for last and is emptied whenever it is";
    let shown = |before: &str, after: &str| {
        let of = |text: &str, id: &str| checkpoint(&format!("## Decisions\n\n{text}\n"), id);
        let delta = delta(&of(before, "a"), &of(after, "b"));
        let entries = |parts: Vec<afterimage_checkpoint::Part>| -> Vec<String> {
            parts.into_iter().flat_map(|part| part.entries).map(|entry| entry.join(" ")).collect()
        };
        (entries(delta.removed()), entries(delta.added()))
    };
    let found = shown(&format!("- {long} full\n- x"), &format!("- {long} stale\n- x"));
    assert_eq!((found.0[0].as_str(), found.1[0].as_str()), ("…r it is full", "…r it is stale"));
    let found = shown("- Cache is\u{200b} none\n- x", "- Cache is none\n- x");
    let found = (found.0[0].as_str(), found.1[0].as_str());
    assert_eq!(found, ("Cache·is<U+200B>·none", "Cache·is·none"));
}

#[test]
fn before_and_after_that_differ_by_an_invisible_character_show_it() {
    let of = |text: &str, id: &str| checkpoint(&format!("## Problem\n\n{text}\n"), id);
    let delta = delta(&of("a\u{200b}b", "a"), &of("ab", "b"));
    let change = delta.modified().remove(0);
    assert_eq!((change.before.as_str(), change.after.as_str()), ("a<U+200B>b", "ab"));
}
