//! Session directories that lost turns at their end, which were acknowledged.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::tale;

use std::{path::Path, sync::Arc};

use afterimage_json as json;
use afterimage_log::{
    Files, HighWater, line,
    testing::{MemoryFiles, UnsyncedBytes},
};
use afterimage_timeline::{
    ErrorKind,
    session::{Durability, SessionDir, SharedSession, repair},
};
use tale::{DIR, MARK, META, create, forget, open, options, session, turn, verify, zone};

const FIRST: &str = "tale/turns/turns-0001-0050.jsonl";
const LAST: &str = "tale/turns/turns-0051-0100.jsonl";

/// The last turn that is remembered.
fn remembered(files: &MemoryFiles) -> u64 {
    HighWater::read(files, MARK).unwrap().unwrap().mark.last
}

fn everything(files: &MemoryFiles) -> Vec<(std::path::PathBuf, Option<Vec<u8>>)> {
    let mut paths = files.paths();
    paths.retain(|path| !path.ends_with("lock"));
    paths.into_iter().map(|path| (path.clone(), files.bytes(path))).collect()
}

fn lines(files: &MemoryFiles, path: &str, count: usize) {
    let bytes = files.bytes(path).unwrap();
    let kept: Vec<u8> =
        bytes.split_inclusive(|byte| *byte == b'\n').take(count).flatten().copied().collect();
    files.put(path, kept);
}

/// Asserts that a session is told to have lost its end, and is not changed before it is repaired.
#[track_caller]
fn refused(files: &MemoryFiles, sentence: &str) {
    let before = everything(files);
    let found = verify(files);
    assert!(!found.valid, "{found:?}");
    assert!(found.problems.iter().any(|problem| problem.contains(sentence)), "{found:?}");
    assert!(found.suggestion.unwrap().contains("repair"));
    let error = open(files).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains(sentence), "{error}");
    // What is there can be read, and the reader is told.
    let read = SessionDir::open_read(Arc::new(files.clone()), DIR, options()).unwrap();
    assert!(read.notes().iter().any(|note| note.contains(sentence)), "{:?}", read.notes());
    assert_eq!(everything(files), before);
}

/// Repairs a session, and asserts that it goes on.
#[track_caller]
fn repaired(files: &MemoryFiles) -> afterimage_timeline::session::RepairReport {
    let disk: Arc<dyn Files> = Arc::new(files.clone());
    let done = repair(&disk, DIR, &options()).unwrap();
    assert!(done.notes.iter().any(|note| note.starts_with("accepted: ")), "{done:?}");
    let found = verify(files);
    assert!(found.valid && found.turns == done.turns, "{found:?}");
    assert_eq!(remembered(files), done.turns);
    let mut session = open(files).unwrap();
    session.push(turn(done.turns + 1)).unwrap();
    session.close().unwrap();
    assert!(verify(files).valid);
    assert_eq!(remembered(files), done.turns + 1);
    done
}

#[test]
fn a_session_whose_last_file_is_gone_takes_no_turn_until_the_loss_is_accepted() {
    let files = session(90);
    files.remove(Path::new(LAST)).unwrap();
    refused(&files, "turns 51 to 90 were acknowledged and are missing: the log ends with turn 50");
    let done = repaired(&files);
    // A snapshot still tells what most of them did.
    assert_eq!((done.turns, done.accepted), (84, Some((85, 90))), "{done:?}");
    // All that was acknowledged and is not in the log any more.
    assert_eq!(done.lost_turns(), 40);
    assert_eq!(done.lost, (51..=84).collect::<Vec<_>>());
    let session = open(&files).unwrap();
    assert_eq!(zone(&session.timeline().state_at(84).unwrap()), "zone 84 ä");
    assert_eq!(zone(&session.timeline().state_at(50).unwrap()), "zone 50 ä");
}

/// A number in a sealed document.
fn number(files: &MemoryFiles, path: &Path, member: &str) -> Option<u64> {
    document(files, path).get(member).and_then(json::Value::as_u64)
}

