//! The end of a session's log, as a writer knows it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{
    EventId,
    id_parts::{FEW, IdParts, Part},
    known::{IdHash, KnownIds},
    load::is_left_of,
    locate::Locate,
    machine::Logic,
    read::PAGE,
    request::{
        Failure, Head, LogPosition, Mark, Page, Position, PositionedEvent, Request, Response, Step,
        unexpected,
    },
    snapshot,
};
use crate::{Error, ErrorKind, Result};

/// The events by their ids, as far as they are known, and where the log ends: what an append has to
/// know.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    pub(super) life: Arc<str>,
    sequence: u64,
    position: Position,
    /// The id of the newest event, where it has not dropped out of the log.
    newest: Option<EventId>,
    known: KnownIds,
}

impl Tail {
    fn new(life: &Arc<str>, window: usize) -> Self {
        let (life, known) = (Arc::clone(life), KnownIds::new(window));
        Self { life, sequence: 0, position: 0, newest: None, known }
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
        let id = self.newest.clone()?;
        Some(Mark { sequence: self.sequence, position: self.position, id })
    }

    /// Whether the newest event is this one, as far as that can be told.
    pub(super) fn is_at(&self, at: &LogPosition) -> bool {
        let is_known = self.last().is_none_or(|last| at.mark.may_be(&last));
        is_known && self.sequence == at.mark.sequence && at.may_be_in(&self.life)
    }

    /// The sequence of the event with this id, if it is among those that are known.
    pub(super) fn find(&self, id: &EventId) -> Option<u64> {
        self.known.find(id, self.sequence)
    }

    pub(super) fn push(&mut self, mark: Mark) {
        (self.sequence, self.position) = (mark.sequence, mark.position);
        self.known.insert(IdHash::of(&mark.id), mark.sequence);
        self.newest = Some(mark.id);
    }

    /// Knows the ids of so many events from now on.
    pub(super) fn keep(&mut self, window: usize) {
        self.known.keep(window, self.sequence);
    }
}

/// Learns the end of a session's log, and the ids of its events: of all, unless the window is
/// smaller.
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
    /// Which ids the store keeps.
    Parts(Head, Mark, Tail, IdParts),
    Scan(Scan),
    /// All is known; what is left are the ids that the store does not keep yet.
    Keep(Tail, VecDeque<Part>),
}

/// Reads events, for their ids.
#[derive(Debug)]
struct Scan {
    head: Head,
    last: Mark,
    tail: Tail,
    from: Position,
    /// Where all ids are known up to the next event.
    parts: Option<IdParts>,
    /// The event up to which the store keeps ids, and which the log has still to show.
    unproven: Option<Mark>,
}

impl Scan {
    fn take(&mut self, placed: &PositionedEvent) -> Result<ProvenTail> {
        let mark = placed.mark();
        self.from = placed.position.saturating_add(1);
        if let Some(at) = self.unproven.take() {
            if mark.may_be(&at) {
                self.tail.push(mark);
                return Ok(ProvenTail::Yes);
            }
            // What was dropped as old is followed by what is newer.
            let is_dropped = at.position < self.head.floor && mark.sequence > at.sequence;
            if !is_dropped {
                return Ok(ProvenTail::No);
            }
        }
        if let Some(parts) = &mut self.parts {
            parts.push(&mark)?;
        }
        self.tail.push(mark);
        Ok(ProvenTail::Yes)
    }
}

/// Whether the ids that the store keeps are those of the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProvenTail {
    Yes,
    No,
}

impl OpenTail {
    pub(super) fn new(window: usize, reach: Option<u64>) -> Self {
        Self { window, reach, stage: Stage::Head }
    }

    fn take_stage(&mut self) -> Stage {
        std::mem::replace(&mut self.stage, Stage::Head)
    }

    /// Of how many events the ids are needed.
    fn needed(&self, last: u64) -> usize {
        let reached = self.reach.map_or(0, |reach| last.saturating_add(1).saturating_sub(reach));
        self.window.max(1).max(usize::try_from(reached).unwrap_or(usize::MAX))
    }

    fn scan(&mut self, head: Head, last: Mark, from: Position) {
        let tail = Tail::new(&head.life, self.needed(last.sequence));
        self.stage = Stage::Scan(Scan { head, last, tail, from, parts: None, unproven: None });
    }

