//! Which result answers which call is settled once, when the result's frame enters a history; whoever
//! is asked gives the same answer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{path::Path, sync::Arc};

use afterimage::{
    compress::{CompressionOptions, OutlineEngine},
    export::{Export, ExportOptions, RepairKind},
    hud::{Hud, NativeFormat, RenderRequest},
    id::Millis,
    json::Value,
    replay::{Replay, ReplayPolicy},
    session::{Fit, RequestFitter},
    tokens::Chars4,
    transcript::Transcript,
    veil::{Facet, FacetChange, FacetOp, Frame, History, PartPlace, Source},
    window::Budget,
};
use afterimage_testkit::data;
use proptest::prelude::*;
use serde_json::json;

use crate::support::histories;

const NOW: Millis = Millis::new(0);
const GROUPS: [&str; 4] = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

fn history_of(frames: impl IntoIterator<Item = Frame>) -> History {
    let (hud, mut history) = (hud(), History::new());
    for frame in frames {
        hud.capture(&mut history, frame, NOW).unwrap();
    }
    history
}

/// The frames of each session of each recording.
fn each_recording(mut check: impl FnMut(&Path, Vec<Frame>)) {
    for folder in GROUPS.iter().filter_map(|group| data::recordings(group)) {
        for path in data::files_under(&folder) {
            let mut sessions: Vec<(Arc<str>, Vec<Frame>)> = Vec::new();
            for record in Transcript::open(&path).unwrap() {
                let record = record.unwrap();
                match sessions.iter_mut().find(|(name, _)| *name == record.session) {
                    Some((_, frames)) => frames.push(record.frame),
                    None => sessions.push((record.session, vec![record.frame])),
                }
            }
            sessions.into_iter().for_each(|(_, frames)| check(&path, frames));
        }
    }
}

/// Calls with ids in one message, then results that carry none.
fn calls_with_ids_and_results_without(count: usize) -> Vec<Frame> {
    let call = |number: usize| {
        json!({"id": format!("call_{number}"), "type": "function", "function": {
            "name": "read", "arguments": json!({"path": format!("src/file_{number}.rs")}).to_string(),
        }})
    };
    let mut list = vec![
        json!({"role": "user", "content": "Read all of it."}),
        json!({"role": "assistant", "content": null, "tool_calls": (0..count).map(call).collect::<Vec<_>>()}),
    ];
    list.extend((0..count).map(|number| {
        json!({"role": "tool", "content": format!("file {number} holds some lines of code. ").repeat(6)})
    }));
    list.push(json!({"role": "assistant", "content": "I have read it."}));
    list.push(json!({"role": "user", "content": "Then write the summary."}));
    let text = serde_json::to_string(&list).unwrap();
    Transcript::new(text.as_bytes()).unwrap().map(|record| record.unwrap().frame).collect()
}

#[test]
fn results_without_ids_answer_calls_with_ids_whoever_is_asked() {
    let frames = calls_with_ids_and_results_without(30);
    let mut history = history_of(frames.clone());
    let pairs = history.pairs().all();
    assert_eq!(pairs.len(), 30);
    for (number, pair) in (0..).zip(pairs) {
        assert!(pair.in_time);
        assert_eq!(pair.call, PartPlace { frame: 1.into(), number });
        assert_eq!(pair.result.frame.get(), 2 + u64::from(number));
    }
    let context = hud().render(&history, &RenderRequest::default(), NOW).unwrap();
    let export = Export::of(&history, &context).unwrap();
    for exported in [
        export.openai_chat(&ExportOptions::default()),
        export.responses(&ExportOptions::default()),
        export.anthropic(&ExportOptions::default()),
    ] {
        assert!(exported.report().repaired.is_empty(), "{:?}", exported.report().repaired);
    }
    let budget = Budget::once(1_200);
    let fitted = RequestFitter::new(hud(), budget).fit(&mut history, &OutlineEngine, NOW, |_| {});
    assert!(matches!(fitted.unwrap().fit, Fit::Fits(_)));
    let policy = ReplayPolicy::Blocks(CompressionOptions::default());
    let mut replay = Replay::new(hud(), budget, policy, Arc::new(OutlineEngine));
    for frame in frames {
        replay.push(frame, NOW).unwrap();
    }
    assert_eq!((replay.figures().orphans, replay.figures().unfit), (0, 0));
}

