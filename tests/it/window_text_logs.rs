//! Logs without calls in a window: what a program answers to a command in the agent's text, in the
//! user's place, goes as the result of a call does; words that answer no command never do.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{
    self, captured, expands, hud, masked, native, shortened, text_of,
};
use afterimage_testkit::data;

use std::fmt::Write as _;

use afterimage::{
    Error, ErrorKind,
    compress::{CompressionJob, CompressionOptions, Engine, FnEngine, OutlineEngine},
    hud::{Hud, RenderRequest},
    id::{FrameSeq, Millis},
    json,
    tokens::TokenCounter,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, ContextWindow, FittedContext},
};

const NOW: Millis = Millis::new(0);

/// What the user says last in [`log`].
const LAST: &str = "Go on with the harbour.";

fn said(frames: &mut Vec<Frame>, source: Source, text: &str) {
    let number = frames.len() as u64;
    let facet = Facet::new(format!("m-{number}"), "message", text);
    frames.push(Frame::new(number, source).with(FacetOp::add(facet)));
}

/// So many lines that name a file.
fn table(name: &str, lines: usize) -> String {
    (0..lines).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{name}:{line} = calm_water({line})");
        text
    })
}

fn output(text: &str) -> String {
    format!("<returncode>0</returncode>\n<output>\n{text}</output>")
}

/// A session whose commands stand in the agent's text: each command with what it prints.
fn log(commands: &[(&str, String)]) -> Vec<Frame> {
    let mut frames = Vec::new();
    said(&mut frames, Source::User, "Compare the tide tables. Never touch the core.");
    for (command, printed) in commands {
        said(&mut frames, Source::Agent, &format!("I look.\n\n```bash\n{command}\n```"));
        said(&mut frames, Source::User, printed);
    }
    said(&mut frames, Source::Agent, "I have read them.");
    said(&mut frames, Source::User, LAST);
    frames
}

fn reads(names: &[&str]) -> Vec<Frame> {
    let commands: Vec<String> = names.iter().map(|name| format!("cat {name}.txt")).collect();
    let printed = names.iter().map(|name| output(&table(name, 60)));
    log(&commands.iter().map(|command| &**command).zip(printed).collect::<Vec<_>>())
}

fn render(window: &mut ContextWindow, history: &mut History) -> FittedContext {
    window.render(history, &RenderRequest::default(), &OutlineEngine, NOW).unwrap()
}

/// The context of all frames within `tokens`.
fn fitted(hud: &Hud, frames: &[Frame], tokens: u64) -> (ContextWindow, History, FittedContext) {
    let mut history = captured(hud, frames);
    let options = CompressionOptions::default();
    let mut window = ContextWindow::new(hud.clone(), Budget::once(tokens), options);
    let fitted = render(&mut window, &mut history);
    assert!(fitted.context.tokens().total <= tokens);
    (window, history, fitted)
}

fn whole(hud: &Hud, frames: &[Frame]) -> u64 {
    fitted(hud, frames, 1_000_000).2.context.tokens().total
}

#[test]
fn the_output_of_a_command_in_the_agents_text_becomes_a_line_with_the_command() {
    let frames = reads(&["north", "south", "east"]);
    for hud in [native(), hud()] {
        let (window, history, fitted) = fitted(&hud, &frames, whole(&hud, &frames) - 250);
        assert_eq!(masked(&fitted), [2]);
        assert_eq!(window.transform().blocks().count(), 0);
        let text = text_of(&fitted);
        let line = "[… shell cat north.txt → 60 lines; ";
        assert!(text.contains(line) && text.contains("expand masked-2 …]"), "{text}");
        // The command stands as it was, and so do other outputs.
        assert!(text.contains("```bash\ncat north.txt\n```"), "{text}");
        assert!(text.contains("south:59 = calm_water(59)"), "{text}");
        expands(&window, &history, &fitted);
        let frame = |at: u64| history.snapshot(FrameSeq::new(at)).unwrap();
        let last = frame(history.frames().len() as u64 - 1);
        for words in [frame(0), last] {
            assert!(text.contains(words.text()), "{text}");
        }
    }
}

