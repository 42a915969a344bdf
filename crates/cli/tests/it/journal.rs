//! `afterimage journal` on a directory, and on a server.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails"
)]

use crate::support;
use afterimage_testkit::nats_server;

use std::{
    io::{BufRead, BufReader, Lines, Read, Write},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use afterimage::{
    id::{FacetType, Millis},
    journal::{
        EventId, Expected, Journal, JournalOptions, NatsJournal, NatsOptions, NewEvent, SessionName,
    },
    log::Holder,
    session::bridge::ReplayedTimeline,
    veil::{Facet, FacetOp, Frame, Source},
};
use serde_json::{Value, json};
use support::{afterimage, run, run_with};

/// Three frames of one session, and two events of another that the program knows nothing of.
fn events() -> Vec<(SessionName, NewEvent)> {
    let event = |session: &str, n: u64, kind: &str, body: String| {
        let id = EventId::new(format!("{n}")).unwrap();
        (SessionName::new(session).unwrap(), NewEvent::new(id, kind, body.into_bytes()).unwrap())
    };
    let frame = |n: u64| {
        let facet = Facet::new(format!("f{n}"), FacetType::EVENT, format!("frame {n}"));
        let frame = Frame::new(n, Source::User).with(FacetOp::add(facet));
        event("../frames", n, "frame", frame.to_json().to_string())
    };
    let other = |n: u64| event("stock > 1", n, "moved", json!({ "crates": n }).to_string());
    vec![frame(0), frame(1), frame(2), other(0), other(1)]
}

/// The lines of standard output as JSON, whatever warnings there are.
fn json_lines(args: &[&str]) -> Vec<Value> {
    let run = run(args);
    assert_eq!(run.code, Some(0), "{args:?}: {}", run.err);
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn json(args: &[&str]) -> Value {
    let mut lines = json_lines(args);
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// What holds of a journal with these events, wherever it is.
fn check(journal: &str) {
    let lines = json_lines(&["journal", "ls", "--json", journal]);
    let expected = [
        json!({ "session": "../frames", "lastSequence": 3, "snapshot": null, "passedOver": null }),
        json!({ "session": "stock > 1", "lastSequence": 2, "snapshot": null, "passedOver": null }),
    ];
    assert_eq!(lines, expected);
    let table = run(&["journal", "ls", journal]);
    assert_eq!(table.code, Some(0), "{}", table.err);
    assert!(table.out.contains("stock > 1") && table.out.contains("session"), "{}", table.out);

    let loaded = json(&["journal", "load", "--json", journal, "stock > 1"]);
    assert_eq!(loaded["state"], Value::Null);
    let events = json!([{ "sequence": 1, "event": { "crates": 0 } }, { "sequence": 2, "event": { "crates": 1 } }]);
    assert_eq!(loaded["events"], events);
    assert_eq!(loaded["report"]["events"], 2);
    assert_eq!(loaded["report"]["snapshot"], Value::Null);

    let refused = run(&["journal", "snapshot", journal, "stock > 1"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("only sessions of frames or turns"), "{}", refused.err);

    let taken = json(&["journal", "snapshot", "--json", journal, "../frames"]);
    assert_eq!((&taken["session"], &taken["afterSequence"]), (&json!("../frames"), &json!(3)));
    let loaded = json(&["journal", "load", "--json", journal, "../frames"]);
    assert_eq!(loaded["sequence"], 3);
    assert_eq!(loaded["state"]["lastFrame"], 2);
    assert_eq!(loaded["state"]["facets"].as_array().unwrap().len(), 3);
    assert_eq!(loaded["report"]["events"], 0);
    assert_eq!(loaded["report"]["snapshot"]["afterSequence"], 3);
    let page = run(&["journal", "load", journal, "../frames"]).out;
    assert!(page.contains("after event 3") && page.contains("0 events"), "{page}");

    let missing = run(&["journal", "load", journal, "nobody"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("no such session"), "{}", missing.err);

    let gone = json(&["journal", "rm", "--json", journal, "../frames"]);
    assert_eq!(gone, json!({ "session": "../frames", "lastSequence": 3 }));
    assert_eq!(json_lines(&["journal", "ls", "--json", journal]).len(), 1);
    assert_eq!(run(&["journal", "rm", journal, "../frames"]).code, Some(2));
}

#[test]
fn a_journal_in_a_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let text = path.to_str().unwrap();
    let nothing = run(&["journal", "ls", text]);
    assert_eq!(nothing.code, Some(2));
    assert!(!path.exists());
    let options = JournalOptions::default();
    let mut journal = Journal::open(&path, &Holder::new("test"), options).unwrap();
    for (session, event) in events() {
        journal.append(&session, Expected::Any, event, Millis::new(0)).unwrap();
    }
    // It is read beside its writer, and not written.
    assert_eq!(json_lines(&["journal", "ls", "--json", text]).len(), 2);
    let locked = run(&["journal", "rm", text, "../frames"]);
    assert_eq!(locked.code, Some(2));
    assert!(locked.err.contains("already in use"), "{}", locked.err);
    drop(journal);
    check(text);
}

#[test]
fn a_journal_on_a_server() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let journal = format!("{}/harbour", server.url());
    let nothing = run(&["journal", "ls", &journal]);
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.err.contains("no stream \"harbour_events\""), "{}", nothing.err);
    runtime.block_on(async {
        let options = NatsOptions::new(server.url()).named("harbour");
        let journal = NatsJournal::connect(options).await.unwrap();
        for (session, event) in events() {
            journal.append(&session, Expected::Any, event, Millis::new(0)).await.unwrap();
        }
    });
    // What is promised is said where something is written.
    for (command, is_told) in [("ls", false), ("load", false), ("snapshot", true), ("rm", false)] {
        let session = if command == "ls" { None } else { Some("warned") };
        run_with(&["world", "append", "warned", "--journal", &journal], GAIN);
        let args = ["journal", command, &journal].into_iter().chain(session);
        let warned = run(&args.collect::<Vec<_>>());
        assert_eq!(warned.code, Some(0), "{}", warned.err);
        assert_eq!(warned.err.contains("three replicas"), is_told, "{command}: {}", warned.err);
    }
    let append = ["world", "append", "warned", "--journal", &journal];
    assert!(run_with(&append, GAIN).err.contains("three replicas"));
    assert_eq!(run(&["journal", "rm", &journal, "warned"]).code, Some(0));
    let secret = run(&["journal", "ls", "nats://me:secret@127.0.0.1:1/x"]);
    assert_eq!(secret.code, Some(2));
    assert!(secret.err.contains("can be read by others"), "{}", secret.err);
    check(&journal);
}

#[test]
fn who_is_not_let_in_learns_how_to_say_who_he_is() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::with("", "", "authorization { token: secret }");
    let journal = format!("{}/world", server.url());
    let append = |variables: &[(&str, &str)]| {
        let mut command = afterimage(&["world", "append", "tale", "--journal", &journal]);
        let output = command.envs(variables.iter().copied()).write_stdin(GAIN).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, errors) = append(&[]);
    assert_eq!(code, Some(2));
    for part in ["authorization violation", "--creds", "AFTERIMAGE_NATS_TOKEN"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    let (code, errors) = append(&[("AFTERIMAGE_NATS_TOKEN", "wrong")]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("authorization violation") && errors.contains("--creds"), "{errors}");
    let (code, errors) = append(&[("AFTERIMAGE_NATS_USER", "me")]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("AFTERIMAGE_NATS_PASSWORD is not"), "{errors}");
    // A variable that is empty is none.
    let (code, errors) =
        append(&[("AFTERIMAGE_NATS_TOKEN", "secret"), ("AFTERIMAGE_NATS_CREDS", "")]);
    assert_eq!(code, Some(0), "{errors}");
}

#[test]
fn an_address_that_is_none_is_refused_at_once_and_makes_no_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let begun = std::time::Instant::now();
    for address in ["wss://127.0.0.1:1/x", "ws://h/x", "nats:///x", "nats://a,,b/x", "http://h/x"] {
        let mut command = afterimage(&["world", "append", "tale", "--journal", address]);
        let output = command.current_dir(&scratch).write_stdin(GAIN).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{address}");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("expected servers as nats://host:port"), "{address}: {errors}");
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

const TURNS: &str = r#"{"actor":"player","events":[{"type":"move","data":{"zone":"gate"}}]}
{"actor":"player","deltas":[{"target":"player","operation":"set","path":["hp"],"newValue":9}]}

{"type":"move","actor":"bo","data":{"zone":"inn"}}
"#;

/// What holds of a session of turns in a journal, wherever that is.
fn check_session(journal: &str) {
    let on = |command: &'static str| ["world", command, "../tale", "--journal"];
    let appended = run_with(&[&on("append")[..], &[journal, "--json"]].concat(), TURNS);
    assert_eq!(appended.code, Some(0), "{}", appended.err);
    assert_eq!(appended.out, "{\"turnId\":1}\n{\"turnId\":2}\n{\"turnId\":3}\n");
    let whole = json(&[&on("state")[..], &[journal]].concat());
    assert_eq!(whole["player"], json!({ "hp": 9, "location": { "zone": "inn" } }));
    let zone = ["--turn", "1", "--path", "/player/location/zone"];
    assert_eq!(json(&[&on("state")[..], &[journal], &zone[..]].concat()), json!("gate"));
    let log = json_lines(&[&on("log")[..], &[journal, "--json", "--from", "2"]].concat());
    assert_eq!(log.len(), 2);
    assert_eq!(log[0]["deltas"][0]["deltaId"], "../tale-2-1");

    // What does not fit is refused with its line, and what came before it stays.
    let strange = r#"{"type":"move","actor":"bo","data":{"zone":"mill"}}
{"actor":"bo","deltas":[{"target":"player","operation":"set","path":["hp"],"previousValue":1,"newValue":2}]}
"#;
    let refused = run_with(&[&on("append")[..], &[journal]].concat(), strange);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), "turn 4\n"));
    assert!(refused.err.contains("standard input") && refused.err.contains('2'), "{}", refused.err);
    let lenient = run_with(
        &[&on("append")[..], &[journal, "--lenient"]].concat(),
        strange.lines().nth(1).unwrap(),
    );
    assert_eq!(lenient.out, "turn 5\n", "{}", lenient.err);

    // A scene that ends asks for a snapshot, and the state loads from it.
    let ended = r#"{"type":"scene_end","actor":"bo","data":{}}"#;
    let appended = run_with(&[&on("append")[..], &[journal]].concat(), ended);
    assert_eq!(appended.out, "turn 6\n", "{}", appended.err);
    let loaded = json(&["journal", "load", "--json", journal, "../tale"]);
    assert_eq!((&loaded["sequence"], &loaded["report"]["events"]), (&json!(6), &json!(0)));
    let taken = json(&["journal", "snapshot", "--json", journal, "../tale"]);
    assert_eq!(taken["afterSequence"], 6);
    assert_eq!(loaded["state"], json(&[&on("state")[..], &[journal]].concat()));
    let verified = json(&[&on("verify")[..], &[journal, "--json"]].concat());
    assert_eq!((&verified["valid"], &verified["turns"]), (&json!(true), &json!(6)));

    let nowhere = run(&[&on("state")[..], &[journal, "--path", "nope"]].concat());
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.err.contains("  session ../tale\n"), "{}", nowhere.err);
    let missing = run(&["world", "state", "nobody", "--journal", journal]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("no such session"), "{}", missing.err);
}

