//! Documents of one sealed line.

use std::path::Path;

use super::layout::MOST_DOCUMENT;
use crate::{
    Error, ErrorKind, Result,
    json::{FromJson, Value, read_as},
    log::{Files, line, read_file, write_atomic},
};

/// A document as one sealed line.
pub(super) fn seal(value: &Value) -> Result<String> {
    let mut line = line::seal(&value.to_string())?;
    line.push('\n');
    Ok(line)
}

pub(super) fn write(files: &dyn Files, path: &Path, value: &Value) -> Result<u64> {
    let line = seal(value)?;
    write_atomic(files, path, line.as_bytes())?;
    Ok(line.len() as u64)
}

/// # Errors
/// `Damaged` unless the bytes are one sealed line.
pub(super) fn open(bytes: &[u8]) -> Result<Value> {
    open_as(bytes)
}

/// As [`open`], straight into another form of values.
///
/// # Errors
/// Those of [`open`].
pub(super) fn open_as<T: FromJson>(bytes: &[u8]) -> Result<T> {
    let damaged = |message: &str| Error::new(ErrorKind::Damaged, message);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| damaged("the document is not UTF-8").with_source(error))?;
    let text = text
        .strip_suffix('\n')
        .ok_or_else(|| damaged("the document does not end with a line end"))?;
    Ok(read_as(line::open(text)?.as_bytes())?)
}

/// The bytes of a file; `None` where there is none.
pub(super) fn read_if_there(files: &dyn Files, path: &Path) -> Result<Option<Vec<u8>>> {
    let is_missing =
        |kind| matches!(kind, std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory);
    match files.open(path, crate::log::OpenMode::Read) {
        Err(error) if is_missing(error.kind()) => return Ok(None),
        Err(error) => return Err(Error::io(error, "cannot open").in_file(path)),
        Ok(_) => {}
    }
    match read_file(files, path, MOST_DOCUMENT).map_err(Error::from) {
        // It went meanwhile.
        Err(error) if is_gone(&error) => Ok(None),
        read => read.map(Some),
    }
}

/// Removes a file.
pub(super) fn remove(files: &dyn Files, path: &Path) -> Result<()> {
    files.remove(path).map_err(|error| Error::io(error, "cannot remove").in_file(path))
}

/// Whether a file was not there.
pub(super) fn is_gone(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    source.is_some_and(|source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound)
}

/// The names in a directory; none where there is no such directory.
pub(super) fn names(files: &dyn Files, directory: &Path) -> Result<Vec<String>> {
    match files.list(directory) {
        Ok(names) => Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(error, "cannot list").in_file(directory)),
    }
}
