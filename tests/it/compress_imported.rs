//! Compactions that a recording tells of become blocks whose originals are the frames before them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support::compressing;
use crate::support::exporting;
use afterimage_testkit::data;

use std::{path::PathBuf, sync::Arc};

use afterimage::{
    ErrorKind,
    compress::{CompressionBlock, CompressionTransform},
    export::{Breakpoints, Export, ExportOptions},
    hud::{Hud, NativeFormat, Owner},
    id::FacetType,
    snapshot::{SnapshotOptions, SubstitutionKind},
    tokens::Chars4,
    transcript::Transcript,
    veil::{COMPACTION_TOPIC, Compaction, Facet, FacetChange, FacetOp, Frame, History, Source},
    window::RecordedCompactions,
};
use compressing::{NOW, captured, hud, native, render_with, request};
use serde_json::Value;

fn adopted(hud: &Hud, history: &History) -> CompressionTransform {
    let mut transform = CompressionTransform::new(compressing::larger());
    transform.adopt(history, NOW, render_with(hud, history)).unwrap();
    transform
}

/// The line that a frame was read from.
fn line(frame: &Frame) -> u64 {
    frame.imported.as_ref().unwrap().line
}

/// What the recording itself says of a compaction, read by another reader: the line that tells of
/// it, and the first line that was kept.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    line: u64,
    kept_from: u64,
}

/// The compactions that stand in a file of one of the three programs.
fn told(path: &PathBuf) -> Vec<Told> {
    let file = std::fs::read_to_string(path).unwrap();
    // Claude Code on the web has its records in one document.
    let document = serde_json::from_str(&file).ok();
    let listed = document.as_ref().and_then(|document: &Value| document["loglines"].as_array());
    let lines = || file.lines().map(|line| serde_json::from_str(line).unwrap_or_default());
    let records: Vec<Value> = listed.cloned().unwrap_or_else(|| lines().collect());
    let line = |index: usize| index as u64 + 1;
    let mut told = Vec::new();
    for (at, record) in records.iter().enumerate() {
        if record["type"] == "compaction" {
            let kept = record["firstKeptEntryIndex"].as_u64().unwrap();
            told.push(Told { line: line(at), kept_from: kept + 1 });
        }
        if record["isCompactSummary"] == true || record["type"] == "compacted" {
            told.push(Told { line: line(at), kept_from: line(at) });
        }
    }
    told
}

/// Each recording with compactions, and how many.
const FILES: [(&str, usize); 6] = [
    ("B-anthropic/pi/before-compaction.jsonl", 2),
    ("B-anthropic/claude-code/spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl", 1),
    ("B-anthropic/claude-code/codemie/session-624a4a58.jsonl", 1),
    ("B-anthropic/claude-code/simonw/sample_session.json", 1),
    // That of a subagent.
    ("B-anthropic/claude-code/agent-sessions/small.jsonl", 1),
    ("C-codex-responses/rollout/agent-sessions-small.jsonl", 6),
];

/// Recorded traffic with compactions of the APIs, and how many: what precedes them is ignored.
const OF_APIS: [(&str, usize); 2] = [
    ("B-anthropic/wire-anthropic/test_anthropic_compaction_usage_with_cache.json", 1),
    ("C-codex-responses/wire-openai_responses/test_openai_responses_compact_stateful_mode.json", 1),
];

#[test]
fn every_recorded_compaction_is_told_by_a_frame_and_no_other_is() {
    let folders = ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"];
    let Some(root) = data::recordings(folders[0]) else { return };
    let root = root.parent().unwrap();
    let mut expected: Vec<(PathBuf, usize)> =
        FILES.iter().chain(&OF_APIS).map(|(file, count)| (root.join(file), *count)).collect();
    expected.sort();
    let files = folders.iter().flat_map(|folder| data::files_under(&root.join(folder)));
    let count = |path: &PathBuf| {
        let is_told = |frame: &Frame| Compaction::of(frame).unwrap().is_some();
        let records = Transcript::open(path).unwrap();
        records.filter(|record| is_told(&record.as_ref().unwrap().frame)).count()
    };
    let found = files.map(|path| (path.clone(), count(&path))).filter(|(_, count)| *count > 0);
    assert_eq!(found.collect::<Vec<_>>(), expected);
    for (path, count) in FILES.map(|(file, count)| (root.join(file), count)) {
        assert_eq!(told(&path).len(), count, "{}", path.display());
    }
}