#[test]
fn a_session_of_turns_in_a_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let nothing = run(&["world", "state", "tale", "--journal", path.to_str().unwrap()]);
    assert_eq!(nothing.code, Some(2));
    assert!(!path.exists());
    check_session(path.to_str().unwrap());
    // A byte that changed is named, with nothing that does not help.
    let file = path.join("s-=2E=2E=2Ftale.events.rec");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = run(&["world", "state", "../tale", "--journal", path.to_str().unwrap()]);
    assert_eq!(damaged.code, Some(2));
    assert!(
        damaged.err.contains("events.rec") && !damaged.err.contains("archive"),
        "{}",
        damaged.err
    );
    let batch = run(&["world", "append", "tale", "--journal", "j", "--batch", "2"]);
    assert_eq!(batch.code, Some(2));
}

#[test]
fn a_session_of_turns_on_a_server() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    check_session(&format!("{}/world", server.url()));
}

/// Each turn is worked out after those of the others, however many append.
#[test]
fn programs_append_to_one_session_side_by_side() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    let journal = format!("{}/world", server.url());
    let lines = |who: usize| {
        let line = |n| {
            format!(
                "{{\"type\":\"item_gain\",\"actor\":\"p{who}\",\"data\":{{\"item\":\"i{who}-{n}\"}}}}\n"
            )
        };
        (0..10).map(line).collect::<String>()
    };
    std::thread::scope(|scope| {
        for who in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                let args = ["world", "append", "tale", "--journal", journal];
                let appended = run_with(&args, lines(who));
                assert_eq!(appended.code, Some(0), "{}", appended.err);
            });
        }
    });
    let state = json(&["world", "state", "tale", "--journal", &journal]);
    let mut items: Vec<&str> = state["player"]["inventory"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i.as_str().unwrap())
        .collect();
    items.sort_unstable();
    items.dedup();
    assert_eq!(items.len(), 40);
    let verified = json(&["world", "verify", "tale", "--journal", &journal, "--json"]);
    assert_eq!((&verified["valid"], &verified["turns"]), (&json!(true), &json!(40)));
}

