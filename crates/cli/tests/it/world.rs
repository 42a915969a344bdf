//! `afterimage world`: what a caller sees of a session's life.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use support::{json as json_of, json_lines, out, run, run_with};

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
}

const TURNS: &str = r#"{"turnId":1,"actor":"player","events":[{"eventId":"e-1","type":"move","data":{"zone":"gate"}}]}
{"actor":"player","deltas":[{"target":"player","operation":"set","path":["hp"],"newValue":9,"cause":"rest","eventId":"nowhere"}]}

{"type":"move","actor":"bo","data":{"zone":"inn"}}
"#;

/// As in `afterimage world append … | head -1`.
#[test]
fn all_lines_are_appended_where_nobody_reads_what_is_said_of_them() {
    let scratch = Scratch::new();
    let (dir, journal) = (scratch.path("tale"), scratch.path("journal"));
    out(&["world", "init", &dir]);
    for (session, place) in [(dir.as_str(), &[][..]), ("tale", &["--journal", &journal])] {
        let args = [&["world", "append", session][..], place].concat();
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("afterimage"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut input = child.stdin.take().unwrap();
        input.write_all(TURNS.as_bytes()).unwrap();
        drop(input);
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), &b""[..]), "{session}");
        let verify = [&["world", "verify", session, "--json"][..], place].concat();
        assert_eq!(json_of(&verify)["turns"], 3);
    }
}

#[test]
fn a_session_from_beginning_to_end() {
    let scratch = Scratch::new();
    let dir = scratch.path("tale");
    let made = json_of(&["world", "init", &dir, "--json"]);
    assert_eq!(made, json!({"sessionId": "tale", "directory": dir}));
    let state = json_of(&["world", "state", &dir]);
    assert_eq!(
        state,
        json!({"player":{},"world":{},"scene":{},"npcs":{},"quests":{},"gameTime":{}})
    );
    let appended = run_with(&["world", "append", &dir, "--json"], TURNS);
    assert_eq!((appended.code, appended.err.as_str()), (Some(0), ""));
    assert_eq!(appended.out, "{\"turnId\":1}\n{\"turnId\":2}\n{\"turnId\":3}\n");
    assert_eq!(
        out(&["world", "state", &dir, "--turn", "1", "--path", "/player"]),
        "{\"location\":{\"zone\":\"gate\"}}\n"
    );
    assert_eq!(out(&["world", "state", &dir, "--path", "/player/location/zone"]), "\"inn\"\n");
    let log = json_lines(&["world", "log", &dir, "--json"]);
    assert_eq!(log.len(), 3);
    assert_eq!(log[1]["deltas"][0]["deltaId"], "tale-2-1");
    assert_eq!(log[2]["actor"], "bo");
    let blame = json_of(&["world", "blame", &dir, "/player/hp", "--json"]);
    assert_eq!(
        (&blame["turnId"], &blame["cause"], &blame["eventId"]),
        (&json!(2), &json!("rest"), &json!("nowhere"))
    );
    let diff = json_of(&["world", "diff", &dir, "1", "3", "--json"]);
    assert_eq!(diff.as_array().unwrap().len(), 2);
    let undone = json_of(&["world", "undo", &dir, "--to", "1", "--json"]);
    assert_eq!(undone["turnId"], 4);
    assert_eq!(
        out(&["world", "state", &dir, "--path", "/player"]),
        "{\"location\":{\"zone\":\"gate\"}}\n"
    );
    assert_eq!(json_of(&["world", "redo", &dir, "--json"])["turnId"], 5);
    assert_eq!(
        json_of(&["world", "snapshot", &dir, "--reason", "milestone", "--json"])["snapshotId"],
        "snapshot-5"
    );
    let side = scratch.path("side");
    assert_eq!(json_of(&["world", "branch", &dir, "--at", "2", &side, "--json"])["at"], 2);
    assert_eq!(
        run_with(&["world", "append", &side, "--json"], "{\"type\":\"save\"}\n").out,
        "{\"turnId\":3}\n"
    );
    for dir in [&dir, &side] {
        let found = json_of(&["world", "verify", dir, "--json"]);
        assert_eq!(found["valid"], true, "{found}");
    }
    assert_eq!(json_of(&["world", "prune", &dir, "--dry-run", "--json"])["remove"], json!([]));
    assert_eq!(json_of(&["world", "prune", &dir, "--json"])["remove"], json!([]));
    let stats = json_of(&["world", "stats", &dir, "--json"]);
    assert_eq!((&stats["turns"], &stats["snapshots"]), (&json!(5), &json!(2)));
    for command in [
        &["log"][..],
        &["diff", "0", "5"],
        &["blame", "player/hp"],
        &["stats"],
        &["verify"],
        &["prune", "--dry-run"],
    ] {
        let args: Vec<&str> =
            ["world", command[0], &dir].into_iter().chain(command[1..].iter().copied()).collect();
        assert!(!out(&args).is_empty());
    }
}

