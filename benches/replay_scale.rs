//! What a session costs as it grows: a replay within a budget, message by message, and the plan of one
//! frame of many facets. Each size is twice the one before it in the same run, so a time that is more
//! than twice the one above it is not linear. `tests/scale.rs` proves the same by counting.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{hint::black_box, sync::Arc, time::Duration};

use afterimage::{
    compress::{CompressionTransform, OutlineEngine},
    hud::{Hud, NativeFormat},
    id::{FacetType, Millis},
    replay::{Replay, ReplayFigures, ReplayPolicy},
    tokens::Chars4,
    veil::{Facet, FacetOp, Frame, History, Source},
    window::Budget,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const NOW: Millis = Millis::new(0);

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

fn session(messages: u64) -> Vec<Frame> {
    let frame = |number: u64| {
        let speaks = [(Source::User, FacetType::EVENT), (Source::Agent, FacetType::SPEECH)];
        let (source, kind) = speaks[number as usize % 2].clone();
        let text = format!("Message {number} about src/mod_{}.rs.", number % 50);
        let facet = Facet::new(format!("said-{number}"), kind, text);
        Frame::new(number, source).with(FacetOp::add(facet))
    };
    (0..messages).map(frame).collect()
}

fn replay(frames: &[Frame], policy: &ReplayPolicy) -> ReplayFigures {
    let engine = Arc::new(OutlineEngine);
    let mut replay = Replay::new(hud(), Budget::new(2_000), policy.clone(), engine);
    for frame in frames {
        replay.push(frame.clone(), NOW).unwrap();
    }
    replay.figures()
}

fn replays(criterion: &mut Criterion) {
    let blocks = ReplayPolicy::Blocks(Budget::new(2_000).compression());
    for (name, policy) in [("blocks", blocks), ("sliding", ReplayPolicy::Sliding)] {
        let mut group = criterion.benchmark_group(format!("replay_scale/{name}"));
        group.sample_size(10);
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
        for messages in [1_000, 2_000, 4_000, 8_000] {
            let frames = session(messages);
            group.throughput(Throughput::Elements(messages));
            group.bench_function(BenchmarkId::from_parameter(messages), |bench| {
                bench.iter(|| replay(black_box(&frames), &policy));
            });
        }
        group.finish();
    }
}

fn one_frame(facets: u64) -> History {
    let mut frame = Frame::new(0, Source::User);
    for number in 0..facets {
        let facet = Facet::new(format!("f{number}"), FacetType::EVENT, "Calm.");
        frame = frame.with(FacetOp::add(facet));
    }
    let mut history = History::new();
    hud().capture(&mut history, frame, NOW).unwrap();
    history
}

fn plans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay_scale/plan of one frame");
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
    for facets in [2_000, 4_000, 8_000, 16_000] {
        let history = one_frame(facets);
        group.throughput(Throughput::Elements(facets));
        group.bench_function(BenchmarkId::from_parameter(facets), |bench| {
            bench.iter(|| CompressionTransform::default().plan(black_box(&history)).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, replays, plans);
criterion_main!(benches);
