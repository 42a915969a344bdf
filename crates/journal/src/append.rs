use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use super::{
    AppendReceipt, EventId, Expected, NewEvent, SessionName,
    machine::Logic,
    read::another_log,
    request::{
        Append, Failure, Head, LogPosition, Mark, Page, Request, Response, Step, Writing,
        unexpected,
    },
    retry::MAY_BE_DONE,
    tail::{OpenTail, Tail},
};
use crate::{Error, ErrorKind, Millis, Result};

/// How many events are looked through at a time for those of other writers.
const PAGE: usize = 256;

/// How often an append to wherever the end is may find another writer there first.
const MOST_RACES: u32 = 1_000;

/// Appends events, each of its own caller.
///
/// They are written for one place: after the event that is taken for the newest, as many together as
/// may be. Whoever comes second is refused, so an attempt of which nobody knows what became may be
/// made again: either its events are found at that place by their ids, or others are there and they
/// never can be.
pub(super) struct AppendLogic {
    entries: Vec<Entry>,
    outcomes: Vec<Option<Result<StoredEvent>>>,
    group: Group,
    window: usize,
    tail: Option<Tail>,
    opening: OpenTail,
    stage: Stage,
    /// Whether the end was looked for since the call began.
    is_fresh: bool,
    /// Whether it was learnt from the beginning since the call began.
    is_reopened: bool,
    races: u32,
}

/// An event that is to be appended.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) event: NewEvent,
    pub(super) expected: Expected,
    /// The event that it is to follow, where its caller knows more of it than the sequence.
    pub(super) follows: Option<LogPosition>,
    pub(super) now: Millis,
    /// From which sequence on it may be, where an attempt of its caller may have taken effect.
    pub(super) tried: Option<u64>,
}

impl Entry {
    pub(super) fn new(event: NewEvent, expected: Expected, now: Millis) -> Self {
        Self { event, expected, follows: None, now, tried: None }
    }

    /// What is to be said where the event was found by its id.
    fn found(&self, sequence: u64) -> StoredEvent {
        let appended = AppendReceipt { sequence, was_there: self.tried.is_none() };
        StoredEvent { appended, at: None }
    }

    /// An event that follows what is known of the log.
    pub(super) fn after(at: Option<&LogPosition>, event: NewEvent, now: Millis) -> Self {
        let expected = Expected::Last(at.map_or(0, |at| at.mark.sequence));
        Self { follows: at.cloned(), ..Self::new(event, expected, now) }
    }
}

/// Where an event came to be.
#[derive(Clone, Debug)]
pub(super) struct StoredEvent {
    pub(super) appended: AppendReceipt,
    /// Its place, where the store acknowledged it. An event that was found by its id may have been
    /// written by somebody else, and have another body.
    pub(super) at: Option<LogPosition>,
}

/// How much may be written together; it is always of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) events: usize,
    pub(super) bytes: usize,
    /// How many bytes an event takes.
    pub(super) size: fn(&NewEvent) -> usize,
}

impl Group {
    /// One event at a time.
    pub(super) const ALONE: Self = Self { events: 1, bytes: 0, size: |_| 0 };
}

/// What became of an event that was to be appended.
pub(super) struct AppendOutcome {
    #[cfg_attr(
        not(feature = "nats"),
        allow(dead_code, reason = "only where some append for others does one wait again")
    )]
    pub(super) entry: Entry,
    /// Nothing where it is not known, or nothing was done yet.
    pub(super) outcome: Option<Result<StoredEvent>>,
}

enum Stage {
    Open,
    Decide,
    /// Whether the end is where it was.
    Check,
    Write {
        chosen: Vec<usize>,
    },
    CatchUp {
        was_refused: bool,
        found: bool,
    },
}

impl AppendLogic {
    pub(super) fn new(
        tail: Option<Tail>,
        entries: Vec<Entry>,
        group: Group,
        window: usize,
    ) -> Self {
        let stage = if tail.is_some() { Stage::Decide } else { Stage::Open };
        let is_reopened = tail.is_none();
        let reach = earliest(&entries);
        Self {
            outcomes: entries.iter().map(|_| None).collect(),
            entries,
            group,
            window,
            tail,
            opening: OpenTail::new(window, reach),
            stage,
            is_fresh: is_reopened,
            is_reopened,
            races: 0,
        }
    }

