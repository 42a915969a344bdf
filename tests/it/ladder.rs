//! What a context loses goes in order: results that say nothing new, old results, then the rest.
#![allow(clippy::unwrap_used)]

use crate::support::compressing;

use std::sync::Arc;

use afterimage::{
    compress::{CompressionOptions, OutlineEngine},
    hud::{Hud, NativeFormat, RenderRequest},
    id::Millis,
    json,
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, ContextWindow, FittedContext},
};

const NOW: Millis = Millis::new(0);

/// A session in which an agent reads files; `reads` are their names.
fn session(reads: &[&str]) -> (Hud, History) {
    let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
    let mut history = History::new();
    let mut push = |source: Source, facet: Facet| {
        let sequence = history.frames().len() as u64;
        let frame = Frame::new(sequence, source).with(FacetOp::add(facet));
        hud.capture(&mut history, frame, NOW).unwrap();
    };
    push(Source::User, Facet::new("asked", "message", "Compare the tide tables."));
    for (number, name) in reads.iter().enumerate() {
        let id = format!("c{number}");
        let path = json::read(format!(r#"{{"path":"{name}"}}"#).as_bytes()).unwrap();
        push(Source::Agent, Facet::tool_call(format!("call-{number}"), Some(&id), "read", path));
        let text: String = (0..60).map(|line| format!("{name} at {line}: calm water\n")).collect();
        let result = Facet::tool_result(format!("seen-{number}"), Some(&id), None, text);
        push(Source::Environment, result);
    }
    push(Source::Agent, Facet::new("said", "message", "I have read them."));
    push(Source::User, Facet::new("next", "message", "Go on."));
    (hud, history)
}

fn fitted(reads: &[&str], tokens: u64) -> (ContextWindow, History, FittedContext) {
    let (hud, mut history) = session(reads);
    let options = CompressionOptions::default();
    let mut window = ContextWindow::new(hud, Budget::once(tokens), options);
    let request = RenderRequest::default();
    let fitted = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    assert!(fitted.context.tokens().total <= tokens);
    (window, history, fitted)
}

/// The frames of masked results, and how many blocks there are.
fn lost(window: &ContextWindow, fitted: &FittedContext) -> (Vec<u64>, usize) {
    let masked = fitted.shortened.iter().filter(|what| what.is_masked());
    (masked.map(|what| what.frame.get()).collect(), window.transform().blocks().count())
}

#[test]
fn a_file_that_is_read_again_stands_once_before_anything_else_goes() {
    let reads = ["north", "south", "north", "east"];
    let whole = fitted(&reads, 100_000).2.context.tokens().total;
    let (window, history, fitted) = fitted(&reads, whole - 100);
    assert_eq!(lost(&window, &fitted), (vec![2], 0));
    let mask = fitted.shortened.first().unwrap();
    let text =
        fitted.context.messages().iter().map(|message| message.content()).collect::<String>();
    assert!(text.contains("[… read north → 60 lines; "), "{text}");
    assert!(text.contains("expand masked-2 …]"), "{text}");
    let original = window.expand(&history, &mask.id).unwrap();
    let snapshot = history.snapshot(mask.frame).unwrap();
    assert_eq!(original.first().unwrap().snapshot.text(), snapshot.text());
}

#[test]
fn of_repeated_results_the_oldest_go_and_no_more_than_must() {
    let reads = ["north", "north", "north", "north", "east"];
    let whole = fitted(&reads, 100_000).2.context.tokens().total;
    let (window, _, fitted) = fitted(&reads, whole - 100);
    assert_eq!(lost(&window, &fitted), (vec![2], 0));
}

#[test]
fn the_oldest_results_go_next_and_no_more_than_must() {
    let reads = ["north", "south", "west", "east", "harbour", "pier"];
    let whole = fitted(&reads, 100_000).2.context.tokens().total;
    let (window, _, one) = fitted(&reads, whole - 100);
    assert_eq!((compressing::shortened(&one), lost(&window, &one)), (vec![2], (vec![], 0)));
    let (window, _, one) = fitted(&reads, whole - 350);
    let (masked, blocks) = lost(&window, &one);
    assert_eq!((masked.first(), blocks), (Some(&2), 0));
    let (window, _, other) = fitted(&reads, whole * 2 / 3);
    let (more, blocks) = lost(&window, &other);
    assert!(more.len() > masked.len() && more.starts_with(&masked), "{masked:?} {more:?}");
    assert_eq!(blocks, 0);
    // The calls stand as they were: what was done can be read.
    let text = other.context.messages().iter().map(|message| message.content()).collect::<String>();
    for name in reads {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn what_masks_do_not_save_is_summarised() {
    let names: Vec<String> = (0..40).map(|number| format!("table-{number}")).collect();
    let reads: Vec<&str> = names.iter().map(String::as_str).collect();
    let (window, _, fitted) = fitted(&reads, 1_600);
    assert!(lost(&window, &fitted).1 > 0);
}

/// How many ranges are planned at a time while a long history is compressed at once.
fn planned(history: &mut History, answers: bool) -> Vec<usize> {
    let budget = Budget::once(2_000);
    let mut window = ContextWindow::new(compressing::native(), budget, budget.compression());
    let (request, mut plans, mut known) = (RenderRequest::default(), Vec::new(), 0);
    while let Some(job) = window.next_job(history, &request, NOW).unwrap() {
        let ranges = window.transform().ranges().count();
        if ranges > known {
            plans.push(ranges - known);
            known = ranges;
        }
        if answers {
            window.run(&job, history, &OutlineEngine, NOW).unwrap();
        } else {
            window.fail(&job, "down", NOW).unwrap();
        }
    }
    plans
}

#[test]
fn a_long_history_takes_few_plans_and_an_engine_that_is_down_few_jobs() {
    let mut history = compressing::captured(&compressing::native(), &compressing::turns(1_500));
    let plans = planned(&mut history, true);
    let ranges: usize = plans.iter().sum();
    // Five at first, then as many as were answered before, until little is left to save.
    assert!(ranges > 50 && plans.len() < ranges / 6, "{plans:?}");
    assert!(plans.starts_with(&[5, 5, 10, 20]), "{plans:?}");
    let failed = planned(&mut history, false);
    assert!(failed.iter().sum::<usize>() <= 5, "{failed:?}");
}
