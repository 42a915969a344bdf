//! Capturing histories: with counts that are known, counting each text, and counting each text
//! once. Beside it what the counter costs by itself, so that its share shows; and a plain loop that
//! copies and counts the same texts by four characters a token, beside capturing with these counts.

mod support;

use std::{hint::black_box, sync::Arc};

use afterimage::{
    hud::Hud,
    id::Millis,
    tokens::{Chars4, Memo, TokenCounter, default_counter},
    veil::History,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::{KnownCounts, Session};

fn capture(criterion: &mut Criterion) {
    let (name, sessions) = support::corpus();
    let known = Hud::new(Arc::new(KnownCounts));
    let histories: Vec<History> =
        sessions.iter().map(|session| captured(&known, session)).collect();
    let snapshots: Vec<_> = histories
        .iter()
        .flat_map(History::frames)
        .filter_map(|frame| frame.rendered_snapshot.clone())
        .collect();
    let texts: Vec<&str> = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.chunks())
        .map(afterimage::snapshot::ChunkRef::content)
        .collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let counter = default_counter();

    let mut group = criterion.benchmark_group(format!("capture/{name}-{bytes}-bytes"));
    group.throughput(Throughput::Bytes(bytes as u64));
    group.sample_size(10);
    group.bench_function("known counts", |bench| bench.iter(|| all(&known, &sessions)));
    group.bench_function("counting", |bench| {
        let hud = Hud::new(counter.clone());
        bench.iter(|| all(&hud, &sessions));
    });
    group.bench_function("counting each text once", |bench| {
        bench.iter(|| all(&Hud::new(Arc::new(Memo::new(counter.clone()))), &sessions));
    });
    group.bench_function("the counter alone", |bench| {
        bench.iter(|| texts.iter().map(|text| counter.count(black_box(text))).sum::<usize>());
    });
    group.bench_function("estimating", |bench| {
        let hud = Hud::new(Arc::new(Chars4));
        bench.iter(|| all(&hud, &sessions));
    });
    group.bench_function("a plain loop that estimates", |bench| {
        bench.iter(|| plain(black_box(&texts)));
    });
    group.finish();
}

/// Copies each text, looks for `<`, counts it, and keeps its range.
fn plain(texts: &[&str]) -> usize {
    let (mut all, mut kept) = (String::new(), Vec::new());
    for text in texts {
        let start = all.len();
        let has_tag = text.contains('<');
        all.push_str(text);
        kept.push((start, all.len(), Chars4.count(text), has_tag));
    }
    black_box(&all).len() + black_box(&kept).len()
}

fn all(hud: &Hud, sessions: &[Session]) -> usize {
    sessions.iter().map(|session| captured(hud, black_box(session)).frames().len()).sum()
}

fn captured(hud: &Hud, session: &Session) -> History {
    let mut history = History::new();
    for (frame, _) in &session.frames {
        hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
    }
    history
}

criterion_group!(benches, capture);
criterion_main!(benches);
