//! `afterimage journal` on a directory, and on a server.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails"
)]

#[path = "../../tests/support/nats_server.rs"]
mod nats_server;
mod support;

use afterimage::{
    id::{FacetType, Millis},
    journal::{
        EventId, Expected, Journal, JournalOptions, NatsJournal, NatsOptions, NewEvent, SessionName,
    },
    log::Holder,
    veil::{Facet, FacetOp, Frame, Source},
};
use serde_json::{Value, json};
use support::{run, run_with};

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
        json!({ "session": "../frames", "lastSequence": 3, "snapshot": null }),
        json!({ "session": "stock > 1", "lastSequence": 2, "snapshot": null }),
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
    assert_eq!(refused.code, Some(1));
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
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("no such session"), "{}", missing.err);

    let gone = json(&["journal", "rm", "--json", journal, "../frames"]);
    assert_eq!(gone, json!({ "session": "../frames", "lastSequence": 3 }));
    assert_eq!(json_lines(&["journal", "ls", "--json", journal]).len(), 1);
    assert_eq!(run(&["journal", "rm", journal, "../frames"]).code, Some(1));
}

#[test]
fn a_journal_in_a_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let text = path.to_str().unwrap();
    let nothing = run(&["journal", "ls", text]);
    assert_eq!(nothing.code, Some(1));
    assert!(!path.exists());
    let options = JournalOptions::default();
    let mut journal = Journal::open(&path, &Holder::new("test"), options).unwrap();
    for (session, event) in events() {
        journal.append(&session, Expected::Any, event, Millis::new(0)).unwrap();
    }
    // It is read beside its writer, and not written.
    assert_eq!(json_lines(&["journal", "ls", "--json", text]).len(), 2);
    let locked = run(&["journal", "rm", text, "../frames"]);
    assert_eq!(locked.code, Some(1));
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
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.err.contains("no stream"), "{}", nothing.err);
    runtime.block_on(async {
        let options = NatsOptions::new(server.url()).named("harbour");
        let journal = NatsJournal::connect(options).await.unwrap();
        for (session, event) in events() {
            journal.append(&session, Expected::Any, event, Millis::new(0)).await.unwrap();
        }
    });
    let warned = run(&["journal", "ls", &journal]);
    assert!(warned.err.contains("three replicas"), "{}", warned.err);
    let secret = run(&["journal", "ls", "nats://me:secret@127.0.0.1:1/x"]);
    assert_eq!(secret.code, Some(1));
    assert!(secret.err.contains("can be read by others"), "{}", secret.err);
    check(&journal);
}

const TURNS: &str = r#"{"actor":"player","events":[{"type":"move","data":{"zone":"gate"}}]}
{"actor":"player","deltas":[{"target":"player","operation":"set","path":["hp"],"newValue":9}]}

{"type":"move","actor":"bo","data":{"zone":"inn"}}
"#;

/// What holds of a session of turns in a journal, wherever that is.
fn check_session(journal: &str) {
    let on = |command: &'static str| ["session", command, "../tale", "--journal"];
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
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), "turn 4\n"));
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

    let missing = run(&["session", "state", "nobody", "--journal", journal]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("no such session"), "{}", missing.err);
}

#[test]
fn a_session_of_turns_in_a_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("journal");
    let nothing = run(&["session", "state", "tale", "--journal", path.to_str().unwrap()]);
    assert_eq!(nothing.code, Some(1));
    assert!(!path.exists());
    check_session(path.to_str().unwrap());
    // A byte that changed is named, with nothing that does not help.
    let file = path.join("s-=2E=2E=2Ftale.events.rec");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let damaged = run(&["session", "state", "../tale", "--journal", path.to_str().unwrap()]);
    assert_eq!(damaged.code, Some(1));
    assert!(
        damaged.err.contains("events.rec") && !damaged.err.contains("archive"),
        "{}",
        damaged.err
    );
    let batch = run(&["session", "append", "tale", "--journal", "j", "--batch", "2"]);
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
                let args = ["session", "append", "tale", "--journal", journal];
                let appended = run_with(&args, lines(who));
                assert_eq!(appended.code, Some(0), "{}", appended.err);
            });
        }
    });
    let state = json(&["session", "state", "tale", "--journal", &journal]);
    let mut items: Vec<&str> = state["player"]["inventory"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i.as_str().unwrap())
        .collect();
    items.sort_unstable();
    items.dedup();
    assert_eq!(items.len(), 40);
    let verified = json(&["session", "verify", "tale", "--journal", &journal, "--json"]);
    assert_eq!((&verified["valid"], &verified["turns"]), (&json!(true), &json!(40)));
}
