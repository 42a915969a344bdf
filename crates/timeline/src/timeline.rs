use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    Applier, Data, Delta, DeltaRange, Drift, Mappers, SnapshotReason, StateSnapshot, Summary,
    Targets, TimelineBuilder, TimelineConfig, TurnRecord, Verification,
    seq::{Item, Seq},
    slot::Slot,
    snapshot::{PARTS, iso8601},
};
use crate::{Error, ErrorKind, Millis, Result};

/// The longest id of a session, in characters.
pub const MAX_ID: usize = 1024;

/// The history of a state: a state to begin with, and turns that change it.
///
/// A turn is checked, applied, kept, and never changed again. States of earlier turns are shared
/// with the snapshots, and so is the past with [branches](Timeline::branch). Everything is in
/// memory; `SessionDir` (feature `storage`) keeps a timeline on disk.
///
/// ```
/// use afterimage_timeline::{Data, Event, Timeline, TurnRecord};
///
/// let state = Data::from_iter([("player", Data::object()), ("npcs", Data::object())]);
/// let mut timeline = Timeline::builder("tale", state).build()?;
/// for zone in ["harbour", "market"] {
///     let moved = Event::new("move", Data::from_iter([("zone", Data::from(zone))]));
///     timeline.push(TurnRecord::new("player").with_event(moved))?;
/// }
/// let zone = afterimage_timeline::json::Path::of_keys(["player", "location", "zone"]);
/// assert_eq!(timeline.state_at(1)?.at(zone.elements()), Some(&Data::from("harbour")));
/// let blame = timeline.blame(&zone, 2)?.unwrap();
/// assert_eq!((blame.turn_id, blame.delta.cause.as_str()), (2, "move"));
/// # Ok::<(), afterimage_timeline::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Timeline {
    pub(super) session_id: Arc<str>,
    pub(super) config: Arc<TimelineConfig>,
    pub(super) targets: Arc<Targets>,
    pub(super) mappers: Mappers,
    pub(super) turns: Seq<Slot>,
    pub(super) snapshots: Seq<Arc<StateSnapshot>>,
    pub(super) source: Option<Arc<dyn SnapshotSource>>,
    pub(super) head: Data,
    /// The deltas since the last snapshot.
    pub(super) range: DeltaRange,
    /// The deltas whose ids do not follow from their turn, with their turns.
    pub(super) ids: OnceLock<HashMap<String, u64>>,
}

/// Where a timeline gets snapshots that it does not hold.
pub trait SnapshotSource: std::fmt::Debug + Send + Sync {
    /// The last sound snapshot of a turn up to `turn`.
    ///
    /// # Errors
    /// What the source cannot read and cannot do without.
    fn nearest(&self, turn: u64) -> Result<Option<Arc<StateSnapshot>>>;
}

impl Item for Arc<StateSnapshot> {
    type Key = ();

    fn key_ref(&self) -> &() {
        &()
    }
}

pub(super) fn check_id(id: &str) -> Result<()> {
    let length = id.chars().count();
    if length == 0 || length > MAX_ID {
        let expected = format!("a session id of 1 to {MAX_ID} characters");
        return Err(Error::expected(expected, format_args!("{length} characters")));
    }
    Ok(())
}

/// A turn that was checked, with the state after it.
#[derive(Debug)]
pub(super) struct PreparedTurn {
    pub(super) record: Arc<TurnRecord>,
    pub(super) state: Data,
    drift: Vec<Drift>,
    repeated: Vec<String>,
    unmapped: Vec<String>,
}

/// What came of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushReport {
    /// The turn, as it is kept.
    pub record: Arc<TurnRecord>,
    /// What did not fit, leniently.
    pub drift: Vec<Drift>,
    /// The ids of deltas that were left out, since the log has them already.
    pub repeated: Vec<String>,
    /// The types of events that have no mapper, and so changed nothing.
    pub unmapped: Vec<String>,
    /// Why a snapshot was made after it.
    pub snapshot: Option<SnapshotReason>,
    /// The outcome of the check that was due.
    pub verification: Option<Verification>,
}

