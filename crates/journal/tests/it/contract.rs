//! Journals in memory and in a directory: the specification's tests, and one state by every route.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, unused_mut)]
#![allow(clippy::cast_possible_truncation)]

use crate::support::journal_spec;
use crate::support::journal_work;

use afterimage_journal::{
    AppendReceipt, ErrorKind, Expected, Journal, JournalOptions, LostEvents, Memory, NewEvent,
    Replay, SessionName, SessionStatus, SkipReason, SkippedSnapshot, Snapshot, SnapshotPolicy,
};
use afterimage_json::Millis;
use afterimage_log::Holder;
use journal_spec::journal_spec;
use journal_work::{Move, NewWork, Notes, Step, Work, event, id, moves, name, note, state_of};
use proptest::prelude::*;

macro_rules! run {
    ($body:block) => {
        $body
    };
}

mod in_memory {
    use super::*;

    struct Stage(Memory);

    impl Stage {
        fn start() -> Self {
            Self(Memory::new())
        }

        fn open(&self, options: JournalOptions) -> Journal {
            Journal::in_memory(&self.0, options)
        }
    }

    journal_spec!(Stage, run, []);
}

mod in_a_directory {
    use super::*;

    struct Stage(tempfile::TempDir);

    impl Stage {
        fn start() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn open(&self, options: JournalOptions) -> Journal {
            Journal::open(self.0.path().join("journal"), &Holder::new("test"), options).unwrap()
        }
    }

    journal_spec!(Stage, run, []);
}

/// Makes the moves, and compares with the events applied one after the other after each.
fn same_state(moves: &[Move], mut open: impl FnMut() -> Journal) {
    let session = name("a");
    let mut steps: Vec<Step> = Vec::new();
    let mut journal = Some(open());
    let now = Millis::new(0);
    for made in moves {
        let at = journal.as_mut().unwrap();
        match made {
            Move::Step(step) => {
                let new = event(steps.len(), step);
                let expected = Expected::Last(steps.len() as u64);
                at.append(&session, expected, new, now).unwrap();
                steps.push(step.clone());
            }
            Move::Again => {
                if let Some(last) = steps.len().checked_sub(1) {
                    let again = event(last, &steps[last]);
                    let appended = at.append(&session, Expected::Any, again, now).unwrap();
                    let expected = AppendReceipt { sequence: steps.len() as u64, was_there: true };
                    assert_eq!(appended, expected);
                }
            }
            Move::Snapshot(share) => {
                let after = steps.len() * share / 1_000;
                if after > 0 {
                    let state = state_of(&steps[..after]);
                    at.write_snapshot(&session, &state, after as u64, now).unwrap();
                }
            }
            Move::Remove => {
                at.delete(&session).unwrap();
                steps.clear();
            }
            Move::Restart => {
                drop(journal.take());
                journal = Some(open());
            }
        }
        let loaded = journal.as_mut().unwrap().load::<Work>(&session).unwrap();
        assert_eq!(loaded.state, state_of(&steps));
        assert_eq!(loaded.sequence, steps.len() as u64);
        assert_eq!(loaded.report.skipped_snapshots, []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(afterimage_testkit::cases(48)))]

    #[test]
    fn same_state_in_memory(moves in moves()) {
        let memory = Memory::new();
        same_state(&moves, || Journal::in_memory(&memory, JournalOptions::default().with_known_ids(3)));
    }

    #[test]
    fn same_state_in_a_directory(moves in moves()) {
        let scratch = tempfile::tempdir().unwrap();
        let open = || {
            let options = JournalOptions::default().with_known_ids(3).keeping(2);
            Journal::open(scratch.path(), &Holder::new("test"), options).unwrap()
        };
        same_state(&moves, open);
    }
}

const NOW: Millis = Millis::new(0);

