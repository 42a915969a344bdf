//! Files of records: what cuts, flips, crashes and full disks leave of them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use afterimage_log::{
    Damage, DamageReason, DirLock, DiskFiles, Error, ErrorKind, FileKind, Files, Holder, OpenFile,
    OpenMode, Position, RecordFile, RecordWriter, Recovery, ScanEntry, TornEnd, create_dirs,
    testing::{Fault, MemoryFiles, UnsyncedBytes},
    write_atomic,
};
use proptest::prelude::*;

const KIND: FileKind = FileKind::new(*b"test\0\0\0\0", 3);
const PATH: &str = "records";
const FILE_HEADER: usize = 32;
const HEADER: usize = 36;

const ALL_UNSYNCED: [UnsyncedBytes; 4] =
    [UnsyncedBytes::Lost, UnsyncedBytes::Halved, UnsyncedBytes::Zeroed, UnsyncedBytes::Kept];

fn payloads() -> Vec<Vec<u8>> {
    vec![b"first".to_vec(), Vec::new(), vec![7; 40], b"the one before last".to_vec(), vec![0; 9]]
}

fn open(files: &MemoryFiles) -> Result<(RecordWriter, Recovery), Error> {
    RecordWriter::open(Arc::new(files.clone()), PATH, KIND)
}

/// A disk with a file of these payloads, and where each record is.
fn filled(payloads: &[Vec<u8>]) -> (MemoryFiles, Vec<Position>) {
    let files = MemoryFiles::new();
    let (mut writer, recovery) = open(&files).unwrap();
    assert_eq!(recovery, Recovery::default());
    let positions = payloads.iter().map(|payload| writer.append(payload).unwrap()).collect();
    writer.sync().unwrap();
    (files, positions)
}

/// A disk with a file of these bytes.
fn holding(bytes: impl Into<Vec<u8>>) -> MemoryFiles {
    let files = MemoryFiles::new();
    files.put(PATH, bytes);
    files
}

#[derive(Debug, Default)]
struct Found {
    records: Vec<(u64, Vec<u8>)>,
    damage: Vec<Damage>,
    torn: Option<TornEnd>,
}

/// What a scan finds, each record read; the entries cover the file.
fn scan(files: &MemoryFiles) -> Result<Found, Error> {
    let file = RecordFile::open(files, PATH, KIND)?;
    let mut found = Found::default();
    let mut at = FILE_HEADER as u64;
    for entry in file.scan()? {
        match entry? {
            ScanEntry::Record(record) => {
                assert_eq!(record.position.offset(), at);
                let payload = file.read(record.position)?;
                assert_eq!(payload.len() as u64, record.length);
                at += HEADER as u64 + record.length;
                found.records.push((record.index, payload));
            }
            ScanEntry::Damage(damage) => {
                if damage.length > 0 {
                    assert_eq!(damage.offset, at);
                    at += damage.length;
                }
                found.damage.push(damage);
            }
            ScanEntry::Torn(torn) => {
                assert_eq!(torn.offset, at);
                at += torn.length;
                found.torn = Some(torn);
            }
        }
    }
    assert_eq!(at, file.length()?);
    Ok(found)
}

fn numbered(payloads: &[Vec<u8>]) -> Vec<(u64, Vec<u8>)> {
    (0..).zip(payloads.iter().cloned()).collect()
}

#[test]
fn what_was_appended_is_read_back() {
    let payloads = payloads();
    let (files, positions) = filled(&payloads);
    let found = scan(&files).unwrap();
    assert_eq!(found.records, numbered(&payloads));
    assert!(found.damage.is_empty() && found.torn.is_none());
    let file = RecordFile::open(&files, PATH, KIND).unwrap();
    for (position, payload) in positions.iter().zip(&payloads) {
        assert_eq!(&file.read(*position).unwrap(), payload);
    }
    let outline: Vec<ScanEntry> = file.outline().unwrap().map(Result::unwrap).collect();
    let scanned: Vec<ScanEntry> = file.scan().unwrap().map(Result::unwrap).collect();
    assert_eq!(outline, scanned);
}

