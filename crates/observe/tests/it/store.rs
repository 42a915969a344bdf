//! The database: what survives, and what each kind of trouble gets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support::observing;

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use afterimage_json::Value;
use afterimage_observe::{
    Error, ErrorKind, IgnoreReason, Millis, Moment, Observations, Outline, PlannedCall, Policy,
    Response, SqliteOptions, SqliteStore, ToolCall, Verdict,
};
use observing::{Agent, galaxy, on_each_store, ship, spacemolt, status, tick, wall};

fn open(path: &Path) -> Observations {
    Observations::open(path, spacemolt()).unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/observations").join(name)
}

#[test]
fn state_persists_across_restarts() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    let before = {
        let observations = open(&path);
        let agent = Agent { observations: &observations, name: "agent-1" };
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        agent.calls("get_notifications", "{\"player\":{\"credits\":70}}", tick(3));
        agent.calls("travel", "{}", tick(4));
        agent.calls("get_map", &galaxy(487, 5), tick(5));
        (agent.sees(tick(9)), observations.figures().unwrap(), observations.accounts().unwrap())
    };
    let observations = open(&path);
    let agent = Agent { observations: &observations, name: "agent-1" };
    let after =
        (agent.sees(tick(9)), observations.figures().unwrap(), observations.accounts().unwrap());
    assert_eq!(before, after);
    assert!(
        after.0.contains("Credits: 70 (6 ticks ago)") && after.0.contains("Stale since travel")
    );
}

#[test]
#[cfg(unix)]
fn what_lies_beside_an_open_database_its_owner_alone_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    let observations = open(&path);
    let agent = Agent { observations: &observations, name: "agent-1" };
    agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let mode = fs::metadata(scratch.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn the_table_of_the_specification_is_taken_over_with_its_data() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    fs::copy(fixture("specification.db"), &path).unwrap();
    for _ in 0..2 {
        let observations = open(&path);
        let of_ada = observations.infos("Ada").unwrap();
        assert_eq!(
            of_ada.iter().map(|info| &*info.name).collect::<Vec<_>>(),
            ["get_map", "get_status"]
        );
        assert_eq!(of_ada[1].seen, wall(400).on(40));
        assert_eq!(of_ada[0].seen, wall(300));
        let seen = observations.summary("Ada", wall(420).on(42), 500).unwrap();
        assert!(
            seen.text().contains("### Status (get_status - 2 ticks ago)\n\n- Credits: 1,200\n")
        );
        assert!(seen.text().contains("### Map (get_map - 2 minutes ago)\n\n- 2 systems cached\n"));
        assert_eq!(observations.summary("Ben", wall(0), 500).unwrap().sections().len(), 1);
        SqliteStore::open(&path).unwrap().check().unwrap();
    }
}

#[test]
fn a_database_of_the_specification_is_read_where_it_cannot_be_written() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("specification.db");
    fs::copy(fixture("specification.db"), &path).unwrap();
    let before = fs::read(&path).unwrap();
    let observations = Observations::open_read_only(&path, spacemolt()).unwrap();
    let seen = observations.summary("Ada", Moment::default(), 500).unwrap();
    assert!(seen.text().contains("- Credits: 1,200\n"), "{}", seen.text());
    // What would be kept in memory alone is refused.
    let error = observations.login("agent-1", "Ada", tick(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.message().starts_with("the database cannot be written"), "{error}");
    assert!(fs::read(&path).unwrap() == before, "the file has changed");
}

/// A folder that nobody can write, where the system can be told so: `root` may write anything.
#[cfg(unix)]
fn sealed(folder: &Path, is_sealed: bool) {
    use std::os::unix::fs::PermissionsExt;
    for file in fs::read_dir(folder).unwrap() {
        let mode = if is_sealed { 0o444 } else { 0o644 };
        fs::set_permissions(file.unwrap().path(), fs::Permissions::from_mode(mode)).unwrap();
    }
    let mode = if is_sealed { 0o555 } else { 0o755 };
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[test]
fn a_database_is_read_on_media_that_cannot_be_written() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("a # b?%41");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("state.db");
    {
        let observations = open(&path);
        let agent = Agent { observations: &observations, name: "agent-1" };
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
    }
    sealed(&folder, true);
    let is_writable = fs::write(folder.join("probe"), "").is_ok();
    let observations = Observations::open_read_only(&path, spacemolt()).unwrap();
    let seen = observations.summary("VoidWanderer", tick(3), 500).unwrap();
    assert!(seen.text().contains("- Credits: 5,000\n"), "{}", seen.text());
    assert!(observations.login("agent-2", "Other", tick(3)).is_err());
    if !is_writable {
        let error = SqliteStore::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        // Changes that wait beside the file are not passed over.
        drop(observations);
        sealed(&folder, false);
        let ahead = folder.join("state.db-wal");
        fs::write(&ahead, "what was written last").unwrap();
        sealed(&folder, true);
        let error = Observations::open_read_only(&path, spacemolt()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().ends_with("copy both files to a folder that can be"), "{error}");
    }
    sealed(&folder, false);
}