impl Timeline {
    /// A timeline of a session, beginning with a state.
    pub fn builder(session_id: impl Into<String>, state: Data) -> TimelineBuilder {
        TimelineBuilder {
            session_id: session_id.into(),
            state,
            config: TimelineConfig::default(),
            targets: Targets::default(),
            mappers: Mappers::default(),
            now: Millis::default(),
        }
    }

    /// The state of which nobody has said anything yet: empty objects for `player`, `world`, `scene`,
    /// `npcs`, `quests` and `gameTime`.
    pub fn empty_state() -> Data {
        PARTS.into_iter().map(|part| (part, Data::object())).collect()
    }

    /// The id of the session.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The configuration.
    pub fn config(&self) -> &TimelineConfig {
        &self.config
    }

    /// The table of targets.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The id of the last turn; 0 before the first.
    pub fn last_turn(&self) -> u64 {
        self.turns.len() as u64
    }

    /// The state after the last turn.
    pub fn state(&self) -> &Data {
        &self.head
    }

    /// The snapshots in memory, in the order of their turns. O(n) for all of them.
    pub fn snapshots(&self) -> impl Iterator<Item = &Arc<StateSnapshot>> {
        self.snapshots.iter()
    }

    /// A turn. O(log n); a turn in a file is parsed.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where there is none with this id; what reading it gives, where it
    /// is in a file.
    pub fn turn(&self, turn: u64) -> Result<Arc<TurnRecord>> {
        let index = turn.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let slot = index.and_then(|index| self.turns.get(index));
        slot.ok_or_else(|| self.no_turn(turn))?.record()
    }

    pub(super) fn no_turn(&self, turn: u64) -> Error {
        let message = format!("expected a turn from 1 to {}, found {turn}", self.last_turn());
        Error::new(ErrorKind::OutOfRange, message)
    }

    /// Adds a turn: makes its deltas from its events unless they are given, checks and applies them
    /// and keeps the turn; then makes a snapshot and verifies the state where that is due.
    ///
    /// Empty fields are filled in: `turnId`, `sessionId`, ids and numbers of events and deltas, the
    /// summary, and from the state `gameTime` and `sceneId`. Costs what the mappers and
    /// [`Applier::apply`] do for each delta; the first delta with an id of its own reads all turns.
    /// Where a snapshot is due it costs O(size of the state) more, where a verification is, what
    /// [`Timeline::verify`] does.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] where the turn has an id that is not the next one,
    /// [`ErrorKind::Conflict`] where a delta has the id of another, what a mapper refuses, and those
    /// of [`Applier::apply`]. The timeline is as it was.
    pub fn push(&mut self, turn: TurnRecord) -> Result<PushReport> {
        let prepared = self.prepare(turn)?;
        let slot = Slot::Record(Arc::clone(&prepared.record));
        self.commit(prepared, slot)
    }

