use super::{
    AppendReceipt, EventId, LoadReport, NewEvent, Replay, SessionName, SnapshotInfo,
    SnapshotPolicy, policy::SinceSnapshot, read::Reading, replay::apply_stored,
    request::LogPosition,
};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// A state that is kept up with its session: events are checked, appended and applied, and snapshots
/// are written as the policy says.
///
/// It holds no journal. The journal that it came from works on it: [`Journal::live`](super::Journal::live),
/// [`record`](super::Journal::record), [`snapshot`](super::Journal::snapshot) and
/// [`catch_up`](super::Journal::catch_up).
#[derive(Clone, Debug)]
pub struct LiveState<S> {
    session: SessionName,
    state: S,
    /// The newest event that is in the state.
    at: Option<LogPosition>,
    policy: SnapshotPolicy,
    since: SinceSnapshot,
}

/// What became of an event that was recorded.
#[derive(Debug)]
pub struct RecordOutcome {
    /// Where it is.
    pub appended: AppendReceipt,
    /// What became of the snapshot, where one was due. The event is there in any case.
    pub snapshot: Option<Result<SnapshotInfo>>,
}

impl<S: Replay> LiveState<S> {
    pub(super) fn of(
        session: &SessionName,
        policy: SnapshotPolicy,
        (loaded, at): (super::LoadedState<S>, Option<LogPosition>),
    ) -> (Self, LoadReport) {
        let super::LoadedState { state, report, .. } = loaded;
        let since = SinceSnapshot { events: report.events, bytes: report.bytes };
        (Self { session: session.clone(), state, at, policy, since }, report)
    }

    /// The state.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The newest event that is in the state; 0 for none.
    pub fn sequence(&self) -> u64 {
        self.at.as_ref().map_or(0, |at| at.mark.sequence)
    }

    pub(super) fn at(&self) -> Option<&LogPosition> {
        self.at.as_ref()
    }

    /// The session.
    pub fn session(&self) -> &SessionName {
        &self.session
    }

    pub(super) fn take(&mut self, reading: &Reading) -> Result<()> {
        for placed in &reading.events {
            apply_stored(&mut self.state, &placed.event)?;
            self.at = Some(LogPosition { life: Arc::clone(&reading.life), mark: placed.mark() });
            self.count(placed.event.body.len() as u64);
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
            let message = format!("cannot write the event as JSON: {error}");
            Error::new(ErrorKind::Shape, message).with_source(error)
        })?;
        NewEvent::new(id, S::kind(event), body)
    }

    /// Whether an event that was appended is new to the state.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where others came between.
    pub(super) fn is_ahead(&self, appended: AppendReceipt) -> Result<bool> {
        let next = self.sequence().saturating_add(1);
        if appended.sequence > next {
            let message =
                format!("the event is there, but others came between: expected event {next}");
            return Err(Error::new(ErrorKind::Conflict, message).at_event(appended.sequence));
        }
        Ok(appended.sequence == next)
    }

    /// Applies the event that was appended.
    pub(super) fn follow(&mut self, at: LogPosition, event: &S::Event, bytes: u64) -> Result<()> {
        let sequence = at.mark.sequence;
        self.state.apply(sequence, event).map_err(|error| error.at_event(sequence))?;
        self.at = Some(at);
        self.count(bytes);
        Ok(())
    }

    /// Whether a snapshot is due after an event.
    pub(super) fn is_due(&self, event: &S::Event) -> bool {
        self.policy.is_due(self.since, S::ends_iteration(event))
    }

    /// Counts what is to come, after a snapshot: also where it could not be written, so that not each
    /// event waits for what fails.
    pub(super) fn count_anew(&mut self) {
        self.since = SinceSnapshot::default();
    }
}