const GAIN: &str = r#"{"actor":"bo","timestamp":7,"events":[{"type":"item_gain","data":{"item":"coin"}}]}
"#;

/// A program that appends line by line what it is given, and so knows the turns that were there when
/// it began.
struct Appending {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    errors: ChildStderr,
}

impl Appending {
    fn start(journal: &str, more: &[&str]) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("afterimage"))
            .args(["world", "append", "tale", "--journal", journal])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (input, errors) = (child.stdin.take(), child.stderr.take().unwrap());
        Self { child, input, lines, errors }
    }

    /// Gives it a line, and waits for its answer.
    fn line(&mut self, line: &str) -> Option<String> {
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        self.lines.next().map(Result::unwrap)
    }

    /// Ends the input; the exit code and standard error.
    fn end(mut self) -> (Option<i32>, String) {
        self.input.take();
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), errors)
    }
}

/// How often the line took effect.
fn gold(journal: &str) -> usize {
    let verified = json(&["world", "verify", "tale", "--journal", journal, "--json"]);
    assert_eq!(verified["valid"], true);
    let items = ["--journal", journal, "--path", "/player/inventory"];
    json(&[&["world", "state", "tale"][..], &items].concat()).as_array().unwrap().len()
}

/// Both know one turn when each appends the same second one, to the last byte.
#[test]
fn equal_turns_of_two_programs_are_both_there() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    let journal = format!("{}/world", server.url());
    let mut first = Appending::start(&journal, &[]);
    assert_eq!(first.line(GAIN).unwrap(), "turn 1");
    let second = run_with(&["world", "append", "tale", "--journal", &journal], GAIN);
    assert_eq!(second.out, "turn 2\n", "{}", second.err);
    assert_eq!(first.line(GAIN).unwrap(), "turn 3");
    assert_eq!(first.end().0, Some(0));
    assert_eq!(gold(&journal), 3);
}

