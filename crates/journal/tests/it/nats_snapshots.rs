//! Snapshots on NATS that several writers replace at the same time: which one stands, what becomes of
//! the objects of large ones, and of a bucket that somebody else made.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;
use crate::support::sharing::{client_of, options_of};
use crate::support::waiting::until;
use afterimage_testkit::nats_server;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use afterimage_journal::{
    Credentials, Expected, JournalOptions, NatsJournal, NatsOptions, Retries, SessionName,
    SnapshotInfo,
};
use afterimage_json::Millis;
use async_nats::jetstream::{self, stream};
use futures_util::StreamExt;
use journal_work::{Work, event, name, note};
use nats_server::Server;

macro_rules! run {
    ($body:block) => {
        if nats_server::program().is_some() {
            let runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move { $body })
        }
    };
}

const NOW: Millis = Millis::new(0);

async fn open(server: &Server, keep: usize) -> NatsJournal {
    let options = JournalOptions::default().keeping(keep);
    NatsJournal::connect(options_of(server).with(options)).await.unwrap()
}

async fn append(journal: &NatsJournal, session: &SessionName, id: &str) -> u64 {
    let new = event(id, &note(id));
    journal.append(session, Expected::Any, new, NOW).await.unwrap().sequence
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

fn work(sequence: u64, text: &str) -> Work {
    Work {
        notes: vec![sequence.to_string(), text.to_owned()],
        applied: (1..=sequence).collect(),
        ..Work::default()
    }
}

async fn write(
    journal: &NatsJournal,
    session: &SessionName,
    sequence: u64,
    text: &str,
) -> SnapshotInfo {
    journal.write_snapshot(session, &work(sequence, text), sequence, NOW).await.unwrap()
}

/// What is in the object store.
struct Store(stream::Stream);

impl Store {
    async fn of(server: &Server) -> Self {
        let context = jetstream::new(client_of(server).await);
        Self(context.get_stream("OBJ_afterimage_snapshots").await.unwrap())
    }

    /// The number of objects, of which nothing but their own metadata is left once they are dropped.
    async fn objects(&self) -> usize {
        let subjects = self.0.info_with_subjects("$O.afterimage_snapshots.M.>").await.unwrap();
        subjects.count().await
    }

    async fn messages(&self) -> u64 {
        self.0.get_info().await.unwrap().state.messages
    }
}

/// Two journals write large snapshots, one newer than the other, and a third one loads. It has to find
/// one each time. Returns the session, and the number of the next snapshot.
async fn race(servers: &[NatsOptions; 3]) -> (SessionName, u64) {
    let connect = async |n: usize| NatsJournal::connect(servers[n].clone()).await.unwrap();
    let is_one = servers[0].servers == servers[1].servers;
    let session = name("a");
    let text = noise(2_600_000);
    let reader = connect(2).await;
    // All events are there before, so that no snapshot is newer than what a reader knows of.
    let ids: Vec<String> = (1..=2_000).map(|n| n.to_string()).collect();
    futures_util::future::join_all(ids.iter().map(|id| append(&reader, &session, id))).await;
    let info = write(&reader, &session, 1, &text).await;
    assert!(info.stored_bytes > 2_000_000, "{}", info.stored_bytes);
    let deadline = Instant::now() + Duration::from_secs(5);
    let next = Arc::new(AtomicU64::new(2));
    let mut writers = Vec::new();
    for writer in 0..2 {
        let (journal, session, text) = (connect(writer).await, session.clone(), text.clone());
        let next = Arc::clone(&next);
        writers.push(tokio::spawn(async move {
            let mut count = 0;
            while Instant::now() < deadline {
                let sequence = next.fetch_add(1, Ordering::Relaxed);
                let info = write(&journal, &session, sequence, &text).await;
                assert!(info.after_sequence >= sequence, "{info:?} for {sequence}");
                count += 1;
            }
            count
        }));
    }
    let (mut loads, mut newest) = (0, 0);
    while Instant::now() < deadline {
        let loaded = reader.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.report.skipped_snapshots, [], "after {loads} loads");
        let after = loaded.report.snapshot.unwrap().after_sequence;
        if is_one {
            assert_eq!(loaded.report.retries, 0, "after {loads} loads");
            assert!(after >= newest, "the snapshot after {after} replaced that after {newest}");
        }
        newest = after;
        loads += 1;
    }
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    eprintln!("{written} snapshots, {loads} loads");
    assert!(written > 5 && loads > 5, "{written} snapshots, {loads} loads");
    let newest = next.load(Ordering::Relaxed) - 1;
    until("the newest snapshot is on each server", || async {
        let loaded = reader.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.report.skipped_snapshots, loaded.sequence), (vec![], 2_000));
        loaded.report.snapshot.unwrap().after_sequence == newest
    })
    .await;
    (session, newest + 1)
}