    /// Appends one event.
    pub(super) fn one(tail: Option<Tail>, entry: Entry, window: usize) -> Self {
        Self::new(tail, vec![entry], Group::ALONE, window)
    }

    /// The end of the log, as far as it is known.
    #[cfg(feature = "nats")]
    pub(super) fn tail(&self) -> Option<&Tail> {
        self.tail.as_ref()
    }

    /// What became of each event, and the end of the log as far as it is known for sure. May be
    /// called at any time: what was being written then may be there or not.
    pub(super) fn take_parts(
        &mut self,
        session: &SessionName,
    ) -> (Vec<AppendOutcome>, Option<Tail>) {
        self.note_attempt();
        let entries = std::mem::take(&mut self.entries);
        let outcomes = std::mem::take(&mut self.outcomes);
        let fates = entries.into_iter().zip(outcomes).map(|(entry, outcome)| {
            let named = |error: Error| error.in_session(session.as_str());
            AppendOutcome { entry, outcome: outcome.map(|outcome| outcome.map_err(named)) }
        });
        let fates = fates.collect();
        let mut tail = self.tail.take();
        if let Some(tail) = &mut tail {
            tail.keep(self.window);
        }
        (fates, tail)
    }

    /// What became of the one event, and the end of the log where it is known for sure.
    pub(super) fn into_outcome(
        mut self,
        result: Result<()>,
        session: &SessionName,
    ) -> (Result<StoredEvent>, Option<Tail>) {
        let (fates, tail) = self.take_parts(session);
        match (result, fates.into_iter().next().and_then(|fate| fate.outcome)) {
            (Ok(()), Some(outcome)) => (outcome, tail),
            (Err(error), _) => (Err(error), None),
            (Ok(()), _) => {
                let message =
                    "the append ended without an answer; append the event again with the same id";
                (Err(Error::new(ErrorKind::Conflict, message)), None)
            }
        }
    }

    /// Notes that what is being written may be there.
    fn note_attempt(&mut self) {
        let Stage::Write { chosen } = &self.stage else { return };
        let place = self.tail.as_ref().map_or(0, Tail::sequence).saturating_add(1);
        for at in chosen {
            if let Some(entry) = self.entries.get_mut(*at) {
                entry.tried.get_or_insert(place);
            }
        }
    }

    fn reopen(&mut self) {
        self.tail = None;
        self.opening = OpenTail::new(self.window, earliest(&self.entries));
        self.stage = Stage::Open;
        self.is_fresh = true;
        self.is_reopened = true;
    }

    /// Settles what can be settled, and chooses what is written next; whether nothing is left.
    fn decide(&mut self) -> bool {
        let Some(tail) = &self.tail else { return false };
        let last = tail.sequence();
        let (mut chosen, mut ids, mut kind, mut bytes) = (Vec::new(), HashSet::new(), None, 0);
        for (at, (entry, outcome)) in self.entries.iter().zip(&mut self.outcomes).enumerate() {
            if outcome.is_some() {
                continue;
            }
            if let Some(sequence) = tail.find(&entry.event.id) {
                *outcome = Some(Ok(entry.found(sequence)));
                continue;
            }
            let next = last.saturating_add(chosen.len() as u64);
            match entry.expected {
                Expected::Last(expected) if expected != next => {
                    if !chosen.is_empty() {
                        // What it comes to is seen when those before it are there.
                        break;
                    }
                    if !self.is_fresh {
                        self.stage = Stage::Check;
                        return false;
                    }
                    if expected > last && !self.is_reopened {
                        self.reopen();
                        return false;
                    }
                    *outcome = Some(Err(conflict(expected, last)));
                    continue;
                }
                Expected::Last(_) if !chosen.is_empty() && entry.follows.is_some() => break,
                _ => {}
            }
            if let Some(at) = entry.follows.as_ref().filter(|at| !tail.is_at(at)) {
                *outcome = Some(Err(another_log(at)));
                continue;
            }
            bytes += (self.group.size)(&entry.event);
            let is_full = chosen.len() >= self.group.events || bytes > self.group.bytes;
            let is_other = *kind.get_or_insert(&entry.event.kind) != &entry.event.kind;
            let is_new = ids.insert(&entry.event.id);
            if !chosen.is_empty() && (is_full || is_other || !is_new) {
                break;
            }
            chosen.push(at);
        }
        let is_done = chosen.is_empty();
        self.stage = Stage::Write { chosen };
        is_done
    }

