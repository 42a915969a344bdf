use super::{
    Event, LoadReport, LostEvents, Replay, SessionName, SkipReason, SkippedSnapshot,
    machine::Logic,
    read::PAGE,
    replay::{apply_stored, read_stored},
    request::{
        Failure, Head, LogPosition, Mark, Page, Position, PositionedEvent, Proof, Request,
        Response, Step, StoredSnapshot, unexpected,
    },
    session_log::unrepaired,
    snapshot::{self, Header, Opened},
    tail::cut_off,
};
use crate::{
    Error, ErrorKind, Result,
    log::{EndProblem, LostEnd},
};
use std::sync::Arc;

/// A state with the newest event that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedState<S> {
    /// The state.
    pub state: S,
    /// The newest event that is in it; 0 where the session has none.
    pub sequence: u64,
    /// What was done to get there.
    pub report: LoadReport,
}

/// Loads a state: the newest snapshot that fits the log, and the events after it.
///
/// A snapshot fits if the log has the event that it was taken after, by sequence, position and id,
/// so one of a log that lost its end and grew again does not. It comes with the first page of
/// events, or with the head of the log, and costs no request of its own.
pub(super) struct LoadLogic<S> {
    session: SessionName,
    head: Head,
    stage: Stage,
    /// Whether the log has still to show the event of the snapshot in use.
    is_unproven: bool,
    /// Whether the head was asked for again, since the log went on meanwhile.
    is_asked_again: bool,
    /// Whether a state without the events that are gone will do.
    accepts_loss: bool,
    age: usize,
    loaded: Option<LoadedState<S>>,
    /// The newest event that is in the state.
    at: Option<LogPosition>,
    from: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Snapshot,
    Events,
    /// Whether the log begins with the event after the snapshot.
    First,
    Done,
}

impl<S: Replay> LoadLogic<S> {
    pub(super) fn new(session: SessionName) -> Self {
        Self {
            session,
            head: Head::empty(),
            stage: Stage::Head,
            is_unproven: false,
            is_asked_again: false,
            accepts_loss: false,
            age: 0,
            loaded: Some(LoadedState {
                state: S::default(),
                sequence: 0,
                report: LoadReport::default(),
            }),
            at: None,
            from: 0,
        }
    }

    /// Does without the events that are gone.
    pub(super) fn accepting_loss(session: SessionName) -> Self {
        Self { accepts_loss: true, ..Self::new(session) }
    }

    fn last(&self) -> u64 {
        self.head.last.as_ref().map_or(0, |last| last.sequence)
    }

    fn report(&mut self) -> Option<&mut LoadReport> {
        self.loaded.as_mut().map(|loaded| &mut loaded.report)
    }

    fn pass_over(&mut self, after_sequence: Option<u64>, reason: SkipReason) {
        if let Some(report) = self.report() {
            report.snapshot = None;
            report.skipped_snapshots.push(SkippedSnapshot { after_sequence, reason });
        }
        self.age += 1;
        self.stage = Stage::Snapshot;
        (self.is_unproven, self.at, self.from) = (false, None, 0);
        if let Some(loaded) = &mut self.loaded {
            loaded.state = S::default();
            loaded.sequence = 0;
        }
    }

    fn got_snapshot(&mut self, kept: Option<StoredSnapshot>) {
        let bytes = match kept {
            None => return self.replay(),
            Some(StoredSnapshot::Unreadable(error)) => {
                return self.pass_over(None, SkipReason::Unreadable(error.to_string()));
            }
            Some(StoredSnapshot::Bytes(bytes)) => bytes,
        };
        // One that was written since the head was asked for belongs to a later head.
        if !self.is_asked_again
            && snapshot::header(&bytes).is_ok_and(|header| {
                header.life == self.head.life && header.mark.position > self.head.ceiling
            })
        {
            self.is_asked_again = true;
            self.stage = Stage::Head;
            return;
        }
        let head = &self.head;
        match snapshot::open::<S>(&bytes, &self.session, |header| fits(header, head)) {
            Err(reason) => self.pass_over(None, reason),
            Ok(Opened { header, state: Err(reason), .. }) => {
                if is_left_of(&header, &self.head) {
                    self.head.reached = self.head.reached.max(header.mark.sequence);
                }
                self.pass_over(Some(header.mark.sequence), reason);
            }
            Ok(Opened { header, info, state: Ok(state) }) => {
                self.from = header.mark.position;
                if let Some(loaded) = &mut self.loaded {
                    loaded.state = state;
                    loaded.sequence = header.mark.sequence;
                    loaded.report.snapshot = Some(info);
                }
                self.is_unproven = header.mark.sequence < self.last();
                self.stage = if self.is_unproven { Stage::Events } else { Stage::Done };
                self.at = Some(LogPosition { life: header.life, mark: header.mark });
            }
        }
    }

