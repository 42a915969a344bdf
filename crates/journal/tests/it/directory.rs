//! A journal in a directory on a disk that fails, loses what was not synced, and is read by others.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;

use std::{path::Path, sync::Arc};

use afterimage_journal::{
    ErrorKind, Expected, Journal, JournalOptions, Result, SessionName, SkipReason,
};
use afterimage_json::Millis;
use afterimage_log::{
    DiskFiles, Holder,
    testing::{Fault, MemoryFiles, UnsyncedBytes},
};
use journal_work::{Step, Work, event, forget, name, note, state_of};

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
                (UnsyncedBytes::Lost, false),
                (UnsyncedBytes::Lost, true),
                (UnsyncedBytes::Halved, true),
                (UnsyncedBytes::Zeroed, true),
                (UnsyncedBytes::Kept, true),
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

/// A process dies before it has synced, and what it wrote is in the memory of its system. Who comes
/// after finds the event there, and says so; then the power fails.
#[test]
fn an_event_that_was_found_there_is_as_durable_as_one_that_was_appended() {
    const COUNT: usize = 4;
    let clean = MemoryFiles::new();
    work(&clean, 0, COUNT);
    let mut found = 0;
    for operation in 0..clean.operations() {
        for fault in [Fault::Fail, Fault::Short, Fault::Crash] {
            let files = MemoryFiles::new();
            files.fault_at(operation, fault);
            let (acknowledged, _) = work(&files, 0, COUNT);
            files.survive();
            let Some(step) = steps(COUNT).get(acknowledged).cloned() else { continue };
            let mut journal = open(&files).unwrap();
            let new = event(acknowledged, &step);
            let appended = journal.append(&name("a"), Expected::Any, new, NOW).unwrap();
            found += usize::from(appended.was_there);
            let after = files.crash(UnsyncedBytes::Lost, false);
            assert_eq!(loaded(&after), acknowledged + 1, "{operation} {fault:?}");
        }
    }
    assert!(found >= COUNT, "{found}");
}

/// With a name so long that a disk may keep the event and lose what says whose it is.
#[test]
fn a_session_whose_first_write_was_torn_takes_events() {
    let long = name(&"ü".repeat(300));
    let append =
        |files: &MemoryFiles| open(files)?.append(&long, Expected::Any, event(0, &note("x")), NOW);
    let clean = MemoryFiles::new();
    append(&clean).unwrap();
    for operation in 0..clean.operations() {
        for unsynced in
            [UnsyncedBytes::Lost, UnsyncedBytes::Halved, UnsyncedBytes::Zeroed, UnsyncedBytes::Kept]
        {
            let files = MemoryFiles::new();
            files.fault_at(operation, Fault::Crash);
            append(&files).unwrap_err();
            let after = files.crash(unsynced, true);
            assert_eq!(append(&after).unwrap().sequence, 1, "{operation} {unsynced:?}");
        }
    }
}

#[test]
fn a_session_that_cannot_be_created_hides_no_other() {
    let files = MemoryFiles::new();
    let mut journal = open(&files).unwrap();
    let append = |journal: &mut Journal, session: &str| {
        journal.append(&name(session), Expected::Any, event(0, &note("x")), NOW)
    };
    append(&mut journal, "a").unwrap();
    files.set_room(Some(0));
    assert_eq!(append(&mut journal, "b").unwrap_err().kind(), ErrorKind::Io);
    files.set_room(None);
    assert_eq!(journal.sessions().unwrap(), [name("a")]);
    append(&mut journal, "b").unwrap();
    assert_eq!(journal.sessions().unwrap(), [name("a"), name("b")]);
}