#[test]
fn a_line_that_is_refused_is_named_and_what_came_before_it_stays() {
    let scratch = Scratch::new();
    let dir = scratch.path("tale");
    out(&["world", "init", &dir, "--id", "../x"]);
    let drifted = r#"{"deltas":[{"target":"player","operation":"set","path":["hp"],"previousValue":1,"newValue":9}]}"#;
    let run = run_with(
        &["world", "append", &dir, "--json"],
        format!("{{\"actor\":\"a\"}}\n{drifted}\n{{\"actor\":\"c\"}}\n"),
    );
    assert_eq!((run.code, run.out.as_str()), (Some(2), "{\"turnId\":1}\n"));
    assert!(run.err.contains("the state has drifted: expected 1, found nothing"), "{}", run.err);
    assert!(run.err.contains("line    2") && run.err.contains("/player/hp"), "{}", run.err);
    // Leniently it goes on, and says so.
    let run = run_with(&["world", "append", &dir, "--json", "--lenient"], format!("{drifted}\n"));
    assert_eq!((run.code, run.out.as_str()), (Some(0), "{\"turnId\":2}\n"));
    assert!(run.err.contains("the new value was put there"), "{}", run.err);
    assert_eq!(json_of(&["world", "verify", &dir, "--json"])["valid"], true);
    for id in ["", &"x".repeat(10_000)] {
        let refused = support::run(&["world", "init", &scratch.path("other"), "--id", id]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.err.contains("a session id of 1 to 1024 characters"), "{}", refused.err);
    }
}