#[track_caller]
fn refused(path: &Path, kind: ErrorKind) -> Error {
    let before = fs::read(path).unwrap();
    let error = SqliteStore::open(path).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.place().file.as_deref(), Some(path));
    assert!(fs::read(path).unwrap() == before, "the file has changed");
    error
}

#[test]
fn a_database_of_another_version_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    drop(open(&path));
    // The version stands at this place of a database's header.
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[60..64], 1_u32.to_be_bytes());
    bytes[60..64].copy_from_slice(&2_u32.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    let error = refused(&path, ErrorKind::Version);
    assert_eq!(error.message(), "expected a database of version 1, found 2");
}

#[test]
fn a_file_that_is_no_such_database_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("notes.txt");
    fs::write(&path, "This is a list of things to buy.\n".repeat(100)).unwrap();
    refused(&path, ErrorKind::UnknownFormat);
    fs::copy(fixture("other.db"), &path).unwrap();
    refused(&path, ErrorKind::UnknownFormat);
    // A directory, and a place that is not there.
    assert_eq!(SqliteStore::open(scratch.path()).unwrap_err().kind(), ErrorKind::UnknownFormat);
    let nowhere = scratch.path().join("no/such/state.db");
    assert_eq!(SqliteStore::open(nowhere).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn an_empty_file_becomes_a_database() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    File::create(&path).unwrap();
    assert!(open(&path).accounts().unwrap().is_empty());
}

#[test]
fn damage_is_an_error_that_names_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    {
        let observations = open(&path);
        let agent = Agent { observations: &observations, name: "agent-1" };
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        for at in 0..20 {
            observations.register("agent-1", &format!("Account {at}"), tick(3)).unwrap();
            agent.calls("get_ship", &galaxy(20, at), tick(3));
        }
    }
    let sound = fs::read(&path).unwrap();
    let mut found = 0;
    for page in 1..sound.len() / 4_096 {
        let mut bytes = sound.clone();
        bytes[page * 4_096..page * 4_096 + 2_000].fill(0xa5);
        fs::write(&path, bytes).unwrap();
        let store = SqliteStore::open(&path);
        let error = match store {
            Err(error) => Some(error),
            Ok(store) => store.check().err(),
        };
        if let Some(error) = error {
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            assert_eq!(error.place().file.as_deref(), Some(&*path));
            found += 1;
        }
        // Whatever is asked, the answer is an answer or an error.
        if let Ok(observations) = Observations::open(&path, spacemolt()) {
            for at in 0..20 {
                let _ = observations.summary(&format!("Account {at}"), tick(5), 500);
            }
        }
    }
    assert!(found > 3, "{found}");
}

#[test]
fn a_database_that_is_only_read_answers_and_is_not_written() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    {
        let observations = open(&path);
        let agent = Agent { observations: &observations, name: "agent-1" };
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
    }
    let options = SqliteOptions { read_only: true, ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&path, options).unwrap();
    let observations = Observations::new(store, spacemolt());
    let agent = Agent { observations: &observations, name: "agent-1" };
    assert!(agent.sees(tick(3)).contains("Credits: 5,000"));
    let error = agent.tries("get_ship", "null", &ship(4), tick(4)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().starts_with("the database cannot be written"), "{error}");
    assert_eq!(error.place().file.as_deref(), Some(&*path));
    // What is not there cannot be only read.
    let missing = SqliteStore::open_with(scratch.path().join("other.db"), options).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Io);
}

