//! What a single context does with room that is free: results go as far as they must, and names
//! of what is left out take what nothing else does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{captured, expands, masked, native, text_of};

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

/// The frames of which the middle is left out.
fn without_middle(fitted: &FittedContext) -> Vec<u64> {
    let shortened = fitted.shortened.iter().filter(|what| !what.is_masked());
    shortened.map(|what| what.frame.get()).collect()
}

#[test]
fn a_result_stays_where_a_larger_one_has_to_go_anyway_which_keeps_its_ends() {
    let frames = session(&[20, 400, 20, 20, 20]);
    let whole = whole(&frames);
    for less in [500, 1_000, 2_000] {
        let budget = Budget::once(whole - less);
        let (window, history, fitted) = once(&frames, budget);
        let total = fitted.context.tokens().total;
        assert_eq!((masked(&fitted), without_middle(&fitted)), (vec![], vec![4]), "{less}");
        assert!(total <= budget.low && total * 100 > budget.low * 93, "{total} of {}", budget.low);
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
    assert_eq!((masked(&fitted), without_middle(&fitted)), (vec![2, 4], vec![6]));
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
    let budget = Budget::new(775);
    let mut window = ContextWindow::new(native(), budget, budget.compression());
    let mut history = captured(&native(), &frames[..60]);
    let has_names =
        |fitted: &FittedContext| fitted.ledger.iter().any(|line| line.text.starts_with("Names:"));
    assert!(has_names(&render(&mut window, &mut history)));
    let mut epochs = 0;
    for frame in &frames[60..] {
        native().capture(&mut history, frame.clone(), NOW).unwrap();
        let fitted = render(&mut window, &mut history);
        epochs += usize::from(fitted.epoch.is_some());
        assert_eq!(has_names(&fitted), epochs == 0);
    }
    assert!(epochs > 0);
}

#[test]
fn names_stand_again_once_a_block_is_undone_also_in_a_window_that_was_saved() {
    let frames = session(&[30; 40]);
    let (mut window, mut history, before) = once(&frames, Budget::once(1_000));
    assert!(before.ledger.last().unwrap().text.starts_with("Names:"));
    window.compress_range(&mut history, 75.into()..=80.into(), NOW).unwrap();
    let during = render(&mut window, &mut history);
    assert_ne!(text_of(&during), text_of(&before));
    let saved = window.to_json();
    let mut loaded = ContextWindow::from_json(saved, native(), &mut history, NOW).unwrap();
    for window in [&mut window, &mut loaded] {
        window.undo(&history, "block-75-80").unwrap();
        assert_eq!(text_of(&render(window, &mut history)), text_of(&before));
    }
}

#[test]
fn what_is_shortened_alone_takes_the_room_that_is_free() {
    let words = |number: u64| format!("Sail to berth {number} and tell the pilot of it.\n");
    let long: String = (0..2_000).map(words).collect();
    let asked = |text: &str| {
        let facet = Facet::new("asked", "message", text);
        vec![Frame::new(0, Source::User).with(FacetOp::add(facet))]
    };
    let mut result = session(&[2_000]);
    result.truncate(3);
    for frames in [asked(&long), asked(&long.replace('\n', " ")), result] {
        let whole = whole(&frames);
        for budget in [1_000, 4_000, whole - 500, whole - 1] {
            let budget = Budget::once(budget);
            let (window, history, fitted) = once(&frames, budget);
            let total = fitted.context.tokens().total;
            let most = budget.max_tokens;
            assert!(total <= most && total * 10 > most * 9, "{total} of {most}");
            expands(&window, &history, &fitted);
        }
    }
}

#[test]
fn a_last_instruction_that_grows_back_keeps_the_rules_of_its_middle() {
    let words = |number: u64| format!("Sail to berth {number} and tell the pilot of it.\n");
    let (head, end): (String, String) =
        ((0..600).map(words).collect(), (600..1_200).map(words).collect());
    let rule = "Never touch the sluice.";
    let mut frames = session(&[30; 4]);
    let last = Facet::new("order", "message", format!("{head}{rule}\n{end}"));
    frames.push(Frame::new(frames.len() as u64, Source::User).with(FacetOp::add(last)));
    for tokens in [2_000, 4_000, 8_000, 12_000] {
        let (_, _, fitted) = once(&frames, Budget::once(tokens));
        let order = fitted.context.messages().last().unwrap().content();
        assert!(order.contains(rule), "{tokens}: {order}");
    }
}

/// A session whose first results stand in one frame, with these words of the user behind them.
fn together(results: usize, words: &str) -> Vec<Frame> {
    let mut frames = vec![
        Frame::new(0, Source::User).with(FacetOp::add(Facet::new("asked", "message", "Look."))),
    ];
    let id = |number: usize| format!("t{number}");
    let (mut calls, mut answers) = (Frame::new(1, Source::Agent), Frame::new(2, Source::User));
    for number in 0..results {
        let arguments = json::read(br#"{"harbour":"north"}"#).unwrap();
        let call = Facet::tool_call(format!("tc-{number}"), Some(&id(number)), "berths", arguments);
        let text = lines(&format!("T{number}"), 60);
        let answer = Facet::tool_result(format!("tr-{number}"), Some(&id(number)), None, text);
        calls.ops.push(FacetOp::add(call));
        answers.ops.push(FacetOp::add(answer));
    }
    if !words.is_empty() {
        answers.ops.push(FacetOp::add(Facet::new("words", "message", words)));
    }
    frames.extend([calls, answers]);
    frames.extend(
        session(&[20; 6])
            .into_iter()
            .skip(1)
            .map(|frame| Frame { sequence: (frame.sequence.get() + 2).into(), ..frame }),
    );
    frames
}

#[test]
fn a_frame_with_several_results_or_with_words_becomes_lines_and_keeps_the_words() {
    let words = "The gate is shut at night, and nobody opens it. ".repeat(60);
    for frames in [together(1, &words), together(5, "")] {
        let (_, _, fitted) = once(&frames, Budget::once(whole(&frames) - 200));
        assert_eq!((masked(&fitted), without_middle(&fitted)), (vec![2], vec![]));
        let text = text_of(&fitted);
        let asked = frames[2].ops.len();
        assert!(text.contains("[… berths north → 60 lines; "), "{asked}: {text}");
        assert!(asked > 2 || text.contains(words.trim_end()), "{text}");
    }
}
