//! Journals on NATS while servers die, acknowledgements get lost, connections break and
//! futures are dropped.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;
use afterimage_testkit::lossy_proxy;
use afterimage_testkit::nats_server;

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use afterimage_journal::{
    Error, ErrorKind, Expected, JournalOptions, NatsJournal, NatsOptions, Retries, SessionName,
    SnapshotPolicy,
};
use afterimage_json::Millis;
use async_nats::jetstream;
use journal_work::{Step, Work, event, id, name, note, state_of};
use lossy_proxy::{Loss, Proxy};
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

/// A journal that waits half a second for an answer, and tries for so long.
async fn open(url: &str, within: Duration) -> Result<NatsJournal, Error> {
    let retries = Retries { attempts: 1_000, within, ..Retries::default() };
    let options = NatsOptions::new(url)
        .waiting(Duration::from_millis(500))
        .with(JournalOptions::default().retrying(retries));
    NatsJournal::connect(options).await
}

const LONG: Duration = Duration::from_secs(60);

fn steps(count: u64) -> Vec<Step> {
    (0..count).map(|n| note(&format!("note {n}"))).collect()
}

async fn append(journal: &NatsJournal, session: &SessionName, n: u64) -> Result<u64, Error> {
    let new = event(n, &steps(n + 1)[n as usize]);
    journal.append(session, Expected::Last(n), new, NOW).await.map(|appended| appended.sequence)
}

/// That a session holds the first `count` notes, once each.
async fn assert_notes(journal: &NatsJournal, session: &SessionName, count: u64) {
    let loaded = journal.load::<Work>(session).await.unwrap();
    assert_eq!(loaded.state, state_of(&steps(count)));
    let events = journal.read(session, 1, usize::MAX).await.unwrap();
    let sequences: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=count).collect::<Vec<_>>());
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event.id, id(n));
    }
}

#[test]
fn no_server_is_an_error_that_says_what_was_tried_and_for_how_long() {
    run!({
        let port = nats_server::free_port();
        let url = format!("nats://127.0.0.1:{port}");
        let begun = Instant::now();
        let error = open(&url, Duration::from_secs(2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(begun.elapsed() < Duration::from_secs(10));
        for part in ["cannot connect at", &url, "attempts in", " s; at last"] {
            assert!(error.message().contains(part), "{error}");
        }
    });
}

#[test]
fn a_server_that_is_too_old_is_refused_with_the_reason() {
    run!({
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let info = r#"{"server_id":"x","server_name":"x","version":"2.10.29","proto":1,"go":"","host":"127.0.0.1","port":1,"headers":true,"max_payload":1048576,"jetstream":true,"client_id":1}"#;
            write!(stream, "INFO {info}\r\n").unwrap();
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                let _ = stream.write_all(b"PONG\r\n");
            }
        });
        let error = open(&format!("nats://127.0.0.1:{port}"), LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(error.message().contains("2.11 or newer, found 2.10.29"), "{error}");
    });
}

