//! Opening a saved archive and reading a range of 51 frames, beside reading its files whole.
//!
//! The files are in the page cache. Each time the archive is opened anew, so its tables and the
//! segment of text that the range is in are read and unpacked each time.
//! `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::{fs, hint::black_box, path::Path};

use afterimage::{id::FrameSeq, log::Holder, snapshot::SnapshotArchive};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use support::frames::{Frames, Places, sizes};

const FRAMES: u64 = 51;

fn open(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_open/{}", frames.name));
    group.sample_size(10);
    for count in sizes() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("archive");
        frames.archive(count).save(&directory, &Holder::new("bench")).unwrap();
        let mut places = Places::below(count - FRAMES);
        group.bench_function(BenchmarkId::new("open and read a range", count), |bench| {
            bench.iter(|| range(&directory, places.next()));
        });
        group.bench_function(BenchmarkId::new("read the files", count), |bench| {
            bench.iter(|| whole(black_box(&directory)));
        });
    }
    group.finish();
}

fn range(directory: &Path, from: u64) -> usize {
    let opened = SnapshotArchive::open(directory).unwrap();
    assert!(opened.problems.is_empty());
    let range = FrameSeq::new(from)..=FrameSeq::new(from + FRAMES - 1);
    let view = opened.archive.range(range).unwrap();
    assert_eq!(view.totals().frames, FRAMES);
    black_box(view.text().join()).len()
}

fn whole(directory: &Path) -> usize {
    let files = ["segments.rec", "texts.rec", "tables.rec"];
    files.map(|file| black_box(fs::read(directory.join(file)).unwrap()).len()).iter().sum()
}

criterion_group!(benches, open);
criterion_main!(benches);