#[test]
fn the_originals_of_a_recorded_compaction_are_the_frames_before_what_it_kept() {
    let Some(root) = data::recordings("B-anthropic") else { return };
    for (file, count) in FILES {
        let path = root.parent().unwrap().join(file);
        let sessions = compressing::sessions(&path);
        let mut blocks = 0;
        for told in told(&path) {
            let is_its = |frames: &&Vec<Frame>| frames.iter().any(|frame| line(frame) == told.line);
            let frames = sessions.iter().map(|(_, frames)| frames).find(is_its).unwrap();
            // The history as it was when the compaction happened.
            let until = frames.iter().position(|frame| line(frame) > told.line);
            let history = captured(&hud(), &frames[..until.unwrap_or(frames.len())]);
            let transform = adopted(&hud(), &history);
            let newest = transform.blocks().map(|block| block.level).max().unwrap();
            let speaking = transform.blocks().find(|block| !block.snapshot.is_empty());
            assert_eq!(speaking.unwrap().level, newest, "{file}: the last one is in effect");
            blocks += 1;
            // Each frame before what was kept has given way, but for the operator's words; none
            // after it has, but for the one that says the summary.
            for frame in history.frames() {
                let snapshot = frame.rendered_snapshot.as_ref().unwrap();
                let is_gone = transform.compression_state(frame.sequence).is_some();
                let is_operators = frame.source == afterimage::veil::Source::System;
                let gives_way = line(&frame) < told.kept_from || line(&frame) == told.line;
                if !snapshot.is_empty() {
                    let place = format!("{file}: line {} at {}", line(&frame), told.line);
                    assert_eq!(is_gone, gives_way && !is_operators, "{place}");
                }
            }
            check(&history, &transform, file);
        }
        assert_eq!(blocks, count, "{file}");
    }
}

/// What holds of any compressed history.
fn check(history: &History, transform: &CompressionTransform, place: &str) {
    for block in transform.blocks().flat_map(all) {
        let (originals, expanded) = compressing::originals(history, &block);
        assert_eq!(expanded, originals, "{place}: lossless_block {}", block.id);
        let tokens: u64 = originals.iter().map(|(_, snapshot)| snapshot.total_tokens()).sum();
        assert_eq!(block.original_tokens, tokens, "{place}: {}", block.id);
    }
    let state = compressing::state_by_blocks(history, transform);
    assert_eq!(state, compressing::state(history), "{place}: same_state");
    let live = history.frames().filter(|of| transform.compression_state(of.sequence).is_none());
    let live = live.map(|frame| frame.rendered_snapshot.as_ref().unwrap().total_tokens());
    let live: u64 = live.chain(transform.blocks().map(|block| block.tokens)).sum();
    assert_eq!(transform.live_tokens(), live, "{place}");
    let context = hud().render(history, &request(transform), NOW).unwrap();
    for message in context.messages() {
        let spans = context.spans(message);
        let sum: usize = spans.iter().map(|span| span.range.len()).sum();
        assert_eq!(sum, message.content().len(), "{place}: owned_bytes");
        let by_block =
            spans.iter().filter(|span| matches!(span.owner, Owner::Block { .. })).count();
        assert_eq!(by_block, if message.is_block() { spans.len() } else { 0 }, "{place}");
    }
}

/// A block and those inside of it.
fn all(block: &Arc<CompressionBlock>) -> Vec<Arc<CompressionBlock>> {
    let inner = block.blocks().iter().flat_map(all);
    std::iter::once(Arc::clone(block)).chain(inner).collect()
}