#[test]
fn nothing_is_appended_through_a_server_that_is_too_old_after_the_one_that_was_checked() {
    run!({
        let server = Server::start();
        let proxy = Proxy::start(server.port);
        let journal = open(&proxy.url(), LONG).await.unwrap();
        let session = name("a");
        append(&journal, &session, 0).await.unwrap();
        proxy.pretend(Some("2.10.29"));
        proxy.lose(Loss::AnswersAndConnection);
        // The look at what became of it goes through the other server.
        assert_eq!(append(&journal, &session, 1).await.unwrap(), 2);
        for _ in 0..2 {
            let error = append(&journal, &session, 2).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Version);
            assert!(error.message().contains("2.11 or newer, found 2.10.29"), "{error}");
        }
        assert_notes(&journal, &session, 2).await;
        proxy.pretend(None);
        proxy.lose(Loss::AnswersAndConnection);
        assert_notes(&journal, &session, 2).await;
        assert_eq!(append(&journal, &session, 2).await.unwrap(), 3);
        assert_notes(&journal, &session, 3).await;
    });
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    run!({
        let mut server = Server::start();
        let journal = open(&server.url(), LONG).await.unwrap();
        let session = name("a");
        let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
        let killer = tokio::task::spawn_blocking(move || {
            let mut kills = 0;
            while stopped.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
                thread::sleep(Duration::from_millis(150 + 70 * (kills % 5)));
                server.kill();
                thread::sleep(Duration::from_millis(40 * (kills % 3)));
                server.restart();
                kills += 1;
            }
            (server, kills)
        });
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed() < Duration::from_secs(8) {
            assert_eq!(append(&journal, &session, count).await.unwrap(), count + 1);
            count += 1;
            if count % 200 == 0 {
                let state = state_of(&steps(count));
                journal.write_snapshot(&session, &state, count, NOW).await.unwrap();
                let loaded = journal.load::<Work>(&session).await.unwrap();
                assert_eq!(loaded.state, state);
            }
        }
        stop.send(()).unwrap();
        let (server, kills) = killer.await.unwrap();
        eprintln!("{count} events over {kills} kills");
        assert!(kills > 10, "{kills}");
        assert_notes(&journal, &session, count).await;
        let fresh = open(&server.url(), LONG).await.unwrap();
        assert_notes(&fresh, &session, count).await;
    });
}

#[test]
fn a_publish_to_a_dead_server_says_so_and_may_be_made_again() {
    run!({
        let mut server = Server::start();
        let journal = open(&server.url(), Duration::from_secs(2)).await.unwrap();
        let session = name("a");
        for n in 0..3 {
            append(&journal, &session, n).await.unwrap();
        }
        server.kill();
        for _ in 0..2 {
            let error = append(&journal, &session, 3).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert_eq!(error.place().session.as_deref(), Some("a"));
            for part in ["cannot append an event", "gave up after", " s; at last"] {
                assert!(error.message().contains(part), "{error}");
            }
        }
        let error = journal.load::<Work>(&session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("cannot load the state"), "{error}");
        let error = journal.write_snapshot(&session, &Work::default(), 3, NOW).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        server.restart();
        // What waited in the client may be stored by now; the same id is there once all the same.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(append(&journal, &session, 3).await.unwrap(), 4);
        assert_eq!(append(&journal, &session, 4).await.unwrap(), 5);
        assert_notes(&journal, &session, 5).await;
    });
}

#[test]
fn an_event_whose_acknowledgement_is_lost_is_found_by_its_id() {
    run!({
        let server = Server::start();
        let proxy = Proxy::start(server.port);
        let journal = open(&proxy.url(), LONG).await.unwrap();
        let session = name("a");
        let mut lost = 0;
        for n in 0..60 {
            // Every third answer is lost, and its connection with it or not.
            if n % 3 == 1 {
                proxy.lose(if n % 2 == 0 { Loss::Answers } else { Loss::AnswersAndConnection });
                lost += 1;
            }
            assert_eq!(append(&journal, &session, n).await.unwrap(), n + 1);
        }
        assert!(proxy.losses() >= lost, "{} of {lost}", proxy.losses());
        assert_notes(&journal, &session, 60).await;
    });
}

#[test]
fn a_load_that_is_cut_off_half_way_goes_on_or_fails() {
    run!({
        let server = Server::start();
        let direct = open(&server.url(), LONG).await.unwrap();
        let session = name("a");
        let body = "x".repeat(2_000);
        let all: Vec<Step> = (0..3_000).map(|n| note(&format!("{n} {body}"))).collect();
        for (n, step) in all.iter().enumerate() {
            direct.append(&session, Expected::Any, event(n, step), NOW).await.unwrap();
        }
        let expected = state_of(&all);
        let proxy = Proxy::start(server.port);
        let journal = open(&proxy.url(), LONG).await.unwrap();
        for after in [10_000, 100_000, 1_000_000, 3_000_000, 5_500_000] {
            proxy.lose(Loss::ConnectionAfter(after));
            let loaded = journal.load::<Work>(&session).await.unwrap();
            assert_eq!(loaded.state, expected, "{after}");
            assert!(loaded.report.retries > 0, "{after}");
        }
        let hasty = open(&proxy.url(), Duration::ZERO).await.unwrap();
        proxy.lose(Loss::ConnectionAfter(1_000_000));
        let error = hasty.load::<Work>(&session).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    });
}