#[test]
fn a_full_disk_is_an_error_and_what_was_kept_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    let options = SqliteOptions { max_bytes: Some(600_000), ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&path, options).unwrap();
    let observations = Observations::new(store, spacemolt());
    let agent = Agent { observations: &observations, name: "agent-1" };
    agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
    let mut kept = Vec::new();
    let error = loop {
        let account = format!("Account {}", kept.len());
        observations.register("agent-1", &account, tick(3)).unwrap();
        match agent.tries("get_map", "null", &galaxy(487, 3), tick(3)) {
            Ok(_) => kept.push(account),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(
        error.message().starts_with("the disk, or the size that was allowed, is full"),
        "{error}"
    );
    assert_eq!(kept.len(), 2);
    for account in &kept {
        assert_eq!(
            *observations.get(account, "get_map").unwrap().unwrap().content,
            *galaxy(487, 3)
        );
    }
    assert!(observations.infos("Account 2").unwrap().is_empty());
    // Once there is room it goes on.
    observations.clear(&kept[0], None).unwrap();
    agent.calls("get_map", &galaxy(487, 3), tick(3));
    drop(observations);
    SqliteStore::open(&path).unwrap().check().unwrap();
}

#[test]
fn payloads_that_are_too_large_or_no_json_change_nothing() {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
        let before = agent.sees(tick(3));
        let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(100 << 20));
        let tries = |text: &str| agent.tries("get_status", "null", text, tick(3)).unwrap_err();
        let error = tries(&huge);
        assert_eq!(error.kind(), ErrorKind::Limit);
        let message = "a response of 104857608 bytes; the limit is 67108864 bytes (64 MiB)";
        assert_eq!(error.message(), message);
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(tries(&deep).kind(), ErrorKind::Limit);
        let error = tries("{\"player\": {\"credits\": }");
        assert_eq!((error.kind(), error.place().line), (ErrorKind::Json, Some(1)));
        assert_eq!(agent.sees(tick(3)), before);
        // Half a surrogate pair is mended, and the answer is set aside like any other.
        let payload = || observations.get("VoidWanderer", "get_status").unwrap();
        let known = payload();
        let outcome = agent.calls("get_status", "{\"a\":\"\\ud800\"}", tick(3));
        assert_eq!((outcome.ignored, outcome.changed), (Some(IgnoreReason::OtherShape), 0));
        assert_eq!(payload(), known);
        let told = "- Not updated (just now): the answer had another shape: {\"a\":\"\u{fffd}\"}\n";
        let seen = agent.sees(tick(3));
        assert!(seen.contains(told), "{seen}");
        assert_eq!(seen.replace(told, ""), before);
    });
}

#[test]
fn a_large_payload_within_the_limit_is_kept() {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        observations.login("agent-1", "x", tick(1)).unwrap();
        let large = format!("{{\"hull\":1,\"max_hull\":2,\"note\":\"{}\"}}", "x".repeat(30 << 20));
        agent.calls("get_ship", &large, tick(2));
        assert_eq!(*observations.get("x", "get_ship").unwrap().unwrap().content, *large);
        let seen = agent.sees(tick(2));
        assert!(seen.contains("- Hull: 1/2\n") && seen.len() < 1_000);
    });
}

#[test]
fn of_a_doubled_key_the_last_counts() {
    on_each_store(&spacemolt(), |observations| {
        let agent = Agent { observations, name: "agent-1" };
        let response = "{\"player\":{\"username\":\"A\",\"credits\":1},\"player\":{\"username\":\"B\",\"credits\":2,\"credits\":3}}";
        assert_eq!(agent.calls("get_status", response, tick(1)).account.as_deref(), Some("B"));
        assert!(agent.sees(tick(1)).contains("- Credits: 3\n"));
        let content = observations.get("B", "get_status").unwrap().unwrap().content;
        assert_eq!(&*content, "{\"player\":{\"username\":\"B\",\"credits\":3}}");
    });
}

