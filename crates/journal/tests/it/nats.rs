//! Journals on NATS: the specification's tests, one state on all three backends, snapshots that
//! cannot be used.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, unused_mut)]

use crate::support::journal_spec;
use crate::support::journal_work;
use crate::support::sharing::{client_of, options_of};
use crate::support::waiting::until;
use afterimage_testkit::nats_server;

use std::time::Duration;

use afterimage_journal::{
    AppendReceipt, ErrorKind, Expected, Journal, JournalOptions, Memory, NatsJournal, NewEvent,
    Replay, SessionName, SessionStatus, SkipReason, SkippedSnapshot, Snapshot, SnapshotPolicy,
};
use afterimage_json::Millis;
use afterimage_log::Holder;
use async_nats::jetstream;
use futures_util::StreamExt;
use journal_spec::journal_spec;
use journal_work::{Move, NewWork, Notes, Step, Work, event, id, moves, name, note, state_of};
use nats_server::Server;
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};

macro_rules! run {
    ($body:block) => {
        if nats_server::program().is_some() {
            let runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async move { $body })
        }
    };
}

struct Stage(Server);

impl Stage {
    #[allow(clippy::unused_async, reason = "as the stages of other journals are called")]
    async fn start() -> Self {
        Self(Server::shared())
    }

    /// With a server that it may stop.
    fn alone() -> Self {
        Self(Server::start())
    }

    async fn open(&self, options: JournalOptions) -> NatsJournal {
        NatsJournal::connect(options_of(&self.0).with(options)).await.unwrap()
    }

    async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(client_of(&self.0).await)
    }
}

journal_spec!(Stage, run, [.await]);

const NOW: Millis = Millis::new(0);

#[test]
fn same_state_on_every_journal_with_restarts_of_everything() {
    run!({
        let mut runner = TestRunner::default();
        let strategy = moves();
        let mut stage = Stage::alone();
        for case in 0..12 {
            let made = strategy.new_tree(&mut runner).unwrap().current();
            let session = name(&format!("case {case}"));
            let scratch = tempfile::tempdir().unwrap();
            let memory = Memory::new();
            let options = || JournalOptions::default().with_known_ids(3).keeping(2);
            let directory = || Journal::open(scratch.path(), &Holder::new("test"), options());
            let mut in_memory = Journal::in_memory(&memory, options());
            let mut in_directory = directory().unwrap();
            let mut on_nats = stage.open(options()).await;
            let mut steps: Vec<Step> = Vec::new();
            for one in made {
                let last = steps.len() as u64;
                match one {
                    Move::Step(step) => {
                        let expected = Expected::Last(last);
                        let new = || event(last, &step);
                        in_memory.append(&session, expected, new(), NOW).unwrap();
                        in_directory.append(&session, expected, new(), NOW).unwrap();
                        on_nats.append(&session, expected, new(), NOW).await.unwrap();
                        steps.push(step);
                    }
                    Move::Again if last > 0 => {
                        let new = || event(last - 1, &steps[last as usize - 1]);
                        let expected = AppendReceipt { sequence: last, was_there: true };
                        let any = Expected::Any;
                        let of_memory = in_memory.append(&session, any, new(), NOW).unwrap();
                        let of_directory = in_directory.append(&session, any, new(), NOW).unwrap();
                        let of_nats = on_nats.append(&session, any, new(), NOW).await.unwrap();
                        assert_eq!([of_memory, of_directory, of_nats], [expected; 3]);
                    }
                    Move::Snapshot(share) if steps.len() * share >= 1_000 => {
                        let after = steps.len() * share / 1_000;
                        let (state, after) = (state_of(&steps[..after]), after as u64);
                        in_memory.write_snapshot(&session, &state, after, NOW).unwrap();
                        in_directory.write_snapshot(&session, &state, after, NOW).unwrap();
                        on_nats.write_snapshot(&session, &state, after, NOW).await.unwrap();
                    }
                    Move::Remove => {
                        in_memory.delete(&session).unwrap();
                        in_directory.delete(&session).unwrap();
                        on_nats.delete(&session).await.unwrap();
                        steps.clear();
                    }
                    Move::Restart => {
                        in_memory = Journal::in_memory(&memory, options());
                        drop(in_directory);
                        in_directory = directory().unwrap();
                        stage.0.restart();
                        on_nats = stage.open(options()).await;
                    }
                    Move::Again | Move::Snapshot(_) => {}
                }
                let of_memory = in_memory.load::<Work>(&session).unwrap();
                let of_directory = in_directory.load::<Work>(&session).unwrap();
                let of_nats = on_nats.load::<Work>(&session).await.unwrap();
                assert_eq!(of_memory.state, state_of(&steps));
                assert_eq!(of_directory.state, of_memory.state);
                assert_eq!(of_nats.state, of_memory.state);
                assert_eq!(of_nats.sequence, steps.len() as u64);
                let events = [&of_memory, &of_directory, &of_nats].map(|l| l.report.events);
                assert_eq!(events, [events[0]; 3]);
            }
        }
    });
}

