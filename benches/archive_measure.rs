//! Tokens and bytes of any range: the archive's sums beside a list that is added up.
//!
//! The ranges begin and end anywhere. `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see
//! `support/frames.rs`.

mod support;

use std::hint::black_box;

use afterimage::id::FrameSeq;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use support::frames::{Frames, Places, sizes};

fn measure(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_measure/{}", frames.name));
    for count in sizes() {
        let archive = frames.archive(count);
        let measure =
            |(from, to)| archive.measure(FrameSeq::new(from)..=FrameSeq::new(to)).unwrap();
        group.bench_function(BenchmarkId::new("archive, one range", count), |bench| {
            bench.iter(|| measure(black_box((count / 4, count / 2))));
        });
        group.bench_function(BenchmarkId::new("archive, random ranges", count), |bench| {
            let mut places = Places::below(count);
            bench.iter(|| measure(any_range(&mut places)));
        });
        let list = frames.list(count);
        let sums = measure((count / 4, count / 2));
        assert_eq!((sums.tokens, sums.bytes as usize), list.measure(count / 4, count / 2));
        group.sample_size(20);
        group.bench_function(BenchmarkId::new("list, random ranges", count), |bench| {
            let mut places = Places::below(count);
            bench.iter(|| {
                let (from, to) = any_range(&mut places);
                list.measure(from, to)
            });
        });
        group.sample_size(100);
    }
    group.finish();
}

fn any_range(places: &mut Places) -> (u64, u64) {
    let (one, other) = (places.next(), places.next());
    (one.min(other), one.max(other))
}

criterion_group!(benches, measure);
criterion_main!(benches);