fn document(files: &MemoryFiles, path: &Path) -> json::Value {
    let text = String::from_utf8(files.bytes(path).unwrap()).unwrap();
    json::read(line::open(text.trim_end()).unwrap().as_bytes()).unwrap()
}

#[test]
fn a_repair_keeps_the_state_of_the_turns_that_it_accepts_as_lost() {
    let files = session(90);
    let path = Path::new("tale/state/current.json");
    let before = document(&files, path);
    assert_eq!(number(&files, path, "turnId"), Some(90));
    files.remove(Path::new(LAST)).unwrap();
    let done = repaired(&files);
    for name in ["state/current.json", "state/verified.json", "indexes/delta-index.json"] {
        let kept = Path::new(DIR).join(format!("{name}.damaged-1"));
        assert!(done.kept.contains(&kept), "{done:?}");
        assert_eq!(number(&files, &kept, "lastTurn"), Some(90));
    }
    let kept = Path::new("tale/state/current.json.damaged-1");
    assert_eq!(document(&files, kept), before);
    assert_eq!(number(&files, path, "turnId"), Some(done.turns + 1));
    assert!(
        done.notes.iter().any(|note| note.contains("know turns after 50 are kept")),
        "{done:?}"
    );
}

#[test]
fn a_writer_of_a_session_without_acknowledged_turns_keeps_a_state_that_is_ahead_of_the_log() {
    let files = session(6);
    let before = files.bytes("tale/state/current.json").unwrap();
    forget(&files);
    lines(&files, FIRST, 3);
    let session = open(&files).unwrap();
    let kept = "tale/state/current.json.damaged-1";
    assert!(session.notes().iter().any(|note| note.contains(kept)), "{:?}", session.notes());
    session.close().unwrap();
    assert_eq!(files.bytes(kept).unwrap(), before);
    assert!(verify(&files).valid);
}

#[test]
fn a_session_whose_turns_are_all_gone_is_not_taken_for_a_new_one() {
    let files = session(5);
    files.remove(Path::new(FIRST)).unwrap();
    refused(&files, "turns 1 to 5 were acknowledged and are missing: the log is empty");
    let without_meta = files.crash(UnsyncedBytes::Kept, true);
    without_meta.remove(Path::new(META)).unwrap();
    let state = tale::data("{}");
    let error = SessionDir::create(Arc::new(without_meta), DIR, options(), state).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let done = repaired(&files);
    assert_eq!((done.turns, done.accepted), (0, Some((1, 5))));
}

#[test]
fn a_session_cut_between_two_lines_takes_no_turn_until_the_loss_is_accepted() {
    for kept in 0..6 {
        let files = session(6);
        lines(&files, FIRST, kept);
        let (first, ends) = (
            kept + 1,
            if kept == 0 { "is empty".to_owned() } else { format!("ends with turn {kept}") },
        );
        let missing = if kept == 5 {
            format!("turn 6 was acknowledged and is missing: the log {ends}")
        } else {
            format!("turns {first} to 6 were acknowledged and are missing: the log {ends}")
        };
        refused(&files, &missing);
        let done = repaired(&files);
        assert_eq!((done.turns, done.accepted), (kept as u64, Some((first as u64, 6))));
    }
}

#[test]
fn a_torn_tail_of_what_was_acknowledged_is_a_loss_and_is_not_cut() {
    let files = session(6);
    let bytes = files.bytes(FIRST).unwrap();
    files.put(FIRST, &bytes[..bytes.len() - 9]);
    refused(&files, "turn 6 was acknowledged and is missing: the log ends with turn 5");
    assert_eq!(repaired(&files).accepted, Some((6, 6)));
}

#[test]
fn a_session_without_its_mark_takes_no_turn_until_that_is_accepted() {
    let files = session(6);
    let mark = files.bytes(MARK).unwrap();
    files.remove(Path::new(MARK)).unwrap();
    refused(&files, "how far the log was acknowledged is not known: the file is missing");
    assert_eq!(repaired(&files).accepted, None);
    // Neither of its slots is sound.
    let files = session(6);
    files.put(MARK, mark.iter().map(|byte| byte ^ 1).collect::<Vec<_>>());
    refused(&files, "how far the log was acknowledged is not known: ");
    let done = repaired(&files);
    assert_eq!((done.accepted, done.kept.len()), (None, 1), "{done:?}");
}

