//! Planning over a long history of which all was planned before: where nothing is new, and where
//! a frame is; beside a scan of all frames, and the first plan of all.
//!
//! The history is generated: requests, calls and results, with a block for every older range in
//! effect. A bench of one push times the plan alone.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use afterimage::{
    compress::{CompressionOptions, CompressionTransform, Summary},
    hud::Hud,
    id::{Millis, Role},
    tokens::Chars4,
    veil::{Frame, History, Source},
};
use criterion::{Criterion, criterion_group, criterion_main};

const NOW: Millis = Millis::new(0);

fn history(hud: &Hud, frames: usize) -> History {
    let session = support::generated(frames as u64 / 2);
    let mut history = History::new();
    for (frame, _) in session.frames.into_iter().take(frames) {
        hud.capture(&mut history, frame, NOW).unwrap();
    }
    assert_eq!(history.frames().len(), frames);
    history
}

/// A transform with a block in effect for each range of frames, and blocks of blocks of these.
fn compressed(hud: &Hud, history: &History) -> CompressionTransform {
    let options = CompressionOptions { max_pending: 64, ..CompressionOptions::default() };
    let mut transform = CompressionTransform::new(options);
    loop {
        transform.plan(history).unwrap();
        while let Some(job) = transform.next_job(history, NOW).unwrap() {
            let render =
                |facet: &_| hud.render_facet(facet, Role::User, history.veil().tags(), NOW);
            transform
                .complete(
                    &job,
                    Summary { text: "They looked into it.", engine: "none" },
                    NOW,
                    render,
                )
                .unwrap();
        }
        if transform.apply().is_none() {
            return transform;
        }
    }
}

/// What a plan would cost that looks at every frame: whether each is captured, and its tokens.
fn scan(history: &History) -> u64 {
    let frames = history.frames();
    let snapshots = || (0..frames.len()).map(|index| frames.snapshot(index));
    let is_captured = snapshots().all(|snapshot| snapshot.is_some());
    let tokens = snapshots().flatten().map(|snapshot| snapshot.total_tokens());
    tokens.sum::<u64>() * u64::from(is_captured)
}

/// How often a frame is pushed to one history: so that what is planned stays below what may wait.
const PUSHES: u64 = 64;

/// The time of a plan after each of so many pushes. The first push is not timed: the copy has no
/// room for it, and so moves what it holds.
fn pushes(history: &History, transform: &CompressionTransform) -> Duration {
    let (mut history, mut transform) = (history.clone(), transform.clone());
    let last = history.frames().last().unwrap().clone();
    let mut taken = Duration::ZERO;
    for push in 0..=PUSHES {
        let mut frame = Frame::new(last.sequence.get() + 1 + push, Source::Environment);
        frame.rendered_snapshot.clone_from(&last.rendered_snapshot);
        history.push(frame).unwrap();
        let start = Instant::now();
        transform.plan(black_box(&history)).unwrap();
        taken += if push == 0 { Duration::ZERO } else { start.elapsed() };
    }
    taken
}

fn plan(criterion: &mut Criterion) {
    let hud = Hud::new(Arc::new(Chars4));
    for frames in [10_000, 100_000] {
        let history = history(&hud, frames);
        let mut transform = compressed(&hud, &history);
        let blocks = transform.blocks().count();
        let name = format!("compress_plan/{frames}-frames-{blocks}-blocks");
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
        group.bench_function("scan all frames", |bench| {
            bench.iter(|| scan(black_box(&history)));
        });
        group.bench_function("nothing is new", |bench| {
            bench.iter(|| transform.plan(black_box(&history)).unwrap());
        });
        group.bench_function("after one push", |bench| {
            bench.iter_custom(|times| {
                let rounds = times.div_ceil(PUSHES);
                let taken: Duration = (0..rounds).map(|_| pushes(&history, &transform)).sum();
                taken.mul_f64(times as f64 / (rounds * PUSHES) as f64)
            });
        });
        group.bench_function("the first plan of all", |bench| {
            bench.iter(|| {
                CompressionTransform::new(CompressionOptions::default())
                    .plan(black_box(&history))
                    .unwrap()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, plan);
criterion_main!(benches);
