//! Any text is a document: it is written back, linted, and led over to another one and back by
//! deltas; any text is a delta, and is applied or refused.
#![no_main]

use afterimage::checkpoint::{
    Checkpoint, CheckpointDelta, DiffForm, DiffOptions, Document, DocumentKind, apply, compose,
    diff, invert, lint, preview, shrink, validate,
};
use afterimage::tokens::Chars4;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = Document::read(bytes) else { return };
    assert_eq!(document.text().as_bytes(), bytes);
    for kind in [DocumentKind::Checkpoint, DocumentKind::Delta] {
        for found in lint(&document, kind) {
            let line = document.line(found.line);
            assert!(line.get(found.column - 1..found.column - 1 + found.length).is_some());
        }
    }
    let text = document.text();
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = text.split_at(half);
    let named = |text: &str, id: &str| Checkpoint::parse(text).ok().map(|read| read.named(id));
    let (Some(a), Some(b)) = (named(first, "a"), named(second, "b")) else { return };

    let options = DiffOptions::created("2026-01-05T10:00:00Z");
    let delta = diff(&a, &b, &options).expect("both have an id");
    assert_eq!(apply(&a, &delta).expect("a delta of the two").document(), b.document());
    assert!(validate(&a, &delta, &b).expect("a delta of the two").is_empty());
    let found = lint(delta.document(), DocumentKind::Delta);
    let allowed = ["empty-delta", "decision-gone"];
    assert!(found.iter().all(|found| allowed.contains(&found.code)), "{found:?}");
    let back = invert(&delta).expect("an exact delta");
    assert_eq!(apply(&b, &back).expect("its inverse").document(), a.document());
    let nothing = compose(&delta, &back).expect("they meet");
    assert_eq!(apply(&a, &nothing).expect("there and back").document(), a.document());

    let bounded = diff(&a, &b, &options.with_form(DiffForm::Bounded)).expect("both have an id");
    assert_eq!(apply(&a, &bounded).expect("a delta of the two").document(), b.document());

    // A text that calls itself a delta.
    if let Ok(written) = CheckpointDelta::parse(second) {
        let _ = written.categories();
        let _ = invert(&written);
        let refused = !preview(&a, &written).refusals().is_empty();
        let result = apply(&a, &written);
        assert_eq!(result.is_err(), refused);
        if let Ok(result) = result {
            let _ = lint(result.document(), DocumentKind::Checkpoint);
        }
    }
    if let Ok(shrunk) = shrink(&a, 40, &Chars4) {
        assert!(shrunk.tokens <= 40);
    }
});
