use serde::Serialize;

use super::{Data, Difference, SnapshotReason, StateSnapshot, Timeline, differences};
use crate::{Millis, Result};

/// What the document suggests where a state has drifted.
const SUGGESTION: &str = "State drift detected. Consider creating recovery snapshot.";

/// Whether a state is what its turns lead to. The wire form has the names of the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Whether nothing differs.
    pub valid: bool,
    /// The turn of the state.
    pub turn_id: u64,
    /// Where it differs: what was expected, and what was found.
    pub differences: Vec<Difference>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<&'static str>,
}

impl Verification {
    /// Compares the state that the turns come to with the one that is there.
    pub(super) fn of(turn_id: u64, expected: &Data, found: &Data) -> Self {
        let differences = differences(expected, found);
        let valid = differences.is_empty();
        Self { valid, turn_id, differences, suggestion: (!valid).then_some(SUGGESTION) }
    }
}

impl Timeline {
    /// Rebuilds the state from the snapshot before it, so that the deltas are exercised, and
    /// compares. Replays the turns since the snapshot before, and compares both states.
    ///
    /// # Errors
    /// What cannot be read, where turns or snapshots are in files.
    pub fn verify(&self) -> Result<Verification> {
        self.verify_state(self.last_turn(), &self.head)
    }

    /// As [`Timeline::verify`], for a state that is said to be the one after a turn. Costs what
    /// that does.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) past the last turn, and as there.
    pub fn verify_state(&self, turn: u64, state: &Data) -> Result<Verification> {
        let rebuilt = self.rebuilt(turn)?;
        Ok(Verification::of(turn, &rebuilt, state))
    }

    /// Checks a snapshot against the deltas that lead to it. Costs what [`Timeline::verify_state`]
    /// does.
    ///
    /// # Errors
    /// As [`Timeline::verify_state`].
    pub fn verify_snapshot(&self, snapshot: &StateSnapshot) -> Result<Verification> {
        self.verify_state(snapshot.turn_id, &snapshot.state)
    }

    /// The state after a turn, from a snapshot of an earlier one.
    fn rebuilt(&self, turn: u64) -> Result<Data> {
        let base = self.nearest_snapshot(turn.saturating_sub(1))?;
        self.replay(&base, turn)
    }

    /// Rebuilds the state, puts it in the place of the one that is there, and makes a snapshot of
    /// it. Returns what differed. Costs what [`Timeline::verify`] does.
    ///
    /// # Errors
    /// As [`Timeline::verify`].
    pub fn recover(&mut self, now: Millis) -> Result<Verification> {
        let rebuilt = self.rebuilt(self.last_turn())?;
        let verification = Verification::of(self.last_turn(), &rebuilt, &self.head);
        self.head = rebuilt;
        self.snapshot(SnapshotReason::Manual, now);
        Ok(verification)
    }
}
