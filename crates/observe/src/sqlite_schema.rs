//! The tables, and how a file of the specification's table gets them.

use rusqlite::{Connection, TransactionBehavior};

use super::{SqliteOptions, sqlite_adopt::TRIGGER, sqlite_copy::copy_of, sqlite_rows::Rows};
use crate::{Error, ErrorKind, Result};

/// What tells such a database from others: "aiob".
pub(super) const APPLICATION_ID: i64 = 0x6169_6f62;
/// The version of the tables. A file of the specification's own table names none.
const SCHEMA_VERSION: i64 = 1;
/// How often a change of the journal is tried: SQLite does not wait for others there.
const TRIES: u32 = 200;

// The payload stands last, so that the rest of a row is read without it.
const TABLES: &str = "
CREATE TABLE game_state_snapshots (
    id TEXT PRIMARY KEY,
    username TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    game_tick INTEGER,
    captured_at INTEGER NOT NULL,
    captured_millis INTEGER NOT NULL DEFAULT 0,
    updated_tick INTEGER,
    updated_at INTEGER NOT NULL DEFAULT 0,
    since_tick INTEGER,
    since_at INTEGER NOT NULL DEFAULT 0,
    tool TEXT NOT NULL DEFAULT '',
    is_partial INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    changed TEXT NOT NULL DEFAULT '[]',
    stale TEXT NOT NULL DEFAULT '[]',
    facts_check TEXT NOT NULL DEFAULT '',
    outline_check TEXT NOT NULL DEFAULT '',
    content_check TEXT NOT NULL DEFAULT '',
    outline TEXT NOT NULL DEFAULT '{}',
    ages TEXT NOT NULL DEFAULT '{}',
    content TEXT NOT NULL,
    UNIQUE(username, tool_name)
);
CREATE INDEX idx_game_state_username ON game_state_snapshots(username);
CREATE TABLE game_state_asides (
    username TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    info TEXT NOT NULL,
    info_check TEXT NOT NULL,
    content_check TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY(username, tool_name)
);
CREATE TABLE game_state_accounts (
    username TEXT PRIMARY KEY,
    agent TEXT UNIQUE,
    created_at INTEGER NOT NULL,
    created_tick INTEGER,
    latest_at INTEGER,
    latest_tick INTEGER,
    observations INTEGER NOT NULL DEFAULT 0,
    row_check TEXT NOT NULL DEFAULT ''
);
CREATE TABLE game_state_figures (
    tool_name TEXT PRIMARY KEY,
    figures TEXT NOT NULL,
    row_check TEXT NOT NULL DEFAULT ''
);
CREATE TABLE game_state_totals (
    tool TEXT PRIMARY KEY,
    rows INTEGER NOT NULL,
    row_check TEXT NOT NULL
);
";

/// From the table of the specification, as it stands there, to rows of another program in ours.
const FROM_SPECIFICATION: &str = "
INSERT INTO game_state_snapshots (id, username, tool_name, game_tick, captured_at, content)
SELECT id, username, tool_name, game_tick, captured_at, content FROM game_state_snapshots_old;
DROP TABLE game_state_snapshots_old;
";

/// Sets a connection up, with our tables in it.
pub(super) fn prepare(connection: &mut Connection, options: SqliteOptions) -> Result<()> {
    // In one transaction: what another process makes meanwhile is there whole or not at all.
    let found = FoundObservation::of(&*connection.transaction()?)?;
    if options.read_only {
        if found.state()? == State::Current && !adopts(connection, false)? {
            return Ok(());
        }
        // What is only read gets our tables in memory.
        *connection = copy_of(connection)?;
        migrate(connection)?;
        adopts(connection, true)?;
        return connection.pragma_update(None, "query_only", true).map_err(Error::from);
    }
    found.state()?;
    write_ahead(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    if let Some(bytes) = options.max_bytes {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = (bytes / page.max(1).unsigned_abs()).clamp(1, u64::from(u32::MAX - 1));
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    if found.state()? != State::Current {
        migrate(connection)?;
    }
    connection.execute_batch(TRIGGER).map_err(Error::from)
}

/// Whether other programs wrote rows; takes them for ours where `is_written`.
pub(super) fn adopts(connection: &mut Connection, is_written: bool) -> Result<bool> {
    let begin =
        if is_written { TransactionBehavior::Immediate } else { TransactionBehavior::Deferred };
    let transaction = connection.transaction_with_behavior(begin)?;
    let are_foreign = Rows(&transaction).are_foreign()?;
    if are_foreign && is_written {
        Rows(&transaction).adopt()?;
        transaction.commit()?;
    }
    Ok(are_foreign)
}

/// Turns write-ahead logging on, which asks for the file alone: others may be doing the same.
fn write_ahead(connection: &Connection) -> Result<()> {
    let mut tries = 0;
    loop {
        let set = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match set {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                let message = format!("expected a journal that is written ahead, found {mode}");
                return Err(Error::new(ErrorKind::Io, message));
            }
            Err(error) => {
                tries += 1;
                let error = Error::from(error);
                if error.kind() != ErrorKind::Locked || tries >= TRIES {
                    return Err(error);
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}

fn migrate(connection: &mut Connection) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have come first.
    let state = FoundObservation::of(&transaction)?.state()?;
    let script = match state {
        State::Current => return Ok(()),
        State::Empty => TABLES.to_owned(),
        State::Specification => format!(
            "DROP INDEX IF EXISTS idx_game_state_username;
             ALTER TABLE game_state_snapshots RENAME TO game_state_snapshots_old;
             {TABLES}"
        ),
    };
    let script = format!(
        "{script}\nPRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {SCHEMA_VERSION};"
    );
    transaction.execute_batch(&script)?;
    for counted in ["accounts", "figures"] {
        Rows(&transaction).set_total(counted, 0)?;
    }
    if state == State::Specification {
        transaction.execute_batch(FROM_SPECIFICATION)?;
        Rows(&transaction).adopt()?;
    }
    transaction.commit().map_err(Error::from)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Empty,
    /// The specification's own table.
    Specification,
    Current,
}

/// What a file says that it is.
struct FoundObservation {
    application: i64,
    version: i64,
    tables: Vec<String>,
    columns: Vec<String>,
}

impl FoundObservation {
    fn of(connection: &Connection) -> Result<Self> {
        let read = || -> rusqlite::Result<Self> {
            let number = |name| connection.pragma_query_value(None, name, |row| row.get(0));
            let names = |sql: &str| {
                let mut statement = connection.prepare(sql)?;
                let names = statement.query_map([], |row| row.get::<_, String>(0))?;
                names.collect::<rusqlite::Result<Vec<_>>>()
            };
            Ok(Self {
                application: number("application_id")?,
                version: number("user_version")?,
                tables: names("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?,
                columns: names("SELECT name FROM pragma_table_info('game_state_snapshots')")?,
            })
        };
        read().map_err(Error::from)
    }

    fn state(&self) -> Result<State> {
        let specified = ["id", "username", "tool_name", "content", "game_tick", "captured_at"];
        match (self.application, self.version) {
            (APPLICATION_ID, SCHEMA_VERSION) => Ok(State::Current),
            (APPLICATION_ID, found) => {
                let message =
                    format!("expected a database of version {SCHEMA_VERSION}, found {found}");
                Err(Error::new(ErrorKind::Version, message))
            }
            (0, 0) if self.tables.is_empty() => Ok(State::Empty),
            (0, 0) if self.columns == specified => Ok(State::Specification),
            _ => {
                let message = "expected a database of observations, found another database";
                Err(Error::new(ErrorKind::UnknownFormat, message))
            }
        }
    }
}
