//! Journals on NATS for users who may not do everything: the rights that the documentation lists are
//! enough, each of them is needed, and what is not allowed is an error at once that names it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::journal_work;
use afterimage_testkit::nats_server;

use std::{
    fs,
    time::{Duration, Instant},
};

use afterimage_journal::{
    Credentials, Error, ErrorKind, Expected, JournalOptions, NatsJournal, NatsOptions, SessionName,
    SnapshotPolicy,
};
use afterimage_json::Millis;
use journal_work::{Notes, Step, Work, event, id, name, note, state_of};
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

/// How long a request waits for its answer: far longer than a busy machine takes for all of them.
const PATIENCE: Duration = Duration::from_secs(60);

/// No request that is denied may wait for its answer.
const AT_ONCE: Duration = Duration::from_secs(45);

/// The subjects of a list in the documentation.
fn listed(list: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/journal.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(&format!("\n      {list}: [\n")).unwrap();
    let (lines, _) = rest.split_once("\n      ]").unwrap();
    let subjects = lines.lines().filter_map(|line| line.trim().strip_prefix('"'));
    subjects.map(|line| line.split('"').next().unwrap().to_owned()).collect()
}

/// A user with a name, which is the password too.
fn user(name: &str, publish: &[String], subscribe: &[String]) -> String {
    format!(
        "{{ user: {name}, password: {name}, permissions: {{ publish: {publish:?}, subscribe: {subscribe:?} }} }}\n"
    )
}

fn server(users: &str) -> Server {
    let admin = "{ user: admin, password: admin }";
    Server::with("", "", &format!("authorization {{ users: [\n{users}{admin}\n] }}"))
}

fn options(server: &Server, user: &str, journal: &str) -> NatsOptions {
    let (name, password) = (user.to_owned(), user.to_owned());
    NatsOptions::new(server.url())
        .named(journal)
        .waiting(PATIENCE)
        .with(JournalOptions::default().keeping(2))
        .with_credentials(Credentials::User { name, password })
}

/// What compresses to nothing smaller.
fn noise(length: usize) -> String {
    let mut seed = 1_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        char::from(b' ' + (seed % 94) as u8)
    };
    (0..length).map(|_| next()).collect()
}

/// All that a journal does.
async fn everything(options: NatsOptions) -> Result<(), Error> {
    // The bucket is there and keeps too little, so that it is changed.
    drop(NatsJournal::connect(options.clone()).await?);
    let more = options.clone().with(JournalOptions::default().keeping(3));
    let journal = NatsJournal::connect(more).await?;
    let session = name(&"A".repeat(100));
    let refused = |reason: String| Err(afterimage_journal::refused(reason));
    for n in 0..5_u64 {
        journal.append(&session, Expected::Last(n), event(n, &note("a")), NOW).await?;
        if n < 3 {
            let state = Notes(vec![noise(1_500_000)]);
            journal.write_snapshot(&session, &state, n + 1, NOW).await?;
        }
    }
    let journal = NatsJournal::connect(options).await?;
    let loaded = journal.load::<Notes>(&session).await?;
    if let Some(passed) = loaded.report.skipped_snapshots.first() {
        return refused(passed.to_string());
    }
    assert_eq!(loaded.sequence, 5);
    journal.read_snapshot::<Notes>(&session).await?;
    // An older one, and a small one.
    journal.write_snapshot(&session, &Notes(vec![]), 1, NOW).await?;
    journal.write_snapshot(&session, &Notes(vec![]), 5, NOW).await?;
    assert_eq!(journal.read(&session, 1, 9).await?.len(), 5);
    assert_eq!(journal.sessions().await?, std::slice::from_ref(&session));
    journal.status(&session).await?;
    journal.write_snapshot(&session, &Notes(vec![]), 5, NOW).await?;
    journal.delete(&session).await?;
    assert_eq!(journal.sessions().await?, []);
    Ok(())
}

