//! Databases in which agents keep their sessions.

use crate::support;

use std::{fs, path::PathBuf};

use rusqlite::{Connection, params};
use serde_json::Value;
use support::Run;

const SCHEMA: &str = "CREATE TABLE session (id text PRIMARY KEY, directory text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL);
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);";
/// 2026-11-03T08:00:00Z
const DAY: i64 = 1_793_692_800_000;

/// A home with an open database of the agent.
struct Home {
    folder: tempfile::TempDir,
    owner: Connection,
}

impl Home {
    /// With two sessions of two answers each.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(".local/share/opencode");
        fs::create_dir_all(place.join("log")).unwrap();
        fs::write(place.join("log/today.log"), "no session").unwrap();
        let owner = Connection::open(place.join("opencode.db")).unwrap();
        owner.pragma_update(None, "journal_mode", "wal").unwrap();
        owner.execute_batch(SCHEMA).unwrap();
        let home = Self { folder, owner };
        home.session("ses_quay", "/w/quay", "Mind the quay.", DAY);
        home.session("ses_lock", "/w/lock", "Open the lock.", DAY + 86_400_000);
        home
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join(".local/share/opencode/opencode.db")
    }

    fn session(&self, id: &str, folder: &str, words: &str, at: i64) {
        let row = params![id, folder, at];
        self.owner.execute("INSERT INTO session VALUES (?1, ?2, ?3, ?3)", row).unwrap();
        let text = serde_json::json!({ "type": "text", "text": words });
        self.message(id, 0, at, r#"{"role":"user","time":{"created":AT}}"#, &text);
        for number in [1, 2] {
            self.answer(id, number, at + number * 1000);
        }
    }

    fn answer(&self, session: &str, number: i64, at: i64) {
        let info = r#"{"role":"assistant","modelID":"claude-sonnet-4-5","time":{"created":AT},"tokens":{"input":NUMBER00,"output":10,"reasoning":0,"cache":{"read":0,"write":0}}}"#;
        let info = info.replace("NUMBER", &number.to_string());
        let said = serde_json::json!({ "type": "text", "text": format!("Step {number}.") });
        self.message(session, number, at, &info, &said);
    }

    fn message(&self, session: &str, number: i64, at: i64, info: &str, part: &Value) {
        let id = format!("{session}-m{number}");
        let info = info.replace("AT", &at.to_string());
        let row = params![id, session, at, info];
        self.owner.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", row).unwrap();
        let row = params![format!("{id}-p"), id, session, at, part.to_string()];
        self.owner.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)", row).unwrap();
    }

    fn run(&self, args: &[&str]) -> Run {
        let mut command = support::afterimage(args);
        for variable in ["CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME"] {
            command.env_remove(variable);
        }
        let home = self.folder.path();
        let output = command.env("HOME", home).env("AFTERIMAGE_CACHE", home.join("c")).output();
        let output = output.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The id, the project, the first words and the requests of the sessions that are listed.
    fn listed(&self, args: &[&str]) -> Vec<String> {
        let run = self.run(&[&["sessions", "--json"], args].concat());
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        let shown = |line: &str| {
            let of: Value = serde_json::from_str(line).unwrap();
            let text = |value: &Value| value.as_str().unwrap_or("–").to_owned();
            let (project, words) = (text(&of["project"]), text(&of["first"]["text"]));
            format!("{} {project} {words} {}", text(&of["session"]), of["requests"])
        };
        run.out.lines().map(shown).collect()
    }
}

#[test]
fn each_session_of_a_database_is_listed_and_read_again_where_it_has_grown() {
    let home = Home::new();
    let quay = "ses_quay /w/quay Mind the quay. 2";
    assert_eq!(home.listed(&[]), ["ses_lock /w/lock Open the lock. 2", quay]);
    // What the owner wrote stands beside the file still.
    home.answer("ses_lock", 3, DAY + 2 * 86_400_000);
    assert_eq!(home.listed(&["--quick"]), ["– – – null", quay]);
    assert_eq!(home.listed(&[]), ["ses_lock /w/lock Open the lock. 3", quay]);
    assert_eq!(home.listed(&["--quick"]), ["ses_lock /w/lock Open the lock. 3", quay]);
    assert_eq!(home.run(&["sessions", "--paths"]).out.lines().count(), 1);
    let days = home.run(&["sessions", "--by", "day"]).out;
    assert!(days.contains("     1         2      300        0      20  $0.0012"), "{days}");
}

