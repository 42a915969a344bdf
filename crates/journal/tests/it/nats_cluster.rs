//! Three servers, three replicas, four writers, and one server that dies and comes back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;
use afterimage_testkit::nats_server;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::support::waiting::until;
use afterimage_journal::{
    ErrorKind, Event, Expected, JournalOptions, NatsJournal, NatsOptions, Retries, SessionName,
};
use afterimage_json::Millis;
use async_nats::jetstream;
use journal_work::{Work, event, name, note};
use nats_server::{Server, cluster};

const NOW: Millis = Millis::new(0);

fn options(servers: &[Server]) -> NatsOptions {
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let within = Duration::from_secs(90);
    let retries = Retries { attempts: 10_000, within, ..Retries::default() };
    NatsOptions::new(urls.join(","))
        .replicated(3)
        .waiting(Duration::from_secs(2))
        .with(JournalOptions::default().retrying(retries))
}

/// What a writer was told.
#[derive(Default)]
struct AppendReport {
    /// The id of each event that was acknowledged, by sequence.
    acknowledged: BTreeMap<u64, String>,
    /// For which sequences it was told that another writer came first.
    conflicts: Vec<u64>,
}

/// Appends so many events at a time, under the expectation that nobody else does, until told to stop.
async fn write(
    journal: NatsJournal,
    (writer, at_a_time): (usize, u64),
    session: SessionName,
    stop: Arc<AtomicBool>,
) -> AppendReport {
    let mut told = AppendReport::default();
    let (mut last, mut n) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let begun = (last..last + at_a_time).map(|expected| {
            n += 1;
            let id = format!("{writer} {n}");
            let new = event(&id, &note(&id));
            let (journal, session) = (&journal, &session);
            let expects = Expected::Last(expected);
            async move { (expected, id, journal.append(session, expects, new, NOW).await) }
        });
        for (expected, id, result) in futures_util::future::join_all(begun).await {
            match result {
                Ok(appended) => {
                    assert_eq!(appended.sequence, expected + 1, "writer {writer}");
                    assert!(!appended.was_there);
                    last = appended.sequence;
                    told.acknowledged.insert(last, id);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                    let actual = error.place().event.unwrap();
                    assert_ne!(actual, expected, "writer {writer}: {error}");
                    // What was begun after one that lost expects what is not there yet.
                    if actual > expected {
                        told.conflicts.push(expected + 1);
                    }
                    last = last.max(actual);
                }
            }
        }
    }
    told
}

async fn context(server: &Server) -> jetstream::Context {
    jetstream::new(async_nats::connect(server.url()).await.unwrap())
}

/// Makes a server the one that answers for the stream.
async fn lead(context: &jetstream::Context, stream: &str, server: &str) {
    until("the server leads", || async {
        let Ok(mut of) = context.get_stream(stream).await else { return false };
        let Ok(info) = of.info().await else { return false };
        if info.cluster.as_ref().and_then(|cluster| cluster.leader.as_deref()) == Some(server) {
            return true;
        }
        let wanted = serde_json::json!({ "placement": { "preferred": server } });
        let subject = format!("STREAM.LEADER.STEPDOWN.{stream}");
        let _ = context.request::<_, _, serde_json::Value>(subject, &wanted).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        false
    })
    .await;
}

/// What the leader holds, asked message by message.
async fn held(context: &jetstream::Context, stream: &str) -> Vec<(u64, String)> {
    let stream = context.get_stream(stream).await.unwrap();
    let last = stream.cached_info().state.last_sequence;
    let mut held = Vec::new();
    for position in 1..=last {
        let message = stream.get_raw_message(position).await.unwrap();
        let mut rest = &message.payload[..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: serde_json::Value = serde_json::from_slice(&rest[..end]).unwrap();
            let id = line["id"].as_str().unwrap().to_owned();
            held.push((line["sequence"].as_u64().unwrap(), id));
            rest = &rest[end + 1 + usize::try_from(line["bytes"].as_u64().unwrap()).unwrap()..];
        }
    }
    held
}