#[test]
fn a_session_that_cannot_be_read_is_listed_and_hides_no_other() {
    let files = MemoryFiles::new();
    let mut journal = open(&files).unwrap();
    for session in ["B!", "c"] {
        journal.append(&name(session), Expected::Any, event(0, &note("x")), NOW).unwrap();
    }
    drop(journal);
    files.put("journal/s-=42=21.events.rec", *b"something else altogether, as long as a header");
    let mut journal = open(&files).unwrap();
    assert_eq!(journal.sessions().unwrap(), [name("B!"), name("c")]);
    assert_eq!(journal.load::<Work>(&name("c")).unwrap().sequence, 1);
    let error = journal.load::<Work>(&name("B!")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat);
    journal.delete(&name("B!")).unwrap();
    assert_eq!(journal.sessions().unwrap(), [name("c")]);
}

/// What cannot be told from an append that was never acknowledged is passed over, and never without a
/// word.
#[test]
fn whoever_sees_a_torn_tail_can_say_so() {
    let scratch = tempfile::tempdir().unwrap();
    let options = JournalOptions::default;
    let path = scratch.path().join("s-a.events.rec");
    let write = || Journal::open(scratch.path(), &Holder::new("one"), options()).unwrap();
    let mut journal = write();
    for (n, step) in steps(3).iter().enumerate() {
        journal.append(&name("a"), Expected::Any, event(n, step), NOW).unwrap();
    }
    assert!(journal.torn_tails().is_empty() && journal.cut_tails().is_empty());
    drop(journal);
    // What was acknowledged is missed: that is another matter.
    forget(&DiskFiles, &path);
    let bytes = std::fs::read(&path).unwrap();
    let starts: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\xfeREC").collect();
    // A bit of the last header, one of its payload, and a file that ends early.
    for (change, is_cut) in [(starts[3] + 9, false), (bytes.len() - 1, false), (usize::MAX, true)] {
        let mut changed = bytes.clone();
        match changed.get_mut(change) {
            Some(byte) => *byte ^= 4,
            None => drop(changed.pop()),
        }
        std::fs::write(&path, changed).unwrap();
        let mut reader = Journal::open_read_only(scratch.path(), options()).unwrap();
        assert_eq!(reader.load::<Work>(&name("a")).unwrap().sequence, 2);
        assert_eq!(reader.status(&name("a")).unwrap().last_sequence, 2);
        let [seen] = reader.torn_tails() else { panic!("{:?}", reader.torn_tails()) };
        assert_eq!((&seen.file, seen.torn.record, seen.torn.is_cut()), (&path, 3, is_cut));
        assert_eq!(seen.to_string().contains("a disk that changed one"), !is_cut, "{seen}");
        let mut writer = write();
        assert_eq!(writer.status(&name("a")).unwrap().last_sequence, 2);
        let [cut] = writer.cut_tails() else { panic!("{:?}", writer.cut_tails()) };
        assert_eq!((cut.torn.is_cut(), cut.copy.exists()), (is_cut, true));
        assert!(cut.to_string().contains(cut.copy.to_str().unwrap()), "{cut}");
        // What is sound again is nothing to speak of.
        assert_eq!(reader.status(&name("a")).unwrap().last_sequence, 2);
        assert!(reader.torn_tails().is_empty());
        writer.delete(&name("a")).unwrap();
        assert!(writer.cut_tails().is_empty());
    }
    // The only event of a session, which is then not listed.
    std::fs::write(&path, &bytes[..starts[1] + 40]).unwrap();
    let mut reader = Journal::open_read_only(scratch.path(), options()).unwrap();
    assert_eq!(reader.sessions().unwrap(), []);
    assert_eq!(reader.torn_tails().len(), 1);
}