#[test]
fn a_file_that_is_cut_at_any_byte_keeps_the_records_before_the_cut() {
    let payloads = payloads();
    let (files, positions) = filled(&payloads);
    let bytes = files.bytes(PATH).unwrap();
    let ends: Vec<usize> = positions
        .iter()
        .zip(&payloads)
        .map(|(at, payload)| at.offset() as usize + HEADER + payload.len())
        .collect();
    for cut in 0..=bytes.len() {
        let files = holding(&bytes[..cut]);
        if cut < FILE_HEADER {
            scan(&files).unwrap_err();
            assert_eq!(open(&files).is_ok(), cut == 0, "only an empty file is begun anew");
            continue;
        }
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let end = if whole == 0 { FILE_HEADER } else { ends[whole - 1] };
        let found = scan(&files).unwrap();
        assert_eq!(found.records, numbered(&payloads[..whole]));
        assert!(found.damage.is_empty());
        assert_eq!(found.torn.is_some(), cut > end);
        for (position, payload) in positions.iter().zip(&payloads).skip(whole) {
            let read = RecordFile::open(&files, PATH, KIND).unwrap().read(*position);
            let at_end = position.offset() >= cut as u64;
            let expected = if at_end { ErrorKind::OutOfRange } else { ErrorKind::Damaged };
            assert_eq!(read.unwrap_err().kind(), expected, "{payload:?}");
        }

        let (mut writer, recovery) = open(&files).unwrap();
        assert_eq!(recovery.records, whole as u64);
        match recovery.cut {
            None => assert_eq!(cut, end),
            Some(tail) => {
                assert_eq!(tail.torn, found.torn.unwrap());
                assert_eq!(files.bytes(&tail.copy).unwrap(), &bytes[end..cut]);
            }
        }
        writer.append(b"after").unwrap();
        writer.sync().unwrap();
        let mut expected = payloads[..whole].to_vec();
        expected.push(b"after".to_vec());
        let found = scan(&files).unwrap();
        assert_eq!(found.records, numbered(&expected));
        assert!(found.torn.is_none());
    }
}

#[test]
fn every_flipped_bit_is_found_and_takes_one_record_at_most() {
    let payloads = payloads();
    let (files, positions) = filled(&payloads);
    let bytes = files.bytes(PATH).unwrap();
    for at in 0..bytes.len() {
        let hit = positions.iter().rposition(|position| position.offset() as usize <= at);
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let files = holding(flipped);
            let Some(hit) = hit else {
                let kind = scan(&files).unwrap_err().kind();
                assert!(matches!(kind, ErrorKind::Damaged | ErrorKind::UnknownFormat), "{kind:?}");
                open(&files).unwrap_err();
                continue;
            };
            let mut expected = numbered(&payloads);
            expected.remove(hit);
            let found = scan(&files).unwrap();
            assert_eq!(found.records, expected, "byte {at}, bit {bit}");
            let file = RecordFile::open(&files, PATH, KIND).unwrap();
            assert_eq!(file.read(positions[hit]).unwrap_err().kind(), ErrorKind::Damaged);
            let offset = positions[hit].offset();
            if hit + 1 == payloads.len() {
                assert_eq!(found.torn.unwrap().offset, offset);
                assert!(open(&files).unwrap().1.cut.is_some());
            } else {
                let [damage] = &found.damage[..] else { panic!("{:?}", found.damage) };
                assert_eq!((damage.record, damage.offset), (hit as u64, offset));
                // What is in the middle stays, and the file takes records nevertheless.
                let (mut writer, recovery) = open(&files).unwrap();
                assert_eq!(recovery.cut, None);
                assert_eq!(writer.next_index(), payloads.len() as u64);
                let position = writer.append(b"after").unwrap();
                assert_eq!(file.read(position).unwrap(), b"after");
            }
        }
    }
}

#[test]
fn an_error_of_damage_names_file_record_and_offset() {
    let (files, positions) = filled(&payloads());
    let mut bytes = files.bytes(PATH).unwrap();
    bytes[positions[3].offset() as usize + HEADER] ^= 1;
    let files = holding(bytes);
    let file = RecordFile::open(&files, PATH, KIND).unwrap();
    let error = file.read(positions[3]).unwrap_err();
    assert_eq!(error.place().file.as_deref(), Some(Path::new(PATH)));
    assert_eq!(error.place().record, Some(3));
    assert_eq!(error.place().offset, Some(positions[3].offset()));
    let found = scan(&files).unwrap();
    assert_eq!(found.damage[0].to_error().to_string(), error.to_string());
    assert!(
        found.damage[0].to_string().contains("(records, record 3, offset 185, 55 bytes)"),
        "{}",
        found.damage[0]
    );
}