#[test]
fn each_session_of_a_database_is_one_of_its_archive_too() {
    let home = Home::new();
    let database = home.database();
    let archive = home.folder.path().join("kept.archive");
    let [database, archive] = [&database, &archive].map(|path| path.to_str().unwrap());
    let made = home.run(&["archive", "-o", archive, database]);
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""));
    for asked in [&[][..], &["--project", "lock"], &["--until", "2026-11-03"]] {
        let listed = home.listed(&[&[database], asked].concat());
        assert_eq!(listed.len(), if asked.is_empty() { 2 } else { 1 }, "{asked:?}");
        assert_eq!(home.listed(&[&[archive], asked].concat()), listed, "{asked:?}");
    }
}

#[test]
fn a_session_of_a_database_is_chosen_by_its_id() {
    let home = Home::new();
    let database = home.database();
    let file = database.to_str().unwrap();
    let stats = home.run(&["stats", "--json", "--session", "ses_quay", file]);
    assert_eq!((stats.code, stats.err.as_str()), (Some(0), ""));
    let stats: Value = serde_json::from_str(&stats.out).unwrap();
    assert_eq!(stats["usage"]["total"]["exchanges"], 2);
    let hits = home.run(&["trace", "--json", "--text", "Open the lock", file]);
    assert!(hits.out.contains("ses_lock"), "{}", hits.out);
    let requests = home.run(&["requests", file]);
    assert_eq!((requests.code, requests.err.as_str()), (Some(0), ""));
    // A folder in which it stands is read as well.
    let place = database.parent().unwrap().to_str().unwrap();
    let folder = home.run(&["stats", "--json", place]);
    assert!(folder.out.contains("opencode.db"), "{} {}", folder.out, folder.err);
}

#[test]
fn a_database_of_something_else_is_refused_by_what_it_is() {
    let home = Home::new();
    let path = home.folder.path().join("logs.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE conversations (id); CREATE TABLE responses (id)").unwrap();
    let run = home.run(&["stats", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    let refused = "error: expected a transcript of a known format, found the database of llm, which is \
                   not read";
    assert!(run.err.starts_with(refused), "{}", run.err);
}

#[test]
fn a_database_that_is_not_read_is_named_with_the_sessions_each_time() {
    let home = Home::new();
    let place = home.folder.path().join(".local/share/goose/sessions");
    fs::create_dir_all(&place).unwrap();
    let goose = Connection::open(place.join("sessions.db")).unwrap();
    let tables =
        "CREATE TABLE schema_version (v); CREATE TABLE sessions (id); CREATE TABLE messages (id)";
    goose.execute_batch(tables).unwrap();
    for _ in 0..2 {
        let run = home.run(&["sessions"]);
        assert!(run.out.contains("Mind the quay."), "{}", run.out);
        let note = "sessions.db: expected a transcript of a known format, found the database of goose, \
                    which is not read: `goose session export --session-id ID --format json` gives a session of it";
        assert!(run.err.contains(note), "{}", run.err);
        assert_eq!(run.code, Some(0));
    }
}

#[test]
fn the_database_that_a_variable_names_is_read() {
    let home = Home::new();
    let elsewhere = home.folder.path().join("elsewhere.db");
    home.owner.execute("VACUUM INTO ?1", [elsewhere.to_str().unwrap()]).unwrap();
    fs::remove_dir_all(home.folder.path().join(".local")).unwrap();
    let mut command = support::afterimage(&["sessions", "--no-index"]);
    let home = home.folder.path();
    let output = command.env("HOME", home).env("OPENCODE_DB", &elsewhere).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("OpenCode ~/elsewhere.db") && out.contains("Mind the quay."), "{out}");
}
