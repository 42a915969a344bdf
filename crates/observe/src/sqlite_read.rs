//! Reading rows. What SQLite does not find, or finds damaged, is looked for again without an
//! index: a damaged index says that there is nothing.

use rusqlite::Row;

use super::{
    Account, Figures, IgnoreReason, Moment, Observation, ObservationInfo, RejectedAnswer,
    RejectedAnswerInfo, StoreReader,
    observation::LOST,
    shown::short,
    sqlite_checks::verify,
    sqlite_load::{
        AGES, CONTENT, CONTENT_CHECK, FACTS, REST, account, aside_info, column, figures, get, info,
    },
    sqlite_rows::{ACCOUNT, Rows},
};
use crate::{Error, ErrorKind, Result};

impl Rows<'_> {
    fn observation_in(
        &self,
        indexed: &str,
        account: &str,
        name: &str,
    ) -> Result<Option<Observation>> {
        let sql = format!(
            "SELECT {FACTS}, {REST}, ages, content, content_check FROM game_state_snapshots \
             {indexed} WHERE username = ?1 AND tool_name = ?2"
        );
        self.row(&sql, [account, name], |row| {
            let info = info(row)?;
            let what = format!("the payload of {:?}", short(&info.name));
            verify(row, &[0, 1, AGES, CONTENT], CONTENT_CHECK, &what)?;
            let content: String = get(row, CONTENT)?;
            Ok(Observation { info, content: content.into(), ages: column(row, AGES)? })
        })
    }

    /// The observations of an account, where so many are expected.
    fn infos_in(
        &self,
        indexed: &str,
        account: &str,
        expected: Option<i64>,
    ) -> Result<Vec<ObservationInfo>> {
        let sql = format!(
            "SELECT {FACTS}, {REST} FROM game_state_snapshots {indexed} WHERE username = ?1"
        );
        let readable = |row: &Row<'_>| match info(row) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let name: String = get(row, 1).unwrap_or_else(|_| LOST.to_owned());
                Ok(ObservationInfo::damaged(&name, error.message().to_owned()))
            }
            info => info,
        };
        let mut infos = match self.rows(&format!("{sql} ORDER BY tool_name"), [account], readable) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                self.infos_one_by_one(account, &sql)?
            }
            infos => infos?,
        };
        infos.dedup_by(|a, b| a.name == b.name);
        let count = i64::try_from(infos.len()).unwrap_or(i64::MAX);
        if let Some(expected) = expected.filter(|expected| *expected != count) {
            let message = format!(
                "{count} observations can be read, and {expected} were written: the rest is lost"
            );
            infos.push(ObservationInfo::damaged(LOST, message));
        }
        Ok(infos)
    }

    /// The observations of an account where SQLite cannot read them all at once.
    fn infos_one_by_one(&self, account: &str, sql: &str) -> Result<Vec<ObservationInfo>> {
        let names = "SELECT tool_name FROM game_state_snapshots WHERE username = ?1 \
                     ORDER BY tool_name";
        let names: Vec<String> = self.rows(names, [account], |row| get(row, 0))?;
        let sql = format!("{sql} AND tool_name = ?2");
        let one = |name: &String| match self.row(&sql, [account, name.as_str()], info) {
            Ok(found) => {
                let lost = || ObservationInfo::damaged(name, "the row is lost".to_owned());
                Ok(found.unwrap_or_else(lost))
            }
            Err(error) if error.kind() == ErrorKind::Damaged => {
                Ok(ObservationInfo::damaged(name, error.message().to_owned()))
            }
            Err(error) => Err(error),
        };
        names.iter().map(one).collect()
    }
}

impl StoreReader for Rows<'_> {
    fn account(&self, name: &str) -> Result<Option<Account>> {
        Ok(self.account_where("username", name)?.map(|(account, _)| account))
    }

    fn account_of(&self, agent: &str) -> Result<Option<Account>> {
        Ok(self.account_where("agent", agent)?.map(|(account, _)| account))
    }

    fn accounts(&self) -> Result<Vec<Account>> {
        self.counted("accounts", "SELECT count(*) FROM game_state_accounts NOT INDEXED")?;
        let sql = format!(
            "SELECT {ACCOUNT}, row_check FROM game_state_accounts NOT INDEXED ORDER BY username"
        );
        self.rows(&sql, [], |row| Ok(account(row)?.0))
    }

    fn observation(&self, account: &str, name: &str) -> Result<Option<Observation>> {
        if let Some(found) = self.observation_in("", account, name)? {
            return Ok(Some(found));
        }
        // Nothing is known of it, unless an index is damaged or a row was lost.
        if let Some(missed) = self.observation_in("NOT INDEXED", account, name)? {
            return Ok(Some(missed));
        }
        let lost = self.infos(account)?.into_iter().find(|info| info.name == LOST);
        match lost.and_then(|lost| lost.damage) {
            Some(damage) => Err(Error::new(ErrorKind::Damaged, damage)),
            None => Ok(None),
        }
    }

    fn infos(&self, account: &str) -> Result<Vec<ObservationInfo>> {
        let expected = self.account_where("username", account)?;
        let expected = expected.map(|(_, observations)| observations);
        let found = self.infos_in("", account, expected);
        let damage = |found: &Result<Vec<ObservationInfo>>| match found {
            Ok(infos) => infos.iter().filter(|info| info.damage.is_some()).count(),
            Err(error) if error.kind() == ErrorKind::Damaged => usize::MAX,
            Err(_) => 0,
        };
        if damage(&found) == 0 {
            return found;
        }
        // It may be an index that is damaged.
        let scanned = self.infos_in("NOT INDEXED", account, expected);
        if damage(&scanned) < damage(&found) { scanned } else { found }
    }

    fn asides(&self, account: &str) -> Result<Vec<RejectedAnswerInfo>> {
        let sql = "SELECT username, tool_name, info, info_check FROM game_state_asides \
                   WHERE username = ?1 ORDER BY tool_name";
        self.rows(sql, [account], |row| {
            let name: String = get(row, 1).unwrap_or_else(|_| LOST.to_owned());
            let info = aside_info(row);
            Ok(info.unwrap_or_else(|_| RejectedAnswerInfo {
                tool: name.clone(),
                name,
                seen: Moment::default(),
                reason: IgnoreReason::Damaged,
                count: 1,
                excerpt: String::new(),
            }))
        })
    }

    fn aside(&self, account: &str, name: &str) -> Result<Option<RejectedAnswer>> {
        let sql = "SELECT username, tool_name, info, info_check, content, content_check \
                   FROM game_state_asides WHERE username = ?1 AND tool_name = ?2";
        self.row(sql, [account, name], |row| {
            let what = format!("the answer beside {:?}", short(name));
            verify(row, &[0, 1, 4], 5, &what)?;
            Ok(RejectedAnswer { info: aside_info(row)?, content: get::<String>(row, 4)?.into() })
        })
    }

    fn figures(&self) -> Result<Vec<(String, Figures)>> {
        self.counted("figures", "SELECT count(*) FROM game_state_figures NOT INDEXED")?;
        let sql = "SELECT tool_name, figures, row_check FROM game_state_figures NOT INDEXED \
                   ORDER BY tool_name";
        self.rows(sql, [], |row| Ok((get(row, 0)?, figures(row)?)))
    }
}
