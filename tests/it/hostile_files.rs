//! Stores that somebody else made: links, pipes, sizes that are claimed and not there.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use afterimage::{
    Error, ErrorKind,
    id::Millis,
    journal::{EventId, Expected, Journal, JournalOptions, NewEvent, SessionName},
    log::{
        DirLock, DiskFiles, FileKind, Files, Holder, OpenMode, RecordFile, RecordWriter, ScanEntry,
        pack, read_file, scan_lines, unpack, unpack_file, within, write_atomic,
    },
    snapshot::{FrameSnapshot, SnapshotArchive},
    timeline::{
        Data, TurnRecord,
        session::{SessionDir, SessionOptions, read_recorded, repair},
    },
};

const KIND: FileKind = FileKind::new(*b"test\0\0\0\0", 1);
static NEXT: AtomicU64 = AtomicU64::new(1);
const VICTIM: &str = "not of the store";

fn disk() -> Arc<dyn Files> {
    Arc::new(DiskFiles)
}

fn options() -> SessionOptions {
    SessionOptions::default()
}

/// A session of 52 turns.
fn session(path: &Path) {
    let options = SessionOptions::new("s");
    let mut session = SessionDir::create(disk(), path, options, Data::object()).unwrap();
    for _ in 0..52 {
        session.push(TurnRecord::new("player")).unwrap();
    }
    session.close().unwrap();
}

fn open_session(path: &Path) -> Result<(), Error> {
    let session = SessionDir::open(disk(), path, options())?;
    session.timeline().state_at(10)?;
    session.close()?;
    Ok(())
}

fn journal(path: &Path) -> Result<Journal, Error> {
    Ok(Journal::open(path, &Holder::new("test"), JournalOptions::default())?)
}

fn append(journal: &mut Journal, n: u64) -> Result<(), Error> {
    let event = NewEvent::new(EventId::new(n.to_string())?, "kind", *b"{}")?;
    journal.append(&SessionName::new("a")?, Expected::Any, event, Millis::new(1))?;
    Ok(())
}

fn archive(path: &Path) {
    let mut archive = SnapshotArchive::new();
    let snapshot = afterimage::json::read(
        br#"{"chunks":[{"content":"text","tokens":1,"facetIds":["f"]}],"totalContent":"text","totalTokens":1,"capturedAt":1,"hasContent":true}"#,
    );
    archive.push(1, &FrameSnapshot::from_json(snapshot.unwrap()).unwrap()).unwrap();
    archive.save(path, &Holder::new("test")).unwrap();
}

/// Every file below a directory.
fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Runs what must not wait for anybody.
fn soon<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what} waits"))
}

/// Puts something else in the place of each file of a store in turn, and opens the store.
fn replaced(make: fn(&Path), opens: fn(&Path) -> Result<(), Error>, with: fn(&Path, &Path)) {
    let scratch = tempfile::tempdir().unwrap();
    let store = scratch.path().join("store");
    make(&store);
    opens(&store).unwrap();
    for file in files_below(&store) {
        let victim = scratch.path().join("victim");
        fs::copy(&file, &victim).unwrap();
        let before = fs::read(&victim).unwrap();
        let aside = scratch.path().join("aside");
        fs::rename(&file, &aside).unwrap();
        with(&victim, &file);
        let (path, what) = (store.clone(), file.display().to_string());
        let opened = soon(&what, move || opens(&path));
        // What is derived is made anew in its place, or said to be missing; nothing else goes on.
        let is_derived = ["indexes", "state", "scenes"].iter().any(|name| what.contains(name));
        let is_cache = what.contains("snapshot-") && !what.contains("0000");
        if !(is_derived || is_cache) {
            let error = opened.expect_err(&what);
            let named =
                ["symbolic link", "pipe"].iter().any(|name| error.to_string().contains(name));
            assert!(named, "{what}: {error}");
        }
        assert_eq!(fs::read(&victim).unwrap(), before, "{what}");
        let _ = fs::remove_file(&file);
        fs::rename(&aside, &file).unwrap();
    }
}