/// Files as crashes leave them, and damage wherever it is.
#[test]
fn no_file_of_a_session_hides_another() {
    let long = "ü".repeat(300);
    let files = MemoryFiles::new();
    let mut journal = open(&files).unwrap();
    for session in ["good", "head", "first", long.as_str()] {
        for (n, step) in steps(3).iter().enumerate() {
            journal.append(&name(session), Expected::Any, event(n, step), NOW).unwrap();
        }
    }
    let file = |token: &str| format!("journal/s-{token}.events.rec");
    let flip = |token: &str, record: usize, at: usize| {
        let mut bytes = files.bytes(file(token)).unwrap();
        let starts: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\xfeREC").collect();
        bytes[starts[record] + at] ^= 1;
        files.put(file(token), bytes);
    };
    flip("head", 0, 5);
    flip("first", 1, 5);
    let hashed = name(&long);
    flip(hashed.token(), 0, 60);
    files.put(file("empty"), *b"");
    files.put(file("short"), files.bytes(file("good")).unwrap()[..20].to_vec());
    files.put(file("copy"), files.bytes(file("good")).unwrap());
    files.put(file(""), *b"nothing that is known");
    drop(journal);
    let mut journal = open(&files).unwrap();
    let sessions = journal.sessions().unwrap();
    let found: Vec<&str> = sessions.iter().map(SessionName::as_str).collect();
    assert_eq!(found, ["", hashed.token(), "copy", "first", "good", "head", "short"]);
    for session in &sessions {
        let status = journal.status(session);
        assert_eq!(status.is_ok(), session.as_str() == "good", "{session}: {status:?}");
        if status.is_err() {
            journal.delete(session).unwrap();
        }
    }
    assert_eq!(journal.sessions().unwrap(), [name("good")]);
    for session in ["empty", "short"] {
        assert_eq!(journal.status(&name(session)).unwrap().last_sequence, 0);
        journal.append(&name(session), Expected::Last(0), event(0, &note("x")), NOW).unwrap();
    }
    assert_eq!(journal.sessions().unwrap(), ["empty", "good", "short"].map(name));
}

#[test]
fn a_snapshot_that_is_written_is_a_success_though_older_ones_stay() {
    let snapshots = |files: &MemoryFiles| {
        let names = files.paths();
        let is_snapshot =
            |path: &&std::path::PathBuf| path.extension().is_some_and(|e| e == "snapshot");
        names.iter().filter(is_snapshot).count()
    };
    let mut stayed = 0;
    for operation in 0..9 {
        let files = MemoryFiles::new();
        work(&files, 0, 5);
        let mut journal = open(&files).unwrap();
        let state = state_of(&steps(5));
        files.fault_at(files.operations() + operation, Fault::Fail);
        let written = journal.write_snapshot(&name("a"), &state, 5, NOW);
        let read = journal.read_snapshot::<Work>(&name("a")).unwrap().unwrap();
        assert_eq!(written.is_ok(), read.after_sequence == 5, "{operation}");
        stayed += usize::from(written.is_ok() && snapshots(&files) == 2);
        // The next one takes what stayed with it.
        files.survive();
        journal.write_snapshot(&name("a"), &state, 5, NOW).unwrap();
        assert_eq!(snapshots(&files), 1, "{operation}");
    }
    assert_eq!(stayed, 1);
}