    /// Works out what a turn comes to.
    pub(super) fn prepare(&self, mut turn: TurnRecord) -> Result<PreparedTurn> {
        let turn_id = self.last_turn() + 1;
        if turn.turn_id != 0 && turn.turn_id != turn_id {
            let message = format!("expected turn {turn_id}, found turn {}", turn.turn_id);
            return Err(Error::new(ErrorKind::Sequence, message));
        }
        let at_turn = |error: Error| error.at(|place| place.turn = Some(turn_id));
        turn.turn_id = turn_id;
        if turn.session_id.is_empty() {
            turn.session_id = self.session_id.to_string();
        }
        for (number, event) in (1..).zip(&mut turn.events) {
            event.complete(|| format!("{}-{turn_id}-{number}", self.session_id));
        }
        let mut unmapped = Vec::new();
        if !turn.given && turn.deltas.is_empty() {
            let mapped = self.map(&turn.events).map_err(at_turn)?;
            (turn.deltas, unmapped) = (mapped.deltas, mapped.unmapped);
        }
        let repeated = self.complete(&mut turn).map_err(at_turn)?;
        let mut state = self.head.clone();
        let drift = self.applier(self.config.lenient).apply_all(&mut state, &turn.deltas);
        let drift = drift.map_err(at_turn)?;
        turn.lenient = !drift.is_empty();
        if turn.game_time.is_null() {
            turn.game_time = state.get("gameTime").cloned().unwrap_or_default();
        }
        if turn.scene_id.is_empty() {
            let scene =
                state.get("scene").and_then(|scene| scene.get("sceneId").or(scene.get("id")));
            scene.and_then(Data::as_str).unwrap_or_default().clone_into(&mut turn.scene_id);
        }
        let said = std::mem::take(&mut turn.summary.significant_changes);
        let extra = std::mem::take(&mut turn.summary.extra);
        turn.summary = Summary { extra, ..Summary::of(&turn.deltas) };
        if !said.is_empty() {
            turn.summary.significant_changes = said;
        }
        Ok(PreparedTurn { record: Arc::new(turn), state, drift, repeated, unmapped })
    }

    /// Takes a turn over that was prepared.
    pub(super) fn commit(&mut self, prepared: PreparedTurn, slot: Slot) -> Result<PushReport> {
        let PreparedTurn { record, state, drift, repeated, unmapped } = prepared;
        self.turns.push(slot);
        self.head = state;
        self.range.extended(&record.deltas);
        if let Some(ids) = self.ids.get_mut() {
            let own = |delta: &&Delta| {
                self.session_id.as_ref() == record.session_id && is_own(&record, delta)
            };
            let others = record.deltas.iter().filter(|delta| !own(delta));
            ids.extend(others.map(|delta| (delta.delta_id.clone(), record.turn_id)));
        }
        let is_due = |every: u64| every > 0 && record.turn_id.is_multiple_of(every);
        let interval = is_due(self.config.snapshot_interval).then_some(SnapshotReason::Interval);
        let reason = self.mappers.reason(&record.events).or(interval);
        // Against the snapshot before, so that the deltas are exercised.
        let verification =
            if is_due(self.config.verify_every_n_turns) { Some(self.verify()?) } else { None };
        if let Some(reason) = reason {
            self.snapshot(reason, record.timestamp);
        }
        Ok(PushReport { record, drift, repeated, unmapped, snapshot: reason, verification })
    }

    /// Fills in ids and numbers of deltas, and leaves out those that the log has already; gives the
    /// ids of these.
    fn complete(&self, turn: &mut TurnRecord) -> Result<Vec<String>> {
        let TurnRecord { turn_id, timestamp, .. } = *turn;
        let session_id = &turn.session_id;
        for (sequence, delta) in (1..).zip(&mut turn.deltas) {
            if delta.turn_id != 0 && delta.turn_id != turn_id && !self.config.lenient {
                let message = format!(
                    "expected a delta of turn {turn_id}, found one of turn {}",
                    delta.turn_id
                );
                return Err(Error::new(ErrorKind::Sequence, message));
            }
            delta.turn_id = turn_id;
            if delta.sequence == 0 {
                delta.sequence = sequence;
            }
            if delta.timestamp == Millis::default() {
                delta.timestamp = timestamp;
            }
            if delta.delta_id.is_empty() {
                delta.delta_id = format!("{session_id}-{turn_id}-{sequence}");
            }
        }
        let mut repeated = Vec::new();
        if self.config.lenient || turn.deltas.iter().all(|delta| is_own(turn, delta)) {
            return Ok(repeated);
        }
        let ids = self.ids()?;
        let mut kept: Vec<Delta> = Vec::with_capacity(turn.deltas.len());
        for delta in std::mem::take(&mut turn.deltas) {
            let same_id = |other: &&Delta| other.delta_id == delta.delta_id;
            let known = match ids.get(&delta.delta_id) {
                Some(turn) => self.turn(*turn)?.deltas.iter().find(same_id).cloned(),
                None => kept.iter().find(same_id).cloned(),
            };
            match known {
                None => kept.push(delta),
                Some(known) if says_the_same(&known, &delta) => repeated.push(delta.delta_id),
                Some(known) => {
                    let message = format!(
                        "the log has another delta with the id {:?}, in turn {}",
                        delta.delta_id, known.turn_id
                    );
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
            }
        }
        turn.deltas = kept;
        Ok(repeated)
    }

    /// The ids that do not follow from their turn. Reads every turn, once.
    fn ids(&self) -> Result<&HashMap<String, u64>> {
        if self.ids.get().is_none() {
            let mut ids = HashMap::new();
            for slot in self.turns.iter() {
                let record = slot.record()?;
                let others = record.deltas.iter().filter(|delta| !is_own(&record, delta));
                ids.extend(others.map(|delta| (delta.delta_id.clone(), record.turn_id)));
            }
            return Ok(self.ids.get_or_init(|| ids));
        }
        Ok(self.ids.get_or_init(HashMap::new))
    }

    pub(super) fn applier(&self, lenient: bool) -> Applier<'_> {
        if lenient { Applier::lenient(&self.targets) } else { Applier::strict(&self.targets) }
    }

