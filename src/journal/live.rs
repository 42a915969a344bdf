use super::{
    Appended, EventId, LoadReport, NewEvent, Replay, SessionName, SnapshotInfo, SnapshotPolicy,
    policy::Since, replay::apply_stored,
};
use crate::{Error, ErrorKind, Result};

/// A state that is kept up with its session: events are checked, appended and applied, and snapshots
/// are written as the policy says.
///
/// It holds no journal. The journal that it came from works on it: [`Journal::live`](super::Journal::live),
/// [`record`](super::Journal::record), [`snapshot`](super::Journal::snapshot) and
/// [`catch_up`](super::Journal::catch_up).
#[derive(Clone, Debug)]
pub struct Live<S> {
    session: SessionName,
    state: S,
    sequence: u64,
    policy: SnapshotPolicy,
    since: Since,
}

/// What became of an event that was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// Where it is.
    pub appended: Appended,
    /// What became of the snapshot, where one was due. The event is there in any case.
    pub snapshot: Option<Result<SnapshotInfo>>,
}

impl<S: Replay> Live<S> {
    pub(super) fn of(
        session: &SessionName,
        policy: SnapshotPolicy,
        loaded: super::Loaded<S>,
    ) -> (Self, LoadReport) {
        let super::Loaded { state, sequence, report } = loaded;
        let since = Since { events: report.events, bytes: report.bytes };
        (Self { session: session.clone(), state, sequence, policy, since }, report)
    }

    /// The state.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The newest event that is in the state; 0 for none.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The session.
    pub fn session(&self) -> &SessionName {
        &self.session
    }

    pub(super) fn take(&mut self, events: &[super::Event]) -> Result<()> {
        for event in events {
            apply_stored(&mut self.state, event)?;
            self.sequence = event.sequence;
            self.count(event.body.len() as u64);
        }
        Ok(())
    }

    fn count(&mut self, bytes: u64) {
        self.since.events += 1;
        self.since.bytes = self.since.bytes.saturating_add(bytes);
    }

    pub(super) fn prepare(&self, id: EventId, event: &S::Event) -> Result<NewEvent> {
        self.state.check(event)?;
        let body = serde_json::to_vec(event).map_err(|error| {
            let message = format!("the event does not become JSON: {error}");
            Error::new(ErrorKind::Shape, message).caused_by(error)
        })?;
        NewEvent::new(id, S::kind(event), body)
    }

    /// Applies an event that was appended; whether a snapshot is due.
    pub(super) fn follow(&mut self, at: Appended, event: &S::Event, bytes: u64) -> Result<bool> {
        if at.sequence <= self.sequence {
            return Ok(false);
        }
        if at.sequence != self.sequence + 1 {
            let message = format!(
                "the event is there, but others came between: expected event {}",
                self.sequence + 1
            );
            return Err(Error::new(ErrorKind::Conflict, message).at_event(at.sequence));
        }
        self.state.apply(at.sequence, event).map_err(|error| error.at_event(at.sequence))?;
        self.sequence = at.sequence;
        self.count(bytes);
        Ok(self.policy.is_due(self.since, S::ends_iteration(event)))
    }

    pub(super) fn written(&mut self) {
        self.since = Since::default();
    }
}

/// How many events are read at a time.
pub(super) const CATCH_UP: usize = 2_000;