#[test]
fn a_username_is_data() {
    let names = [
        "'; DROP TABLE game_state_snapshots; --".to_owned(),
        "\" OR 1=1".to_owned(),
        "a\nb\r\n## c".to_owned(),
        " ".to_owned(),
        "%_*".to_owned(),
        "nul\0byte".to_owned(),
        "\u{202e}gnp".to_owned(),
        "漢字👩‍👩‍👧".to_owned(),
        "x".repeat(1_024),
    ];
    on_each_store(&spacemolt(), |observations| {
        for (at, name) in names.iter().enumerate() {
            let agent = format!("agent {at} {name}").chars().take(1_024).collect::<String>();
            observations.login(&agent, name, tick(1)).unwrap();
            let response = Response::text(&ship(2)).unwrap();
            let call = ToolCall::new(&agent, "get_ship", &response);
            let outcome = observations.intercept(&call, tick(2)).unwrap();
            assert_eq!(outcome.account.as_ref(), Some(name));
        }
        assert_eq!(observations.accounts().unwrap().len(), names.len());
        for name in &names {
            assert_eq!(observations.infos(name).unwrap().len(), 1, "{name:?}");
            let seen = observations.summary(name, tick(3), 500).unwrap();
            let account: Vec<&str> =
                seen.text().lines().filter(|line| line.starts_with("**Account:**")).collect();
            assert_eq!((account.len(), seen.text().matches("## Current").count()), (1, 1));
            assert!(account[0].chars().count() <= 80, "{account:?}");
        }
        for (name, kind) in
            [(String::new(), ErrorKind::Shape), ("x".repeat(10_000), ErrorKind::Limit)]
        {
            assert_eq!(observations.login("agent", &name, tick(1)).unwrap_err().kind(), kind);
            assert_eq!(observations.login(&name, "fine", tick(1)).unwrap_err().kind(), kind);
            let told = Value::from(name.as_str());
            let response = format!("{{\"player\":{{\"username\":{told}}}}}");
            let agent = Agent { observations, name: "agent-9" };
            let error = agent.tries("get_status", "null", &response, tick(3)).unwrap_err();
            assert_eq!(error.kind(), kind);
        }
        assert_eq!(observations.accounts().unwrap().len(), names.len());
    });
}

#[test]
fn a_job_that_fails_leaves_nothing_behind() {
    use afterimage_observe::{MemoryStore, ObservationStore};
    let scratch = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(scratch.path().join("state.db")).unwrap();
    let memory = MemoryStore::default();
    for store in [&sqlite as &dyn ObservationStore, &memory] {
        let account = |name: &str, agent: Option<&str>| afterimage_observe::Account {
            name: name.to_owned(),
            agent: agent.map(str::to_owned),
            created: tick(1),
            latest: None,
        };
        store.write(&mut |store| store.put_account(&account("kept", Some("a")))).unwrap();
        let error = store.write(&mut |store| {
            store.put_account(&account("other", Some("a")))?;
            store.remove_account("kept")?;
            store.add_figures("x", &afterimage_observe::Figures::default())?;
            Err(afterimage_json::read(b"{").unwrap_err().into())
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Json);
        store
            .read(&mut |store| {
                assert_eq!(store.accounts()?, [account("kept", Some("a"))]);
                assert_eq!(store.account_of("a")?, Some(account("kept", Some("a"))));
                assert!(store.figures()?.is_empty());
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn many_open_a_new_file_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    for file in 0..40 {
        let path = scratch.path().join(format!("{file}.db"));
        let together = std::sync::Barrier::new(6);
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    together.wait();
                    SqliteStore::open(&path).unwrap();
                });
            }
        });
    }
}

// Several processes.

/// The operations of one process.
const OPERATIONS: usize = 2_500;
/// The observations that each process writes, over and over.
const KEYS: usize = 10;
const WORK: &str = "AFTERIMAGE_TEST_OBSERVE_WORK";

/// What a process of [`four_processes_use_one_file_and_lose_nothing`] does: every fourth
/// operation writes, and is noted in a file once it was acknowledged.
#[test]
fn a_process_that_writes_and_reads() {
    let Ok(work) = std::env::var(WORK) else { return };
    let work: Vec<&str> = work.split('|').collect();
    let (path, acknowledged, worker) = (work[0], work[1], work[2]);
    let first: usize = work[3].parse().unwrap();
    let observations = Observations::open(path, Policy::default()).unwrap();
    let mut notes = OpenOptions::new().append(true).create(true).open(acknowledged).unwrap();
    for at in first..OPERATIONS {
        // All share three accounts, and each has its own observations there.
        let account = format!("account {}", at % 3);
        let tool = format!("tool-{worker}-{}", at / 4 % KEYS);
        if at % 4 == 0 {
            let text = format!("{{\"n\":{at},\"pad\":\"{}\"}}", "x".repeat(at % 700));
            let response = Response::text(&text).unwrap();
            let call = ToolCall::of_account(&account, &tool, &response);
            observations.intercept(&call, tick(at as u64)).unwrap();
        } else if at % 3 == 0 {
            let found = observations.get(&account, &tool).unwrap();
            found.map(|found| found.value().unwrap());
        } else {
            let summary = observations.summary(&account, tick(at as u64), 500).unwrap();
            assert!(summary.text().len() <= 2_000);
        }
        // In one write, for a kill between two would leave a part of a line.
        notes.write_all(format!("{at} {account} {tool}\n").as_bytes()).unwrap();
    }
}