#[test]
fn a_torn_tail_is_called_what_it_is_and_damage_is_not() {
    let scratch = Scratch::new();
    let dir = scratch.path("tale");
    out(&["world", "init", &dir]);
    assert_eq!(run_with(&["world", "append", &dir], TURNS).code, Some(0));
    let file = Path::new(&dir).join("turns/turns-0001-0050.jsonl");
    let whole = fs::read(&file).unwrap();
    // What an append leaves that did not come to its end: nobody was told of that turn.
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let unfinished = &lines[lines.len() - 1][..40];
    fs::write(&file, [&whole, unfinished].concat()).unwrap();
    let found = json_of(&["world", "verify", &dir, "--json"]);
    assert_eq!((&found["valid"], &found["turns"]), (&json!(true), &json!(3)), "{found}");
    let torn = |found: &Value| found["torn"][0].as_str().unwrap().to_owned();
    assert!(torn(&found).contains("turns-0001-0050.jsonl ends with a torn tail of"), "{found}");
    assert!(
        torn(&found).contains("as an append leaves it that did not come to its end"),
        "{found}"
    );
    let page = out(&["world", "verify", &dir]);
    assert!(page.starts_with("valid: 3 turns, and then a torn tail\n  torn tail: "), "{page}");
    // The last line is whole, and is not what was written: a turn that was acknowledged is gone.
    let mut flipped = whole.clone();
    flipped[whole.len() - 30] ^= 1;
    for damaged in [flipped, whole[..whole.len() - 9].to_vec()] {
        fs::write(&file, &damaged).unwrap();
        let verify = run(&["world", "verify", &dir, "--json"]);
        let found: Value = serde_json::from_str(&verify.out).unwrap();
        let expected = (Some(1), &json!(false), &json!(2));
        assert_eq!((verify.code, &found["valid"], &found["turns"]), expected, "{found}");
        assert!(torn(&found).contains("torn tail of"), "{found}");
        let problem = found["problems"][0].as_str().unwrap();
        assert!(problem.starts_with("turn 3 was acknowledged and is missing"), "{found}");
    }
    let mut flipped = whole.clone();
    flipped[30] ^= 1;
    fs::write(&file, &flipped).unwrap();
    let run = run(&["world", "verify", &dir, "--json"]);
    assert_eq!(run.code, Some(1));
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["valid"], false);
    // One finding, and what follows from it.
    assert_eq!(found["problems"].as_array().unwrap().len(), 1, "{found}");
    let problem = found["problems"][0].as_str().unwrap();
    assert!(problem.contains("turns-0001-0050.jsonl, line 1"), "{problem}");
    let follows = "turn 1 is lost, and without it the turns up to 3 cannot be replayed";
    assert_eq!(found["follows"], json!([follows]));
    let page = support::run(&["world", "verify", &dir]).out;
    assert!(page.contains(&format!("\n  follows: {follows}\n")), "{page}");
    let refused = support::run(&["world", "state", &dir]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("line    1"), "{}", refused.err);
    let repaired = json_of(&["world", "repair", &dir, "--json"]);
    assert_eq!(repaired["turns"], 3, "{repaired}");
    assert_eq!(json_of(&["world", "verify", &dir, "--json"])["valid"], true);
    fs::write(Path::new(&dir).join("turns/turns-0051-0100.jsonl"), "").unwrap();
    assert_eq!(support::run(&["world", "verify", &dir]).code, Some(1));
}

#[test]
fn a_session_whose_last_file_is_gone_takes_no_turn_until_repair_says_what_is_lost() {
    let scratch = Scratch::new();
    let dir = scratch.path("tale");
    out(&["world", "init", &dir]);
    let turn = "{\"type\":\"move\",\"actor\":\"bo\",\"data\":{\"zone\":\"inn\"}}\n";
    let append = |count: usize| run_with(&["world", "append", &dir], turn.repeat(count));
    assert_eq!(append(90).out.lines().count(), 90);
    fs::remove_file(Path::new(&dir).join("turns/turns-0051-0100.jsonl")).unwrap();
    let verified = run(&["world", "verify", &dir]);
    assert_eq!(verified.code, Some(1));
    assert!(
        verified.out.starts_with("not valid: 50 turns\n  problem: turns 51 to 90 were acknowledged and are missing: the log ends with turn 50"),
        "{}",
        verified.out
    );
    let refused = append(1);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.contains("turns 51 to 90 were acknowledged"), "{}", refused.err);
    assert!(refused.err.contains("`world repair DIR`"), "{}", refused.err);
    let read = run(&["world", "state", &dir]);
    assert_eq!(read.code, Some(0));
    assert!(read.err.starts_with("note: turns 51 to 90 were acknowledged"), "{}", read.err);
    let repaired = out(&["world", "repair", &dir]);
    let head = "50 turns, 40 lost\n  0 filled in, 40 accepted as lost at the end\n";
    assert!(repaired.starts_with(head), "{repaired}");
    assert!(
        repaired.contains("accepted: turns 51 to 90 were acknowledged and are missing"),
        "{repaired}"
    );
    assert!(repaired.contains("current.json.damaged-1"), "{repaired}");
    assert_eq!(append(1).out, "turn 51\n");
    assert_eq!(json_of(&["world", "verify", &dir, "--json"])["valid"], true);
}

