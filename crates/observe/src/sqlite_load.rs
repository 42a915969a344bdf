//! What the columns of a row mean.

use rusqlite::Row;
use serde::de::DeserializeOwned;

use super::{
    Account, Figures, Moment, ObservationInfo, Outline, RejectedAnswerInfo,
    shown::short,
    sqlite_checks::{is_sound, verify},
};
use crate::{
    Error, ErrorKind, Millis, Result,
    json::{self, Value},
};

/// What is known of an observation besides payload and outline, in the order of [`info`].
pub(super) const FACTS: &str = "username, tool_name, tool, game_tick, captured_at, \
                                captured_millis, updated_tick, updated_at, since_tick, since_at, \
                                is_partial, bytes, changed, stale";
pub(super) const FACT_COLUMNS: [usize; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
/// Behind [`FACTS`] in what is read of an observation.
pub(super) const REST: &str = "facts_check, outline, outline_check";
pub(super) const STALE: usize = 13;
pub(super) const FACTS_CHECK: usize = 14;
const OUTLINE: usize = 15;
const OUTLINE_CHECK: usize = 16;
pub(super) const AGES: usize = 17;
pub(super) const CONTENT: usize = 18;
pub(super) const CONTENT_CHECK: usize = 19;

const ACCOUNT_COLUMNS: [usize; 7] = [0, 1, 2, 3, 4, 5, 6];
const OBSERVATIONS: usize = 6;
const ACCOUNT_CHECK: usize = 7;

pub(super) fn figures(row: &Row<'_>) -> Result<Figures> {
    let tool: String = get(row, 0)?;
    verify(row, &[0, 1], 2, &format!("the figures of {:?}", short(&tool)))?;
    let sums: Value = column(row, 1)?;
    Ok(Figures::from_array(sums.as_array().unwrap_or_default()))
}

pub(super) fn account(row: &Row<'_>) -> Result<(Account, i64)> {
    let name: String = get(row, 0)?;
    verify(row, &ACCOUNT_COLUMNS, ACCOUNT_CHECK, &format!("the account {:?}", short(&name)))?;
    let moment = |at: Option<i64>, tick: Option<i64>| at.map(|at| moment(at, tick));
    let latest = moment(get(row, 4)?, get(row, 5)?);
    let created = moment(get(row, 2)?, get(row, 3)?).unwrap_or_default();
    Ok((Account { name, agent: get(row, 1)?, created, latest }, get(row, OBSERVATIONS)?))
}

pub(super) fn info(row: &Row<'_>) -> Result<ObservationInfo> {
    let name: String = get(row, 1)?;
    verify(row, &FACT_COLUMNS, FACTS_CHECK, &format!("{:?}", short(&name)))?;
    let (seconds, millis): (i64, i64) = (get(row, 4)?, get(row, 5)?);
    let seen = seconds.saturating_mul(1_000).saturating_add(millis);
    // It follows from the payload: one that is damaged is made anew.
    let outline = if is_sound(row, &[0, 1, OUTLINE], OUTLINE_CHECK)? {
        column(row, OUTLINE).unwrap_or_default()
    } else {
        Outline::default()
    };
    Ok(ObservationInfo {
        tool: get(row, 2)?,
        seen: moment(seen, get(row, 3)?),
        updated: moment(get(row, 7)?, get(row, 6)?),
        since: moment(get(row, 9)?, get(row, 8)?),
        is_partial: get(row, 10)?,
        bytes: get::<i64>(row, 11)?.unsigned_abs(),
        changed: column(row, 12)?,
        stale: column(row, STALE)?,
        outline,
        damage: None,
        name,
    })
}

pub(super) fn aside_info(row: &Row<'_>) -> Result<RejectedAnswerInfo> {
    verify(row, &[0, 1, 2], 3, "what is kept beside an observation")?;
    column(row, 2)
}

pub(super) fn tick(moment: Moment) -> Option<i64> {
    moment.tick.and_then(|tick| i64::try_from(tick).ok())
}

pub(super) fn moment(at: i64, tick: Option<i64>) -> Moment {
    Moment { at: Millis::new(at), tick: tick.and_then(|tick| u64::try_from(tick).ok()) }
}

pub(super) fn get<T: rusqlite::types::FromSql>(row: &Row<'_>, index: usize) -> Result<T> {
    row.get(index).map_err(|error| match error {
        rusqlite::Error::SqliteFailure(..) => error.into(),
        other => Error::new(ErrorKind::Damaged, format!("a row is not as it was written: {other}")),
    })
}

/// A column that holds JSON.
pub(super) fn column<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> Result<T> {
    let text: String = get(row, index)?;
    json::read(text.as_bytes()).and_then(json::from_value).map_err(|error| {
        let message = format!("a row is not as it was written: {}", error.message());
        Error::new(ErrorKind::Damaged, message)
    })
}
