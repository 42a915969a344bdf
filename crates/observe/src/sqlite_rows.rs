//! Rows as one transaction sees them: statements, accounts, and how many rows there are.

use rusqlite::{
    Row, Transaction, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    Account,
    sqlite_checks::{check_of, number, text, verify},
    sqlite_load::{account, get, tick},
};
use crate::{Error, ErrorKind, Result};

/// The rows as one transaction sees them.
pub(super) struct Rows<'t>(pub(super) &'t Transaction<'t>);

/// The columns of an account, in the order of [`account`].
pub(super) const ACCOUNT: &str = "username, agent, created_at, created_tick, latest_at, \
                                  latest_tick, observations";

impl Rows<'_> {
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        load: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.0.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut loaded = Vec::new();
        while let Some(row) = rows.next()? {
            loaded.push(load(row)?);
        }
        Ok(loaded)
    }

    pub(super) fn row<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        load: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(sql, params, load)?.pop())
    }

    pub(super) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<u64> {
        let mut statement = self.0.prepare_cached(sql)?;
        let changed = statement.execute(params)?;
        Ok(changed as u64)
    }

    /// One row with all of its values.
    pub(super) fn put(&self, sql: &str, values: &[ValueRef<'_>]) -> Result<u64> {
        self.execute(sql, params_from_iter(values.iter().copied().map(ToSqlOutput::Borrowed)))
    }

    pub(super) fn count(&self, sql: &str) -> Result<i64> {
        self.0.query_row(sql, [], |row| row.get(0)).map_err(Error::from)
    }

    /// The account for which the condition holds, with how many observations it has.
    pub(super) fn account_where(
        &self,
        condition: &str,
        of: &str,
    ) -> Result<Option<(Account, i64)>> {
        let sql = |indexed: &str| {
            format!(
                "SELECT {ACCOUNT}, row_check FROM game_state_accounts {indexed} WHERE {condition} = ?1"
            )
        };
        if let Some(found) = self.row(&sql(""), [of], account)? {
            return Ok(Some(found));
        }
        // An index that is damaged finds nothing, and neither does one whose rows are lost.
        let missed = self.row(&sql("NOT INDEXED"), [of], account)?;
        if missed.is_none() {
            self.counted("accounts", "SELECT count(*) FROM game_state_accounts NOT INDEXED")?;
        }
        Ok(missed)
    }

    /// Refuses a table that lost rows.
    pub(super) fn counted(&self, table: &str, sql: &str) -> Result<()> {
        let (found, expected) = (self.count(sql)?, self.total(table)?);
        if found == expected {
            return Ok(());
        }
        let message = format!(
            "the table of {table} is damaged: it has {found} rows, and {expected} were written"
        );
        Err(Error::new(ErrorKind::Damaged, message))
    }

    /// How many rows were written to a table.
    fn total(&self, table: &str) -> Result<i64> {
        let sql = "SELECT tool, rows, row_check FROM game_state_totals WHERE tool = ?1";
        let total = self.row(sql, [table], |row| {
            verify(row, &[0, 1], 2, "the table of totals")?;
            get(row, 1)
        })?;
        let lost =
            || Error::new(ErrorKind::Damaged, "the table of totals is damaged: a row is lost");
        total.ok_or_else(lost)
    }

    pub(super) fn add_rows(&self, table: &str, more: i64) -> Result<()> {
        self.set_total(table, self.total(table)?.saturating_add(more))
    }

    pub(super) fn set_total(&self, table: &str, rows: i64) -> Result<()> {
        let values = [text(table), number(rows)];
        let check = check_of(values);
        let sql = "INSERT OR REPLACE INTO game_state_totals (tool, rows, row_check) \
                   VALUES (?1, ?2, ?3)";
        self.put(sql, &[values[0], values[1], text(&check)]).map(drop)
    }

    /// Writes an account with how many observations it has.
    pub(super) fn write_account(&self, account: &Account, observations: i64) -> Result<()> {
        let (created, latest) = (account.created, account.latest);
        let mut values = vec![
            text(&account.name),
            account.agent.as_deref().map_or(ValueRef::Null, text),
            number(created.at.get()),
            number(tick(created)),
            number(latest.map(|latest| latest.at.get())),
            number(latest.and_then(tick)),
            number(observations),
        ];
        let check = check_of(values.iter().copied());
        values.push(text(&check));
        let sql = "UPDATE game_state_accounts SET agent = ?2, created_at = ?3, created_tick = ?4, \
                   latest_at = ?5, latest_tick = ?6, observations = ?7, row_check = ?8 \
                   WHERE username = ?1";
        if self.put(sql, &values)? > 0 {
            return Ok(());
        }
        let sql = format!(
            "INSERT INTO game_state_accounts ({ACCOUNT}, row_check) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        );
        self.put(&sql, &values)?;
        self.add_rows("accounts", 1)
    }

    /// Counts the observations of an account that were added or removed.
    pub(super) fn add_observations(&self, account: &str, more: i64) -> Result<()> {
        match self.account_where("username", account)? {
            Some((account, known)) => {
                self.write_account(&account, known.saturating_add(more).max(0))
            }
            None => Ok(()),
        }
    }

    pub(super) fn delete_account(&self, name: &str) -> Result<()> {
        let sql = "DELETE FROM game_state_accounts WHERE username = ?1";
        let removed = self.execute(sql, [name])?;
        if removed > 0 { self.add_rows("accounts", -1) } else { Ok(()) }
    }
}