/// Ten notes, and a snapshot after the sixth.
async fn ten_notes(journal: &NatsJournal, session: &SessionName) {
    let steps: Vec<Step> = (0..10).map(|n| note(&n.to_string())).collect();
    for (n, step) in steps.iter().enumerate() {
        journal.append(session, Expected::Any, event(n, step), NOW).await.unwrap();
    }
    journal.write_snapshot(session, &state_of(&steps[..6]), 6, NOW).await.unwrap();
}

#[test]
fn a_damaged_or_cut_snapshot_is_passed_over() {
    run!({
        let stage = Stage::start().await;
        let journal = stage.open(JournalOptions::default()).await;
        let session = name("a");
        ten_notes(&journal, &session).await;
        let bucket = stage.jetstream().await.get_key_value("afterimage_snapshots").await.unwrap();
        let sound = bucket.get("a").await.unwrap().unwrap();
        let expected = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(expected.report.events, 4);
        let cuts = (0..sound.len()).step_by(7).map(|end| sound[..end].to_vec());
        let flips = (0..sound.len()).step_by(7).map(|at| {
            let mut bytes = sound.to_vec();
            bytes[at] ^= 4;
            bytes
        });
        for damaged in cuts.chain(flips) {
            bucket.put("a", damaged.into()).await.unwrap();
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!(loaded.state, expected.state);
            assert_eq!((loaded.report.snapshot, loaded.report.events), (None, 10));
            let reason = &loaded.report.skipped_snapshots[0].reason;
            assert!(matches!(reason, SkipReason::Damaged(_)), "{reason}");
        }
        let error = journal.read_snapshot::<Work>(&session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
    });
}

#[test]
fn a_snapshot_ahead_of_the_log_is_passed_over_and_so_is_one_of_a_log_that_grew_again() {
    run!({
        let stage = Stage::start().await;
        let journal = stage.open(JournalOptions::default()).await;
        let session = name("a");
        ten_notes(&journal, &session).await;
        let stream = stage.jetstream().await.get_stream("afterimage_events").await.unwrap();
        for position in 5..=10 {
            stream.delete_message(position).await.unwrap();
        }
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.state.applied, [1, 2, 3, 4]);
        let ahead =
            SkippedSnapshot { after_sequence: Some(6), reason: SkipReason::Ahead { last: 4 } };
        assert_eq!(loaded.report.skipped_snapshots, [ahead]);
        // This writer still takes event 10 for the newest, and is told otherwise.
        for n in 5..9_u64 {
            let new = event(format!("other {n}"), &note("other"));
            let appended = journal.append(&session, Expected::Any, new, NOW).await.unwrap();
            assert_eq!(appended.sequence, n);
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!(loaded.sequence, n);
            assert_eq!(loaded.report.snapshot, None);
        }
    });
}

#[test]
fn events_that_are_missing_are_an_error_and_a_snapshot_may_stand_for_them() {
    run!({
        let stage = Stage::start().await;
        let journal = stage.open(JournalOptions::default()).await;
        let session = name("a");
        ten_notes(&journal, &session).await;
        let stream = stage.jetstream().await.get_stream("afterimage_events").await.unwrap();
        stream.purge().sequence(5).await.unwrap();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.sequence, loaded.report.events), (10, 4));
        let error = journal.load::<NewWork>(&session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gap);
        assert!(error.message().starts_with("events 1 to 4 are missing"), "{error}");
        // The event of the snapshot has gone as well.
        stream.purge().sequence(7).await.unwrap();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.sequence, loaded.report.events), (10, 4));
        stream.purge().sequence(9).await.unwrap();
        let error = journal.load::<Work>(&session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Gap);
        assert!(error.message().starts_with("events 1 to 8 are missing"), "{error}");
    });
}