#[test]
fn a_stretch_of_zeros_takes_the_records_that_it_touches() {
    let payloads = payloads();
    let (files, positions) = filled(&payloads);
    let mut bytes = files.bytes(PATH).unwrap();
    bytes[positions[1].offset() as usize + 3..positions[3].offset() as usize - 3].fill(0);
    let found = scan(&holding(bytes)).unwrap();
    let indices: Vec<u64> = found.records.iter().map(|record| record.0).collect();
    assert_eq!(indices, [0, 3, 4]);
    let [damage] = &found.damage[..] else { panic!("{:?}", found.damage) };
    assert_eq!((damage.record, damage.reason), (1, DamageReason::Header));
}

#[test]
fn bytes_that_are_missing_in_the_middle_are_no_torn_tail() {
    let (files, positions) = filled(&payloads());
    let mut bytes = files.bytes(PATH).unwrap();
    let start = positions[1].offset() as usize;
    bytes.drain(start + 2..start + 9);
    let files = holding(bytes.clone());
    let found = scan(&files).unwrap();
    assert_eq!(found.records.len(), 1);
    assert_eq!(found.torn, None);
    let from = positions[2].offset();
    assert_eq!(found.damage.last().unwrap().reason, DamageReason::Displaced { from });
    assert_eq!(open(&files).unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(files.bytes(PATH).unwrap(), bytes);
}

#[test]
fn a_record_that_was_taken_out_is_noticed() {
    let (files, positions) = filled(&payloads());
    let mut bytes = files.bytes(PATH).unwrap();
    bytes.drain(positions[1].offset() as usize..positions[2].offset() as usize);
    let files = holding(bytes);
    let found = scan(&files).unwrap();
    assert_eq!(found.records.len(), 1);
    let [damage] = &found.damage[..] else { panic!("{:?}", found.damage) };
    let from = positions[2].offset();
    assert_eq!((damage.record, damage.reason), (1, DamageReason::Displaced { from }));
    let file = RecordFile::open(&files, PATH, KIND).unwrap();
    assert_eq!(file.read(positions[1]).unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(open(&files).unwrap_err().kind(), ErrorKind::Damaged);
}

#[test]
fn a_tail_of_several_records_is_cut_as_one() {
    let payloads = payloads();
    let (files, positions) = filled(&payloads);
    let mut bytes = files.bytes(PATH).unwrap();
    // The header of one, and the payload of the last.
    bytes[positions[3].offset() as usize + 9] ^= 1;
    bytes[positions[4].offset() as usize + HEADER] ^= 1;
    let files = holding(bytes.clone());
    let torn = scan(&files).unwrap().torn.unwrap();
    assert_eq!((torn.record, torn.offset), (3, positions[3].offset()));
    let (_, recovery) = open(&files).unwrap();
    let cut = recovery.cut.unwrap();
    assert_eq!((recovery.records, recovery.damage), (3, Vec::new()));
    assert_eq!(cut.torn, torn);
    assert_eq!(files.bytes(cut.copy).unwrap(), bytes[torn.offset as usize..]);
}

#[test]
fn a_record_file_inside_of_a_payload_is_never_taken_for_records() {
    let (inner, _) = filled(&[vec![1; 4], vec![2; 4], vec![3; 4]]);
    let payload = inner.bytes(PATH).unwrap();
    let (files, positions) = filled(&[b"a".to_vec(), payload.clone(), b"b".to_vec()]);
    let bytes = files.bytes(PATH).unwrap();
    for at in 0..HEADER {
        let mut damaged = bytes.clone();
        damaged[positions[1].offset() as usize + at] ^= 1;
        let found = scan(&holding(damaged)).unwrap();
        assert_eq!(found.records, [(0, b"a".to_vec()), (2, b"b".to_vec())]);
        assert_eq!(found.damage.len(), 1);
    }
    // Torn in the middle of it, the header says whose the bytes are.
    for cut in positions[1].offset() as usize + HEADER..positions[2].offset() as usize {
        let (_, recovery) = open(&holding(&bytes[..cut])).unwrap();
        assert_eq!(recovery.records, 1);
        assert_eq!(recovery.cut.unwrap().torn.offset, positions[1].offset());
    }
}

#[test]
fn a_second_tail_at_the_same_place_does_not_replace_the_copy_of_the_first() {
    let (files, _) = filled(&[b"a".to_vec()]);
    for tail in [&b"one"[..], b"two"] {
        files.open(Path::new(PATH), OpenMode::Append).unwrap().append(tail).unwrap();
        let copy = open(&files).unwrap().1.cut.unwrap().copy;
        assert_eq!(files.bytes(copy).unwrap(), tail);
    }
    let names = ["records", "records.torn-69", "records.torn-69-2"];
    assert_eq!(files.paths(), names.map(Path::new));
}

#[test]
fn another_file_is_refused_with_what_was_expected_and_found() {
    let refused = |bytes: &[u8], kind: ErrorKind, text: &str| {
        let files = holding(bytes);
        let error = RecordFile::open(&files, PATH, KIND).unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, text));
        assert_eq!(error.place().file.as_deref(), Some(Path::new(PATH)));
        if !bytes.is_empty() {
            assert_eq!(open(&files).unwrap_err().kind(), kind);
        }
        assert_eq!(files.bytes(PATH).unwrap_or_default().is_empty(), bytes.is_empty());
    };
    let of = |kind: FileKind| {
        let files = MemoryFiles::new();
        RecordWriter::open(Arc::new(files.clone()), PATH, kind).unwrap();
        files.bytes(PATH).unwrap()
    };
    let unknown = ErrorKind::UnknownFormat;
    refused(b"", unknown, "expected a record file (test, version 3), found an empty file");
    refused(
        b"{\"a\": 1, \"b\"}",
        unknown,
        "expected a record file (test, version 3), found a file that begins with \"{\\\"a\\\": 1,\"",
    );
    refused(
        &of(FileKind::new(*b"other\0\0\0", 3)),
        unknown,
        "expected a record file (test, version 3), found one of another kind (other, version 3)",
    );
    for (version, says) in [(4, "found 4"), (2, "found 2")] {
        let other = of(FileKind::new(*b"test\0\0\0\0", version));
        refused(&other, ErrorKind::Version, &format!("expected test of version 3, {says}"));
    }
    refused(&of(KIND)[..31], ErrorKind::Damaged, "the header of the file fails its check");

    assert_eq!(
        RecordFile::open(&MemoryFiles::new(), PATH, KIND).unwrap_err().kind(),
        ErrorKind::Io
    );
}