#[test]
fn a_lone_surrogate_refuses_no_state_turn_or_recording_and_is_said() {
    let scratch = Scratch::new();
    let note = "note: 1 escape is half of a surrogate pair, read as U+FFFD\n";
    let state = scratch.path("state.json");
    fs::write(&state, r#"{"player":{"name":"cut: \ud83d"}}"#).unwrap();
    let (dir, journal) = (scratch.path("tale"), scratch.path("journal"));
    let init = run(&["world", "init", &dir, "--state", &state]);
    assert_eq!((init.code, init.err.as_str()), (Some(0), note));
    let turns = concat!(
        r#"{"type":"move","actor":"bo","data":{"zone":"a \ud83d"}}"#,
        "\n",
        r#"{"type":"move","actor":"bo","data":{"zone":"b \ude00\ude00"}}"#,
        "\n"
    );
    let noted = note.replace("1 escape is", "3 escapes are");
    for args in [&["world", "append", &dir][..], &["world", "append", "q", "--journal", &journal]] {
        let append = run_with(args, turns);
        assert_eq!((append.code, append.err.as_str()), (Some(0), noted.as_str()));
    }
    let player = &json_of(&["world", "state", &dir])["player"];
    assert_eq!(
        (&player["name"], &player["location"]["zone"]),
        (&json!("cut: \u{fffd}"), &json!("b \u{fffd}\u{fffd}"))
    );
    // What another program wrote.
    let other = scratch.path("other");
    fs::create_dir_all(Path::new(&other).join("turns")).unwrap();
    let turn = r#"{"turnId":1,"sessionId":"o","actor":"bo \ud83d","events":[],"deltas":[]}"#;
    fs::write(Path::new(&other).join("turns/turns-0001-0050.jsonl"), turn).unwrap();
    fs::write(Path::new(&other).join("player.state.json"), r#"{"name":"\ude00"}"#).unwrap();
    let log = run(&["world", "log", &other]);
    assert_eq!(log.code, Some(0), "{}", log.err);
    assert!(log.err.contains(&note.replace("1 escape is", "2 escapes are")), "{}", log.err);
}

#[test]
fn what_is_no_session_is_refused() {
    let scratch = Scratch::new();
    let nothing = scratch.path("nothing");
    for command in ["state", "verify", "log", "stats", "repair"] {
        let run = support::run(&["world", command, &nothing]);
        assert_eq!(run.code, Some(2), "{command}");
        assert!(run.err.starts_with("error: "), "{}", run.err);
    }
    let dir = scratch.path("tale");
    out(&["world", "init", &dir]);
    assert!(support::run(&["world", "init", &dir]).err.contains("a session is there already"));
    assert_eq!(support::run(&["world", "state", &dir, "--turn", "9"]).code, Some(2));
    assert_eq!(support::run(&["world", "snapshot", &dir, "--reason", "whim"]).code, Some(2));
}

#[test]
fn recordings_of_another_program_are_read() {
    let folder = support::root().join("../shared/data/E-state/llmrpg/simple-test-1764195426788");
    if !folder.is_dir() {
        assert!(std::env::var_os("AFTERIMAGE_REQUIRE_DATA").is_none());
        eprintln!("skipped: the recordings are not at ../shared/data");
        return;
    }
    let folder = folder.to_str().unwrap();
    let log = run(&["world", "log", folder, "--json"]);
    assert_eq!((log.code, log.out.lines().count()), (Some(0), 16));
    assert_eq!(run(&["world", "state", folder]).code, Some(0));
    let stats = run(&["world", "stats", folder, "--json"]);
    let stats: Value = serde_json::from_str(&stats.out).unwrap();
    let deltas: usize = log
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["deltas"].as_array().unwrap().len()
        })
        .sum();
    assert!(deltas > 0);
    assert_eq!(stats["deltas"], deltas);
    // It is another program's: read, and not changed.
    let append = run_with(&["world", "append", folder], "{}\n");
    assert_eq!(append.code, Some(2));
    assert!(append.err.contains("which can be read and not changed"), "{}", append.err);
    assert!(!append.err.contains("hint"), "{}", append.err);
    let verify = run(&["world", "verify", folder, "--json"]);
    let found: Value = serde_json::from_str(&verify.out).unwrap();
    assert_eq!(found["turns"], 16);
    assert_eq!(verify.code, Some(i32::from(found["valid"] == false)));
    // Each break says where in the state it is.
    for problem in found["problems"].as_array().unwrap() {
        let problem = problem.as_str().unwrap();
        assert!(problem.contains("at \"/") && !problem.contains("\"/newValue\""), "{problem}");
    }
}