#[test]
fn a_session_whose_events_have_all_expired_goes_on_from_its_snapshot() {
    run!({
        let stage = Stage::start().await;
        let options = options_of(&stage.0).expiring(Duration::from_secs(2));
        let journal = NatsJournal::connect(options.clone()).await.unwrap();
        assert!(journal.warnings().iter().any(|warning| warning.contains("expire")));
        let session = name("a");
        let steps = [note("one"), note("two")];
        for (n, step) in steps.iter().enumerate() {
            journal.append(&session, Expected::Any, event(n, step), NOW).await.unwrap();
        }
        journal.write_snapshot(&session, &state_of(&steps), 2, NOW).await.unwrap();
        until("events expire", || async { journal.sessions().await.unwrap().is_empty() }).await;
        for journal in [journal, NatsJournal::connect(options).await.unwrap()] {
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!((loaded.state, loaded.sequence), (state_of(&steps), 2));
        }
        let journal = NatsJournal::connect(options_of(&stage.0)).await.unwrap();
        let new = event("three", &note("three"));
        let appended = journal.append(&session, Expected::Last(2), new, NOW).await.unwrap();
        assert_eq!(appended.sequence, 3);
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.state.notes, ["one", "two", "three"]);
    });
}

#[test]
fn a_session_whose_events_expired_after_its_snapshot_goes_on_where_their_loss_is_accepted() {
    run!({
        let stage = Stage::start().await;
        let options = options_of(&stage.0).expiring(Duration::from_secs(2));
        let journal = NatsJournal::connect(options).await.unwrap();
        let session = name("a");
        let steps: Vec<Step> = (0..5).map(|n| note(&n.to_string())).collect();
        for (n, step) in steps.iter().enumerate() {
            journal.append(&session, Expected::Any, event(n, step), NOW).await.unwrap();
        }
        journal.write_snapshot(&session, &state_of(&steps[..2]), 2, NOW).await.unwrap();
        until("events expire", || async { journal.sessions().await.unwrap().is_empty() }).await;
        for is_other_there in [false, true] {
            if is_other_there {
                journal.append(&name("b"), Expected::Any, event(0, &steps[0]), NOW).await.unwrap();
                journal.delete(&name("a")).await.unwrap();
                for (n, step) in steps.iter().enumerate() {
                    journal.append(&session, Expected::Any, event(n, step), NOW).await.unwrap();
                }
                journal.write_snapshot(&session, &state_of(&steps[..2]), 2, NOW).await.unwrap();
                let stream = stage.jetstream().await.get_stream("afterimage_events").await.unwrap();
                stream.purge().filter("afterimage_events.a.*").await.unwrap();
            }
            let error = journal.load::<Work>(&session).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Gap);
            assert!(error.message().starts_with("events 3 to 5 are missing"), "{error}");
            let accepted = journal.accept_loss::<Work>(&session, NOW).await.unwrap();
            assert_eq!((accepted.sequence, accepted.state), (5, state_of(&steps[..2])));
            assert_eq!(accepted.report.lost.len(), 1);
            let policy = SnapshotPolicy::OnRequest;
            let (mut live, _) = journal.live::<Work>(&session, policy).await.unwrap();
            let recorded = journal.record(&mut live, id("next"), &note("next"), NOW).await.unwrap();
            assert_eq!(recorded.appended.sequence, 6);
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!((&loaded.state, loaded.report.events), (live.state(), 1));
            assert_eq!(journal.status(&session).await.unwrap().skipped_snapshot, None);
        }
    });
}

