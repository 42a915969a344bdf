//! Session directories that are cut, flipped and repaired.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::tale;

use std::sync::Arc;

use afterimage_json as json;
use afterimage_json::Millis;
use afterimage_json::Path;
use afterimage_log::{
    Files, line, pack_file,
    testing::{MemoryFiles, UnsyncedBytes},
    unpack_file,
};
use afterimage_timeline::{
    Data, Delta, DeltaOperation, ErrorKind, StateSnapshot, TimelineConfig, TurnRecord,
    session::{DirVerification, SessionDir, SessionOptions, repair},
};
use tale::{DIR, MARK, data, forget, names, open, options, session, turn, verify, zone};

#[test]
fn the_last_file_cut_at_every_byte_loses_nothing_before_the_cut() {
    // What was not acknowledged: a mark would tell that it is missing.
    let files = session(8);
    forget(&files);
    let path = "tale/turns/turns-0001-0050.jsonl";
    let whole = files.bytes(path).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (files, whole, ends) = (&files, &whole, &ends);
            scope.spawn(move || {
                for cut in (half..whole.len()).step_by(2) {
                    let files = files.crash(UnsyncedBytes::Kept, true);
                    files.put(path, &whole[..cut]);
                    cut_at(&files, cut, ends);
                }
            });
        }
    });
}

/// Asserts what becomes of a file that is cut; its lines had these ends.
fn cut_at(files: &MemoryFiles, cut: usize, ends: &[usize]) {
    // A line that only lacks its end is whole.
    let kept = ends.iter().filter(|end| **end <= cut).count() as u64;
    let is_between = cut == 0 || ends.contains(&(cut - 1)) || ends.contains(&cut);
    let found = verify(files);
    assert!(found.valid, "{cut}: {found:?}");
    assert_eq!(found.turns, kept);
    assert!(!found.notes.is_empty(), "{cut}: {found:?}");
    let session = open(files).unwrap();
    assert_eq!(session.timeline().last_turn(), kept);
    let copies = names(files).into_iter().filter(|name| name.contains(".torn-"));
    assert_eq!(copies.count(), usize::from(!is_between), "{cut}");
    assert!(!session.notes().is_empty());
    drop(session);
    // And it goes on.
    if is_between || cut % 8 < 2 {
        let mut session = open(files).unwrap();
        session.push(turn(99)).unwrap();
        session.close().unwrap();
        let found = verify(files);
        assert!(found.valid && found.turns == kept + 1, "{cut}: {found:?}");
    }
}

/// Two files of turns, one of them packed, full and compressed snapshots, and all that is derived.
fn small() -> MemoryFiles {
    let files = MemoryFiles::new();
    let config = TimelineConfig {
        snapshot_interval: 20,
        compress_snapshots_older_than: 30,
        ..TimelineConfig::default()
    };
    let options = SessionOptions::new("t").config(config);
    let disk = Arc::new(files.clone());
    let mut session = SessionDir::create(disk, DIR, options, data("{}")).unwrap();
    for n in 1..=SMALL {
        let set = Delta::new("knowledge", DeltaOperation::Set, Path::of_keys(["n"]));
        let previous = (n > 1).then(|| Data::from(n - 1));
        session
            .push(TurnRecord::new("p").with_deltas([set.replacing(previous, Data::from(n))]))
            .unwrap();
    }
    assert_eq!(session.close().unwrap(), [""; 0]);
    files
}

const SMALL: u64 = 52;

#[test]
fn every_flipped_byte_of_every_file_is_detected() {
    let files = small();
    let clean =
        SessionDir::verify(Arc::new(files.clone()), DIR, &SessionOptions::default()).unwrap();
    assert!(clean.valid && clean.notes.is_empty() && clean.turns == SMALL);
    let mut names: Vec<_> = files.paths();
    names.sort();
    let kinds = [
        "/turns/turns-0001-0050.jsonl.zst",
        "/turns/turns-0051-0100.jsonl",
        "/snapshots/snapshot-0020.json.zst",
    ];
    for kind in kinds.into_iter().chain(["meta", "/indexes/", "/state/", "/scenes/", "lock"]) {
        let is_there = names.iter().any(|name| name.to_str().unwrap().contains(kind));
        assert!(is_there, "{kind} is not in {names:?}");
    }
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (names, clean) = (&names, &clean);
            let files = files.crash(UnsyncedBytes::Kept, true);
            scope.spawn(move || {
                for name in names {
                    let whole = files.bytes(name).unwrap();
                    for at in (half..whole.len()).step_by(2) {
                        let mut flipped = whole.clone();
                        flipped[at] ^= 1 << (at / 2 % 8);
                        files.put(name, flipped);
                        flipped_byte(&files, name.to_str().unwrap(), at, clean);
                    }
                    files.put(name, whole);
                }
                let options = SessionOptions::default();
                let found = SessionDir::verify(Arc::new(files.clone()), DIR, &options).unwrap();
                assert_eq!(&found, clean);
            });
        }
    });
}

