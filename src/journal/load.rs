use super::{
    LoadReport, PassReason, PassedOver, Replay, SessionName,
    machine::Logic,
    replay::apply_stored,
    request::{
        Failure, Head, Kept, Mark, Page, Placed, Position, Request, Response, Step, unexpected,
    },
    snapshot::{self, Header, Opened},
    tail::cut_off,
};
use crate::{Error, ErrorKind, Result};

/// How many events are asked for at a time.
const PAGE: usize = if cfg!(test) { 3 } else { 2_000 };

/// A state with the newest event that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded<S> {
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
    /// The event of the snapshot in use, until the log has shown it.
    unproven: Option<Mark>,
    age: usize,
    loaded: Option<Loaded<S>>,
    from: Position,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Snapshot,
    Events,
    Done,
}

impl<S: Replay> LoadLogic<S> {
    pub(super) fn new(session: SessionName) -> Self {
        Self {
            session,
            head: Head::empty(),
            stage: Stage::Head,
            unproven: None,
            age: 0,
            loaded: Some(Loaded {
                state: S::default(),
                sequence: 0,
                report: LoadReport::default(),
            }),
            from: 0,
        }
    }

    fn last(&self) -> u64 {
        self.head.last.as_ref().map_or(0, |last| last.sequence)
    }

    fn report(&mut self) -> Option<&mut LoadReport> {
        self.loaded.as_mut().map(|loaded| &mut loaded.report)
    }

    fn pass_over(&mut self, after_sequence: Option<u64>, reason: PassReason) {
        if let Some(report) = self.report() {
            report.snapshot = None;
            report.passed_over.push(PassedOver { after_sequence, reason });
        }
        self.age += 1;
        self.stage = Stage::Snapshot;
        self.unproven = None;
        self.from = 0;
        if let Some(loaded) = &mut self.loaded {
            loaded.state = S::default();
            loaded.sequence = 0;
        }
    }

    fn got_snapshot(&mut self, kept: Option<Kept>) {
        let bytes = match kept {
            None => return self.replay(),
            Some(Kept::Unreadable(reason)) => {
                return self.pass_over(None, PassReason::Damaged(reason));
            }
            Some(Kept::Bytes(bytes)) => bytes,
        };
        let head = &self.head;
        match snapshot::open::<S>(&bytes, &self.session, |header| fits(header, head)) {
            Err(reason) => self.pass_over(None, reason),
            Ok(Opened { header, state: Err(reason), .. }) => {
                self.pass_over(Some(header.mark.sequence), reason);
            }
            Ok(Opened { header, info, state: Ok(state) }) => {
                self.from = header.mark.position;
                if let Some(loaded) = &mut self.loaded {
                    loaded.state = state;
                    loaded.sequence = header.mark.sequence;
                    loaded.report.snapshot = Some(info);
                }
                let is_newest = header.mark.sequence >= self.last();
                self.unproven = (!is_newest).then_some(header.mark);
                self.stage = if is_newest { Stage::Done } else { Stage::Events };
            }
        }
    }

    fn replay(&mut self) {
        self.stage = if self.last() == 0 { Stage::Done } else { Stage::Events };
    }

    fn got_page(&mut self, page: Page) -> Result<(), Failure> {
        for placed in page.events {
            if let Some(mark) = self.unproven.take() {
                let event = &placed.event;
                let is_next = event.sequence == mark.sequence.saturating_add(1);
                if placed.mark() == mark {
                    self.from = placed.position.saturating_add(1);
                    continue;
                }
                // The store drops what is old; what follows is there.
                if !(is_next && mark.position < self.head.floor) {
                    let is_same = event.sequence == mark.sequence;
                    let reason =
                        if is_same { PassReason::AnotherEvent } else { PassReason::Unconnected };
                    self.pass_over(Some(mark.sequence), reason);
                    return Ok(());
                }
            }
            self.apply(&placed).map_err(Failure::Final)?;
            self.from = placed.position.saturating_add(1);
        }
        let (read, last) = (self.loaded.as_ref().map_or(0, |loaded| loaded.sequence), self.last());
        if read >= last {
            self.stage = Stage::Done;
        } else if page.is_end {
            return Err(cut_off(read, last));
        }
        Ok(())
    }

    fn apply(&mut self, placed: &Placed) -> Result<()> {
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        let event = &placed.event;
        in_order(loaded.sequence.saturating_add(1), event.sequence)?;
        let was_applied = apply_stored(&mut loaded.state, event)?;
        loaded.sequence = event.sequence;
        let report = &mut loaded.report;
        report.events += 1;
        report.bytes = report.bytes.saturating_add(event.body.len() as u64);
        if !was_applied {
            *report.skipped.entry(event.kind.clone()).or_default() += 1;
        }
        Ok(())
    }
}

/// What speaks against a snapshot before its event is seen.
fn fits(header: &Header, head: &Head) -> Result<(), PassReason> {
    if header.life != head.life {
        return Err(PassReason::AnotherLog);
    }
    match &head.last {
        // All events were dropped as old, and the snapshot is what is left of them.
        None if header.mark.position < head.floor && header.mark.position <= head.ceiling => Ok(()),
        None => Err(PassReason::Ahead { last: 0 }),
        Some(last) if header.mark.sequence > last.sequence => {
            Err(PassReason::Ahead { last: last.sequence })
        }
        Some(last) if header.mark.sequence == last.sequence && header.mark != *last => {
            Err(PassReason::AnotherEvent)
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
    let missing = match found - 1 {
        last if last == expected => format!("event {expected} is missing"),
        last => format!("events {expected} to {last} are missing"),
    };
    let message = format!("{missing}: they have expired, or were removed");
    Err(Error::new(ErrorKind::Gap, message).at_event(expected))
}

impl<S: Replay> Logic for LoadLogic<S> {
    type Output = Loaded<S>;

    fn want(&mut self) -> Result<Step<Loaded<S>>> {
        Ok(match self.stage {
            Stage::Head => Step::Do(Request::Head),
            Stage::Snapshot => Step::Do(Request::Snapshot { age: self.age }),
            Stage::Events => Step::Do(Request::Events { from: self.from, most: PAGE }),
            Stage::Done => match self.loaded.take() {
                Some(loaded) => Step::Done(loaded),
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
