//! What a session costs as it grows, counted and not timed: the work of a replay and the memory of
//! what was read.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{fmt::Write, sync::Arc};

use afterimage::{
    compress::{CompressionTransform, OutlineEngine},
    hud::{Hud, NativeFormat, RenderRequest},
    id::{FacetType, Millis},
    replay::{Replay, ReplayPolicy},
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
        let [small, large] = [800, 3_200].map(|messages| replayed(&policy, messages));
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
        let fitted = window.render(&history, &RenderRequest::default(), &OutlineEngine, NOW);
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