/// Two runs of one input at the same time: each line is there once, and both runs say where.
#[test]
fn two_runs_under_one_name_append_each_line_once() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    let journal = format!("{}/world", server.url());
    let mut first = Appending::start(&journal, &["--id", "load"]);
    assert_eq!(first.line(GAIN).unwrap(), "turn 1");
    let args = ["world", "append", "tale", "--journal", &journal, "--id", "load"];
    let second = run_with(&args, GAIN.repeat(3));
    assert_eq!(second.out, "turn 1\nturn 2\nturn 3\n", "{}", second.err);
    assert!(second.err.contains("not appended again: 1 line"), "{}", second.err);
    assert_eq!(first.line(GAIN).unwrap(), "turn 2");
    assert_eq!(first.line(GAIN).unwrap(), "turn 3");
    assert_eq!(first.line(GAIN).unwrap(), "turn 4");
    assert_eq!(first.end().0, Some(0));
    assert_eq!(gold(&journal), 4);
}

#[test]
fn lines_that_are_given_again_under_their_name_are_there_once() {
    // More than a journal knows the ids of by itself.
    const COUNT: usize = 300;
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let journal = path.to_str().unwrap();
    let append = |more: &[&str], lines: String| {
        let args = [&["world", "append", "tale", "--journal", journal][..], more].concat();
        let run = run_with(&args, lines);
        assert_eq!(run.code, Some(0), "{}", run.err);
        run
    };
    append(&["--id", "load"], GAIN.repeat(COUNT));
    let again = append(&["--id", "load"], GAIN.repeat(COUNT + 1));
    assert_eq!(again.out.lines().next(), Some("turn 1"));
    assert_eq!(again.out.lines().last(), Some("turn 301"));
    assert!(again.err.contains("not appended again: 300 lines"), "{}", again.err);
    assert_eq!(gold(journal), 301);
    // Another name, and none, are other lines; so is another line in the place of one.
    append(&["--id", "loads"], GAIN.to_owned());
    append(&[], GAIN.to_owned());
    append(&[], GAIN.to_owned());
    append(&["--id", "load"], GAIN.replace('7', "8"));
    assert_eq!(gold(journal), 305);
    let lonely = run(&["world", "append", "tale", "--id", "load"]);
    assert_eq!(lonely.code, Some(2));
}

/// The program that began strictly goes on beside one that is lenient, and stays strict itself.
#[test]
fn a_strict_program_goes_on_after_a_lenient_turn_of_another() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    let journal = format!("{}/world", server.url());
    let strange = r#"{"actor":"bo","deltas":[{"target":"player","operation":"set","path":["gold"],"previousValue":70,"newValue":5}]}