fn start(path: &Path, scratch: &Path, worker: usize) -> Child {
    let acknowledged = scratch.join(format!("worker-{worker}"));
    let known = fs::read_to_string(&acknowledged).unwrap_or_default();
    let first = known.lines().count();
    let work = format!("{}|{}|{worker}|{first}", path.display(), acknowledged.display());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::a_process_that_writes_and_reads", "--test-threads=1"])
        .env(WORK, work)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn four_processes_use_one_file_and_lose_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    let began = Instant::now();
    let mut workers: Vec<Child> =
        (0..4).map(|worker| start(&path, scratch.path(), worker)).collect();
    // A random moment of each run: nothing here may depend on it.
    let mut random =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos()
            as usize;
    let mut killed = 0_u64;
    loop {
        thread::sleep(Duration::from_millis(300 + (random % 1_500) as u64));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 3;
        let is_running = |child: &mut Child| child.try_wait().unwrap().is_none();
        let running: Vec<usize> =
            (0..4).filter(|worker| is_running(&mut workers[*worker])).collect();
        if running.is_empty() {
            break;
        }
        if killed < 8 {
            let worker = running[random % running.len()];
            workers[worker].kill().unwrap();
            workers[worker].wait().unwrap();
            killed += 1;
            workers[worker] = start(&path, scratch.path(), worker);
        }
        assert!(began.elapsed() < Duration::from_secs(600), "it does not come to its end");
    }
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let observations = Observations::open(&path, Policy::default()).unwrap();
    let mut writes = 0;
    for worker in 0..4 {
        let notes = fs::read_to_string(scratch.path().join(format!("worker-{worker}"))).unwrap();
        assert!(notes.lines().count() >= OPERATIONS);
        let mut last = std::collections::BTreeMap::new();
        for note in notes.lines() {
            let (at, rest) = note.split_once(' ').unwrap();
            let (account, tool) = rest.rsplit_once(' ').unwrap();
            let at: u64 = at.parse().unwrap();
            if at.is_multiple_of(4) {
                last.insert((account.to_owned(), tool.to_owned()), at);
                writes += 1;
            }
        }
        for ((account, tool), at) in last {
            let found = observations.get(&account, &tool).unwrap().unwrap();
            assert_eq!(found.value().unwrap().get("n"), Some(&at.into()), "{account} {tool}");
        }
    }
    let calls: u64 = observations.figures().unwrap().iter().map(|(_, figures)| figures.calls).sum();
    // A write may have been done and not noted when its process was killed.
    assert!((writes..=writes + killed).contains(&calls), "{calls} of {writes}");
    SqliteStore::open(&path).unwrap().check().unwrap();
    eprintln!("{killed} killed, {writes} writes, {:?}", began.elapsed());
}

/// A database with two accounts and what is known of them.
fn two_accounts(path: &Path) {
    let observations = open(path);
    let agent = Agent { observations: &observations, name: "agent-1" };
    agent.calls("get_status", &status("Ada", 100, 5_000), tick(100));
    agent.calls("get_ship", &ship(100), tick(100));
    agent.calls("get_map", &galaxy(40, 101), tick(101));
    agent.calls("travel", "{}", tick(102));
    agent.calls("get_notifications", "{\"player\":{\"credits\":5250}}", tick(103));
    agent.calls("get_ship", "Rate limited, try again in 5 s", tick(104));
    let other = Agent { observations: &observations, name: "agent-2" };
    other.calls("get_status", &status("Ben", 105, 70), tick(105));
}

/// Changes a row as damage of the disk does: nobody is told.
fn change(path: &Path, sql: &str) {
    let file = rusqlite::Connection::open(path).unwrap();
    file.execute_batch("DROP TRIGGER game_state_written_elsewhere").unwrap();
    assert_eq!(file.execute(sql, []).unwrap(), 1, "{sql}");
}

#[test]
fn a_summary_of_nothing_but_damage_says_no_age() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    two_accounts(&path);
    change(&path, "UPDATE game_state_snapshots SET captured_at = 1 WHERE username = 'Ben'");
    let seen = open(&path).summary("Ben", tick(105), 500).unwrap();
    assert!(
        seen.text().contains("damaged: when it was last updated is not known"),
        "{}",
        seen.text()
    );
    assert!(!seen.text().contains("just now") && seen.sections()[0].is_damaged, "{}", seen.text());
    // Nor does one of an answer beside it whose time is lost.
    change(&path, "UPDATE game_state_asides SET info = '{}'");
    let seen = open(&path).summary("Ada", tick(105), 500).unwrap();
    let line = "- Not updated: the answer that was kept beside it is damaged\n";
    assert!(seen.text().contains(line), "{}", seen.text());
}