/// As many events, by another writer, as there were before.
#[test]
fn a_state_in_memory_does_not_go_on_in_the_session_of_another_writer() {
    let (memory, session) = (Memory::new(), name("a"));
    let open = || Journal::in_memory(&memory, JournalOptions::default());
    let (mut one, mut other) = (open(), open());
    let (mut live, _) = one.live::<Work>(&session, SnapshotPolicy::Events(1)).unwrap();
    one.record(&mut live, id("1"), &note("old"), NOW).unwrap();
    other.delete(&session).unwrap();
    other.append(&session, Expected::Last(0), event("1", &note("new")), NOW).unwrap();
    let error = one.record(&mut live, id("2"), &note("more"), NOW).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let loaded = other.load::<Work>(&session).unwrap();
    assert_eq!(loaded.state, state_of(&[note("new")]));
}

/// A journal in memory with ten notes and a snapshot after the sixth.
fn ten_notes() -> (Memory, Journal, SessionName) {
    let (memory, session) = (Memory::new(), name("a"));
    let mut journal = Journal::in_memory(&memory, JournalOptions::default());
    for n in 0..10 {
        let new = event(n, &note(&n.to_string()));
        journal.append(&session, Expected::Any, new, NOW).unwrap();
    }
    let six: Vec<Step> = (0..6).map(|n| note(&n.to_string())).collect();
    journal.write_snapshot(&session, &state_of(&six), 6, NOW).unwrap();
    (memory, journal, session)
}

#[test]
fn a_damaged_snapshot_is_passed_over_wherever_it_is_damaged() {
    let (memory, mut journal, session) = ten_notes();
    let sound = journal.load::<Work>(&session).unwrap();
    assert_eq!(sound.report.events, 4);
    let mut bytes = Vec::new();
    memory.change_snapshot(&session, |snapshot| bytes.clone_from(snapshot));
    let mut check = |changed: Vec<u8>| {
        memory.change_snapshot(&session, |snapshot| *snapshot = changed);
        let loaded = journal.load::<Work>(&session).unwrap();
        assert_eq!(loaded.state, sound.state);
        assert_eq!((loaded.report.snapshot, loaded.report.events), (None, 10));
        let reason = &loaded.report.skipped_snapshots[0].reason;
        assert!(matches!(reason, SkipReason::Damaged(_)), "{reason}");
    };
    for end in 0..bytes.len() {
        check(bytes[..end].to_vec());
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        check(changed);
    }
}

#[test]
fn a_snapshot_ahead_of_the_log_is_passed_over() {
    let (memory, mut journal, session) = ten_notes();
    memory.retain_events(&session, |sequence| sequence <= 4);
    let loaded = journal.load::<Work>(&session).unwrap();
    assert_eq!(loaded.state.applied, [1, 2, 3, 4]);
    let ahead = SkippedSnapshot { after_sequence: Some(6), reason: SkipReason::Ahead { last: 4 } };
    assert_eq!(loaded.report.skipped_snapshots, [ahead]);
}

#[test]
fn a_snapshot_of_a_log_that_lost_its_end_and_grew_again_is_passed_over() {
    let (memory, mut journal, session) = ten_notes();
    memory.retain_events(&session, |sequence| sequence <= 4);
    let mut journal_after = Journal::in_memory(&memory, JournalOptions::default());
    for n in 0..4 {
        let new = event(format!("other {n}"), &note("other"));
        let appended = journal_after.append(&session, Expected::Any, new, NOW).unwrap();
        assert_eq!(appended.sequence, 5 + n);
        // The log is as long as the snapshot, then longer.
        let loaded = journal.load::<Work>(&session).unwrap();
        assert_eq!(loaded.sequence, 5 + n);
        assert_eq!(loaded.state.notes.last().unwrap(), "other");
        let reason = &loaded.report.skipped_snapshots[0].reason;
        match n {
            0 => assert_eq!(*reason, SkipReason::Ahead { last: 5 }),
            1 => assert_eq!(*reason, SkipReason::AnotherEvent),
            _ => assert_eq!(*reason, SkipReason::Unconnected),
        }
    }
}