#[test]
fn a_position_where_no_record_begins_is_refused() {
    let (files, positions) = filled(&payloads());
    let file = RecordFile::open(&files, PATH, KIND).unwrap();
    for offset in (0..file.length().unwrap() + 50).chain([u64::MAX - 1, u64::MAX]) {
        let read = file.read(Position::new(offset));
        assert_eq!(read.is_ok(), positions.contains(&Position::new(offset)));
    }
}

#[test]
fn a_length_that_was_made_up_takes_no_memory() {
    // A sound header that says what no file holds.
    for length in [1 << 20, 1 << 40, u64::MAX - 40, u64::MAX] {
        let mut bytes = filled(&[]).0.bytes(PATH).unwrap();
        let mut header = b"\xfeREC\0\0\0\0".to_vec();
        header.extend([0_u64, FILE_HEADER as u64, length].map(u64::to_le_bytes).concat());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        bytes.extend(header);
        bytes.extend([0; 100]);
        let files = holding(bytes);
        let file = RecordFile::open(&files, PATH, KIND).unwrap();
        let position = Position::new(FILE_HEADER as u64);
        let mut payload = Vec::new();
        let error = file.read_into(position, &mut payload).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.message().starts_with("the record is cut: expected "), "{error}");
        assert_eq!(payload.capacity(), 0);
        assert_eq!(scan(&files).unwrap().torn.unwrap().length, 136);
    }
}

/// Runs of a writer: what was appended by index, which of that is in the file as far as is known,
/// and which had been synced when the last run ended.
#[derive(Clone, Debug, Default)]
struct Run {
    appended: BTreeMap<u64, Vec<u8>>,
    present: BTreeSet<u64>,
    synced: BTreeSet<u64>,
}