    fn append(&self, tail: &Tail, chosen: &[usize]) -> Append {
        let entries = chosen.iter().filter_map(|at| self.entries.get(*at));
        Append {
            sequence: tail.sequence().saturating_add(1),
            after: tail.position(),
            events: entries
                .map(|entry| Writing { event: entry.event.clone(), recorded_at: entry.now })
                .collect(),
        }
    }

    /// The events that were chosen are there, the last of them at this position.
    fn written(&mut self, chosen: &[usize], last: u64) {
        let Some(tail) = &mut self.tail else { return };
        let count = chosen.len() as u64;
        for (nth, at) in (1..).zip(chosen) {
            let Some(entry) = self.entries.get(*at) else { continue };
            let (sequence, position) = (tail.sequence().saturating_add(1), last + nth - count);
            let id: EventId = entry.event.id.clone();
            let mark = Mark { sequence, position, id };
            tail.push(mark.clone());
            if let Some(outcome) = self.outcomes.get_mut(*at) {
                let appended = AppendReceipt { sequence, was_there: false };
                let at = Some(LogPosition { life: Arc::clone(&tail.life), mark });
                *outcome = Some(Ok(StoredEvent { appended, at }));
            }
        }
        self.stage = Stage::Decide;
    }

    fn got_head(&mut self, head: &Head) {
        let Some(tail) = &self.tail else { return };
        let last = head.last.as_ref().map_or(head.reached, |last| last.sequence);
        let is_same_log = head.life == tail.life || head.life.is_empty() || tail.life.is_empty();
        if is_same_log && last > tail.sequence() {
            self.stage = Stage::CatchUp { was_refused: false, found: false };
        } else if is_same_log && last == tail.sequence() && head.last == tail.last() {
            (self.is_fresh, self.is_reopened) = (true, true);
            self.stage = Stage::Decide;
        } else {
            self.reopen();
        }
    }

    fn got_page(&mut self, page: Page) -> Result<(), Failure> {
        let Stage::CatchUp { was_refused, found } = &mut self.stage else { return Ok(()) };
        let Some(tail) = &mut self.tail else { return Ok(()) };
        // The ids that the tail knows are the newest: those that are looked for may be older.
        let wanted = self.entries.iter().zip(&mut self.outcomes);
        let mut wanted: HashMap<&EventId, Vec<(&Entry, &mut Option<_>)>> = wanted
            .filter(|(_, outcome)| outcome.is_none())
            .fold(HashMap::new(), |mut wanted, (entry, outcome)| {
                wanted.entry(&entry.event.id).or_default().push((entry, outcome));
                wanted
            });
        for placed in page.events {
            if placed.event.sequence != tail.sequence().saturating_add(1) {
                // The log is not the one that was known: it was emptied, or lost its end.
                self.reopen();
                return Ok(());
            }
            *found = true;
            for (entry, outcome) in wanted.remove(&placed.event.id).unwrap_or_default() {
                *outcome = Some(Ok(entry.found(placed.event.sequence)));
            }
            tail.push(placed.mark());
        }
        if !page.is_end {
            return Ok(());
        }
        let is_at_odds = *was_refused && !*found;
        self.is_fresh = true;
        self.stage = Stage::Decide;
        if is_at_odds {
            self.reopen();
            let message = "the store refused the event, and shows none that came before it";
            let error = Error::new(ErrorKind::Conflict, message);
            return Err(Failure::Transient { error, took: Duration::ZERO });
        }
        Ok(())
    }

