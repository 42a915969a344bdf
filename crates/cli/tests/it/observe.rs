//! `afterimage observe`: what tools told, in a database.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::support;

use std::path::Path;

use serde_json::Value;
use support::{Run, run, run_with};

/// A database, and the program on it at noon of a day.
struct Db(tempfile::TempDir);

impl Db {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> String {
        self.0.path().join("state.db").to_str().unwrap().to_owned()
    }

    fn run(&self, args: &[&str], input: &str) -> Run {
        let path = self.path();
        let before =
            ["observe", "--db", &path, "--now", "2026-03-01T12:00:00Z", "--policy", POLICY];
        run_with(&[&before, args].concat(), input)
    }

    /// As `run`, with no policy but the default.
    fn run_by_default(&self, args: &[&str], input: &str) -> Run {
        run_with(&[&["observe", "--db", &self.path()], args].concat(), input)
    }

    #[track_caller]
    fn out(&self, args: &[&str], input: &str) -> String {
        let Run { code, out, err } = self.run(args, input);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}: {out}");
        out
    }

    fn json(&self, args: &[&str], input: &str) -> Value {
        serde_json::from_str(&self.out(&[args, &["--json"]].concat(), input)).unwrap()
    }

    /// A status at tick 40, and a galaxy of three systems.
    fn filled() -> Self {
        let db = Self::new();
        db.out(&["put", "--account", "Ada", "--tool", "get_status"], STATUS);
        db.out(&["put", "--account", "Ada", "--tool", "get_map", "--tick", "41"], MAP);
        db
    }
}

/// The policy of the examples, from the root of the workspace.
const POLICY: &str = "examples/policies/spacemolt.toml";
const STATUS: &str = "{\"player\":{\"username\":\"Ada\",\"credits\":5000},\"location\":{\"docked\":true},\"current_tick\":40}";
const MAP: &str = "{\"systems\":[{\"id\":\"sol\"},{\"id\":\"vega\"},{\"id\":\"altair\"}]}";

#[test]
fn what_was_put_is_summed_up() {
    let db = Db::filled();
    let summary = db.out(&["summary", "--account", "Ada", "--tick", "42"], "");
    let expected = "## Current Game State\n\n**Account:** Ada\n**Last Updated:** 1 tick ago (10 seconds)\n\n\
                    ### Status (get_status - 2 ticks ago)\n\n- Credits: 5,000\n- Location docked: Yes\n\n\
                    ### Map (get_map - 1 tick ago)\n\n- 3 systems cached\n- Use get_map to refresh full galaxy data\n\n\
                    **Note:** Call get_notifications to see events since last update.\n";
    assert_eq!(summary, expected);
    let json = db.json(&["summary", "--account", "Ada", "--tokens", "40"], "");
    assert!(json["tokens"].as_u64().unwrap() <= 40);
    assert_eq!(json["account"], "Ada");
    assert_eq!(
        db.out(&["summary", "--account", "Nobody"], ""),
        "Not logged in. Use register or login.\n"
    );
}

#[test]
fn put_says_what_came_of_it() {
    let db = Db::filled();
    let put = |tool: &str, input: &str| db.out(&["put", "--account", "Ada", "--tool", tool], input);
    assert_eq!(put("get_status", STATUS), "kept get_status: unchanged since tick 40\n");
    assert_eq!(
        put("get_status", &STATUS.replace("5000", "4000")),
        "kept get_status: 1 path changed\n"
    );
    assert_eq!(put("travel", "{}"), "stale: get_status#/location\n");
    assert_eq!(
        put("get_notifications", "{\"player\":{\"credits\":1}}"),
        "merged into get_status: 1 path changed\n"
    );
    assert_eq!(
        put("get_status", "Error: not docked"),
        "set aside, and get_status stays as it was: the call failed\n"
    );
    assert_eq!(
        put("get_ship", "Error: no"),
        "set aside, and nothing is known of get_ship yet: the call failed\n"
    );
    assert_eq!(put("dance", "{}"), "not kept: the policy says nothing of dance\n");
    let json = db.json(&["put", "--account", "Ada", "--tool", "travel"], "{}");
    assert_eq!(json["stale"], serde_json::json!(["get_status#/location"]));
    let read = ["put", "--account", "Ada", "--tool", "read", "--arguments", "{\"a\":1}"];
    assert_eq!(db.run_by_default(&read, "text").out, "kept read {\"a\":1}: new\n");
}