#[test]
fn contexts_with_recorded_compactions_are_accepted_by_every_provider() {
    let Some(root) = data::recordings("B-anthropic") else { return };
    for (file, _) in FILES {
        for (session, frames) in compressing::sessions(&root.parent().unwrap().join(file)) {
            let history = captured(&native(), &frames);
            let transform = adopted(&native(), &history);
            let context = native().render(&history, &request(&transform), NOW).unwrap();
            let export = Export::of(&history, &context).unwrap();
            exporting::check(&export, &ExportOptions::default(), &format!("{file} {session}"));
        }
    }
}

#[test]
fn a_session_with_recorded_compactions_is_compressed_further() {
    let Some(root) = data::recordings("B-anthropic") else { return };
    for (file, _) in FILES {
        for (_, frames) in compressing::sessions(&root.parent().unwrap().join(file)) {
            let history = captured(&hud(), &frames);
            let mut transform = adopted(&hud(), &history);
            let taken: Vec<_> = transform.blocks().map(|block| (block.from, block.to)).collect();
            let before = transform.live_tokens();
            compressing::run(&hud(), &mut transform, &history);
            for (id, _) in transform.ranges() {
                let block = transform.block(id).filter(|block| block.engine == "beginning");
                let Some(block) = block.filter(|block| block.level == 1) else { continue };
                let meets = taken.iter().any(|(from, to)| *from <= block.to && block.from <= *to);
                assert!(!meets, "{file}: {id} holds frames that had given way");
            }
            assert!(transform.live_tokens() <= before, "{file}");
            check(&history, &transform, file);
        }
    }
}

fn read(input: &str) -> Vec<Frame> {
    Transcript::new(input.trim().as_bytes()).unwrap().map(|record| record.unwrap().frame).collect()
}

/// The text of each message of a context, and of each message before anything gave way.
fn texts(input: &str) -> (Vec<String>, Vec<String>) {
    let history = captured(&hud(), &read(input));
    let transform = adopted(&hud(), &history);
    check(&history, &transform, input);
    let text = |transform: &CompressionTransform| {
        let context = hud().render(&history, &request(transform), NOW).unwrap();
        context.messages().iter().map(|message| message.content().into_owned()).collect()
    };
    (text(&transform), text(&CompressionTransform::default()))
}