impl Run {
    /// Appends and syncs until something fails.
    fn go(&mut self, files: &MemoryFiles) -> Result<(), Error> {
        let (mut writer, _) = open(files)?;
        // What an earlier run left unsynced may be there or not.
        self.present = scan(files)?.records.into_iter().map(|record| record.0).collect();
        for step in 0..3_u8 {
            for part in 0..=step {
                let payload = vec![step * 16 + part; 10 + usize::from(step)];
                let index = writer.next_index();
                self.appended.insert(index, payload.clone());
                writer.append(&payload)?;
                self.present.insert(index);
            }
            writer.sync()?;
            self.synced.clone_from(&self.present);
        }
        Ok(())
    }

    /// Every synced record is there, in order; of the others, each is there whole or not at all.
    fn check(&self, files: &MemoryFiles) {
        let found = match scan(files) {
            Ok(found) => found.records,
            Err(error) => {
                assert!(self.synced.is_empty(), "{error}");
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                return;
            }
        };
        for (index, payload) in &found {
            assert_eq!(&self.appended[index], payload);
        }
        assert!(found.is_sorted_by(|a, b| a.0 < b.0));
        let found: BTreeSet<u64> = found.iter().map(|record| record.0).collect();
        assert!(found.is_superset(&self.synced));
    }
}

#[test]
fn a_crash_at_any_operation_loses_no_synced_record() {
    let files = MemoryFiles::new();
    let mut run = Run::default();
    run.go(&files).unwrap();
    let operations = files.operations();
    assert!(operations > 12);
    let mut cuts = 0;
    for operation in 0..operations {
        for (fault, unsynced, names) in every_way(&[Fault::Fail, Fault::Short, Fault::Crash]) {
            let files = MemoryFiles::new();
            files.fault_at(operation, fault);
            let mut run = Run::default();
            run.go(&files).unwrap_err();
            let files = files.crash(unsynced, names);
            run.check(&files);

            // And again while that is recovered, at each operation in turn.
            for second in 0.. {
                let files = files.crash(UnsyncedBytes::Kept, true);
                files.fault_at(second, Fault::Crash);
                let mut run = run.clone();
                let result = run.go(&files);
                run.check(&files.crash(unsynced, names));
                let is_copy = |path: &PathBuf| path.to_string_lossy().contains(".torn-");
                cuts += usize::from(files.paths().iter().any(is_copy));
                if result.is_ok() {
                    assert!(files.operations() <= second);
                    break;
                }
            }
        }
    }
    assert!(cuts > 0);
}

fn every_way(faults: &[Fault]) -> Vec<(Fault, UnsyncedBytes, bool)> {
    let mut all = Vec::new();
    for fault in faults {
        for unsynced in ALL_UNSYNCED {
            all.extend([false, true].map(|names| (*fault, unsynced, names)));
        }
    }
    all
}

#[test]
fn a_disk_that_lies_gives_no_wrong_payload() {
    let files = MemoryFiles::new();
    Run::default().go(&files).unwrap();
    for operation in 0..files.operations() {
        for (fault, unsynced, names) in every_way(&[Fault::Lose]) {
            let files = MemoryFiles::new();
            files.fault_at(operation, fault);
            let mut run = Run::default();
            let _ = run.go(&files);
            for files in [files.crash(unsynced, names), files.clone()] {
                let Ok(found) = scan(&files) else { continue };
                for (index, payload) in &found.records {
                    assert_eq!(&run.appended[index], payload);
                }
            }
        }
    }
}

#[test]
fn a_writer_that_failed_refuses_until_the_file_is_opened_anew() {
    for fault in [Fault::Fail, Fault::Short] {
        for fails_sync in [false, true] {
            let (files, _) = filled(&payloads());
            let (mut writer, _) = open(&files).unwrap();
            files.fault_at(files.operations() + u64::from(fails_sync), fault);
            let appended = writer.append(b"new");
            let failed = if fails_sync { writer.sync() } else { appended.map(drop) };
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
            let bytes = files.bytes(PATH);
            for refused in [writer.append(b"newer").map(drop), writer.sync()] {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Poisoned);
                assert_eq!(error.place().file.as_deref(), Some(Path::new(PATH)));
            }
            assert_eq!(files.bytes(PATH), bytes);
            // What was there can still be read.
            assert_eq!(writer.records().scan().unwrap().count(), 5 + usize::from(fails_sync));
            let (writer, recovery) = open(&files).unwrap();
            assert_eq!(recovery.cut, None, "half a record was taken back");
            assert_eq!(writer.next_index(), 5 + u64::from(fails_sync));
        }
    }
}