#[test]
fn get_has_the_whole_payload_and_parts_of_it() {
    let db = Db::filled();
    assert_eq!(db.out(&["get", "--account", "Ada", "--tool", "get_map"], ""), format!("{MAP}\n"));
    let part = ["get", "--account", "Ada", "--tool", "get_status", "--path", "/player/credits"];
    assert_eq!(db.out(&part, ""), "5000\n");
    let json = db.json(&part, "");
    assert_eq!((&json["content"], &json["seen"]["tick"]), (&5000.into(), &40.into()));
    assert_eq!(json["seen"]["at"], 1_772_366_400_000_u64);
    let run = db.run(&["get", "--account", "Ada", "--tool", "get_ship"], "");
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("nothing is known of \"get_ship\""), "{}", run.err);
}

#[test]
fn what_would_overwrite_good_data_is_set_aside_and_told() {
    let db = Db::filled();
    let put = |input: &str| db.out(&["put", "--account", "Ada", "--tool", "get_status"], input);
    let late = STATUS.replace("40}", "30}").replace("5000", "1");
    for (input, why) in [
        ("", "the answer is empty"),
        ("Rate limited, try again in 5 s", "the call failed"),
        (
            late.as_str(),
            "the answer is older than what is known; where the known tick is wrong, \
             `afterimage observe accept` takes the answer",
        ),
        ("{\"queue\":{}}", "the answer has another shape than what is known"),
    ] {
        assert_eq!(put(input), format!("set aside, and get_status stays as it was: {why}\n"));
    }
    let summary = db.out(&["summary", "--account", "Ada", "--tick", "42"], "");
    let told = "- Not updated (4 times, the last just now): the answer had another shape: ";
    assert!(summary.contains(told) && summary.contains("- Credits: 5,000\n"), "{summary}");
    let stale = db.out(&["stale", "--account", "Ada", "--tick", "42"], "");
    assert!(stale.contains("not updated (just now): the answer"), "{stale}");
    let json = db.json(&["stale", "--account", "Ada"], "");
    assert_eq!(
        (&json["aside"]["reason"], &json["aside"]["count"]),
        (&"other_shape".into(), &4.into())
    );
    let stats = db.json(&["stats"], "");
    let status = &stats["tools"].as_array().unwrap()[1];
    let figures = ["failed", "older", "empty", "otherShape"].map(|name| status[name].as_u64());
    assert_eq!(figures, [Some(1); 4], "{status}");
    // What was set aside can be looked at, and accepted.
    let of_status = ["--account", "Ada", "--tool", "get_status"];
    let aside = ["get", "--aside", "--account", "Ada", "--tool", "get_status"];
    assert_eq!(db.out(&aside, ""), "{\"queue\":{}}\n");
    let accepted = db.out(&[&["accept"], &of_status[..]].concat(), "");
    assert_eq!(accepted, "kept get_status: 3 paths changed\n");
    let run = db.run(&[&["accept"], &of_status[..]].concat(), "");
    refused(&run, 2, "no answer was set aside for \"get_status\"");
    refused(&db.run(&aside, ""), 2, "no answer was set aside");
}

#[test]
fn before_a_call_the_exit_code_says_whether_it_can_be_spared() {
    let db = Db::filled();
    let fresh = |tool: &str, tick: &str| {
        let run = db.run(&["fresh", "--account", "Ada", "--tool", tool, "--tick", tick], "");
        assert_eq!(run.err, "");
        (run.code, run.out)
    };
    let known = "get_map: known, 3 ticks old, fresh enough.\n";
    assert_eq!(fresh("get_map", "44"), (Some(0), known.to_owned()));
    let old = "get_map: known, 59 ticks old; it counts as old from 50 ticks on. Call it.\n";
    assert_eq!(fresh("get_map", "100"), (Some(1), old.to_owned()));
    assert_eq!(fresh("get_ship", "44"), (Some(1), "get_ship: not known. Call it.\n".to_owned()));
    let within = ["fresh", "--account", "Ada", "--tool", "get_map", "--tick", "44"];
    let run = db.run(&[&within[..], &["--within", "2", "--json"]].concat(), "");
    let json: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (run.code, &json["verdict"], &json["fresh"]),
        (Some(1), &"old".into(), &false.into())
    );
    let stats = db.out(&["stats"], "");
    assert!(stats.contains("1 of 4 calls that were asked about could be spared\n"), "{stats}");
}