/// Whether other sessions have older messages or not.
#[test]
fn a_session_whose_events_were_all_purged_goes_on_from_its_snapshot() {
    run!({
        let stage = Stage::start().await;
        let journal = stage.open(JournalOptions::default()).await;
        let first = event("first", &note("first"));
        journal.append(&name("other"), Expected::Any, first, NOW).await.unwrap();
        let session = name("a");
        ten_notes(&journal, &session).await;
        let stream = stage.jetstream().await.get_stream("afterimage_events").await.unwrap();
        // What the snapshot stands for, and then the rest.
        stream.purge().filter("afterimage_events.a.*").sequence(8).await.unwrap();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.sequence, loaded.report.events), (10, 4));
        assert_eq!(loaded.report.skipped_snapshots, []);
        let error = journal.load::<NewWork>(&session).await.unwrap_err();
        assert!(error.message().starts_with("events 1 to 6 are missing"), "{error}");
        stream.purge().filter("afterimage_events.a.*").await.unwrap();
        for journal in [&journal, &stage.open(JournalOptions::default()).await] {
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!((loaded.sequence, loaded.report.skipped_snapshots), (6, vec![]));
            assert_eq!(journal.status(&session).await.unwrap().last_sequence, 6);
        }
        let new = event("new", &note("new"));
        let appended = journal.append(&session, Expected::Any, new, NOW).await.unwrap();
        assert_eq!(appended.sequence, 7);
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.sequence, loaded.report.events), (7, 1));
    });
}

#[test]
fn without_its_bucket_a_session_is_replayed_and_appended_to() {
    run!({
        for of_bucket in ["KV_afterimage_snapshots", "OBJ_afterimage_snapshots"] {
            let stage = Stage::start().await;
            let journal = stage.open(JournalOptions::default()).await;
            let session = name("a");
            ten_notes(&journal, &session).await;
            if of_bucket.starts_with("OBJ") {
                let state = Notes(vec![noise(3_000_000)]);
                journal.write_snapshot(&session, &state, 7, NOW).await.unwrap();
            }
            stage.jetstream().await.delete_stream(of_bucket).await.unwrap();
            let begun = std::time::Instant::now();
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!((loaded.sequence, loaded.report.events), (10, 10), "{of_bucket}");
            let why = loaded.report.skipped_snapshots[0].to_string();
            assert!(why.contains("\"afterimage_snapshots\" is not there"), "{why}");
            for session in [&session, &name("new")] {
                let new = event("new", &note("new"));
                journal.append(session, Expected::Any, new, NOW).await.unwrap();
            }
            if of_bucket.starts_with("KV") {
                let state = state_of(&[]);
                let error = journal.write_snapshot(&session, &state, 7, NOW).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io);
                assert!(error.message().contains("reconnect to create it"), "{error}");
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
            let journal = stage.open(JournalOptions::default()).await;
            let state = Notes(vec![noise(3_000_000)]);
            journal.write_snapshot(&session, &state, 8, NOW).await.unwrap();
            assert_eq!(journal.load::<Notes>(&session).await.unwrap().report.events, 3);
        }
    });
}

#[test]
fn a_server_of_small_messages_takes_large_snapshots_in_small_parts() {
    run!({
        for payload in [4_096, 65_536] {
            let more = format!("max_payload: {payload}");
            let stage = Stage(Server::with("", "sync_interval: always", &more));
            let journal = stage.open(JournalOptions::default()).await;
            let session = name("a");
            ten_notes(&journal, &session).await;
            let state = Notes(vec![noise(300_000)]);
            journal.write_snapshot(&session, &state, 10, NOW).await.unwrap();
            let loaded = journal.load::<Notes>(&session).await.unwrap();
            assert!(loaded.state == state);
            assert_eq!(loaded.report.events, 0);
        }
    });
}

/// Ten notes that have all expired, with a snapshot after the sixth.
async fn ten_that_expired(stage: &Stage) -> NatsJournal {
    let options = options_of(&stage.0).expiring(Duration::from_secs(2));
    let journal = NatsJournal::connect(options).await.unwrap();
    ten_notes(&journal, &name("a")).await;
    until("events expire", || async { journal.sessions().await.unwrap().is_empty() }).await;
    journal
}