#[test]
fn rows_of_another_program_are_read_by_the_columns_of_the_specification() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    two_accounts(&path);
    // Another program has the file open beside ours.
    let observations = open(&path);
    let other = rusqlite::Connection::open(&path).unwrap();
    let write = |verb: &str, row: &str, then: &str| {
        let columns = "id, username, tool_name, content, game_tick, captured_at";
        let sql = format!("{verb} INTO game_state_snapshots ({columns}) VALUES ({row}) {then}");
        other.execute(&sql, []).unwrap();
    };
    let at = |millis: i64| Moment::at(Millis::new(millis));
    let seen = |account: &str, tool: &str| {
        let found = observations.get(account, tool).unwrap().unwrap();
        (found.info.seen, found.content.to_string())
    };
    let times = [
        ("1760000000", "41", at(1_760_000_000_000).on(41)),
        ("1760000000.25", "NULL", at(1_760_000_000_250)),
        ("1760000000500", "-3", at(1_760_000_000_500)),
        ("'2025-10-09T08:53:20Z'", "'soon'", at(1_760_000_000_000)),
        ("'2025-10-09T10:53:20.5+02:00'", "7.0", at(1_760_000_000_500).on(7)),
        ("-90", "NULL", at(-90_000)),
        ("0", "0", at(0).on(0)),
        ("253402300799", "NULL", at(253_402_300_799)),
    ];
    for (row, (time, tick, moment)) in times.iter().enumerate() {
        write(
            "INSERT",
            &format!("'{row}', 'Cy', 'get_{row}', '{{\"n\":{row}}}', {tick}, {time}"),
            "",
        );
        assert_eq!(
            seen("Cy", &format!("get_{row}")),
            (*moment, format!("{{\"n\":{row}}}")),
            "{time}"
        );
    }
    assert_eq!(observations.infos("Cy").unwrap().len(), times.len());
    // The highest tick of the account counts where nobody says one.
    let summary = observations.summary("Cy", at(1_760_000_060_000), 2_000).unwrap();
    assert!(summary.text().contains("(get_0 - just now)"), "{}", summary.text());
    assert!(summary.text().contains("(get_1 - 59 seconds ago)"), "{}", summary.text());
    // A row of ours is written anew in each of the ways in which programs do that.
    write("INSERT OR REPLACE", "'x', 'Ada', 'get_map', '[7]', 108, 1760000000", "");
    assert_eq!(seen("Ada", "get_map").1, "[7]");
    let known = "ON CONFLICT(username, tool_name) DO UPDATE SET content = excluded.content, \
                 game_tick = excluded.game_tick, captured_at = excluded.captured_at";
    write("INSERT", "'y', 'Ada', 'get_status', 'calm', 109, 1760000001", known);
    assert_eq!(seen("Ada", "get_status"), (at(1_760_000_001_000).on(109), "\"calm\"".to_owned()));
    let summary = observations.summary("Ada", tick(110), 500).unwrap();
    assert!(summary.text().contains("(get_status - 1 tick ago)"), "{}", summary.text());
    assert!(!summary.text().contains("damaged"), "{}", summary.text());
    // What says no time is told, and the rest is read.
    write("INSERT", "'z', 'Cy', 'get_z', '{}', 1, 'yesterday'", "");
    let infos = observations.infos("Cy").unwrap();
    assert_eq!(infos.iter().filter(|info| info.damage.is_some()).count(), 1);
    assert_eq!(observations.get("Cy", "get_z").unwrap_err().kind(), ErrorKind::Damaged);
    other.execute("DELETE FROM game_state_snapshots WHERE tool_name = 'get_z'", []).unwrap();
    write("INSERT", "'a', 'Cy', 'get_a', '{}', 1, 1760000000", "");
    SqliteStore::open(&path).unwrap().check().unwrap();
    // Where nothing is written, in memory.
    write("INSERT", "'b', 'Dee', 'get_b', '{\"n\":1}', 1, 1760000000", "");
    drop(observations);
    let before = fs::read(&path).unwrap();
    let reading = Observations::open_read_only(&path, spacemolt()).unwrap();
    assert_eq!(&*reading.get("Dee", "get_b").unwrap().unwrap().content, "{\"n\":1}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn one_damaged_row_does_not_fail_the_summary_of_an_account() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    two_accounts(&path);
    let ship = "WHERE username = 'Ada' AND tool_name = 'get_ship'";
    change(&path, &format!("UPDATE game_state_snapshots SET captured_at = 1 {ship}"));
    let observations = open(&path);
    let seen = observations.summary("Ada", tick(105), 500).unwrap();
    let expected =
        "### Ship (get_ship - damaged)\n\n- Damaged: it cannot be read. Call get_ship.\n";
    assert!(seen.text().contains(expected), "{}", seen.text());
    assert!(seen.text().contains("- Credits: 5,250"), "{}", seen.text());
    assert_eq!(observations.stale("Ada", tick(105)).unwrap()[0].name, "get_ship");
    let freshness =
        observations.freshness(&PlannedCall::of_account("Ada", "get_ship"), tick(105)).unwrap();
    assert_eq!(
        freshness.text(),
        "get_ship: known, but damaged. Call it. Its last answer was set \
                                  aside (1 tick ago): the call failed: Rate limited, try again in 5 s."
    );
    let error = observations.get("Ada", "get_ship").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert_eq!(error.message(), "\"get_ship\" is damaged: it does not fit its checksum");
    // An action passes over it, and the next answer takes its place.
    let agent = Agent { observations: &observations, name: "agent-1" };
    agent.calls("attack", "{}", tick(106));
    agent.calls("get_ship", &observing::ship(107), tick(107));
    let seen = observations.summary("Ada", tick(107), 500).unwrap();
    assert!(seen.text().contains("### Ship (get_ship - just now)"), "{}", seen.text());
    SqliteStore::open(&path).unwrap().check().unwrap();
}