"#;
    let mut strict = Appending::start(&journal, &[]);
    assert_eq!(strict.line(GAIN).unwrap(), "turn 1");
    let lenient = ["world", "append", "tale", "--journal", &journal, "--lenient"];
    assert_eq!(run_with(&lenient, strange).out, "turn 2\n");
    assert_eq!(strict.line(GAIN).unwrap(), "turn 3");
    assert_eq!(strict.line(&strange.replace(":5}", ":6}")), None);
    let (code, errors) = strict.end();
    assert_eq!(code, Some(2));
    assert!(errors.contains("standard input") && errors.contains('3'), "{errors}");
    assert_eq!(gold(&journal), 2);
}

#[test]
fn a_session_that_is_removed_under_a_program_ends_it() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    let journal = format!("{}/world", server.url());
    let append = ["world", "append", "tale", "--journal", &journal];
    // Nothing is there now, or more than before.
    for again in [0, 2] {
        let mut program = Appending::start(&journal, &[]);
        assert_eq!(program.line(GAIN).unwrap(), "turn 1");
        assert_eq!(run(&["journal", "rm", &journal, "tale"]).code, Some(0));
        assert_eq!(run_with(&append, GAIN.repeat(again)).code, Some(0));
        assert_eq!(program.line(GAIN), None);
        let (code, errors) = program.end();
        assert_eq!(code, Some(2));
        assert!(errors.contains("it was removed"), "{errors}");
    }
    assert_eq!(gold(&journal), 2);
}

/// Waits until the newest turn of the session has expired.
fn until_gone(runtime: &tokio::runtime::Runtime, server: &nats_server::Server, last: u64) {
    runtime.block_on(async {
        let options = NatsOptions::new(server.url()).named("world").existing();
        let journal = NatsJournal::connect(options).await.unwrap();
        let name = SessionName::new("tale").unwrap();
        while journal.read(&name, last, 1).await.is_ok_and(|events| !events.is_empty()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}

/// What is left of a session is its snapshot.
#[test]
fn a_session_whose_events_have_expired_is_shown_and_removed() {
    if nats_server::program().is_none() {
        return;
    }
    let server = nats_server::Server::start();
    let journal = format!("{}/world", server.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = NatsOptions::new(server.url()).named("world");
        NatsJournal::connect(options.expiring(Duration::from_secs(1))).await.unwrap();
    });
    let args = ["world", "append", "tale", "--journal", &journal];
    assert_eq!(run_with(&args, GAIN.repeat(2)).code, Some(0));
    assert_eq!(run(&["journal", "snapshot", &journal, "tale"]).code, Some(0));
    until_gone(&runtime, &server, 2);
    runtime.block_on(async {
        let options = NatsOptions::new(server.url()).named("world").existing();
        let journal = NatsJournal::connect(options).await.unwrap();
        let name = SessionName::new("tale").unwrap();
        assert_eq!(journal.load::<ReplayedTimeline>(&name).await.unwrap().sequence, 2);
    });
    let loaded = json(&["journal", "load", "--json", &journal, "tale"]);
    assert_eq!((&loaded["sequence"], &loaded["state"]["lastTurn"]), (&json!(2), &json!(2)));
    let state = json(&["world", "state", "tale", "--journal", &journal]);
    assert_eq!(state["player"]["inventory"], json!(["coin", "coin"]));
    let verified = json(&["world", "verify", "tale", "--journal", &journal, "--json"]);
    assert_eq!((&verified["valid"], &verified["turns"]), (&json!(true), &json!(2)));
    assert!(verified["notes"][0].as_str().unwrap().contains("events 1 to 2 are missing"));
    // It goes on from its snapshot.
    let appended = run_with(&args, GAIN);
    assert_eq!(appended.out, "turn 3\n", "{}", appended.err);
    // And that turn expires too, after the newest snapshot.
    until_gone(&runtime, &server, 3);
    let state = ["world", "state", "tale", "--journal", &journal];
    let refused = run(&state);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("event 3 is missing"), "{}", refused.err);
    assert!(refused.err.contains("journal accept-loss"), "{}", refused.err);
    let accepted = run(&["journal", "accept-loss", &journal, "tale"]);
    let expected = "event 3 is lost: it has expired, or been removed\na snapshot after event 3 goes on without them\n";
    assert_eq!(accepted.out, expected, "{}", accepted.err);
    assert_eq!(json(&state)["player"]["inventory"], json!(["coin", "coin"]));
    let again = json(&["journal", "accept-loss", "--json", &journal, "tale"]);
    assert_eq!((&again["sequence"], &again["report"]["lost"]), (&json!(3), &json!([])));
    assert_eq!(run_with(&args, GAIN).out, "turn 4\n");
    let gone = json(&["journal", "rm", "--json", &journal, "tale"]);
    assert_eq!(gone, json!({ "session": "tale", "lastSequence": 4 }));
    assert_eq!(run(&["journal", "load", &journal, "tale"]).code, Some(2));
    assert_eq!(run_with(&args, GAIN).out, "turn 1\n");
}

/// It is named, hides none of the others, and can be removed.
#[test]
fn a_session_that_cannot_be_read() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let journal = path.to_str().unwrap();
    for session in ["bad", "good"] {
        run_with(&["world", "append", session, "--journal", journal], GAIN);
    }
    std::fs::write(path.join("s-bad.events.rec"), "something else altogether, long enough")
        .unwrap();
    let listed = run(&["journal", "ls", "--json", journal]);
    assert_eq!(listed.code, Some(2));
    let lines: Vec<Value> = listed.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(
        lines,
        [json!({ "session": "good", "lastSequence": 1, "snapshot": null, "passedOver": null })]
    );
    assert!(listed.err.contains("s-bad.events.rec"), "{}", listed.err);
    let gone = json(&["journal", "rm", "--json", journal, "bad"]);
    assert_eq!(gone, json!({ "session": "bad", "lastSequence": null }));
    assert_eq!(run(&["journal", "ls", journal]).code, Some(0));
}