#[test]
fn documents_longer_than_256_mib_are_refused_without_reading_them() {
    let scratch = Scratch::new();
    let (dir, file) = (scratch.path("tale"), scratch.path("long.json"));
    // No room is taken on the disk.
    fs::File::create(&file).unwrap().set_len(20 << 30).unwrap();
    for option in ["--state", "--config"] {
        let refused = run(&["world", "init", &dir, option, &file]);
        assert_eq!(refused.code, Some(2));
        assert!(refused.err.contains("expected an input of at most 256 MiB"), "{}", refused.err);
        assert!(refused.err.contains("long.json"), "{}", refused.err);
    }
    let refused = run(&["diff", &file, &file]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("expected an input of at most 256 MiB"), "{}", refused.err);
    out(&["world", "init", &dir]);
    let long = run(&["world", "append", &dir, &file]);
    assert_eq!(long.code, Some(2));
    assert!(long.err.contains("expected a line of at most 256 MiB, found more"), "{}", long.err);
    assert!(long.err.contains("line    1"), "{}", long.err);
}

#[test]
fn what_a_session_cannot_begin_with_is_refused() {
    let scratch = Scratch::new();
    let (dir, file) = (scratch.path("tale"), scratch.path("file.json"));
    for (option, text, expected) in [
        ("--state", "[1]", "expected a state (an object), found an array"),
        (
            "--config",
            "{\"snapshotIntervall\":5}",
            "unknown member \"snapshotIntervall\": expected one of snapshotInterval, ",
        ),
        ("--config", "{\"snapshotInterval\":-5}", "expected an integer from zero, found -5"),
        ("--config", "[]", "expected a configuration (an object), found an array"),
    ] {
        fs::write(&file, text).unwrap();
        let run = support::run(&["world", "init", &dir, option, &file]);
        assert_eq!(run.code, Some(2), "{text}");
        assert!(run.err.contains(expected), "{}", run.err);
        assert!(!Path::new(&dir).exists());
    }
    fs::write(&file, "{\"snapshotInterval\":2}").unwrap();
    out(&["world", "init", &dir, "--config", &file]);
}

