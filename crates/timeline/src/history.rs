//! States of earlier turns; going back, forth and another way.

use std::{ops::RangeInclusive, sync::Arc};

#[cfg(feature = "storage")]
use super::slot::Slot;
use super::{
    Data, Delta, Event, MappedEvents, PushReport, RetentionPlan, SnapshotInfo, StateSnapshot,
    Timeline, TurnRecord, diff, timeline::check_id, turn::Rewind,
};
use crate::{Error, ErrorKind, Millis, Result};

impl Timeline {
    /// The state after a turn; 0 is the one before the first. O(deltas since the snapshot before
    /// it).
    ///
    /// Replays the turns after the nearest snapshot before it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] past the last turn; what cannot be read, where turns or snapshots
    /// are in files.
    pub fn state_at(&self, turn: u64) -> Result<Data> {
        if turn == self.last_turn() {
            return Ok(self.head.clone());
        }
        let base = self.nearest_snapshot(turn)?;
        self.replay(&base, turn)
    }

    /// The last snapshot of a turn up to `turn`: what [`Timeline::state_at`] replays from. It is in
    /// memory, or read where a session directory has a later one; a copy shares the state.
    ///
    /// Cost: O(log n) over the snapshots in memory, and a read where a later one is in a file.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] past the last turn, [`ErrorKind::Damaged`] where no sound snapshot
    /// is left up to there; what cannot be read, where snapshots are in files.
    pub fn nearest_snapshot(&self, turn: u64) -> Result<Arc<StateSnapshot>> {
        if turn > self.last_turn() {
            return Err(self.no_turn(turn));
        }
        let (mut low, mut high) = (0, self.snapshots.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let is_before = self.snapshots.get(middle).is_some_and(|found| found.turn_id <= turn);
            if is_before { low = middle + 1 } else { high = middle }
        }
        let here = low.checked_sub(1).and_then(|at| self.snapshots.get(at)).cloned();
        let there = match &self.source {
            Some(source) if here.as_ref().is_none_or(|here| here.turn_id < turn) => {
                source.nearest(turn)?
            }
            _ => None,
        };
        let later = |a: &Arc<StateSnapshot>, b: &Arc<StateSnapshot>| a.turn_id >= b.turn_id;
        match (here, there) {
            (Some(here), Some(there)) => Ok(if later(&here, &there) { here } else { there }),
            (Some(found), None) | (None, Some(found)) => Ok(found),
            (None, None) => {
                let message = format!("no snapshot up to turn {turn} is left to replay from");
                Err(Error::new(ErrorKind::Damaged, message))
            }
        }
    }

    /// The state after `turn`, from that of an earlier snapshot.
    pub(super) fn replay(&self, base: &StateSnapshot, turn: u64) -> Result<Data> {
        self.replayed(base.turn_id, base.state.clone(), turn)
    }

    /// The state after `turn`, from that after `from`.
    pub(super) fn replayed(&self, from: u64, mut state: Data, turn: u64) -> Result<Data> {
        self.each_turn(from + 1, turn, |record| {
            let drift = self.applier(record.lenient).apply_all(&mut state, &record.deltas);
            drift.map(drop).map_err(|error| error.at(|place| place.turn = Some(record.turn_id)))
        })?;
        Ok(state)
    }

    /// Walks over some turns.
    pub(super) fn each_turn(
        &self,
        from: u64,
        to: u64,
        mut walk: impl FnMut(&TurnRecord) -> Result<()>,
    ) -> Result<()> {
        (from..=to).try_for_each(|turn| walk(&*self.turn(turn)?))
    }

    /// The deltas of some turns, in the order in which they were applied: for `1..=3` those that
    /// turn the state before turn 1 into that after turn 3. Reads these turns.
    ///
    /// ```
    /// use afterimage_timeline::{Applier, Data, Event, Timeline, TurnRecord};
    ///
    /// let mut timeline = Timeline::builder("tale", Timeline::empty_state()).build()?;
    /// for zone in ["harbour", "market", "inn"] {
    ///     let moved = Event::new("move", Data::from_iter([("zone", Data::from(zone))]));
    ///     timeline.push(TurnRecord::new("player").with_event(moved))?;
    /// }
    /// let mut state = timeline.nearest_snapshot(1)?.state.clone();
    /// Applier::strict(timeline.targets()).apply_all(&mut state, &timeline.deltas(1..=3)?)?;
    /// assert_eq!(&state, timeline.state());
    /// # Ok::<(), afterimage_timeline::Error>(())
    /// ```
    ///
    /// Cost: O(turns and deltas of the range); copies the deltas.
    ///
    /// # Errors
    /// Those of [`Timeline::turn`].
    pub fn deltas(&self, turns: RangeInclusive<u64>) -> Result<Vec<Delta>> {
        let mut deltas = Vec::new();
        self.each_turn(*turns.start(), *turns.end(), |record| {
            deltas.extend(record.deltas.iter().cloned());
            Ok(())
        })?;
        Ok(deltas)
    }

