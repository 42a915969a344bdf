//! The archive on disk: saved, opened, appended to, unloaded, damaged and cut.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use afterimage::{
    ErrorKind,
    id::{FrameSeq, Millis, Role},
    json::{self, Value},
    log::{
        Files, Holder,
        testing::{Fault, MemoryFiles, UnsyncedBytes},
    },
    snapshot::{
        ArchiveOptions, ArchiveReader, ChunkOptions, FrameSnapshot, FrameSnapshotBuilder,
        OpenedArchive, Part, SnapshotArchive,
    },
    tokens::Chars4,
};
use proptest::prelude::*;

fn holder() -> Holder {
    Holder::new("test")
}

fn all() -> std::ops::RangeInclusive<FrameSeq> {
    FrameSeq::new(0)..=FrameSeq::new(u64::MAX)
}

/// A snapshot with a bit of everything.
fn snapshot(n: u64) -> FrameSnapshot {
    let mut builder = FrameSnapshotBuilder::new(&Chars4);
    let metadata =
        json::read(format!(r#"{{"n":{n},"deep":[[{{"é":1.50}}]]}}"#).as_bytes()).unwrap();
    let Value::Object(metadata) = metadata else { unreachable!() };
    let call = Part::Call { id: Some(format!("call-{n}").into()), name: "open".into() };
    builder.add_content(
        &format!("frame {n} 漢字\n"),
        ChunkOptions::new().facet("every").facet(format!("f-{n}")).role(Role::User),
    );
    if n.is_multiple_of(3) {
        builder.nest();
    }
    if !n.is_multiple_of(5) {
        let options = ChunkOptions::new().facet(format!("g-{}", n % 7)).chunk_type("event");
        builder.add_content(
            &"x😀".repeat((n % 11) as usize),
            options.part(call).role(Role::Assistant),
        );
        builder.add_content("", ChunkOptions::new());
        builder.add_content("end", ChunkOptions::new().facets([]).metadata(metadata));
    }
    if n % 13 == 4 {
        return FrameSnapshotBuilder::new(&Chars4).build(Millis::new(-1));
    }
    builder.build(Millis::new(1_763_683_200_000 + n.cast_signed()))
}

fn fill(archive: &mut SnapshotArchive, frames: std::ops::Range<u64>) {
    frames.for_each(|n| archive.push(n * 2, &snapshot(n)).unwrap());
}

fn small() -> SnapshotArchive {
    SnapshotArchive::with_options(ArchiveOptions { segment_bytes: 64, segment_frames: 5 })
}

/// Checks that a reader holds these frames and nothing else.
fn check(reader: &ArchiveReader, frames: std::ops::Range<u64>) {
    let expected: Vec<_> = frames.clone().map(|n| (FrameSeq::new(n * 2), snapshot(n))).collect();
    assert_eq!(reader.len(), expected.len());
    assert_eq!(reader.all().unwrap().snapshots().collect::<Vec<_>>(), expected);
    let of = |facet: &str| reader.chunks_of(facet).unwrap().len();
    assert_eq!(of("every"), expected.iter().filter(|(_, s)| !s.is_empty()).count());
    assert_eq!(of("nobody"), 0);
    for n in frames.step_by(3) {
        let view = reader.range((n * 2).into()..=(n * 2 + 3).into()).unwrap();
        assert_eq!(view.snapshots().next().map(|(_, s)| s), Some(snapshot(n)));
        assert_eq!(of(&format!("f-{n}")), usize::from(!snapshot(n).is_empty()));
    }
}

#[test]
fn what_is_saved_opens_equal_and_takes_more() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("new").join("archive");
    let mut archive = small();
    fill(&mut archive, 0..100);
    archive.save(&directory, &holder()).unwrap();
    check(&archive, 0..100);
    let mut opened = SnapshotArchive::open(&directory).unwrap();
    assert!(opened.problems.is_empty());
    assert_eq!(opened.archive.totals(), archive.totals());
    check(&opened.archive, 0..100);
    fill(&mut opened.archive, 100..130);
    check(&opened.archive, 0..130);
    let before = opened.archive.reader();
    let written = opened.archive.append(&holder()).unwrap();
    assert_eq!(written.frames, 30);
    assert_eq!(opened.archive.append(&holder()).unwrap().frames, 0);
    check(&SnapshotArchive::open(&directory).unwrap().archive, 0..130);
    // Who opened it before sees what was there then, and may not append beside it.
    check(&archive, 0..100);
    check(&before, 0..130);
    fill(&mut archive, 100..101);
    assert_eq!(archive.append(&holder()).unwrap_err().kind(), ErrorKind::Conflict);
    check(&archive, 0..101);
    let again = archive.save(&directory, &holder()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
}

#[test]
fn what_is_unloaded_is_read_again() {
    let scratch = tempfile::tempdir().unwrap();
    let mut archive = small();
    fill(&mut archive, 0..60);
    assert_eq!(archive.unload(u64::MAX).frames, 0);
    archive.save(scratch.path(), &holder()).unwrap();
    let reader = archive.reader();
    let given_back = archive.unload(80);
    assert!(given_back.frames > 30 && given_back.frames <= 40, "{given_back:?}");
    fill(&mut archive, 60..70);
    check(&archive, 0..70);
    check(&reader, 0..60);
    // Another directory gets everything, from wherever it is.
    let other = scratch.path().join("other");
    archive.save(&other, &holder()).unwrap();
    check(&SnapshotArchive::open(&other).unwrap().archive, 0..70);
    assert_eq!(archive.directory(), Some(&*other));
}

#[test]
fn dropped_text_stays_dropped_on_disk() {
    let scratch = tempfile::tempdir().unwrap();
    let mut archive = small();
    fill(&mut archive, 0..40);
    archive.drop_text(7.into()..=31.into()).unwrap();
    archive.save(scratch.path(), &holder()).unwrap();
    let mut opened = SnapshotArchive::open(scratch.path()).unwrap().archive;
    for archive in [&archive, &opened] {
        assert_eq!(archive.range(all()).unwrap_err().kind(), ErrorKind::Dropped);
        assert_eq!(archive.measure(all()).unwrap().frames, 40);
        let kept = archive.range(32.into()..=80.into()).unwrap();
        assert!(kept.snapshots().map(|(_, s)| s).eq((16..40).map(snapshot)));
        assert_eq!(archive.chunks_of("every").unwrap().len(), 37);
    }
    let error = opened.drop_text(all()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stored);
}

const FILES: [&str; 3] = ["segments.rec", "texts.rec", "tables.rec"];

/// A small archive's files, each with its path.
fn saved(frames: std::ops::Range<u64>) -> Vec<(PathBuf, Vec<u8>)> {
    let files = MemoryFiles::default();
    let mut archive = small();
    fill(&mut archive, frames);
    archive.save_on(Arc::new(files.clone()), "archive", &holder()).unwrap();
    let path = |name: &&str| Path::new("archive").join(name);
    FILES.iter().map(path).map(|path| (path.clone(), files.bytes(path).unwrap())).collect()
}

/// Opens an archive of which one file has other bytes.
fn open_with(
    files: &[(PathBuf, Vec<u8>)],
    changed: &Path,
    bytes: &[u8],
) -> afterimage::Result<OpenedArchive> {
    let disk = MemoryFiles::default();
    disk.create_dir(Path::new("archive")).unwrap();
    for (path, sound) in files {
        disk.put(path, if path == changed { bytes } else { sound });
    }
    SnapshotArchive::open_on(Arc::new(disk), "archive")
}

#[test]
fn a_flipped_byte_costs_one_segment_and_is_named() {
    let files = saved(0..12);
    for (path, bytes) in &files {
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let is_head = at < 32;
            let Ok(opened) = open_with(&files, path, &flipped) else {
                assert!(is_head && path.ends_with("segments.rec"), "{path:?} {at}");
                continue;
            };
            let archive = opened.archive;
            let (mut whole, mut refused) = (0, Vec::new());
            for n in 0..12 {
                let sequence = FrameSeq::new(n * 2);
                match archive.range(sequence..=sequence) {
                    Ok(view) if view.is_empty() => {}
                    Ok(view) => {
                        assert_eq!(
                            view.snapshots().next().unwrap().1,
                            snapshot(n),
                            "{path:?} {at}"
                        );
                        whole += 1;
                    }
                    Err(error) => refused.push(error),
                }
            }
            let found = opened.problems.iter().chain(&refused);
            assert!(found.clone().count() > 0, "{path:?}, byte {at}: unnoticed");
            assert!(found.clone().all(|e| e.kind() != ErrorKind::Io), "{path:?} {at}: {found:?}");
            assert!(whole >= 7 || is_head, "{path:?}, byte {at}: only {whole} frames are whole");
        }
    }
}

#[test]
fn a_cut_file_keeps_what_is_before_the_cut() {
    let files = saved(0..12);
    for (path, bytes) in &files {
        for end in 0..bytes.len() {
            let Ok(opened) = open_with(&files, path, &bytes[..end]) else {
                assert!(end < 32 && path.ends_with("segments.rec"), "{path:?} {end}");
                continue;
            };
            let archive = opened.archive;
            let mut is_noticed = !opened.problems.is_empty();
            for n in 0..archive.len() as u64 {
                match archive.range((n * 2).into()..=(n * 2).into()) {
                    Ok(view) => assert_eq!(view.snapshots().next().unwrap().1, snapshot(n)),
                    Err(error) => {
                        assert_eq!(error.place().file.as_ref(), Some(path), "{error}");
                        is_noticed = true;
                    }
                }
            }
            assert!(is_noticed || archive.len() < 12, "{path:?}, cut at {end}");
        }
    }
}

#[test]
fn a_missing_file_is_said_where_it_is_needed() {
    let scratch = tempfile::tempdir().unwrap();
    let mut archive = small();
    assert_eq!(SnapshotArchive::open(scratch.path()).unwrap_err().kind(), ErrorKind::Io);
    fill(&mut archive, 0..12);
    archive.save(scratch.path(), &holder()).unwrap();
    fs::remove_file(scratch.path().join("texts.rec")).unwrap();
    let opened = SnapshotArchive::open(scratch.path()).unwrap().archive;
    assert_eq!(opened.measure(all()).unwrap(), archive.totals());
    assert_eq!(opened.chunks_of("every").unwrap().len(), 11);
    let error = opened.range(all()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.place().file, Some(scratch.path().join("texts.rec")));
}

#[test]
fn whatever_the_disk_does_the_archive_holds_what_it_held() {
    let directory = Path::new("archive");
    for fault in [Fault::Fail, Fault::Short, Fault::Crash] {
        for operation in 0.. {
            let files = MemoryFiles::default();
            let mut archive = small();
            fill(&mut archive, 0..20);
            files.fault_at(operation, fault);
            let saved = archive.save_on(Arc::new(files.clone()), directory, &holder());
            check(&archive, 0..20);
            let Err(error) = saved else { break };
            assert_eq!(error.kind(), ErrorKind::Io, "{operation}: {error}");
            assert!(archive.directory().is_none());
            // The next attempt finds nothing in its way, whatever is left of this one.
            let left =
                if fault == Fault::Crash { files.crash(UnsyncedBytes::Kept, true) } else { files };
            let saved = archive.save_on(Arc::new(left.clone()), directory, &holder());
            match saved {
                Ok(()) => {}
                // The last step was done, and then the machine went down.
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
            }
            check(&SnapshotArchive::open_on(Arc::new(left), directory).unwrap().archive, 0..20);
        }
    }
}

#[test]
fn an_append_that_fails_leaves_the_directory_as_it_was() {
    let directory = Path::new("archive");
    for fault in [Fault::Fail, Fault::Short] {
        for operation in 0.. {
            let files = MemoryFiles::default();
            let mut archive = small();
            fill(&mut archive, 0..10);
            archive.save_on(Arc::new(files.clone()), directory, &holder()).unwrap();
            let bytes = |name: &str| files.bytes(directory.join(name)).unwrap();
            let before = FILES.map(bytes);
            fill(&mut archive, 10..20);
            files.fault_at(files.operations() + operation, fault);
            let appended = archive.append(&holder());
            check(&archive, 0..20);
            if appended.is_ok() {
                break;
            }
            assert_eq!(FILES.map(bytes), before, "{fault:?} {operation}");
            // The next attempt finds nothing in its way.
            assert_eq!(archive.append(&holder()).unwrap().frames, 10);
            check(&SnapshotArchive::open_on(Arc::new(files), directory).unwrap().archive, 0..20);
        }
    }
}

#[test]
fn what_was_read_of_an_opened_archive_is_given_back() {
    let files = Arc::new(MemoryFiles::default());
    let mut archive = small();
    fill(&mut archive, 0..40);
    archive.save_on(files.clone(), "archive", &holder()).unwrap();
    let mut opened = SnapshotArchive::open_on(files, "archive").unwrap().archive;
    assert_eq!(opened.unload(u64::MAX).frames, 0);
    check(&opened, 0..40);
    assert_eq!(opened.unload(u64::MAX).frames, 40);
    check(&opened, 0..40);
}

#[test]
fn what_was_appended_is_there_after_a_crash_and_nothing_is_half() {
    let directory = Path::new("archive");
    for unsynced in
        [UnsyncedBytes::Lost, UnsyncedBytes::Halved, UnsyncedBytes::Zeroed, UnsyncedBytes::Kept]
    {
        for operation in 0.. {
            let files = MemoryFiles::default();
            let mut archive = small();
            fill(&mut archive, 0..10);
            archive.save_on(Arc::new(files.clone()), directory, &holder()).unwrap();
            let done = files.operations();
            files.fault_at(done + operation, Fault::Crash);
            fill(&mut archive, 10..20);
            let appended = archive.append(&holder());
            let left = files.crash(unsynced, true);
            let mut opened = SnapshotArchive::open_on(Arc::new(left), directory).unwrap().archive;
            let frames = opened.len() as u64;
            check(&opened, 0..frames);
            assert!(frames >= 10);
            if appended.is_ok() {
                assert_eq!(frames, 20);
                break;
            }
            // What a crash leaves is cut, and the rest goes on.
            fill(&mut opened, frames..25);
            opened.append(&holder()).unwrap();
            check(&opened, 0..25);
        }
    }
}

#[test]
fn a_full_disk_leaves_the_archive_as_it_was() {
    let files = MemoryFiles::default();
    let mut archive = small();
    fill(&mut archive, 0..30);
    files.set_room(Some(1_000));
    let error = archive.save_on(Arc::new(files.clone()), "archive", &holder()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    check(&archive, 0..30);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: afterimage_testkit::cases(48), ..ProptestConfig::default() })]

    #[test]
    fn saves_opens_and_unloads_change_no_answer(steps in prop::collection::vec((0..4_u8, 1..20_u64), 1..12)) {
        let files = Arc::new(MemoryFiles::default());
        let mut archive = small();
        let (mut frames, mut copies) = (0, 0);
        for (step, count) in steps {
            match step {
                0 => {
                    fill(&mut archive, frames..frames + count);
                    frames += count;
                }
                1 if archive.directory().is_some() => { archive.append(&holder()).unwrap(); }
                1 => {
                    copies += 1;
                    archive.save_on(files.clone(), format!("copy-{copies}"), &holder()).unwrap();
                }
                2 => { archive.unload(count * 3); }
                _ => if let Some(directory) = archive.directory().map(Path::to_owned) {
                    archive.append(&holder()).unwrap();
                    let opened = SnapshotArchive::open_on(files.clone(), directory).unwrap();
                    prop_assert!(opened.problems.is_empty());
                    archive = opened.archive;
                },
            }
            check(&archive, 0..frames);
        }
    }
}