#[test]
fn what_failed_is_told_by_its_line() {
    let failed = format!(
        "<returncode>1</returncode>\n<output>\n{}AssertionError: the tide is 7\n</output>",
        table("x", 60)
    );
    let commands = [("python check.py", failed), ("cat east.txt", output(&table("east", 60)))];
    let frames = log(&commands);
    let (_, _, fitted) = fitted(&native(), &frames, whole(&native(), &frames) - 250);
    assert_eq!(masked(&fitted), [2]);
    let text = text_of(&fitted);
    assert!(text.contains("[… shell python check.py → failed: "), "{text}");
    assert!(text.contains("AssertionError: the tide is 7"), "{text}");
}

#[test]
fn the_same_output_stands_once_and_a_command_that_ran_again_by_its_last_output() {
    let frames = reads(&["east", "north", "south", "north", "west"]);
    let hud = native();
    let (_, _, same) = fitted(&hud, &frames, whole(&hud, &frames) - 250);
    assert_eq!(masked(&same), [4]);
    let of = |name: &str| output(&table(name, 60));
    let again = [
        ("cat pier.txt", of("pier")),
        ("cat quay.txt", of("early")),
        ("cat quay.txt", of("late")),
        ("cat lock.txt", of("lock")),
    ];
    let (frames, hud) = (log(&again), native());
    let (_, _, again) = fitted(&hud, &frames, whole(&hud, &frames) - 250);
    assert_eq!(masked(&again), [4]);
    // Which lines these show depends on what was shown before: the oldest goes, and not the first.
    let scrolled = [
        ("open a.py", format!("[File: a.py (90 lines total)]\n{}", table("a", 60))),
        ("scroll_down", format!("[File: a.py (90 lines total)]\n{}", table("b", 60))),
        ("scroll_down", format!("[File: a.py (90 lines total)]\n{}", table("c", 60))),
        ("goto 7", format!("[File: a.py (90 lines total)]\n{}", table("d", 60))),
        ("goto 7", format!("[File: b.py (90 lines total)]\n{}", table("e", 60))),
    ];
    let frames = log(&scrolled);
    let (_, _, scrolled) = fitted(&hud, &frames, whole(&hud, &frames) - 250);
    assert_eq!(masked(&scrolled), [2]);
}

#[test]
fn words_in_the_users_place_are_no_output() {
    let mut frames = Vec::new();
    said(&mut frames, Source::User, "Fix it.");
    // Nobody waits for a command: these are words, and what programs say for the user.
    said(&mut frames, Source::Agent, "What do you see?");
    said(&mut frames, Source::User, &"The tide comes in, and the gate does not shut. ".repeat(40));
    said(&mut frames, Source::Agent, "I see.");
    said(
        &mut frames,
        Source::User,
        &format!("<system-reminder>\n{}</system-reminder>", table("rule", 60)),
    );
    said(&mut frames, Source::Agent, "I know.");
    let facet = Facet::new("operator", afterimage::id::FacetType::SYSTEM, table("operator", 60));
    frames.push(Frame::new(frames.len() as u64, Source::System).with(FacetOp::add(facet)));
    for name in ["north", "south", "east", "west", "pier"] {
        said(&mut frames, Source::Agent, &format!("I look.\n```bash\ncat {name}.txt\n```"));
        said(&mut frames, Source::User, &output(&table(name, 60)));
    }
    said(&mut frames, Source::User, LAST);
    let hud = native();
    let (_, _, fitted) = fitted(&hud, &frames, whole(&hud, &frames) - 250);
    assert_eq!(masked(&fitted), [8]);
}