#[test]
fn a_damaged_payload_is_told_and_is_not_fresh() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    two_accounts(&path);
    let of_ship = "WHERE username = 'Ada' AND tool_name = 'get_ship'";
    change(
        &path,
        &format!("UPDATE game_state_snapshots SET content = replace(content, '1', '7') {of_ship}"),
    );
    let observations = open(&path);
    let seen = observations.summary("Ada", tick(105), 500).unwrap();
    let section =
        "### Ship (get_ship - damaged)\n\n- Damaged: it cannot be read. Call get_ship.\n- Not";
    assert!(seen.text().contains(section), "{}", seen.text());
    assert!(seen.text().contains("- Credits: 5,250"), "{}", seen.text());
    let freshness = |tool: &str| {
        let call = PlannedCall::of_account("Ada", tool);
        observations.freshness(&call, tick(105)).unwrap().verdict
    };
    assert_eq!(freshness("get_ship"), Verdict::Damaged);
    assert_ne!(freshness("get_map"), Verdict::Damaged);
    assert_eq!(observations.stale("Ada", tick(105)).unwrap()[0].name, "get_ship");
}

#[test]
fn rows_that_are_lost_are_missed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    two_accounts(&path);
    change(&path, "DELETE FROM game_state_snapshots WHERE tool_name = 'get_map'");
    let observations = open(&path);
    let seen = observations.summary("Ada", tick(105), 500).unwrap();
    assert!(seen.text().contains("(? - damaged)") && seen.text().contains("- Credits: 5,250"));
    let error = observations.get("Ada", "get_map").unwrap_err();
    let message = "2 observations can be read, and 3 were written: the rest is lost";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Damaged, message));
    // To clear the account repairs it.
    observations.clear("Ada", None).unwrap();
    assert!(observations.get("Ada", "get_map").unwrap().is_none());
    SqliteStore::open(&path).unwrap().check().unwrap();
    change(&path, "DELETE FROM game_state_accounts WHERE username = 'Ben'");
    let error = observations.summary("Ben", tick(105), 500).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    let message = "the table of accounts is damaged: it has 1 rows, and 2 were written";
    assert_eq!(error.message(), message);
}

