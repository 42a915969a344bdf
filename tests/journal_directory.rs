//! A journal in a directory on a disk that fails, loses what was not synced, and is read by others.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "support/journal_work.rs"]
#[allow(unused_imports)]
mod journal_work;

use std::{path::Path, sync::Arc};

use afterimage::{
    ErrorKind, Result,
    id::Millis,
    journal::{Expected, Journal, JournalOptions, PassReason},
    log::{
        Holder,
        testing::{Fault, MemoryFiles, Unsynced},
    },
};
use journal_work::{Step, Work, event, name, note, state_of};

const NOW: Millis = Millis::new(7);
const ROOT: &str = "journal";
const EVENTS: &str = "journal/s-a.events.rec";

fn open(files: &MemoryFiles) -> Result<Journal> {
    let options = JournalOptions::default();
    Journal::open_on(Arc::new(files.clone()), ROOT, &Holder::new("test"), options)
}

fn steps(count: usize) -> Vec<Step> {
    (0..count).map(|n| note(&format!("note {n}"))).collect()
}

/// Appends notes from `from` to `to`, with a snapshot after every third, and says how many are
/// acknowledged.
fn work(files: &MemoryFiles, from: usize, to: usize) -> (usize, Option<ErrorKind>) {
    let mut acknowledged = from;
    let mut run = || -> Result<()> {
        let mut journal = open(files)?;
        for n in from..to {
            let new = event(n, &steps(to)[n]);
            let appended = journal.append(&name("a"), Expected::Last(n as u64), new, NOW)?;
            assert_eq!(appended.sequence, n as u64 + 1);
            acknowledged = n + 1;
            if n % 3 == 2 {
                let state = state_of(&steps(n + 1));
                // A snapshot that fails is reported, and nothing else.
                let _ = journal.write_snapshot(&name("a"), &state, n as u64 + 1, NOW);
            }
        }
        Ok(())
    };
    let failed = run().err().map(|error| error.kind());
    (acknowledged, failed)
}

/// The notes that a journal on this disk loads.
fn loaded(files: &MemoryFiles) -> usize {
    let mut journal = open(files).unwrap();
    let loaded = journal.load::<Work>(&name("a")).unwrap();
    let count = loaded.sequence as usize;
    assert_eq!(loaded.state, state_of(&steps(count)));
    let full = journal.read(&name("a"), 1, usize::MAX).unwrap();
    assert_eq!(full.len(), count);
    count
}

#[test]
fn whatever_operation_fails_no_acknowledged_event_is_lost_or_doubled() {
    const COUNT: usize = 7;
    let clean = MemoryFiles::new();
    assert_eq!(work(&clean, 0, COUNT), (COUNT, None));
    let mut failed = 0;
    for operation in 0..clean.operations() {
        for fault in [Fault::Fail, Fault::Short, Fault::Crash] {
            for (unsynced, keeps_names) in [
                (Unsynced::Lost, false),
                (Unsynced::Lost, true),
                (Unsynced::Halved, true),
                (Unsynced::Zeroed, true),
                (Unsynced::Kept, true),
            ] {
                let files = MemoryFiles::new();
                files.fault_at(operation, fault);
                let (acknowledged, error) = work(&files, 0, COUNT);
                failed += usize::from(error.is_some());
                let after = files.crash(unsynced, keeps_names);
                let found = loaded(&after);
                let context = format!("{operation} {fault:?} {unsynced:?} {keeps_names}");
                assert!(found == acknowledged || found == acknowledged + 1, "{context}: {found}");
                // The process that comes after tries the last step again, with its id.
                let mut journal = open(&after).unwrap();
                for (n, step) in steps(COUNT).iter().enumerate().skip(acknowledged) {
                    let appended =
                        journal.append(&name("a"), Expected::Any, event(n, step), NOW).unwrap();
                    assert_eq!(appended.sequence, n as u64 + 1, "{context}");
                    assert_eq!(appended.was_there, n < found, "{context}");
                }
                drop(journal);
                assert_eq!(loaded(&after), COUNT, "{context}");
            }
        }
    }
    assert!(failed > 50, "{failed}");
}