    fn replay(&mut self) {
        self.stage = if self.last() == 0 { Stage::Done } else { Stage::Events };
    }

    fn got_page(&mut self, page: Page) -> Result<(), Failure> {
        for placed in page.events {
            if let Some(at) = self.at.as_ref().filter(|_| self.is_unproven) {
                let sequence = at.mark.sequence;
                let reason = match at.prove(&placed, self.head.floor) {
                    Proof::Itself | Proof::Next => None,
                    Proof::Another => Some(SkipReason::AnotherEvent),
                    Proof::Unconnected
                        if placed.event.sequence == sequence.saturating_add(1)
                            || (self.accepts_loss && placed.event.sequence > sequence) =>
                    {
                        self.stage = Stage::First;
                        return Ok(());
                    }
                    Proof::Unconnected => Some(SkipReason::Unconnected),
                };
                self.is_unproven = false;
                if let Some(reason) = reason {
                    self.pass_over(Some(sequence), reason);
                    return Ok(());
                }
                if placed.event.sequence == sequence {
                    self.from = placed.position.saturating_add(1);
                    continue;
                }
            }
            self.from = placed.position.saturating_add(1);
            if placed.is_lost() {
                // What comes next, or how far the log reached, tells that it is missing.
                if placed.event.sequence >= self.last() {
                    self.stage = Stage::Done;
                    return Ok(());
                }
                continue;
            }
            self.apply(&placed).map_err(Failure::Final)?;
        }
        let (read, last) = (self.loaded.as_ref().map_or(0, |loaded| loaded.sequence), self.last());
        if read >= last {
            self.stage = Stage::Done;
        } else if page.is_end {
            return Err(cut_off(read, last));
        }
        Ok(())
    }

    /// Where everything up to the snapshot's event was purged, the log begins after it. One that lost
    /// its end and grew again begins earlier.
    fn got_first(&mut self, page: &Page) {
        let sequence = self.at.as_ref().map_or(0, |at| at.mark.sequence);
        if page.events.first().is_some_and(|first| first.event.sequence > sequence) {
            self.is_unproven = false;
            self.stage = Stage::Events;
        } else {
            self.pass_over(Some(sequence), SkipReason::Unconnected);
        }
    }

    fn apply(&mut self, placed: &PositionedEvent) -> Result<()> {
        let event = &placed.event;
        if self.accepts_loss && self.lose_before(event)? {
            self.at = Some(LogPosition { life: Arc::clone(&self.head.life), mark: placed.mark() });
            return Ok(());
        }
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        in_order(loaded.sequence.saturating_add(1), event.sequence).map_err(with_recovery_hint)?;
        let was_applied = apply_stored(&mut loaded.state, event)?;
        loaded.sequence = event.sequence;
        self.at = Some(LogPosition { life: Arc::clone(&self.head.life), mark: placed.mark() });
        let report = &mut loaded.report;
        report.events += 1;
        report.bytes = report.bytes.saturating_add(event.body.len() as u64);
        if !was_applied {
            *report.skipped.entry(event.kind.clone()).or_default() += 1;
        }
        Ok(())
    }
}

impl<S: Replay> LoadLogic<S> {
    /// Does without the events before one that are gone, and without it where the state then refuses
    /// it; whether that is so.
    fn lose_before(&mut self, event: &Event) -> Result<bool> {
        let Some(loaded) = &mut self.loaded else { return Ok(false) };
        if loaded.sequence.saturating_add(1) < event.sequence {
            loaded.lose(event.sequence - 1, None);
        }
        if loaded.report.lost.is_empty() {
            return Ok(false);
        }
        let Some(read) = read_stored::<S>(event)? else { return Ok(false) };
        let refusal = loaded.state.check(&read).err().map(|error| error.message().to_owned());
        if refusal.is_some() {
            loaded.lose(event.sequence, refusal.clone());
        }
        Ok(refusal.is_some())
    }

    /// Does without the events at the end that are gone, which nothing came after.
    fn lose_end(&mut self) {
        let reached = self.head.reached;
        let Some(loaded) = &mut self.loaded else { return };
        if loaded.sequence >= reached {
            return;
        }
        loaded.lose(reached, None);
        // Beyond what is gone, and before what is to come.
        let before = self.at.as_ref().map_or(0, |at| at.mark.position);
        let dropped = self.head.floor.saturating_sub(1);
        let position = if dropped > before { dropped } else { self.head.ceiling };
        let life = Arc::clone(&self.head.life);
        self.at = Mark::lost(reached, position).map(|mark| LogPosition { life, mark });
    }
}

impl<S: Replay> LoadedState<S> {
    fn lose(&mut self, last: u64, refusal: Option<String>) {
        let first = self.sequence.saturating_add(1);
        self.state.skip_lost(first, last);
        self.sequence = last;
        self.report.lost.push(LostEvents { first, last, refusal });
    }
}