#[test]
fn put_for_one_account_never_files_under_another() {
    let db = Db::filled();
    let bob = STATUS.replace("Ada", "Bob").replace("40}", "41}");
    let run = db.run(&["put", "--account", "Ada", "--tool", "get_status"], &bob);
    refused(&run, 2, "the answer of get_status names the account \"Bob\", the call names \"Ada\"");
    assert_eq!(db.json(&["accounts"], "")["account"], "Ada");
    assert!(db.out(&["get", "--account", "Ada", "--tool", "get_status"], "").contains("Ada"));
}

#[test]
fn an_action_of_another_account_is_refused_and_makes_nothing_stale() {
    let db = Db::filled();
    let put = ["put", "--account", "Ada", "--tool", "travel"];
    let run = db.run(&put, "{\"player\":{\"username\":\"Bob\"}}");
    refused(&run, 2, "the answer of travel names the account \"Bob\", the call names \"Ada\"");
    assert_eq!(db.out(&["stale", "--account", "Ada"], ""), "nothing is stale\n");
    db.out(&put, "{\"player\":{\"username\":\"Ada\"}}");
    assert!(db.out(&["stale", "--account", "Ada"], "").contains("/location since travel"));
}

#[test]
fn put_says_which_escapes_it_mended() {
    let db = Db::new();
    let put = ["put", "--account", "Ada", "--tool", "look"];
    let run = db.run_by_default(&put, "{\"a\":\"\\ud83d\"}");
    assert_eq!((run.code, run.out.as_str()), (Some(0), "kept look: new\n"));
    let told = "note: standard input: 1 escape is half of a surrogate pair, read as U+FFFD\n";
    assert_eq!(run.err, told);
}