#[test]
fn after_a_failed_write_the_session_takes_nothing_and_others_go_on() {
    let files = MemoryFiles::new();
    let mut journal = open(&files).unwrap();
    let append = |journal: &mut Journal, session: &str, n: usize| {
        journal.append(&name(session), Expected::Any, event(n, &note("x")), NOW)
    };
    append(&mut journal, "a", 0).unwrap();
    append(&mut journal, "b", 0).unwrap();
    files.set_room(Some(10));
    assert_eq!(append(&mut journal, "a", 1).unwrap_err().kind(), ErrorKind::Io);
    files.set_room(None);
    assert_eq!(append(&mut journal, "a", 1).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(journal.load::<Work>(&name("a")).unwrap_err().kind(), ErrorKind::Poisoned);
    append(&mut journal, "b", 1).unwrap();
    drop(journal);
    let mut journal = open(&files).unwrap();
    assert!(!append(&mut journal, "a", 1).unwrap().was_there);
    assert_eq!(journal.load::<Work>(&name("a")).unwrap().sequence, 2);
}

#[test]
fn a_log_that_is_cut_at_any_byte_loads_what_is_whole() {
    let files = MemoryFiles::new();
    work(&files, 0, 8);
    let bytes = files.bytes(EVENTS).unwrap();
    // A note takes 36 bytes for the header, its line and its body.
    let ends: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\xfeREC").skip(1).collect();
    let ends: Vec<usize> = ends.into_iter().chain([bytes.len()]).collect();
    assert_eq!(ends.len(), 9);
    for cut in 32..=bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let events = whole.saturating_sub(1);
        files.put(EVENTS, bytes[..cut].to_vec());
        let after = files.crash(Unsynced::Kept, true);
        let mut journal = open(&after).unwrap();
        let loaded = journal.load::<Work>(&name("a")).unwrap();
        assert_eq!(loaded.state, state_of(&steps(events)), "{cut}");
        // The snapshot after six events is ahead of a log with fewer.
        match (events, loaded.report.snapshot) {
            (0..6, None) => {
                let reason = &loaded.report.passed_over[0].reason;
                let last = events as u64;
                // A log that has lost its first record is none.
                let is_ahead = *reason == PassReason::Ahead { last };
                assert!(is_ahead || *reason == PassReason::AnotherLog, "{cut}: {reason}");
            }
            (6.., Some(used)) => assert_eq!(used.after_sequence, 6),
            other => panic!("{cut}: {other:?}"),
        }
        let is_torn = !ends.contains(&cut) && cut != 32 && cut != ends[0];
        assert_eq!(journal.cut_tails().len(), usize::from(is_torn), "{cut}");
        drop(journal);
        let (acknowledged, error) = work(&after, events, 8);
        assert_eq!((acknowledged, error), (8, None));
        assert_eq!(self::loaded(&after), 8);
    }
}

#[test]
fn damage_in_the_middle_is_an_error_that_names_the_file() {
    let files = MemoryFiles::new();
    work(&files, 0, 5);
    let bytes = files.bytes(EVENTS).unwrap();
    let body = memchr::memmem::find(&bytes, b"note 2").unwrap();
    let mut changed = bytes.clone();
    changed[body] ^= 1;
    files.put(EVENTS, changed);
    let mut journal = open(&files).unwrap();
    // The snapshot after the third event spares that record.
    let error = journal.read(&name("a"), 1, 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert_eq!(error.place().file.as_deref(), Some(Path::new(EVENTS)));
    assert_eq!(error.place().record, Some(3));
}

#[test]
fn a_directory_has_one_writer_and_any_readers() {
    let scratch = tempfile::tempdir().unwrap();
    let options = JournalOptions::default;
    let mut journal = Journal::open(scratch.path(), &Holder::new("one"), options()).unwrap();
    let second = Journal::open(scratch.path(), &Holder::new("two"), options()).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked);
    assert!(second.message().contains("one"), "{second}");
    let mut reader = Journal::open_read_only(scratch.path(), options()).unwrap();
    for n in 0..5 {
        let new = event(n, &steps(5)[n]);
        journal.append(&name("a"), Expected::Any, new, NOW).unwrap();
        let loaded = reader.load::<Work>(&name("a")).unwrap();
        assert_eq!(loaded.state, state_of(&steps(n + 1)));
        assert_eq!(reader.sessions().unwrap(), [name("a")]);
        if n == 2 {
            journal.write_snapshot(&name("a"), &loaded.state, 3, NOW).unwrap();
        }
        assert_eq!(loaded.report.snapshot.is_some(), n > 2);
    }
    let refused = reader.append(&name("a"), Expected::Any, event("r", &note("r")), NOW);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(reader.delete(&name("a")).unwrap_err().kind(), ErrorKind::Locked);
    let written = reader.write_snapshot(&name("a"), &state_of(&steps(5)), 5, NOW);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Locked);
}