fn link(victim: &Path, file: &Path) {
    symlink(victim, file).unwrap();
}

fn pipe(_: &Path, file: &Path) {
    assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
}

fn make_journal(path: &Path) {
    append(&mut journal(path).unwrap(), 0).unwrap();
}

fn use_journal(path: &Path) -> Result<(), Error> {
    let mut journal = journal(path)?;
    // One that is there is not appended again.
    append(&mut journal, NEXT.fetch_add(1, Ordering::Relaxed))?;
    journal.read(&SessionName::new("a")?, 1, 9)?;
    Ok(())
}

fn use_archive(path: &Path) -> Result<(), Error> {
    let opened = SnapshotArchive::open(path)?;
    opened.archive.reader().snapshot(1)?;
    let _lock = DirLock::acquire(&DiskFiles, path, &Holder::new("test"))?;
    Ok(())
}

#[test]
fn no_store_follows_a_link_in_the_place_of_one_of_its_files() {
    replaced(session, open_session, link);
    replaced(make_journal, use_journal, link);
    replaced(archive, use_archive, link);
}

#[test]
fn no_store_waits_for_a_pipe_in_the_place_of_one_of_its_files() {
    replaced(session, open_session, pipe);
    replaced(make_journal, use_journal, pipe);
    replaced(archive, use_archive, pipe);
}

#[test]
fn a_link_where_a_file_would_be_made_leads_nowhere() {
    let scratch = tempfile::tempdir().unwrap();
    let victim = scratch.path().join("victim");
    fs::write(&victim, VICTIM).unwrap();
    for name in ["lock", "a.tmp"] {
        symlink(&victim, scratch.path().join(name)).unwrap();
    }
    // One that leads to nothing would make a file wherever it points.
    let absent = scratch.path().join("absent");
    symlink(&absent, scratch.path().join("b.tmp")).unwrap();
    let locked = DirLock::acquire(&DiskFiles, scratch.path(), &Holder::new("test"));
    assert!(locked.unwrap_err().to_string().contains("lock is a symbolic link"));
    write_atomic(&DiskFiles, scratch.path().join("a"), b"a").unwrap_err();
    write_atomic(&DiskFiles, scratch.path().join("b"), b"b").unwrap_err();
    for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Append, OpenMode::Create] {
        DiskFiles.open(&scratch.path().join("lock"), mode).unwrap_err();
    }
    DiskFiles.truncate(&scratch.path().join("lock"), 0).unwrap_err();
    assert_eq!(fs::read_to_string(&victim).unwrap(), VICTIM);
    assert!(!absent.exists());
}

#[test]
fn a_store_may_be_linked_as_a_whole_and_no_folder_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let (store, linked) = (scratch.path().join("store"), scratch.path().join("linked"));
    session(&store);
    symlink(&store, &linked).unwrap();
    open_session(&linked).unwrap();
    assert!(SessionDir::verify(disk(), &linked, &options()).unwrap().valid);
    for folder in ["turns", "snapshots", "indexes", "state", "scenes"] {
        let (here, elsewhere) = (store.join(folder), scratch.path().join("elsewhere"));
        fs::rename(&here, &elsewhere).unwrap();
        symlink(&elsewhere, &here).unwrap();
        let before: Vec<_> =
            files_below(&elsewhere).iter().map(fs::read).map(Result::unwrap).collect();
        let opened = open_session(&linked);
        let verified = SessionDir::verify(disk(), &linked, &options());
        if matches!(folder, "turns" | "snapshots") {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains(&format!("{folder} is a symbolic link")), "{error}");
            verified.unwrap_err();
        } else {
            assert!(verified.is_err() || !verified.unwrap().valid, "{folder}");
        }
        repair(&disk(), &linked, &options()).map(drop).unwrap_or_default();
        let after: Vec<_> =
            files_below(&elsewhere).iter().map(fs::read).map(Result::unwrap).collect();
        assert_eq!(before, after, "{folder}");
        fs::remove_file(&here).unwrap();
        fs::rename(&elsewhere, &here).unwrap();
    }
    open_session(&store).unwrap();
    // A branch beside it reads its parent, which is a store of its own.
    let parent = SessionDir::open(disk(), &linked, options()).unwrap();
    let path = scratch.path().join("branch");
    parent.branch(20, &path, &SessionOptions::new("b")).unwrap().close().unwrap();
    open_session(&path).unwrap();
    symlink("/", store.join("deltas")).unwrap();
    fs::remove_file(store.join("session.meta.json")).unwrap();
    assert!(read_recorded(&DiskFiles, &store).is_err());
    let files = within(disk(), &store);
    assert!(files.list(&store.join("deltas/etc")).is_err());
    assert!(files.list(scratch.path()).is_ok());
}