#[test]
fn a_compaction_of_pi_replaces_what_comes_before_the_entry_that_was_kept() {
    let by = |kept: &str| {
        format!(
            r#"
{{"type":"session","id":"s","cwd":"/harbour"}}
{{"type":"message","id":"e1","message":{{"role":"user","content":"berth 7?"}}}}
{{"type":"message","id":"e2","message":{{"role":"assistant","content":"It is free."}}}}
{{"type":"message","id":"e3","message":{{"role":"user","content":"And berth 8?"}}}}
{{"type":"compaction","id":"e4","summary":"Berth 7 is free.",{kept}}}
{{"type":"message","id":"e5","message":{{"role":"assistant","content":"Taken."}}}}
{{"type":"branch_summary","summary":"A way that was left."}}"#
        )
    };
    let kept = [
        "Berth 7 is free.",
        "And berth 8?",
        "<my_turn>\n\nTaken.\n\n</my_turn>",
        "A way that was left.",
    ];
    for first in [r#""firstKeptEntryIndex":3"#, r#""firstKeptEntryId":"e3""#] {
        let (texts, plain) = texts(&by(first));
        assert_eq!(texts, kept);
        assert_eq!(plain.len(), 6);
    }
    // Without a hint nothing was kept; where all was, nothing gives way.
    assert_eq!(texts(&by(r#""tokensBefore":1"#)).0.len(), 3);
    let (texts, plain) = texts(&by(r#""firstKeptEntryIndex":0"#));
    assert_eq!(texts, plain);
}

#[test]
fn a_compaction_of_claude_code_keeps_what_its_boundary_names() {
    let by = |metadata: &str| {
        format!(
            r#"
{{"type":"user","sessionId":"s","uuid":"u1","message":{{"content":"berth 7?"}}}}
{{"type":"assistant","sessionId":"s","uuid":"a1","message":{{"id":"m","content":"It is free."}}}}
{{"type":"user","sessionId":"s","uuid":"u2","message":{{"content":"And berth 8?"}}}}
{{"type":"user","sessionId":"s","uuid":"x1","isSidechain":true,"message":{{"content":"elsewhere"}}}}
{{"type":"system","subtype":"compact_boundary","sessionId":"s","compactMetadata":{metadata}}}
{{"type":"user","sessionId":"s","uuid":"u3","isCompactSummary":true,"message":{{"content":[{{"type":"text","text":"Berth 7 is free."}}]}}}}"#
        )
    };
    let main = |metadata: &str| {
        let input = by(metadata);
        let records = Transcript::new(input.trim().as_bytes()).unwrap().map(Result::unwrap);
        let frames = records.filter(|record| *record.session == *"s").map(|record| record.frame);
        let history = captured(&hud(), &frames.collect::<Vec<_>>());
        let transform = adopted(&hud(), &history);
        check(&history, &transform, metadata);
        let context = hud().render(&history, &request(&transform), NOW).unwrap();
        let texts = context.messages().iter().map(|message| message.content().into_owned());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(main("{}"), ["Berth 7 is free."]);
    for kept in
        [r#"{"preservedSegment":{"headUuid":"u2"}}"#, r#"{"preservedMessages":{"uuids":["u2"]}}"#]
    {
        assert_eq!(main(kept), ["Berth 7 is free.", "And berth 8?"], "{kept}");
    }
}

#[test]
fn a_compaction_of_codex_shows_what_replaced_the_items_and_repeats_no_rules() {
    let items = r#"
{"type":"session_meta","payload":{"id":"s","instructions":"You keep the harbour."}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"berth 7?"}]}}
{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is free."}]}}
{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"berth 7?"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]},{"type":"function_call","name":"look","call_id":"c"},{"type":"compaction","encrypted_content":"AAAA"}]}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"And 8?"}]}}"#;
    let (first, plain) = texts(items);
    let replaced = "berth 7?\n[function_call, 52 bytes]\n[compaction, 48 bytes]";
    assert_eq!(first, ["You keep the harbour.", replaced, "Be brief.", "And 8?"]);
    assert_eq!(plain.len(), 5, "the frame that tells shows nothing");
    let again = r#"{"type":"compacted","payload":{"message":"Berth 7 is free."}}"#;
    let (second, _) = texts(&format!("{items}\n{again}"));
    assert_eq!(second, ["You keep the harbour.", "Berth 7 is free.", "Be brief."]);
}

#[test]
fn a_compaction_that_parts_a_call_from_its_result_leaves_both() {
    let (texts, _) = texts(
        r#"
{"type":"session","id":"s","cwd":"/harbour"}
{"type":"message","message":{"role":"user","content":"berth 7?"}}
{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"look","arguments":{}}]}}
{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"look","content":"free"}}
{"type":"compaction","summary":"They asked for berth 7.","firstKeptEntryIndex":3}"#,
    );
    assert_eq!(texts[0], "They asked for berth 7.");
    assert!(texts[1].contains("<tool_call") && texts[2].contains("<tool_result"), "{texts:?}");
    assert_eq!(texts.len(), 3);
}

