use std::{fmt, sync::Arc};

use super::{Data, Delta};
use crate::{
    Error, ErrorKind, Millis, Result,
    json::{Fields, Object, ObjectExt, Value, from_value},
};

crate::json::serde_through_json!(StateSnapshot);

/// The parts of a state: it begins with them, and they have a checksum of their own, next to the one
/// of the whole.
pub(super) const PARTS: [&str; 6] = ["player", "world", "scene", "npcs", "quests", "gameTime"];

/// Why a snapshot was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotReason {
    /// The session starts.
    Initial,
    /// So many turns have passed.
    Interval,
    /// A scene is over.
    SceneEnd,
    /// A conflict is resolved.
    ConflictEnd,
    /// Something of weight happened.
    Milestone,
    /// Somebody asked for it.
    Manual,
    /// The session ends, or pauses.
    SessionEnd,
}

impl SnapshotReason {
    /// All seven.
    pub const ALL: [Self; 7] = [
        Self::Initial,
        Self::Interval,
        Self::SceneEnd,
        Self::ConflictEnd,
        Self::Milestone,
        Self::Manual,
        Self::SessionEnd,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Interval => "interval",
            Self::SceneEnd => "scene_end",
            Self::ConflictEnd => "conflict_end",
            Self::Milestone => "milestone",
            Self::Manual => "manual",
            Self::SessionEnd => "session_end",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// Which of two reasons for the same turn stands: normal, high, critical.
    pub(super) fn priority(self) -> u8 {
        match self {
            Self::Interval => 0,
            Self::SceneEnd | Self::ConflictEnd | Self::Milestone | Self::Manual => 1,
            Self::Initial | Self::SessionEnd => 2,
        }
    }
}

impl fmt::Display for SnapshotReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The whole state after a turn.
///
/// In memory it shares with the state before and after it whatever they have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSnapshot {
    /// The session in which it was made.
    pub session_id: Arc<str>,
    /// The turn after which this was the state; 0 before the first.
    pub turn_id: u64,
    /// When it was made: ISO 8601, or whatever another program wrote.
    pub timestamp: String,
    /// Why it was made.
    pub reason: SnapshotReason,
    /// The state.
    pub state: Data,
    /// The deltas since the snapshot before.
    pub delta_range: DeltaRange,
    /// The checksum of the turn's line in the log, where there is one: a snapshot of a turn that
    /// the log does not have is passed over.
    pub turn_checksum: Option<String>,
    /// Members that are not known here.
    pub extra: Object,
}

/// Which deltas lie between a snapshot and the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeltaRange {
    /// The id of the snapshot before; `initial` for the first.
    pub from_snapshot: String,
    /// How many deltas there are.
    pub delta_count: u64,
    /// The id of the first; empty where there is none.
    pub first_delta_id: String,
    /// The id of the last; empty where there is none.
    pub last_delta_id: String,
    /// Members that are not known here.
    pub extra: Object,
}

impl DeltaRange {
    /// The range with one more turn.
    pub(super) fn extended(&mut self, deltas: &[Delta]) {
        let (Some(first), Some(last)) = (deltas.first(), deltas.last()) else { return };
        if self.delta_count == 0 {
            self.first_delta_id.clone_from(&first.delta_id);
        }
        self.delta_count += deltas.len() as u64;
        self.last_delta_id.clone_from(&last.delta_id);
    }

    pub(super) fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("fromSnapshot", self.from_snapshot.as_str());
        object.put("deltaCount", self.delta_count);
        object.put("firstDeltaId", self.first_delta_id.as_str());
        object.put("lastDeltaId", self.last_delta_id.as_str());
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    pub(super) fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a delta range")?;
        Ok(Self {
            from_snapshot: fields.string("fromSnapshot")?.unwrap_or_default(),
            delta_count: fields.u64("deltaCount")?.unwrap_or_default(),
            first_delta_id: fields.string("firstDeltaId")?.unwrap_or_default(),
            last_delta_id: fields.string("lastDeltaId")?.unwrap_or_default(),
            extra: fields.rest(),
        })
    }
}

impl StateSnapshot {
    /// Its id: `snapshot-{turnId}`.
    pub fn snapshot_id(&self) -> String {
        format!("snapshot-{}", self.turn_id)
    }

    /// The checksums: of each part that the document names and the state has, and `combined` of the
    /// whole state. Runs in O(n) time.
    pub fn checksums(&self) -> Object {
        let mut object = Object::new();
        for part in PARTS {
            object.put_some(part, self.state.get(part).map(Data::checksum));
        }
        object.put("combined", self.state.checksum());
        object
    }

