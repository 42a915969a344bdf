//! The chunks of a facet: the archive's index beside the specification's `findChunksByFacet` over
//! all frames.
//!
//! One facet is of the recordings, with all its chunks close together; the others come every
//! 10,000, 1,000 and 100 frames, so their hits show how the time grows. The first question lists the
//! facets of all segments; it is asked of a new archive each time, of 100,000 frames at most. `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::hint::black_box;

use afterimage::snapshot::get_snapshot_facets;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::frames::{Frames, sizes};

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
            if count <= 100_000 {
                group.sample_size(10);
                group.bench_function(
                    BenchmarkId::new(format!("first question, {name}, {hits} hits"), count),
                    |bench| {
                        bench.iter_batched_ref(
                            || frames.archive(count),
                            |archive| archive.chunks_of(black_box(&facet)).unwrap().len(),
                            BatchSize::PerIteration,
                        );
                    },
                );
            }
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

criterion_group!(benches, facet);
criterion_main!(benches);
