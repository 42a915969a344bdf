//! Observations as rows.

use rusqlite::{Row, Transaction, params};

use super::{
    Account, Ages, Figures, Moment, Observation, ObservationInfo, Outline, Pointer, StaleMark,
    StoreReader, StoreWriter, sqlite::failed,
};
use crate::{
    Error, ErrorKind, Result,
    id::Millis,
    json::{self, Value},
};

/// The rows as one transaction sees them.
pub(super) struct Rows<'t>(pub(super) &'t Transaction<'t>);

/// The columns of an [`ObservationInfo`], in the order of [`info`].
const INFO: &str = "tool_name, tool, game_tick, captured_at, captured_millis, updated_tick, \
                    updated_at, is_partial, bytes, changed, stale, outline";
const ACCOUNT: &str = "username, agent, created_at, created_tick, latest_at, latest_tick";

impl Rows<'_> {
    fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        load: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.0.prepare_cached(sql).map_err(|error| failed(&error))?;
        let mut rows = statement.query(params).map_err(|error| failed(&error))?;
        let mut loaded = Vec::new();
        while let Some(row) = rows.next().map_err(|error| failed(&error))? {
            loaded.push(load(row)?);
        }
        Ok(loaded)
    }

    fn row<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        load: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(sql, params, load)?.pop())
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<u64> {
        let mut statement = self.0.prepare_cached(sql).map_err(|error| failed(&error))?;
        let changed = statement.execute(params).map_err(|error| failed(&error))?;
        Ok(changed as u64)
    }
}

impl StoreReader for Rows<'_> {
    fn account(&self, name: &str) -> Result<Option<Account>> {
        let sql = format!("SELECT {ACCOUNT} FROM game_state_accounts WHERE username = ?1");
        self.row(&sql, [name], account)
    }

    fn account_of(&self, agent: &str) -> Result<Option<Account>> {
        let sql = format!("SELECT {ACCOUNT} FROM game_state_accounts WHERE agent = ?1");
        self.row(&sql, [agent], account)
    }

    fn accounts(&self) -> Result<Vec<Account>> {
        let sql = format!("SELECT {ACCOUNT} FROM game_state_accounts ORDER BY username");
        self.rows(&sql, [], account)
    }

    fn observation(&self, account: &str, name: &str) -> Result<Option<Observation>> {
        let sql = format!(
            "SELECT {INFO}, ages, content FROM game_state_snapshots \
             WHERE username = ?1 AND tool_name = ?2"
        );
        self.row(&sql, [account, name], |row| {
            let content: String = get(row, 13)?;
            let ages = Ages::from_json(column(row, 12)?).map_err(|error| damaged(&error))?;
            Ok(Observation { info: info(row)?, content: content.into(), ages })
        })
    }

    fn infos(&self, account: &str) -> Result<Vec<ObservationInfo>> {
        let sql = format!(
            "SELECT {INFO} FROM game_state_snapshots WHERE username = ?1 ORDER BY tool_name"
        );
        self.rows(&sql, [account], info)
    }

    fn figures(&self) -> Result<Vec<(String, Figures)>> {
        let sql = "SELECT tool_name, figures FROM game_state_figures ORDER BY tool_name";
        self.rows(sql, [], |row| Ok((get(row, 0)?, figures(&column(row, 1)?))))
    }
}

impl StoreWriter for Rows<'_> {
    fn put_account(&mut self, account: &Account) -> Result<()> {
        if let Some(agent) = &account.agent {
            let sql = "UPDATE game_state_accounts SET agent = NULL \
                       WHERE agent = ?1 AND username <> ?2";
            self.execute(sql, params![agent, account.name])?;
        }
        let sql = format!(
            "INSERT INTO game_state_accounts ({ACCOUNT}) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
             ON CONFLICT(username) DO UPDATE SET agent = ?2, created_at = ?3, created_tick = ?4, \
             latest_at = ?5, latest_tick = ?6"
        );
        let (created, latest) = (account.created, account.latest);
        self.execute(
            &sql,
            params![
                account.name,
                account.agent,
                created.at.get(),
                tick(created),
                latest.map(|latest| latest.at.get()),
                latest.and_then(tick),
            ],
        )?;
        Ok(())
    }

    fn remove_account(&mut self, name: &str) -> Result<()> {
        self.remove_observations(name, None)?;
        self.execute("DELETE FROM game_state_accounts WHERE username = ?1", [name])?;
        Ok(())
    }

    fn put_observation(&mut self, account: &str, observation: &Observation) -> Result<()> {
        let Observation { info, content, ages } = observation;
        let sql = "INSERT INTO game_state_snapshots (id, username, tool_name, tool, game_tick, \
                   captured_at, captured_millis, updated_tick, updated_at, is_partial, bytes, \
                   changed, stale, outline, ages, content) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) \
                   ON CONFLICT(username, tool_name) DO UPDATE SET tool = ?4, game_tick = ?5, \
                   captured_at = ?6, captured_millis = ?7, updated_tick = ?8, updated_at = ?9, \
                   is_partial = ?10, bytes = ?11, changed = ?12, stale = ?13, outline = ?14, \
                   ages = ?15, content = ?16";
        let changed: Value = info.changed.iter().map(Pointer::to_string).collect();
        let seen = info.seen.at.get();
        self.execute(
            sql,
            params![
                id_of(account, &info.name),
                account,
                info.name,
                info.tool,
                tick(info.seen),
                seen.div_euclid(1_000),
                seen.rem_euclid(1_000),
                tick(info.updated),
                info.updated.at.get(),
                info.is_partial,
                i64::try_from(info.bytes).unwrap_or(i64::MAX),
                changed.to_string(),
                marks(&info.stale).to_string(),
                info.outline.to_json().to_string(),
                ages.to_json().to_string(),
                &**content,
            ],
        )?;
        Ok(())
    }

    fn put_stale(&mut self, account: &str, name: &str, stale: &[StaleMark]) -> Result<()> {
        let sql =
            "UPDATE game_state_snapshots SET stale = ?3 WHERE username = ?1 AND tool_name = ?2";
        self.execute(sql, params![account, name, marks(stale).to_string()])?;
        Ok(())
    }

    fn remove_observations(&mut self, account: &str, name: Option<&str>) -> Result<u64> {
        let sql = "DELETE FROM game_state_snapshots \
                   WHERE username = ?1 AND (?2 IS NULL OR tool_name = ?2)";
        self.execute(sql, params![account, name])
    }

    fn add_figures(&mut self, tool: &str, more: &Figures) -> Result<()> {
        let sql = "SELECT figures FROM game_state_figures WHERE tool_name = ?1";
        let known = self.row(sql, [tool], |row| Ok(figures(&column(row, 0)?)))?;
        let sum = known.unwrap_or_default().plus(*more);
        let text = sum.to_array().into_iter().collect::<Value>().to_string();
        let sql = "INSERT INTO game_state_figures (tool_name, figures) VALUES (?1, ?2) \
                   ON CONFLICT(tool_name) DO UPDATE SET figures = ?2";
        self.execute(sql, params![tool, text])?;
        Ok(())
    }
}