#[test]
fn a_disk_that_fills_up_keeps_what_was_appended_before() {
    let payloads = payloads();
    let whole = filled(&payloads).0.bytes(PATH).unwrap().len() as u64;
    for room in 0..whole {
        let files = MemoryFiles::new();
        files.set_room(Some(room));
        let fill = || -> Result<(), Error> {
            let (mut writer, _) = open(&files)?;
            payloads.iter().try_for_each(|payload| {
                writer.append(payload)?;
                writer.sync()
            })
        };
        let error = fill().unwrap_err();
        let source = std::error::Error::source(&error).unwrap();
        let source = source.downcast_ref::<std::io::Error>().unwrap();
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        if room < FILE_HEADER as u64 {
            assert!(files.paths().is_empty(), "a file that could not be written leaves nothing");
            continue;
        }
        // It opens on the full disk, too.
        let (_, recovery) = open(&files).unwrap();
        let found = scan(&files).unwrap();
        assert_eq!(found.records, numbered(&payloads[..recovery.records as usize]));
        assert!(found.torn.is_none());
        files.set_room(None);
        let (mut writer, _) = open(&files).unwrap();
        for payload in &payloads[recovery.records as usize..] {
            writer.append(payload).unwrap();
        }
        assert_eq!(scan(&files).unwrap().records, numbered(&payloads));
    }
}

#[test]
fn an_atomic_write_leaves_the_old_file_or_the_new_one_and_nothing_else() {
    let whole = MemoryFiles::new();
    write_atomic(&whole, "a", b"new bytes").unwrap();
    let operations = whole.operations();
    for old in [None, Some(b"old".to_vec())] {
        for operation in 0..operations {
            for (fault, unsynced, names) in every_way(&[Fault::Fail, Fault::Short, Fault::Crash]) {
                let files = MemoryFiles::new();
                if let Some(old) = &old {
                    files.put("a", old.clone());
                }
                files.fault_at(operation, fault);
                let error = write_atomic(&files, "a", b"new bytes").unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io);
                assert_eq!(error.place().file.as_deref(), Some(Path::new("a")));
                if fault != Fault::Crash {
                    assert_eq!(files.bytes("a.tmp"), None);
                }
                for files in [files.clone(), files.crash(unsynced, names)] {
                    let found = files.bytes("a");
                    assert!(found == old || found.as_deref() == Some(b"new bytes"), "{found:?}");
                    // What a crash left is in nobody's way.
                    let files = files.crash(UnsyncedBytes::Kept, true);
                    write_atomic(&files, "a", b"newer").unwrap();
                    assert_eq!(files.bytes("a").unwrap(), b"newer");
                    assert_eq!(files.bytes("a.tmp"), None);
                }
            }
        }
        whole.set_room(Some(4));
        write_atomic(&whole, "b", b"too long").unwrap_err();
        assert_eq!(whole.paths(), [Path::new("a")]);
        whole.set_room(None);
    }
    assert_eq!(whole.crash(UnsyncedBytes::Lost, false).bytes("a").unwrap(), b"new bytes");
}

#[test]
fn directories_are_created_with_those_above_them() {
    let files = MemoryFiles::new();
    create_dirs(&files, "a/b/c").unwrap();
    create_dirs(&files, "a/b/c").unwrap();
    write_atomic(&files, "a/b/c/file", b"1").unwrap();
    let files = files.crash(UnsyncedBytes::Lost, false);
    assert_eq!(files.bytes("a/b/c/file").unwrap(), b"1");
    assert_eq!(files.list(Path::new("a/b")).unwrap(), ["c"]);
    assert_eq!(create_dirs(&files, "a/b/c/file").unwrap_err().kind(), ErrorKind::Io);
    let scratch = tempfile::tempdir().unwrap();
    create_dirs(&DiskFiles, scratch.path().join("a/b")).unwrap();
    create_dirs(&DiskFiles, scratch.path().join("a/b")).unwrap();
    assert!(scratch.path().join("a/b").is_dir());
    std::fs::write(scratch.path().join("file"), "").unwrap();
    create_dirs(&DiskFiles, scratch.path().join("file")).unwrap_err();
    create_dirs(&DiskFiles, scratch.path().join("file/below")).unwrap_err();
}

