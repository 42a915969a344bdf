//! What a session costs as it grows, counted and not timed: the work of a replay and the memory of
//! what was read.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{fmt::Write, sync::Arc};

use afterimage::{
    bill::Residency,
    compress::{CompressionTransform, OutlineEngine},
    hud::{CapturePolicy, Hud, NativeFormat, RenderRequest},
    id::{FacetType, Millis},
    replay::{Replay, ReplayPolicy},
    request::Recording,
    tokens::Chars4,
    transcript::Transcript,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::{Budget, ContextWindow},
};
use allocation_counter::{AllocationInfo, measure};

const NOW: Millis = Millis::new(0);

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

fn frame(number: u64) -> Frame {
    let (source, kind) = [(Source::User, FacetType::EVENT), (Source::Agent, FacetType::SPEECH)]
        [number as usize % 2]
        .clone();
    let text =
        format!("Message {number} about src/mod_{}.rs and the value {}.", number % 50, number * 7);
    Frame::new(number, source).with(FacetOp::add(Facet::new(format!("said-{number}"), kind, text)))
}

/// What a replay of so many messages takes.
fn replayed(policy: &ReplayPolicy, messages: u64) -> AllocationInfo {
    let mut replay =
        Replay::new(hud(), Budget::new(1_000), policy.clone(), Arc::new(OutlineEngine));
    let info = measure(|| {
        (0..messages).for_each(|number| drop(replay.push(frame(number), NOW).unwrap()));
    });
    let figures = replay.figures();
    assert_eq!((figures.turns, figures.over_budget, figures.unfit), (messages / 2, 0, 0));
    info
}

#[test]
fn the_work_of_a_replay_within_a_budget_grows_in_proportion_to_the_session() {
    for policy in [ReplayPolicy::Blocks(Budget::new(1_000).compression()), ReplayPolicy::Sliding] {
        // Long enough for what a ledger remembers to have reached its bounds.
        let [small, large] = [1_600, 6_400].map(|messages| replayed(&policy, messages));
        let count = large.count_total as f64 / small.count_total as f64;
        let bytes = large.bytes_total as f64 / small.bytes_total as f64;
        // Four times the messages; each turn holds as much as any other.
        assert!(
            count < 4.6 && bytes < 4.6,
            "{policy:?}: {count:.2} times the allocations, {bytes:.2} times the bytes"
        );
    }
}

/// A frame of so many facets, captured and planned.
fn planned(facets: usize) -> AllocationInfo {
    let mut frame = Frame::new(0, Source::User);
    for number in 0..facets {
        frame =
            frame.with(FacetOp::add(Facet::new(format!("f{number}"), FacetType::EVENT, "Calm.")));
    }
    let mut history = History::new();
    hud().capture(&mut history, frame, NOW).unwrap();
    measure(|| {
        CompressionTransform::default().plan(&history).unwrap();
    })
}

#[test]
fn planning_a_frame_of_many_facets_takes_memory_in_proportion() {
    let [small, large] = [1_000, 8_000].map(planned);
    assert!(large.bytes_total <= small.bytes_total * 10, "{small:?} {large:?}");
}

/// What the last turns of a session allocate whose frames are sealed when contexts first hold them.
fn sealed_lazily(frames: u64, policy: CapturePolicy) -> AllocationInfo {
    let hud = Hud::builder(Arc::new(Chars4)).capture_policy(policy).build();
    let budget = Budget::new(2_000);
    let mut history = History::new();
    let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
    let mut turn = |number: u64| {
        let facet =
            Facet::new(format!("f{number}"), FacetType::EVENT, "Calm, and clear. ".repeat(4));
        let frame = Frame::new(number, Source::User).with(FacetOp::add(facet));
        hud.capture(&mut history, frame, NOW).unwrap();
        let fitted = window.render(&mut history, &RenderRequest::default(), &OutlineEngine, NOW);
        fitted.unwrap();
    };
    (0..frames).for_each(&mut turn);
    measure(|| (frames..frames + 400).for_each(&mut turn))
}