    /// The wire form. Runs in O(n) time.
    pub fn to_json(&self) -> Value {
        let mut object = self.header();
        object.put("state", &self.state);
        object.put("checksums", self.checksums());
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// What full and compressed snapshots have in common.
    pub(super) fn header(&self) -> Object {
        let mut object = Object::new();
        object.put("snapshotId", self.snapshot_id());
        object.put("sessionId", &*self.session_id);
        object.put("turnId", self.turn_id);
        object.put("timestamp", self.timestamp.as_str());
        object.put("reason", self.reason.as_str());
        object.put("deltaRange", self.delta_range.to_json());
        object.put_some("turnChecksum", self.turn_checksum.as_deref());
        object
    }

    /// Reads the wire form, and compares the checksums that are there. Those of other programs, whose
    /// hash is unknown, are no texts of 32 hexadecimal digits, and are passed over. A snapshot that
    /// gives no reason is read as a manual one. O(size), and hashes the state.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a member that is missing or of the wrong type, for a reason that is
    /// not known and for a `snapshotId` of another turn,
    /// [`ErrorKind::Damaged`] where a checksum is not that of its part.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a snapshot")?;
        let state = fields.take("state").map(Data::from);
        let (snapshot, checksums) = Self::of_document(fields, state)?;
        snapshot.check(&checksums)?;
        Ok(snapshot)
    }

    /// Reads the wire form, and gives the checksums that are still to be compared.
    #[cfg(feature = "storage")]
    pub(super) fn unchecked(mut document: Data) -> Result<(Self, Object)> {
        // The state is most of it, and stays as it is.
        let state = match &mut document {
            Data::Object(members) => members.remove("state"),
            _ => None,
        };
        Self::of_document(Fields::of(document.to_json(), "a snapshot")?, state)
    }

    fn of_document(mut fields: Fields, state: Option<Data>) -> Result<(Self, Object)> {
        let state = Fields::required(state, "state", "the state")?;
        let checksums = fields.object("checksums")?.unwrap_or_default();
        Ok((Self::of(fields, state)?, checksums))
    }

    /// What full and compressed snapshots have in common, with the state.
    pub(super) fn of(mut fields: Fields, state: Data) -> Result<Self> {
        let turn_id = Fields::required(fields.u64("turnId")?, "turnId", "a turn")?;
        let expected = format!("snapshot-{turn_id}");
        if let Some(found) = fields.string("snapshotId")?.filter(|found| *found != expected) {
            let expected = format_args!("{expected:?}, the snapshot of its turn");
            return Err(Error::expected(expected, format_args!("{found:?}")).under("snapshotId"));
        }
        Ok(Self {
            session_id: fields.string("sessionId")?.unwrap_or_default().into(),
            turn_id,
            timestamp: fields.string("timestamp")?.unwrap_or_default(),
            reason: fields.nested("reason", from_value)?.unwrap_or(SnapshotReason::Manual),
            state,
            delta_range: fields.nested("deltaRange", DeltaRange::from_json)?.unwrap_or_default(),
            turn_checksum: fields.string("turnChecksum")?,
            extra: fields.rest(),
        })
    }

    /// Compares the checksums. That of the whole covers the parts; where it is wrong, these tell
    /// what is.
    pub(super) fn check(&self, checksums: &Object) -> Result<()> {
        let combined = checksums.str_at("combined");
        if combined.is_some_and(|expected| self.state.checksum() == expected) {
            return Ok(());
        }
        for (part, expected) in checksums {
            let Some(expected) = expected.as_str().filter(|text| is_ours(text)) else { continue };
            let of_part = if part == "combined" { Some(&self.state) } else { self.state.get(part) };
            let found = of_part.map(Data::checksum).unwrap_or_default();
            if found != expected {
                let message = format!(
                    "the snapshot of turn {} fails its check: {part} should have {expected}, and has {found}",
                    self.turn_id
                );
                return Err(Error::new(ErrorKind::Damaged, message));
            }
        }
        Ok(())
    }
}

fn is_ours(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A moment as ISO 8601 in UTC: `2025-11-25T18:22:57.531Z`.
pub(super) fn iso8601(moment: Millis) -> String {
    const DAY: i64 = 86_400_000;
    let (days, millis) = (moment.get().div_euclid(DAY), moment.get().rem_euclid(DAY));
    // Days since 0000-03-01, so that leap days end a year (Howard Hinnant's civil_from_days).
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
    let (second, milli) = (millis / 1000 % 60, millis % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_javascript_writes_them() {
        let check = |millis, text: &str| assert_eq!(iso8601(Millis::new(millis)), text);
        check(0, "1970-01-01T00:00:00.000Z");
        check(1_732_557_777_531, "2024-11-25T18:02:57.531Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(-1, "1969-12-31T23:59:59.999Z");
    }
}