    fn got_head(&mut self, head: Head) {
        let Some(last) = head.last.clone() else {
            self.stage = Stage::Snapshot(head);
            return;
        };
        let needed = self.needed(last.sequence) as u64;
        // The one before the window too, so that the window is known to begin where it should.
        let first = last.sequence.saturating_sub(needed).saturating_add(1);
        if first > 1 {
            let locate = Locate::new(first, &last);
            self.stage = Stage::Locate(head, last, locate);
        } else if last.sequence < FEW {
            self.scan(head, last, 0);
        } else {
            let tail = Tail::new(&head.life, self.needed(last.sequence));
            let parts = IdParts::new(&head.life);
            self.stage = Stage::Parts(head, last, tail, parts);
        }
    }

    /// Goes on numbering after events that the store has dropped.
    fn got_snapshot(&mut self, head: &Head, bytes: Option<&[u8]>) {
        let mut tail = Tail::new(&head.life, self.window);
        tail.sequence = head.reached;
        if let Some(Ok(header)) = bytes.map(snapshot::header)
            && is_left_of(&header, head)
        {
            tail.sequence = tail.sequence.max(header.mark.sequence);
        }
        self.stage = Stage::Keep(tail, VecDeque::new());
    }

    fn got_ids(&mut self, bytes: Option<&[u8]>) {
        let Stage::Parts(_, last, tail, parts) = &mut self.stage else { return };
        if bytes.is_some_and(|bytes| parts.take(bytes, last.sequence, &mut tail.known)) {
            return;
        }
        if let Stage::Parts(head, last, tail, parts) = self.take_stage() {
            let unproven = parts.mark().cloned();
            let from = unproven.as_ref().map_or(0, |mark| mark.position);
            let parts = Some(parts);
            self.stage = Stage::Scan(Scan { head, last, tail, from, parts, unproven });
        }
    }

    fn got_page(&mut self, page: &Page) -> Result<(), Failure> {
        let Stage::Scan(scan) = &mut self.stage else { return Ok(()) };
        for placed in &page.events {
            if scan.take(placed).map_err(Failure::Final)? == ProvenTail::No {
                let (head, last) = (scan.head.clone(), scan.last.clone());
                let parts = IdParts::new(&head.life);
                self.scan(head, last, 0);
                if let Stage::Scan(scan) = &mut self.stage {
                    scan.parts = Some(parts);
                }
                return Ok(());
            }
        }
        if scan.tail.sequence < scan.last.sequence {
            return if page.is_end {
                Err(cut_off(scan.tail.sequence, scan.last.sequence))
            } else {
                Ok(())
            };
        }
        let parts = scan.parts.take().map(IdParts::into_unstored).transpose();
        let parts = parts.map_err(Failure::Final)?.unwrap_or_default();
        if let Stage::Scan(scan) = self.take_stage() {
            self.stage = Stage::Keep(scan.tail, parts.into());
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
            self.scan(head, last, from);
        }
        if let Stage::Keep(_, parts) = &self.stage
            && parts.is_empty()
            && let Stage::Keep(tail, _) = self.take_stage()
        {
            return Ok(Step::Done(tail));
        }
        Ok(match &self.stage {
            Stage::Head => Step::Do(Request::Head),
            Stage::Snapshot(_) => Step::Do(Request::Snapshot { age: 0 }),
            Stage::Locate(_, _, locate) => Step::Do(locate.request()),
            Stage::Parts(.., parts) => Step::Do(Request::Ids { part: parts.next() }),
            Stage::Scan(scan) => Step::Do(Request::Events { from: scan.from, most: PAGE }),
            Stage::Keep(_, parts) => parts
                .front()
                .map_or(Step::Do(Request::Head), |part| Step::Do(Request::PutIds(part.clone()))),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (&mut self.stage, response) {
            (Stage::Head, Response::Head(head)) => self.got_head(head),
            (Stage::Snapshot(head), Response::Snapshot(kept)) => {
                let head = head.clone();
                let bytes = match &kept {
                    Some(super::request::StoredSnapshot::Bytes(bytes)) => Some(bytes.as_slice()),
                    _ => None,
                };
                self.got_snapshot(&head, bytes);
            }
            (Stage::Locate(_, _, locate), Response::Events(page)) => locate.got(&page),
            (Stage::Parts(..), Response::Ids(bytes)) => self.got_ids(bytes.as_deref()),
            (Stage::Scan(_), Response::Events(page)) => return self.got_page(&page),
            (Stage::Keep(_, parts), Response::Done) => drop(parts.pop_front()),
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
