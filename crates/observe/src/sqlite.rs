use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, config::DbConfig};

use super::{
    ObservationStore, StoreReader, StoreWriter,
    sqlite_copy::{beside, open_read_only},
    sqlite_rows::Rows,
    sqlite_schema::{adopts, prepare},
};
use crate::{Error, ErrorKind, Result};

/// How a database file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SqliteOptions {
    /// How long to try again while another process writes: 30 seconds by default.
    #[serde(rename = "busyTimeoutMs", with = "afterimage_json::duration")]
    pub busy_timeout: Duration,
    /// The size that the file may grow to, in bytes; unbounded by default.
    pub max_bytes: Option<u64>,
    /// Whether the file is only read, as on media that cannot be written. It must be there then.
    /// One of the specification's table alone is read into memory.
    pub read_only: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(30), max_bytes: None, read_only: false }
    }
}

/// Observations in a database file of SQLite.
///
/// Written ahead and synced fully: what was kept stays, whatever happens to the process. Several
/// threads and processes may use one file; who finds it busy waits. The tables are described in
/// `docs/FORMAT.md`.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Mutex<Connection>,
    path: PathBuf,
    /// What SQLite counts when others write, at which their rows were last looked for. `None` where
    /// the file is only read.
    looked_at: Option<AtomicI64>,
}

impl SqliteStore {
    /// Opens a file, or makes it where it is not there. A file of the specification's table alone
    /// gets ours, with all that it holds. Reads the schema; of such a file every row.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownFormat`] for a file that is no such database, and for a directory, a
    /// pipe or a device, none of which is waited for,
    /// [`ErrorKind::Version`] for one of another version, [`ErrorKind::Damaged`] for one that
    /// SQLite cannot read, [`ErrorKind::Locked`] where others kept it busy all the time, and
    /// [`ErrorKind::Io`]. All name the file, which is then as it was.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// As [`SqliteStore::open`], with options. Costs as much.
    ///
    /// # Errors
    /// Those of [`SqliteStore::open`].
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let path = path.as_ref();
        let open = || -> Result<Connection> {
            check_regular(path)?;
            for end in ["-journal", "-wal", "-shm"] {
                let path = beside(path, end);
                check_regular(&path).map_err(|error| error.in_file(&path))?;
            }
            // The mutex around the connection is ours, and a path is a path and no URI.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut connection = if options.read_only {
                open_read_only(path)?
            } else {
                create_private(path);
                Connection::open_with_flags(path, flags)?
            };
            connection.busy_timeout(options.busy_timeout)?;
            connection.set_prepared_statement_cache_capacity(32);
            let defensive = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true);
            defensive?;
            prepare(&mut connection, options)?;
            Ok(connection)
        };
        let connection = open().map_err(|error| error.in_file(path))?;
        let looked_at = (!options.read_only).then(|| AtomicI64::new(i64::MIN));
        Ok(Self { connection: Mutex::new(connection), path: path.to_owned(), looked_at })
    }

    /// Takes the rows of other programs for ours, where others wrote since the last time.
    fn adopt(&self, connection: &mut Connection) -> Result<()> {
        let Some(looked_at) = &self.looked_at else { return Ok(()) };
        let version = connection.pragma_query_value(None, "data_version", |row| row.get(0));
        let version = version?;
        if looked_at.load(Ordering::Relaxed) != version && adopts(connection, false)? {
            adopts(connection, true)?;
        }
        looked_at.store(version, Ordering::Relaxed);
        Ok(())
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the whole file, and each row against its checksum. O(database).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] with what was found first.
    pub fn check(&self) -> Result<()> {
        self.check_file()?;
        self.read(&mut |store| {
            for account in store.accounts()? {
                for info in store.infos(&account.name)? {
                    if let Some(damage) = info.damage {
                        return Err(Error::new(ErrorKind::Damaged, damage));
                    }
                    store.observation(&account.name, &info.name)?;
                }
                for aside in store.asides(&account.name)? {
                    store.aside(&account.name, &aside.name)?;
                }
            }
            store.figures().map(drop)
        })
    }

    fn check_file(&self) -> Result<()> {
        let connection = self.connection();
        let check = || -> rusqlite::Result<String> {
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))
        };
        let found = check().map_err(|error| Error::from(error).in_file(&self.path))?;
        if found == "ok" {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Damaged, format!("the database is damaged: {found}"))
            .in_file(&self.path))
    }
}

impl ObservationStore for SqliteStore {
    fn read(&self, job: &mut dyn FnMut(&dyn StoreReader) -> Result<()>) -> Result<()> {
        let mut connection = self.connection();
        let mut run = || -> Result<()> {
            self.adopt(&mut connection)?;
            let transaction = connection.transaction()?;
            job(&Rows(&transaction))
        };
        // Nothing was written, so to roll back is to end.
        run().map_err(|error| named(error, &self.path))
    }

    fn write(&self, job: &mut dyn FnMut(&mut dyn StoreWriter) -> Result<()>) -> Result<()> {
        let mut connection = self.connection();
        let mut run = || -> Result<()> {
            self.adopt(&mut connection)?;
            // A transaction that begins by reading cannot wait for another writer when it writes.
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            job(&mut Rows(&transaction))?;
            transaction.commit().map_err(Error::from)
        };
        run().map_err(|error| named(error, &self.path))
    }
}

/// Refuses what is there and no regular file: SQLite would wait for a pipe. A link is the choice of
/// who names it, so what it leads to counts.
fn check_regular(path: &Path) -> Result<()> {
    let found = match std::fs::metadata(path).map(|metadata| metadata.file_type()) {
        Ok(kind) if kind.is_dir() => "a directory",
        Ok(kind) if !kind.is_file() => "a pipe, a socket or a device",
        // What cannot be looked at is told when it is opened.
        _ => return Ok(()),
    };
    let message = format!("expected a database file, found {found}");
    Err(Error::new(ErrorKind::UnknownFormat, message))
}

/// Names the file in errors of the store; those of the job are not about it.
fn named(error: Error, path: &Path) -> Error {
    let is_of_file = matches!(
        error.kind(),
        ErrorKind::Io | ErrorKind::Damaged | ErrorKind::Locked | ErrorKind::UnknownFormat
    );
    if is_of_file { error.in_file(path) } else { error }
}

/// What went wrong in the database.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let (kind, what) = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                (ErrorKind::UnknownFormat, "expected a database of observations, found no database")
            }
            Some(ErrorCode::DatabaseCorrupt) => (ErrorKind::Damaged, "the database is damaged"),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (ErrorKind::Locked, "others kept the database busy")
            }
            Some(ErrorCode::DiskFull) => {
                (ErrorKind::Io, "the disk, or the size that was allowed, is full")
            }
            Some(ErrorCode::ReadOnly) => (ErrorKind::Io, "the database cannot be written"),
            Some(ErrorCode::CannotOpen) => (ErrorKind::Io, "the database cannot be opened"),
            Some(ErrorCode::TooBig) => {
                (ErrorKind::Limit, "the payload is too large for the database")
            }
            _ => (ErrorKind::Io, "the database failed"),
        };
        Error::new(kind, format!("{what}: {error}"))
    }
}

/// Creates a database that its owner alone can read, where there is none; what SQLite writes beside
/// it has the mode that it has. Where it cannot be made, what opens it next says so.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.write(true).create_new(true).open(path));
}
