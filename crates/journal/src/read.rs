use std::sync::Arc;

use super::{
    Event,
    load::{accepted_gap, gap, in_order},
    locate::Locate,
    machine::Logic,
    request::{
        Failure, Head, LogPosition, Page, Position, PositionedEvent, Proof, Request, Response,
        Step, unexpected,
    },
    tail::cut_off,
};
use crate::{Error, ErrorKind, Result};

/// How many events are asked for at a time.
pub(super) const PAGE: usize = if cfg!(test) { 3 } else { 2_000 };

/// Reads events from a place on.
pub(super) struct ReadLogic {
    from: ReadFrom,
    most: usize,
    head: Head,
    stage: Stage,
    /// Whether the log has still to show the event that is known.
    is_unproven: bool,
    /// Whether events are passed over that are lost, as was accepted.
    has_lost: bool,
    events: Vec<PositionedEvent>,
}

enum ReadFrom {
    Sequence(u64),
    /// After an event that the log is to have; from the first one on where there is none.
    After(Option<LogPosition>),
}

enum Stage {
    Head,
    Locate(Locate),
    Events(Position),
    Done,
}

/// What was read.
pub(super) struct Reading {
    /// Of which log.
    pub(super) life: Arc<str>,
    pub(super) events: Vec<PositionedEvent>,
}

impl Reading {
    pub(super) fn into_events(self) -> Vec<Event> {
        self.events.into_iter().map(|placed| placed.event).collect()
    }
}

impl ReadLogic {
    pub(super) fn new(first: u64, most: usize) -> Self {
        Self::of(ReadFrom::Sequence(first.max(1)), most)
    }

    /// What comes after an event. That the log has another one there is a conflict.
    pub(super) fn after(at: Option<LogPosition>, most: usize) -> Self {
        Self::of(ReadFrom::After(at), most)
    }

    fn of(from: ReadFrom, most: usize) -> Self {
        let (head, stage, events) = (Head::empty(), Stage::Head, Vec::new());
        Self { from, most, head, stage, is_unproven: false, has_lost: false, events }
    }

    fn first(&self) -> u64 {
        match &self.from {
            ReadFrom::Sequence(first) => *first,
            ReadFrom::After(at) => at.as_ref().map_or(0, |at| at.mark.sequence).saturating_add(1),
        }
    }

    /// The sequence of the event that comes next.
    fn next(&self) -> u64 {
        self.first().saturating_add(self.events.len() as u64)
    }

    fn last(&self) -> u64 {
        self.head.last.as_ref().map_or(0, |last| last.sequence)
    }

    fn got_head(&mut self, head: Head) -> Result<()> {
        self.head = head;
        let (first, last) = (self.first(), self.last());
        if let ReadFrom::After(Some(at)) = &self.from {
            let is_known = match &self.head.last {
                None => self.head.reached >= at.mark.sequence,
                Some(last) if last.sequence == at.mark.sequence => last.may_be(&at.mark),
                Some(last) => last.sequence > at.mark.sequence,
            };
            if !is_known || !at.may_be_in(&self.head.life) {
                return Err(another_log(at));
            }
        }
        if self.most == 0 || first > self.head.reached {
            self.stage = Stage::Done;
        } else if first > last {
            return Err(gap(first, self.head.reached));
        } else {
            self.stage = match (&self.from, &self.head.last) {
                (ReadFrom::Sequence(first), Some(last)) if *first > 1 => {
                    Stage::Locate(Locate::new(*first, last))
                }
                (ReadFrom::After(Some(at)), _) => {
                    self.is_unproven = true;
                    Stage::Events(at.mark.position)
                }
                _ => Stage::Events(0),
            };
        }
        Ok(())
    }

    fn got_page(&mut self, page: Page) -> Result<(), Failure> {
        for placed in page.events {
            if self.events.len() >= self.most {
                break;
            }
            if let ReadFrom::After(Some(at)) = &self.from
                && std::mem::take(&mut self.is_unproven)
            {
                match at.prove(&placed, self.head.floor) {
                    Proof::Itself => {
                        self.stage = Stage::Events(placed.position.saturating_add(1));
                        continue;
                    }
                    Proof::Next => {}
                    // What was dropped as old is missing, and said to be.
                    Proof::Unconnected
                        if at.mark.position < self.head.floor
                            && placed.event.sequence > at.mark.sequence => {}
                    Proof::Another | Proof::Unconnected => {
                        return Err(Failure::Final(another_log(at)));
                    }
                }
            }
            if placed.is_lost() {
                self.stage = Stage::Events(placed.position.saturating_add(1));
                self.has_lost = true;
                if placed.event.sequence < self.last() {
                    continue;
                }
                return Err(Failure::Final(accepted_gap(self.next(), placed.event.sequence)));
            }
            let (next, found) = (self.next(), placed.event.sequence);
            if self.has_lost && next < found {
                return Err(Failure::Final(accepted_gap(next, found - 1)));
            }
            in_order(next, found).map_err(Failure::Final)?;
            self.stage = Stage::Events(placed.position.saturating_add(1));
            self.events.push(placed);
        }
        if self.events.len() >= self.most || self.next() > self.last() {
            self.stage = Stage::Done;
        } else if page.is_end {
            return Err(cut_off(self.next() - 1, self.last()));
        }
        Ok(())
    }
}

/// The error of a log that is not the one that an event was read from.
pub(super) fn another_log(at: &LogPosition) -> Error {
    let LogPosition { mark, .. } = at;
    let message = format!(
        "the session is another one than the state comes from: it has no event {} with the id {:?} any more; load it anew",
        mark.sequence,
        mark.id.as_str(),
    );
    Error::new(ErrorKind::Conflict, message).at_event(mark.sequence)
}

impl Logic for ReadLogic {
    type Output = Reading;

    fn want(&mut self) -> Result<Step<Reading>> {
        if let Stage::Locate(locate) = &self.stage
            && let Some(from) = locate.found()
        {
            self.stage = Stage::Events(from);
        }
        Ok(match &self.stage {
            Stage::Head => Step::Do(Request::Head),
            Stage::Locate(locate) => Step::Do(locate.request()),
            Stage::Events(from) => {
                let most = self.most.saturating_sub(self.events.len());
                let most = most.saturating_add(usize::from(self.is_unproven));
                Step::Do(Request::Events { from: *from, most: PAGE.min(most) })
            }
            Stage::Done => Step::Done(Reading {
                life: Arc::clone(&self.head.life),
                events: std::mem::take(&mut self.events),
            }),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (&mut self.stage, response) {
            (Stage::Head, Response::Head(head)) => self.got_head(head).map_err(Failure::Final),
            (Stage::Locate(locate), Response::Events(page)) => {
                locate.got(&page);
                Ok(())
            }
            (Stage::Events(_), Response::Events(page)) => self.got_page(page),
            (_, response) => Err(Failure::Final(unexpected(&response))),
        }
    }
}