#[test]
fn a_gap_is_an_error_that_says_from_where_to_where() {
    let gaps = [(2..=2, "event 2 is missing"), (1..=3, "events 1 to 3 are missing")];
    for (missing, words) in gaps {
        let (memory, mut journal, session) = ten_notes();
        memory.retain_events(&session, |sequence| !missing.contains(&sequence));
        // The snapshot stands for them.
        let loaded = journal.load::<Work>(&session).unwrap();
        assert_eq!((loaded.sequence, loaded.report.events), (10, 4));
        let error = journal.load::<NewWork>(&session).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gap);
        assert!(error.message().starts_with(words), "{error}");
        assert_eq!(error.place().event, Some(*missing.start()));
        let error = journal.read(&session, 1, 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gap);
    }
    let (memory, mut journal, session) = ten_notes();
    memory.retain_events(&session, |sequence| !(7..=8).contains(&sequence));
    let error = journal.load::<Work>(&session).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Gap);
    assert!(error.message().starts_with("events 7 to 8 are missing"), "{error}");
}

#[test]
fn snapshots_come_as_the_policy_says() {
    let steps = [note("1234"), note("1"), Step::IterationEnd, note("1"), note("1")];
    let policies = [
        (SnapshotPolicy::IterationEnd, vec![3]),
        (SnapshotPolicy::Events(2), vec![2, 4]),
        (SnapshotPolicy::Events(0), vec![1, 2, 3, 4, 5]),
        // {"Note":"1234"} has 15 bytes, "IterationEnd" has 14, the others have 12.
        (SnapshotPolicy::Bytes(27), vec![2, 5]),
        (SnapshotPolicy::OnRequest, vec![]),
    ];
    for (policy, expected) in policies {
        let memory = Memory::new();
        let mut written = Vec::new();
        for (n, step) in steps.iter().enumerate() {
            // Each in a process of its own: what came since the last snapshot is known from the load.
            let mut journal = Journal::in_memory(&memory, JournalOptions::default());
            let (mut live, _) = journal.live::<Work>(&name("a"), policy).unwrap();
            let recorded = journal.record(&mut live, id(n), step, NOW).unwrap();
            written.extend(recorded.snapshot.map(|snapshot| snapshot.unwrap().after_sequence));
        }
        assert_eq!(written, expected, "{policy:?}");
    }
}

/// A log of ten steps with a snapshot of its first two, of which only some events are left.
fn with_gaps(steps: &[Step], snapshot: u64, left: impl Fn(u64) -> bool) -> (Journal, SessionName) {
    let (memory, session) = (Memory::new(), name("a"));
    let mut journal = Journal::in_memory(&memory, JournalOptions::default());
    for (n, step) in steps.iter().enumerate() {
        journal.append(&session, Expected::Any, event(n, step), Millis::new(0)).unwrap();
    }
    if snapshot > 0 {
        let state = state_of(&steps[..snapshot as usize]);
        journal.write_snapshot(&session, &state, snapshot, Millis::new(0)).unwrap();
    }
    memory.retain_events(&session, left);
    (Journal::in_memory(&memory, JournalOptions::default()), session)
}

