//! The text of half the history: joined, and piece by piece, beside copying the same bytes once
//! and beside the specification's list, which is filtered and joined.
//!
//! `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::hint::black_box;

use afterimage::id::FrameSeq;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::frames::{Frames, sizes};

fn text(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_text/{}", frames.name));
    group.sample_size(10);
    for count in sizes() {
        let archive = frames.archive(count);
        let (from, to) = (count / 4, count / 4 + count / 2 - 1);
        let view = || archive.range(FrameSeq::new(from)..=FrameSeq::new(to)).unwrap();
        let whole = view().text().join().into_owned();
        group.throughput(Throughput::Bytes(whole.len() as u64));
        group.bench_function(BenchmarkId::new("joined", count), |bench| {
            bench.iter(|| black_box(view().text().join().len()));
        });
        group.bench_function(BenchmarkId::new("copied once", count), |bench| {
            bench.iter(|| black_box(black_box(&whole).clone()).len());
        });
        group.bench_function(BenchmarkId::new("piece by piece", count), |bench| {
            bench
                .iter(|| view().text().pieces().map(|piece| black_box(piece).len()).sum::<usize>());
        });
        let list = frames.list(count);
        assert_eq!(list.extract_range(from, to).1, whole);
        group.bench_function(BenchmarkId::new("list", count), |bench| {
            bench.iter(|| black_box(list.extract_range(black_box(from), to)).1.len());
        });
    }
    group.finish();
}

criterion_group!(benches, text);
criterion_main!(benches);
