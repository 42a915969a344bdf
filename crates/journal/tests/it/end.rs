//! Journals in directories that lost events at the end of a log, which were acknowledged.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;

use std::{path::Path, sync::Arc};

use afterimage_journal::{ErrorKind, Expected, Journal, JournalOptions, Result, SnapshotPolicy};
use afterimage_json::Millis;
use afterimage_log::{
    Files, HighWater, Holder,
    testing::{Fault, MemoryFiles, UnsyncedBytes},
};
use journal_work::{Work, event, name, note, state_of};

const NOW: Millis = Millis::new(7);
const EVENTS: &str = "journal/s-a.events.rec";
const MARK: &str = "journal/s-a.acknowledged";

fn open(files: &MemoryFiles) -> Journal {
    let (options, holder) = (JournalOptions::default(), Holder::new("test"));
    Journal::open_on(Arc::new(files.clone()), "journal", &holder, options).unwrap()
}

fn append(journal: &mut Journal, n: u64) -> Result<u64> {
    let new = event(n, &note("x"));
    journal.append(&name("a"), Expected::Any, new, NOW).map(|appended| appended.sequence)
}

/// A journal with a session of so many events.
fn journal(events: u64) -> MemoryFiles {
    let files = MemoryFiles::new();
    let mut journal = open(&files);
    for n in 0..events {
        append(&mut journal, n).unwrap();
    }
    files
}

fn remembered(files: &MemoryFiles) -> u64 {
    HighWater::read(files, MARK).unwrap().unwrap().mark.last
}

/// Cuts the log after so many events.
fn cut(files: &MemoryFiles, events: usize) {
    let bytes = files.bytes(EVENTS).unwrap();
    let starts: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\xfeREC").collect();
    files.put(EVENTS, &bytes[..starts[events + 1]]);
}

/// Asserts that a session takes nothing before what it lost is accepted, and then goes on.
#[track_caller]
fn refused(files: &MemoryFiles, left: u64, sentence: &str) {
    let before = files.bytes(EVENTS);
    let mut journal = open(files);
    assert_eq!(journal.sessions().unwrap(), [name("a")]);
    let error = append(&mut journal, 99).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains(sentence), "{error}");
    let written = journal.write_snapshot(&name("a"), &state_of(&[]), left.max(1), NOW);
    written.unwrap_err();
    assert_eq!(files.bytes(EVENTS), before);
    let accepted = journal.repair(&name("a")).unwrap().unwrap();
    assert!(accepted.to_string().contains(sentence), "{accepted}");
    assert_eq!(journal.repair(&name("a")).unwrap(), None);
    assert!(journal.lost_ends().is_empty());
    assert_eq!(append(&mut journal, 99).unwrap(), left + 1);
    assert_eq!(journal.load::<Work>(&name("a")).unwrap().sequence, left + 1);
    drop(journal);
    assert_eq!(remembered(files), left + 1);
    let mut journal = open(files);
    assert_eq!(append(&mut journal, 100).unwrap(), left + 2);
}

#[test]
fn a_log_cut_between_two_records_takes_no_event_until_the_loss_is_accepted() {
    for left in 1..5 {
        let files = journal(6);
        cut(&files, left);
        let first = left + 1;
        refused(
            &files,
            left as u64,
            &format!(
                "events {first} to 6 were acknowledged and are missing: the log ends with event {left}"
            ),
        );
    }
    let files = journal(6);
    cut(&files, 0);
    refused(&files, 0, "events 1 to 6 were acknowledged and are missing: the log is empty");
}

#[test]
fn a_session_whose_log_is_gone_is_listed_and_takes_no_event_until_the_loss_is_accepted() {
    let files = journal(6);
    files.remove(Path::new(EVENTS)).unwrap();
    assert_eq!(open(&files).status(&name("a")).unwrap_err().kind(), ErrorKind::Damaged);
    refused(&files, 0, "events 1 to 6 were acknowledged and are missing: the log is empty");
}