#[test]
fn the_rights_that_the_documentation_lists_are_enough_and_each_is_needed() {
    run!({
        let (publish, subscribe) = (listed("publish"), listed("subscribe"));
        let of = |n: usize, subjects: &[String]| -> Vec<String> {
            subjects.iter().map(|subject| subject.replace("afterimage", &format!("j{n}"))).collect()
        };
        let mut users = String::new();
        for lacking in 0..=publish.len() {
            let granted = publish.iter().enumerate().filter(|(n, _)| *n != lacking);
            let granted: Vec<String> = granted.map(|(_, subject)| subject.clone()).collect();
            let name = format!("j{lacking}");
            users += &user(&name, &of(lacking, &granted), &of(lacking, &subscribe));
        }
        users += &user("deaf", &publish, &["nothing".to_owned()]);
        let server = server(&users);
        let mut wrong = Vec::new();
        for lacking in 0..=publish.len() {
            let name = format!("j{lacking}");
            let begun = Instant::now();
            let outcome = Box::pin(everything(options(&server, &name, &name))).await;
            let Some(subject) = publish.get(lacking) else {
                if let Err(error) = outcome {
                    wrong.push(format!("with all of them: {error}"));
                }
                continue;
            };
            let subject = of(lacking, std::slice::from_ref(subject)).remove(0);
            let text = outcome.map_or_else(|error| error.to_string(), |()| "nothing".to_owned());
            let named = subject.trim_end_matches('>');
            let is_named = text.contains("Permissions Violation") && text.contains(named);
            if !is_named || begun.elapsed() > AT_ONCE {
                wrong.push(format!("{subject} ({:?}): {text}", begun.elapsed()));
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
        let begun = Instant::now();
        let error = NatsJournal::connect(options(&server, "deaf", "afterimage")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(error.message().contains("Subscription to \"_INBOX."), "{error}");
        assert!(begun.elapsed() < AT_ONCE);
    });
}

/// A journal of a user who has all rights but those that begin so.
async fn lacking(missing: &str) -> (Server, NatsJournal, SessionName) {
    let granted: Vec<String> =
        listed("publish").into_iter().filter(|subject| !subject.starts_with(missing)).collect();
    let server = server(&user("agent", &granted, &listed("subscribe")));
    NatsJournal::connect(options(&server, "admin", "afterimage")).await.unwrap();
    let journal = NatsJournal::connect(options(&server, "agent", "afterimage")).await.unwrap();
    (server, journal, name("a"))
}

#[test]
fn a_user_who_may_not_write_snapshots_records_events_without_waiting() {
    run!({
        let (_server, journal, session) = lacking("$KV.").await;
        let begun = Instant::now();
        let policy = SnapshotPolicy::IterationEnd;
        let (mut live, _) = journal.live::<Work>(&session, policy).await.unwrap();
        for n in 0..3_u64 {
            let recorded =
                journal.record(&mut live, id(n), &Step::IterationEnd, NOW).await.unwrap();
            assert_eq!(recorded.appended.sequence, n + 1);
            let error = recorded.snapshot.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
            let expected = "Permissions Violation for Publish to \"$KV.afterimage_snapshots.a\"";
            assert!(error.message().contains(expected), "{error}");
            assert!(error.message().contains("docs/journal.md"), "{error}");
        }
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert_eq!(loaded.state.iterations, 3);
    });
}

#[test]
fn a_user_who_may_not_append_is_told_at_once_and_nothing_is_left_open() {
    run!({
        let (_server, journal, session) = lacking("afterimage_events").await;
        let begun = Instant::now();
        for expected in [Expected::Any, Expected::Last(0)] {
            let appended = journal.append(&session, expected, event("a", &note("a")), NOW).await;
            let error = appended.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
            let text = error.to_string();
            assert!(text.contains("Publish to \"afterimage_events.a.note\""), "{text}");
            assert!(!text.contains("may have taken effect"), "{text}");
        }
        // Those that wait together are told each.
        let several =
            (0..5).map(|n| journal.append(&session, Expected::Any, event(n, &note("a")), NOW));
        for outcome in futures_util::future::join_all(several).await {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Denied);
        }
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        assert_eq!(journal.load::<Work>(&session).await.unwrap().sequence, 0);
    });
}

#[test]
fn a_user_who_may_not_read_snapshots_loads_from_all_events_and_learns_why() {
    run!({
        let (server, journal, session) = lacking("$JS.API.DIRECT.GET.KV_").await;
        let admin = NatsJournal::connect(options(&server, "admin", "afterimage")).await.unwrap();
        let steps = [note("one"), note("two")];
        for (n, step) in steps.iter().enumerate() {
            admin.append(&session, Expected::Any, event(n, step), NOW).await.unwrap();
        }
        admin.write_snapshot(&session, &state_of(&steps), 2, NOW).await.unwrap();
        let begun = Instant::now();
        let loaded = journal.load::<Work>(&session).await.unwrap();
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        assert_eq!((loaded.state, loaded.report.events), (state_of(&steps), 2));
        let why = loaded.report.skipped_snapshots[0].to_string();
        assert!(
            why.contains("Permissions Violation for Publish to \"$JS.API.DIRECT.GET.KV_"),
            "{why}"
        );
    });
}

/// One that is not allowed is no reason to fail another that is under way.
#[test]
fn what_one_request_may_not_do_does_not_end_those_beside_it() {
    run!({
        let (_server, journal, session) = lacking("$JS.API.STREAM.PURGE.afterimage_events").await;
        let appended = async {
            for n in 0..200_u64 {
                let new = event(n, &note("a"));
                journal.append(&session, Expected::Last(n), new, NOW).await.unwrap();
                if n % 20 == 0 {
                    journal.load::<Work>(&session).await.unwrap();
                }
            }
        };
        let removed = async {
            for _ in 0..50 {
                let error = journal.delete(&name("b")).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Denied);
            }
        };
        futures_util::join!(appended, removed);
    });
}

#[test]
fn connecting_waits_for_nothing_before_the_first_attempt() {
    run!({
        let server = Server::start();
        let options = NatsOptions::new(server.url());
        NatsJournal::connect(options.clone()).await.unwrap();
        let mut quickest = Duration::MAX;
        for _ in 0..20 {
            let begun = Instant::now();
            NatsJournal::connect(options.clone()).await.unwrap();
            quickest = quickest.min(begun.elapsed());
        }
        assert!(quickest < Duration::from_millis(50), "{quickest:?}");
    });
}