#[test]
fn a_mark_whose_last_write_was_broken_off_says_what_it_said_before() {
    for slot in 0..2 {
        let files = session(6);
        let mut mark = files.bytes(MARK).unwrap();
        mark[512 * slot + 20] ^= 1;
        files.put(MARK, mark);
        let found = verify(&files);
        assert!(found.valid && found.notes[0].contains("broken off"), "{found:?}");
        assert!(remembered(&files) >= 5);
        let mut session = open(&files).unwrap();
        session.push(turn(7)).unwrap();
        session.close().unwrap();
        assert_eq!(verify(&files).notes, [""; 0]);
        assert_eq!(remembered(&files), 7);
    }
}

#[test]
fn a_session_that_lost_its_end_and_grew_again_is_told_from_one_that_did_not() {
    let files = session(6);
    let mark = files.bytes(MARK).unwrap();
    forget(&files);
    lines(&files, FIRST, 3);
    let mut session = open(&files).unwrap();
    for n in 14..24 {
        session.push(turn(n)).unwrap();
    }
    session.close().unwrap();
    files.put(MARK, mark);
    refused(&files, "turn 6 is not the one that was acknowledged");
    assert_eq!(repaired(&files).accepted, None);
}

#[test]
fn what_is_not_durable_is_not_remembered() {
    let files = session(3);
    let disk = Arc::new(files.clone());
    let batch = options().durability(Durability::Batch(10));
    let mut session = SessionDir::open(disk, DIR, batch).unwrap();
    for n in 4..9 {
        session.push(turn(n)).unwrap();
    }
    let durable = session.durable_turn();
    assert_eq!(remembered(&files), durable);
    let after = files.crash(UnsyncedBytes::Lost, true);
    assert!(verify(&after).valid);
    session.sync().unwrap();
    assert_eq!(remembered(&files), 8);
}

#[test]
fn every_way_of_writing_remembers_before_it_acknowledges() {
    let files = MemoryFiles::new();
    let shared = SharedSession::new(create(&files));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..30 {
                    let pushed = shared.push(turn(1)).unwrap();
                    assert!(remembered(&files) >= pushed.record.turn_id);
                }
            });
        }
    });
    let mut session = shared.into_inner();
    assert_eq!(remembered(&files), 120);
    session.undo(7, afterimage_json::Millis::new(1)).unwrap();
    session.sync().unwrap();
    assert_eq!(remembered(&files), 121);
    // What is remembered survives the power cut, too.
    let after = files.crash(UnsyncedBytes::Lost, false);
    assert_eq!(remembered(&after), 121);
    session.close().unwrap();
    assert!(verify(&files).valid);
}

#[test]
fn a_branch_remembers_its_own_turns_and_reads_its_parent_as_far_as_it_shares_it() {
    let files = session(20);
    let parent = open(&files).unwrap();
    let named = options().named("branch");
    let mut branch = parent.branch(10, "branch", &named).unwrap();
    branch.push(turn(11)).unwrap();
    branch.push(turn(12)).unwrap();
    branch.close().unwrap();
    drop(parent);
    let mark = || HighWater::read(&files, "branch/acknowledged").unwrap().unwrap().mark.last;
    assert_eq!(mark(), 12);
    let opened = || SessionDir::open(Arc::new(files.clone()), "branch", named.clone());
    // The parent lost turns that the branch does not share.
    lines(&files, FIRST, 15);
    assert_eq!(opened().unwrap().timeline().last_turn(), 12);
    let own = "branch/turns/turns-0011-0050.jsonl";
    lines(&files, own, 1);
    let error = opened().unwrap_err();
    assert!(error.to_string().contains("turn 12 was acknowledged and is missing"), "{error}");
}