#[test]
fn a_turn_whose_frame_is_sealed_late_costs_what_its_context_costs() {
    for policy in [CapturePolicy::OnFirstRender, CapturePolicy::OlderThan(4)] {
        let [early, late] = [1_000, 6_000].map(|frames| sealed_lazily(frames, policy));
        println!("{early:?} {late:?}");
        assert!(late.bytes_total <= early.bytes_total * 2, "{early:?} {late:?}");
        assert!(late.count_total <= early.count_total * 2, "{early:?} {late:?}");
    }
}

/// The peak of the memory while a transcript is read into histories that are then compressed.
fn peak_of(input: &str) -> u64 {
    let hud = hud();
    let info = measure(|| {
        let mut history = History::new();
        for record in Transcript::new(input.as_bytes()).unwrap() {
            hud.capture(&mut history, record.unwrap().frame, NOW).unwrap();
        }
        let budget = Budget::once(1_000);
        let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
        let fitted = window.render(&mut history, &RenderRequest::default(), &OutlineEngine, NOW);
        assert!(fitted.unwrap().context.tokens().total <= 1_000);
    });
    info.bytes_max
}

/// What each further record adds to the peak, in bytes.
fn share(input: impl Fn(u64) -> String, few: u64, many: u64) -> u64 {
    (peak_of(&input(many)) - peak_of(&input(few))) / (many - few)
}

#[test]
fn a_record_that_is_not_understood_takes_the_memory_of_its_text() {
    let unknown = |records: u64| {
        let mut input = "{\"role\":\"user\",\"content\":\"a\"}\n".to_owned();
        (0..records).for_each(|_| input.push_str("{}\n"));
        input
    };
    let each = share(unknown, 4_000, 40_000);
    assert!(each <= 8, "{each} bytes for each record of three");
}

#[test]
fn a_message_of_one_letter_takes_less_than_two_kilobytes() {
    let letters = |records: u64| {
        (0..records).fold(String::new(), |mut input, number| {
            let role = ["user", "assistant"][number as usize % 2];
            writeln!(input, "{{\"role\":\"{role}\",\"content\":\"a\"}}").unwrap();
            input
        })
    };
    let each = share(letters, 1_000, 5_000);
    assert!(each <= 2_000, "{each} bytes for each message of one letter");
}

/// A session of so many answers, one in ten of which follows a message of the user. By what it
/// reports, requests are larger than by our count, or smaller.
fn answers(count: u64, reports_less: bool) -> Recording {
    let mut input = r#"{"type":"session","id":"s","timestamp":"t","cwd":"/x"}"#.to_owned() + "\n";
    let mut message = |text: String| writeln!(input, r#"{{"type":"message","message":{text}}}"#);
    for number in 0..count {
        if number % 10 == 0 {
            message(format!(r#"{{"role":"user","content":"look for buoy {number}"}}"#)).unwrap();
        }
        let held = if reports_less { 3 } else { 40 * number };
        message(format!(
            r#"{{"role":"assistant","model":"m","usage":{{"input":9,"cacheRead":{held},"cacheWrite":30,"output":20}},"content":[{{"type":"toolCall","id":"c{number}","name":"read","arguments":{{"path":"/harbour/{number}.md"}}}}]}}"#
        ))
        .unwrap();
        message(format!(
            r#"{{"role":"toolResult","toolCallId":"c{number}","toolName":"read","content":[{{"type":"text","text":"The tide is high at {number}."}}]}}"#
        ))
        .unwrap();
    }
    let transcript = Transcript::new(input.as_bytes()).unwrap();
    Recording::read(transcript, Arc::new(Chars4), |_| NOW).unwrap()
}

#[test]
fn residency_takes_memory_in_proportion_to_the_answers_whatever_they_report() {
    for reports_less in [false, true] {
        let [small, large] = [300, 1_200].map(|count| {
            let recording = answers(count, reports_less);
            measure(|| {
                let residency = Residency::of(&recording).unwrap();
                let (overcounted, _) = residency.overcounted;
                assert_eq!(residency.exchanges, count);
                assert!(if reports_less { overcounted > count / 2 } else { overcounted < 3 });
            })
        });
        let ratio = large.bytes_total as f64 / small.bytes_total as f64;
        // Four times the answers. What every request lays out anew would be sixteen times as much.
        assert!(ratio < 5.0, "{reports_less}: {ratio:.2} {small:?} {large:?}");
    }
}