/// As long as this is said to be; next to nothing of it is on the disk.
const CLAIMED: u64 = 200 << 30;

fn lengthen(path: &Path) -> bool {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let is_possible = file.set_len(CLAIMED).is_ok();
    if !is_possible {
        eprintln!("skipped: the disk has no files of that length");
    }
    is_possible
}

#[test]
fn a_tail_of_200_gib_that_was_never_written_is_cut_and_not_read() {
    let scratch = tempfile::tempdir().unwrap();
    let start = Instant::now();
    // Records.
    let path = scratch.path().join("a.rec");
    let (mut writer, _) = RecordWriter::open(disk(), &path, KIND).unwrap();
    let first = writer.append(b"first").unwrap();
    writer.sync().unwrap();
    let end = writer.end();
    drop(writer);
    if !lengthen(&path) {
        return;
    }
    let records = RecordFile::open(&DiskFiles, &path, KIND).unwrap();
    assert_eq!(records.read(first).unwrap(), b"first");
    let entries: Vec<ScanEntry> = records.scan().unwrap().map(Result::unwrap).collect();
    assert!(
        matches!(&entries[..], [ScanEntry::Record(_), ScanEntry::Torn(torn)] if torn.length == CLAIMED - end),
        "{entries:?}"
    );
    let (_, recovery) = RecordWriter::open(disk(), &path, KIND).unwrap();
    assert_eq!(recovery.cut.unwrap().torn.length, CLAIMED - end);
    assert_eq!(fs::metadata(&path).unwrap().len(), end);
    // A journal.
    let root = scratch.path().join("journal");
    make_journal(&root);
    lengthen(&root.join("s-a.events.rec"));
    use_journal(&root).unwrap();
    // A session.
    let root = scratch.path().join("session");
    session(&root);
    let turns = root.join("turns/turns-0051-0100.jsonl");
    let length = fs::metadata(&turns).unwrap().len();
    lengthen(&turns);
    let found = SessionDir::verify(disk(), &root, &options()).unwrap();
    assert!(found.valid && found.torn[0].contains("a torn tail of 2147483"), "{found:?}");
    open_session(&root).unwrap();
    assert_eq!(fs::metadata(&turns).unwrap().len(), length);
    // Documents.
    for name in ["session.meta.json", "acknowledged", "state/current.json"] {
        let path = root.join(name);
        lengthen(&path);
        let error = read_file(&DiskFiles, &path, u64::MAX).unwrap_err();
        assert_eq!(error.kind(), afterimage::log::ErrorKind::Damaged, "{error}");
        let found = SessionDir::verify(disk(), &root, &options());
        assert!(found.is_err() || !found.unwrap().valid, "{name}");
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn bytes_behind_a_hole_are_refused_and_a_record_over_one_is_damaged() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("session");
    session(&root);
    let turns = root.join("turns/turns-0051-0100.jsonl");
    let write_behind = |path: &Path| {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"behind").unwrap();
    };
    if !lengthen(&turns) {
        return;
    }
    write_behind(&turns);
    let error = open_session(&root).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains("never written, and others follow"), "{error}");
    // A header that claims as much as there is of nothing.
    let path = scratch.path().join("a.rec");
    let (mut writer, _) = RecordWriter::open(disk(), &path, KIND).unwrap();
    let position = writer.append(b"payload").unwrap();
    drop(writer);
    let mut bytes = fs::read(&path).unwrap();
    let header = &mut bytes[position.offset() as usize..];
    header[24..32].copy_from_slice(&(CLAIMED - 68).to_le_bytes());
    let check = crc32fast::hash(&header[..32]);
    header[32..36].copy_from_slice(&check.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    lengthen(&path);
    let records = RecordFile::open(&DiskFiles, &path, KIND).unwrap();
    let error = records.read(position).unwrap_err();
    assert!(error.to_string().contains("a hole at offset"), "{error}");
    let entries: Vec<ScanEntry> = records.scan().unwrap().map(Result::unwrap).collect();
    assert!(matches!(&entries[..], [ScanEntry::Torn(_)]), "{entries:?}");
}