#[test]
fn a_session_whose_events_are_gone_goes_on_where_their_loss_is_accepted() {
    let now = Millis::new(0);
    let steps: Vec<Step> = (0..10).map(|n| note(&n.to_string())).collect();
    for (snapshot, first_left) in [(2, 9), (0, 9), (2, 4), (0, 2)] {
        let (mut journal, session) = with_gaps(&steps, snapshot, |n| n >= first_left);
        let error = journal.load::<Work>(&session).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gap);
        assert!(
            error.message().contains("`accept_loss` loads the session without them"),
            "{error}"
        );
        let accepted = journal.accept_loss::<Work>(&session, now).unwrap();
        let kept: Vec<u64> = (1..=snapshot).chain(first_left..=10).collect();
        assert_eq!((accepted.sequence, &accepted.state.applied), (10, &kept));
        let lost = LostEvents { first: snapshot + 1, last: first_left - 1, refusal: None };
        assert_eq!(accepted.report.lost, [lost]);
        // From then on everybody loads it, and it goes on.
        let (mut live, report) = journal.live::<Work>(&session, SnapshotPolicy::OnRequest).unwrap();
        assert_eq!((live.state(), report.events), (&accepted.state, 0));
        let recorded = journal.record(&mut live, id("next"), &note("next"), now).unwrap();
        assert_eq!(recorded.appended.sequence, 11);
        let loaded = journal.load::<Work>(&session).unwrap();
        assert_eq!((&loaded.state, loaded.report.lost), (live.state(), vec![]));
    }
}

#[test]
fn an_event_that_the_state_refuses_without_those_before_it_is_lost_too() {
    let mut steps: Vec<Step> = (0..8).map(|n| Step::Task(n.to_string())).collect();
    steps.extend([Step::Done(7), Step::Done(1)]);
    let (mut journal, session) = with_gaps(&steps, 2, |n| n >= 8);
    let accepted = journal.accept_loss::<Work>(&session, Millis::new(0)).unwrap();
    assert_eq!((accepted.sequence, &accepted.state.applied), (10, &vec![1, 2, 8, 10]));
    let lost: Vec<String> = accepted.report.lost.iter().map(ToString::to_string).collect();
    let expected = [
        "events 3 to 7 are lost: they have expired, or been removed",
        "event 9 is lost: without those before it the state refuses it (no such task)",
    ];
    assert_eq!(lost, expected);
    assert_eq!(journal.load::<Work>(&session).unwrap().state, accepted.state);
}

#[test]
fn accepting_a_loss_where_nothing_is_missing_changes_nothing() {
    let steps: Vec<Step> = (0..10).map(|n| note(&n.to_string())).collect();
    let (mut journal, session) = with_gaps(&steps, 0, |_| true);
    let accepted = journal.accept_loss::<Work>(&session, Millis::new(0)).unwrap();
    assert_eq!((accepted.state, accepted.report.lost), (state_of(&steps), vec![]));
    assert_eq!(journal.read_snapshot::<Work>(&session).unwrap(), None);
}

#[test]
fn the_status_of_a_session_says_what_is_wrong_with_its_snapshot() {
    let (memory, session, now) = (Memory::new(), name("a"), Millis::new(0));
    let mut journal = Journal::in_memory(&memory, JournalOptions::default());
    let wrong = |journal: &mut Journal| {
        let passed = journal.status(&session).unwrap().skipped_snapshot;
        let of_load = journal.load::<Work>(&session).map(|loaded| loaded.report.skipped_snapshots);
        // A load says the same.
        assert_eq!(of_load.unwrap_or_default().first(), passed.as_ref());
        passed.map(|passed| passed.reason)
    };
    for n in 0..6 {
        journal.append(&session, Expected::Any, event(n, &note("a")), now).unwrap();
    }
    assert_eq!(wrong(&mut journal), None);
    let state = state_of(&vec![note("a"); 4]);
    journal.write_snapshot(&session, &state, 4, now).unwrap();
    assert_eq!(wrong(&mut journal), None);
    memory.retain_events(&session, |n| n <= 3);
    assert_eq!(wrong(&mut journal), Some(SkipReason::Ahead { last: 3 }));
    let mut journal = Journal::in_memory(&memory, JournalOptions::default());
    for n in 10..15 {
        journal.append(&session, Expected::Any, event(n, &note("a")), now).unwrap();
    }
    assert_eq!(wrong(&mut journal), Some(SkipReason::AnotherEvent));
    memory.change_snapshot(&session, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let reason = wrong(&mut journal).unwrap();
    assert!(matches!(reason, SkipReason::Damaged(_)), "{reason}");
}