#[test]
fn two_writers_of_large_snapshots_leave_a_reader_one_at_any_time() {
    run!({
        let server = Server::shared();
        Box::pin(race(&[(); 3].map(|()| options_of(&server)))).await;
        // That in use, and the one before it.
        assert_eq!(Store::of(&server).await.objects().await, 2);
    });
}

#[test]
fn and_so_they_do_on_three_servers() {
    run!({
        let servers = nats_server::cluster();
        let options = [0, 1, 2].map(|n| NatsOptions::new(servers[n].url()).replicated(3));
        until("the servers have found each other", || async {
            NatsJournal::connect(options[0].clone()).await.is_ok()
        })
        .await;
        let (session, next) = Box::pin(race(&options)).await;
        let store = Store::of(&servers[0]).await;
        let journal = NatsJournal::connect(options[0].clone()).await.unwrap();
        let (next, text) = (AtomicU64::new(next), noise(2_600_000));
        // What a server under load did not remove in time goes with a later snapshot.
        until("a snapshot leaves nothing else", || async {
            let is_clean = store.objects().await == 2;
            if !is_clean {
                write(&journal, &session, next.fetch_add(1, Ordering::Relaxed), &text).await;
            }
            is_clean
        })
        .await;
    });
}

#[test]
fn a_snapshot_does_not_replace_a_newer_one() {
    run!({
        let server = Server::shared();
        let large = noise(1_500_000);
        for (keep, newer, older) in [
            (1, "small", "small"),
            (2, "small", &*large),
            (1, &*large, "small"),
            (3, &*large, &*large),
        ] {
            let journal = open(&server, keep).await;
            let session = name(&format!("{keep} {} {}", newer.len(), older.len()));
            for n in 0..10 {
                append(&journal, &session, &n.to_string()).await;
            }
            let of_newer = write(&journal, &session, 8, newer).await;
            assert_eq!(of_newer.after_sequence, 8);
            // What stands is the answer.
            assert_eq!(write(&journal, &session, 6, older).await, of_newer);
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!((loaded.report.snapshot, loaded.report.events), (Some(of_newer), 2));
            assert_eq!(write(&journal, &session, 8, older).await.after_sequence, 8);
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!(loaded.state.notes[1], older);
            journal.delete(&session).await.unwrap();
            assert_eq!(Store::of(&server).await.messages().await, 0);
        }
    });
}

#[test]
fn a_snapshot_of_events_that_the_log_lost_is_replaced_by_an_older_one() {
    run!({
        let server = Server::shared();
        let (journal, session) = (open(&server, 1).await, name("a"));
        for n in 0..10 {
            append(&journal, &session, &n.to_string()).await;
        }
        write(&journal, &session, 8, "of what was lost").await;
        let context = jetstream::new(client_of(&server).await);
        let stream = context.get_stream("afterimage_events").await.unwrap();
        for position in 7..=10 {
            stream.delete_message(position).await.unwrap();
        }
        assert_eq!(write(&journal, &session, 5, "of what is there").await.after_sequence, 5);
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.report.skipped_snapshots, []);
        assert_eq!(loaded.report.snapshot.unwrap().after_sequence, 5);
    });
}

