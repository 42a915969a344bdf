//! The database of OpenCode: each session is a line, the one that `opencode export` prints.
//!
//! All is read within one transaction, so what OpenCode writes meanwhile is not seen in halves.

use std::{
    io::{self, BufRead, Cursor, Read},
    path::Path,
    time::Duration,
    vec::IntoIter,
};

use afterimage_observe::open_read_only;
use rusqlite::{Connection, ErrorCode, params};

use super::database::{DatabaseLines, DatabaseSession};
use crate::{Error, ErrorKind, Result};

/// How long the owner of the database is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// How many tables are named of a database that is not known.
const NAMED: usize = 6;
/// The tables that OpenCode keeps sessions in.
const OWN: [&str; 3] = ["session", "message", "part"];
/// Databases of others: some of their tables, and what is said of them.
const OTHERS: [(&[&str], &str); 5] = [
    (&["conversations", "responses"], "the database of llm, which is not read"),
    (
        &["turns", "session_files"],
        "the index of the Copilot CLI, whose sessions are in `session-state`",
    ),
    (
        &["sessions", "messages", "schema_version"],
        "the database of goose, which is not read: `goose session export --session-id ID \
         --format json` gives a session of it",
    ),
    (&["sessions", "schedules"], "the index of Cline, whose sessions are in `data/sessions`"),
    (
        &["game_state_snapshots", "game_state_accounts"],
        "a database of observations, which `afterimage observe` reads",
    ),
];

/// A row's JSON with the ids that an export has; what is no JSON is kept as a text.
const MESSAGES: &str = "SELECT id, CASE WHEN json_valid(data)
        THEN json_set(data, '$.id', id, '$.sessionID', session_id)
        ELSE json_quote(CAST(data AS TEXT)) END
    FROM message WHERE session_id = ?1 ORDER BY time_created, id";
const PARTS: &str = "SELECT CASE WHEN json_valid(data)
        THEN json_set(data, '$.id', id, '$.sessionID', session_id, '$.messageID', message_id)
        ELSE json_quote(CAST(data AS TEXT)) END
    FROM part WHERE message_id = ?1 ORDER BY id";
const INFO: &str = "SELECT json_object('id', id, 'time', json_object('created', time_created),
        'revert', json(CASE WHEN json_valid(revert) THEN revert END)) FROM session WHERE id = ?1";
const OLD_INFO: &str = "SELECT json_object('id', id, 'time', json_object('created', time_created))
    FROM session WHERE id = ?1";
const SESSIONS: &str = "WITH row AS (
        SELECT session_id, octet_length(data) AS bytes, time_updated FROM message
        UNION ALL SELECT session_id, octet_length(data), time_updated FROM part)
    SELECT id, directory, max(session.time_updated, coalesce(max(row.time_updated), 0)),
        coalesce(sum(bytes), 0)
    FROM session LEFT JOIN row ON session_id = id GROUP BY id ORDER BY session.time_created, id";

/// The sessions of a database.
pub(super) fn sessions(path: &Path) -> Result<Vec<DatabaseSession>> {
    let connection = open(path)?;
    let list = || -> rusqlite::Result<Vec<DatabaseSession>> {
        let mut sessions = connection.prepare(SESSIONS)?;
        let session = |row: &rusqlite::Row<'_>| {
            Ok(DatabaseSession {
                id: row.get(0)?,
                directory: row.get(1)?,
                changed: row.get(2)?,
                bytes: row.get::<_, i64>(3)?.unsigned_abs(),
            })
        };
        sessions.query_map([], session)?.collect()
    };
    list().map_err(|error| failed(&error))
}

/// The lines of all sessions, or of one.
pub(super) fn lines(path: &Path, session: Option<&str>) -> Result<DatabaseLines> {
    let connection = open(path)?;
    let list = || -> rusqlite::Result<Vec<String>> {
        let ids = "SELECT id FROM session WHERE ?1 IS NULL OR id = ?1 ORDER BY time_created, id";
        connection.prepare(ids)?.query_map([session], |row| row.get(0))?.collect()
    };
    let ids = list().map_err(|error| failed(&error))?;
    if ids.is_empty() {
        let named = session.map_or_else(String::new, |id| format!(" {id:?}"));
        let message = format!("there is no session{named} in the database");
        return Err(Error::new(ErrorKind::UnknownFormat, message));
    }
    let lines = Exports { connection, ids: ids.into_iter(), line: Cursor::default() };
    Ok(Box::new(lines))
}

