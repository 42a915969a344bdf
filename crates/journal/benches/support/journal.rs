//! A state and a server for the benches of journals.
//!
//! `AFTERIMAGE_BENCH_EVENTS=1024` limits how many events each measurement takes.

#![allow(dead_code, reason = "each bench takes what it needs")]

use afterimage_journal::{
    EventId, Expected, NatsJournal, NatsOptions, NewEvent, Replay, Result, SessionName,
};
use afterimage_json::Millis;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

pub(crate) use afterimage_testkit::nats_server::{self, Server};

pub(crate) const NOW: Millis = Millis::new(0);

/// What a coding agent keeps: its tasks and the end of its log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) tasks: Vec<(u64, String)>,
    pub(crate) seen: u64,
}

/// A change of one of 100 tasks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    task: u64,
    text: String,
}

impl Replay for Work {
    type Event = Change;
    const SCHEMA: u32 = 1;

    fn kind(_: &Change) -> &'static str {
        "change"
    }

    fn knows(kind: &str) -> bool {
        kind == "change"
    }

    fn apply(&mut self, _: u64, event: &Change) -> Result<()> {
        self.seen += 1;
        match self.tasks.iter_mut().find(|(task, _)| *task == event.task) {
            Some((_, text)) => text.clone_from(&event.text),
            None => self.tasks.push((event.task, event.text.clone())),
        }
        Ok(())
    }
}

/// So many events, or what they are limited to.
pub(crate) fn limited(events: u64) -> u64 {
    let most = std::env::var("AFTERIMAGE_BENCH_EVENTS")
        .map_or(u64::MAX, |most| most.parse().expect("AFTERIMAGE_BENCH_EVENTS is a number"));
    events.min(most)
}

pub(crate) fn session(name: &str) -> SessionName {
    SessionName::new(name).unwrap()
}

/// An event of 500 bytes.
pub(crate) fn event(n: u64) -> NewEvent {
    let mut change = Change { task: n % 100, text: format!("step {n}: ") };
    let without = serde_json::to_vec(&change).unwrap().len();
    change
        .text
        .extend((0..500 - without).map(|at| char::from(b'a' + ((n as usize * 7 + at) % 26) as u8)));
    let body = serde_json::to_vec(&change).unwrap();
    assert_eq!(body.len(), 500);
    NewEvent::new(EventId::new(n.to_string()).unwrap(), "change", body).unwrap()
}

/// Fills sessions with events, many sessions at a time.
pub(crate) async fn fill(journal: &NatsJournal, sessions: &[(SessionName, u64)]) {
    let fill = |(session, count): (SessionName, u64)| async move {
        for n in 0..count {
            journal.append(&session, Expected::Last(n), event(n), NOW).await.unwrap();
        }
    };
    futures_util::stream::iter(sessions.iter().cloned().map(fill))
        .buffer_unordered(64)
        .collect::<Vec<()>>()
        .await;
}

/// A server, and a journal on it; nothing where there is no server to be had.
pub(crate) fn journal(jetstream: &str) -> Option<(Runtime, Server, NatsJournal)> {
    nats_server::program()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = Server::with("", jetstream, "");
    let journal = runtime.block_on(NatsJournal::connect(NatsOptions::new(server.url()))).unwrap();
    Some((runtime, server, journal))
}
