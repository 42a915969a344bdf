//! What a single context does with room that is free: results go as far as they must, and names
//! of what is left out take what nothing else does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{captured, expands, masked, native};

use std::fmt::Write as _;

use afterimage::{
    compress::OutlineEngine,
    hud::RenderRequest,
    id::Millis,
    json,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, ContextWindow, FittedContext},
};

const NOW: Millis = Millis::new(0);

/// So many lines about berths, each with a number of its own.
fn lines(name: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{name}-{line:04} lies at pier {name}{line}, {} m", line * 7 % 90);
        text
    })
}

/// A session of calls with results of so many lines. The result of call `n` is the frame `2n + 2`.
fn session(results: &[usize]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut push = |source: Source, facet: Facet| {
        frames.push(Frame::new(frames.len() as u64, source).with(FacetOp::add(facet)));
    };
    push(Source::User, Facet::new("asked", "message", "Which berths are free?"));
    for (number, count) in results.iter().enumerate() {
        let id = format!("c{number}");
        let arguments = json::read(format!(r#"{{"harbour":"H{number}"}}"#).as_bytes()).unwrap();
        let call = Facet::tool_call(format!("call-{number}"), Some(&id), "berths", arguments);
        push(Source::Agent, call);
        let text = lines(&format!("Q{number}"), *count);
        push(Source::Environment, Facet::tool_result(format!("r-{number}"), Some(&id), None, text));
    }
    push(Source::Agent, Facet::new("said", "message", "I have read them."));
    push(Source::User, Facet::new("next", "message", "Go on."));
    frames
}

fn render(window: &mut ContextWindow, history: &mut History) -> FittedContext {
    window.render(history, &RenderRequest::default(), &OutlineEngine, NOW).unwrap()
}

fn once(frames: &[Frame], budget: Budget) -> (ContextWindow, History, FittedContext) {
    let mut history = captured(&native(), frames);
    let mut window = ContextWindow::new(native(), budget, budget.compression());
    let fitted = render(&mut window, &mut history);
    (window, history, fitted)
}

fn whole(frames: &[Frame]) -> u64 {
    once(frames, Budget::once(10_000_000)).2.context.tokens().total
}

fn shortened(fitted: &FittedContext) -> Vec<u64> {
    let shortened = fitted.shortened.iter().filter(|what| !what.is_masked());
    shortened.map(|what| what.frame.get()).collect()
}

fn text_of(fitted: &FittedContext) -> String {
    let texts = fitted.context.messages().iter().map(|message| message.content().into_owned());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_result_stays_where_a_larger_one_has_to_go_anyway_which_keeps_its_ends() {
    let frames = session(&[20, 400, 20, 20, 20]);
    let whole = whole(&frames);
    for less in [500, 1_000, 2_000] {
        let budget = Budget::once(whole - less);
        let (window, history, fitted) = once(&frames, budget);
        let total = fitted.context.tokens().total;
        assert_eq!((masked(&fitted), shortened(&fitted)), (vec![], vec![4]), "{less}");
        assert!(total <= budget.low && total * 100 > budget.low * 97, "{total} of {}", budget.low);
        let text = text_of(&fitted);
        for stands in [lines("Q0", 20).trim_end(), "Q1-0000", "Q1-0399", lines("Q4", 20).trim_end()]
        {
            assert!(text.contains(stands), "{less}: {stands}");
        }
        expands(&window, &history, &fitted);
    }
}

#[test]
fn results_go_as_lines_the_oldest_first_and_the_newest_of_them_keeps_its_ends() {
    let frames = session(&[100; 8]);
    let history = captured(&native(), &frames);
    let tokens = history.snapshot(2.into()).unwrap().total_tokens();
    let budget = Budget::once(whole(&frames) - tokens * 2);
    let (_, _, fitted) = once(&frames, budget);
    assert_eq!((masked(&fitted), shortened(&fitted)), (vec![2, 4], vec![6]));
}

#[test]
fn names_of_what_is_left_out_take_the_room_that_is_free() {
    let frames = session(&[30; 24]);
    let budget = Budget::once(whole(&frames) / 8);
    let (mut window, mut history, fitted) = once(&frames, budget);
    assert!(window.transform().blocks().count() > 0);
    let total = fitted.context.tokens().total;
    assert!(total <= budget.low && total * 100 > budget.low * 97, "{total} of {}", budget.low);
    let line = fitted.ledger.last().unwrap();
    let names = line.text.strip_prefix("Names: ").unwrap();
    assert_eq!(line.frame, None);
    let text = text_of(&fitted);
    let said: Vec<String> = frames.iter().map(|frame| format!("{frame:?}")).collect();
    let words: Vec<&str> = text.split([' ', '\n', '(', ')', ':', ',', ';', '"']).collect();
    for name in names.split(' ') {
        let count = words.iter().filter(|word| **word == name).count();
        assert_eq!(count, 1, "{name} stands elsewhere");
        assert!(said.iter().any(|frame| frame.contains(name)), "{name} was never said");
    }
    // It stands as long as nothing changes, also in a window that was saved and loaded.
    let saved = window.to_json();
    let mut loaded = ContextWindow::from_json(saved, native(), &mut history, NOW).unwrap();
    let next = render(&mut window, &mut history);
    assert_eq!(text_of(&next), text);
    assert_eq!(text_of(&render(&mut loaded, &mut history)), text);
    // Without a ledger there is no place for them.
    let (_, _, without) = once(&frames, Budget { ledger: 0, ..budget });
    assert!(without.ledger.is_empty());
}

#[test]
fn a_session_that_goes_on_has_names_until_the_next_epoch_alone() {
    let frames = session(&[30; 40]);
    let budget = Budget::new(3_000);
    let mut window = ContextWindow::new(native(), budget, budget.compression());
    let mut history = captured(&native(), &frames[..60]);
    render(&mut window, &mut history);
    let mut epochs = 0;
    for frame in &frames[60..] {
        native().capture(&mut history, frame.clone(), NOW).unwrap();
        let fitted = render(&mut window, &mut history);
        epochs += usize::from(fitted.epoch.is_some());
        let has_names = fitted.ledger.iter().any(|line| line.text.starts_with("Names:"));
        assert!(epochs == 0 || !has_names);
    }
    assert!(epochs > 0);
}