/// Opens a database that its owner may be writing, and begins to read it as it is now.
fn open(path: &Path) -> Result<Connection> {
    let connection = open_read_only(path)?;
    let tables = || -> rusqlite::Result<Vec<String>> {
        connection.busy_timeout(BUSY)?;
        connection.execute_batch("BEGIN")?;
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid";
        connection.prepare(names)?.query_map([], |row| row.get(0))?.collect()
    };
    let tables = tables().map_err(|error| failed(&error))?;
    let has = |wanted: &[&str]| wanted.iter().all(|name| tables.iter().any(|table| table == name));
    if has(&OWN) {
        return Ok(connection);
    }
    let other = OTHERS.iter().find(|(wanted, _)| has(wanted));
    let found = other.map_or_else(
        || {
            let more = if tables.len() > NAMED { ", …" } else { "" };
            let named: Vec<&str> = tables.iter().take(NAMED).map(String::as_str).collect();
            match named.as_slice() {
                [] => "a database of SQLite without tables".to_owned(),
                _ => format!("a database of SQLite with the tables {}{more}", named.join(", ")),
            }
        },
        |(_, found)| (*found).to_owned(),
    );
    let message = format!("expected a transcript of a known format, found {found}");
    Err(Error::new(ErrorKind::UnknownFormat, message))
}

fn failed(error: &rusqlite::Error) -> Error {
    let (kind, what) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => (ErrorKind::Damaged, "the database is damaged"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Locked, "others kept the database busy")
        }
        _ => (ErrorKind::Io, "the database cannot be read"),
    };
    Error::new(kind, format!("{what}: {error}"))
}

/// The exports of sessions, one a line.
struct Exports {
    connection: Connection,
    ids: IntoIter<String>,
    line: Cursor<Vec<u8>>,
}

impl Exports {
    fn export(&self, session: &str) -> rusqlite::Result<String> {
        let mut messages = self.connection.prepare_cached(MESSAGES)?;
        let mut parts = self.connection.prepare_cached(PARTS)?;
        // Versions before the undo of messages have no such column.
        let revert = self.connection.prepare("SELECT revert FROM session").is_ok();
        let info = if revert { INFO } else { OLD_INFO };
        let info: String = self.connection.query_row(info, [session], |row| row.get(0))?;
        let mut all = Vec::new();
        let mut rows = messages.query([session])?;
        while let Some(row) = rows.next()? {
            let (id, info): (String, String) = (row.get(0)?, row.get(1)?);
            let parts = parts.query_map(params![id], |row| row.get(0))?;
            let parts = parts.collect::<rusqlite::Result<Vec<String>>>()?.join(",");
            all.push(format!(r#"{{"info":{info},"parts":[{parts}]}}"#));
        }
        Ok(format!("{{\"info\":{info},\"messages\":[{}]}}\n", all.join(",")))
    }
}

impl BufRead for Exports {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.line.position() >= self.line.get_ref().len() as u64
            && let Some(id) = self.ids.next()
        {
            let line = self.export(&id).map_err(|error| io::Error::other(error.to_string()))?;
            self.line = Cursor::new(line.into_bytes());
        }
        self.line.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.line.consume(amount);
    }
}

impl Read for Exports {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::{
        transcript::{Record, Transcript, TranscriptFormat, database_sessions},
        veil::Branch,
    };