/// Files as crashes leave them, and one whose name is lost.
#[test]
fn no_file_hides_the_sessions_of_others() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let journal = path.to_str().unwrap();
    let long = "A".repeat(100);
    for session in ["good", long.as_str()] {
        run_with(&["world", "append", session, "--journal", journal], GAIN.repeat(2));
    }
    std::fs::write(path.join("s-zz.events.rec"), "").unwrap();
    assert_eq!(json_lines(&["journal", "ls", "--json", journal]).len(), 2);
    let token = SessionName::new(long.as_str()).unwrap().token().to_owned();
    let hashed = path.join(format!("s-{token}.events.rec"));
    let mut bytes = std::fs::read(&hashed).unwrap();
    bytes[32 + 36 + 5] ^= 1;
    std::fs::write(&hashed, bytes).unwrap();
    let listed = run(&["journal", "ls", "--json", journal]);
    assert_eq!((listed.code, listed.out.lines().count()), (Some(2), 1), "{}", listed.err);
    assert!(listed.out.contains("good"), "{}", listed.out);
    assert!(
        listed.err.contains(&token) && !listed.err.contains("--input-format"),
        "{}",
        listed.err
    );
    assert_eq!(json(&["journal", "rm", "--json", journal, &token])["session"], token);
    assert_eq!(json_lines(&["journal", "ls", "--json", journal]).len(), 1);
    let appended = run_with(&["world", "append", "zz", "--journal", journal], GAIN);
    assert_eq!(appended.out, "turn 1\n", "{}", appended.err);
}