#[test]
fn pairs_are_the_same_whenever_frames_are_sealed() {
    each_recording(|path, frames| {
        let sealed = history_of(frames.clone());
        let mut unsealed = History::new();
        for frame in frames {
            unsealed.push(frame).unwrap();
        }
        assert_eq!(sealed.pairs().all(), unsealed.pairs().all(), "{}", path.display());
        assert_eq!(sealed.pairs().open(), unsealed.pairs().open(), "{}", path.display());
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: afterimage_testkit::cases(256),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn pairs_of_any_form_are_the_same_whenever_frames_are_sealed(
        frames in histories::history(12),
        is_native in any::<bool>(),
    ) {
        let sealing = if is_native { hud() } else { Hud::new(Arc::new(Chars4)) };
        let (mut sealed, mut unsealed) = (History::new(), History::new());
        for frame in frames {
            sealing.capture(&mut sealed, frame.clone(), NOW).unwrap();
            unsealed.push(frame).unwrap();
            prop_assert_eq!(sealed.pairs().open(), unsealed.pairs().open());
        }
        prop_assert_eq!(sealed.pairs().all(), unsealed.pairs().all());
    }
}

#[test]
fn a_call_inside_of_a_result_is_none_of_the_agent_whoever_is_asked() {
    let hud = hud();
    let call = Facet::tool_call("seen-0.0.0", None, "get", Value::Null);
    let folder = Facet::new("seen-0.0", "state", "").with_child(call);
    let result = Facet::tool_result("seen-0", None, None, "").with_child(folder);
    let frame = Frame::new(0, Source::Environment).with(FacetOp::add(result));
    let (mut sealed, mut unsealed) = (History::new(), History::new());
    hud.capture(&mut sealed, frame.clone(), NOW).unwrap();
    unsealed.push(frame).unwrap();
    assert_eq!((sealed.pairs().open(), unsealed.pairs().open()), (0, 0));
    // What the agent says of a result is no call of an export either: the call after it is.
    let inner = Facet::tool_call("say-0.0", None, "get", Value::Null);
    let told = Facet::tool_result("say-0", None, None, "").with_child(inner);
    let own = Facet::tool_call("say-1", Some("c1"), "look", Value::Null);
    let said = Frame::new(1, Source::Agent).with(FacetOp::add(told)).with(FacetOp::add(own));
    let seen = Facet::tool_result("seen-2", Some("c1"), None, "open");
    hud.capture(&mut sealed, said, NOW).unwrap();
    let seen = Frame::new(2, Source::Environment).with(FacetOp::add(seen));
    hud.capture(&mut sealed, seen, NOW).unwrap();
    let context = hud.render(&sealed, &RenderRequest::default(), NOW).unwrap();
    let export = Export::of(&sealed, &context).unwrap();
    let options = ExportOptions::default();
    for exported in
        [export.openai_chat(&options), export.anthropic(&options), export.responses(&options)]
    {
        let repaired = exported.report().repaired.iter().map(|repair| repair.kind);
        assert!(repaired.eq([RepairKind::ResultAsText; 2]), "{}", exported.value());
        let value: serde_json::Value = serde_json::from_str(&exported.value().to_string()).unwrap();
        assert_eq!(answers(&value), 1, "{value}");
    }
}

/// How many calls an export of any form answers.
fn answers(request: &serde_json::Value) -> usize {
    let list = ["messages", "input"].into_iter().find_map(|key| request.get(key));
    let is_answer = |value: &serde_json::Value| {
        let kind = value["type"].as_str().unwrap_or_default();
        let role = value["role"].as_str().unwrap_or_default();
        // What the provider ran itself is a call and its result in one item.
        let is_outcome = |key: &str| value.get(key).is_some_and(|outcome| !outcome.is_null());
        let has_outcome = ["output", "outputs", "results", "result", "error"];
        matches!(role, "tool" | "function")
            || kind.ends_with("tool_result")
            || kind.ends_with("_output")
            || kind.ends_with("_call") && has_outcome.into_iter().any(is_outcome)
    };
    let messages = list.unwrap_or(request).as_array().unwrap();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    messages.iter().chain(blocks).filter(|value| is_answer(value)).count()
}

#[test]
fn exports_have_the_pairs_of_the_history() {
    let mut seen = 0;
    each_recording(|path, frames| {
        let name = path.display();
        let history = history_of(frames);
        let results = history.frames().flat_map(|frame| frame.ops.clone());
        let results = results
            .filter(|op| matches!(&op.change, FacetChange::Add(facet) if facet.is_result()))
            .count();
        let pairs = history.pairs().all();
        let in_time = pairs.iter().filter(|pair| pair.in_time).count();
        let context = hud().render(&history, &RenderRequest::default(), NOW).unwrap();
        let options = ExportOptions::default();
        let export = Export::of(&history, &context).unwrap();
        for exported in
            [export.openai_chat(&options), export.anthropic(&options), export.responses(&options)]
        {
            let name = format!("{name} {:?}", exported.form());
            let repaired = &exported.report().repaired;
            let count =
                |kind: RepairKind| repaired.iter().filter(|repair| repair.kind == kind).count();
            assert_eq!(count(RepairKind::ResultAsText), results - in_time, "{name}: results");
            let value: serde_json::Value =
                serde_json::from_str(&exported.value().to_string()).unwrap();
            let answers = answers(&value);
            assert_eq!(answers, in_time + count(RepairKind::Placeholder), "{name}: answers");
        }
        seen += in_time;
    });
    assert!(seen > 1_500 || data::recordings("A-openai-chat").is_none(), "{seen}");
}