#[test]
fn events_that_expired_after_the_newest_snapshot_are_missed() {
    run!({
        let stage = Stage::start().await;
        let old = Box::pin(ten_that_expired(&stage)).await;
        let new = stage.open(JournalOptions::default()).await;
        let session = name("a");
        for journal in [&old, &new] {
            let error = journal.load::<Work>(&session).await.unwrap_err();
            assert_eq!((error.kind(), error.place().event), (ErrorKind::Gap, Some(7)));
            assert!(error.message().starts_with("events 7 to 10 are missing"), "{error}");
            let error = journal.read(&session, 3, 100).await.unwrap_err();
            assert!(error.message().starts_with("events 3 to 10 are missing"), "{error}");
            assert_eq!(journal.read(&session, 11, 100).await.unwrap(), []);
            let error = journal.load::<NewWork>(&session).await.unwrap_err();
            assert!(error.message().starts_with("events 1 to 10 are missing"), "{error}");
        }
        // No sequence is given twice.
        let conflict = new.append(&session, Expected::Last(6), event("x", &note("x")), NOW).await;
        assert_eq!(conflict.unwrap_err().place().event, Some(10));
        for (journal, n) in [(&new, 10), (&old, 11)] {
            let next = event(n, &note(&n.to_string()));
            let appended = journal.append(&session, Expected::Any, next, NOW).await.unwrap();
            assert_eq!(appended.sequence, n + 1);
        }
        let error = new.load::<Work>(&session).await.unwrap_err();
        assert!(error.message().starts_with("events 1 to 10 are missing"), "{error}");
        // Who was there may go on, and may leave a snapshot for the others.
        let whole: Vec<Step> = (0..12).map(|n| note(&n.to_string())).collect();
        new.write_snapshot(&session, &state_of(&whole), 12, NOW).await.unwrap();
        assert_eq!(old.load::<Work>(&session).await.unwrap().state, state_of(&whole));
        // What was removed begins anew, wherever it had been.
        new.delete(&session).await.unwrap();
        for journal in [&old, &new] {
            assert_eq!(journal.load::<Work>(&session).await.unwrap().sequence, 0);
        }
        let first = old.append(&session, Expected::Last(0), event("y", &note("y")), NOW).await;
        assert_eq!(first.unwrap().sequence, 1);
    });
}

#[test]
fn a_stream_that_was_created_again_is_noticed() {
    run!({
        let stage = Stage::start().await;
        let journal = stage.open(JournalOptions::default()).await;
        let session = name("a");
        ten_notes(&journal, &session).await;
        let (mut live, _) =
            journal.live::<Work>(&session, SnapshotPolicy::OnRequest).await.unwrap();
        stage.jetstream().await.delete_stream("afterimage_events").await.unwrap();
        let old_steps: Vec<Step> = (0..10).map(|n| note(&n.to_string())).collect();
        let old = journal;
        let journal = stage.open(JournalOptions::default()).await;
        // The same ids at the same places: nothing but the stream's life tells them apart.
        let steps: Vec<Step> = (0..10).map(|n| note(&format!("new {n}"))).collect();
        for (n, step) in steps.iter().enumerate() {
            journal.append(&session, Expected::Any, event(n, step), NOW).await.unwrap();
        }
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.state, state_of(&steps));
        let passed = SkippedSnapshot { after_sequence: Some(6), reason: SkipReason::AnotherLog };
        assert_eq!(loaded.report.skipped_snapshots, [passed]);
        // And by what was there before: a state of the old stream is not caught up.
        let error = old.catch_up(&mut live).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("load it anew"), "{error}");
        assert_eq!(live.state(), &state_of(&old_steps));
        let loaded = old.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.state, state_of(&steps));
    });
}

/// Characters that compress little.
fn noise(length: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 90) as u8)
    };
    (0..length).map(|_| next()).filter(|c| *c != '"' && *c != '\\').collect()
}

