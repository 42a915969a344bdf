//! What a session left when it went back is in no context from there on, whoever is asked.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use afterimage::{
    compress::{CompressionOptions, OutlineEngine},
    hud::{Hud, NativeFormat, RenderRequest, RenderedContext},
    id::Millis,
    replay::{Replay, ReplayPolicy},
    request::Recording,
    session::{Fit, RequestFitter},
    tokens::Chars4,
    transcript::Transcript,
    veil::{BRANCH_TOPIC, Branch, Frame, History, Source},
    window::{Budget, RecordedCompactions},
};

const NOW: Millis = Millis::new(0);

/// A session of Claude Code that is compacted, goes back, is compacted again, and goes back to what
/// it had left.
const SESSION: &str = r#"
{"type":"user","sessionId":"s","uuid":"u0","parentUuid":null,"message":{"content":"zero"}}
{"type":"assistant","sessionId":"s","uuid":"a0","parentUuid":"u0","message":{"id":"m0","content":"ANSWER0"}}
{"type":"system","subtype":"compact_boundary","sessionId":"s","uuid":"c0","parentUuid":null,"logicalParentUuid":"a0"}
{"type":"user","sessionId":"s","uuid":"k0","parentUuid":"c0","isCompactSummary":true,"message":{"content":"SUMMARY0"}}
{"type":"user","sessionId":"s","uuid":"u1","parentUuid":"k0","message":{"content":"one"}}
{"type":"assistant","sessionId":"s","uuid":"a1","parentUuid":"u1","message":{"id":"m1","content":"ANSWER1"}}
{"type":"user","sessionId":"s","uuid":"u2","parentUuid":"k0","message":{"content":"two"}}
{"type":"assistant","sessionId":"s","uuid":"a2","parentUuid":"u2","message":{"id":"m2","content":"ANSWER2"}}
{"type":"system","subtype":"compact_boundary","sessionId":"s","uuid":"c1","parentUuid":null,"logicalParentUuid":"a2"}
{"type":"user","sessionId":"s","uuid":"k1","parentUuid":"c1","isCompactSummary":true,"message":{"content":"SUMMARY1"}}
{"type":"user","sessionId":"s","uuid":"u3","parentUuid":"k1","message":{"content":"three"}}
{"type":"assistant","sessionId":"s","uuid":"a3","parentUuid":"u3","message":{"id":"m3","content":"ANSWER3"}}
{"type":"user","sessionId":"s","uuid":"u4","parentUuid":"a1","message":{"content":"four"}}
{"type":"assistant","sessionId":"s","uuid":"a4","parentUuid":"u4","message":{"id":"m4","content":"ANSWER4"}}"#;

const REQUESTS: [&[&str]; 5] = [
    &["zero"],
    &["SUMMARY0", "one"],
    &["SUMMARY0", "two"],
    &["SUMMARY1", "three"],
    &["SUMMARY0", "one", "ANSWER1", "four"],
];

const WORDS: [&str; 12] = [
    "zero", "ANSWER0", "SUMMARY0", "one", "ANSWER1", "two", "ANSWER2", "SUMMARY1", "three",
    "ANSWER3", "four", "ANSWER4",
];

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

/// The words that a context holds, in their order.
fn words(context: &RenderedContext) -> Vec<&'static str> {
    let text: Vec<String> =
        context.messages().iter().map(|message| message.content().to_string()).collect();
    let text = text.join("\n");
    let mut found: Vec<_> =
        WORDS.iter().filter_map(|word| Some((text.find(word)?, *word))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, word)| word).collect()
}

fn rendered(history: &History, compactions: &mut RecordedCompactions) -> Vec<&'static str> {
    compactions.follow(&hud(), history, NOW).unwrap();
    let substitutions = compactions.blocks().to_vec();
    let request = RenderRequest { substitutions, ..RenderRequest::default() };
    words(&hud().render(history, &request, NOW).unwrap())
}

