//! Checkpoints of 2,000 tokens: reading, comparing, applying; and how many tokens deltas take of
//! the checkpoints that they stand for, in a series with small changes and between recorded ones.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use afterimage_testkit::series;

use std::{fs, hint::black_box};

use afterimage_checkpoint::{
    Checkpoint, CheckpointDelta, DiffOptions, Document, DocumentKind, apply, diff, lint,
};
use afterimage_tokens::{TokenCounter, default_counter};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const STEPS: usize = 50;

fn step(step: usize) -> Checkpoint {
    Checkpoint::parse(series::checkpoint(step)).unwrap()
}

fn delta(a: &Checkpoint, b: &Checkpoint) -> CheckpointDelta {
    diff(a, b, &DiffOptions::created("2026-03-10T10:00:00Z")).unwrap()
}

fn sizes() {
    let counter = default_counter();
    let series: Vec<Checkpoint> = (0..STEPS).map(step).collect();
    let (mut whole, mut deltas) = (0, 0);
    for pair in series.windows(2) {
        let delta = delta(&pair[0], &pair[1]);
        assert_eq!(apply(&pair[0], &delta).unwrap().text(), pair[1].text());
        whole += counter.count(pair[1].text());
        deltas += counter.count(delta.text());
    }
    println!("tokens of deltas and of the checkpoints that they replace");
    show(&format!("series of {STEPS}"), deltas, whole);
    let folder = afterimage_testkit::data::beside("data/G-delta-md");
    let read = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        Some(Checkpoint::parse(text).unwrap().named(name))
    };
    let pairs = [
        ("chk-001.md", "chk-002.md"),
        ("chk-002.md", "chk-003.md"),
        ("chk-003.md", "chk-003-breadcrumbs.md"),
        ("archive/chk-dialectic-audit.md", "archive/chk-issue-backlog.md"),
    ];
    for (a, b) in pairs {
        if let (Some(before), Some(after)) = (read(a), read(b)) {
            let tokens = counter.count(delta(&before, &after).text());
            show(&format!("{a} to {b}"), tokens, counter.count(after.text()));
        }
    }
}

fn show(name: &str, deltas: usize, whole: usize) {
    let share = deltas as f64 * 100.0 / whole as f64;
    println!("  {name:<64} {deltas:>7} of {whole:>7}  {share:>6.1} %");
}

fn documents(c: &mut Criterion) {
    sizes();
    let (a, b) = (step(20), step(21));
    let tokens = default_counter().count(a.text());
    let delta_of_both = delta(&a, &b);
    let mut group = c.benchmark_group("checkpoint");
    group.throughput(Throughput::Bytes(a.text().len() as u64));
    let id = |what: &str| BenchmarkId::new(what, format!("{tokens} tokens"));
    group.bench_function(id("parse"), |b| {
        b.iter(|| Document::parse(black_box(a.text())).unwrap());
    });
    // What reading the same text costs the library of Markdown alone.
    group.bench_function(id("parse, the Markdown library alone"), |b| {
        b.iter(|| {
            let options = pulldown_cmark::Options::ENABLE_TABLES;
            pulldown_cmark::Parser::new_ext(black_box(a.text()), options).into_offset_iter().count()
        });
    });
    group.bench_function(id("diff"), |bench| bench.iter(|| delta(black_box(&a), black_box(&b))));
    group.bench_function(id("parse both and diff"), |bench| {
        bench.iter(|| {
            let a = Checkpoint::parse(black_box(a.text())).unwrap();
            let b = Checkpoint::parse(black_box(b.text())).unwrap();
            delta(&a, &b)
        });
    });
    group.bench_function(id("apply"), |bench| {
        bench.iter(|| apply(black_box(&a), black_box(&delta_of_both)).unwrap());
    });
    group.bench_function(id("lint"), |bench| {
        bench.iter(|| lint(black_box(a.document()), DocumentKind::Checkpoint));
    });
    group.finish();
}

criterion_group!(benches, documents);
criterion_main!(benches);