/// All that can be asked of a database, one answer a line.
fn answers(observations: &Observations) -> Vec<(String, Result<String, Error>)> {
    let mut all = Vec::new();
    let mut say = |what: String, answer: Result<String, Error>| all.push((what, answer));
    say("accounts".to_owned(), observations.accounts().map(|found| format!("{found:?}")));
    say("figures".to_owned(), observations.figures().map(|found| format!("{found:?}")));
    for agent in ["agent-1", "agent-2", "agent-3"] {
        let found = observations.account_of_agent(agent);
        say(agent.to_owned(), found.map(|found| format!("{found:?}")));
    }
    for account in ["Ada", "Ben", "Cy"] {
        let seen = observations.summary(account, tick(110), 2_000);
        say(format!("summary of {account}"), seen.map(|seen| seen.text().to_owned()));
        for tool in ["get_status", "get_ship", "get_map", "get_system"] {
            // The outline follows from the rest, and is made anew.
            let found = observations.get(account, tool).map(|found| {
                let mut found = found?;
                found.info.outline = Outline::default();
                Some(found)
            });
            say(format!("{tool} of {account}"), found.map(|found| format!("{found:?}")));
            let call = PlannedCall::of_account(account, tool);
            let freshness = observations.freshness(&call, tick(110));
            say(format!("before {tool} of {account}"), freshness.map(|found| found.text()));
        }
    }
    all
}

#[test]
fn no_damaged_database_answers_wrongly() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    two_accounts(&path);
    let sound = fs::read(&path).unwrap();
    let expected = answers(&open(&path));
    let is_told = |text: &str| text.contains("amaged");
    let mut noticed = 0;
    // More of them where somebody asks for it.
    let count = std::env::var("AFTERIMAGE_TEST_DAMAGE").map_or(300, |count| count.parse().unwrap());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let at = (random >> 8) as usize % sound.len();
        let mut bytes = sound.clone();
        bytes[at] ^= (random as u8) | 1;
        fs::write(&path, &bytes).unwrap();
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(scratch.path().join(format!("state.db{end}")));
        }
        let Ok(observations) = Observations::open(&path, spacemolt()) else {
            noticed += 1;
            continue;
        };
        let found = answers(&observations);
        let mut is_noticed = false;
        for ((what, answer), (_, expected)) in found.iter().zip(&expected) {
            let is_right = match (answer, expected) {
                (Ok(answer), Ok(expected)) => {
                    is_noticed |= answer != expected;
                    answer == expected || is_told(answer)
                }
                (Err(_), _) => {
                    is_noticed = true;
                    true
                }
                _ => false,
            };
            assert!(is_right, "byte {at}: {what}: {answer:?} instead of {expected:?}");
        }
        noticed += usize::from(is_noticed);
    }
    assert!(noticed * 8 > count, "{noticed} of {count}");
}

#[test]
fn a_row_that_is_damaged_is_an_error_that_names_it() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state.db");
    let observations = open(&path);
    let agent = Agent { observations: &observations, name: "agent-1" };
    agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
    let summary = || observations.summary("VoidWanderer", tick(2), 500);
    let before = summary().unwrap();
    let set = |column: &str, text: &str| {
        let sql = format!("UPDATE game_state_snapshots SET {column} = ?1");
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch("DROP TRIGGER IF EXISTS game_state_written_elsewhere").unwrap();
        file.execute(&sql, [text]).unwrap();
    };
    // What follows from the payload is made anew.
    for outline in ["{oops", "[]", "{\"entries\":7}", ""] {
        set("outline", outline);
        assert_eq!(summary().unwrap(), before, "{outline}");
    }
    let damaged = |error: Error, at: &str| {
        assert_eq!(error.kind(), ErrorKind::Damaged, "{at}: {error}");
        assert_eq!(error.place().file.as_deref(), Some(&*path), "{at}: {error}");
    };
    for (column, sound) in [("changed", "[]"), ("stale", "[]"), ("ages", "{}")] {
        for text in ["{oops", "7", "[7]", "[\"x\"]"] {
            set(column, text);
            match observations.get("VoidWanderer", "get_status") {
                Err(error) => damaged(error, column),
                Ok(found) => assert!(column == "changed" && found.is_some(), "{column}: {text}"),
            }
        }
        set(column, sound);
    }
    set("content", "{oops");
    let part = Response::text("{\"player\":{\"credits\":1}}").unwrap();
    let call = ToolCall::new("agent-1", "get_notifications", &part);
    let error = observations.intercept(&call, tick(3)).unwrap_err();
    assert!(error.message().contains("the payload of \"get_status\" is damaged"), "{error}");
    damaged(error, "content");
    // A whole response takes its place.
    agent.calls("get_status", &status("VoidWanderer", 2, 5_000), tick(2));
    observations.intercept(&call, tick(3)).unwrap();
}
