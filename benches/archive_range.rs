//! A range of 51 frames: the archive's view beside the specification's `extractSnapshotRange`,
//! which filters the whole list and joins the text.
//!
//! At one place everything is in the CPU's cache; at random places it is not.
//! `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::hint::black_box;

use afterimage::{id::FrameSeq, snapshot::SnapshotArchive};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use support::frames::{Frames, Places, sizes};

const FRAMES: u64 = 51;

fn range(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_range/{}", frames.name));
    for count in sizes() {
        let archive = frames.archive(count);
        let last = count - FRAMES;
        group.bench_function(BenchmarkId::new("view, one place", count), |bench| {
            bench.iter(|| view(&archive, black_box(last / 2)));
        });
        group.bench_function(BenchmarkId::new("view, random places", count), |bench| {
            let mut places = Places::below(last);
            bench.iter(|| view(&archive, places.next()));
        });
        group.bench_function(BenchmarkId::new("view and text, one place", count), |bench| {
            bench.iter(|| text(&archive, black_box(last / 2)));
        });
        let list = frames.list(count);
        let expected = list.extract_range(last / 2, last / 2 + FRAMES - 1);
        assert_eq!(text(&archive, last / 2), expected.1.len());
        assert_eq!(view(&archive, last / 2), expected.2);
        group.sample_size(20);
        group.bench_function(BenchmarkId::new("list, one place", count), |bench| {
            bench.iter(|| {
                let from = black_box(last / 2);
                black_box(list.extract_range(from, from + FRAMES - 1)).2
            });
        });
        group.sample_size(100);
    }
    group.finish();
}

fn range_from(from: u64) -> std::ops::RangeInclusive<FrameSeq> {
    FrameSeq::new(from)..=FrameSeq::new(from + FRAMES - 1)
}

fn view(archive: &SnapshotArchive, from: u64) -> u64 {
    black_box(archive.range(range_from(from)).unwrap()).tokens()
}

fn text(archive: &SnapshotArchive, from: u64) -> usize {
    let view = archive.range(range_from(from)).unwrap();
    view.text().pieces().map(|piece| black_box(piece).len()).sum()
}

criterion_group!(benches, range);
criterion_main!(benches);
