//! Databases on media that cannot be written.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, params_from_iter, types::Value};

use crate::{Error, ErrorKind, Result};

/// Opens a file that is only read, whoever writes it meanwhile. Where it was written ahead and nothing
/// can be written beside it, it is taken for a file that nobody changes, unless changes wait beside it.
///
/// # Errors
/// [`ErrorKind::UnknownFormat`] for a file that is no database, and [`ErrorKind::Io`].
pub fn open_read_only(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
        // Opening reads nothing yet.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    });
    let error = match opened {
        Ok(connection) => return Ok(connection),
        Err(error) => Error::from(error),
    };
    if error.kind() != ErrorKind::Io || std::fs::metadata(path).is_err() {
        return Err(error);
    }
    let ahead = beside(path, "-wal");
    if std::fs::metadata(&ahead).is_ok_and(|file| file.len() > 0) {
        let message = format!(
            "the newest changes stand in {} and cannot be read where nothing can be written: copy \
             both files to a folder that can be",
            ahead.display()
        );
        return Err(Error::new(ErrorKind::Io, message));
    }
    let flags = flags | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(unchanging(path), flags).map_err(Error::from)
}

/// The file beside a database with this at the end of its name.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The path as a URI that says that nobody changes the file.
fn unchanging(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    if cfg!(windows) && path.is_absolute() {
        uri.push_str("///");
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match *byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            byte if byte.is_ascii_alphanumeric() || b"/._-~:".contains(&byte) => {
                uri.push(char::from(byte));
            }
            byte => {
                // Writing to a text cannot fail.
                let _ = write!(uri, "%{byte:02x}");
            }
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// A copy of the tables in memory, with what the file says that it is.
pub(super) fn copy_of(file: &Connection) -> Result<Connection> {
    let copy = || -> rusqlite::Result<Connection> {
        let memory = Connection::open_in_memory()?;
        let mut tables =
            file.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")?;
        let tables = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for table in tables {
            let (name, sql): (String, Option<String>) = table?;
            let Some(sql) = sql.filter(|_| !name.starts_with("sqlite_")) else { continue };
            memory.execute_batch(&sql)?;
            let name = name.replace('"', "\"\"");
            let mut rows = file.prepare(&format!("SELECT * FROM \"{name}\""))?;
            let places = vec!["?"; rows.column_count()].join(", ");
            let mut insert =
                memory.prepare(&format!("INSERT INTO \"{name}\" VALUES ({places})"))?;
            let columns = rows.column_count();
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let values = (0..columns).map(|at| row.get::<_, Value>(at));
                insert.execute(params_from_iter(values.collect::<rusqlite::Result<Vec<_>>>()?))?;
            }
        }
        for name in ["application_id", "user_version"] {
            let value: i64 = file.pragma_query_value(None, name, |row| row.get(0))?;
            memory.pragma_update(None, name, value)?;
        }
        Ok(memory)
    };
    copy().map_err(Error::from)
}
