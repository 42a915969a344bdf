//! Pushing counted snapshots: the archive beside copying their text into fresh segments, and beside
//! pushing them to the specification's list, with the text twice.
//!
//! What holds as many frames as the id says takes batches of 1,000 more; each time is that of a
//! batch. The snapshots are made before the clock runs. What holds twice the frames is
//! made anew. The list is left out at a million frames, where it would take four times the memory
//! of the archive. `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use afterimage::snapshot::FrameSnapshot;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::frames::{Frames, LARGEST_LIST, PlainSnapshot, sizes};

const BATCH: u64 = 1_000;
const SEGMENT_BYTES: usize = 256 << 10;

fn push(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_push/{}", frames.name));
    group.throughput(Throughput::Elements(BATCH));
    // What is pushed stays, so the time bounds the memory.
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    for count in sizes() {
        group.bench_function(BenchmarkId::new("archive, 1000 frames", count), |bench| {
            let mut grown = Grown::new(&frames, count, || frames.archive(count));
            bench.iter_custom(|batches| {
                grown.time(batches, |archive, first, batch| {
                    for (sequence, snapshot) in (first..).zip(batch) {
                        archive.push(sequence, black_box(snapshot)).unwrap();
                    }
                })
            });
        });
        group.bench_function(BenchmarkId::new("copied text, 1000 frames", count), |bench| {
            let copied = || {
                (0..count).map(|n| frames.snapshot(n)).fold(Vec::new(), |mut segments, snapshot| {
                    copy(&mut segments, snapshot.text());
                    segments
                })
            };
            let mut grown = Grown::new(&frames, count, copied);
            bench.iter_custom(|batches| {
                grown.time(batches, |segments, _, batch| {
                    batch.iter().for_each(|snapshot| copy(segments, snapshot.text()));
                })
            });
        });
        if count <= LARGEST_LIST {
            group.bench_function(BenchmarkId::new("list, 1000 frames", count), |bench| {
                let list = || frames.list(count).unwrap_or_default();
                let mut grown = Grown::new(&frames, count, list);
                bench.iter_custom(|batches| {
                    grown.time(batches, |list, first, batch| {
                        let plain = |(n, snapshot)| PlainSnapshot::of(n, black_box(snapshot));
                        list.0.extend((first..).zip(batch).map(plain));
                    })
                });
            });
        }
    }
    group.finish();
}

/// Something that takes frames, and is made anew when it holds twice as many as at first.
struct Grown<'f, T, M> {
    frames: &'f Frames,
    make: M,
    count: u64,
    next: u64,
    held: T,
}

impl<'f, T, M: Fn() -> T> Grown<'f, T, M> {
    fn new(frames: &'f Frames, count: u64, make: M) -> Self {
        let held = make();
        Self { frames, make, count, next: count, held }
    }

    fn time(&mut self, batches: u64, push: impl Fn(&mut T, u64, &[FrameSnapshot])) -> Duration {
        let mut time = Duration::ZERO;
        for _ in 0..batches {
            if self.next >= 2 * self.count {
                self.held = (self.make)();
                self.next = self.count;
            }
            let first = self.next;
            self.next += BATCH;
            let batch: Vec<_> = (first..self.next).map(|n| self.frames.snapshot(n)).collect();
            let start = Instant::now();
            push(&mut self.held, first, &batch);
            time += start.elapsed();
        }
        time
    }
}

/// Appends to the last segment, or to a fresh one where it is full.
fn copy(segments: &mut Vec<String>, text: &str) {
    let has_room = |last: &&mut String| last.len() + text.len() <= last.capacity();
    if let Some(last) = segments.last_mut().filter(has_room) {
        last.push_str(text);
    } else {
        let mut segment = String::with_capacity(SEGMENT_BYTES.max(text.len()));
        segment.push_str(text);
        segments.push(segment);
    }
}

criterion_group!(benches, push);
criterion_main!(benches);