#[cfg(unix)]
#[test]
fn a_database_that_is_no_regular_file_is_refused_at_once() {
    use std::{os::unix::fs::symlink, process::Command, time::Duration};
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let ask = |db: &str, args: &[&str]| {
        let args = [&["observe", "--db", db], args].concat();
        let mut command = support::afterimage(&args);
        let output = command.timeout(Duration::from_secs(20)).write_stdin(MAP).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let put = ["put", "--account", "Ada", "--tool", "get_map"];
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    symlink(at("pipe"), at("to_pipe")).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    for (name, what) in [
        (at("pipe"), "a pipe, a socket or a device"),
        (at("to_pipe"), "a pipe, a socket or a device"),
        ("/dev/null".to_owned(), "a pipe, a socket or a device"),
        (at("folder"), "a directory"),
    ] {
        for args in [&put[..], &["accounts"]] {
            let (code, err) = ask(&name, args);
            assert_eq!(code, Some(2), "{name}: {err}");
            let told = format!("expected a database file, found {what}");
            assert!(err.contains(&told) && err.contains(&name), "{err}");
        }
    }
    // A link to a database is the choice of who names it.
    assert_eq!(ask(&at("state.db"), &put).0, Some(0));
    symlink(at("state.db"), at("link")).unwrap();
    assert_eq!(ask(&at("link"), &["accounts"]), (Some(0), String::new()));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_as_a_transcript_and_refused_as_a_policy_or_a_document() {
    use std::{os::unix::fs::symlink, process::Command, time::Duration};
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let pipe = at("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for args in [
        &["observe", "--db", &at("state.db"), "--policy", &pipe, "accounts"][..],
        &["checkpoint", "lint", &pipe],
    ] {
        let mut command = support::afterimage(args);
        let output = command.timeout(Duration::from_secs(20)).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains("only regular files are opened"), "{args:?}: {err}");
    }
    // Who links a policy means what the link leads to.
    symlink(std::fs::canonicalize("../../examples/policies/spacemolt.toml").unwrap(), at("linked"))
        .unwrap();
    let linked = at("linked");
    let db = at("state.db");
    let put = [
        "observe",
        "--db",
        &db,
        "--policy",
        &linked,
        "put",
        "--account",
        "Ada",
        "--tool",
        "get_map",
    ];
    assert_eq!(run_with(&put, MAP).code, Some(0));
    let chat = "[{\"role\":\"user\",\"content\":\"Which ships?\"}]";
    let (writer, to) = (pipe.clone(), chat.to_owned());
    let writer = std::thread::spawn(move || std::fs::write(writer, to));
    let mut command = support::afterimage(&["observe", "replay", "--json", &pipe]);
    let output = command.timeout(Duration::from_secs(20)).output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_command_releases_an_account() {
    use afterimage::observe::{Moment, Observations, Policy};
    let db = Db::filled();
    let login = |agent: &str| {
        let observations = Observations::open(db.path(), Policy::default()).unwrap();
        observations.login(agent, "Ada", Moment::default())
    };
    login("run-1").unwrap();
    assert!(login("run-2").is_err());
    assert_eq!(db.out(&["release", "--account", "Ada"], ""), "released Ada from run-1\n");
    assert_eq!(db.out(&["release", "--account", "Ada"], ""), "nobody has Ada\n");
    login("run-2").unwrap();
    assert_eq!(db.json(&["release", "--agent", "run-2"], "")["account"], "Ada");
    assert_eq!(db.out(&["release", "--agent", "run-2"], ""), "the agent has no account\n");
    refused(&db.run(&["release", "--account", "Cy"], ""), 2, "expected an account that is known");
    refused(&db.run(&["release"], ""), 2, "--account");
}

#[test]
fn a_policy_that_misses_a_value_is_told() {
    let db = Db::new();
    let put = ["put", "--account", "Ada", "--tool", "get_ship"];
    let said = db.out(&put, "{\"ship\":{\"hull\":85},\"current_tick\":1}");
    assert_eq!(said, "kept get_ship: new\nmissing in get_ship: Hull: nothing at /ship/max_hull\n");
    assert!(db.out(&["summary", "--account", "Ada"], "").contains("- Hull: 85/unknown\n"));
}

#[cfg(unix)]
#[test]
fn a_database_that_cannot_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let db = Db::filled();
    let folder = std::path::PathBuf::from(db.path());
    let seal = |file: u32, directory: u32| {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(file)).unwrap();
        let directory = std::fs::Permissions::from_mode(directory);
        std::fs::set_permissions(folder.parent().unwrap(), directory).unwrap();
    };
    seal(0o444, 0o555);
    let run = db.run(&["summary", "--account", "Ada", "--tick", "42"], "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.contains("- Credits: 5,000\n"), "{}", run.out);
    assert_eq!(db.run(&["fresh", "--account", "Ada", "--tool", "get_map"], "").code, Some(0));
    assert!(db.run(&["accounts"], "").out.contains("Ada"));
    seal(0o644, 0o755);
}

#[test]
fn stale_accounts_clear_and_stats() {
    let db = Db::filled();
    assert_eq!(db.out(&["stale", "--account", "Ada"], ""), "nothing is stale\n");
    db.out(&["put", "--account", "Ada", "--tool", "travel", "--tick", "43"], "{}");
    let stale = db.out(&["stale", "--account", "Ada", "--tick", "95"], "");
    assert!(stale.contains("/location since travel (52 ticks a"), "{stale}");
    assert!(stale.contains("get_map"), "{stale}");
    let stale = db.json(&["stale", "--account", "Ada", "--tick", "45"], "");
    assert_eq!((&stale["name"], &stale["old"]), (&"get_status".into(), &false.into()));
    let accounts = db.json(&["accounts"], "");
    assert_eq!((&accounts["account"], &accounts["latest"]["tick"]), (&"Ada".into(), &43.into()));
    assert!(db.out(&["accounts"], "").contains("Ada"));
    db.out(&["summary", "--account", "Ada"], "");
    let stats = db.json(&["stats"], "");
    assert_eq!(stats["tools"].as_array().unwrap().len(), 3);
    assert_eq!(stats["summaries"]["contexts"], 1);
    assert!(db.out(&["stats"], "").contains("1 summaries"));
    let clear = ["clear", "--account", "Ada", "--tool", "get_map"];
    assert_eq!(db.out(&clear, ""), "forgot 1 observation\n");
    assert_eq!(db.json(&["clear", "--account", "Ada"], "")["forgotten"], 1);
    assert_eq!(db.out(&["clear", "--account", "Ada"], ""), "forgot 0 observations\n");
}

#[test]
fn accounts_counts_what_can_be_read_and_tells_what_is_damaged() {
    let db = Db::filled();
    let bytes = std::fs::read(db.path()).unwrap();
    let at = bytes.windows(6).position(|window| window == b"altair").unwrap();
    let mut damaged = bytes.clone();
    damaged[at] = b'X';
    std::fs::write(db.path(), damaged).unwrap();
    let run = db.run(&["accounts"], "");
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.err.contains("Ada, get_map: the payload of "), "{}", run.err);
    let json: Value = serde_json::from_str(&db.run(&["accounts", "--json"], "").out).unwrap();
    assert_eq!((&json["bytes"], &json["damaged"]), (&STATUS.len().into(), &true.into()));
}

