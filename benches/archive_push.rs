//! Pushing counted snapshots: the archive beside copying their text into fresh segments, and beside
//! pushing them to the specification's list, with the text twice.
//!
//! What holds as many frames as the id says takes batches of 256 more, about a segment; each time
//! is that of a batch. The snapshots are made before the clock runs. Archive and copied text take
//! every batch, in turns first, and so find caches and heap in the same state; what holds twice the
//! frames is kept and made anew, since a history that grows gets fresh memory, and so must both.
//! What was pushed is kept as well, as in a history: its memory would come back warm to whoever
//! asks first. `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use afterimage::snapshot::{FrameSnapshot, SnapshotArchive};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::frames::{Frames, List, PlainSnapshot, sizes};

const BATCH: u64 = 256;
const SEGMENT_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, PartialEq)]
enum Holder {
    Archive,
    Copied,
    List,
}

fn push(criterion: &mut Criterion) {
    let frames = Frames::load();
    let mut group = criterion.benchmark_group(format!("archive_push/{}", frames.name));
    group.throughput(Throughput::Elements(BATCH));
    // What is pushed stays, so the time bounds the memory.
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    for count in sizes() {
        // Made when the first is asked for, so that a filter leaves out the rest.
        let mut held = None;
        for (name, holder) in
            [("archive", Holder::Archive), ("copied text", Holder::Copied), ("list", Holder::List)]
        {
            group.bench_function(BenchmarkId::new(format!("{name}, 256 frames"), count), |bench| {
                let held = held.get_or_insert_with(|| Held::new(&frames, count));
                bench.iter_custom(|batches| (0..batches).map(|_| held.time(holder)).sum());
            });
        }
    }
    group.finish();
}

/// What takes the frames.
struct Held<'f> {
    frames: &'f Frames,
    /// How many frames it held at first.
    count: u64,
    next: u64,
    archive: SnapshotArchive,
    copied: Vec<String>,
    list: List,
    /// What holds twice the frames: given back, its memory would be no fresh one.
    full: Vec<(SnapshotArchive, Vec<String>)>,
    /// What was pushed. A history keeps it too.
    pushed: Vec<Vec<FrameSnapshot>>,
}

impl<'f> Held<'f> {
    fn new(frames: &'f Frames, count: u64) -> Self {
        let mut held = Self::empty(frames, count);
        held.fill();
        held
    }

    fn empty(frames: &'f Frames, count: u64) -> Self {
        let (archive, copied, list, full, pushed) = Default::default();
        Self { frames, count, next: 0, archive, copied, list, full, pushed }
    }

    fn fill(&mut self) {
        while self.next < self.count {
            self.time(Holder::List);
        }
    }

    /// Pushes the next batch to all. Returns how long one of them took.
    fn time(&mut self, timed: Holder) -> Duration {
        if self.next >= 2 * self.count {
            let Self { frames, count, .. } = *self;
            let full = std::mem::replace(self, Self::empty(frames, count));
            (self.full, self.pushed) = (full.full, full.pushed);
            self.full.push((full.archive, full.copied));
            self.fill();
        }
        let first = self.next;
        self.next += BATCH;
        let batch: Vec<_> = (first..self.next).map(|n| self.frames.snapshot(n)).collect();
        let mut holders = [Holder::Archive, Holder::Copied];
        holders.rotate_left((first / BATCH % 2) as usize);
        let list = (timed == Holder::List).then_some(Holder::List);
        let mut time = Duration::ZERO;
        for holder in holders.into_iter().chain(list) {
            let start = Instant::now();
            self.push(holder, first, &batch);
            if holder == timed {
                time = start.elapsed();
            }
        }
        self.pushed.push(batch);
        time
    }

    fn push(&mut self, holder: Holder, first: u64, batch: &[FrameSnapshot]) {
        let batch = (first..).zip(black_box(batch));
        match holder {
            Holder::Archive => batch.for_each(|(n, snapshot)| {
                self.archive.push(n, snapshot).unwrap();
            }),
            Holder::Copied => {
                batch.for_each(|(_, snapshot)| copy(&mut self.copied, snapshot.text()));
            }
            Holder::List => {
                self.list.0.extend(batch.map(|(n, snapshot)| PlainSnapshot::of(n, snapshot)));
            }
        }
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
