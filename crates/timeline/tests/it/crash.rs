//! Session directories after a kill, and after any operation of the disk that goes wrong.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use afterimage_json as json;
use afterimage_log::{
    DiskFiles, HighWater,
    testing::{Fault, MemoryFiles, UnsyncedBytes},
};
use afterimage_timeline::{
    Data, ErrorKind, Event, TimelineConfig, TurnRecord,
    session::{SessionDir, SessionOptions},
};

const DIRECTORY: &str = "AFTERIMAGE_TEST_SESSION";

fn options() -> SessionOptions {
    let config = TimelineConfig {
        snapshot_interval: 4,
        compress_snapshots_older_than: 8,
        ..TimelineConfig::default()
    };
    SessionOptions::new("tale").config(config)
}

fn state() -> Data {
    Data::from(json::read(br#"{"player":{"location":{"zone":""}},"npcs":{}}"#).unwrap())
}

fn turn(n: u64) -> TurnRecord {
    let zone = Data::from(format!("zone {n}").as_str());
    TurnRecord::new("player").with_event(Event::new("move", Data::from_iter([("zone", zone)])))
}

fn zone(state: &Data) -> String {
    let zone = state.get("player").unwrap().get("location").unwrap().get("zone").unwrap();
    zone.as_str().unwrap().to_owned()
}

/// Asserts that every turn up to `acknowledged` is there, in order and as it was, and that the
/// directory is in order.
fn check(files: Arc<dyn afterimage_log::Files>, directory: &Path, acknowledged: u64, what: &str) {
    let mark = HighWater::read(&*files, directory.join("acknowledged")).unwrap().unwrap().mark;
    assert!(mark.last >= acknowledged, "{what}: {acknowledged} acknowledged, {mark:?}");
    let session = SessionDir::open(Arc::clone(&files), directory, options());
    let session = session.unwrap_or_else(|error| panic!("{what}: {error}"));
    let last = session.timeline().last_turn();
    assert!(last >= acknowledged, "{what}: {acknowledged} acknowledged, {last} there");
    for n in 1..=last {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n}"), "{what}");
    }
    session.close().unwrap();
    let found = SessionDir::verify(files, directory, &options()).unwrap();
    assert!(found.valid, "{what}: {found:?}");
}

/// A process dies before it has synced, and what it wrote is in the memory of its system. Who comes
/// after goes on from there, in the next file too; then the power fails.
#[test]
fn durable_what_a_dead_process_wrote_is_as_durable_as_what_comes_after_it() {
    let directory = Path::new("tale");
    let begun = MemoryFiles::new();
    let mut session =
        SessionDir::create(Arc::new(begun.clone()), directory, options(), state()).unwrap();
    for n in 1..=48 {
        session.push(turn(n)).unwrap();
    }
    session.close().unwrap();
    let work = |files: &MemoryFiles| {
        let mut acknowledged = 48;
        let session = SessionDir::open(Arc::new(files.clone()), directory, options());
        let Ok(mut session) = session else { return acknowledged };
        for n in 49..=51 {
            if session.push(turn(n)).is_err() {
                break;
            }
            acknowledged = n;
        }
        acknowledged
    };
    let start = || begun.crash(UnsyncedBytes::Kept, true);
    let clean = start();
    assert_eq!(work(&clean), 51);
    let mut found = 0;
    for operation in 0..clean.operations() {
        for fault in [Fault::Fail, Fault::Short, Fault::Crash] {
            let what = format!("{fault:?} at operation {operation}");
            let files = start();
            files.fault_at(operation, fault);
            let acknowledged = work(&files);
            files.survive();
            let session = SessionDir::open(Arc::new(files.clone()), directory, options());
            let mut session = session.unwrap_or_else(|error| panic!("{what}: {error}"));
            let last = session.timeline().last_turn();
            assert!(last >= acknowledged, "{what}");
            found += usize::from(last > acknowledged);
            session.push(turn(last + 1)).unwrap();
            let after = files.crash(UnsyncedBytes::Lost, false);
            check(Arc::new(after), directory, last + 1, &what);
        }
    }
    assert!(found > 2, "{found}");
}

/// What the killed process does: appends turns, and says which are durable.
#[test]
fn child_appends_until_it_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let mut session = SessionDir::open(Arc::new(DiskFiles), directory, options()).unwrap();
    loop {
        let n = session.timeline().last_turn() + 1;
        session.push(turn(n)).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "turn {n}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn durable_killed_at_random_points_it_loses_no_acknowledged_turn() {
    let kills =
        std::env::var("AFTERIMAGE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40_u64);
    let scratch = tempfile::tempdir().unwrap();
    let mut directory = scratch.path().join("0");
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut acknowledged = 0;
    for kill in 0..kills {
        if kill % 20 == 0 {
            directory = scratch.path().join(kill.to_string());
            SessionDir::create(Arc::new(DiskFiles), &directory, options(), state()).unwrap();
            acknowledged = 0;
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_appends_until_it_is_killed", "--nocapture"])
            .env(DIRECTORY, &directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = 1 + (seed >> 33) % 12;
        let mut seen = 0;
        while seen < wanted {
            let line = lines.next().expect("a child that appends").unwrap();
            // The harness may have begun the line.
            if let Some((_, number)) = line.rsplit_once("turn ") {
                acknowledged = number.trim().parse().unwrap();
                seen += 1;
            }
        }
        std::thread::sleep(std::time::Duration::from_micros((seed >> 20) % 4000));
        child.kill().unwrap();
        for line in lines.map_while(Result::ok) {
            if let Some(number) =
                line.strip_prefix("turn ").and_then(|number| number.trim().parse().ok())
            {
                acknowledged = number;
            }
        }
        child.wait().unwrap();
        check(Arc::new(DiskFiles), &directory, acknowledged, &format!("kill {kill}"));
    }
}

/// What is done on the disk that goes wrong: a session, its turns, an end; the last turn that was
/// acknowledged.
fn work(files: &MemoryFiles) -> (u64, bool) {
    let mut acknowledged = 0;
    let directory = Path::new("tale");
    let created = SessionDir::create(Arc::new(files.clone()), directory, options(), state());
    let Ok(mut session) = created else { return (0, false) };
    for n in 1..=11 {
        if session.timeline().last_turn() + 1 == n && session.push(turn(n)).is_ok() {
            acknowledged = n;
        }
    }
    let _ = session.close();
    (acknowledged, true)
}

#[test]
fn durable_whatever_operation_of_the_disk_goes_wrong() {
    let files = MemoryFiles::new();
    assert_eq!(work(&files), (11, true));
    let operations = files.operations();
    assert!(operations > 100, "{operations}");
    for fault in [Fault::Fail, Fault::Short, Fault::Crash] {
        for at in 0..operations {
            let files = MemoryFiles::new();
            files.fault_at(at, fault);
            let (acknowledged, is_created) = work(&files);
            for unsynced in [
                UnsyncedBytes::Lost,
                UnsyncedBytes::Halved,
                UnsyncedBytes::Zeroed,
                UnsyncedBytes::Kept,
            ] {
                for keeps_names in [false, true] {
                    let what = format!("{fault:?} at {at}, {unsynced:?}, names {keeps_names}");
                    let after = files.crash(unsynced, keeps_names);
                    let opened = SessionDir::open(Arc::new(after.clone()), "tale", options());
                    match opened {
                        // It was never a session.
                        Err(error) if !is_created => {
                            assert!(
                                matches!(error.kind(), ErrorKind::UnknownFormat | ErrorKind::Io),
                                "{what}: {error}"
                            );
                        }
                        opened => {
                            drop(opened);
                            check(Arc::new(after), Path::new("tale"), acknowledged, &what);
                        }
                    }
                }
            }
        }
    }
}

/// A disk that lies loses what it lies about; that is noticed, and nothing wrong is read.
#[test]
fn what_a_lying_disk_loses_is_noticed() {
    let files = MemoryFiles::new();
    work(&files);
    for at in 0..files.operations() {
        let files = MemoryFiles::new();
        files.fault_at(at, Fault::Lose);
        work(&files);
        for unsynced in [UnsyncedBytes::Lost, UnsyncedBytes::Kept] {
            let after = files.crash(unsynced, true);
            match SessionDir::open(Arc::new(after.clone()), "tale", options()) {
                Ok(session) => {
                    for n in 1..=session.timeline().last_turn() {
                        if let Ok(state) = session.timeline().state_at(n) {
                            assert_eq!(zone(&state), format!("zone {n}"), "operation {at}");
                        }
                    }
                }
                Err(error) => {
                    let kinds = [ErrorKind::Damaged, ErrorKind::UnknownFormat, ErrorKind::Io];
                    assert!(kinds.contains(&error.kind()), "operation {at}: {error}");
                }
            }
        }
    }
}
