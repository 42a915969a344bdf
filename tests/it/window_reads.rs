//! Reads of a file that a later read of the same file shows whole: they go before any other result.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing::{self, captured, expands, masked, native, shortened};
use afterimage_testkit::data;

use std::{collections::HashMap, fmt::Write as _};

use afterimage::{
    compress::OutlineEngine,
    hud::RenderRequest,
    id::Millis,
    json,
    snapshot::PartRef,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, ContextWindow, FittedContext},
};

const NOW: Millis = Millis::new(0);

/// The lines of a file from one number up to another, as tools print them.
fn lines(name: &str, first: u64, last: u64) -> String {
    (first..=last).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}\t{name} at {line}: calm water, no wind");
        text
    })
}

/// A session of calls: tool, arguments, result. Call `n` and its result are the frames `2n + 1` and
/// `2n + 2`; before the last words there is one more read of another file.
fn session(calls: &[(&str, &str, String)]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut push = |source: Source, facet: Facet| {
        frames.push(Frame::new(frames.len() as u64, source).with(FacetOp::add(facet)));
    };
    push(Source::User, Facet::new("asked", "message", "Compare the tide tables."));
    let last = ("read", r#"{"path":"last.rs"}"#, lines("last", 1, 40));
    for (number, &(tool, arguments, ref result)) in calls.iter().chain([&last]).enumerate() {
        let id = format!("c{number}");
        let value = json::read(arguments.as_bytes()).unwrap();
        push(Source::Agent, Facet::tool_call(format!("call-{number}"), Some(&id), tool, value));
        let facet = Facet::tool_result(format!("r-{number}"), Some(&id), None, result.clone());
        push(Source::Environment, facet);
    }
    push(Source::Agent, Facet::new("said", "message", "I have read them."));
    push(Source::User, Facet::new("next", "message", "Go on."));
    frames
}

fn render(frames: &[Frame], budget: Budget) -> (ContextWindow, History, FittedContext) {
    let mut history = captured(&native(), frames);
    let mut window = ContextWindow::new(native(), budget, budget.compression());
    let request = RenderRequest::default();
    let fitted = window.render(&mut history, &request, &OutlineEngine, NOW).unwrap();
    (window, history, fitted)
}

/// The context in so many tokens less than all of it takes.
fn fitted(frames: &[Frame], less: u64) -> (ContextWindow, History, FittedContext) {
    let whole = render(frames, Budget::once(10_000_000)).2.context.tokens().total;
    render(frames, Budget::once(whole - less))
}

/// The numbers of the calls whose results go: as a line each, or their middle alone.
#[track_caller]
fn check(calls: &[(&str, &str, String)], expected: &[u64]) {
    let frames = session(calls);
    // A little more than all but the last of them save.
    let history = captured(&native(), &frames);
    let tokens = |call: &u64| history.snapshot((call * 2 + 2).into()).unwrap().total_tokens();
    let but_last = expected.iter().rev().skip(1).map(tokens).sum::<u64>();
    let (window, history, fitted) = fitted(&frames, but_last + 100);
    let found: Vec<u64> = shortened(&fitted).iter().map(|frame| frame / 2 - 1).collect();
    assert_eq!(found, expected);
    assert_eq!(window.transform().blocks().count(), 0);
    expands(&window, &history, &fitted);
}

/// A read of another file that is the oldest result: it goes where nothing is said twice.
fn oldest() -> (&'static str, &'static str, String) {
    ("read", r#"{"path":"old.rs"}"#, lines("old", 1, 40))
}

const WHOLE: &str = r#"{"path":"a.rs"}"#;
const SOME: &str = r#"{"path":"a.rs","offset":11,"limit":40}"#;

#[test]
fn lines_of_a_file_go_once_a_later_read_shows_them() {
    let some = || ("read", SOME, lines("a", 11, 50));
    check(&[oldest(), some(), ("read", WHOLE, lines("a", 1, 90))], &[1]);
    let wider = r#"{"path":"./a.rs","offset":1,"limit":60}"#;
    check(&[oldest(), some(), ("read", wider, lines("a", 1, 60))], &[1]);
    // What was written in between is what the later one shows.
    let write = r#"{"path":"a.rs","content":"x"}"#;
    let written = ("write", write, "done".to_owned());
    check(&[oldest(), some(), written, ("read", WHOLE, lines("b", 1, 90))], &[1]);
}

#[test]
fn other_lines_other_files_and_reads_that_failed_supersede_nothing() {
    let some = || ("read", SOME, lines("a", 11, 50));
    let below = r#"{"path":"a.rs","offset":40,"limit":60}"#;
    check(&[oldest(), some(), ("read", below, lines("a", 40, 99))], &[0]);
    check(&[oldest(), some(), ("read", r#"{"path":"b/a.rs"}"#, lines("b", 1, 90))], &[0]);
    let failed = format!("Error: a.rs does not exist\n{}", "no such file\n".repeat(60));
    check(&[oldest(), some(), ("read", WHOLE, failed)], &[0]);
    let write = format!(r#"{{"path":"a.rs","content":"{}"}}"#, "calm ".repeat(200));
    check(&[oldest(), some(), ("write", &write, lines("a", 1, 90))], &[0]);
    let pattern = r#"{"path":"a.rs","pattern":"calm"}"#;
    check(&[oldest(), some(), ("search", pattern, lines("a", 1, 90))], &[0]);
    // The result holds fewer lines than the file: those that were read before are none of them.
    let late = r#"{"path":"a.rs","offset":2500,"limit":40}"#;
    let late = ("read", late, lines("a", 2_500, 2_539));
    check(&[oldest(), late.clone(), ("read", WHOLE, lines("a", 1, 90))], &[0]);
    let cut = format!("{}[... 2400 lines truncated ...]\n", lines("a", 1, 90));
    check(&[oldest(), some(), ("read", WHOLE, cut)], &[0]);
    let unchanged = "File unchanged since the last read.".to_owned();
    check(&[oldest(), some(), ("read", SOME, unchanged)], &[0]);
}

#[test]
fn commands_that_print_lines_of_a_file_are_reads_of_it() {
    let some = || ("shell", r#"{"cmd":"sed -n '11,50p' a.rs"}"#, lines("a", 11, 50));
    let all = || lines("a", 1, 90);
    check(&[oldest(), some(), ("shell", r#"{"cmd":"cat a.rs"}"#, all())], &[1]);
    let numbered = r#"{"command":["bash","-lc","nl -ba a.rs | sed -n '1,90p'"]}"#;
    check(&[oldest(), some(), ("shell", numbered, all())], &[1]);
    check(&[oldest(), some(), ("shell", r#"{"cmd":"cat a.rs | grep calm"}"#, all())], &[0]);
    check(&[oldest(), some(), ("shell", r#"{"cmd":"cat a.rs","workdir":"/b"}"#, all())], &[0]);
}

#[test]
fn a_read_that_is_shortened_supersedes_none_that_stands_whole() {
    let budget = Budget { high: 9_000, low: 8_900, ..Budget::new(14_000) };
    let filler = ("note", r#"{"say":"x"}"#, lines("filler", 1, 190));
    let large = ("read", WHOLE, lines("a", 1, 400));
    let mut calls = vec![oldest(), ("read", SOME, lines("a", 11, 50)), filler, large];
    let paths: Vec<String> = (0..40).map(|at| format!(r#"{{"path":"{at}.rs"}}"#)).collect();
    for (at, path) in paths.iter().enumerate() {
        calls.push(("read", path, lines(&format!("file {at}"), 1, 40)));
        let (_, _, fitted) = render(&session(&calls), budget);
        assert!(fitted.shortened.iter().any(|what| &*what.id == "shortened-8"));
        if !masked(&fitted).is_empty() {
            assert_eq!(masked(&fitted), [2]);
            return;
        }
    }
    panic!("nothing was masked");
}

#[test]
fn what_is_masked_itself_supersedes_nothing() {
    // Only the first read of the whole file shows the lines: the second one shows that few are left.
    let some = || ("read", SOME, lines("a", 11, 50));
    let whole = |last| ("read", WHOLE, lines("a", 1, last));
    check(&[oldest(), some(), whole(90), whole(9)], &[2]);
    // Both that are older are superseded by the newest.
    check(&[oldest(), whole(40), whole(40), whole(40)], &[1, 2]);
    check(&[oldest(), some(), whole(90), whole(91)], &[1, 2]);
}

#[test]
fn a_read_that_is_shortened_supersedes_no_other_one_by_its_lines() {
    let budget = Budget { high: 9_000, low: 8_900, ..Budget::new(14_000) };
    let filler = ("note", r#"{"say":"x"}"#, lines("filler", 1, 190));
    let part = r#"{"path":"a.rs","offset":1,"limit":390}"#;
    let large = ("read", WHOLE, lines("a", 1, 400));
    let mut calls = vec![oldest(), filler, ("read", part, lines("a", 1, 390)), large];
    let paths: Vec<String> = (0..40).map(|at| format!(r#"{{"path":"{at}.rs"}}"#)).collect();
    for (at, path) in paths.iter().enumerate() {
        calls.push(("read", path, lines(&format!("file {at}"), 1, 40)));
        let (_, _, fitted) = render(&session(&calls), budget);
        let masked = masked(&fitted);
        assert!(matches!(*masked, [] | [2 | 4]), "{masked:?}");
        for id in ["shortened-6", "shortened-8"] {
            assert!(fitted.shortened.iter().any(|what| &*what.id == id), "{id}");
        }
        if !masked.is_empty() {
            return;
        }
    }
    panic!("nothing was masked");
}

/// A read of a recorded session: the file, and its first and last line.
#[derive(Debug, PartialEq)]
struct Asked {
    frame: u64,
    path: String,
    lines: (u64, u64),
}

/// The reads of a history by `path`, `offset` and `limit`, each with the frame of its result.
fn asked(history: &History) -> Vec<Asked> {
    let (mut calls, mut reads) = (HashMap::new(), Vec::new());
    for frame in history.frames() {
        let Some(snapshot) = &frame.rendered_snapshot else { continue };
        for chunk in snapshot.chunks() {
            match chunk.part() {
                PartRef::Call { id: Some(id), name: "read" | "Read" } => {
                    let Ok(value) = json::read(chunk.content().as_bytes()) else { continue };
                    let number = |key: &str| value.get(key).and_then(json::Value::as_u64);
                    let path = value.str_at("path").or_else(|| value.str_at("file_path"));
                    let first = number("offset").unwrap_or(1);
                    let last = number("limit").map_or(u64::MAX, |limit| first + limit - 1);
                    calls.insert(id.to_owned(), (path.unwrap().to_owned(), (first, last)));
                }
                PartRef::Result { id: Some(id) } => {
                    let call = calls.remove(id);
                    let read = |(path, lines)| Asked { frame: frame.sequence.get(), path, lines };
                    reads.extend(call.map(read));
                }
                _ => {}
            }
        }
    }
    reads
}

#[test]
fn what_later_reads_supersede_expands_byte_for_byte_over_recordings() {
    let Some(folder) = data::recordings("B-anthropic") else { return };
    let (mut wider, mut others) = (0, 0);
    for path in data::files_under(&folder) {
        for (_, frames) in compressing::sessions(&path) {
            if frames.len() < 100 {
                continue;
            }
            let whole = render(&frames, Budget::once(10_000_000)).2.context.tokens().total;
            let (window, history, fitted) = fitted(&frames, whole / 3);
            expands(&window, &history, &fitted);
            let reads = asked(&history);
            for read in reads.iter().filter(|read| masked(&fitted).contains(&read.frame)) {
                let later = reads.iter().filter(|of| of.frame > read.frame && of.path == read.path);
                let later: Vec<_> = later.map(|of| of.lines).collect();
                let holds = |of: &(u64, u64)| of.0 <= read.lines.0 && read.lines.1 <= of.1;
                let is_wider = !later.contains(&read.lines) && later.iter().any(holds);
                (wider, others) = (wider + u32::from(is_wider), others + u32::from(!is_wider));
            }
        }
    }
    assert!(wider > 10, "{wider} {others}");
}