#[test]
fn futures_that_are_dropped_leave_nothing_half_done() {
    run!({
        let server = Server::start();
        let journal = open(&server.url(), LONG).await.unwrap();
        let session = name("a");
        let mut dropped = 0;
        for n in 0..300_u64 {
            for micros in [0, 60, 120, 180, 240, 300, 100_000_000] {
                let patience = Duration::from_micros(micros);
                match tokio::time::timeout(patience, append(&journal, &session, n)).await {
                    Ok(sequence) => {
                        assert_eq!(sequence.unwrap(), n + 1);
                        break;
                    }
                    Err(_) => dropped += 1,
                }
            }
            if n % 50 == 49 {
                let state = state_of(&steps(n + 1));
                for micros in [100, 400, 100_000_000] {
                    let patience = Duration::from_micros(micros);
                    let write = journal.write_snapshot(&session, &state, n + 1, NOW);
                    let _ = tokio::time::timeout(patience, write).await;
                    let _ = tokio::time::timeout(patience, journal.load::<Work>(&session)).await;
                }
                assert_eq!(journal.load::<Work>(&session).await.unwrap().state, state);
            }
        }
        eprintln!("{dropped} futures dropped");
        assert!(dropped > 100, "{dropped}");
        assert_notes(&journal, &session, 300).await;
    });
}

#[test]
fn a_live_state_follows_what_it_appended_when_its_acknowledgement_was_lost() {
    run!({
        let server = Server::start();
        let proxy = Proxy::start(server.port);
        let journal = open(&proxy.url(), Duration::from_secs(1)).await.unwrap();
        let policy = SnapshotPolicy::Events(5);
        let (mut live, _) = journal.live::<Work>(&name("a"), policy).await.unwrap();
        for n in 0..20_u64 {
            let step = note(&format!("note {n}"));
            if n % 4 == 2 {
                proxy.lose(Loss::Everything);
                let failed = journal.record(&mut live, id(n), &step, NOW).await;
                assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unavailable);
                proxy.lose(Loss::Nothing);
            }
            let recorded = loop {
                match journal.record(&mut live, id(n), &step, NOW).await {
                    Ok(recorded) => break recorded,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
                }
            };
            assert_eq!(recorded.appended.sequence, n + 1);
        }
        assert_eq!(live.state(), &state_of(&steps(20)));
        assert_notes(&journal, &name("a"), 20).await;
    });
}

