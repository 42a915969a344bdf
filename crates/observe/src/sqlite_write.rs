//! Writing rows, each with its checksums.

use rusqlite::params;
use serde::Serialize;

use super::{
    Account, Figures, Observation, RejectedAnswer, StaleMark, StoreWriter,
    shown::short,
    sqlite_checks::{check_of, number, text, verify},
    sqlite_load::{FACT_COLUMNS, FACTS, FACTS_CHECK, REST, STALE, figures, tick},
    sqlite_rows::Rows,
};
use crate::{Error, ErrorKind, Result, json::to_value};

impl StoreWriter for Rows<'_> {
    fn put_account(&mut self, account: &Account) -> Result<()> {
        if let Some(agent) = &account.agent
            && let Some((other, observations)) = self.account_where("agent", agent)?
            && other.name != account.name
        {
            self.write_account(&Account { agent: None, ..other }, observations)?;
        }
        let known = self.account_where("username", &account.name)?;
        self.write_account(account, known.map_or(0, |(_, observations)| observations))
    }

    fn remove_account(&mut self, name: &str) -> Result<()> {
        self.remove_observations(name, None)?;
        self.remove_asides(name, None)?;
        self.delete_account(name)
    }

    fn put_observation(&mut self, account: &str, observation: &Observation) -> Result<()> {
        let Observation { info, content, ages } = observation;
        let (changed, stale) = (written(&info.changed)?, written(&info.stale)?);
        let (outline, ages) = (written(&info.outline)?, written(ages)?);
        let seen = info.seen.at.get();
        let facts = [
            text(account),
            text(&info.name),
            text(&info.tool),
            number(tick(info.seen)),
            number(seen.div_euclid(1_000)),
            number(seen.rem_euclid(1_000)),
            number(tick(info.updated)),
            number(info.updated.at.get()),
            number(tick(info.since)),
            number(info.since.at.get()),
            number(i64::from(info.is_partial)),
            number(i64::try_from(info.bytes).unwrap_or(i64::MAX)),
            text(&changed),
            text(&stale),
        ];
        let [name, tool] = [text(account), text(&info.name)];
        let facts_check = check_of(facts);
        let outline_check = check_of([name, tool, text(&outline)]);
        let content_check = check_of([name, tool, text(&ages), text(content)]);
        let id = id_of(account, &info.name);
        let mut values = facts.to_vec();
        values.extend([
            text(&facts_check),
            text(&outline),
            text(&outline_check),
            text(&ages),
            text(content),
            text(&content_check),
        ]);
        let sql = "UPDATE game_state_snapshots SET tool = ?3, game_tick = ?4, captured_at = ?5, \
                   captured_millis = ?6, updated_tick = ?7, updated_at = ?8, since_tick = ?9, \
                   since_at = ?10, is_partial = ?11, bytes = ?12, changed = ?13, stale = ?14, \
                   facts_check = ?15, outline = ?16, outline_check = ?17, ages = ?18, \
                   content = ?19, content_check = ?20 WHERE username = ?1 AND tool_name = ?2";
        if self.put(sql, &values)? > 0 {
            return Ok(());
        }
        values.push(text(&id));
        let sql = format!(
            "INSERT INTO game_state_snapshots ({FACTS}, {REST}, ages, content, content_check, id) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?18, ?19, ?20, ?21)"
        );
        self.put(&sql, &values)?;
        self.add_observations(account, 1)
    }

    fn put_stale(&mut self, account: &str, name: &str, stale: &[StaleMark]) -> Result<()> {
        let sql = format!(
            "SELECT {FACTS}, facts_check FROM game_state_snapshots \
             WHERE username = ?1 AND tool_name = ?2"
        );
        let stale = written(stale)?;
        let check = self.row(&sql, [account, name], |row| {
            verify(row, &FACT_COLUMNS, FACTS_CHECK, &format!("{:?}", short(name)))?;
            let value = |at: &usize| match *at {
                STALE => Ok(text(&stale)),
                at => row.get_ref(at).map_err(Error::from),
            };
            Ok(check_of(FACT_COLUMNS.iter().map(value).collect::<Result<Vec<_>>>()?))
        })?;
        let Some(check) = check else { return Ok(()) };
        let sql = "UPDATE game_state_snapshots SET stale = ?3, facts_check = ?4 \
                   WHERE username = ?1 AND tool_name = ?2";
        self.execute(sql, params![account, name, stale, check])?;
        Ok(())
    }

    fn remove_observations(&mut self, account: &str, name: Option<&str>) -> Result<u64> {
        let sql = "DELETE FROM game_state_snapshots \
                   WHERE username = ?1 AND (?2 IS NULL OR tool_name = ?2)";
        let removed = self.execute(sql, params![account, name])?;
        if name.is_some() {
            if removed > 0 {
                self.add_observations(account, -1)?;
            }
            return Ok(removed);
        }
        match self.account_where("username", account) {
            Ok(Some((account, 1..))) => self.write_account(&account, 0)?,
            Ok(_) => {}
            // Nothing is left that it would belong to.
            Err(error) if error.kind() == ErrorKind::Damaged => self.delete_account(account)?,
            Err(error) => return Err(error),
        }
        Ok(removed)
    }

    fn put_aside(&mut self, account: &str, aside: &RejectedAnswer) -> Result<()> {
        let [account, name] = [text(account), text(&aside.info.name)];
        let info = written(&aside.info)?;
        let info_check = check_of([account, name, text(&info)]);
        let content_check = check_of([account, name, text(&aside.content)]);
        let sql = "INSERT OR REPLACE INTO game_state_asides \
                   (username, tool_name, info, info_check, content, content_check) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = [
            account,
            name,
            text(&info),
            text(&info_check),
            text(&aside.content),
            text(&content_check),
        ];
        self.put(sql, &values).map(drop)
    }

    fn remove_asides(&mut self, account: &str, name: Option<&str>) -> Result<u64> {
        let sql = "DELETE FROM game_state_asides \
                   WHERE username = ?1 AND (?2 IS NULL OR tool_name = ?2)";
        self.execute(sql, params![account, name])
    }

    fn add_figures(&mut self, tool: &str, more: &Figures) -> Result<()> {
        let sql = "SELECT tool_name, figures, row_check FROM game_state_figures \
                   WHERE tool_name = ?1";
        let known = match self.row(sql, [tool], figures) {
            // Figures that are damaged stay so: to begin anew would hide it.
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(()),
            known => known?,
        };
        let sum = known.unwrap_or_default().plus(*more);
        let sums = sum.to_array().to_string();
        let check = check_of([text(tool), text(&sums)]);
        let sql = "INSERT OR REPLACE INTO game_state_figures (tool_name, figures, row_check) \
                   VALUES (?1, ?2, ?3)";
        self.put(sql, &[text(tool), text(&sums), text(&check)])?;
        if known.is_none() { self.add_rows("figures", 1) } else { Ok(()) }
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

fn written<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    Ok(to_value(value)?.to_string())
}