#[test]
fn words_right_after_a_command_go_as_its_output_once_a_program_has_answered_one() {
    let words = "The tide comes in, and the gate does not shut. ".repeat(40);
    let printed = |name: &str| output(&table(name, 60));
    let session = |before: &[(&str, String)]| {
        let after = [("cat east.txt", printed("east")), ("cat west.txt", printed("west"))];
        log(&[before, &[("make", words.clone())], &after].concat())
    };
    let check = |frames: &[Frame], excess: u64, expected: &[u64]| {
        let hud = native();
        let (window, history, fitted) = fitted(&hud, frames, whole(&hud, frames) - excess);
        assert_eq!(shortened(&fitted), expected);
        expands(&window, &history, &fitted);
    };
    // A program has answered the first command: what follows one is what it prints.
    check(&session(&[("cat north.txt", printed("north"))]), 500, &[2, 4]);
    // None has: words are told by how they read.
    check(&session(&[]), 300, &[4]);
}

#[test]
fn an_output_with_words_behind_it_stays() {
    let hud = native();
    let with_words = output(&table("north", 60)) + "\nBy the way: never touch the southern quay.";
    let others = ["south", "east", "west"].map(|name| output(&table(name, 60)));
    let [south, east, west] = others;
    let commands = [
        ("cat north.txt", with_words),
        ("cat south.txt", south),
        ("cat east.txt", east),
        ("cat west.txt", west),
    ];
    let frames = log(&commands);
    let (_, _, fitted) = fitted(&hud, &frames, whole(&hud, &frames) - 250);
    // The output of the first command is in frame 2.
    assert_eq!(masked(&fitted), [4]);
    assert!(text_of(&fitted).contains("never touch the southern quay"));
}

