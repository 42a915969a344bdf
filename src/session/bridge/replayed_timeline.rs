//! The world state of a timeline that replays from a journal.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    Error, ErrorKind, Result,
    journal::{self, Event, Replay},
    json::{self, Fields, Object, ObjectExt, Value},
    timeline::{self, Applier, Data, Mappers, Targets, Timeline, TimelineConfig, TurnRecord},
};

/// What an event of a session of turns is called.
const TURN: &str = "turn";

/// The world state that the turns of a journal lead to.
///
/// It begins as [`Timeline::empty_state`], and the n-th event is turn n, whose deltas are applied by the usual table of targets. An event is a
/// turn as [`Timeline::push`] completes it, so that it has its deltas: a state loads without knowing
/// what events of the world change. Its id is its writer's: two writers may have equal turns, and
/// each is to be there.
///
/// ```
/// use afterimage::{
///     id::Millis, journal::*, session::bridge::ReplayedTimeline,
///     timeline::{Data, Event, TurnRecord},
/// };
///
/// let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
/// let session = SessionName::new("tale")?;
/// let (mut live, _) = journal.live::<ReplayedTimeline>(&session, SnapshotPolicy::IterationEnd)?;
/// let mut timeline = ReplayedTimeline::timeline(session.as_str(), [], false)?;
///
/// let moved = Event::new("move", Data::from_iter([("zone", Data::from("harbour"))]));
/// let turn = timeline.push(TurnRecord::new("player").with_event(moved))?.record;
/// // The id names the writer and its step; a turn alone does not.
/// journal.record(&mut live, EventId::new("the player's step 1")?, &turn, Millis::new(0))?;
/// assert_eq!(live.state().state(), timeline.state());
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedTimeline {
    state: Data,
    last_turn: u64,
}

impl Default for ReplayedTimeline {
    fn default() -> Self {
        Self { state: Timeline::empty_state(), last_turn: 0 }
    }
}

impl ReplayedTimeline {
    /// The state after the newest turn.
    pub fn state(&self) -> &Data {
        &self.state
    }

    /// The newest turn; 0 before the first.
    pub fn last_turn(&self) -> u64 {
        self.last_turn
    }

    /// Where a timeline has come to.
    pub fn of(timeline: &Timeline) -> Self {
        Self { state: timeline.state().clone(), last_turn: timeline.last_turn() }
    }

    /// The turn that an event of a journal is. O(size).
    ///
    /// # Errors
    /// [`UnknownEvent`](journal::ErrorKind::UnknownEvent) for an event that is none,
    /// [`ErrorKind::Shape`] and what else [`json::read`] and [`TurnRecord::from_json`] say; with the
    /// event's sequence.
    pub fn turn(event: &Event) -> Result<TurnRecord> {
        let read = if Self::knows(&event.kind) {
            json::read(&event.body)
                .map_err(Error::from)
                .and_then(|value| Ok(TurnRecord::from_json(value)?))
        } else {
            let message = format!("expected a turn, found an event of kind {:?}", event.kind);
            Err(Error::new(ErrorKind::Journal(journal::ErrorKind::UnknownEvent), message))
        };
        read.map_err(|error| error.at(|place| place.event = Some(event.sequence)))
    }

    /// The timeline of the turns of a session, with its whole past. It takes deltas that do not fit
    /// where `lenient` is set, or where a turn was recorded so. Costs a [`Timeline::push`] for each
    /// turn.
    ///
    /// # Errors
    /// Those of [`Timeline::push`]; [`Drift`](timeline::ErrorKind::Drift) where a turn does not fit
    /// that was recorded as one that does.
    pub fn timeline(
        session_id: &str,
        turns: impl IntoIterator<Item = TurnRecord>,
        lenient: bool,
    ) -> Result<Timeline> {
        let turns: Vec<TurnRecord> = turns.into_iter().collect();
        let lenient = lenient || turns.iter().any(|turn| turn.lenient);
        let config = TimelineConfig { lenient, ..TimelineConfig::default() };
        let begun = Timeline::builder(session_id, Self::default().state).config(config);
        let mut timeline = begun.build()?;
        Self::follow(&mut timeline, turns)?;
        Ok(timeline)
    }

    /// Takes turns of a journal into their timeline. A timeline that is not lenient takes none that
    /// was recorded so: [`ReplayedTimeline::timeline`] makes one of all turns that does. Costs a
    /// [`Timeline::push`] for each.
    ///
    /// # Errors
    /// As [`ReplayedTimeline::timeline`]. The timeline holds the turns before the one that is refused.
    pub fn follow(
        timeline: &mut Timeline,
        turns: impl IntoIterator<Item = TurnRecord>,
    ) -> Result<()> {
        for turn in turns {
            let was_lenient = turn.lenient;
            let pushed = timeline.push(turn)?;
            if let Some(drift) = pushed.drift.first().filter(|_| !was_lenient) {
                return Err(Error::new(
                    ErrorKind::Timeline(timeline::ErrorKind::Drift),
                    drift.to_string(),
                ));
            }
        }
        Ok(())
    }

    fn after(&self, turn: &TurnRecord) -> Result<Self> {
        let expected = self.last_turn.saturating_add(1);
        if turn.turn_id != expected {
            let message = format!("expected turn {expected}, found turn {}", turn.turn_id);
            return Err(Error::new(ErrorKind::Sequence, message));
        }
        let targets = Targets::default();
        let applier =
            if turn.lenient { Applier::lenient(&targets) } else { Applier::strict(&targets) };
        let mut state = self.state.clone();
        applier
            .apply_all(&mut state, &turn.deltas)
            .map_err(|error| error.at(|place| place.turn = Some(expected)))?;
        Ok(Self { state, last_turn: expected })
    }
}

impl Serialize for ReplayedTimeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut object = Object::new();
        object.put("lastTurn", self.last_turn);
        object.put("state", self.state.to_json());
        Value::from(object).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReplayedTimeline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let read = |value| {
            let mut fields = Fields::of(value, "the state of a timeline")?;
            let last_turn = Fields::required(fields.u64("lastTurn")?, "lastTurn", "a turn")?;
            let state = Fields::required(fields.take("state"), "state", "a state")?;
            Ok(Self { state: Data::from(state), last_turn })
        };
        read(Value::deserialize(deserializer)?).map_err(|error: Error| D::Error::custom(error))
    }
}

impl Replay for ReplayedTimeline {
    type Event = TurnRecord;
    const SCHEMA: u32 = 1;

    fn kind(_: &TurnRecord) -> &'static str {
        TURN
    }

    fn knows(kind: &str) -> bool {
        kind == TURN
    }

    fn check(&self, turn: &TurnRecord) -> journal::Result<()> {
        Ok(self.after(turn).map(drop)?)
    }

    fn apply(&mut self, _: u64, turn: &TurnRecord) -> journal::Result<()> {
        *self = self.after(turn)?;
        Ok(())
    }

    fn skip_lost(&mut self, _: u64, last: u64) {
        self.last_turn = last;
    }

    /// After the turns that ask for a snapshot by what happens in them, such as the end of a scene.
    fn ends_iteration(turn: &TurnRecord) -> bool {
        Mappers::default().reason(&turn.events).is_some()
    }
}