    /// Events that are not taken together may be by themselves.
    fn rejected(&mut self, chosen: &[usize], error: Error) {
        match chosen {
            [at] => {
                let was_tried = self.entries.get(*at).is_some_and(|entry| entry.tried.is_some());
                if let Some(outcome) = self.outcomes.get_mut(*at) {
                    *outcome = Some(Err(if was_tried { open(&error) } else { error }));
                }
            }
            _ => self.group = Group::ALONE,
        }
        self.stage = Stage::Decide;
    }

    fn refused(&mut self) -> Result<(), Failure> {
        self.races += 1;
        if self.races > MOST_RACES {
            let message =
                format!("another writer appended first {MOST_RACES} times in a row; try again");
            return Err(Failure::Final(Error::new(ErrorKind::Conflict, message)));
        }
        self.stage = Stage::CatchUp { was_refused: true, found: false };
        Ok(())
    }
}

impl Logic for AppendLogic {
    type Output = ();

    fn want(&mut self) -> Result<Step<()>> {
        loop {
            match &self.stage {
                Stage::Open => match self.opening.want()? {
                    Step::Do(request) => return Ok(Step::Do(request)),
                    Step::Done(tail) => {
                        self.tail = Some(tail);
                        self.stage = Stage::Decide;
                    }
                },
                Stage::Decide => {
                    if self.decide() {
                        return Ok(Step::Done(()));
                    }
                }
                Stage::Check => return Ok(Step::Do(Request::Head)),
                Stage::Write { chosen } => {
                    let Some(tail) = &self.tail else {
                        self.reopen();
                        continue;
                    };
                    return Ok(Step::Do(Request::Append(Arc::new(self.append(tail, chosen)))));
                }
                Stage::CatchUp { .. } => {
                    let Some(tail) = &self.tail else {
                        self.reopen();
                        continue;
                    };
                    let from = tail.position().saturating_add(1);
                    return Ok(Step::Do(Request::Events { from, most: PAGE }));
                }
            }
        }
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (&mut self.stage, response) {
            (Stage::Open, response) => return self.opening.got(response),
            (Stage::Write { chosen }, Response::AppendReceipt { last, life }) => {
                let chosen = std::mem::take(chosen);
                if let (Some(tail), Some(life)) = (&mut self.tail, life) {
                    tail.life = life;
                }
                self.written(&chosen, last);
            }
            (Stage::Write { .. }, Response::Refused) => return self.refused(),
            (Stage::Write { chosen }, Response::Rejected(error)) => {
                let chosen = std::mem::take(chosen);
                self.rejected(&chosen, error);
            }
            (Stage::Check, Response::Head(head)) => self.got_head(&head),
            (Stage::CatchUp { .. }, Response::Events(page)) => return self.got_page(page),
            (_, response) => return Err(Failure::Final(unexpected(&response))),
        }
        Ok(())
    }

    fn failed(&mut self, failure: &Failure) {
        if let (Failure::Ambiguous { .. }, Stage::Write { .. }) = (failure, &self.stage) {
            self.note_attempt();
            self.stage = Stage::CatchUp { was_refused: false, found: false };
        }
    }

    fn is_settled(&self) -> bool {
        let open = self.entries.iter().zip(&self.outcomes);
        open.into_iter().all(|(entry, outcome)| entry.tried.is_none() || outcome.is_some())
    }
}

/// The place of the earliest attempt that may have taken effect.
fn earliest(entries: &[Entry]) -> Option<u64> {
    entries.iter().filter_map(|entry| entry.tried).min()
}

/// An error of an event that an earlier attempt may still bring.
fn open(error: &Error) -> Error {
    let message = format!("{}; an earlier attempt {MAY_BE_DONE}", error.message());
    Error::new(error.kind(), message)
}

fn conflict(expected: u64, found: u64) -> Error {
    let message = format!("expected event {expected} to be the newest, found {found}");
    Error::new(ErrorKind::Conflict, message).at_event(found)
}