    /// What events come to in the state as it is: their deltas, in which those of one event see
    /// those of the events before it. Nothing is pushed. The mappers are those of the timeline; see
    /// [`Mappers::map`](super::Mappers::map). O(events), and what the mappers do.
    ///
    /// # Errors
    /// Those of [`Mappers::map`](super::Mappers::map).
    pub fn map(&self, events: &[Event]) -> Result<MappedEvents> {
        self.mappers.map(events, &self.head, &self.targets)
    }

    /// The deltas that turn the state after one turn into that after another.
    ///
    /// Cost: two of [`Timeline::state_at`], and the comparison of both states.
    ///
    /// # Errors
    /// Those of [`Timeline::state_at`].
    pub fn diff(&self, from: u64, to: u64) -> Result<Vec<Delta>> {
        Ok(diff(&self.state_at(from)?, &self.state_at(to)?, &self.targets))
    }

    /// Takes turns back: adds a turn after which the state is the one after `to`. History stays as
    /// it is. Costs a [`Timeline::diff`] and a [`Timeline::push`].
    ///
    /// # Errors
    /// Those of [`Timeline::state_at`].
    pub fn undo(&mut self, to: u64, now: Millis) -> Result<PushReport> {
        let turn = self.undo_turn(to, now)?;
        self.push(turn)
    }

    /// Takes the last undo back that was not taken back yet: adds a turn after which the state is
    /// the one before that undo. Any other turn in between makes an end of it. Reads the undos
    /// before, and costs a [`Timeline::diff`] and a [`Timeline::push`].
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where nothing was undone; those of [`Timeline::state_at`].
    pub fn redo(&mut self, now: Millis) -> Result<PushReport> {
        let turn = self.redo_turn(now)?;
        self.push(turn)
    }

    pub(super) fn undo_turn(&self, to: u64, now: Millis) -> Result<TurnRecord> {
        self.rewound("undo", Rewind { is_undo: true, to, extra: crate::json::Object::new() }, now)
    }

    pub(super) fn redo_turn(&self, now: Millis) -> Result<TurnRecord> {
        let to = self.redo_target()?.ok_or_else(|| {
            Error::new(ErrorKind::OutOfRange, "there is nothing to redo: no undo came last")
        })?;
        self.rewound("redo", Rewind { is_undo: false, to, extra: crate::json::Object::new() }, now)
    }

    fn rewound(&self, cause: &str, rewind: Rewind, now: Millis) -> Result<TurnRecord> {
        let deltas = diff(&self.head, &self.state_at(rewind.to)?, &self.targets);
        let deltas = deltas.into_iter().map(|delta| delta.caused_by(cause, ""));
        let mut turn = TurnRecord::new(cause).at(now).with_deltas(deltas);
        turn.rewind = Some(rewind);
        Ok(turn)
    }

    /// The turn whose state a redo brings back.
    fn redo_target(&self) -> Result<Option<u64>> {
        let mut rewinds = Vec::new();
        for turn in (1..=self.last_turn()).rev() {
            let Some(rewind) = self.turn(turn)?.rewind.clone() else { break };
            rewinds.push((turn, rewind));
        }
        let mut open = Vec::new();
        for (turn, rewind) in rewinds.into_iter().rev() {
            if rewind.is_undo {
                open.push(turn - 1);
            } else {
                open.pop();
            }
        }
        Ok(open.pop())
    }