#[test]
fn requests_hold_what_is_on_their_branch_whoever_is_asked() {
    let transcript = Transcript::new(SESSION.as_bytes()).unwrap();
    let recording = Recording::read(transcript, Arc::new(Chars4), |_| NOW).unwrap();
    let (_, history) = recording.sessions().next().unwrap();
    let room = Budget::once(u64::MAX / 4);
    let mut replay = Replay::new(hud(), room, ReplayPolicy::Unlimited, Arc::new(OutlineEngine));
    let (mut so_far, mut compactions) = (History::new(), RecordedCompactions::default());
    let mut exchanges = recording.exchanges().iter().zip(REQUESTS);
    for frame in history.frames() {
        let turn = replay.push(frame.as_ref().clone(), NOW).unwrap();
        let replayed = turn.and_then(|turn| turn.context.map(words));
        if frame.source == Source::Agent {
            let (exchange, expected) = exchanges.next().unwrap();
            assert_eq!(exchange.answer(), Some(frame.sequence));
            let context = recording.context(exchange.number).unwrap().unwrap();
            assert_eq!(words(&context), expected, "request {}", exchange.number);
            assert_eq!(
                recording.tokens(exchange.number).unwrap().messages,
                context.messages().iter().map(afterimage::hud::Message::tokens).sum::<u64>(),
                "request {}",
                exchange.number
            );
            assert_eq!(rendered(&so_far, &mut compactions), expected);
            assert_eq!(rendered(&so_far, &mut RecordedCompactions::default()), expected);
            let fitted = RequestFitter::new(hud(), room);
            let fitted = fitted.fit(&mut so_far, &OutlineEngine, NOW, |_| {}).unwrap();
            let Fit::Fits(fitted) = fitted.fit else { panic!("it fits") };
            assert_eq!(words(&fitted.context), expected);
            assert_eq!(replayed.unwrap(), expected);
        }
        hud().capture(&mut so_far, frame.as_ref().clone(), NOW).unwrap();
    }
    assert!(exchanges.next().is_none());
}

/// A long session of our own frames that goes back now and then, with its last event of a branch.
fn long(turns: u64) -> Vec<Frame> {
    use afterimage::{
        id::FacetType,
        veil::{Facet, FacetOp},
    };
    let mut outside: Vec<(u64, u64)> = Vec::new();
    (0..turns)
        .map(|at| {
            let (source, kind) = match at % 2 {
                0 => (Source::User, FacetType::EVENT),
                _ => (Source::Agent, FacetType::SPEECH),
            };
            let text = format!("frame<{at}> {}", "talks at length ".repeat(40));
            let mut frame =
                Frame::new(at, source).with(FacetOp::add(Facet::new(format!("f{at}"), kind, text)));
            if at % 10 == 8 {
                outside.push((at - 3, at - 1));
                frame.events.push(Branch::event(outside.clone()));
            }
            frame
        })
        .collect()
}

#[test]
fn no_context_within_a_budget_brings_back_what_was_left() {
    let budget = Budget::once(4_000);
    let policy = ReplayPolicy::Blocks(CompressionOptions::default());
    let mut replay = Replay::new(hud(), budget, policy, Arc::new(OutlineEngine));
    let (mut outside, mut turns) = (Vec::new(), 0);
    for frame in long(120) {
        if let Some(branch) = Branch::of(&frame).unwrap() {
            outside = branch.outside;
        }
        let Some(turn) = replay.push(frame, NOW).unwrap() else { continue };
        let Some(context) = turn.context else { continue };
        turns += 1;
        for range in &outside {
            for at in range.start().get()..=range.end().get() {
                let word = format!("frame<{at}>");
                let is_there = context.messages().iter().any(|of| of.content().contains(&word));
                assert!(!is_there, "turn {turns}: {word}");
            }
        }
    }
    assert!(turns > 50);
    assert!(replay.figures().compressions > 3, "{:?}", replay.figures());
}

#[test]
fn a_damaged_event_of_a_branch_is_passed_over() {
    let mut history = History::new();
    for mut frame in long(8) {
        if frame.sequence.get() == 7 {
            let event = format!(r#"{{"topic":"{BRANCH_TOPIC}","payload":{{"outside":[[5,99]]}}}}"#);
            frame.events.push(afterimage::json::read(event.as_bytes()).unwrap());
        }
        hud().capture(&mut history, frame, NOW).unwrap();
    }
    let mut compactions = RecordedCompactions::default();
    compactions.follow(&hud(), &history, NOW).unwrap();
    assert!(compactions.blocks().is_empty());
}

#[test]
fn frames_outside_are_blocks_that_show_nothing_and_expand() {
    let mut history = History::new();
    for frame in long(10) {
        hud().capture(&mut history, frame, NOW).unwrap();
    }
    let mut compactions = RecordedCompactions::default();
    assert!(compactions.follow(&hud(), &history, NOW).unwrap());
    let [block] = compactions.blocks().as_slice() else { panic!("one block") };
    assert_eq!((&*block.block, block.from.get(), block.to.get()), ("branch-5-7", 5, 7));
    assert!(block.snapshot.is_empty());
}