/// Asserts that a flipped byte gets the answer that is decided for its file.
#[track_caller]
fn flipped_byte(files: &MemoryFiles, name: &str, at: usize, clean: &DirVerification) {
    let options = SessionOptions::default();
    let what = format!("{name}, byte {at}");
    let found = SessionDir::verify(Arc::new(files.clone()), DIR, &options);
    let opened = SessionDir::open_read(Arc::new(files.clone()), DIR, options);
    if name == MARK {
        // The slot beside it says what it said, or one turn less.
        let found = found.unwrap();
        assert!(found.valid && found.notes.len() == 1, "{what}: {found:?}");
        opened.unwrap();
        if at.is_multiple_of(16) {
            let damaged = files.bytes(name).unwrap();
            let files = files.crash(UnsyncedBytes::Kept, true);
            SessionDir::open(Arc::new(files.clone()), DIR, SessionOptions::default()).unwrap();
            assert_ne!(files.bytes(name).unwrap(), damaged, "{what}");
        }
    } else if name.ends_with("lock") {
        // It says who has the directory, and nothing else.
        assert_eq!(&found.unwrap(), clean, "{what}");
        opened.unwrap();
    } else if name.contains("meta") {
        assert!(found.map_or(true, |found| !found.valid), "{what}");
        opened.unwrap_err();
    } else if name.contains("/turns/") {
        let found = found.unwrap();
        match opened {
            // The last record: a torn tail, of what was acknowledged.
            Ok(session) => {
                assert!(name.ends_with("0100.jsonl"), "{what}");
                let is_there = session.timeline().last_turn() == SMALL;
                assert_eq!(found.valid, is_there, "{what}: {found:?}");
                assert_eq!(found.problems.len(), usize::from(!is_there), "{what}: {found:?}");
                assert!(!found.notes.is_empty() || !found.torn.is_empty(), "{what}: {found:?}");
                assert!(session.timeline().last_turn() >= SMALL - 1, "{what}");
                assert_ne!(&found, clean, "{what}");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Damaged, "{what}: {error}");
                assert_eq!(error.place().file.as_deref(), Some(std::path::Path::new(name)));
                assert!(error.place().line.is_some(), "{what}: {error}");
                assert!(!found.valid, "{what}");
            }
        }
    } else {
        // Everything else can be made anew, and says that it has to be.
        let found = found.unwrap();
        assert!(!found.valid && !found.problems.is_empty(), "{what}: {found:?}");
        let session = opened.unwrap();
        let knows = |turn: u64, state: &Data| {
            assert_eq!(state.get("n"), Some(&Data::from(turn)), "{what}");
        };
        knows(SMALL, session.timeline().state());
        for turn in [45, 30, 10] {
            match session.timeline().state_at(turn) {
                Ok(state) => knows(turn, &state),
                Err(error) => {
                    let is_lost = name.contains("snapshot-0000") && turn < 20;
                    assert!(is_lost && error.kind() == ErrorKind::Damaged, "{what}: {error}");
                }
            }
        }
        if !name.contains("/snapshots/") && at.is_multiple_of(16) {
            let damaged = files.bytes(name).unwrap();
            let files = files.crash(UnsyncedBytes::Kept, true);
            SessionDir::open(Arc::new(files.clone()), DIR, SessionOptions::default()).unwrap();
            assert_ne!(files.bytes(name).unwrap(), damaged, "{what}");
        }
    }
}

#[test]
fn a_flipped_byte_is_one_finding_with_what_follows_from_it() {
    let check = |files: &MemoryFiles, name: &str, at: usize| {
        let whole = files.bytes(name).unwrap();
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        files.put(name, flipped);
        let found = verify(files);
        assert_eq!(found.problems.len(), 1, "{name}, byte {at}: {found:?}");
        assert!(found.problems[0].contains(name), "{found:?}");
        assert!(found.differences.is_empty(), "{found:?}");
        files.put(name, whole);
        found
    };
    let files = session(120);
    let plain = "tale/turns/turns-0101-0150.jsonl";
    let bytes = files.bytes(plain).unwrap();
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    // In a line, and each of the line ends around it: they part or join lines.
    for at in [ends[4] + 30, ends[4], ends[5] - 1, ends[0], 0] {
        check(&files, plain, at);
    }
    let found = check(&files, plain, ends[4] + 30);
    assert_eq!(
        found.follows,
        ["turn 106 is lost, and without it the turns up to 120 cannot be replayed"]
    );
    let packed = "tale/turns/turns-0051-0100.jsonl.zst";
    for at in (0..files.bytes(packed).unwrap().len()).step_by(97) {
        check(&files, packed, at);
    }
    // Others are based on it.
    let found = check(&files, "tale/snapshots/snapshot-0056.json.zst", 60);
    assert_eq!(
        found.follows,
        [63, 70, 77].map(|turn| {
            format!("the snapshot of turn {turn} is based on snapshot-0056.json.zst")
        })
    );
    let files = session(5);
    let found = check(&files, "tale/snapshots/snapshot-0000.json.zst", 60);
    assert_eq!(found.follows.len(), 1, "{found:?}");
    assert!(found.follows[0].starts_with("no sound snapshot is left"), "{found:?}");
}