#[test]
fn the_disk_of_the_system_does_what_the_one_in_memory_does() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("records");
    let large = vec![5; 100_000];
    let open = || RecordWriter::open(Arc::new(DiskFiles), &path, KIND).unwrap();
    let (mut writer, _) = open();
    let first = writer.append(b"first").unwrap();
    let second = writer.append(&large).unwrap();
    writer.sync().unwrap();
    let third = writer.append(b"third").unwrap();
    drop(writer);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 2]).unwrap();

    let (mut writer, recovery) = open();
    let cut = recovery.cut.unwrap();
    assert_eq!((recovery.records, cut.torn.record, cut.torn.offset), (2, 2, third.offset()));
    assert_eq!(std::fs::read(cut.copy).unwrap(), &bytes[third.offset() as usize..bytes.len() - 2]);
    assert_eq!(writer.append(b"again").unwrap(), third);
    let records = writer.records();
    assert_eq!(records.read(first).unwrap(), b"first");
    assert_eq!(records.read(second).unwrap(), large);
    assert_eq!(records.read(third).unwrap(), b"again");
    let names = DiskFiles.list(scratch.path()).unwrap();
    assert_eq!(names.len(), 2);

    write_atomic(&DiskFiles, &path, b"1").unwrap();
    write_atomic(&DiskFiles, &path, b"2").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"2");
    DiskFiles.remove(&path).unwrap();
    let error = RecordFile::open(&DiskFiles, &path, KIND).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn the_second_holder_of_a_lock_is_told_who_is_first() {
    let files = MemoryFiles::new();
    let scratch = tempfile::tempdir().unwrap();
    let disks: [(&dyn Files, &Path); 2] = [(&files, Path::new(".")), (&DiskFiles, scratch.path())];
    for (files, directory) in disks {
        let holder = Holder::new("first\nprogram").noting("since noon");
        let lock = DirLock::acquire(files, directory, &holder).unwrap();
        let error = DirLock::acquire(files, directory, &Holder::new("second")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        let pid = std::process::id();
        let expected = format!("already in use by first program, process {pid}, since noon");
        assert_eq!(error.message(), expected);
        assert_eq!(error.place().file, Some(directory.join("lock")));
        drop(lock);
        let _lock = DirLock::acquire(files, directory, &Holder::new("second")).unwrap();
        let error = DirLock::acquire(files, directory, &Holder::new("third")).unwrap_err();
        assert_eq!(error.message(), format!("already in use by second, process {pid}"));
    }
}

/// A disk on which somebody removes the lock file this often, after it is opened and before it is
/// locked.
#[derive(Debug)]
struct Replacing<F>(F, AtomicU32);

impl<F: Files> Files for Replacing<F> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn OpenFile>> {
        let file = self.0.open(path, mode)?;
        let is_left = |left: u32| left.checked_sub(1);
        if self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_left).is_ok() {
            self.0.remove(path)?;
        }
        Ok(file)
    }
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.0.truncate(path, length)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        self.0.list(directory)
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }
    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.0.sync_dir(directory)
    }
}

fn check_replaced_locks<F: Files + Clone>(files: &F, directory: &Path) {
    let first = Holder::new("first");
    let replaced = Replacing(files.clone(), AtomicU32::new(1));
    let lock = DirLock::acquire(&replaced, directory, &first).unwrap();
    let error = DirLock::acquire(files, directory, &Holder::new("second")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked, "the file that is there is locked: {error}");
    drop(lock);
    let replaced = Replacing(files.clone(), AtomicU32::new(u32::MAX));
    let error = DirLock::acquire(&replaced, directory, &first).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.message().contains("replaces the lock file"), "{error}");
    assert_eq!(error.place().file, Some(directory.join("lock")));
}

#[test]
fn a_lock_file_that_is_replaced_before_it_is_locked_locks_nothing() {
    check_replaced_locks(&MemoryFiles::new(), Path::new("."));
}