#[test]
fn a_snapshot_that_the_bucket_cannot_hold_is_in_the_object_store() {
    run!({
        let stage = Stage::start().await;
        let journal = stage.open(JournalOptions::default()).await;
        let session = name("a");
        ten_notes(&journal, &session).await;
        let context = stage.jetstream().await;
        let objects = context.get_object_store("afterimage_snapshots").await.unwrap();
        let count = || async { objects.list().await.unwrap().count().await };
        let mut state = state_of(&(0..10).map(|n| note(&n.to_string())).collect::<Vec<_>>());
        let mut write = async |text: &str| {
            state.notes = vec![text.to_owned()];
            let info = journal.write_snapshot(&session, &state, 10, NOW).await.unwrap();
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!(loaded.state, state);
            assert_eq!(loaded.report.skipped_snapshots, []);
            assert_eq!(loaded.report.snapshot, Some(info.clone()));
            info.stored_bytes
        };
        // Which length takes exactly 1,048,576 bytes is found by trying it in memory first.
        let limit = 1_048_576;
        let memory = Memory::new();
        let mut in_memory = Journal::in_memory(&memory, JournalOptions::default());
        for n in 0..10 {
            in_memory.append(&session, Expected::Any, event(n, &note("x")), NOW).unwrap();
        }
        let mut of = |text: &str| {
            let state = Work { notes: vec![text.to_owned()], ..state_of_ten() };
            in_memory.write_snapshot(&session, &state, 10, NOW).unwrap().stored_bytes
        };
        let all = noise(1_400_000);
        let longer = write(&all[..1_000]).await - of(&all[..1_000]);
        let (mut low, mut high) = (0, all.len());
        while high - low > 64 {
            let middle = usize::midpoint(low, high);
            if of(&all[..middle]) + longer < limit { low = middle } else { high = middle }
        }
        let exact = (low.saturating_sub(200)..high + 200)
            .find(|length| of(&all[..*length]) + longer == limit)
            .expect("a text of that size");
        let more = (exact..exact + 400)
            .find(|length| of(&all[..*length]) + longer == limit + 1)
            .expect("a text of one byte more");
        // The limit is that of a message, headers included.
        assert!(write(&all[..exact - 300]).await > limit - 400);
        assert_eq!(count().await, 0);
        assert_eq!(write(&all[..exact]).await, limit);
        assert_eq!(count().await, 1);
        assert_eq!(write(&all[..more]).await, limit + 1);
        assert_eq!(count().await, 2);
        assert!(write(&noise(27_000_000)).await > 20_000_000);
        assert_eq!(count().await, 2, "that in use, and the one before it");
        // Damage to the object, and its loss.
        let mut listed = objects.list().await.unwrap().map(Result::unwrap);
        let mut object = listed.next().await.unwrap();
        if let Some(other) = listed.next().await.filter(|other| other.size > object.size) {
            object = other;
        }
        objects.put(object.name.as_str(), &mut b"x".as_slice()).await.unwrap();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.report.events, 10);
        assert!(matches!(loaded.report.skipped_snapshots[0].reason, SkipReason::Damaged(_)));
        objects.delete(&object.name).await.unwrap();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.report.events, 10);
        let reason = loaded.report.skipped_snapshots[0].reason.to_string();
        assert!(reason.contains("is not there"), "{reason}");
        // A small one again, and none.
        write("small").await;
        write("smaller").await;
        assert_eq!(count().await, 0);
        write(&all[..more]).await;
        journal.delete(&session).await.unwrap();
        assert_eq!(count().await, 0);
        assert_eq!(journal.read_snapshot::<Work>(&session).await.unwrap(), None);
    });
}

fn state_of_ten() -> Work {
    state_of(&(0..10).map(|n| note(&n.to_string())).collect::<Vec<_>>())
}

#[test]
fn a_stream_that_promises_less_is_warned_of_and_one_for_something_else_is_refused() {
    run!({
        let stage = Stage::start().await;
        let context = stage.jetstream().await;
        let stream = |config: jetstream::stream::Config| context.get_or_create_stream(config);
        let base = jetstream::stream::Config {
            name: "weak_events".to_owned(),
            subjects: vec!["weak_events.*.*".to_owned()],
            storage: jetstream::stream::StorageType::Memory,
            max_messages: 1_000,
            allow_direct: true,
            ..Default::default()
        };
        stream(base).await.unwrap();
        let journal = NatsJournal::connect(options_of(&stage.0).named("weak"));
        let warnings = journal.await.unwrap().warnings().join("\n");
        for part in ["three replicas", "sync_interval", "memory", "drops its oldest"] {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
        let other = jetstream::stream::Config {
            name: "other_events".to_owned(),
            subjects: vec!["orders.>".to_owned()],
            ..Default::default()
        };
        stream(other).await.unwrap();
        let refused = NatsJournal::connect(options_of(&stage.0).named("other")).await;
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("orders.>"), "{error}");
        let refused = NatsJournal::connect(options_of(&stage.0).named("a.b")).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shape);
    });
}