#[test]
fn the_very_same_snapshot_of_two_writers_is_there_once() {
    run!({
        let server = Server::shared();
        let session = name("a");
        let journals = [open(&server, 1).await, open(&server, 1).await];
        append(&journals[0], &session, "one").await;
        let text = noise(1_500_000);
        for round in 0..3 {
            let text = format!("{round}{text}");
            let both = journals.each_ref().map(|journal| write(journal, &session, 1, &text));
            let infos = futures_util::future::join_all(both).await;
            assert_eq!(infos[0], infos[1]);
            let loaded = journals[0].load::<Work>(&session).await.unwrap();
            assert_eq!(loaded.report.skipped_snapshots, []);
            assert_eq!(loaded.state.notes[1], text);
            assert_eq!(Store::of(&server).await.objects().await, 2.min(round + 1));
        }
    });
}

#[test]
fn objects_that_nobody_needs_leave_nothing_behind() {
    run!({
        let server = Server::shared();
        let text = noise(1_500_000);
        for keep in [1_usize, 2] {
            let (journal, session) = (open(&server, keep).await, name(&keep.to_string()));
            let store = Store::of(&server).await;
            for n in 0..6 {
                let sequence = append(&journal, &session, &n.to_string()).await;
                write(&journal, &session, sequence, &text).await;
                let expected = (keep + 1).min(n + 1);
                assert_eq!(store.objects().await, expected, "{keep} after {n}");
            }
            for _ in 0..=keep {
                assert!(store.messages().await > 0);
                let sequence = append(&journal, &session, &format!("{:?}", Instant::now())).await;
                write(&journal, &session, sequence, "small").await;
            }
            assert_eq!(store.messages().await, 0);
        }
    });
}

/// A user who may do everything, and one who may not purge the object store.
const USERS: &str = r#"authorization { users: [
    { user: "all", password: "p" },
    { user: "some", password: "p", permissions: {
        publish: { allow: ">", deny: "$JS.API.STREAM.PURGE.OBJ_afterimage_snapshots" }, subscribe: ">" } }
] }"#;

#[test]
fn a_snapshot_is_written_even_if_nothing_can_be_cleared_away_which_the_next_writer_does() {
    run!({
        let server = Server::with("", "sync_interval: always", USERS);
        let as_user = async |user: &str| {
            let user = Credentials::User { name: user.to_owned(), password: "p".to_owned() };
            let retries = Retries { attempts: 2, ..Retries::default() };
            let options = options_of(&server)
                .waiting(Duration::from_millis(700))
                .with(JournalOptions::default().retrying(retries))
                .with_credentials(user);
            NatsJournal::connect(options).await.unwrap()
        };
        let (all, some) = (as_user("all").await, as_user("some").await);
        let session = name("a");
        let text = noise(1_500_000);
        for n in 0..3 {
            let sequence = append(&some, &session, &n.to_string()).await;
            assert_eq!(write(&some, &session, sequence, &text).await.after_sequence, sequence);
            let loaded = all.load::<Work>(&session).await.unwrap();
            assert_eq!((loaded.report.skipped_snapshots, loaded.report.events), (vec![], 0));
        }
        let admin = async_nats::ConnectOptions::with_user_and_password("all".into(), "p".into());
        let context = jetstream::new(admin.connect(server.url()).await.unwrap());
        let store = Store(context.get_stream("OBJ_afterimage_snapshots").await.unwrap());
        assert_eq!(store.objects().await, 3);
        let sequence = append(&all, &session, "last").await;
        write(&all, &session, sequence, &text).await;
        assert_eq!(store.objects().await, 2);
        let loaded = all.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.report.skipped_snapshots, loaded.report.events), (vec![], 0));
    });
}