/// How to go on with a session whose events are missing.
fn with_recovery_hint(error: Error) -> Error {
    if error.kind() != ErrorKind::Gap {
        return error;
    }
    let message = format!("{}; `accept_loss` loads the session without them", error.message());
    Error::new(error.kind(), message).at(|place| *place = error.place().clone())
}

/// Whether all events were dropped as old, or purged, and the snapshot is what is left of some.
pub(super) fn is_left_of(header: &Header, head: &Head) -> bool {
    head.last.is_none() && header.life == head.life && header.mark.position <= head.ceiling
}

/// What speaks against a snapshot before its event is seen.
pub(super) fn fits(header: &Header, head: &Head) -> Result<(), SkipReason> {
    if header.life != head.life {
        return Err(SkipReason::AnotherLog);
    }
    match &head.last {
        None if is_left_of(header, head) => Ok(()),
        None => Err(SkipReason::Ahead { last: 0 }),
        Some(last) if header.mark.sequence > last.sequence => {
            Err(SkipReason::Ahead { last: last.sequence })
        }
        Some(last) if header.mark.sequence == last.sequence && !last.may_be(&header.mark) => {
            Err(SkipReason::AnotherEvent)
        }
        Some(_) => Ok(()),
    }
}

/// That an event follows those before it.
///
/// # Errors
/// [`ErrorKind::Gap`] where events are missing, saying which; [`ErrorKind::Sequence`] where it
/// should have come before.
pub(super) fn in_order(expected: u64, found: u64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    if found < expected {
        let message = format!("expected event {expected}, found event {found}");
        return Err(Error::new(ErrorKind::Sequence, message).at_event(found));
    }
    Err(gap(expected, found - 1))
}

/// The error of events that are missing, the last of them included.
pub(super) fn gap(first: u64, last: u64) -> Error {
    let have = if first == last { "it has" } else { "they have" };
    let message = format!("{}: {have} expired, or been removed", missing(first, last));
    Error::new(ErrorKind::Gap, message).at_event(first)
}

/// The error of events that are missing, the last of them included, where a repair accepted it.
pub(super) fn accepted_gap(first: u64, last: u64) -> Error {
    let have = if first == last { "it was" } else { "they were" };
    let message = format!("{}: {have} lost, and the loss was accepted", missing(first, last));
    Error::new(ErrorKind::Gap, message).at_event(first)
}

fn missing(first: u64, last: u64) -> String {
    if first == last {
        format!("event {first} is missing")
    } else {
        format!("events {first} to {last} are missing")
    }
}

/// An error of a session whose log lost its end: only a repair goes on with it.
pub(super) fn of_lost_end(lost: &LostEnd, error: Error) -> Error {
    match (&lost.problem, error.kind()) {
        (EndProblem::Lost { acknowledged, last }, ErrorKind::Gap) => {
            let missing = missing(last + 1, *acknowledged);
            let message = format!(
                "{missing}: the log lost its end; `afterimage journal repair` accepts the loss"
            );
            let error = Error::new(ErrorKind::Gap, message);
            error.in_file(&lost.file).at_event(last + 1)
        }
        (_, ErrorKind::Conflict) => unrepaired(lost),
        _ => error,
    }
}

impl<S: Replay> Logic for LoadLogic<S> {
    /// The state, and the newest event that is in it.
    type Output = (LoadedState<S>, Option<LogPosition>);

    fn want(&mut self) -> Result<Step<Self::Output>> {
        if self.accepts_loss && self.stage == Stage::Done {
            self.lose_end();
        }
        Ok(match self.stage {
            Stage::Head => Step::Do(Request::Head),
            Stage::Snapshot => Step::Do(Request::Snapshot { age: self.age }),
            Stage::Events => Step::Do(Request::Events { from: self.from, most: PAGE }),
            Stage::First => Step::Do(Request::Events { from: 0, most: 1 }),
            Stage::Done => match self.loaded.take() {
                Some(loaded) if loaded.sequence < self.head.reached => {
                    return Err(with_recovery_hint(gap(loaded.sequence + 1, self.head.reached)));
                }
                Some(loaded) => Step::Done((loaded, self.at.take())),
                None => return Err(Error::new(ErrorKind::Poisoned, "the load has ended")),
            },
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (self.stage, response) {
            (Stage::Head, Response::Head(head)) => {
                self.head = head;
                self.stage = Stage::Snapshot;
            }
            (Stage::Snapshot, Response::Snapshot(kept)) => self.got_snapshot(kept),
            (Stage::Events, Response::Events(page)) => return self.got_page(page),
            (Stage::First, Response::Events(page)) => self.got_first(&page),
            (_, response) => return Err(Failure::Final(unexpected(&response))),
        }
        Ok(())
    }

    fn failed(&mut self, _: &Failure) {
        if let Some(report) = self.report() {
            report.retries += 1;
        }
    }
}