#[test]
fn a_first_answer_that_is_no_answer_makes_no_call_skippable() {
    for (input, why) in [
        ("", "the answer is empty"),
        ("null", "the answer is empty"),
        ("{}", "the answer is empty"),
        ("{\"error\":\"x\"}", "the call failed"),
        ("<html>502</html>", "the call failed"),
    ] {
        let db = Db::new();
        let put = db.run_by_default(&["put", "--account", "Ada", "--tool", "look"], input);
        assert_eq!(put.out, format!("set aside, and nothing is known of look yet: {why}\n"));
        let fresh = db.run_by_default(&["fresh", "--account", "Ada", "--tool", "look"], "");
        assert_eq!(fresh.code, Some(1), "{input}");
        assert!(fresh.out.starts_with("look: there is no usable answer yet."), "{}", fresh.out);
        let summary = db.run_by_default(&["summary", "--account", "Ada"], "");
        assert!(summary.out.contains("No usable answer yet"), "{}", summary.out);
    }
}

#[track_caller]
fn refused(run: &Run, code: i32, sentence: &str) {
    assert_eq!(run.code, Some(code), "{}", run.err);
    assert!(run.err.contains(sentence), "{}", run.err);
}

#[test]
fn what_cannot_be_done_is_said_in_a_block() {
    let db = Db::new();
    refused(&run(&["observe", "accounts"]), 2, "no database was named");
    refused(&db.run(&["accounts"], ""), 2, "cannot open the file");
    assert!(!Path::new(&db.path()).exists());
    let put = ["put", "--account", "Ada", "--tool", "get_status"];
    refused(&db.run(&put, "{\"a\": }"), 2, "not JSON");
    assert!(!db.run(&put, "{\"a\": }").err.contains("transcript"));
    refused(
        &run_with(
            &["observe", "--db", &db.path(), "put", "--account", "Ada", "--tool", "x"],
            vec![b'{', 0xff],
        ),
        2,
        "not UTF-8",
    );
    refused(
        &db.run(&["put", "--account", "", "--tool", "get_status"], "{}"),
        2,
        "the name of an account",
    );
    let long = "x".repeat(10_000);
    refused(
        &db.run(&["put", "--account", &long, "--tool", "get_status"], "{}"),
        2,
        "the limit is 1024",
    );
    refused(
        &db.run_by_default(&["--policy", "/no/such/file", "accounts"], ""),
        2,
        "cannot open the file",
    );
    refused(&db.run(&["summary"], ""), 2, "--account");
    refused(&run(&["observe", "--now", "noon", "accounts"]), 2, "expected a time");
    let scratch = tempfile::tempdir().unwrap();
    let text = scratch.path().join("notes.txt");
    std::fs::write(&text, "not a database, but long enough to be taken for one\n".repeat(90))
        .unwrap();
    let path = text.to_str().unwrap();
    let refusal = run(&["observe", "--db", path, "accounts"]);
    refused(&refusal, 2, "found no database");
    assert!(!refusal.err.contains("hint"), "{}", refusal.err);
    let policy = scratch.path().join("policy.toml");
    std::fs::write(&policy, "heading = \"x\"\ntols = []\n").unwrap();
    let policy = policy.to_str().unwrap();
    refused(&run(&["observe", "--db", path, "--policy", policy, "accounts"]), 2, "\"tols\"");
}

