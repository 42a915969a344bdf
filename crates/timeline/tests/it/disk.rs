//! Session directories on disks that are full, read-only, or somebody else's.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::tale;
use afterimage_testkit::small_disk;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use afterimage_log::{DiskFiles, Files, OpenMode, testing::MemoryFiles, unpack_file};
use afterimage_timeline::{ErrorKind, SnapshotReason, session::SessionDir};
use small_disk::{fill, on_a_small_disk, small_disk};
use tale::{DIR, create, data, open, options, session, turn, verify, zone};

#[test]
fn a_second_writer_is_told_who_is_first() {
    let files = session(3);
    let held = open(&files).unwrap();
    let error = open(&files).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().starts_with("already in use by afterimage, process "), "{error}");
    drop(held);
    open(&files).unwrap();
}

#[test]
fn a_full_disk_refuses_a_turn_and_goes_on_when_there_is_room() {
    let files = MemoryFiles::new();
    let mut session = create(&files);
    session.push(turn(1)).unwrap();
    for room in [0, 1, 100] {
        files.set_room(Some(room));
        let error = session.push(turn(2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert_eq!(session.timeline().last_turn(), 1);
        assert_eq!(zone(session.timeline().state()), "zone 1 ä");
    }
    files.set_room(None);
    for n in 2..=60 {
        // Room for the turns alone: snapshots and indexes can wait.
        session.push(turn(n)).unwrap();
    }
    files.set_room(Some(700));
    session.push(turn(61)).unwrap();
    files.set_room(None);
    session.push(turn(62)).unwrap();
    assert_eq!(session.close().unwrap(), [""; 0]);
    assert!(verify(&files).valid);
}

#[test]
fn a_snapshot_that_does_not_fit_on_the_disk_is_a_note() {
    let files = MemoryFiles::new();
    let mut session = create(&files);
    for n in 1..7 {
        session.push(turn(n)).unwrap();
    }
    files.set_room(Some(800));
    assert_eq!(session.push(turn(7)).unwrap().snapshot, Some(SnapshotReason::Interval));
    assert!(
        session.notes()[0].contains("the snapshot of turn 7 is not kept"),
        "{:?}",
        session.notes()
    );
    files.set_room(None);
    session.push(turn(8)).unwrap();
    session.close().unwrap();
    assert!(verify(&files).valid);
    assert_eq!(zone(&open(&files).unwrap().timeline().state_at(7).unwrap()), "zone 7 ä");
}

#[test]
fn a_read_only_directory_is_read_and_not_written() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("tale");
    let state = data(r#"{"player":{}}"#);
    let mut session = SessionDir::create(Arc::new(DiskFiles), &path, options(), state).unwrap();
    session.push(turn(1)).unwrap();
    session.close().unwrap();
    // Whoever may do everything is not stopped by a mode: a folder that is not there stops it too.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o555)).unwrap();
    }
    let read = SessionDir::open_read(Arc::new(DiskFiles), &path, options()).unwrap();
    assert_eq!(read.timeline().last_turn(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let refused = ReadOnly(MemoryFiles::new());
    let error = SessionDir::create(Arc::new(refused), DIR, options(), data("{}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("tale"), "{error}");
}

/// A disk that takes nothing.
#[derive(Debug)]
struct ReadOnly(MemoryFiles);

impl Files for ReadOnly {
    fn open(
        &self,
        path: &Path,
        mode: OpenMode,
    ) -> std::io::Result<Box<dyn afterimage_log::OpenFile>> {
        if mode == OpenMode::Read {
            self.0.open(path, mode)
        } else {
            Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
        }
    }
    fn truncate(&self, _: &Path, _: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }
    fn rename(&self, _: &Path, _: &Path) -> std::io::Result<()> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }
    fn remove(&self, _: &Path) -> std::io::Result<()> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }
    fn list(&self, directory: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
        self.0.list(directory)
    }
    fn create_dir(&self, _: &Path) -> std::io::Result<()> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }
    fn sync_dir(&self, _: &Path) -> std::io::Result<()> {
        Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// A disk on which another process packs a file when it is about to be read.
#[derive(Debug)]
struct Packing(MemoryFiles, AtomicBool);

impl Files for Packing {
    fn open(
        &self,
        path: &Path,
        mode: OpenMode,
    ) -> std::io::Result<Box<dyn afterimage_log::OpenFile>> {
        if path.ends_with("turns-0001-0050.jsonl") && !self.1.swap(true, Ordering::Relaxed) {
            let packed = afterimage_log::pack_file(&self.0.bytes(path).unwrap()).unwrap();
            self.0.put(path.with_extension("jsonl.zst"), packed);
            self.0.remove(path)?;
        }
        self.0.open(path, mode)
    }
    fn truncate(&self, path: &Path, length: u64) -> std::io::Result<()> {
        self.0.truncate(path, length)
    }
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> std::io::Result<()> {
        self.0.remove(path)
    }
    fn list(&self, directory: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
        self.0.list(directory)
    }
    fn create_dir(&self, directory: &Path) -> std::io::Result<()> {
        self.0.create_dir(directory)
    }
    fn sync_dir(&self, directory: &Path) -> std::io::Result<()> {
        self.0.sync_dir(directory)
    }
}

#[test]
fn who_reads_does_not_mind_a_file_that_is_packed_meanwhile() {
    let files = session(52);
    let packed = Path::new("tale/turns/turns-0001-0050.jsonl.zst");
    let (text, error) = unpack_file(&files.bytes(packed).unwrap(), 1 << 20);
    assert!(error.is_none());
    for verifies in [false, true] {
        files.remove(packed).unwrap();
        files.put("tale/turns/turns-0001-0050.jsonl", text.clone());
        let disk = Arc::new(Packing(files.clone(), AtomicBool::new(false)));
        if verifies {
            let found = SessionDir::verify(disk, DIR, &options()).unwrap();
            assert!(found.valid && found.turns == 52, "{found:?}");
        } else {
            let session = SessionDir::open_read(disk, DIR, options()).unwrap();
            assert_eq!(session.timeline().last_turn(), 52);
        }
        assert!(files.bytes(packed).is_some());
    }
}

/// A file system of a megabyte, where one may be mounted.
#[test]
fn a_small_disk_that_is_full_refuses_turns_and_takes_them_again() {
    on_a_small_disk(1024, "disk::child_fills_its_disk", "went on after the disk was full");
}

/// What runs on the small disk.
#[test]
fn child_fills_its_disk() {
    let Some(disk) = small_disk() else { return };
    let (filler, path) = (disk.join("filler"), disk.join("tale"));
    let state = data(r#"{"player":{"location":{"zone":""}}}"#);
    let mut session = SessionDir::create(Arc::new(DiskFiles), &path, options(), state).unwrap();
    let mut n = 0;
    // Full in the middle of fifty turns, when a file is packed, and when a snapshot is due.
    for wanted in [3, 20, 49, 55] {
        while n < wanted {
            n += 1;
            session.push(turn(n)).unwrap();
        }
        fill(&filler);
        let error = loop {
            match session.push(turn(n + 1)) {
                Ok(_) => n += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.to_string().contains("/turns/turns-"), "{error}");
        assert_eq!((session.timeline().last_turn(), session.durable_turn()), (n, n));
        assert_eq!(zone(session.timeline().state()), format!("zone {n} ä"));
        // Who reads meanwhile sees what was acknowledged.
        let read = SessionDir::open_read(Arc::new(DiskFiles), &path, options()).unwrap();
        assert_eq!(read.timeline().last_turn(), n);
        std::fs::remove_file(&filler).unwrap();
        n += 1;
        session.push(turn(n)).unwrap();
    }
    session.close().unwrap();
    // A full disk when the session is opened.
    fill(&filler);
    let session = SessionDir::open(Arc::new(DiskFiles), &path, options()).unwrap();
    assert_eq!(session.timeline().last_turn(), n);
    session.close().unwrap();
    std::fs::remove_file(&filler).unwrap();
    let mut session = SessionDir::open(Arc::new(DiskFiles), &path, options()).unwrap();
    session.push(turn(n + 1)).unwrap();
    for turn in 1..=n + 1 {
        assert_eq!(zone(&session.timeline().state_at(turn).unwrap()), format!("zone {turn} ä"));
    }
    session.close().unwrap();
    let found = SessionDir::verify(Arc::new(DiskFiles), &path, &options()).unwrap();
    assert!(found.valid, "{found:?}");
    println!("went on after the disk was full: {} turns", found.turns);
}
