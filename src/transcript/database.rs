//! Databases of SQLite in which clients keep their sessions. Such a source is no stream of bytes: it is
//! opened by its path, and read as the lines that its client would export.

use std::{
    fs::{self, File},
    io::{BufRead, Read},
    path::Path,
};

use crate::Result;
#[cfg(not(feature = "sqlite"))]
use crate::{Error, ErrorKind};

/// What a database begins with.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A session in a database.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseSession {
    /// Its id.
    pub id: String,
    /// The folder that it worked in, where the database says it.
    pub directory: Option<String>,
    /// When something of it changed last, in milliseconds since 1970.
    pub changed: i64,
    /// The bytes of its messages and of their parts.
    pub bytes: u64,
}

/// The lines of a database, which are recognised as those of a file.
pub(super) type DatabaseLines = Box<dyn BufRead + Send>;

/// The sessions of a database, in the order in which they began; `None` where the file is no database.
/// Reads the sizes of all rows.
///
/// # Errors
/// [`ErrorKind::UnknownFormat`](crate::ErrorKind::UnknownFormat) for a database of another program, and
/// without the feature `sqlite`; [`ErrorKind::Io`](crate::ErrorKind::Io),
/// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) and [`ErrorKind::Locked`](crate::ErrorKind::Locked)
/// where it cannot be read. All name the file.
pub fn database_sessions(path: impl AsRef<Path>) -> Result<Option<Vec<DatabaseSession>>> {
    let path = path.as_ref();
    if !is_database(path) {
        return Ok(None);
    }
    sessions(path).map(Some).map_err(|error| error.in_file(path))
}

/// Opens a database, or one session of it; `None` where the file is none.
pub(super) fn open(path: &Path, session: Option<&str>) -> Result<Option<DatabaseLines>> {
    if !is_database(path) {
        return Ok(None);
    }
    lines(path, session).map(Some).map_err(|error| error.in_file(path))
}

/// Whether it is a file, no pipe, that begins as a database does.
fn is_database(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    let mut read = || File::open(path).and_then(|mut file| file.read_exact(&mut head));
    fs::metadata(path).is_ok_and(|file| file.is_file()) && read().is_ok() && head == *MAGIC
}

#[cfg(feature = "sqlite")]
use super::opencode_database::{lines, sessions};

#[cfg(not(feature = "sqlite"))]
fn refused() -> Error {
    let message = "a database of SQLite is read with the feature `sqlite` alone";
    Error::new(ErrorKind::UnknownFormat, message)
}

#[cfg(not(feature = "sqlite"))]
fn sessions(_: &Path) -> Result<Vec<DatabaseSession>> {
    Err(refused())
}

#[cfg(not(feature = "sqlite"))]
fn lines(_: &Path, _: Option<&str>) -> Result<DatabaseLines> {
    Err(refused())
}