#[test]
fn an_object_that_goes_away_while_it_is_read_leads_to_the_snapshot_that_replaced_it() {
    run!({
        let server = Server::shared();
        let (journal, session) = (open(&server, 1).await, name("a"));
        append(&journal, &session, "one").await;
        append(&journal, &session, "two").await;
        let text = noise(1_500_000);
        write(&journal, &session, 1, &text).await;
        let context = jetstream::new(client_of(&server).await);
        let objects = context.get_object_store("afterimage_snapshots").await.unwrap();
        let object = objects.list().await.unwrap().next().await.unwrap().unwrap();
        // A reader that begins now waits for parts that never come.
        let parts = format!("$O.afterimage_snapshots.C.{}", object.nuid);
        Store::of(&server).await.0.purge().filter(parts).await.unwrap();
        let (reader, of_reader) = (journal.clone(), session.clone());
        let begun = Instant::now();
        let reader = tokio::spawn(async move { reader.load::<Work>(&of_reader).await.unwrap() });
        tokio::time::sleep(Duration::from_millis(200)).await;
        write(&journal, &session, 2, &text).await;
        objects.delete(&object.name).await.unwrap();
        let loaded = reader.await.unwrap();
        assert_eq!((loaded.report.skipped_snapshots, loaded.report.retries), (vec![], 0));
        assert_eq!(loaded.report.snapshot.map(|info| info.after_sequence), Some(2));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    });
}

#[test]
fn the_bytes_of_a_session_go_with_it_and_those_of_others_stay() {
    run!({
        let server = Server::shared();
        let (journal, store) = (open(&server, 1).await, Store::of(&server).await);
        let (removed, other) = (name("a"), name("ab"));
        let (bytes, mut kept) = (vec![7; 300_000], Vec::new());
        for session in [&removed, &removed, &other] {
            append(&journal, session, &kept.len().to_string()).await;
            kept.push(journal.put_bytes(session, &bytes).await.unwrap());
        }
        assert_eq!(store.objects().await, 3);
        journal.delete(&removed).await.unwrap();
        assert_eq!(store.objects().await, 1);
        assert_eq!(journal.bytes(&kept[2], 300_000).await.unwrap(), bytes);
        journal.delete(&other).await.unwrap();
        assert_eq!(store.messages().await, 0);
    });
}

#[test]
fn a_large_snapshot_whose_future_is_dropped_leaves_no_parts_behind() {
    run!({
        let server = Server::shared();
        let (journal, session) = (open(&server, 1).await, name("a"));
        let text = noise(6_000_000);
        for round in 1..=8_u64 {
            append(&journal, &session, &round.to_string()).await;
            let writing = write(&journal, &session, round, &text);
            let dropped = tokio::time::timeout(Duration::from_millis(25 * round), writing);
            eprintln!("{round}: {}", if dropped.await.is_ok() { "written" } else { "dropped" });
        }
        let store = Store::of(&server).await;
        // A future may be dropped before its write has begun: then that snapshot never comes. Writes
        // that have begun come to their end, whatever is newer by then.
        write(&journal, &session, 8, &text).await;
        for _ in 0..2 {
            let sequence = append(&journal, &session, &format!("{:?}", Instant::now())).await;
            write(&journal, &session, sequence, "small").await;
        }
        until("all is cleared away", || async { store.messages().await == 0 }).await;
    });
}

#[test]
fn a_bucket_that_somebody_made_keeps_its_settings_and_is_warned_of() {
    run!({
        let server = Server::shared();
        let context = jetstream::new(client_of(&server).await);
        let made = jetstream::kv::Config {
            bucket: "afterimage_snapshots".to_owned(),
            description: "made by hand".to_owned(),
            max_age: Duration::from_secs(3_600),
            max_bytes: 50_000_000,
            max_value_size: 2_000,
            history: 1,
            storage: stream::StorageType::Memory,
            ..Default::default()
        };
        let before = context.create_key_value(made).await.unwrap();
        let before = before.stream.cached_info().config.clone();
        let journal = open(&server, 3).await;
        let after = context.get_key_value("afterimage_snapshots").await.unwrap();
        let after = after.stream.cached_info().config.clone();
        assert_eq!(after.max_messages_per_subject, 3);
        assert_eq!(after, stream::Config { max_messages_per_subject: 3, ..before });
        let warnings = journal.warnings().join("\n");
        for part in ["snapshots expire", "snapshots are kept in memory", "snapshots have fewer"] {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
        // What it does not take goes to the object store.
        let session = name("a");
        append(&journal, &session, "one").await;
        let text = noise(3_000);
        write(&journal, &session, 1, &text).await;
        assert_eq!(Store::of(&server).await.objects().await, 1);
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.state.notes[1].as_str(), loaded.report.events), (&*text, 0));
    });
}