    /// Another history that shares this one up to a turn, and copies nothing of it. Costs what
    /// [`Timeline::state_at`] does, and reads the turns since the last snapshot.
    ///
    /// # Errors
    /// Those of [`Timeline::state_at`], and of [`TimelineBuilder::build`](super::TimelineBuilder::build)
    /// for the id.
    pub fn branch(&self, at: u64, session_id: impl Into<String>) -> Result<Self> {
        let session_id = session_id.into();
        check_id(&session_id)?;
        let head = self.state_at(at)?;
        let turns = self.turns.prefix(usize::try_from(at).unwrap_or(usize::MAX));
        let kept = self.snapshots.iter().take_while(|snapshot| snapshot.turn_id <= at).count();
        let mut branch = self.clone();
        branch.session_id = session_id.into();
        branch.turns = turns;
        branch.head = head;
        branch.snapshots = self.snapshots.prefix(kept);
        branch.forget_ids();
        branch.range = branch.range_since_snapshot()?;
        Ok(branch)
    }

    /// The deltas since the last snapshot.
    pub(super) fn range_since_snapshot(&self) -> Result<super::DeltaRange> {
        let last = self.nearest_snapshot(self.last_turn())?;
        let mut range =
            super::DeltaRange { from_snapshot: last.snapshot_id(), ..super::DeltaRange::default() };
        self.each_turn(last.turn_id + 1, self.last_turn(), |record| {
            range.extended(&record.deltas);
            Ok(())
        })?;
        Ok(range)
    }

    /// Takes over what a log holds: its turns, and where their snapshots are. The state is still to be
    /// [replayed](Timeline::resume_from).
    #[cfg(feature = "storage")]
    pub(super) fn resume(
        &mut self,
        turns: impl IntoIterator<Item = Slot>,
        source: Arc<dyn super::SnapshotSource>,
    ) {
        self.turns = turns.into_iter().collect();
        self.source = Some(source);
    }

    /// Replays the turns after a snapshot, which is then the only one in memory.
    #[cfg(feature = "storage")]
    pub(super) fn resume_from(&mut self, base: Arc<StateSnapshot>) -> Result<()> {
        let head = self.replay(&base, self.last_turn())?;
        self.restart(base, head)
    }

    /// Takes a state over that was rebuilt from a snapshot, and forgets the other snapshots.
    #[cfg(feature = "storage")]
    pub(super) fn restart(&mut self, base: Arc<StateSnapshot>, head: Data) -> Result<()> {
        self.head = head;
        self.snapshots = [base].into_iter().collect();
        self.range = self.range_since_snapshot()?;
        Ok(())
    }

    /// Lets the snapshots go that the policy does not keep. Those in memory have no size.
    pub(super) fn evict_snapshots(&mut self) {
        let info = |snapshot: &Arc<StateSnapshot>| SnapshotInfo {
            turn_id: snapshot.turn_id,
            reason: snapshot.reason,
            bytes: 0,
            base: None,
        };
        let infos: Vec<SnapshotInfo> = self.snapshots.iter().map(info).collect();
        let plan = RetentionPlan::of(&infos, self.last_turn(), &self.config.policy);
        if !plan.remove.is_empty() {
            self.retain_snapshots(|turn| plan.remove.binary_search(&turn).is_err());
        }
    }

    /// Lets the snapshots in memory go whose turns `keeps` does not name. The state is still that of
    /// any turn, from an earlier snapshot; the first one stays. O(snapshots).
    pub fn retain_snapshots(&mut self, keeps: impl Fn(u64) -> bool) {
        let kept = self.snapshots.iter().enumerate();
        let kept = kept.filter(|(index, snapshot)| *index == 0 || keeps(snapshot.turn_id));
        self.snapshots = kept.map(|(_, snapshot)| Arc::clone(snapshot)).collect();
    }
}

/// A state, with where it comes from.
impl StateSnapshot {
    /// Whether the deltas lead from this snapshot to `end`, as the checksums of both tell. Applies
    /// the deltas, and hashes both states: O(n).
    ///
    /// # Errors
    /// Those of [`Applier::apply`](super::Applier::apply), strictly.
    pub fn verify_chain(
        &self,
        deltas: &[Delta],
        end: &StateSnapshot,
        targets: &super::Targets,
    ) -> Result<bool> {
        let mut state: Data = self.state.clone();
        super::Applier::strict(targets).apply_all(&mut state, deltas)?;
        Ok(state.checksum() == end.state.checksum())
    }
}