    pub(super) fn forget_ids(&mut self) {
        self.ids = OnceLock::new();
    }

    /// Makes a snapshot of the state as it is. It takes the place of another one of the same turn,
    /// whose reason stays where it weighs more: interval weighs least, then manual, then the others,
    /// and initial and session end weigh most.
    /// Those go that the [policy](super::SnapshotPolicy) then lets go.
    ///
    /// The state is shared, so it takes constant memory, and time in the number of the snapshots.
    pub fn snapshot(&mut self, reason: SnapshotReason, now: Millis) -> Arc<StateSnapshot> {
        let turn_id = self.last_turn();
        let last = self.snapshots.last().filter(|last| last.turn_id == turn_id).cloned();
        let mut delta_range = std::mem::take(&mut self.range);
        let (mut reason, mut extra) = (reason, crate::json::Object::new());
        if let Some(last) = &last {
            self.snapshots.remove(self.snapshots.len() - 1);
            delta_range = last.delta_range.clone();
            extra = last.extra.clone();
            let weight =
                |reason: SnapshotReason| (reason.priority(), reason != SnapshotReason::Manual);
            if weight(last.reason) > weight(reason) {
                reason = last.reason;
            }
        }
        let snapshot = Arc::new(StateSnapshot {
            session_id: Arc::clone(&self.session_id),
            turn_id,
            timestamp: iso8601(now),
            reason,
            state: self.head.clone(),
            delta_range,
            turn_checksum: None,
            extra,
        });
        self.range.from_snapshot = snapshot.snapshot_id();
        self.snapshots.push(Arc::clone(&snapshot));
        self.evict_snapshots();
        snapshot
    }
}

/// Whether a delta's id follows from its turn and place, so that no other turn can have it.
fn is_own(turn: &TurnRecord, delta: &Delta) -> bool {
    let rest =
        delta.delta_id.strip_prefix(&turn.session_id).and_then(|rest| rest.strip_prefix('-'));
    let parts = rest.and_then(|rest| rest.split_once('-'));
    let is = |text: &str, number: u64| text.parse() == Ok(number) && !text.starts_with('0');
    parts.is_some_and(|(turn_id, sequence)| {
        is(turn_id, turn.turn_id) && is(sequence, delta.sequence)
    })
}

fn says_the_same(a: &Delta, b: &Delta) -> bool {
    a.target == b.target
        && a.operation == b.operation
        && a.path == b.path
        && a.previous_value == b.previous_value
        && a.new_value == b.new_value
        && a.previous_length == b.previous_length
}
