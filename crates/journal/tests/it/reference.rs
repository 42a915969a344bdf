//! What the specification of state snapshots shows, each example through the API: its schema, its
//! loading, its iteration, its bucket, and its answers where something is missing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;
use crate::support::sharing::{client_of, options_of};
use afterimage_testkit::nats_server;

use std::time::Instant;

use afterimage_journal::{
    Expected, Journal, JournalOptions, LiveState, Memory, NatsJournal, SessionName, SkipReason,
    Snapshot, SnapshotPolicy,
};
use afterimage_json::Millis;
use afterimage_log::Holder;
use async_nats::jetstream;
use journal_work::{Step, Work, event, id, name, note, state_of};
use nats_server::Server;

macro_rules! run {
    ($body:block) => {
        if nats_server::program().is_some() {
            let runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async move { $body })
        }
    };
}

/// 2025-01-22, as in the specification's schema.
const CREATED: Millis = Millis::new(1_737_504_000_000);

fn steps(count: u64) -> Vec<Step> {
    (0..count).map(|n| note(&format!("note {n}"))).collect()
}

/// `Snapshot { State, AfterSequence, CreatedAt }`, with the schema's 12345.
#[test]
fn a_snapshot_is_a_state_a_sequence_and_a_moment() {
    let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
    let session = name("session");
    let steps = steps(12_345);
    for (n, step) in steps.iter().enumerate() {
        journal.append(&session, Expected::Any, event(n, step), CREATED).unwrap();
    }
    let state = state_of(&steps);
    journal.write_snapshot(&session, &state, 12_345, CREATED).unwrap();
    let read = journal.read_snapshot::<Work>(&session).unwrap();
    assert_eq!(read, Some(Snapshot { state, after_sequence: 12_345, created_at: CREATED }));
}

/// `endIteration`, then `LoadState`: what an orchestrator does, in a process of its own each time.
fn iterations(open: impl Fn() -> Journal) {
    let session = name("my-project");
    let mut all = Vec::new();
    for iteration in 0..4_u64 {
        let mut journal = open();
        let (mut live, report): (LiveState<Work>, _) =
            journal.live(&session, SnapshotPolicy::IterationEnd).unwrap();
        assert_eq!(live.state(), &state_of(&all));
        // Only what came after the snapshot was replayed.
        assert_eq!(report.events, u64::from(iteration > 0) * 2, "{iteration}");
        assert_eq!(report.snapshot.is_some(), iteration > 0);
        let ended = [Step::Task(format!("task {iteration}")), Step::IterationEnd];
        for step in ended.into_iter().chain(steps(2)) {
            let recorded = journal.record(&mut live, id(all.len()), &step, CREATED).unwrap();
            let written = recorded.snapshot.map(|written| written.unwrap().after_sequence);
            let is_end = matches!(step, Step::IterationEnd);
            assert_eq!(written, is_end.then_some(recorded.appended.sequence));
            all.push(step);
        }
    }
}

#[test]
fn an_iteration_ends_with_a_snapshot_and_the_next_one_replays_only_newer_events() {
    let memory = Memory::new();
    iterations(|| Journal::in_memory(&memory, JournalOptions::default()));
    let scratch = tempfile::tempdir().unwrap();
    let holder = Holder::new("test");
    iterations(|| Journal::open(scratch.path(), &holder, JournalOptions::default()).unwrap());
}

/// "Backward compatible: sessions work without snapshots", "no data loss if snapshot is stale", and
/// `ReadSnapshot` without one.
#[test]
fn sessions_without_a_snapshot_or_with_a_stale_one_lose_nothing() {
    let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
    let session = name("old");
    let steps = steps(300);
    for (n, step) in steps.iter().enumerate() {
        journal.append(&session, Expected::Any, event(n, step), CREATED).unwrap();
    }
    assert_eq!(journal.read_snapshot::<Work>(&session).unwrap(), None);
    let loaded = journal.load::<Work>(&session).unwrap();
    assert_eq!((loaded.state, loaded.report.events), (state_of(&steps), 300));
    journal.write_snapshot(&session, &state_of(&steps[..3]), 3, CREATED).unwrap();
    let loaded = journal.load::<Work>(&session).unwrap();
    assert_eq!((loaded.state, loaded.report.events), (state_of(&steps), 297));
}