#[test]
fn in_a_log_with_calls_a_block_of_code_is_no_command() {
    let mut frames = Vec::new();
    said(&mut frames, Source::User, "Fix it.");
    let path = json::read(br#"{"path":"a.py"}"#).unwrap();
    let call = Facet::tool_call("call", Some("c"), "read", path);
    let result = Facet::tool_result("result", Some("c"), None, "x");
    frames.push(Frame::new(1, Source::Agent).with(FacetOp::add(call)));
    frames.push(Frame::new(2, Source::Environment).with(FacetOp::add(result)));
    for name in ["north", "south", "east"] {
        said(&mut frames, Source::Agent, "You may run:\n```bash\nmake\n```");
        said(&mut frames, Source::User, &output(&table(name, 60)));
    }
    said(&mut frames, Source::Agent, "Good.");
    said(&mut frames, Source::User, LAST);
    let hud = native();
    let (_, _, fitted) = fitted(&hud, &frames, whole(&hud, &frames) - 250);
    assert_eq!(masked(&fitted), [] as [u64; 0]);
}

#[test]
fn large_output_is_shortened_when_it_comes() {
    let mut commands: Vec<(String, String)> =
        (0..8).map(|at| (format!("cat {at}.txt"), output(&table(&format!("t{at}"), 60)))).collect();
    commands.push(("cat all.txt".to_owned(), output(&table("all", 400))));
    let commands: Vec<(&str, String)> =
        commands.iter().map(|(command, printed)| (&**command, printed.clone())).collect();
    let frames = log(&commands);
    let large = FrameSeq::new(18);
    let (hud, budget) = (native(), Budget::new(8_000));
    let mut history = captured(&hud, &frames);
    let mut window = ContextWindow::new(hud, budget, budget.compression());
    let fitted = render(&mut window, &mut history);
    let what = fitted.shortened.iter().find(|what| what.frame == large).unwrap();
    assert!(!what.is_masked());
    assert!(what.tokens <= budget.largest_result && what.original_tokens > what.tokens * 2);
    expands(&window, &history, &fitted);
}

/// Saves and loads a window beside the same history.
fn again(window: &ContextWindow, frames: &[Frame]) -> (ContextWindow, History) {
    let mut history = captured(&native(), frames);
    let saved = json::read(window.to_json().to_string().as_bytes()).unwrap();
    (ContextWindow::from_json(saved, native(), &mut history, NOW).unwrap(), history)
}

#[test]
fn a_window_that_is_loaded_after_it_masked_goes_on_byte_for_byte() {
    let names: Vec<String> = (0..24).map(|number| format!("table-{number}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut frames = reads(&names);
    frames.truncate(frames.len() - 2);
    let (hud, budget) = (native(), Budget::once(6_000));
    let (mut history, mut loaded) = (History::new(), None);
    let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
    let (mut masks, mut loads) = (0, 0);
    for (at, frame) in frames.iter().enumerate() {
        hud.capture(&mut history, frame.clone(), NOW).unwrap();
        let here = render(&mut window, &mut history);
        if let Some((mut window, mut history)) = loaded.take() {
            let there = render(&mut window, &mut history);
            assert_eq!(there.context.to_json(), here.context.to_json(), "frame {at}");
            assert_eq!(there.shortened, here.shortened, "frame {at}");
            loads += 1;
        }
        let now = masked(&here).len();
        // One that was saved right after it masked, and the next frame.
        if now != masks && at + 1 < frames.len() {
            loaded = Some(again(&window, &frames[..=at + 1]));
        }
        masks = now;
    }
    assert!(loads > 3, "{loads}");
}

#[test]
fn what_was_masked_stands_again_as_it_was_once_a_block_is_undone() {
    let frames = reads(&["north", "south", "east", "west", "pier", "quay"]);
    let hud = native();
    let tokens = whole(&hud, &frames) * 2 / 3;
    let (mut window, mut history, before) = fitted(&hud, &frames, tokens);
    assert!(masked(&before).starts_with(&[2, 4]), "{:?}", before.shortened);
    let mid = masked(&before)[1];
    let plan = window.compress_range(&mut history, 1.into()..=mid.into(), NOW).unwrap();
    assert_eq!(plan.goes, [FrameSeq::new(1)..=FrameSeq::new(mid)]);
    let compressed = render(&mut window, &mut history);
    assert_eq!(masked(&compressed), masked(&before)[2..]);
    let id = window.transform().blocks().next().unwrap().id.to_string();
    // Also where the window is saved and loaded in between.
    let (mut other, mut beside) = again(&window, &frames);
    for (window, history) in [(&mut window, &mut history), (&mut other, &mut beside)] {
        window.undo(history, &id).unwrap();
        // The lines came back with the frames: no plan had to mask them once more.
        for frame in [2, mid] {
            assert!(window.expand(history, &format!("masked-{frame}")).is_ok(), "{frame}");
        }
        let after = render(window, history);
        assert_eq!(after.context.to_json(), before.context.to_json());
        assert_eq!(after.shortened, before.shortened);
        expands(window, history, &after);
    }
}

#[test]
fn a_block_ends_behind_an_output_also_where_the_user_says_more_in_it() {
    let printed = |name: &str| output(&table(name, 20)) + "\nBy the way, look at the quay too.";
    let names: Vec<String> = (0..40).map(|number| format!("cat t{number}.txt")).collect();
    let commands = names.iter().map(|name| (&**name, printed(name)));
    let frames = log(&commands.collect::<Vec<_>>());
    let mut blocks = 0;
    for tokens in [1_000, 2_000, 3_000, 4_000] {
        let (window, _, _) = fitted(&native(), &frames, tokens);
        for block in window.transform().blocks() {
            blocks += 1;
            let to = block.to.get();
            assert!(to.is_multiple_of(2) || to >= 81, "{tokens}: {}", block.id);
        }
    }
    assert!(blocks > 4);
}

#[test]
fn neither_a_block_nor_a_drop_parts_a_command_from_its_output() {
    let names: Vec<String> = (0..24).map(|number| format!("table{number}")).collect();
    let frames = reads(&names.iter().map(|name| &**name).collect::<Vec<_>>());
    // Commands stand in the frames with odd numbers, each before its output.
    let is_whole = |from: FrameSeq, to: FrameSeq| {
        let last = frames.len() as u64 - 3;
        from.get() % 2 == 1 && (to.get().is_multiple_of(2) || to.get() > last)
    };
    let none = FnEngine::new("none", |_: &CompressionJob, _: &dyn TokenCounter| {
        Err(Error::new(ErrorKind::Engine, "no model"))
    });
    let engines: [&dyn Engine; 2] = [&OutlineEngine, &none];
    let (mut blocks, mut dropped) = (0, 0);
    for tokens in [1_000, 1_500, 2_000, 3_000, 5_000] {
        for (budget, engine) in [Budget::new(tokens), Budget::once(tokens)]
            .into_iter()
            .flat_map(|budget| engines.map(|engine| (budget, engine)))
        {
            let mut window = ContextWindow::new(native(), budget, budget.compression());
            let mut history = History::new();
            for (at, frame) in frames.iter().enumerate() {
                native().capture(&mut history, frame.clone(), NOW).unwrap();
                // A context is asked for before the agent speaks, and sometimes in between.
                if at % 2 == 1 && at % 5 != 0 {
                    continue;
                }
                let request = RenderRequest::default();
                let fitted = window.render(&mut history, &request, engine, NOW).unwrap();
                for block in window.transform().blocks() {
                    assert!(is_whole(block.from, block.to), "{tokens} at {at}: {}", block.id);
                    blocks += 1;
                }
                for what in fitted.dropped.iter().filter(|what| what.block.is_none()) {
                    assert!(is_whole(what.from, what.to), "{tokens} at {at}: {what:?}");
                    dropped += 1;
                }
            }
        }
    }
    assert!(blocks > 0 && dropped > 0, "{blocks} blocks, {dropped} dropped");
}

#[test]
fn the_operators_words_between_a_command_and_its_output_stay() {
    let sluice = "Never touch the sluice.";
    let mut frames = Vec::new();
    said(&mut frames, Source::User, "Compare the tide tables.");
    for number in 0..24 {
        said(&mut frames, Source::Agent, &format!("I look.\n\n```bash\ncat t{number}.txt\n```"));
        if number == 0 {
            said(&mut frames, Source::System, sluice);
        }
        said(&mut frames, Source::User, &output(&table("tide", 3)));
    }
    said(&mut frames, Source::User, LAST);
    let none = FnEngine::new("none", |_: &CompressionJob, _: &dyn TokenCounter| {
        Err(Error::new(ErrorKind::Engine, "no model"))
    });
    let mut dropped = 0;
    for tokens in [300, 500, 800] {
        let budget = Budget::once(tokens);
        let mut window = ContextWindow::new(native(), budget, budget.compression());
        let mut history = captured(&native(), &frames);
        let request = RenderRequest::default();
        let fitted = window.render(&mut history, &request, &none, NOW).unwrap();
        dropped += fitted.dropped.len();
        assert!(text_of(&fitted).contains(sluice), "{tokens}");
    }
    assert!(dropped > 0);
}

#[test]
fn outputs_of_recorded_logs_are_masked_and_expand_byte_for_byte() {
    let Some(folder) = data::recordings("D-swe-agent") else { return };
    let (mut masks, mut sessions) = (0, 0);
    for path in data::files_under(&folder) {
        for (name, frames) in compressing::sessions(&path) {
            let hud = native();
            let (window, history, fitted) = fitted(&hud, &frames, whole(&hud, &frames) * 3 / 5);
            expands(&window, &history, &fitted);
            let of_user = |at: &u64| {
                let at = usize::try_from(*at).unwrap();
                history.frames().source(at) == Some(Source::User)
            };
            let of_user: Vec<u64> = masked(&fitted).into_iter().filter(of_user).collect();
            // The operator's words, and the user's.
            assert!(of_user.iter().all(|at| *at > 1), "{name}: {of_user:?}");
            (masks, sessions) =
                (masks + of_user.len(), sessions + usize::from(!of_user.is_empty()));
        }
    }
    assert!(masks > 10 && sessions > 3, "{masks} {sessions}");
}
