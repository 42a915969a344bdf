//! Journals on NATS whose stream or whose server's disk is full.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;
use afterimage_testkit::nats_server;
use afterimage_testkit::small_disk;

use std::time::{Duration, Instant};

use afterimage_journal::{
    Error, ErrorKind, Expected, JournalOptions, NatsJournal, NatsOptions, Retries, SessionName,
};
use afterimage_json::Millis;
use async_nats::jetstream;
use journal_work::{Step, Work, event, id, name, note, state_of};
use nats_server::Server;
use small_disk::{fill, on_a_small_disk, small_disk};

const NOW: Millis = Millis::new(0);
const STREAM: &str = "afterimage_events";

fn runtime() -> tokio::runtime::Runtime {
    let builder = tokio::runtime::Builder::new_multi_thread();
    { builder }.worker_threads(2).enable_all().build().unwrap()
}

async fn open(server: &Server, within: Duration) -> NatsJournal {
    let retries = Retries { attempts: 1_000, within, ..Retries::default() };
    let options = NatsOptions::new(server.url())
        .waiting(Duration::from_millis(500))
        .with(JournalOptions::default().retrying(retries));
    NatsJournal::connect(options).await.unwrap()
}

fn step(n: u64) -> Step {
    note(&format!("{n} {}", "x".repeat(20_000)))
}

async fn append(journal: &NatsJournal, session: &SessionName, n: u64) -> Result<u64, Error> {
    let new = event(n, &step(n));
    journal.append(session, Expected::Last(n), new, NOW).await.map(|appended| appended.sequence)
}

/// Appends from the n-th event on until one is refused; how many there are then.
async fn append_until_full(
    journal: &NatsJournal,
    session: &SessionName,
    mut n: u64,
) -> (u64, Error) {
    loop {
        match append(journal, session, n).await {
            Ok(_) => n += 1,
            Err(error) => return (n, error),
        }
        assert!(n < 10_000, "it never gets full");
    }
}

/// That a session holds the first `count` events, once each.
async fn assert_whole(journal: &NatsJournal, session: &SessionName, count: u64) {
    let loaded = journal.load::<Work>(session).await.unwrap();
    assert_eq!(loaded.sequence, count);
    assert!(loaded.state == state_of(&(0..count).map(step).collect::<Vec<_>>()));
    let events = journal.read(session, 1, usize::MAX).await.unwrap();
    assert!(events.iter().map(|event| event.id.clone()).eq((0..count).map(id)));
}

#[test]
fn a_stream_that_is_full_refuses_events_and_takes_them_again_when_it_may_hold_more() {
    if nats_server::program().is_none() {
        return;
    }
    runtime().block_on(async {
        let server = Server::start();
        drop(open(&server, Duration::from_secs(20)).await);
        let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
        let mut config = context.get_stream(STREAM).await.unwrap().cached_info().config.clone();
        config.max_bytes = 200_000;
        context.update_stream(&config).await.unwrap();

        let journal = open(&server, Duration::from_secs(20)).await;
        let session = name("a");
        let begun = Instant::now();
        let (count, error) = append_until_full(&journal, &session, 0).await;
        assert!(count > 5, "{count}");
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.message().contains("maximum bytes exceeded"), "{error}");
        // It is the server's word: there is nothing to wait for.
        assert!(begun.elapsed() < Duration::from_secs(10));
        let several = (count..count + 4).map(|n| append(&journal, &session, n));
        for refused in futures_util::future::join_all(several).await {
            assert!(refused.is_err());
        }
        assert_whole(&journal, &session, count).await;

        config.max_bytes = 2_000_000;
        context.update_stream(&config).await.unwrap();
        for n in count..count + 4 {
            assert_eq!(append(&journal, &session, n).await.unwrap(), n + 1);
        }
        assert_whole(&journal, &session, count + 4).await;
    });
}

/// A file system of sixteen megabytes, where one may be mounted.
#[test]
fn a_server_whose_disk_is_full_loses_nothing_that_was_acknowledged() {
    if nats_server::program().is_none() {
        return;
    }
    on_a_small_disk(
        16 << 10,
        "nats_full::child_fills_the_disk_of_its_server",
        "went on after the disk was full",
    );
}

/// What runs on the small disk.
#[test]
fn child_fills_the_disk_of_its_server() {
    let Some(disk) = small_disk() else { return };
    runtime().block_on(async {
        let folder = tempfile::tempdir_in(&disk).unwrap();
        let mut server = Server::inside(folder, "", "sync_interval: always", "");
        let session = name("a");
        let mut count = 0;
        for round in 1..=3 {
            let journal = open(&server, Duration::from_secs(3)).await;
            for _ in 0..20 {
                assert_eq!(append(&journal, &session, count).await.unwrap(), count + 1);
                count += 1;
            }
            let state = state_of(&(0..count).map(step).collect::<Vec<_>>());
            journal.write_snapshot(&session, &state, count, NOW).await.unwrap();
            let filler = disk.join("filler");
            fill(&filler);
            let begun = Instant::now();
            let (appended, error) = append_until_full(&journal, &session, count).await;
            assert!(
                matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Io),
                "{round}: {error}"
            );
            assert!(begun.elapsed() < Duration::from_secs(30), "{round}");
            eprintln!("{round}: {count}, then {appended}: {error}");
            count = appended;

            // A server whose disk is full gives up what it does for streams until it is restarted.
            std::fs::remove_file(&filler).unwrap();
            server.restart();
            // The event whose append failed may be there, and is found by its id.
            let journal = open(&server, Duration::from_secs(20)).await;
            assert_eq!(append(&journal, &session, count).await.unwrap(), count + 1);
            count += 1;
            assert_whole(&journal, &session, count).await;
        }
        println!("went on after the disk was full: {count} events");
    });
}