/// The bucket is named, created on startup "if not exists", and found by the session's name.
#[test]
fn the_bucket_is_created_once_and_its_key_is_the_session() {
    run!({
        let server = Server::shared();
        let mut options = options_of(&server);
        options.bucket = "iteratr_snapshots".to_owned();
        let session = name("my-project");
        for n in 0..3_u64 {
            let journal = NatsJournal::connect(options.clone()).await.unwrap();
            journal
                .append(&session, Expected::Last(n), event(n, &note("a")), CREATED)
                .await
                .unwrap();
            let state = state_of(&vec![note("a"); n as usize + 1]);
            let begun = Instant::now();
            journal.write_snapshot(&session, &state, n + 1, CREATED).await.unwrap();
            // The specification asks for 10 ms; a machine that tests is a busy one.
            assert!(begun.elapsed().as_millis() < 500, "{:?}", begun.elapsed());
        }
        let context = jetstream::new(client_of(&server).await);
        let bucket = context.get_key_value("iteratr_snapshots").await.unwrap();
        assert!(bucket.get("my-project").await.unwrap().is_some());
        // "Multiple snapshots per session (only latest needed)" and "TTL: none".
        let kept = bucket.stream.cached_info().config.clone();
        assert_eq!((kept.max_messages_per_subject, kept.max_age.is_zero()), (1, true));
    });
}

/// The schema of the specification, as another program would have put it.
#[test]
fn a_value_in_the_form_of_the_specification_is_passed_over_and_all_events_are_replayed() {
    run!({
        let server = Server::shared();
        let mut options = options_of(&server);
        options.bucket = "iteratr_snapshots".to_owned();
        let journal = NatsJournal::connect(options).await.unwrap();
        let session: SessionName = name("my-project");
        let steps = steps(5);
        for (n, step) in steps.iter().enumerate() {
            journal.append(&session, Expected::Any, event(n, step), CREATED).await.unwrap();
        }
        let context = jetstream::new(client_of(&server).await);
        let bucket = context.get_key_value("iteratr_snapshots").await.unwrap();
        let value =
            r#"{"state":{"tasks":[]},"after_sequence":12345,"created_at":"2025-01-22T00:00:00Z"}"#;
        bucket.put("my-project", value.into()).await.unwrap();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.state, loaded.report.events), (state_of(&steps), 5));
        assert!(matches!(loaded.report.skipped_snapshots[0].reason, SkipReason::Damaged(_)));
        let status = journal.status(&session).await.unwrap();
        assert!(matches!(status.skipped_snapshot.unwrap().reason, SkipReason::Damaged(_)));
        // "Handle write errors gracefully", and the next snapshot takes its place.
        journal.write_snapshot(&session, &state_of(&steps), 5, CREATED).await.unwrap();
        assert_eq!(journal.load::<Work>(&session).await.unwrap().report.events, 0);
    });
}

/// "Return error if KV unavailable", and "log, don't fail iteration".
#[test]
fn a_bucket_that_is_gone_fails_the_snapshot_and_not_the_iteration() {
    run!({
        let server = Server::shared();
        let journal = NatsJournal::connect(options_of(&server)).await.unwrap();
        let session = name("my-project");
        let policy = SnapshotPolicy::IterationEnd;
        let (mut live, _) = journal.live::<Work>(&session, policy).await.unwrap();
        journal.record(&mut live, id(0), &Step::IterationEnd, CREATED).await.unwrap();
        let context = jetstream::new(client_of(&server).await);
        context.delete_key_value("afterimage_snapshots").await.unwrap();
        let recorded =
            journal.record(&mut live, id(1), &Step::IterationEnd, CREATED).await.unwrap();
        assert_eq!(recorded.appended.sequence, 2);
        let error = recorded.snapshot.unwrap().unwrap_err();
        assert!(error.message().contains("does not exist"), "{error}");
        assert_eq!(journal.load::<Work>(&session).await.unwrap().state.iterations, 2);
    });
}
