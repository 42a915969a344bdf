//! What the part without IO asks of a store, and what a store answers.

use std::{sync::Arc, time::Duration};

use super::{Event, EventId, NewEvent, SnapshotInfo, id_parts::Part};
use crate::{Error, Millis};

/// Where an event is in its store. Positions rise from event to event of a session, and no two
/// events of one log's life have the same; sequences alone rise by one.
pub(super) type Position = u64;

/// What a store is asked to do for one session.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// What there is to say of the session's log.
    Head,
    /// Events, the first of them the one at `from` or the next one after it.
    Events { from: Position, most: usize },
    /// Write events, provided that the session's newest one is the one at `after`.
    Append(Arc<Append>),
    /// The newest snapshot, or with age 1 the one before it, and so on.
    Snapshot { age: usize },
    /// Write a snapshot, and drop all but the newest `keep`.
    PutSnapshot { bytes: Arc<[u8]>, keep: usize },
    /// A part of the ids of the session's events.
    Ids { part: u64 },
    /// Write a part of the ids in the place of the one that was there. Where that fails nothing is
    /// lost, so it is no failure.
    PutIds(Part),
    /// Drop the snapshots and the ids, then the events.
    Delete,
    /// Let time pass.
    Wait(Duration),
}

#[derive(Clone, Debug)]
pub(super) struct Append {
    /// Of the first event; one more for each.
    pub(super) sequence: u64,
    /// The position of the newest event; 0 where there is to be none.
    pub(super) after: Position,
    /// At least one; all of them or none are written.
    pub(super) events: Vec<Writing>,
}

#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub(super) event: NewEvent,
    pub(super) recorded_at: Millis,
}

impl Append {
    /// The events with their sequences.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u64, &Writing)> {
        (self.sequence..).zip(&self.events)
    }
}

#[derive(Debug)]
pub(super) enum Response {
    Head(Head),
    Events(Page),
    /// The positions of events that were written together rise by one.
    AppendReceipt {
        /// The position of the last of them.
        last: Position,
        /// Which log they are in, where that was decided now.
        life: Option<Arc<str>>,
    },
    /// The newest event is not the one that was named.
    Refused,
    /// These events are not taken, whatever is there; others may be.
    #[cfg_attr(
        not(feature = "nats"),
        allow(dead_code, reason = "files take every event, or none any more")
    )]
    Rejected(Error),
    Snapshot(Option<StoredSnapshot>),
    Ids(Option<Vec<u8>>),
    /// The snapshot was not written, for this newer one is there.
    Stands(SnapshotInfo),
    Done,
    Failed(Failure),
}

/// What there is to say of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Which log this is: another one where it was removed and created again.
    pub(super) life: Arc<str>,
    /// The newest event.
    pub(super) last: Option<Mark>,
    /// Positions before this one are gone, for the store drops what is old.
    pub(super) floor: Position,
    /// No position after this one was ever given.
    pub(super) ceiling: Position,
    /// The greatest sequence that is known to have been given: that of the newest event, or of a
    /// newer one that the store has dropped.
    pub(super) reached: u64,
}

impl Head {
    /// The head of a log that is not there.
    pub(super) fn empty() -> Self {
        Self { life: "".into(), last: None, floor: 0, ceiling: 0, reached: 0 }
    }
}

/// An event by its place.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Mark {
    #[serde(rename = "afterSequence")]
    pub(super) sequence: u64,
    pub(super) position: Position,
    #[serde(rename = "event")]
    pub(super) id: EventId,
}

/// What stands for the id of an event that is lost.
const LOST: &str = "afterimage: lost";

impl Event {
    /// What stands for an event of which a log has only the place.
    pub(super) fn lost(sequence: u64) -> crate::Result<Self> {
        let id = EventId::new(LOST)?;
        let recorded_at = Millis::default();
        Ok(Self { sequence, id, kind: LOST.into(), recorded_at, body: Vec::new() })
    }
}

impl Mark {
    /// The place of an event that is lost, of which only the sequence is known.
    pub(super) fn lost(sequence: u64, position: Position) -> Option<Self> {
        Some(Self { sequence, position, id: EventId::new(LOST).ok()? })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.id.as_str() == LOST
    }

    /// Whether the two are one event, as far as that can be told: of one that is lost there is
    /// nothing but its sequence.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        let is_unknown = self.is_lost() || other.is_lost();
        self == other || (is_unknown && self.sequence == other.sequence)
    }
}

/// An event in its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPosition {
    /// Which log; empty where that was not known yet.
    pub(super) life: Arc<str>,
    pub(super) mark: Mark,
}

impl LogPosition {
    /// Whether the event may be in the log with this life.
    pub(super) fn may_be_in(&self, life: &str) -> bool {
        self.life.is_empty() || life.is_empty() || *self.life == *life
    }

    /// What the first event that is read from its place on says of it.
    pub(super) fn prove(&self, found: &PositionedEvent, floor: Position) -> Proof {
        if found.mark().may_be(&self.mark) {
            Proof::Itself
        } else if found.event.sequence == self.mark.sequence {
            Proof::Another
        } else if self.mark.position < floor
            && found.event.sequence == self.mark.sequence.saturating_add(1)
        {
            // The store drops what is old; what follows is there.
            Proof::Next
        } else {
            Proof::Unconnected
        }
    }
}

/// What a log shows of an event that is to be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The event.
    Itself,
    /// The one after it; the event itself is gone, as old ones are.
    Next,
    /// Another event with its sequence.
    Another,
    /// Neither.
    Unconnected,
}

/// Events in order.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) events: Vec<PositionedEvent>,
    /// Whether the log ends after them.
    pub(super) is_end: bool,
}

#[derive(Clone, Debug)]
pub(super) struct PositionedEvent {
    pub(super) position: Position,
    pub(super) event: Event,
}

impl PositionedEvent {
    pub(super) fn mark(&self) -> Mark {
        let Event { sequence, id, .. } = &self.event;
        Mark { sequence: *sequence, position: self.position, id: id.clone() }
    }

    /// Whether the log has nothing of the event but its place: its state is in a snapshot.
    pub(super) fn is_lost(&self) -> bool {
        let Event { id, kind, body, .. } = &self.event;
        id.as_str() == LOST && **kind == *LOST && body.is_empty()
    }
}

/// A snapshot as a store keeps it.
#[derive(Debug)]
pub(super) enum StoredSnapshot {
    Bytes(Vec<u8>),
    /// It is there, and cannot be had.
    Unreadable(Error),
}

#[derive(Debug)]
#[cfg_attr(
    not(any(test, feature = "nats")),
    allow(dead_code, reason = "files never leave it open")
)]
pub(super) enum Failure {
    /// Trying again changes nothing.
    Final(Error),
    /// Nothing was done, and trying again may help.
    Transient { error: Error, took: Duration },
    /// It is unknown whether it was done.
    Ambiguous { error: Error, took: Duration },
}

/// An operation without IO: it asks, is answered, and comes to its end.
pub(super) trait Machine {
    type Output;

    /// What is to be done next. Called again only after [`Machine::take`].
    fn step(&mut self) -> Step<Self::Output>;

    /// Takes the answer to the last request.
    fn take(&mut self, response: Response);
}

pub(super) enum Step<T> {
    Do(Request),
    Done(T),
}

/// An answer that does not belong to its request: a store that breaks its word.
pub(super) fn unexpected(response: &Response) -> Error {
    let message = format!("expected the answer to the request, found another: {response:?}");
    let message: String = message.chars().take(200).collect();
    Error::new(crate::ErrorKind::Damaged, message)
}