#[test]
fn a_snapshot_cut_at_any_byte_is_passed_over() {
    let files = session(30);
    for name in names(&files)
        .into_iter()
        .filter(|name| name.contains("/snapshots/") && !name.contains("0000"))
    {
        let whole = files.bytes(&name).unwrap();
        for cut in 0..whole.len() {
            files.put(&name, &whole[..cut]);
            let session = SessionDir::open_read(Arc::new(files.clone()), DIR, options()).unwrap();
            for n in [30, 28, 22, 14, 3] {
                assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"));
            }
            if cut % 50 == 0 {
                assert!(!verify(&files).valid);
            }
        }
        files.put(&name, whole);
    }
}

#[test]
fn repair_brings_back_all_that_is_intact() {
    let files = session(120);
    let damage = |name: &str, at: usize| {
        let mut bytes = files.bytes(name).unwrap();
        bytes[at] ^= 1;
        files.put(name, bytes);
    };
    // A line in the middle of the plain file, a snapshot, the description.
    damage("tale/turns/turns-0101-0150.jsonl", 3000);
    damage("tale/snapshots/snapshot-0056.json.zst", 60);
    damage("tale/session.meta.json", 20);
    damage("tale/snapshots/snapshot-0000.json.zst", 30);
    assert_eq!(open(&files).unwrap_err().kind(), ErrorKind::Damaged);
    assert!(!verify(&files).valid);
    let arc: Arc<dyn Files> = Arc::new(files.clone());
    let done = repair(&arc, DIR, &options()).unwrap();
    assert_eq!(done.turns, 120, "{done:?}");
    assert_eq!(done.lost.len(), 1, "{done:?}");
    assert!(done.kept.len() >= 4, "{done:?}");
    let found = verify(&files);
    assert!(found.valid && found.turns == 120, "{found:?}");
    let session = open(&files).unwrap();
    for n in (0..=120).filter(|n| *n > 0) {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"), "{n}");
    }
    let record = session.timeline().turn(done.lost[0]).unwrap();
    assert_eq!(record.actor, "repair");
    assert_eq!(session.timeline().turn(done.lost[0] + 1).unwrap().actor, "player");
    drop(session);
    // What is in order stays.
    let before = names(&files);
    let done = repair(&arc, DIR, &options()).unwrap();
    assert!(done.lost.is_empty() && done.kept.is_empty(), "{done:?}");
    assert_eq!(names(&files), before);
}

#[test]
fn a_packed_file_that_is_cut_gives_back_what_it_still_holds() {
    let files = session(60);
    let name = "tale/turns/turns-0001-0050.jsonl.zst";
    let whole = files.bytes(name).unwrap();
    files.put(name, &whole[..whole.len() - 40]);
    let error = open(&files).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    let arc: Arc<dyn Files> = Arc::new(files.clone());
    let done = repair(&arc, DIR, &options()).unwrap();
    assert_eq!(done.turns, 60);
    let session = open(&files).unwrap();
    assert_eq!(zone(session.timeline().state()), "zone 60 ä");
    for n in 51..=60 {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"), "{n}");
    }
    assert!(verify(&files).valid);
}