#[test]
#[cfg(unix)]
fn a_lock_file_on_a_disk_that_is_replaced_locks_nothing() {
    check_replaced_locks(&DiskFiles, tempfile::tempdir().unwrap().path());
}

/// Where the process that is killed takes its lock; no test of its own.
const LOCKED_BY_CHILD: &str = "AFTERIMAGE_TEST_LOCK";

#[test]
#[ignore = "the process that the next test kills"]
fn holds_a_lock_until_it_is_killed() {
    let Some(directory) = std::env::var_os(LOCKED_BY_CHILD) else { return };
    let _lock = DirLock::acquire(&DiskFiles, directory, &Holder::new("child")).unwrap();
    println!("\nlocked");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn a_lock_ends_with_its_process_however_that_ends() {
    let scratch = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::holds_a_lock_until_it_is_killed", "--ignored", "--nocapture"])
        .env(LOCKED_BY_CHILD, scratch.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "locked"));
    let holder = Holder::new("parent");
    let error = DirLock::acquire(&DiskFiles, scratch.path(), &holder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    if cfg!(unix) {
        let expected = format!("already in use by child, process {}", child.id());
        assert_eq!(error.message(), expected);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let _lock = DirLock::acquire(&DiskFiles, scratch.path(), &holder).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u8>),
    Sync,
    Reopen,
    Crash(UnsyncedBytes),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80),
        // What looks like the beginning of a record.
        proptest::collection::vec(prop_oneof![Just(b"\xfeREC".to_vec()), Just(vec![0; 16])], 0..6)
            .prop_map(|parts| parts.concat()),
    ];
    let step = prop_oneof![
        5 => bytes.prop_map(Step::Append),
        2 => Just(Step::Sync),
        1 => Just(Step::Reopen),
        1 => proptest::sample::select(&ALL_UNSYNCED[..]).prop_map(Step::Crash),
    ];
    proptest::collection::vec(step, 0..40)
}

proptest! {
    #[test]
    fn a_file_holds_what_a_plain_list_holds(steps in steps()) {
        let mut files = MemoryFiles::new();
        let (mut writer, _) = open(&files).unwrap();
        // Each record that is there by its index, and the index of the next.
        let mut model: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut synced = 0;
        for step in steps {
            match step {
                Step::Append(payload) => {
                    let index = writer.next_index();
                    let position = writer.append(&payload).unwrap();
                    prop_assert_eq!(&writer.records().read(position).unwrap(), &payload);
                    model.push((index, payload));
                }
                Step::Sync => {
                    writer.sync().unwrap();
                    synced = model.len();
                }
                Step::Reopen => {
                    let (again, recovery) = open(&files).unwrap();
                    prop_assert_eq!(recovery.cut, None);
                    prop_assert_eq!(recovery.records as usize, model.len());
                    prop_assert_eq!(again.next_index(), writer.next_index());
                    writer = again;
                }
                Step::Crash(unsynced) => {
                    files = files.crash(unsynced, true);
                    writer = open(&files).unwrap().0;
                    let found = scan(&files).unwrap().records;
                    prop_assert!(found.len() >= synced);
                    prop_assert_eq!(&found[..synced], &model[..synced]);
                    prop_assert!(found.iter().all(|record| model.contains(record)));
                    model = found;
                    synced = model.len();
                }
            }
        }
        prop_assert_eq!(scan(&files).unwrap().records, model);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic_and_give_no_made_up_record(
        lengths in proptest::collection::vec(0..60_usize, 1..6),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let payloads: Vec<Vec<u8>> =
            (1_u8..).zip(lengths).map(|(n, length)| vec![n; length]).collect();
        let mut bytes = filled(&payloads).0.bytes(PATH).unwrap();
        for (at, byte) in changes {
            let at = FILE_HEADER + at.index(bytes.len() - FILE_HEADER);
            bytes[at] = byte;
        }
        let files = holding(bytes);
        let found = scan(&files).unwrap();
        for (index, payload) in &found.records {
            prop_assert_eq!(&payloads[*index as usize], payload);
        }
        let (_, recovery) = open(&files).unwrap();
        prop_assert!(recovery.records as usize >= found.records.len());
    }
}