/// The newest event may be lost with it, so no command passes it over without a word.
#[test]
fn what_a_file_ends_with_is_said_by_every_command() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let journal = path.to_str().unwrap();
    let file = path.join("s-q.events.rec");
    let append = ["world", "append", "q", "--journal", journal];
    assert_eq!(run_with(&append, GAIN.repeat(3)).err, "");
    let sound = std::fs::read(&file).unwrap();
    let mut bytes = sound.clone();
    let last = bytes.windows(4).rposition(|part| part == b"\xfeREC").unwrap();
    bytes[last + 10] ^= 8;
    std::fs::write(&file, &bytes).unwrap();
    for (args, code) in [
        (&["world", "state", "q", "--journal", journal][..], 2),
        (&["world", "log", "q", "--journal", journal], 0),
        (&["journal", "ls", journal], 0),
        (&["journal", "load", journal, "q"], 2),
    ] {
        let run = run(args);
        assert_eq!(run.code, Some(code), "{}", run.err);
        for said in ["ends with a torn tail of", "event 3 was acknowledged and is missing"] {
            assert_eq!(run.err.matches(said).count(), 1, "{args:?}: {}", run.err);
        }
        assert!(run.err.contains("s-q.events.rec"), "{args:?}: {}", run.err);
    }
    let verify = run(&["world", "verify", "q", "--journal", journal, "--json"]);
    let found: Value = serde_json::from_str(&verify.out).unwrap();
    assert_eq!((&found["valid"], &found["turns"]), (&json!(false), &json!(2)));
    let problem = found["problems"][0].as_str().unwrap();
    assert!(problem.contains("event 3 was acknowledged and is missing"), "{found}");
    assert!(found["torn"][0].as_str().unwrap().contains("fails its check"), "{found}");
    assert_eq!((verify.code, verify.err.as_str()), (Some(1), ""));
    // Nothing is appended, and nothing is cut, before the loss is accepted.
    let refused = run_with(&append, GAIN);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    let repaired = run(&["journal", "repair", journal, "q"]);
    assert_eq!(
        repaired.out,
        "accepted as lost: event 3 was acknowledged and is missing: the log ends with event 2\n1 event lost, from event 3 on\nq goes on after event 2\n"
    );
    assert!(repaired.err.contains("it was cut, and its bytes are in"), "{}", repaired.err);
    let again = json(&["journal", "repair", "--json", journal, "q"]);
    assert_eq!((&again["accepted"], &again["lastSequence"]), (&Value::Null, &json!(2)));
    assert_eq!(run_with(&append, GAIN).out, "turn 3\n");
    assert_eq!(run_with(&append, GAIN).err, "");
    // What is removed takes its copies along.
    std::fs::write(&file, &sound[..sound.len() - 1]).unwrap();
    let gone = run(&["journal", "rm", journal, "q"]);
    assert_eq!((gone.code, gone.err.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
}

#[test]
fn a_log_that_was_cut_between_two_events_names_the_command_that_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let journal = path.to_str().unwrap();
    let append = ["world", "append", "q", "--journal", journal];
    assert_eq!(run_with(&append, GAIN.repeat(9)).code, Some(0));
    let file = path.join("s-q.events.rec");
    let bytes = std::fs::read(&file).unwrap();
    let mut starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"\xfeREC"));
    std::fs::write(&file, &bytes[..starts.nth(6).unwrap()]).unwrap();
    for args in [
        &["world", "state", "q", "--journal", journal][..],
        &["journal", "load", journal, "q"],
        &["journal", "snapshot", journal, "q"],
        &["journal", "accept-loss", journal, "q"],
    ] {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(run.err.contains("error: events 6 to 9 are missing"), "{args:?}: {}", run.err);
        let hint = "hint    `afterimage journal repair JOURNAL SESSION`";
        assert!(run.err.contains(hint), "{args:?}: {}", run.err);
        assert!(!run.err.contains("accept-loss"), "{args:?}: {}", run.err);
    }
    let repaired = run(&["journal", "repair", journal, "q"]);
    assert_eq!(repaired.code, Some(0), "{}", repaired.err);
    assert_eq!(run(&["journal", "snapshot", journal, "q"]).code, Some(0));
    assert_eq!(run_with(&append, GAIN).out, "turn 6\n");
}

/// A snapshot has what the log lost: their places are kept, before it and after.
#[test]
fn a_session_of_turns_goes_on_after_the_snapshot_of_what_its_log_lost() {
    let scratch = tempfile::tempdir().unwrap();
    for (cut, missing) in [(7, "events 7 to 9 are missing"), (1, "events 1 to 9 are missing")] {
        let path = scratch.path().join(cut.to_string());
        let journal = path.to_str().unwrap();
        let on = |command: &'static str| ["world", command, "q", "--journal", journal];
        assert_eq!(run_with(&on("append"), GAIN.repeat(9)).code, Some(0));
        assert_eq!(run(&["journal", "snapshot", journal, "q"]).code, Some(0));
        let file = path.join("s-q.events.rec");
        let bytes = std::fs::read(&file).unwrap();
        let mut starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"\xfeREC"));
        std::fs::write(&file, &bytes[..starts.nth(cut).unwrap()]).unwrap();
        let repaired = run(&["journal", "repair", journal, "q"]);
        assert!(repaired.out.ends_with("q goes on after event 9\n"), "{}", repaired.out);

        let check = |turns: u64| {
            let verified = run(&[&on("verify")[..], &["--json"]].concat());
            assert_eq!(verified.code, Some(0), "{}", verified.err);
            let verified: Value = serde_json::from_str(&verified.out).unwrap();
            assert_eq!((&verified["valid"], &verified["turns"]), (&json!(true), &json!(turns)));
            let note = verified["notes"][0].as_str().unwrap();
            assert!(note.starts_with(missing) && note.contains("the loss was accepted"), "{note}");
            let log = run(&[&on("log")[..], &["--json"]].concat());
            assert_eq!(log.code, Some(0), "{}", log.err);
            assert!(log.err.contains(missing), "{}", log.err);
            let shown = log.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let shown: Vec<u64> = shown.map(|turn| turn["turnId"].as_u64().unwrap()).collect();
            assert_eq!(shown, (1..cut as u64).chain(10..=turns).collect::<Vec<_>>());
            let state = json(&on("state"));
            let coins = state["player"]["inventory"].as_array().unwrap().len() as u64;
            assert_eq!(coins, turns);
        };
        check(9);
        for turn in 10..13 {
            let appended = run_with(&on("append"), GAIN);
            assert_eq!(appended.out, format!("turn {turn}\n"), "{}", appended.err);
            check(turn);
        }
        // An earlier state is there as far as the turns before the gap go.
        let early = run(&[&on("state")[..], &["--turn", "3"]].concat());
        assert_eq!(early.code, Some(if cut > 3 { 0 } else { 2 }), "{}", early.err);
        let within = run(&[&on("state")[..], &["--turn", "8"]].concat());
        assert_eq!(within.code, Some(2));
        assert!(within.err.contains(missing), "{}", within.err);
    }
}

