//! Checkpoints and the deltas between them: what holds for any document.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "support/checkpoints.rs"]
mod checkpoints;
#[path = "support/data.rs"]
mod data;

use afterimage::checkpoint::{
    Checkpoint, CheckpointDelta, DiffOptions, Document, FrontMatter, apply, compose, diff, invert,
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

/// The lines of a text, by a rule of its own: without a byte order mark and their ends.
fn lines(text: &str) -> Vec<String> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

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
    fn a_delta_applied_is_the_second_checkpoint_as_a_document_in_any_form(
        (old, new) in pair(), of_a in form(), of_b in form(),
    ) {
        let (a, b) = (document(&old, &of_a), document(&new, &of_b));
        let (a, b) = (checkpoint(&a, "a"), checkpoint(&b, "b"));
        let delta = delta(&a, &b);
        let result = apply(&a, &delta).unwrap();
        prop_assert_eq!(result.document(), b.document(), "{}", delta.text());
        prop_assert_eq!(lines(result.text()), lines(b.text()));
        prop_assert_eq!(result.document().canonical(), b.document().canonical());
        // A delta that was sent by someone whose lines end differently is the same.
        let sent = CheckpointDelta::parse(delta.text().replace('\n', "\r\n")).unwrap();
        prop_assert_eq!(applied(&a, &sent), result.text());
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
        prop_assert_eq!(lines(apply(&b, &back).unwrap().text()), lines(a.text()), "{}", back.text());
        let twice = invert(&back).unwrap();
        prop_assert_eq!(lines(apply(&a, &twice).unwrap().text()), lines(b.text()));
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
        prop_assert_eq!(lines(apply(&a, &whole).unwrap().text()), lines(c.text()), "{}", whole.text());
        let back = compose(&delta(&a, &b), &invert(&delta(&a, &b)).unwrap()).unwrap();
        prop_assert_eq!(lines(apply(&a, &back).unwrap().text()), lines(a.text()));
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
        let mut next = read.front_matter().map_or(0, FrontMatter::line_count);
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
        assert_eq!(afterimage::checkpoint::lint_delta(delta.document()), [], "{}", delta.text());
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
        assert_eq!(afterimage::checkpoint::lint_delta(delta.document()), [], "{}", delta.text());
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