#[test]
fn a_policy_is_read_from_a_file() {
    let db = Db::new();
    let put = ["put", "--account", "Ada", "--tool", "get_status"];
    assert_eq!(db.out(&put, STATUS), "kept get_status: new\n");
    let summary = ["summary", "--account", "Ada"];
    assert!(db.out(&summary, "").contains("- Credits: 5,000\n"));
    // Without one every tool is observed, and nothing is known of the game.
    let plain = db.run_by_default(&summary, "").out;
    assert!(plain.contains("Player credits: 5,000\n"), "{plain}");
    let other = ["put", "--account", "Ada", "--tool", "dance"];
    assert_eq!(db.run_by_default(&other, "{\"steps\":4}").out, "kept dance: new\n");
}

#[test]
fn a_session_is_replayed_turn_by_turn() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("chat.json");
    let call = |at: usize| {
        serde_json::json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": format!("c{at}"), "type": "function", "function": {"name": "list_ships", "arguments": "{}"}}
        ]})
    };
    let ships: Vec<Value> =
        (0..400).map(|at| serde_json::json!({"id": at, "name": format!("Ship {at}")})).collect();
    let mut messages = vec![serde_json::json!({"role": "user", "content": "Which ships?"})];
    for at in 0..5 {
        messages.push(call(at));
        let content = serde_json::json!({"ships": ships, "at": at}).to_string();
        messages.push(serde_json::json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": content}));
    }
    messages.push(serde_json::json!({"role": "assistant", "content": "These."}));
    std::fs::write(&path, serde_json::to_string(&messages).unwrap()).unwrap();
    let path = path.to_str().unwrap();
    let json = support::json(&["observe", "replay", path, "--json"]);
    let turns = json["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 6);
    let tokens = |turn: usize, of: &str| turns[turn][of]["tokens"].as_u64().unwrap();
    // The first context with a payload holds it; the second holds a line and a summary.
    assert_eq!((tokens(1, "with"), tokens(1, "summary")), (tokens(1, "without"), 0));
    assert!(tokens(2, "with") < tokens(2, "without") && tokens(2, "summary") > 0);
    assert!(tokens(5, "without") > 4 * tokens(5, "with"));
    assert!(turns.iter().all(|turn| turn["summary"]["tokens"].as_u64().unwrap() <= 500));
    let table = support::out(&["observe", "replay", path, path]);
    assert!(table.contains("all files") && table.contains("SAVED"), "{table}");
}

#[test]
fn recorded_responses_are_replayed() {
    let files = support::files_of(&[
        "I-spacemolt",
        "A-openai-chat",
        "B-anthropic",
        "C-codex-responses",
        "D-swe-agent",
    ]);
    if files.is_empty() {
        return;
    }
    let (mut read, mut without, mut with) = (0, 0, 0);
    for file in &files {
        let name = file.to_str().unwrap();
        let is_game = name.contains("I-spacemolt");
        let policy = if is_game { &["--policy", POLICY][..] } else { &[] };
        let args = ["observe", "replay", name, "--json", "--tokenizer", "chars4"];
        let run = run(&[&args, policy].concat());
        if run.code != Some(0) {
            assert!(!is_game && run.err.contains("error:"), "{name}: {}", run.err);
            continue;
        }
        read += 1;
        for line in run.out.lines() {
            let session: Value = serde_json::from_str(line).unwrap();
            for turn in session["turns"].as_array().unwrap() {
                let summary = &turn["summary"];
                assert!(summary["tokens"].as_u64().unwrap() <= 500, "{name}");
                assert!(summary["bytes"].as_u64().unwrap() <= 2_000, "{name}");
                // No context costs more than it did without.
                let tokens = |of: &str| turn[of]["tokens"].as_u64().unwrap();
                assert!(tokens("with") <= tokens("without"), "{name}: {turn}");
            }
            without += session["without"]["tokens"].as_u64().unwrap();
            with += session["with"]["tokens"].as_u64().unwrap();
        }
    }
    assert!(read > 40, "{read}");
    assert!(with < without, "{with} of {without}");
}
