//! How much memory an archive takes, counted by the allocator: of recorded histories of a megabyte
//! and more, of all recordings as one history, and of the same repeated with fresh ids.
//!
//! The histories are finished (`shrink_to_fit`); one that takes frames has some hundred kilobytes
//! reserved for them. `held` is what the archive takes in all, `of text` the same as a multiple of the text, and
//! `list` that of the specification's list. `beyond` is what is neither text nor the ids' own text,
//! as a share of 24 bytes a chunk, 40 a frame and 32 a distinct id. The last two columns say how many
//! bytes came back for each byte of text that was dropped with half of the frames.
//!
//! `AFTERIMAGE_BENCH_FRAMES` limits the sizes: see `support/frames.rs`.

mod support;

use std::{collections::HashSet, sync::Arc};

use afterimage::{
    id::FrameSeq,
    snapshot::{FrameSnapshot, PartRef, SnapshotArchive},
};
use support::frames::{Frames, PlainSnapshot, captured, sizes, snapshots};

const SMALLEST_HISTORY: usize = 1_000_000;

fn main() {
    println!(
        "{:<22} {:>9} {:>9} {:>9} {:>14} {:>14} {:>8} {:>7} {:>7} {:>12} {:>12}",
        "history",
        "frames",
        "chunks",
        "ids",
        "text",
        "held",
        "of text",
        "list",
        "beyond",
        "other frames",
        "first half"
    );
    let (name, sessions) = support::corpus();
    let histories: Vec<_> = sessions.iter().map(captured).collect();
    for (number, history) in histories.iter().enumerate() {
        let bytes: usize = snapshots(history).map(|snapshot| snapshot.text().len()).sum();
        if bytes >= SMALLEST_HISTORY {
            report(&format!("{name} {number}"), || snapshots(history).map(Arc::unwrap_or_clone));
        }
    }
    report(&format!("{name}, all"), || {
        histories.iter().flat_map(snapshots).map(Arc::unwrap_or_clone)
    });
    drop(histories);
    let frames = Frames::load();
    for count in sizes() {
        report(&format!("{name}, {count}"), || (0..count).map(|n| frames.snapshot(n)));
    }
}

/// Prints what the archive of these snapshots takes.
fn report<S: Iterator<Item = FrameSnapshot>>(name: &str, snapshots: impl Fn() -> S) {
    let (held, mut archive) = bytes_of(SnapshotArchive::new(), |archive| {
        push_all(archive, &snapshots);
        archive.shrink_to_fit();
    });
    let totals = archive.totals();
    let (ids, id_bytes) = distinct_ids(snapshots());
    let beyond = held - totals.bytes.cast_signed() - id_bytes;
    let allowed = (24 * totals.chunks + 40 * totals.frames).cast_signed() + 32 * ids;
    let fill = |list: &mut Vec<PlainSnapshot>| {
        for (n, snapshot) in (0..).zip(uncounted(snapshots())) {
            list.push(PlainSnapshot::of(n, &snapshot));
        }
    };
    let list = bytes_of(Vec::new(), fill).0;
    let text = totals.bytes as f64;
    let back = |archive: SnapshotArchive, step: u64| {
        let mut dropped = 0;
        let change = bytes_of(archive, |archive| dropped = drop_half(archive, step)).0;
        100.0 * -change as f64 / dropped as f64
    };
    let first_half = back(std::mem::take(&mut archive), totals.frames / 2);
    push_all(&mut archive, &snapshots);
    let other_frames = back(archive, 1);
    println!(
        "{name:<22} {:>9} {:>9} {ids:>9} {:>14} {held:>14} {:>8.3} {:>7.2} {:>6.0}% {other_frames:>11.1}% {first_half:>11.1}%",
        totals.frames,
        totals.chunks,
        totals.bytes,
        held as f64 / text,
        list as f64 / text,
        100.0 * beyond as f64 / allowed as f64,
    );
}

/// How many bytes `change` leaves held that were not before.
fn bytes_of<T>(mut of: T, change: impl FnOnce(&mut T)) -> (i64, T) {
    let info = allocation_counter::measure(|| change(&mut of));
    (info.bytes_current, of)
}

/// The same items, without what is allocated to make them.
fn uncounted<S: Iterator<Item = FrameSnapshot>>(snapshots: S) -> impl Iterator<Item = Uncounted> {
    let mut snapshots = snapshots;
    std::iter::from_fn(move || {
        let mut next = None;
        allocation_counter::opt_out(|| next = snapshots.next().map(Some).map(Uncounted));
        next
    })
}

/// A snapshot whose memory is not counted when it is given back either.
struct Uncounted(Option<FrameSnapshot>);

impl std::ops::Deref for Uncounted {
    type Target = FrameSnapshot;

    fn deref(&self) -> &FrameSnapshot {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Uncounted {
    fn drop(&mut self) {
        allocation_counter::opt_out(|| drop(self.0.take()));
    }
}

fn push_all<S: Iterator<Item = FrameSnapshot>>(
    archive: &mut SnapshotArchive,
    snapshots: &impl Fn() -> S,
) {
    for (n, snapshot) in (0_u64..).zip(uncounted(snapshots())) {
        archive.push(n, &snapshot).unwrap();
    }
}

/// Drops half of the frames: `step` of them, not the next `step`, and so on. Returns the bytes.
fn drop_half(archive: &mut SnapshotArchive, step: u64) -> u64 {
    let starts = (0..archive.totals().frames).step_by(2 * step as usize);
    let ranges = starts.map(|from| FrameSeq::new(from)..=FrameSeq::new(from + step - 1));
    ranges.map(|range| archive.drop_text(range).unwrap().bytes).sum()
}

/// How many distinct ids and names the chunks have, and how long they are.
fn distinct_ids(snapshots: impl Iterator<Item = FrameSnapshot>) -> (i64, i64) {
    let mut ids = HashSet::<String>::new();
    for snapshot in snapshots {
        for chunk in snapshot.chunks() {
            let (id, name) = match chunk.part() {
                PartRef::Call { id, name } => (id, Some(name)),
                PartRef::Result { id } => (id, None),
                _ => (None, None),
            };
            let facets = chunk.facet_ids();
            let names = [chunk.chunk_type(), id, name];
            for name in facets.chain(names.into_iter().flatten()) {
                if !ids.contains(name) {
                    ids.insert(name.to_owned());
                }
            }
        }
    }
    let bytes: usize = ids.iter().map(String::len).sum();
    (ids.len().cast_signed() as i64, bytes.cast_signed() as i64)
}