/// A zstd frame of so many blocks of 128 KiB of one byte, four bytes each.
fn bomb(blocks: usize, byte: u8) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    for block in 0..blocks {
        let is_last = u32::from(block + 1 == blocks);
        let header = (128 << 10 << 3) | (1 << 1) | is_last;
        frame.extend(&u32::to_le_bytes(header)[..3]);
        frame.push(byte);
    }
    frame
}

#[test]
fn a_few_kilobytes_that_unpack_to_gigabytes_take_neither_time_nor_memory() {
    // 14 KB of half a gigabyte, and 64 KB of two.
    let most: u64 = 64 << 20;
    for (blocks, bytes) in [(3_500, &b"\n{"[..]), (16_000, b"a")] {
        for byte in bytes.iter().copied() {
            let frame = bomb(blocks, byte);
            let start = Instant::now();
            let taken = allocation_counter::measure(|| {
                let (bytes, error) = unpack_file(&frame, u64::MAX);
                assert_eq!(error.unwrap().kind(), afterimage::log::ErrorKind::Limit);
                assert!(bytes.is_empty());
                drop(bytes);
                let packed = [&[1][..], &frame].concat();
                assert_eq!(
                    unpack(&packed, u64::MAX).unwrap_err().kind(),
                    afterimage::log::ErrorKind::Limit
                );
            });
            assert!(taken.bytes_max < 4 * most, "{taken:?}");
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        }
    }
    // In the places of a session.
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("session");
    session(&root);
    let start = Instant::now();
    for name in ["turns/turns-0001-0050.jsonl.zst", "snapshots/snapshot-0050.json.zst"] {
        let (path, aside) = (root.join(name), scratch.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        fs::write(&path, bomb(3_500, b'\n')).unwrap();
        let found = SessionDir::verify(disk(), &root, &options()).unwrap();
        let is_told = found.problems.iter().any(|problem| problem.contains("unpacks to more than"));
        assert!(!found.valid && is_told, "{found:?}");
        fs::rename(&aside, &path).unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    open_session(&root).unwrap();
    // What is honest comes back, however alike it is.
    let alike = vec![b'a'; 100 << 20];
    assert!(unpack(&pack(&alike), u64::MAX).unwrap() == alike);
}

/// Thousands of ends of records and no beginning that fits any of them.
#[test]
fn a_line_of_many_ends_is_looked_through_once() {
    let ends = br#"{"crc":"00000000"}"#.repeat(40_000);
    let ends_alone = [&b"{{{{"[..], &br#""crc":"00000000"}"#.repeat(40_000)].concat();
    for line in [ends, ends_alone] {
        let start = Instant::now();
        let scan = scan_lines(&line);
        assert!(scan.lines.is_empty() && scan.torn.is_some());
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
