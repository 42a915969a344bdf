//! Every recording exports to requests that the providers accept, and comes back as it was.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "support/data.rs"]
mod data;
#[path = "support/validators.rs"]
mod validators;

use std::{path::PathBuf, sync::Arc};

use afterimage::{
    export::{Breakpoints, Export, ExportOptions, Exported, Orphans, Owned, Unanswered},
    hud::{Hud, Merge, NativeFormat, RenderRequest, RenderedContext},
    id::Millis,
    tokens::Chars4,
    transcript::Transcript,
    veil::{Frame, History},
};
use validators::Verdict;

const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

fn files(groups: &[&str]) -> Vec<PathBuf> {
    let folders = groups.iter().filter_map(|group| data::recordings(group));
    folders.flat_map(|folder| data::files_under(&folder)).collect()
}

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

/// The histories of a file's sessions, in the order in which they begin.
fn histories(path: &PathBuf) -> Vec<(String, History)> {
    let hud = hud();
    let mut sessions: Vec<(String, Vec<Frame>)> = Vec::new();
    for record in Transcript::open(path).unwrap() {
        let record = record.unwrap();
        match sessions.iter_mut().find(|(name, _)| **name == *record.session) {
            Some((_, frames)) => frames.push(record.frame),
            None => sessions.push((record.session.to_string(), vec![record.frame])),
        }
    }
    let history = |(name, frames): (String, Vec<Frame>)| {
        let mut history = History::new();
        for frame in frames {
            hud.capture(&mut history, frame, Millis::new(0)).unwrap();
        }
        (name, history)
    };
    sessions.into_iter().map(history).collect()
}

fn context(history: &History, frames: usize) -> RenderedContext {
    let end = history.frames()[frames - 1].sequence;
    let range = history.frames()[0].sequence..=end;
    let request = RenderRequest { frames: Some(range), ..RenderRequest::default() };
    hud().render(history, &request, Millis::new(0)).unwrap()
}

/// Where a history is cut: at the end, and at some places before it.
fn cuts(frames: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (1..=12).map(|part| frames * part / 12).collect();
    cuts.extend([1, 2, 3, frames.saturating_sub(1)]);
    cuts.retain(|cut| (1..=frames).contains(cut));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

fn json(exported: &Exported) -> serde_json::Value {
    serde_json::from_str(&exported.value().to_string()).unwrap()
}

/// The spans of every string sum to it, in order and without gaps.
fn assert_owned(exported: &Exported, place: &str) {
    for (path, text) in exported.root().texts() {
        let mut end = 0;
        for span in text.spans() {
            assert_eq!(span.range.start(), end, "{place}: {path}");
            assert!(!span.range.is_empty(), "{place}: {path}");
            assert!(text.as_str().is_char_boundary(span.range.end()), "{place}: {path}");
            assert_eq!(text.owner_of(end), Some(&span.owner), "{place}: {path}");
            end = span.range.end();
        }
        assert_eq!(end, text.as_str().len(), "{place}: {path}");
        assert_eq!(text.owner_of(end), None, "{place}: {path}");
    }
}

fn check(export: &Export<'_>, options: &ExportOptions, place: &str) {
    let forms: [(&str, Exported, fn(&serde_json::Value) -> Verdict); 3] = [
        ("chat", export.openai_chat(options), validators::chat),
        ("responses", export.responses(options), validators::responses),
        ("anthropic", export.anthropic(options), validators::anthropic),
    ];
    for (form, exported, validate) in &forms {
        let place = format!("{place}: {form}");
        let value = json(exported);
        if let Err(error) = validate(&value) {
            panic!("{place}: {error}\n{:?}", exported.report());
        }
        assert_owned(exported, &place);
    }
    assert_owned(&export.plain(options), place);
}

#[test]
fn every_export_of_every_recording_is_accepted_at_every_cut() {
    let choices = [
        ExportOptions::default(),
        ExportOptions {
            unanswered: Unanswered::Drop,
            orphans: Orphans::Drop,
            breakpoints: Breakpoints::Recorded,
        },
    ];
    for path in files(&GROUPS) {
        for (session, history) in histories(&path) {
            let frames = history.frames().len();
            for cut in cuts(frames) {
                let context = context(&history, cut);
                let export = Export::of(&history, &context).unwrap();
                for options in &choices {
                    check(&export, options, &format!("{} {session} at {cut}", path.display()));
                }
            }
        }
    }
}
