//! Putting sealed histories together into contexts, beside joining the same texts.

mod support;

use std::{hint::black_box, sync::Arc};

use afterimage::{
    hud::{Hud, Merge, RenderRequest},
    id::Millis,
    veil::History,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
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

fn joined(history: &History) -> usize {
    let frames = history.frames();
    let snapshots = (0..frames.len()).filter_map(|index| frames.snapshot(index));
    snapshots.map(|snapshot| snapshot.text().to_owned()).collect::<String>().len()
}

criterion_group!(benches, context);
criterion_main!(benches);