#[test]
fn an_imported_summary_takes_nothing_of_the_frames_that_gave_way() {
    let list = r#"
{"type":"session_meta","payload":{"id":"s"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Find berth 7."}]}}
{"type":"response_item","payload":{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"berth 7"}}}
{"type":"compacted","payload":{"message":"Berth 7 is free."}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Moor there."}]}}"#;
    let frames = read(list);
    let attributed = SnapshotOptions::default();
    for attribution in [attributed.clone(), SnapshotOptions { attribution: false, ..attributed }] {
        let hud = Hud::builder(Arc::new(Chars4))
            .format(Arc::new(NativeFormat))
            .snapshot_options(attribution)
            .build();
        let history = captured(&hud, &frames);
        let transform = adopted(&hud, &history);
        let context = hud.render(&history, &request(&transform), NOW).unwrap();
        let summary = context.messages().iter().find(|message| message.is_block()).unwrap();
        assert_eq!(summary.substitution_kind(), Some(SubstitutionKind::Block));
        let export = Export::of(&history, &context).unwrap();
        let options = ExportOptions { breakpoints: Breakpoints::None, ..ExportOptions::default() };
        exporting::check(&export, &options, "an imported compaction");
        let said = ["Berth 7 is free.", "Moor there."];
        let chat = exporting::json(&export.openai_chat(&options));
        let chat: Vec<_> =
            chat.as_array().unwrap().iter().map(|of| (&of["role"], &of["content"])).collect();
        assert_eq!((chat[0].0, chat[0].1), (&Value::from("user"), &Value::from(said[0])));
        let responses = exporting::json(&export.responses(&options));
        assert_eq!(
            (&responses[0]["role"], responses.as_array().unwrap().len()),
            (&Value::from("user"), 2)
        );
        assert!(responses[0].to_string().contains(said[0]), "{responses}");
        let anthropic = exporting::json(&export.anthropic(&options));
        let first = &anthropic["messages"][0];
        assert_eq!(first["role"], "user");
        assert!(first.to_string().contains(said[0]), "{anthropic}");
    }
}

#[test]
fn a_compaction_that_begins_between_a_call_and_its_result_leaves_both() {
    let list = r#"
{"type":"session","id":"s","cwd":"/harbour"}
{"type":"message","message":{"role":"user","content":"berth 7?"}}
{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"look","arguments":{}}]}}
{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"look","content":"free"}}
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"It is free."}]}}
{"type":"message","message":{"role":"user","content":"Moor there."}}"#;
    let frames = read(list);
    let result = frames.iter().find(|frame| shows(frame, "free")).unwrap().sequence;
    let last = frames.last().unwrap().sequence;
    let summary = Facet::new("s", FacetType::SUMMARY, "so far");
    let told = |frame: Frame| {
        let (mut frames, mut frame) = (frames.clone(), frame);
        let given = frame.ops.is_empty().then_some(&summary);
        frame.events = vec![Compaction::event(result, last, "other", given)];
        frames.push(frame);
        let history = captured(&hud(), &frames);
        let transform = adopted(&hud(), &history);
        check(&history, &transform, "begins at a result");
        let context = hud().render(&history, &request(&transform), NOW).unwrap();
        let texts: Vec<_> =
            context.messages().iter().map(|message| message.content().into_owned()).collect();
        texts
    };
    let at = last.get() + 1;
    let texts = told(Frame::new(at, Source::Environment));
    assert!(texts[1].contains("<tool_call") && texts[2].contains("<tool_result"), "{texts:?}");
    assert_eq!(&texts[3..], ["so far"]);
    // A summary that is said beside a call stays with it.
    let arguments = afterimage::json::read(b"{}").unwrap();
    let call = Facet::tool_call("again", Some("d"), "look", arguments);
    let frame = Frame::new(at, Source::Agent).with(FacetOp::add(summary.clone()));
    let texts = told(frame.with(FacetOp::add(call)));
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert!(texts[3].contains("so far") && texts[3].contains("<tool_call"), "{texts:?}");
}

fn shows(frame: &Frame, text: &str) -> bool {
    frame
        .ops
        .iter()
        .any(|op| matches!(&op.change, FacetChange::Add(facet) if facet.content == text))
}

