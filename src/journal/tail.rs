//! The end of a session's log, as a writer knows it.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{
    EventId,
    load::is_left_of,
    locate::Locate,
    machine::Logic,
    request::{At, Failure, Head, Mark, Page, Position, Request, Response, Step, unexpected},
    snapshot,
};
use crate::{Error, ErrorKind, Result};

/// The newest events by their ids: what an append has to know.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) life: Arc<str>,
    sequence: u64,
    position: Position,
    window: usize,
    ids: VecDeque<EventId>,
    sequences: HashMap<EventId, u64>,
}

impl Tail {
    fn new(life: Arc<str>, window: usize) -> Self {
        let (ids, sequences) = (VecDeque::new(), HashMap::new());
        Self { life, sequence: 0, position: 0, window, ids, sequences }
    }

    /// The sequence of the newest event; 0 where there is none.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The position of the newest event; 0 where there is none.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The newest event, where it has not dropped out of the log.
    pub(super) fn last(&self) -> Option<Mark> {
        let id = self.ids.back()?.clone();
        Some(Mark { sequence: self.sequence, position: self.position, id })
    }

    /// Whether the newest event is this one, as far as that can be told.
    pub(super) fn is_at(&self, at: &At) -> bool {
        let is_known = self.last().is_none_or(|last| last == at.mark);
        is_known && self.sequence == at.mark.sequence && at.may_be_in(&self.life)
    }

    /// The sequence of the event with this id, if it is among the newest.
    pub(super) fn find(&self, id: &EventId) -> Option<u64> {
        self.sequences.get(id).copied()
    }

    pub(super) fn push(&mut self, mark: Mark) {
        (self.sequence, self.position) = (mark.sequence, mark.position);
        self.sequences.insert(mark.id.clone(), mark.sequence);
        self.ids.push_back(mark.id);
        self.forget();
    }

    /// Keeps the ids of so many events from now on.
    pub(super) fn keep(&mut self, window: usize) {
        self.window = window;
        self.forget();
    }

    /// The newest id stays in any case: it is how a snapshot names its event.
    fn forget(&mut self) {
        while self.ids.len() > self.window.max(1)
            && let Some(oldest) = self.ids.pop_front()
        {
            let left = self.sequence.saturating_sub(self.ids.len() as u64);
            if self.sequences.get(&oldest).is_some_and(|sequence| *sequence <= left) {
                self.sequences.remove(&oldest);
            }
        }
    }
}

/// Learns the end of a session's log.
#[derive(Debug)]
pub(super) struct OpenTail {
    window: usize,
    /// The ids from this sequence on are needed, whatever the window.
    reach: Option<u64>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Head,
    /// The log is empty: a snapshot tells whether it always was.
    Snapshot(Head),
    Locate(Head, Mark, Locate),
    Scan {
        tail: Tail,
        last: Mark,
        from: Position,
    },
    Done(Tail),
}

impl OpenTail {
    pub(super) fn new(window: usize, reach: Option<u64>) -> Self {
        Self { window, reach, stage: Stage::Head }
    }

    /// Of how many events the ids are needed.
    fn needed(&self, last: u64) -> u64 {
        let reached = self.reach.map_or(0, |reach| last.saturating_add(1).saturating_sub(reach));
        (self.window.max(1) as u64).max(reached)
    }

    fn scan(&mut self, head: &Head, last: Mark, from: Position) {
        let needed = usize::try_from(self.needed(last.sequence)).unwrap_or(usize::MAX);
        let tail = Tail::new(Arc::clone(&head.life), needed);
        self.stage = Stage::Scan { tail, last, from };
    }

    fn got_head(&mut self, head: Head) {
        let Some(last) = head.last.clone() else {
            self.stage = Stage::Snapshot(head);
            return;
        };
        // The one before the window too, so that the window is known to begin where it should.
        let first = last.sequence.saturating_sub(self.needed(last.sequence)).saturating_add(1);
        if first <= 1 {
            self.scan(&head, last, 0);
        } else {
            let locate = Locate::new(first, &last);
            self.stage = Stage::Locate(head, last, locate);
        }
    }

    /// Goes on numbering after events that the store has dropped.
    fn got_snapshot(&mut self, head: &Head, bytes: Option<&[u8]>) {
        let mut tail = Tail::new(Arc::clone(&head.life), self.window);
        tail.sequence = head.reached;
        if let Some(Ok(header)) = bytes.map(snapshot::header)
            && is_left_of(&header, head)
        {
            tail.sequence = tail.sequence.max(header.mark.sequence);
        }
        self.stage = Stage::Done(tail);
    }

    fn got_page(&mut self, page: Page) -> Result<(), Failure> {
        let Stage::Scan { tail, last, from } = &mut self.stage else { return Ok(()) };
        for placed in page.events {
            *from = placed.position.saturating_add(1);
            tail.push(placed.mark());
        }
        if tail.sequence >= last.sequence {
            let tail = tail.clone();
            self.stage = Stage::Done(tail);
            return Ok(());
        }
        if page.is_end {
            return Err(cut_off(tail.sequence, last.sequence));
        }
        Ok(())
    }
}

impl Logic for OpenTail {
    type Output = Tail;

    fn want(&mut self) -> Result<Step<Tail>> {
        if let Stage::Locate(head, last, locate) = &self.stage
            && let Some(from) = locate.found()
        {
            let (head, last) = (head.clone(), last.clone());
            self.scan(&head, last, from);
        }
        Ok(match &self.stage {
            Stage::Head => Step::Do(Request::Head),
            Stage::Snapshot(_) => Step::Do(Request::Snapshot { age: 0 }),
            Stage::Locate(_, _, locate) => Step::Do(locate.request()),
            Stage::Scan { from, .. } => {
                Step::Do(Request::Events { from: *from, most: self.window.max(64) })
            }
            Stage::Done(tail) => Step::Done(tail.clone()),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (&mut self.stage, response) {
            (Stage::Head, Response::Head(head)) => self.got_head(head),
            (Stage::Snapshot(head), Response::Snapshot(kept)) => {
                let head = head.clone();
                let bytes = match &kept {
                    Some(super::request::Kept::Bytes(bytes)) => Some(bytes.as_slice()),
                    _ => None,
                };
                self.got_snapshot(&head, bytes);
            }
            (Stage::Locate(_, _, locate), Response::Events(page)) => locate.got(&page),
            (Stage::Scan { .. }, Response::Events(page)) => return self.got_page(page),
            (_, response) => return Err(Failure::Final(unexpected(&response))),
        }
        Ok(())
    }
}

/// The failure of reading a log that ended before the event that is known to be its last.
pub(super) fn cut_off(read: u64, last: u64) -> Failure {
    let message = format!("the log ended after event {read}, although event {last} is there");
    Failure::Transient { error: Error::new(ErrorKind::Io, message), took: Duration::ZERO }
}