/// The id of a row: the same for the same account and name, so that it says nothing else.
fn id_of(account: &str, name: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(account.len() as u64).to_le_bytes());
    hasher.update(account.as_bytes());
    hasher.update(name.as_bytes());
    hasher.finalize().to_hex().chars().take(32).collect()
}

fn tick(moment: Moment) -> Option<i64> {
    moment.tick.and_then(|tick| i64::try_from(tick).ok())
}

fn marks(stale: &[StaleMark]) -> Value {
    stale.iter().map(StaleMark::to_json).collect()
}

fn figures(value: &Value) -> Figures {
    let mut sums = [0; Figures::COUNT];
    let known = value.as_array().unwrap_or_default();
    sums.iter_mut().zip(known).for_each(|(sum, known)| *sum = known.as_u64().unwrap_or_default());
    Figures::from_array(sums)
}

fn account(row: &Row<'_>) -> Result<Account> {
    let moment = |at: Option<i64>, tick: Option<i64>| at.map(|at| moment(at, tick));
    let latest = moment(get(row, 4)?, get(row, 5)?);
    let created = moment(get(row, 2)?, get(row, 3)?).unwrap_or_default();
    Ok(Account { name: get(row, 0)?, agent: get(row, 1)?, created, latest })
}

fn info(row: &Row<'_>) -> Result<ObservationInfo> {
    let (seconds, millis): (i64, i64) = (get(row, 3)?, get(row, 4)?);
    let seen = seconds.saturating_mul(1_000).saturating_add(millis);
    let changed = column(row, 9)?;
    let changed = changed.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
    let Value::Array(stale) = column(row, 10)? else {
        return Err(damaged(&Error::expected("an array of stale marks", "another value")));
    };
    Ok(ObservationInfo {
        name: get(row, 0)?,
        tool: get(row, 1)?,
        seen: moment(seen, get(row, 2)?),
        updated: moment(get(row, 6)?, get(row, 5)?),
        is_partial: get(row, 7)?,
        bytes: get::<i64>(row, 8)?.unsigned_abs(),
        changed: changed
            .map(Pointer::parse)
            .collect::<Result<_>>()
            .map_err(|error| damaged(&error))?,
        stale: stale
            .into_iter()
            .map(StaleMark::from_json)
            .collect::<Result<_>>()
            .map_err(|error| damaged(&error))?,
        // It follows from the payload, and one that nobody made is made anew.
        outline: column(row, 11).and_then(Outline::from_json).unwrap_or_default(),
    })
}

fn moment(at: i64, tick: Option<i64>) -> Moment {
    Moment { at: Millis::new(at), tick: tick.and_then(|tick| u64::try_from(tick).ok()) }
}

fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, index: usize) -> Result<T> {
    row.get(index).map_err(|error| match error {
        rusqlite::Error::SqliteFailure(..) => failed(&error),
        other => Error::new(ErrorKind::Damaged, format!("a row is not as it was written: {other}")),
    })
}

/// A column that holds JSON.
fn column(row: &Row<'_>, index: usize) -> Result<Value> {
    let text: String = get(row, index)?;
    json::read(text.as_bytes()).map_err(|error| damaged(&error))
}

fn damaged(error: &Error) -> Error {
    Error::new(ErrorKind::Damaged, format!("a row is not as it was written: {}", error.message()))
}
