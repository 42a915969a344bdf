//! Checksums of rows. SQLite reads what stands in a file, and most of a damaged file can be read.

use rusqlite::{Row, params, types::ValueRef};

use super::{sqlite_load::FACTS, sqlite_rows::Rows};
use crate::{Error, ErrorKind, Result};

/// What a row's checksum covers, in order: each value with its type and its length.
pub(super) fn check_of<'v>(values: impl IntoIterator<Item = ValueRef<'v>>) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |kind: u8, bytes: &[u8]| {
        hasher.update(&[kind]);
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for value in values {
        match value {
            ValueRef::Null => add(0, &[]),
            ValueRef::Integer(number) => add(1, &number.to_le_bytes()),
            ValueRef::Real(number) => add(2, &number.to_le_bytes()),
            ValueRef::Text(text) => add(3, text),
            ValueRef::Blob(bytes) => add(4, bytes),
        }
    }
    hasher.finalize().to_hex().chars().take(16).collect()
}

/// Whether these columns of a row are as they were written, by the checksum in another.
pub(super) fn is_sound(row: &Row<'_>, columns: &[usize], check: usize) -> Result<bool> {
    let of = |column: usize| row.get_ref(column).map_err(Error::from);
    let values: Vec<ValueRef<'_>> = columns.iter().map(|at| of(*at)).collect::<Result<_>>()?;
    Ok(of(check)?.as_str().is_ok_and(|check| check == check_of(values)))
}

/// Refuses columns of a row that are not as they were written. `what` is what the row holds.
pub(super) fn verify(row: &Row<'_>, columns: &[usize], check: usize, what: &str) -> Result<()> {
    if is_sound(row, columns, check)? {
        return Ok(());
    }
    let message = format!("{what} is damaged: it does not fit its checksum");
    Err(Error::new(ErrorKind::Damaged, message))
}

/// A text as SQLite has it.
pub(super) fn text(text: &str) -> ValueRef<'_> {
    ValueRef::Text(text.as_bytes())
}

/// A number, or null.
pub(super) fn number(number: impl Into<Option<i64>>) -> ValueRef<'static> {
    number.into().map_or(ValueRef::Null, ValueRef::Integer)
}

impl Rows<'_> {
    /// Gives rows of observations that have none their checksums.
    pub(super) fn seal_snapshots(&self) -> Result<()> {
        for (columns, check) in [
            (FACTS, "facts_check"),
            ("username, tool_name, outline", "outline_check"),
            ("username, tool_name, ages, content", "content_check"),
        ] {
            let count = columns.split(',').count();
            let sql =
                format!("SELECT rowid FROM game_state_snapshots NOT INDEXED WHERE {check} = ''");
            let rows: Vec<i64> = self.rows(&sql, [], |row| Ok(row.get(0)?))?;
            for rowid in rows {
                let sql = format!("SELECT {columns} FROM game_state_snapshots WHERE rowid = ?1");
                let sum = self.row(&sql, [rowid], |row| {
                    let value = |at| row.get_ref(at).map_err(Error::from);
                    Ok(check_of((0..count).map(value).collect::<Result<Vec<_>>>()?))
                })?;
                let sql = format!("UPDATE game_state_snapshots SET {check} = ?2 WHERE rowid = ?1");
                self.execute(&sql, params![rowid, sum])?;
            }
        }
        Ok(())
    }
}