#[test]
fn writers_of_one_session_in_many_tasks_append_everything_once() {
    run!({
        let server = Server::start();
        let session = name("a");
        let mut tasks = Vec::new();
        for writer in 0..8 {
            let journal = open(&server.url(), LONG).await.unwrap();
            let session = session.clone();
            tasks.push(tokio::spawn(async move {
                for n in 0..50 {
                    let new = event(format!("{writer} {n}"), &note("x"));
                    journal.append(&session, Expected::Any, new, NOW).await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let journal = open(&server.url(), LONG).await.unwrap();
        let events = journal.read(&session, 1, usize::MAX).await.unwrap();
        assert_eq!(events.len(), 400);
        for writer in 0..8 {
            let prefix = format!("{writer} ");
            let of = events.iter().filter(|event| event.id.as_str().starts_with(&prefix));
            let expected = (0..50).map(|n| format!("{writer} {n}"));
            assert!(of.map(|event| event.id.as_str().to_owned()).eq(expected));
        }
    });
}

/// Appends that wait for each other are one message, in the order in which they were begun.
#[test]
fn appends_that_wait_go_together_and_keep_their_order() {
    run!({
        let server = Server::start();
        let journal = open(&server.url(), LONG).await.unwrap();
        let session = name("a");
        append(&journal, &session, 0).await.unwrap();
        let rest = (1..200).map(|n| append(&journal, &session, n));
        let sequences: Vec<u64> = futures_util::future::try_join_all(rest).await.unwrap();
        assert_eq!(sequences, (2..=200).collect::<Vec<_>>());
        assert_notes(&journal, &session, 200).await;
        let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
        let mut stream = context.get_stream("afterimage_events").await.unwrap();
        let messages = stream.info().await.unwrap().state.messages;
        assert!(messages < 10, "{messages} messages");
        // A snapshot in the middle of a message, and a read from there.
        let half = state_of(&steps(77));
        journal.write_snapshot(&session, &half, 77, NOW).await.unwrap();
        let journal = open(&server.url(), LONG).await.unwrap();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!((loaded.report.events, loaded.state), (123, state_of(&steps(200))));
        for first in [1, 2, 77, 78, 200] {
            let read = journal.read(&session, first, 3).await.unwrap();
            let expected: Vec<u64> = (first..=200).take(3).collect();
            assert_eq!(read.iter().map(|event| event.sequence).collect::<Vec<_>>(), expected);
        }
        // One that expects another event gets its conflict, and the others go on.
        let strange = journal.append(&session, Expected::Last(7), event("strange", &note("")), NOW);
        let (found, strange) = tokio::join!(append(&journal, &session, 200), strange);
        assert_eq!(found.unwrap(), 201);
        let strange = strange.unwrap_err();
        assert_eq!((strange.kind(), strange.place().event), (ErrorKind::Conflict, Some(201)));
    });
}

/// Events of several kinds, some of them large, from two journals at once.
#[test]
fn events_of_all_kinds_and_sizes_from_two_writers_are_there_once_on_their_subjects() {
    run!({
        let server = Server::with("", "sync_interval: always", "max_payload: 65536");
        let (one, other) = (open(&server.url(), LONG).await, open(&server.url(), LONG).await);
        let (one, other) = (one.unwrap(), other.unwrap());
        let session = name("a");
        let of = |writer: &'static str, n: usize| match n % 4 {
            0 => (format!("{writer} {n}"), Step::Task("x".repeat(40_000 * (n % 8) / 4))),
            1 => (format!("{writer} {n}"), Step::IterationEnd),
            _ => (format!("{writer} {n}"), note(writer)),
        };
        let appends = (0..120).map(|n| {
            let (journal, writer) = if n % 3 == 0 { (&one, "one") } else { (&other, "other") };
            let session = &session;
            async move {
                let (id, step) = of(writer, n);
                let new = event(&id, &step);
                (journal.append(session, Expected::Any, new, NOW).await.unwrap().sequence, id)
            }
        });
        let mut appended: Vec<(u64, String)> = futures_util::future::join_all(appends).await;
        appended.sort();
        let events = one.read(&session, 1, usize::MAX).await.unwrap();
        let found: Vec<(u64, String)> =
            events.iter().map(|event| (event.sequence, event.id.to_string())).collect();
        assert_eq!(found, appended);
        let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
        let stream = context.get_stream("afterimage_events").await.unwrap();
        let mut subjects = stream.info_with_subjects("afterimage_events.a.*").await.unwrap();
        let mut kinds = Vec::new();
        while let Some(subject) = futures_util::StreamExt::next(&mut subjects).await {
            kinds.push(subject.unwrap().0);
        }
        kinds.sort();
        let expected =
            ["iteration_end", "note", "task"].map(|k| format!("afterimage_events.a.{k}"));
        assert_eq!(kinds, expected);
        // One that no message holds is refused, and takes none of those beside it along.
        let large = event("large", &note(&"x".repeat(70_000)));
        let large = one.append(&session, Expected::Any, large, NOW);
        let small = one.append(&session, Expected::Any, event("small", &note("")), NOW);
        let (large, small) = tokio::join!(large, small);
        assert_eq!(large.unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(small.unwrap().sequence, 121);
    });
}

/// Whoever has the end of the log may be dropped with the events of others on their way.
#[test]
fn whoever_waits_for_one_that_is_dropped_goes_on() {
    run!({
        let server = Server::start();
        let journal = open(&server.url(), LONG).await.unwrap();
        let session = name("a");
        for round in 0..40_u64 {
            let base = round * 8;
            let mut appends: Vec<_> = (base..base + 8)
                .map(|n| {
                    let (journal, session) = (journal.clone(), session.clone());
                    Box::pin(async move { append(&journal, &session, n).await })
                })
                .collect();
            // The first has the end, and is dropped at any moment after its message was sent.
            let first = appends.remove(0);
            let after = Duration::from_micros(round * 40);
            let rest = futures_util::future::join_all(appends);
            let (_, rest) = tokio::join!(tokio::time::timeout(after, first), rest);
            if rest.iter().any(Result::is_err) {
                // It was dropped before anything was sent: each of the others missed it.
                assert!(rest.iter().flatten().count() == 0);
            }
            for n in base..base + 8 {
                assert_eq!(append(&journal, &session, n).await.unwrap(), n + 1);
            }
        }
        assert_notes(&journal, &session, 320).await;
    });
}

/// In tasks of their own, of two kinds in turn, so that several messages are needed.
#[test]
fn those_who_wait_keep_their_order_where_the_one_who_appends_is_dropped() {
    run!({
        let server = Server::start();
        let journal = open(&server.url(), LONG).await.unwrap();
        let session = name("a");
        let mut rounds = 0;
        for round in 0..40_u64 {
            let mut begun: Vec<_> = (0..8)
                .map(|n| {
                    let (journal, session) = (journal.clone(), session.clone());
                    let step = if n % 2 == 0 { note("x") } else { Step::IterationEnd };
                    let new = event(format!("{round} {n}"), &step);
                    Box::pin(async move { journal.append(&session, Expected::Any, new, NOW).await })
                })
                .collect();
            let mut all_wait = true;
            for one in &mut begun {
                all_wait &= futures_util::poll!(one).is_pending();
            }
            if !all_wait {
                // The server answered before this thread had asked for the answer.
                continue;
            }
            rounds += 1;
            let mut tasks: Vec<_> = begun.into_iter().map(tokio::spawn).collect();
            // The first appends itself alone, the second then all that wait, until it is dropped too.
            for one in tasks.drain(..2) {
                tokio::time::sleep(Duration::from_micros(round * 20)).await;
                one.abort();
            }
            let mut before = 0;
            for task in tasks {
                let appended = task.await.unwrap().unwrap();
                assert!(appended.sequence > before, "round {round}: {appended:?} after {before}");
                assert!(!appended.was_there);
                before = appended.sequence;
            }
        }
        let events = journal.read(&session, 1, usize::MAX).await.unwrap();
        let mut ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), events.len());
        assert!(rounds > 20, "{rounds}");
        assert!((rounds * 6..=320).contains(&events.len()), "{rounds}: {}", events.len());
    });
}

/// More requests than wait for a connection at a time: each comes to its end.
#[test]
fn thousands_of_appends_to_a_dead_server_end_in_time() {
    run!({
        let mut server = Server::start();
        let journal = open(&server.url(), Duration::from_secs(3)).await.unwrap();
        append(&journal, &name("warm"), 0).await.unwrap();
        server.kill();
        let begun = Instant::now();
        let appends = (0..6_000).map(|n| {
            let (journal, session) = (journal.clone(), name(&format!("s{n}")));
            async move { append(&journal, &session, 0).await.unwrap_err().kind() }
        });
        let kinds = futures_util::future::join_all(appends).await;
        assert!(kinds.iter().all(|kind| *kind == ErrorKind::Unavailable));
        // One after the other they would wait for five hours.
        assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
        let error = journal.sessions().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("cannot list the sessions: gave up after"), "{error}");
        server.restart();
        assert_eq!(append(&journal, &name("warm"), 1).await.unwrap(), 2);
    });
}
