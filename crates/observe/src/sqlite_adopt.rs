//! Rows that another program wrote: by the specification's columns, and without checksums.

use super::{Account, sqlite_load::get, sqlite_load::moment, sqlite_rows::Rows};
use crate::{ErrorKind, Result};

/// What tells a row of another program from ours.
const FOREIGN: &str =
    "facts_check = '' AND outline_check = '' AND content_check = '' AND typeof(username) = 'text'";

/// Takes the checksums off a row of ours that another program writes anew, by the columns that it
/// knows. What we write has other checksums than before.
pub(super) const TRIGGER: &str = "
CREATE TRIGGER IF NOT EXISTS game_state_written_elsewhere
AFTER UPDATE OF game_tick, captured_at, content ON game_state_snapshots
WHEN NEW.facts_check = OLD.facts_check AND NEW.content_check = OLD.content_check
    AND (NEW.game_tick, NEW.captured_at, NEW.content)
        IS NOT (OLD.game_tick, OLD.captured_at, OLD.content)
BEGIN
    UPDATE game_state_snapshots SET facts_check = '', outline_check = '', content_check = ''
    WHERE rowid = NEW.rowid;
END;";

/// The row as we write it. A time may be in seconds, with a fraction too, in milliseconds (what
/// seconds would put beyond the year 5138), or a text in ISO 8601; any other stays and is damage. A
/// payload that is no JSON is a text.
const NORMAL: &str = "
UPDATE game_state_snapshots SET
    tool = CASE tool WHEN '' THEN tool_name ELSE tool END, game_tick = tick, updated_tick = tick,
    since_tick = tick, captured_at = coalesce(millis / 1000, captured_at),
    captured_millis = coalesce(millis % 1000, 0), updated_at = coalesce(millis, 0),
    since_at = coalesce(millis, 0), is_partial = 0, changed = '[]', stale = '[]', outline = '{}',
    ages = '{}', content = payload, bytes = length(CAST(payload AS BLOB))
FROM (SELECT rowid AS row, CAST(content AS TEXT) AS text, CASE
        WHEN captured_at BETWEEN -1e11 AND 1e11 THEN CAST(round(captured_at * 1000) AS INTEGER)
        WHEN captured_at BETWEEN 1e11 AND 1e14 THEN CAST(captured_at AS INTEGER)
        ELSE CAST(round((julianday(captured_at) - 2440587.5) * 86400000) AS INTEGER) END AS millis,
    CASE WHEN game_tick BETWEEN 0 AND 9e18 THEN CAST(game_tick AS INTEGER) END AS tick,
    CASE WHEN json_valid(CAST(content AS TEXT)) THEN CAST(content AS TEXT)
        ELSE json_quote(CAST(content AS TEXT)) END AS payload
    FROM game_state_snapshots WHERE ";

impl Rows<'_> {
    /// Whether another program wrote a row. O(rows).
    pub(super) fn are_foreign(&self) -> Result<bool> {
        let sql = "SELECT count(*) FROM game_state_snapshots NOT INDEXED WHERE ";
        Ok(self.count(&format!("{sql}{FOREIGN}"))? > 0)
    }

    /// Takes rows of other programs for ours: with checksums, and an account for each.
    pub(super) fn adopt(&self) -> Result<()> {
        self.execute(
            &format!("{NORMAL}{FOREIGN}) AS found WHERE game_state_snapshots.rowid = found.row"),
            [],
        )?;
        let sql = format!(
            "SELECT username, updated_at, updated_tick FROM game_state_snapshots NOT INDEXED \
             WHERE {FOREIGN} ORDER BY username, updated_at"
        );
        let found = self.rows(&sql, [], |row| {
            Ok((get::<String>(row, 0)?, moment(get(row, 1)?, get(row, 2)?)))
        })?;
        for rows in found.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((name, first)) = rows.first() else { continue };
            let known = match self.account_where("username", name) {
                // An account that is damaged is told by whoever asks for it.
                Err(error) if error.kind() == ErrorKind::Damaged => continue,
                known => known?.map(|(account, _)| account),
            };
            let mut account = known.unwrap_or_else(|| Account::new(name, *first));
            rows.iter().for_each(|(_, seen)| account.note(*seen));
            let sql = "SELECT count(*) FROM game_state_snapshots NOT INDEXED WHERE username = ?1";
            let count = self.row(sql, [name], |row| get(row, 0))?;
            self.write_account(&account, count.unwrap_or_default())?;
        }
        self.seal_snapshots()
    }
}