    const SCHEMA: &str = "CREATE TABLE session (id text PRIMARY KEY, directory text NOT NULL,
            time_created integer NOT NULL, time_updated integer NOT NULL);
        CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
            time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
        CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
            time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);";
    const SAID: &str = r#"{"type":"text","text":"Moor “her” at\n4 ⚓"}"#;

    /// A database that is written ahead, and who writes it. Its second session is the older one.
    fn written() -> (TempDir, PathBuf, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("opencode.db");
        let owner = Connection::open(&path).unwrap();
        owner.pragma_update(None, "journal_mode", "wal").unwrap();
        owner.execute_batch(SCHEMA).unwrap();
        for (id, at) in [("ses_b", 20), ("ses_a", 10)] {
            let row = params![id, "/w/quay", at];
            owner.execute("INSERT INTO session VALUES (?1, ?2, ?3, ?3)", row).unwrap();
        }
        // Neither ids nor rows are in the order of time.
        message(
            &owner,
            "m2",
            12,
            r#"{"role":"assistant","modelID":"q","tokens":{"input":7,"output":2}}"#,
        );
        message(&owner, "m1", 11, r#"{"role":"user","time":{"created":11}}"#);
        for (id, message, data) in [
            ("p3", "m2", r#"{"type":"text","text":"Done."}"#),
            ("p1", "m1", SAID),
            ("p2", "m1", "{half"),
        ] {
            let row = params![id, message, data];
            owner.execute("INSERT INTO part VALUES (?1, ?2, 'ses_a', 13, 14, ?3)", row).unwrap();
        }
        (folder, path, owner)
    }

    fn message(owner: &Connection, id: &str, at: i64, data: &str) {
        let row = params![id, at, data];
        owner.execute("INSERT INTO message VALUES (?1, 'ses_a', ?2, ?2, ?3)", row).unwrap();
    }

    fn records(transcript: Transcript<impl BufRead>) -> Vec<Record> {
        transcript.map(|record| record.unwrap()).collect()
    }

    #[test]
    fn a_session_has_the_frames_of_its_export_while_its_owner_writes() {
        let (_folder, path, owner) = written();
        let part = |id: &str, message: &str, part: &str| {
            let end = format!(r#","id":"{id}","sessionID":"ses_a","messageID":"{message}"}}"#);
            part.strip_suffix('}').unwrap().to_owned() + &end
        };
        let export = format!(
            r#"{{"info":{{"id":"ses_a"}},"messages":[
                {{"info":{{"role":"user","time":{{"created":11}},"id":"m1","sessionID":"ses_a"}},"parts":[{},"{{half"]}},
                {{"info":{{"role":"assistant","modelID":"q","tokens":{{"input":7,"output":2}},"id":"m2","sessionID":"ses_a"}},"parts":[{}]}}]}}"#,
            part("p1", "m1", SAID),
            part("p3", "m2", r#"{"type":"text","text":"Done."}"#),
        );
        let exported = records(Transcript::new(export.as_bytes()).unwrap());
        owner.execute_batch("BEGIN IMMEDIATE").unwrap();
        message(&owner, "m3", 13, r#"{"role":"user"}"#);
        let opened = Transcript::open(&path).unwrap();
        assert_eq!(opened.format(), TranscriptFormat::OpenCode);
        // What comes after it was opened is not read.
        owner.execute_batch("COMMIT").unwrap();
        assert_eq!(records(opened), exported);
        let alone = Transcript::open_database(&path, Some("ses_a")).unwrap().unwrap();
        assert!(records(alone).len() > exported.len() - 1);
        // Newer versions say in the session what was taken back of it.
        let before = records(Transcript::open(&path).unwrap()).len();
        owner.execute_batch("ALTER TABLE session ADD revert text").unwrap();
        assert_eq!(records(Transcript::open(&path).unwrap()).len(), before);
        let revert = r#"UPDATE session SET revert = '{"messageID":"m2"}' WHERE id = 'ses_a'"#;
        owner.execute(revert, []).unwrap();
        let told = records(Transcript::open(&path).unwrap());
        assert!(told.iter().any(|record| Branch::of(&record.frame).unwrap().is_some()));
    }

    #[test]
    fn messages_that_are_older_than_their_session_are_copies_of_a_fork() {
        let (_folder, path, owner) = written();
        let answer = r#"{"role":"assistant","time":{"created":11},"tokens":{"input":7}}"#;
        for (id, session) in [("m1", "ses_a"), ("n1", "ses_b")] {
            let change = "INSERT OR REPLACE INTO message VALUES (?1, ?2, 11, 11, ?3)";
            owner.execute(change, params![id, session, answer]).unwrap();
        }
        let copied = |session: &str| {
            let of = Transcript::open_database(&path, Some(session)).unwrap().unwrap();
            let imported = records(of).remove(0).frame.imported.unwrap();
            imported.answer.unwrap().copied.is_some()
        };
        assert_eq!((copied("ses_a"), copied("ses_b")), (false, true));
    }

    #[test]
    fn a_session_in_which_nothing_was_said_is_recognised_too() {
        let (_folder, path, _owner) = written();
        let opened = Transcript::open_database(&path, Some("ses_b")).unwrap().unwrap();
        assert_eq!(opened.format(), TranscriptFormat::OpenCode);
        assert!(records(opened).is_empty());
    }

    #[test]
    fn sessions_are_listed_from_the_oldest_on_with_what_changed_last() {
        let (_folder, path, owner) = written();
        let list = |path: &PathBuf| -> Vec<(String, i64, bool)> {
            let sessions = database_sessions(path).unwrap().unwrap().into_iter();
            sessions.map(|of| (of.id, of.changed, of.bytes > 0)).collect()
        };
        assert_eq!(list(&path), [("ses_a".to_owned(), 14, true), ("ses_b".to_owned(), 20, false)]);
        owner.execute("UPDATE part SET time_updated = 99 WHERE id = 'p3'", []).unwrap();
        assert_eq!(list(&path).first().map(|of| of.1), Some(99));
        let refused = Transcript::open_database(&path, Some("ses_c")).err().unwrap();
        assert_eq!(refused.message(), r#"there is no session "ses_c" in the database"#);
    }

    #[test]
    fn databases_of_others_are_refused_by_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str, schema: &str| {
            let path = folder.path().join(name);
            Connection::open(&path).unwrap().execute_batch(schema).unwrap();
            let error = Transcript::open(&path).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::UnknownFormat);
            error.message().split_once(", found ").unwrap().1.to_owned()
        };
        assert_eq!(
            refused("a.db", "CREATE TABLE conversations (id); CREATE TABLE responses (id)"),
            "the database of llm, which is not read"
        );
        assert_eq!(
            refused(
                "g.db",
                "CREATE TABLE schema_version (version); CREATE TABLE sessions (id); CREATE TABLE messages (id)"
            ),
            "the database of goose, which is not read: `goose session export --session-id ID --format json` gives a session of it"
        );
        assert_eq!(
            refused("b.db", "CREATE TABLE berths (id)"),
            "a database of SQLite with the tables berths"
        );
        let text = folder.path().join("c.db");
        std::fs::write(&text, "no database").unwrap();
        assert!(database_sessions(&text).unwrap().is_none());
    }
}