/// Puts another zone into the snapshot of a turn, sealed as if it were right.
fn drift(files: &MemoryFiles, turn: u64) {
    let path = format!("tale/snapshots/snapshot-{turn:04}.json.zst");
    let (text, error) = unpack_file(&files.bytes(&path).unwrap(), 1 << 20);
    assert!(error.is_none());
    let body = line::open(std::str::from_utf8(&text).unwrap().trim_end()).unwrap();
    let document = json::read(body.as_bytes()).unwrap();
    let mut snapshot = StateSnapshot::from_json(document).unwrap();
    let Data::Object(state) = &mut snapshot.state else { panic!() };
    state.insert("player", data(r#"{"location":{"zone":"moon"}}"#));
    let text = line::seal(&snapshot.to_json().to_string()).unwrap() + "\n";
    files.put(&path, pack_file(text.as_bytes()).unwrap());
}

#[test]
fn states_that_drifted_are_rebuilt_and_a_recovery_snapshot_is_made() {
    let files = session(60);
    // One in full that others are based on, and the one that the state is replayed from.
    for turn in [0, 7, 14, 21, 56] {
        let is_full = open(&files)
            .unwrap()
            .stored_snapshots()
            .iter()
            .any(|found| found.0 == turn && found.3.is_none());
        if turn > 0 && is_full {
            drift(&files, turn);
        }
    }
    let found = verify(&files);
    assert!(
        !found.valid && found.problems.is_empty() && !found.differences.is_empty(),
        "{found:?}"
    );
    assert!(found.suggestion.as_deref().unwrap().contains("recovery snapshot"));
    let mut session = open(&files).unwrap();
    // What the turns do not go on from is passed over, and said.
    assert!(session.notes()[0].starts_with("the snapshot of turn 56 was passed over"));
    for n in 56..=60 {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"));
    }
    assert!(session.timeline().verify().unwrap().valid);
    let done = session.recover(Millis::new(7)).unwrap();
    assert_eq!(done.turn_id, 60);
    assert!(done.differences.iter().any(|(turn, found)| {
        *turn == 56
            && found.path == "/player/location/zone"
            && found.found == Some(Data::from("moon"))
    }));
    assert!(!done.kept.is_empty() && done.kept.iter().all(|path| files.bytes(path).is_some()));
    for n in 1..=60 {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"));
    }
    assert_eq!(session.stored_snapshots().last().unwrap().0, 60);
    session.push(turn(61)).unwrap();
    session.close().unwrap();
    let found = verify(&files);
    assert!(found.valid && found.turns == 61, "{found:?}");
    let mut session = open(&files).unwrap();
    assert_eq!(session.recover(Millis::new(8)).unwrap().differences, []);
    let mut read = SessionDir::open_read(Arc::new(files), DIR, options()).unwrap();
    assert_eq!(read.recover(Millis::new(9)).unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn a_session_without_turns_is_recovered_too() {
    let files = MemoryFiles::new();
    let mut session =
        SessionDir::create(Arc::new(files.clone()), DIR, options(), Data::object()).unwrap();
    let done = session.recover(Millis::new(0)).unwrap();
    assert_eq!((done.turn_id, done.differences, done.kept), (0, vec![], vec![]));
    session.push(turn(1)).unwrap();
    session.close().unwrap();
    let found = verify(&files);
    assert!(found.valid && found.turns == 1, "{found:?}");
}

#[test]
fn repair_keeps_what_is_based_on_a_snapshot_that_goes_and_touches_nothing_sound() {
    let files = MemoryFiles::new();
    let config = TimelineConfig {
        snapshot_interval: 50,
        compress_snapshots_older_than: 60,
        ..TimelineConfig::default()
    };
    let options = SessionOptions::new("tale").config(config);
    let state = data(r#"{"player":{"location":{"zone":""}},"scene":{}}"#);
    let mut session =
        SessionDir::create(Arc::new(files.clone()), DIR, options.clone(), state).unwrap();
    for n in 1..=320 {
        session.push(turn(n)).unwrap();
    }
    let based = |turn: u64, session: &SessionDir| {
        session.stored_snapshots().into_iter().find(|found| found.0 == turn).unwrap().3
    };
    assert_eq!(based(100, &session), Some(50));
    session.close().unwrap();
    let name = "tale/turns/turns-0001-0050.jsonl.zst";
    let whole = files.bytes(name).unwrap();
    files.put(name, &whole[..whole.len() / 2]);
    let found = verify(&files);
    assert!(!found.valid && found.notes.is_empty(), "{found:?}");
    // What is missing in one file is not said of all that come after it.
    assert!(found.problems.len() <= 2, "{:?}", found.problems);
    let sound = "tale/turns/turns-0051-0100.jsonl.zst";
    let before = files.bytes(sound).unwrap();
    let disk: Arc<dyn Files> = Arc::new(files.clone());
    let done = repair(&disk, DIR, &options).unwrap();
    assert_eq!((done.turns, done.lost.is_empty()), (320, false));
    // The file that was cut, and the snapshot of its last turn, whose line is another now.
    assert_eq!(done.kept.len(), 2, "{:?}", done.kept);
    assert_eq!(files.bytes(sound).unwrap(), before);
    let found = verify(&files);
    assert!(found.valid && found.turns == 320, "{found:?}");
    let session = open(&files).unwrap();
    assert_eq!(based(100, &session), None);
    for n in 51..=320 {
        assert_eq!(zone(&session.timeline().state_at(n).unwrap()), format!("zone {n} ä"));
    }
}