#[test]
fn what_is_planned_is_not_taken_over_and_a_damaged_telling_is_an_error() {
    let frames = compressing::turns(12);
    let mut telling = Frame::new(99, afterimage::veil::Source::Environment);
    let summary = afterimage::veil::Facet::new("s", afterimage::id::FacetType::SUMMARY, "so far");
    telling.events = vec![Compaction::event(0.into(), 40.into(), "pi", Some(&summary))];
    let mut history = captured(&hud(), &frames);
    let mut transform = CompressionTransform::new(compressing::small());
    transform.plan(&history).unwrap();
    hud().capture(&mut history, telling, NOW).unwrap();
    let before = transform.live_tokens();
    for _ in 0..2 {
        let error = transform.adopt(&history, NOW, render_with(&hud(), &history)).unwrap_err();
        assert_eq!((error.kind(), error.place().frame), (ErrorKind::Conflict, Some(99)));
        assert_eq!((transform.live_tokens(), transform.blocks().count()), (before, 0));
    }
    // Once what was planned is in effect, it is inside of what is taken over.
    compressing::run(&hud(), &mut transform, &history);
    let epoch = transform.adopt(&history, NOW, render_with(&hud(), &history)).unwrap().unwrap();
    assert_eq!((epoch.from.get(), epoch.blocks.len()), (0, 1));
    check(&history, &transform, "planned before");
    assert!(transform.adopt(&history, NOW, render_with(&hud(), &history)).unwrap().is_none());

    let mut damaged = Frame::new(100, afterimage::veil::Source::Environment);
    damaged.events = vec![
        afterimage::json::read(format!(r#"{{"topic":"{COMPACTION_TOPIC}"}}"#).as_bytes()).unwrap(),
    ];
    hud().capture(&mut history, damaged, NOW).unwrap();
    let error = transform.adopt(&history, NOW, render_with(&hud(), &history)).unwrap_err();
    assert_eq!((error.kind(), error.place().frame), (ErrorKind::Shape, Some(100)));
}

#[test]
fn a_compaction_replaces_only_frames_that_exist() {
    let hud = native();
    let said = |at: u64, words: &str| {
        let facet = Facet::new(format!("said-{at}"), FacetType::EVENT, words);
        Frame::new(at, Source::User).with(FacetOp::add(facet))
    };
    let context = |from: u64, to: u64, is_said: bool| {
        let summary = Facet::new("summary", FacetType::SUMMARY, "SUMMARY");
        let mut told = Frame::new(10, Source::Environment);
        let given = (!is_said).then_some(&summary);
        // An event can say what no constructor checks: the reader decides.
        told.events.push(Compaction::event(from.into(), to.into(), "other", given));
        let told = if is_said { told.with(FacetOp::add(summary)) } else { told };
        let frames = [said(0, "ZERO"), said(1, "ONE"), said(2, "TWO"), told, said(11, "AFTER")];
        let history = captured(&hud, &frames);
        let mut compactions = RecordedCompactions::default();
        compactions.follow(&hud, &history, NOW).unwrap();
        let mut request = request(&CompressionTransform::default());
        request.substitutions = compactions.blocks().to_vec();
        let context = hud.render(&history, &request, NOW).unwrap();
        let words = ["ZERO", "ONE", "TWO", "SUMMARY", "AFTER"];
        let text: String = context.messages().iter().map(|of| of.content().to_string()).collect();
        let mut found: Vec<_> =
            words.iter().filter_map(|word| Some((text.find(word)?, *word))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, word)| word).collect::<Vec<_>>()
    };
    for is_said in [false, true] {
        // Those that there are.
        assert_eq!(context(1, 8, is_said), ["ZERO", "SUMMARY", "AFTER"]);
        let all: &[&str] = if is_said {
            &["ZERO", "ONE", "TWO", "SUMMARY", "AFTER"]
        } else {
            &["ZERO", "ONE", "TWO", "AFTER"]
        };
        // None of them, some that come after the frame, and a range that runs backwards.
        for (from, to) in [(5, 8), (0, 50), (2, 1), (u64::MAX, u64::MAX)] {
            assert_eq!(context(from, to, is_said), all, "{from} to {to}");
        }
    }
}
