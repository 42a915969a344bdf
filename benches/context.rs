//! Putting sealed histories together into contexts, beside joining the same texts: from nothing, and
//! again after one push while the context before it is held.

mod support;

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use afterimage::{
    hud::{Hud, Merge, RenderRequest},
    id::{FacetType, Millis},
    veil::{Facet, FacetOp, Frame, History, Source},
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::KnownCounts;

fn context(criterion: &mut Criterion) {
    let (name, sessions) = support::corpus();
    let hud = Hud::new(Arc::new(KnownCounts));
    let mut histories = Vec::new();
    for session in &sessions {
        let mut history = History::new();
        for (frame, _) in &session.frames {
            hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
        }
        histories.push(history);
    }
    let bytes: usize = histories.iter().map(joined).sum();
    let mut group = criterion.benchmark_group(format!("context/{name}-{bytes}-bytes"));
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("join the texts", |bench| {
        bench.iter(|| histories.iter().map(|history| joined(black_box(history))).sum::<usize>());
    });
    for (label, merge) in
        [("a message a frame", Merge::PerFrame), ("merged by role", Merge::AdjacentRoles)]
    {
        let request = RenderRequest { merge, ..RenderRequest::default() };
        group.bench_function(label, |bench| {
            bench.iter(|| {
                let render = |history| hud.render(history, &request, Millis::new(0)).unwrap();
                histories
                    .iter()
                    .map(|history| render(black_box(history)).messages().len())
                    .sum::<usize>()
            });
        });
    }
    group.finish();
}

/// A history of so many frames of 500 bytes.
fn generated(hud: &Hud, frames: u64) -> History {
    let mut history = History::new();
    (0..frames).for_each(|_| push(hud, &mut history));
    history
}

fn push(hud: &Hud, history: &mut History) {
    let sequence = history.next_sequence().unwrap();
    let source = if sequence.get().is_multiple_of(2) { Source::User } else { Source::Agent };
    let text = "All is calm. ".repeat(38);
    let said = Facet::new(format!("said-{sequence}"), FacetType::EVENT, text);
    let frame = Frame::new(sequence, source).with(FacetOp::add(said));
    hud.capture(history, frame, Millis::new(0)).unwrap();
}

fn again(criterion: &mut Criterion) {
    let hud = Hud::new(Arc::new(KnownCounts));
    let request = RenderRequest::default();
    let render = |history: &History| hud.render(history, &request, Millis::new(0)).unwrap();
    let mut group = criterion.benchmark_group("context_again");
    for frames in [1_000, 10_000, 100_000] {
        let mut history = generated(&hud, frames);
        group.bench_function(BenchmarkId::new("join the texts", frames), |bench| {
            bench.iter(|| joined(black_box(&history)));
        });
        group.bench_function(BenchmarkId::new("from nothing", frames), |bench| {
            bench.iter(|| render(black_box(&history)).messages().len());
        });
        group.bench_function(BenchmarkId::new("after one push", frames), |bench| {
            let mut context = render(&history);
            bench.iter_custom(|times| {
                let mut taken = Duration::ZERO;
                for _ in 0..times {
                    push(&hud, &mut history);
                    let start = Instant::now();
                    context = black_box(render(&history));
                    taken += start.elapsed();
                }
                taken
            });
            drop(context);
        });
    }
    group.finish();
}

fn joined(history: &History) -> usize {
    let frames = history.frames();
    let snapshots = (0..frames.len()).filter_map(|index| frames.snapshot(index));
    snapshots.map(|snapshot| snapshot.text().to_owned()).collect::<String>().len()
}

criterion_group!(benches, context, again);
criterion_main!(benches);