#[test]
fn a_configured_batch_is_appended_as_one_and_a_flag_counts_more() {
    let scratch = Scratch::new();
    let (dir, file) = (scratch.path("tale"), scratch.path("config.json"));
    fs::write(&file, r#"{"deltaBatchSize":2,"limits":{"maxSnapshots":3},"snapshotInterval":1}"#)
        .unwrap();
    out(&["world", "init", &dir, "--config", &file]);
    for args in [&[][..], &["--batch", "1"]] {
        let args = [&["world", "append", &dir, "--json"][..], args].concat();
        let appended = run_with(&args, "{\"actor\":\"a\"}\n".repeat(3));
        assert_eq!((appended.code, appended.out.lines().count()), (Some(0), 3));
    }
    let stats = json_of(&["world", "stats", &dir, "--json"]);
    assert_eq!((&stats["turns"], &stats["snapshots"]), (&json!(6), &json!(3)));
    assert_eq!(json_of(&["world", "verify", &dir, "--json"])["valid"], true);
}

#[test]
fn a_branch_moves_with_the_session_that_it_came_from() {
    let scratch = Scratch::new();
    let (main, side) = (scratch.path("here/main"), scratch.path("here/sides/side"));
    fs::create_dir_all(scratch.path("here/sides")).unwrap();
    out(&["world", "init", &main]);
    assert_eq!(run_with(&["world", "append", &main], TURNS.lines().nth(1).unwrap()).code, Some(0));
    out(&["world", "branch", &main, &side, "--at", "1"]);
    fs::rename(scratch.path("here"), scratch.path("there")).unwrap();
    let side = scratch.path("there/sides/side");
    assert_eq!(out(&["world", "state", &side, "--path", "/player/hp"]), "9\n");
    let meta = fs::read_to_string(Path::new(&side).join("session.meta.json")).unwrap();
    assert!(meta.contains(r#""directory":"../../main""#), "{meta}");
}

#[test]
fn advice_is_of_sessions() {
    let scratch = Scratch::new();
    let dir = scratch.path("tale");
    out(&["world", "init", &dir]);
    let run = run_with(&["world", "append", &dir], "{\"actor\":\"a\"}\nnot json\n");
    assert!(run.err.contains("line    2") && !run.err.contains("hint"), "{}", run.err);
    let nothing = support::run(&["world", "state", &scratch.path("nothing")]);
    assert!(!nothing.err.contains("hint"), "{}", nothing.err);
    let lines = "{\"actor\":\"a\"}\n".repeat(3);
    run_with(&["world", "append", &dir], lines);
    let path = Path::new(&dir).join("turns/turns-0001-0050.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"actor\":\"a\"", "\"actor\":\"b\"", 1)).unwrap();
    let damaged = support::run(&["world", "state", &dir]);
    assert_eq!(damaged.code, Some(2));
    assert!(damaged.err.contains("`world repair DIR`"), "{}", damaged.err);
}

/// A snapshot that says something else than the turns, and is sealed as if it were right.
#[test]
fn a_state_that_drifted_is_recovered_on_request() {
    let scratch = Scratch::new();
    let dir = scratch.path("tale");
    out(&["world", "init", &dir]);
    let moved = "{\"type\":\"move\",\"data\":{\"zone\":\"gate\"}}\n";
    run_with(&["world", "append", &dir], moved);
    out(&["world", "snapshot", &dir]);
    let path = Path::new(&dir).join("snapshots/snapshot-0001.json.zst");
    let (packed, error) = afterimage::log::unpack_file(&fs::read(&path).unwrap(), 1 << 20);
    assert!(error.is_none());
    let sealed = String::from_utf8(packed).unwrap();
    let body = afterimage::log::line::open(sealed.trim_end()).unwrap();
    let mut snapshot = afterimage::timeline::StateSnapshot::from_json(
        afterimage::json::read(body.as_bytes()).unwrap(),
    )
    .unwrap();
    let other = afterimage::json::read(br#"{"location":{"zone":"moon"}}"#).unwrap();
    let afterimage::timeline::Data::Object(state) = &mut snapshot.state else { panic!() };
    state.insert("player", other);
    let text = afterimage::log::line::seal(&snapshot.to_json().to_string()).unwrap() + "\n";
    fs::write(&path, afterimage::log::pack_file(text.as_bytes()).unwrap()).unwrap();

    let found = run(&["world", "verify", &dir, "--json"]);
    assert_eq!(found.code, Some(1));
    let found: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(
        found["differences"][0],
        json!({"turnId": 1, "path": "/player/location/zone", "expected": "gate", "found": "moon"})
    );
    assert!(found["suggestion"].as_str().unwrap().contains("recovery snapshot"));
    let recovered = run(&["world", "verify", &dir, "--json", "--recover"]);
    assert_eq!(recovered.code, Some(0), "{}", recovered.err);
    let recovered: Value = serde_json::from_str(&recovered.out).unwrap();
    assert_eq!((&recovered["valid"], &recovered["differences"]), (&json!(true), &json!([])));
    let notes = recovered["notes"].to_string();
    assert!(notes.contains("expected \\\"gate\\\", found \\\"moon\\\""), "{notes}");
    assert!(notes.contains("the recovery snapshot is that of turn 1"), "{notes}");
    assert_eq!(out(&["world", "state", &dir, "--path", "/player/location/zone"]), "\"gate\"\n");
    assert_eq!(json_of(&["world", "verify", &dir, "--json"])["valid"], true);
    let kept = path.with_file_name("snapshot-0001.json.zst.damaged-1");
    assert!(kept.exists());
}