#[test]
fn who_loads_a_session_that_lost_its_end_is_told_and_gets_no_older_state() {
    let scratch = tempfile::tempdir().unwrap();
    let options = JournalOptions::default;
    let mut journal = Journal::open(scratch.path(), &Holder::new("test"), options()).unwrap();
    for n in 0..6 {
        append(&mut journal, n).unwrap();
    }
    drop(journal);
    let path = scratch.path().join("s-a.events.rec");
    let bytes = std::fs::read(&path).unwrap();
    let starts: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\xfeREC").collect();
    std::fs::write(&path, &bytes[..starts[4]]).unwrap();
    let mut reader = Journal::open_read_only(scratch.path(), options()).unwrap();
    let error = reader.load::<Work>(&name("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gap);
    assert!(error.to_string().starts_with("events 4 to 6 are missing"), "{error}");
    assert_eq!(reader.read(&name("a"), 1, 99).unwrap().len(), 3);
    let [lost] = reader.lost_ends() else { panic!("{:?}", reader.lost_ends()) };
    assert_eq!(
        lost.to_string(),
        "events 4 to 6 were acknowledged and are missing: the log ends with event 3"
    );
    assert_eq!(reader.repair(&name("a")).unwrap_err().kind(), ErrorKind::Locked);
    // Another log that is whole is nothing to speak of.
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(reader.load::<Work>(&name("a")).unwrap().sequence, 6);
    assert!(reader.lost_ends().is_empty());
}

#[test]
fn a_log_without_its_mark_takes_no_event_until_that_is_accepted() {
    let files = journal(6);
    files.remove(Path::new(MARK)).unwrap();
    refused(&files, 6, "how far the log was acknowledged is not known: the file is missing");
}

#[test]
fn a_log_that_lost_its_end_and_grew_again_is_told_from_one_that_did_not() {
    let files = journal(6);
    let mark = files.bytes(MARK).unwrap();
    cut(&files, 3);
    let mut journal = open(&files);
    journal.repair(&name("a")).unwrap();
    for n in 20..26 {
        append(&mut journal, n).unwrap();
    }
    drop(journal);
    files.put(MARK, mark);
    refused(&files, 9, "event 6 is not the one that was acknowledged");
}

#[test]
fn a_log_that_lost_its_end_names_the_repair_in_every_error_and_no_loss_is_accepted_before_it() {
    let files = journal(6);
    let mut journal = open(&files);
    let (mut live, _) = journal.live::<Work>(&name("a"), SnapshotPolicy::OnRequest).unwrap();
    drop(journal);
    cut(&files, 3);
    let repair = "`afterimage journal repair` accepts the loss";
    let missing = "events 4 to 6 were acknowledged and are missing: the log ends with event 3";
    let mut journal = open(&files);
    let loaded = journal.load::<Work>(&name("a")).unwrap_err();
    assert_eq!(loaded.kind(), ErrorKind::Gap);
    for error in [loaded, journal.read(&name("a"), 5, 9).unwrap_err()] {
        let expected = format!("events 4 to 6 are missing: the log lost its end; {repair}");
        assert_eq!(error.message(), expected);
    }
    let errors = [
        journal.accept_loss::<Work>(&name("a"), NOW).unwrap_err(),
        journal.catch_up(&mut live).unwrap_err(),
        journal.snapshot(&mut live, NOW).unwrap_err(),
        append(&mut journal, 9).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert_eq!(error.message(), format!("{missing}; {repair}"));
    }
    assert_eq!(journal.lost_end(&name("a")).unwrap().to_string(), missing);
    assert_eq!(journal.lost_end(&name("b")), None);
    journal.repair(&name("a")).unwrap().unwrap();
    assert_eq!(journal.accept_loss::<Work>(&name("a"), NOW).unwrap().sequence, 3);
}

/// A removal that is broken off anywhere, in each way that a disk may remember it.
#[test]
fn an_interrupted_removal_never_looks_like_a_lost_end() {
    let clean = journal(4);
    let start = clean.operations();
    open(&clean).delete(&name("a")).unwrap();
    assert_eq!(clean.paths(), [Path::new("journal/lock")]);
    for operation in start..clean.operations() {
        for fault in [Fault::Fail, Fault::Short, Fault::Crash] {
            for (unsynced, keeps_names) in [
                (UnsyncedBytes::Lost, false),
                (UnsyncedBytes::Lost, true),
                (UnsyncedBytes::Kept, true),
            ] {
                let files = journal(4);
                files.fault_at(operation, fault);
                let options = JournalOptions::default();
                let holder = Holder::new("test");
                let opened = Journal::open_on(Arc::new(files.clone()), "journal", &holder, options);
                let _ = opened.map(|mut journal| journal.delete(&name("a")));
                let after = files.crash(unsynced, keeps_names);
                let what = format!("{fault:?} at {operation}, {unsynced:?}, {keeps_names}");
                let mut journal = open(&after);
                let listed = journal.sessions().unwrap();
                let there = journal.status(&name("a")).unwrap().last_sequence;
                assert_eq!(listed.is_empty(), there == 0, "{what}");
                assert!(there == 0 || there == 4, "{what}");
                assert_eq!(append(&mut journal, 50).unwrap(), there + 1, "{what}");
                journal.delete(&name("a")).unwrap();
                assert_eq!(journal.sessions().unwrap(), []);
            }
        }
    }
}

/// A journal of six events that lost those after `left`, with a snapshot after `taken`.
fn cut_with_snapshot(left: usize, taken: u64) -> MemoryFiles {
    let files = MemoryFiles::new();
    let mut journal = open(&files);
    for n in 0..6 {
        append(&mut journal, n).unwrap();
        if n + 1 == taken {
            let state = journal.load::<Work>(&name("a")).unwrap().state;
            journal.write_snapshot(&name("a"), &state, taken, NOW).unwrap();
        }
    }
    drop(journal);
    cut(&files, left);
    files
}

#[test]
fn a_repair_goes_on_after_the_snapshot_that_has_what_was_lost() {
    for left in 0..6 {
        let whole = journal(6);
        let expected = open(&whole).load::<Work>(&name("a")).unwrap().state;
        let files = cut_with_snapshot(left, 6);
        let mut journal = open(&files);
        let accepted = journal.repair(&name("a")).unwrap().unwrap();
        assert!(accepted.to_string().contains("missing"), "{accepted}");
        assert_eq!(journal.status(&name("a")).unwrap().last_sequence, 6);
        let loaded = journal.load::<Work>(&name("a")).unwrap();
        assert_eq!((loaded.sequence, &loaded.state), (6, &expected), "{left}");
        assert!(loaded.report.skipped_snapshots.is_empty(), "{:?}", loaded.report);
        // It goes on, and who opens it next finds the same.
        let (mut live, _) = journal.live::<Work>(&name("a"), SnapshotPolicy::OnRequest).unwrap();
        assert_eq!(append(&mut journal, 20).unwrap(), 7);
        assert_eq!(journal.catch_up(&mut live).unwrap(), 1);
        drop(journal);
        assert_eq!(remembered(&files), 7);
        let mut journal = open(&files);
        assert_eq!(append(&mut journal, 21).unwrap(), 8);
        let loaded = journal.load::<Work>(&name("a")).unwrap();
        assert_eq!((loaded.sequence, loaded.report.snapshot.unwrap().after_sequence), (8, 6));
        assert!(journal.status(&name("a")).unwrap().skipped_snapshot.is_none());
        // The records are gone all the same.
        assert_eq!(journal.read(&name("a"), 1, left).unwrap().len(), left);
        let error = journal.read(&name("a"), left as u64 + 1, 9).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gap, "{error}");
        let missing = match left {
            5 => "event 6 is missing".to_owned(),
            _ => format!("events {} to 6 are missing", left + 1),
        };
        assert!(error.message().starts_with(&missing), "{error}");
        assert_eq!(journal.read(&name("a"), 7, 9).unwrap().len(), 2);
    }
}

#[test]
fn a_repair_loses_what_came_after_the_snapshot_and_needs_it_from_then_on() {
    let files = cut_with_snapshot(2, 4);
    let mut journal = open(&files);
    journal.repair(&name("a")).unwrap().unwrap();
    assert_eq!(journal.load::<Work>(&name("a")).unwrap().sequence, 4);
    drop(journal);
    let snapshot = Path::new("journal/s-a.00000001.snapshot");
    files.remove(snapshot).unwrap();
    // Without it nobody knows what events 3 and 4 did, which is said.
    let mut journal = open(&files);
    let error = journal.load::<Work>(&name("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gap, "{error}");
    assert!(error.message().starts_with("events 3 to 4 are missing"), "{error}");
    assert_eq!(append(&mut journal, 9).unwrap(), 5);
    let error = journal.load::<Work>(&name("a")).unwrap_err();
    assert!(error.message().starts_with("events 3 to 4 are missing"), "{error}");
    let accepted = journal.accept_loss::<Work>(&name("a"), NOW).unwrap();
    assert_eq!(accepted.report.lost[0].first, 3);
}

#[test]
fn a_snapshot_of_what_was_not_acknowledged_or_is_damaged_keeps_no_places() {
    // A snapshot of events that the log still has changes nothing.
    let files = cut_with_snapshot(4, 3);
    let mut journal = open(&files);
    journal.repair(&name("a")).unwrap().unwrap();
    assert_eq!(journal.load::<Work>(&name("a")).unwrap().sequence, 4);
    let files = cut_with_snapshot(2, 6);
    let path = "journal/s-a.00000001.snapshot";
    let mut bytes = files.bytes(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    files.put(path, bytes);
    let mut journal = open(&files);
    journal.repair(&name("a")).unwrap().unwrap();
    assert_eq!(journal.load::<Work>(&name("a")).unwrap().sequence, 2);
}
