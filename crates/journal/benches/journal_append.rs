//! Appending 10,240 events of 500 bytes with 256 in flight, beside bare publishers of the same bytes
//! with as many in flight: one of nothing but the bytes, and one of the same bytes under the
//! condition that each message comes after the one before it in its session.
//!
//! The journal's 256 are in one session, in 16, and in 256. To be within 80 % of the bare publisher.
//! Events that wait for each other go together, so the first two leave it behind; with one event in
//! flight in each session there is nothing to go together, and what the server takes for the
//! condition is more than the journal takes for everything.
#![allow(missing_docs)]

#[path = "support/journal.rs"]
mod journal;

use std::sync::atomic::{AtomicU64, Ordering};

use afterimage_journal::{EventId, Expected, NatsJournal, NewEvent, SessionName};
use async_nats::{Client, Request, jetstream};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{StreamExt, stream};
use journal::{NOW, limited, session};

const IN_FLIGHT: usize = 256;

/// How many events are appended at a time: as many in each of 256 sessions.
fn events() -> usize {
    let events = usize::try_from(limited(10_240)).unwrap();
    (events - events % IN_FLIGHT).max(IN_FLIGHT)
}

/// What is published bare, and under the condition; 256 sessions.
async fn streams(url: String) -> jetstream::Context {
    let context = jetstream::new(async_nats::connect(url).await.unwrap());
    for (name, subjects) in [("bare", "bare.*"), ("conditioned", "conditioned.*.*")] {
        let config = jetstream::stream::Config {
            name: name.to_owned(),
            subjects: vec![subjects.to_owned()],
            ..Default::default()
        };
        context.create_stream(config).await.unwrap();
    }
    context
}

/// Appends its share to a session, so many at a time, each expecting the one before it.
async fn append_to(journal: &NatsJournal, of: &(SessionName, AtomicU64), sessions: usize) {
    let (session, last) = of;
    let share = (events() / sessions) as u64;
    let first = last.fetch_add(share, Ordering::Relaxed);
    let appends = stream::iter(first..first + share).map(|last| {
        let id = EventId::new(last.to_string()).unwrap();
        let new = NewEvent::new(id, "change", vec![b'x'; 500]).unwrap();
        async move { journal.append(session, Expected::Last(last), new, NOW).await.unwrap() }
    });
    appends.buffered(IN_FLIGHT / sessions).for_each(async |_| {}).await;
}

/// Publishes under the condition, and gives the place in the stream.
async fn publish(client: &Client, session: usize, after: u64) -> u64 {
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", after.to_string());
    let filter = format!("conditioned.s{session}.*");
    headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", filter);
    let request = Request::new().headers(headers).payload(vec![b'x'; 500].into());
    let subject = format!("conditioned.s{session}.change");
    let answer = client.send_request(subject, request).await.unwrap();
    let answer = afterimage_json::read(&answer.payload).unwrap();
    answer.get("seq").and_then(afterimage_json::Value::as_u64).unwrap()
}

fn append(criterion: &mut Criterion) {
    for sync in ["", "sync_interval: always"] {
        let Some((runtime, server, journal)) = journal::journal(sync) else { return };
        let context = runtime.block_on(streams(server.url()));
        let name = if sync.is_empty() { "journal_append" } else { "journal_append/sync always" };
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20).throughput(Throughput::Elements(events() as u64));
        for sessions in [1, 16, 256] {
            let named = |n| (session(&format!("{sessions} {n}")), AtomicU64::new(0));
            let of: Vec<_> = (0..sessions).map(named).collect();
            let id = BenchmarkId::new("journal, 256 in flight in sessions", sessions);
            group.bench_function(id, |bench| {
                bench.iter(|| {
                    let work = stream::iter(&of).map(|of| append_to(&journal, of, sessions));
                    runtime.block_on(work.buffer_unordered(IN_FLIGHT).collect::<Vec<()>>())
                });
            });
        }
        group.bench_function(BenchmarkId::new("bare publisher", IN_FLIGHT), |bench| {
            bench.iter(|| {
                let work = stream::iter(0..events()).map(|n| {
                    let context = &context;
                    async move {
                        let subject = format!("bare.s{}", n % IN_FLIGHT);
                        let ack = context.publish(subject, vec![b'x'; 500].into()).await;
                        ack.unwrap().await.unwrap()
                    }
                });
                let work = work.buffer_unordered(IN_FLIGHT).for_each(async |_| {});
                runtime.block_on(work);
            });
        });
        let positions: Vec<_> = (0..IN_FLIGHT).map(|_| AtomicU64::new(0)).collect();
        let client = context.client();
        group.bench_function(
            BenchmarkId::new("bare publisher with the condition", IN_FLIGHT),
            |bench| {
                bench.iter(|| {
                    let work = stream::iter(positions.iter().enumerate()).map(|(session, last)| {
                        let client = &client;
                        async move {
                            for _ in 0..events() / IN_FLIGHT {
                                let after = last.load(Ordering::Relaxed);
                                let at = publish(client, session, after).await;
                                last.store(at, Ordering::Relaxed);
                            }
                        }
                    });
                    runtime.block_on(work.buffer_unordered(IN_FLIGHT).collect::<Vec<()>>())
                });
            },
        );
        group.finish();
    }
}

criterion_group!(benches, append);
criterion_main!(benches);
