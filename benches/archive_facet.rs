//! The chunks of a facet: the archive's index beside the specification's `findChunksByFacet` over
//! all frames.
//!
//! One facet is of the recordings, with all its chunks close together; the others come every
//! 10,000, 1,000 and 100 frames, so their hits show how the time grows. The first questions to the
//! archive of a history index its segments: `archive_facet_first` asks a new history each time, and
//! a later one beside it, and a plain loop over the ids of all facets. `AFTERIMAGE_BENCH_FRAMES`
//! limits the sizes: see `support/frames.rs`.

mod support;

use std::hint::black_box;

use afterimage::snapshot::get_snapshot_facets;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::{
    frames::{Frames, sizes},
    loops,
};

fn facet(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_facet/{}", frames.name));
    for count in sizes() {
        let archive = frames.archive(count);
        let list = frames.list(count);
        let middle = (count / 2..count).map(|n| frames.snapshot(n));
        let own = middle
            .filter_map(|snapshot| get_snapshot_facets(&snapshot).first().map(ToString::to_string))
            .find(|id| !id.starts_with("every"));
        let facets = ["every-10000", "every-1000", "every-100"].map(str::to_owned);
        for facet in own.into_iter().chain(facets) {
            let hits = archive.chunks_of(&facet).unwrap().len();
            let name = if facet.starts_with("every") { &*facet } else { "own" };
            group.throughput(Throughput::Elements(hits as u64));
            group.bench_function(
                BenchmarkId::new(format!("archive, {name}, {hits} hits"), count),
                |bench| bench.iter(|| archive.chunks_of(black_box(&facet)).unwrap()),
            );
            assert_eq!(list.find_chunks(&facet).len(), hits);
            group.sample_size(20);
            group.bench_function(
                BenchmarkId::new(format!("list, {name}, {hits} hits"), count),
                |bench| bench.iter(|| list.find_chunks(black_box(&facet))),
            );
            group.sample_size(100);
        }
    }
    group.finish();
}

fn first(criterion: &mut Criterion) {
    const FRAMES: usize = 10_000;
    let (name, texts) = support::tau_bench(FRAMES);
    let ids = loops::ids(&texts);
    let facet = ids[FRAMES / 2].to_string();
    let archive = || loops::captured(loops::frames(&texts)).archive().unwrap();
    let mut group = criterion.benchmark_group(format!("archive_facet_first/{name}"));
    group.bench_function(BenchmarkId::new("plain loop over ids", FRAMES), |bench| {
        bench.iter(|| black_box(&ids).iter().filter(|id| **id == *facet).count());
    });
    let asked = archive();
    assert!(!asked.chunks_of(&facet).unwrap().is_empty());
    group.bench_function(BenchmarkId::new("a later question", FRAMES), |bench| {
        bench.iter(|| asked.chunks_of(black_box(&facet)).unwrap().len());
    });
    group.sample_size(10);
    group.bench_function(BenchmarkId::new("the first question", FRAMES), |bench| {
        bench.iter_batched_ref(
            archive,
            |archive| archive.chunks_of(black_box(&facet)).unwrap().len(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, facet, first);
criterion_main!(benches);