#[test]
fn a_replica_dies_while_four_writers_append_and_every_event_is_there_once_on_each() {
    if nats_server::program().is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut servers = cluster();
        let journal = NatsJournal::connect(options(&servers)).await.unwrap();
        assert_eq!(journal.warnings(), [] as [String; 0]);
        let (session, stream) = (name("shared"), "afterimage_events");
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = Vec::new();
        // Two append one by one, two put several into a message.
        for writer in [(0, 1), (1, 1), (2, 8), (3, 8)] {
            let journal = NatsJournal::connect(options(&servers)).await.unwrap();
            writers.push(tokio::spawn(write(journal, writer, session.clone(), Arc::clone(&stop))));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        // The one that leads, so that a new one has to be found.
        let info = context(&servers[0]).await.get_stream(stream).await.unwrap();
        let leader = info.cached_info().cluster.as_ref().unwrap().leader.clone().unwrap();
        let victim: usize = leader.trim_start_matches('n').parse().unwrap();
        let before = journal.status(&session).await.unwrap().last_sequence;
        servers[victim].kill();
        // It takes some seconds until the two that are left have chosen between them.
        until("two servers go on", || async {
            let status = journal.status(&session).await.unwrap();
            status.last_sequence > before + 200
        })
        .await;
        let without = journal.status(&session).await.unwrap().last_sequence;
        servers[victim].restart();
        tokio::time::sleep(Duration::from_secs(3)).await;
        stop.store(true, Ordering::Relaxed);
        let mut told = Vec::new();
        for writer in writers {
            told.push(writer.await.unwrap());
        }
        let events = journal.read(&session, 1, usize::MAX).await.unwrap();
        eprintln!(
            "{before} events, then {without} without {leader}, {} at the end; {} conflicts",
            events.len(),
            told.iter().map(|told| told.conflicts.len()).sum::<usize>(),
        );
        assert!(before > 20, "{before}");

        // Every acknowledged event is there, once, where its writer was told that it is.
        let mut by_sequence: BTreeMap<u64, &String> = BTreeMap::new();
        for (sequence, id) in told.iter().flat_map(|told| &told.acknowledged) {
            assert!(by_sequence.insert(*sequence, id).is_none(), "two writers got {sequence}");
        }
        let found: Vec<(u64, String)> =
            events.iter().map(|event| (event.sequence, event.id.to_string())).collect();
        assert!(found.iter().map(|(sequence, _)| *sequence).eq(1..=events.len() as u64));
        let expected: Vec<(u64, String)> =
            by_sequence.iter().map(|(sequence, id)| (*sequence, (*id).clone())).collect();
        assert_eq!(found, expected);
        // Whoever lost a sequence lost it to a writer who has it.
        for (writer, told) in told.iter().enumerate() {
            for lost in &told.conflicts {
                let winner = by_sequence[lost];
                assert!(!winner.starts_with(&format!("{writer} ")), "{lost}: {winner}");
            }
            assert!(!told.acknowledged.is_empty());
        }

        // The same on each server.
        let context = context(&servers[0]).await;
        until("all replicas are current", || async {
            let Ok(mut of) = context.get_stream(stream).await else { return false };
            let Ok(info) = of.info().await else { return false };
            let cluster = info.cluster.clone().unwrap();
            cluster.replicas.len() == 2
                && cluster.replicas.iter().all(|replica| replica.current && !replica.offline)
        })
        .await;
        let messages = context.get_stream(stream).await.unwrap().cached_info().state.messages;
        assert!(messages < events.len() as u64, "{messages} messages, {} events", events.len());
        for server in ["n0", "n1", "n2"] {
            lead(&context, stream, server).await;
            assert_eq!(held(&context, stream).await, expected, "{server}");
            let journal = NatsJournal::connect(options(&servers)).await.unwrap();
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!(loaded.sequence, events.len() as u64);
            let bodies: Vec<Event> = journal.read(&session, 1, usize::MAX).await.unwrap();
            assert_eq!(bodies, events);
        }
    });
}
