//! What every journal does, written once: `journal_spec!(Stage, run, [])` for journals that block,
//! `[.await]` for those that do not.
//!
//! A `Stage` is what outlasts a process: `start()` prepares one, `open(options)` is a new process.

macro_rules! journal_spec {
    ($stage:ty, $run:ident, [$($await:tt)*]) => {
        mod specification {
            use super::*;

            const NOW: Millis = Millis::new(1_737_500_000_000);

            /// Ten steps, with an iteration that ends at the seventh.
            fn ten() -> Vec<Step> {
                let mut steps: Vec<Step> = (0..10).map(|n| Step::Task(format!("task {n}"))).collect();
                steps[3] = Step::Done(1);
                steps[6] = Step::IterationEnd;
                steps
            }

            macro_rules! append_all {
                ($journal:expr, $session:expr, $steps:expr, $from:expr) => {
                    for (n, step) in $steps.iter().enumerate().skip($from) {
                        let expected = Expected::Last(n as u64);
                        let new = event(format!("e{n}"), step);
                        let appended =
                            $journal.append($session, expected, new, NOW)$($await)*.unwrap();
                        assert_eq!(appended, AppendReceipt { sequence: n as u64 + 1, was_there: false });
                    }
                };
            }

            #[test]
            fn write_snapshot_stores_the_state() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    let state = state_of(&ten());
                    let info = journal.write_snapshot(&session, &state, 10, NOW)$($await)*.unwrap();
                    assert_eq!((info.after_sequence, info.created_at, info.schema), (10, NOW, 1));
                    let status = journal.status(&session)$($await)*.unwrap();
                    let expected =
                        SessionStatus { last_sequence: 10, snapshot: Some(info), skipped_snapshot: None };
                    assert_eq!(status, expected);
                });
            }

            #[test]
            fn read_snapshot_gives_it_back() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    let state = state_of(&ten()[..4]);
                    journal.write_snapshot(&session, &state, 4, NOW)$($await)*.unwrap();
                    let snapshot = journal.read_snapshot::<Work>(&session)$($await)*.unwrap();
                    let expected = Snapshot { state, after_sequence: 4, created_at: NOW };
                    assert_eq!(snapshot, Some(expected));
                });
            }

            #[test]
            fn no_snapshot_yet_is_none_and_no_error() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    assert_eq!(journal.read_snapshot::<Work>(&session)$($await)*.unwrap(), None);
                    append_all!(journal, &session, ten(), 0);
                    assert_eq!(journal.read_snapshot::<Work>(&session)$($await)*.unwrap(), None);
                });
            }

            #[test]
            fn load_uses_the_snapshot() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    // A state that no event leads to shows where it came from.
                    let mut state = state_of(&ten());
                    state.notes.push("from the snapshot".to_owned());
                    journal.write_snapshot(&session, &state, 10, NOW)$($await)*.unwrap();
                    let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                    assert_eq!((loaded.state, loaded.sequence), (state, 10));
                    assert_eq!(loaded.report.events, 0);
                    assert_eq!(loaded.report.snapshot.unwrap().after_sequence, 10);
                });
            }

            #[test]
            fn load_replays_only_what_came_after_the_snapshot() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    let mut state = state_of(&ten()[..7]);
                    state.notes.push("from the snapshot".to_owned());
                    journal.write_snapshot(&session, &state, 7, NOW)$($await)*.unwrap();
                    let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                    for (sequence, step) in (1..).zip(&ten()).skip(7) {
                        state.apply(sequence, step).unwrap();
                    }
                    assert_eq!((loaded.state, loaded.sequence), (state, 10));
                    assert_eq!(loaded.report.events, 3);
                    assert_eq!(loaded.report.skipped_snapshots, []);
                });
            }

            #[test]
            fn load_falls_back_to_all_events_without_a_snapshot() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                    assert_eq!((loaded.state, loaded.sequence), (Work::default(), 0));
                    append_all!(journal, &session, ten(), 0);
                    let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                    assert_eq!((loaded.state, loaded.sequence), (state_of(&ten()), 10));
                    assert_eq!((loaded.report.snapshot, loaded.report.events), (None, 10));
                });
            }

            #[test]
            fn a_snapshot_survives_a_restart() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let session = name("a");
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let (mut live, _) =
                        journal.live::<Work>(&session, SnapshotPolicy::IterationEnd)$($await)*.unwrap();
                    for (n, step) in ten().iter().enumerate() {
                        let recorded =
                            journal.record(&mut live, id(n), step, NOW)$($await)*.unwrap();
                        let was_written = recorded.snapshot.map(|written| written.unwrap().after_sequence);
                        assert_eq!(was_written, (n == 6).then_some(7));
                    }
                    drop(journal);
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let (again, report) =
                        journal.live::<Work>(&session, SnapshotPolicy::IterationEnd)$($await)*.unwrap();
                    assert_eq!((again.state(), again.sequence()), (live.state(), 10));
                    assert_eq!((report.snapshot.unwrap().after_sequence, report.events), (7, 3));
                });
            }

            #[test]
            fn of_two_writers_one_gets_a_conflict_with_the_actual_sequence() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    for expected in [0, 3, 9, 11, u64::MAX] {
                        let late = event("late", &note("late"));
                        let error = journal.append(&session, Expected::Last(expected), late, NOW)$($await)*;
                        let error = error.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                        assert_eq!(error.place().event, Some(10));
                        assert_eq!(error.place().session.as_deref(), Some("a"));
                    }
                    let late = event("late", &note("late"));
                    let appended = journal.append(&session, Expected::Any, late, NOW)$($await)*.unwrap();
                    assert_eq!(appended.sequence, 11);
                });
            }

            #[test]
            fn an_event_id_is_appended_once_after_a_restart_too() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default().with_known_ids(4))$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    for restart in [false, true] {
                        if restart {
                            drop(journal);
                            journal = stage.open(JournalOptions::default().with_known_ids(4))$($await)*;
                        }
                        for n in 6..10_u64 {
                            for expected in [Expected::Any, Expected::Last(n), Expected::Last(0)] {
                                let again = event(format!("e{n}"), &note("another"));
                                let appended =
                                    journal.append(&session, expected, again, NOW)$($await)*.unwrap();
                                assert_eq!(appended, AppendReceipt { sequence: n + 1, was_there: true });
                            }
                        }
                    }
                    // What is older than the newest four is not known any more.
                    let again = event("e5", &note("another"));
                    let appended = journal.append(&session, Expected::Any, again, NOW)$($await)*.unwrap();
                    assert_eq!(appended, AppendReceipt { sequence: 11, was_there: false });
                });
            }

            /// 383 steps, of which the process that takes over makes the oldest first.
            #[test]
            fn a_writer_that_was_killed_walks_all_its_steps_again_and_doubles_none() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let session = name("a");
                    let steps: Vec<Step> = (0..383).map(|n| note(&n.to_string())).collect();
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    append_all!(journal, &session, steps, 0);
                    // With and without a state that is kept up.
                    for is_live in [false, true] {
                        drop(journal);
                        journal = stage.open(JournalOptions::default())$($await)*;
                        let policy = SnapshotPolicy::Events(100);
                        let (mut live, _) = journal.live::<Work>(&session, policy)$($await)*.unwrap();
                        for (n, step) in steps.iter().enumerate() {
                            let appended = if is_live {
                                let step_id = id(format!("e{n}"));
                                journal.record(&mut live, step_id, step, NOW)$($await)*.unwrap().appended
                            } else {
                                let again = event(format!("e{n}"), step);
                                journal.append(&session, Expected::Any, again, NOW)$($await)*.unwrap()
                            };
                            let there = AppendReceipt { sequence: n as u64 + 1, was_there: true };
                            assert_eq!(appended, there);
                        }
                        let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                        assert_eq!(loaded.state, state_of(&steps));
                    }
                    let next = event("e383", &note("next"));
                    let appended = journal.append(&session, Expected::Any, next, NOW)$($await)*.unwrap();
                    assert_eq!(appended, AppendReceipt { sequence: 384, was_there: false });
                });
            }

            /// More than are read for their ids each time, and than one part of them holds.
            #[test]
            fn ids_are_found_among_thousands_of_events_after_each_restart() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let session = name("a");
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let mut count = 0_u64;
                    for more in [600, 30, 1_600, 3, 0] {
                        for n in count..count + more {
                            let new = event(format!("e{n}"), &note("a"));
                            let appended = journal.append(&session, Expected::Last(n), new, NOW)$($await)*;
                            assert_eq!(appended.unwrap().sequence, n + 1);
                        }
                        count += more;
                        drop(journal);
                        journal = stage.open(JournalOptions::default())$($await)*;
                        for n in (0..count).step_by(97).chain([count - 1]) {
                            let again = event(format!("e{n}"), &note("a"));
                            let appended = journal.append(&session, Expected::Any, again, NOW)$($await)*;
                            let there = AppendReceipt { sequence: n + 1, was_there: true };
                            assert_eq!(appended.unwrap(), there);
                        }
                    }
                    // Begun anew it knows none of them.
                    journal.delete(&session)$($await)*.unwrap();
                    let first = event("e0", &note("a"));
                    let appended = journal.append(&session, Expected::Any, first, NOW)$($await)*.unwrap();
                    assert_eq!(appended, AppendReceipt { sequence: 1, was_there: false });
                });
            }

            /// Two states of one session, each with a step of its own under the same id.
            #[test]
            fn a_state_follows_the_event_that_is_stored_under_its_id() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, [note("first")], 0);
                    let policy = SnapshotPolicy::Events(1);
                    let (mut one, _) = journal.live::<Work>(&session, policy)$($await)*.unwrap();
                    let (mut other, _) = journal.live::<Work>(&session, policy)$($await)*.unwrap();
                    let step = id("step 2");
                    let mine = journal.record(&mut one, step.clone(), &note("mine"), NOW)$($await)*;
                    assert!(!mine.unwrap().appended.was_there);
                    let theirs = journal.record(&mut other, step, &note("theirs"), NOW)$($await)*;
                    let theirs = theirs.unwrap();
                    assert_eq!(theirs.appended, AppendReceipt { sequence: 2, was_there: true });
                    theirs.snapshot.unwrap().unwrap();
                    let expected = state_of(&[note("first"), note("mine")]);
                    assert_eq!(one.state(), &expected);
                    assert_eq!(other.state(), &expected);
                    assert_eq!(journal.load::<Work>(&session)$($await)*.unwrap().state, expected);
                    let next = journal.record(&mut other, id("step 3"), &note("next"), NOW)$($await)*;
                    assert_eq!(next.unwrap().appended.sequence, 3);
                });
            }

            /// The same ids and kinds in a session that was removed and begun again.
            #[test]
            fn a_state_of_a_session_that_was_removed_is_not_caught_up() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    for count in [2, 3, 5_u64] {
                        let before: Vec<Step> = (0..3).map(|n| note(&format!("old {n}"))).collect();
                        append_all!(journal, &session, before, 0);
                        let (mut live, _) =
                            journal.live::<Work>(&session, SnapshotPolicy::OnRequest)$($await)*.unwrap();
                        journal.delete(&session)$($await)*.unwrap();
                        for n in 0..count {
                            let step = note(&format!("new {n}"));
                            // Made later, as a clock says it.
                            let now = Millis::new(NOW.get() + 1);
                            let new = event(format!("e{n}"), &step);
                            journal.append(&session, Expected::Any, new, now)$($await)*.unwrap();
                        }
                        let error = journal.catch_up(&mut live)$($await)*.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{count}: {error}");
                        let error = journal.snapshot(&mut live, NOW)$($await)*.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{count}: {error}");
                        let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                        assert_eq!(loaded.sequence, count);
                        assert_eq!(loaded.report.snapshot, None);
                        let step = note("more");
                        let error = journal.record(&mut live, id("more"), &step, NOW)$($await)*.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{count}: {error}");
                        assert_eq!(live.state(), &state_of(&before));
                        journal.delete(&session)$($await)*.unwrap();
                    }
                });
            }

            #[test]
            fn events_are_read_from_any_sequence() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let (session, other) = (name("a"), name("b"));
                    // Two sessions in turn, so that positions in a common log lie apart.
                    for n in 0..20_u64 {
                        for session in [&session, &other] {
                            let new = event(format!("e{n}"), &note(&format!("{session} {n}")));
                            journal.append(session, Expected::Any, new, Millis::new(n as i64))$($await)*.unwrap();
                        }
                    }
                    for first in 0..23_u64 {
                        for most in [0, 1, 5, 100] {
                            let events = journal.read(&session, first, most)$($await)*.unwrap();
                            let start = first.max(1);
                            let count = (21_u64.saturating_sub(start)).min(most as u64);
                            assert_eq!(events.len() as u64, count, "{first} {most}");
                            for (sequence, event) in (start..).zip(&events) {
                                assert_eq!(event.sequence, sequence);
                                assert_eq!(event.id, id(format!("e{}", sequence - 1)));
                                assert_eq!(&*event.kind, "note");
                                assert_eq!(event.recorded_at, Millis::new(sequence as i64 - 1));
                                let step = note(&format!("a {}", sequence - 1));
                                assert_eq!(event.body, serde_json::to_vec(&step).unwrap());
                            }
                        }
                    }
                });
            }

            #[test]
            fn names_of_all_kinds_are_sessions_apart() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let long: String = "x".repeat(1_000);
                    let wide = format!("{}y", "🛰".repeat(999));
                    let names = [
                        "a.b", "a*", ">", " ", "ü", "..", "../x", &long, &wide, "Case", "case", "CASE",
                        "a.>", "*", "", "=2E=2E", "a\nb", "con", ".", "a/b\\c",
                    ];
                    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
                    for text in &names {
                        let mine = event("1", &note(text));
                        journal.append(&name(text), Expected::Last(0), mine, NOW)$($await)*.unwrap();
                        let state = Notes(vec![(*text).to_owned()]);
                        journal.write_snapshot(&name(text), &state, 1, NOW)$($await)*.unwrap();
                    }
                    drop(journal);
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    for text in &names {
                        let loaded = journal.load::<Notes>(&name(text))$($await)*.unwrap();
                        assert_eq!(loaded.state.0, [*text]);
                        assert!(loaded.report.snapshot.is_some());
                        let loaded = journal.load::<Work>(&name(text))$($await)*;
                        assert_eq!(loaded.unwrap().state.notes, [*text]);
                    }
                    let listed = journal.sessions()$($await)*.unwrap();
                    let mut expected: Vec<SessionName> = names.iter().map(|text| name(text)).collect();
                    expected.sort();
                    assert_eq!(listed, expected);
                    journal.delete(&name(">"))$($await)*.unwrap();
                    journal.delete(&name("never there"))$($await)*.unwrap();
                    expected.retain(|listed| listed.as_str() != ">");
                    assert_eq!(journal.sessions()$($await)*.unwrap(), expected);
                    assert_eq!(journal.load::<Notes>(&name(">"))$($await)*.unwrap().state, Notes::default());
                    assert_eq!(journal.load::<Notes>(&name("*"))$($await)*.unwrap().sequence, 1);
                });
            }

            #[test]
            fn a_session_that_was_removed_begins_anew() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    journal.write_snapshot(&session, &state_of(&ten()), 10, NOW)$($await)*.unwrap();
                    journal.delete(&session)$($await)*.unwrap();
                    assert_eq!(journal.read_snapshot::<Work>(&session)$($await)*.unwrap(), None);
                    let steps = [note("one"), note("two")];
                    append_all!(journal, &session, steps, 0);
                    let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                    assert_eq!(loaded.state, state_of(&steps));
                });
            }

            #[test]
            fn an_unknown_kind_is_named_or_skipped() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, [note("one")], 0);
                    let strange = NewEvent::new(id("s"), "task_moved", b"{}".as_slice()).unwrap();
                    journal.append(&session, Expected::Last(1), strange, NOW)$($await)*.unwrap();
                    journal.append(&session, Expected::Last(2), event("n", &note("two")), NOW)$($await)*.unwrap();
                    let error = journal.load::<Work>(&session)$($await)*.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::UnknownEvent);
                    assert!(error.message().contains("\"task_moved\""), "{error}");
                    assert_eq!(error.place().event, Some(2));
                    let loaded = journal.load::<Notes>(&session)$($await)*.unwrap();
                    assert_eq!(loaded.state.0, ["one", "two"]);
                    assert_eq!(loaded.report.skipped, [("task_moved".into(), 1)].into());
                });
            }

            #[test]
            fn what_the_state_refuses_is_not_appended() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let (mut live, _) =
                        journal.live::<Work>(&name("a"), SnapshotPolicy::Events(1))$($await)*.unwrap();
                    let error = journal.record(&mut live, id(1), &Step::Done(0), NOW)$($await)*.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Refused);
                    assert_eq!(journal.read(&name("a"), 1, 9)$($await)*.unwrap(), []);
                    let recorded =
                        journal.record(&mut live, id(1), &note("x"), NOW)$($await)*.unwrap();
                    assert_eq!(recorded.snapshot.unwrap().unwrap().after_sequence, 1);
                });
            }

            #[test]
            fn a_snapshot_of_another_schema_is_passed_over() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let options = JournalOptions::default().keeping(3);
                    let mut journal = stage.open(options)$($await)*;
                    let session = name("a");
                    append_all!(journal, &session, ten(), 0);
                    journal.write_snapshot(&session, &state_of(&ten()[..3]), 3, NOW)$($await)*.unwrap();
                    let new = NewWork(state_of(&ten()[..7]));
                    journal.write_snapshot(&session, &new, 7, NOW)$($await)*.unwrap();
                    // The old program, with the older snapshot; the new one, with the newer.
                    let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                    assert_eq!(loaded.state, state_of(&ten()));
                    let reason = SkipReason::Schema { expected: 1, found: 2 };
                    assert_eq!(
                        loaded.report.skipped_snapshots,
                        [SkippedSnapshot { after_sequence: Some(7), reason }]
                    );
                    assert_eq!(loaded.report.snapshot.unwrap().after_sequence, 3);
                    assert_eq!(loaded.report.events, 7);
                    let loaded = journal.load::<NewWork>(&session)$($await)*.unwrap();
                    assert_eq!(loaded.state.0, state_of(&ten()));
                    assert_eq!(loaded.report.events, 3);
                    let error = journal.read_snapshot::<Work>(&session)$($await)*.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Version);
                });
            }

            #[test]
            fn only_as_many_snapshots_are_kept_as_asked() {
                $run!({
                    for keep in [1_usize, 3] {
                        let stage = <$stage>::start()$($await)*;
                        let options = JournalOptions::default().keeping(keep);
                        let mut journal = stage.open(options)$($await)*;
                        let session = name("a");
                        append_all!(journal, &session, ten(), 0);
                        for n in 1..=5 {
                            let state = NewWork(state_of(&ten()[..n]));
                            journal.write_snapshot(&session, &state, n as u64, NOW)$($await)*.unwrap();
                        }
                        let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                        let passed: Vec<_> =
                            loaded.report.skipped_snapshots.iter().map(|passed| passed.after_sequence.unwrap()).collect();
                        assert_eq!(passed, (1..=5).rev().take(keep).collect::<Vec<_>>());
                    }
                });
            }

            #[test]
            fn a_snapshot_after_an_event_that_is_not_there_is_refused() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    let state = Work::default();
                    let written = journal.write_snapshot(&session, &state, 1, NOW)$($await)*;
                    assert_eq!(written.unwrap_err().kind(), ErrorKind::OutOfRange);
                    append_all!(journal, &session, ten(), 0);
                    for after in [0, 11] {
                        let written = journal.write_snapshot(&session, &state, after, NOW)$($await)*;
                        assert_eq!(written.unwrap_err().kind(), ErrorKind::OutOfRange);
                    }
                });
            }

            #[test]
            fn one_who_lags_catches_up() {
                $run!({
                    let stage = <$stage>::start()$($await)*;
                    let mut journal = stage.open(JournalOptions::default())$($await)*;
                    let session = name("a");
                    let (mut one, _) =
                        journal.live::<Work>(&session, SnapshotPolicy::OnRequest)$($await)*.unwrap();
                    let mut two = one.clone();
                    for n in 0..3 {
                        journal.record(&mut one, id(n), &note("one"), NOW)$($await)*.unwrap();
                    }
                    let recorded = journal.record(&mut two, id("t"), &note("two"), NOW)$($await)*;
                    let error = recorded.unwrap_err();
                    assert_eq!((error.kind(), error.place().event), (ErrorKind::Conflict, Some(3)));
                    assert_eq!(two.state(), &Work::default());
                    assert_eq!(journal.catch_up(&mut two)$($await)*.unwrap(), 3);
                    journal.record(&mut two, id("t"), &note("two"), NOW)$($await)*.unwrap();
                    assert_eq!(two.state().notes, ["one", "one", "one", "two"]);
                    let loaded = journal.load::<Work>(&session)$($await)*.unwrap();
                    assert_eq!(&loaded.state, two.state());
                });
            }
        }
    };
}
pub(crate) use journal_spec;