#[test]
fn an_older_snapshot_does_not_take_the_place_of_a_newer_one() {
    let files = MemoryFiles::new();
    let mut journal = open(&files).unwrap();
    for (n, step) in steps(8).iter().enumerate() {
        journal.append(&name("a"), Expected::Any, event(n, step), NOW).unwrap();
    }
    let mut write = |after: usize| {
        journal.write_snapshot(&name("a"), &state_of(&steps(after)), after as u64, NOW).unwrap()
    };
    let newer = write(8);
    assert_eq!(newer.after_sequence, 8);
    assert_eq!(write(3), newer);
    let loaded = journal.load::<Work>(&name("a")).unwrap();
    assert_eq!((loaded.report.snapshot, loaded.report.events), (Some(newer), 0));
    // One of which the log has lost the event stands in nobody's way, and neither does a damaged one.
    drop(journal);
    forget(&files, EVENTS);
    let bytes = files.bytes(EVENTS).unwrap();
    files.put(EVENTS, bytes[..bytes.len() - 1].to_vec());
    let mut journal = open(&files).unwrap();
    let mut write = |after: usize| {
        journal.write_snapshot(&name("a"), &state_of(&steps(after)), after as u64, NOW).unwrap()
    };
    assert_eq!(write(7).after_sequence, 7);
    let is_snapshot =
        |path: &&std::path::PathBuf| path.extension().is_some_and(|e| e == "snapshot");
    let path = files.paths().iter().find(is_snapshot).cloned().unwrap();
    let mut bytes = files.bytes(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    files.put(&path, bytes);
    assert_eq!(write(3).after_sequence, 3);
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
    forget(&files, EVENTS);
    let bytes = files.bytes(EVENTS).unwrap();
    // A note takes 36 bytes for the header, its line and its body.
    let ends: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\xfeREC").skip(1).collect();
    let ends: Vec<usize> = ends.into_iter().chain([bytes.len()]).collect();
    assert_eq!(ends.len(), 9);
    for cut in [0].into_iter().chain(32..=bytes.len()) {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let events = whole.saturating_sub(1);
        files.put(EVENTS, bytes[..cut].to_vec());
        let after = files.crash(UnsyncedBytes::Kept, true);
        let mut journal = open(&after).unwrap();
        let loaded = journal.load::<Work>(&name("a")).unwrap();
        assert_eq!(loaded.state, state_of(&steps(events)), "{cut}");
        // The snapshot after six events is ahead of a log with fewer.
        match (events, loaded.report.snapshot) {
            (0..6, None) => {
                let reason = &loaded.report.skipped_snapshots[0].reason;
                let last = events as u64;
                // A log that has lost its first record is none.
                let is_ahead = *reason == SkipReason::Ahead { last };
                assert!(is_ahead || *reason == SkipReason::AnotherLog, "{cut}: {reason}");
            }
            (6.., Some(used)) => assert_eq!(used.after_sequence, 6),
            other => panic!("{cut}: {other:?}"),
        }
        let is_torn = !ends.contains(&cut) && cut > 32 && cut != ends[0];
        assert!(journal.cut_tails().iter().all(|tail| tail.torn.is_cut()), "{cut}");
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

/// A loss of power keeps the header of the newest record, and not its payload; nobody has opened the
/// journal for writing since.
#[test]
fn readers_pass_over_a_newest_event_that_is_there_by_half() {
    let scratch = tempfile::tempdir().unwrap();
    let options = JournalOptions::default;
    let mut journal = Journal::open(scratch.path(), &Holder::new("one"), options()).unwrap();
    for (n, step) in steps(3).iter().enumerate() {
        journal.append(&name("a"), Expected::Any, event(n, step), NOW).unwrap();
    }
    journal.append(&name("b"), Expected::Any, event(0, &note("b")), NOW).unwrap();
    drop(journal);
    for token in ["a", "b"] {
        let path = scratch.path().join(format!("s-{token}.events.rec"));
        forget(&DiskFiles, &path);
        let mut bytes = std::fs::read(&path).unwrap();
        let end = bytes.len();
        bytes[end - 5..].fill(0);
        std::fs::write(&path, bytes).unwrap();
    }
    let mut reader = Journal::open_read_only(scratch.path(), options()).unwrap();
    assert_eq!(reader.load::<Work>(&name("a")).unwrap().state, state_of(&steps(2)));
    assert_eq!(reader.status(&name("a")).unwrap().last_sequence, 2);
    assert_eq!(reader.status(&name("b")).unwrap().last_sequence, 0);
    assert_eq!(reader.sessions().unwrap(), [name("a")]);
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
    // Each replaces the one before.
    for after in [4, 5] {
        let state = state_of(&steps(after));
        journal.write_snapshot(&name("a"), &state, after as u64, NOW).unwrap();
        let read = reader.read_snapshot::<Work>(&name("a")).unwrap().unwrap();
        assert_eq!((read.after_sequence, read.state), (after as u64, state));
    }
    let refused = reader.append(&name("a"), Expected::Any, event("r", &note("r")), NOW);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(reader.delete(&name("a")).unwrap_err().kind(), ErrorKind::Locked);
    let written = reader.write_snapshot(&name("a"), &state_of(&steps(5)), 5, NOW);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Locked);
}
