//! What a push moves and what a drop gives back, counted by the allocator.

use std::cell::Cell;

use afterimage::{
    id::{FrameSeq, Millis},
    snapshot::{ChunkOptions, FrameSnapshot, FrameSnapshotBuilder, Part, SnapshotArchive},
    tokens::Chars4,
};
use allocation_counter::{measure, opt_out};

const MOST_MOVED: u64 = 1 << 20;

/// A debug build does not get as far in the same time.
const FRAMES: u64 = if cfg!(debug_assertions) { 150_000 } else { 1_000_000 };

/// A frame with a call and its result, whose ids are its own.
fn small(n: u64) -> FrameSnapshot {
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    let id = Some(format!("call-{n}").into());
    let call = ChunkOptions::new().part(Part::Call { id: id.clone(), name: "look".into() });
    builder.add_content("{}", call.facet(format!("facet-{n}-call")).facet("every"));
    let result = ChunkOptions::new().part(Part::Result { id }).chunk_type("toolResult");
    builder.add_content(&format!("frame {n}\n"), result.facet(format!("facet-{n}-result")));
    builder.build(Millis::new(0))
}

/// The most that a push moved beyond its own text: whatever is moved is allocated first, and a
/// reallocation counts with its new size. A reader is taken every `reader` frames, and held.
fn most_moved(frames: u64, reader: u64, snapshot: impl Fn(u64) -> FrameSnapshot) -> u64 {
    let mut archive = SnapshotArchive::new();
    let (mut most, mut readers) = (0, Vec::new());
    for n in 0..frames {
        let snapshot = snapshot(n);
        let info = measure(|| archive.push(n, &snapshot).unwrap());
        most = most.max(info.bytes_total.saturating_sub(snapshot.text().len() as u64));
        if n % reader == 0 {
            readers.push(archive.reader());
        }
    }
    assert!(readers.iter().zip((1..).step_by(reader as usize)).all(|(held, n)| held.len() == n));
    most
}

#[test]
fn no_push_moves_more_than_a_mebibyte_beyond_its_own_text() {
    for (frames, reader) in [(FRAMES, u64::MAX), (FRAMES, 997), (FRAMES / 20, 7)] {
        let most = most_moved(frames, reader, small);
        assert!(most <= MOST_MOVED, "{most} bytes moved, with a reader every {reader} frames");
    }
}

#[test]
fn no_push_moves_more_where_frames_have_many_facets_or_much_text() {
    let many = |n: u64| {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        for chunk in 0..20 {
            let facet = ChunkOptions::new().facet(format!("facet-{n}-{chunk}"));
            builder.add_content("some text", facet);
        }
        builder.build(Millis::new(0))
    };
    let long = |n: u64| {
        let mut builder = FrameSnapshotBuilder::new(&Chars4);
        builder.add_content(&"long text ".repeat(2_000), ChunkOptions::new().facet(n.to_string()));
        builder.build(Millis::new(0))
    };
    for most in [most_moved(FRAMES / 15, 501, many), most_moved(FRAMES / 100, 11, long)] {
        assert!(most <= MOST_MOVED, "{most} bytes moved");
    }
}

/// How many bytes of 100 bytes of text come back when these frames are dropped.
fn percent_given_back(drops: impl Fn(u64) -> Vec<std::ops::RangeInclusive<u64>>) -> i64 {
    let (frames, archive) = (4_000_u64, Cell::new(None));
    opt_out(|| {
        let mut filled = SnapshotArchive::new();
        (0..frames).for_each(|n| filled.push(n, &text_of(n)).unwrap());
        archive.set(Some(filled));
    });
    let mut archive = archive.take().unwrap();
    let bytes = archive.totals().bytes;
    let info = measure(|| {
        for range in drops(frames) {
            let range = FrameSeq::new(*range.start())..=FrameSeq::new(*range.end());
            archive.drop_text(range).unwrap();
        }
    });
    -info.bytes_current * 100 / bytes.cast_signed()
}

/// A frame of some 600 bytes in three chunks.
fn text_of(n: u64) -> FrameSnapshot {
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    for chunk in 0..3 {
        let facet = ChunkOptions::new().facet(format!("facet-{n}-{chunk}"));
        builder.add_content(&"The sensor reads 4.2 GHz. ".repeat(8), facet);
    }
    builder.build(Millis::new(0))
}

#[test]
fn dropping_half_the_frames_gives_their_text_back() {
    let every_other = percent_given_back(|frames| (0..frames).step_by(2).map(|n| n..=n).collect());
    assert!(every_other >= 45, "{every_other} % of every other frame");
    let first_half = percent_given_back(|frames| vec![0..=frames / 2 - 1]);
    assert!(first_half >= 45, "{first_half} % of the first half");
}