/// A snapshot that loads pass over is listed with what is wrong with it, wherever that is.
#[test]
fn ls_says_what_is_wrong_with_a_snapshot() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let journal = path.to_str().unwrap();
    let append = |session: &str, lines: String| {
        let args = ["world", "append", session, "--journal", journal];
        assert_eq!(run_with(&args, lines).code, Some(0));
    };
    for session in ["ahead", "bent", "cut", "good"] {
        append(session, GAIN.repeat(3));
        assert_eq!(run(&["journal", "snapshot", journal, session]).code, Some(0));
    }
    let snapshot = |session: &str| path.join(format!("s-{session}.00000001.snapshot"));
    let mut bytes = std::fs::read(snapshot("bent")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(snapshot("bent"), bytes).unwrap();
    std::fs::write(snapshot("cut"), "{\"kind").unwrap();
    // The log is shorter than it was.
    for name in ["s-ahead.events.rec", "s-ahead.acknowledged"] {
        std::fs::remove_file(path.join(name)).unwrap();
    }
    append("ahead", GAIN.to_owned());
    let lines = json_lines(&["journal", "ls", "--json", journal]);
    let wrong =
        |n: usize| lines[n]["passedOver"]["reason"].as_str().unwrap_or("nothing").to_owned();
    assert!(
        wrong(0).contains("it is ahead of the log") || wrong(0).contains("another log"),
        "{}",
        wrong(0)
    );
    assert_eq!(lines[0]["passedOver"]["afterSequence"], 3);
    assert!(wrong(1).contains("it is damaged: its state fails its check"), "{}", wrong(1));
    assert_eq!(lines[1]["snapshot"]["afterSequence"], 3);
    assert!(wrong(2).contains("it is damaged: its first line is cut"), "{}", wrong(2));
    assert_eq!((&lines[2]["snapshot"], &lines[3]["passedOver"]), (&Value::Null, &Value::Null));
    let page = run(&["journal", "ls", journal]);
    assert_eq!(page.code, Some(0));
    assert_eq!(page.out.matches("  not used: ").count(), 3, "{}", page.out);
    assert!(
        page.out.contains("not used: the snapshot after event 3: it is damaged"),
        "{}",
        page.out
    );
    // A load says the same.
    for (n, session) in ["ahead", "bent", "cut"].iter().enumerate() {
        let loaded = json(&["journal", "load", "--json", journal, session]);
        assert_eq!(loaded["report"]["passedOver"][0], lines[n]["passedOver"]);
    }
}

/// Nothing whole is left of it, and no command says that there is no such session.
#[test]
fn a_session_whose_only_turn_is_torn_is_verified_as_that() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let journal = path.to_str().unwrap();
    assert_eq!(run_with(&["world", "append", "q", "--journal", journal], GAIN).code, Some(0));
    let file = path.join("s-q.events.rec");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 5]).unwrap();
    let page = run(&["world", "verify", "q", "--journal", journal]);
    assert_eq!((page.code, page.err.as_str()), (Some(1), ""));
    assert!(page.out.starts_with("not valid: 0 turns"), "{}", page.out);
    assert!(page.out.contains("event 1 was acknowledged and is missing"), "{}", page.out);
    assert!(page.out.contains("\n  torn tail: "), "{}", page.out);
    assert!(
        page.out.contains("as an append leaves it that did not come to its end"),
        "{}",
        page.out
    );
    assert_eq!(run(&["world", "verify", "nobody", "--journal", journal]).code, Some(2));
}
