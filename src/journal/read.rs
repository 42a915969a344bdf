use super::{
    Event,
    load::in_order,
    locate::Locate,
    machine::Logic,
    request::{Failure, Page, Position, Request, Response, Step, unexpected},
    tail::cut_off,
};
use crate::Result;

/// How many events are asked for at a time.
const PAGE: usize = if cfg!(test) { 3 } else { 2_000 };

/// Reads events from a sequence on.
pub(super) struct ReadLogic {
    first: u64,
    most: usize,
    last: u64,
    stage: Stage,
    events: Vec<Event>,
}

enum Stage {
    Head,
    Locate(Locate),
    Events(Position),
    Done,
}

impl ReadLogic {
    pub(super) fn new(first: u64, most: usize) -> Self {
        Self { first: first.max(1), most, last: 0, stage: Stage::Head, events: Vec::new() }
    }

    /// The sequence of the event that comes next.
    fn next(&self) -> u64 {
        self.first.saturating_add(self.events.len() as u64)
    }

    fn got_page(&mut self, page: Page) -> Result<(), Failure> {
        for placed in page.events {
            if self.events.len() >= self.most {
                break;
            }
            in_order(self.next(), placed.event.sequence).map_err(Failure::Final)?;
            self.stage = Stage::Events(placed.position.saturating_add(1));
            self.events.push(placed.event);
        }
        if self.events.len() >= self.most || self.next() > self.last {
            self.stage = Stage::Done;
        } else if page.is_end {
            return Err(cut_off(self.next() - 1, self.last));
        }
        Ok(())
    }
}

impl Logic for ReadLogic {
    type Output = Vec<Event>;

    fn want(&mut self) -> Result<Step<Vec<Event>>> {
        if let Stage::Locate(locate) = &self.stage
            && let Some(from) = locate.found()
        {
            self.stage = Stage::Events(from);
        }
        Ok(match &self.stage {
            Stage::Head => Step::Do(Request::Head),
            Stage::Locate(locate) => Step::Do(locate.request()),
            Stage::Events(from) => {
                let most = PAGE.min(self.most - self.events.len());
                Step::Do(Request::Events { from: *from, most })
            }
            Stage::Done => Step::Done(std::mem::take(&mut self.events)),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (&mut self.stage, response) {
            (Stage::Head, Response::Head(head)) => {
                self.stage = match head.last {
                    Some(last) if self.first <= last.sequence && self.most > 0 => {
                        self.last = last.sequence;
                        match self.first {
                            1 => Stage::Events(0),
                            first => Stage::Locate(Locate::new(first, &last)),
                        }
                    }
                    _ => Stage::Done,
                };
            }
            (Stage::Locate(locate), Response::Events(page)) => locate.got(&page),
            (Stage::Events(_), Response::Events(page)) => return self.got_page(page),
            (_, response) => return Err(Failure::Final(unexpected(&response))),
        }
        Ok(())
    }
}
