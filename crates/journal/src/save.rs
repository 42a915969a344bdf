use std::sync::Arc;

use super::{
    LiveState, LoadedState, Replay, SessionName, SnapshotInfo,
    locate::Locate,
    machine::Logic,
    read::another_log,
    request::{
        Failure, Head, LogPosition, Mark, Page, PositionedEvent, Request, Response, Step,
        unexpected,
    },
    snapshot::{self, Header},
};
use crate::{Error, ErrorKind, Millis, Result};

/// Writes a snapshot of a state that was taken after an event.
pub(super) struct SaveLogic {
    session: SessionName,
    taken: PendingSnapshot,
    keep: usize,
    head: Head,
    stage: Stage,
}

enum Stage {
    Head,
    Locate(Locate),
    /// The event is at this position.
    Event(u64),
    Write(Arc<[u8]>, SnapshotInfo),
    Done(SnapshotInfo),
}

/// What a snapshot is to be made of.
pub(super) struct PendingSnapshot {
    /// The state as JSON.
    state: Vec<u8>,
    schema: u32,
    after_sequence: u64,
    /// The event, where more than its sequence is known.
    at: Option<LogPosition>,
    now: Millis,
}

impl PendingSnapshot {
    pub(super) fn of<S: Replay>(state: &S, after_sequence: u64, now: Millis) -> Result<Self> {
        let state = serde_json::to_vec(state).map_err(|error| {
            let message = format!("cannot write the state as JSON: {error}");
            Error::new(ErrorKind::Shape, message).with_source(error)
        })?;
        Ok(Self { state, schema: S::SCHEMA, after_sequence, at: None, now })
    }

    /// Of a state that was loaded.
    pub(super) fn of_loaded<S: Replay>(
        loaded: &LoadedState<S>,
        at: Option<LogPosition>,
        now: Millis,
    ) -> Result<Self> {
        Ok(Self { at, ..Self::of(&loaded.state, loaded.sequence, now)? })
    }

    /// Of a state that is kept up with its log.
    pub(super) fn of_live<S: Replay>(live: &LiveState<S>, now: Millis) -> Result<Self> {
        Ok(Self { at: live.at().cloned(), ..Self::of(live.state(), live.sequence(), now)? })
    }
}

impl SaveLogic {
    pub(super) fn new(session: &SessionName, taken: PendingSnapshot, keep: usize) -> Self {
        let (session, keep, head) = (session.clone(), keep.max(1), Head::empty());
        Self { session, taken, keep, head, stage: Stage::Head }
    }

    fn seal(&mut self, mark: Mark) -> Result<()> {
        let header = Header {
            session: self.session.as_str().into(),
            schema: self.taken.schema,
            mark,
            life: Arc::clone(&self.head.life),
            created_at: self.taken.now,
        };
        let bytes = snapshot::seal(header, &self.taken.state)?;
        let info = SnapshotInfo {
            after_sequence: self.taken.after_sequence,
            created_at: self.taken.now,
            schema: self.taken.schema,
            stored_bytes: bytes.len() as u64,
        };
        self.stage = Stage::Write(bytes.into(), info);
        Ok(())
    }

    fn is_missing(&self, last: u64) -> Error {
        let message = format!(
            "a snapshot after event {} of a log whose newest event is {last}",
            self.taken.after_sequence
        );
        Error::new(ErrorKind::OutOfRange, message).at_event(last)
    }

    /// The end of the log: the event, or what comes after it.
    fn got_head(&mut self, head: Head) -> Result<()> {
        self.head = head;
        let after = self.taken.after_sequence;
        let last = self.head.last.clone();
        match (self.taken.at.clone(), last) {
            (Some(at), _) if !at.may_be_in(&self.head.life) => Err(another_log(&at)),
            (Some(at), Some(last)) if last.may_be(&at.mark) => self.seal(at.mark),
            // The store has dropped all events, as old ones are.
            (Some(at), None) if self.head.reached >= after => self.seal(at.mark),
            (Some(at), Some(last)) if last.sequence > after => {
                self.stage = Stage::Event(at.mark.position);
                Ok(())
            }
            (Some(at), _) => Err(another_log(&at)),
            (None, Some(last)) if last.sequence == after => self.seal(last),
            (None, Some(last)) if after > 0 && last.sequence > after => {
                self.stage = Stage::Locate(Locate::new(after, &last));
                Ok(())
            }
            (None, last) => Err(self.is_missing(last.map_or(0, |last| last.sequence))),
        }
    }

    fn got_event(&mut self, page: &Page) -> Result<()> {
        let mark = page.events.first().map(PositionedEvent::mark);
        if let Some(at) = self.taken.at.clone() {
            // What the store has dropped as old is followed by what is newer.
            let is_dropped = at.mark.position < self.head.floor;
            return match mark {
                Some(mark) if mark.may_be(&at.mark) => self.seal(at.mark),
                Some(mark) if is_dropped && mark.sequence > at.mark.sequence => self.seal(at.mark),
                _ => Err(another_log(&at)),
            };
        }
        match mark.filter(|mark| mark.sequence == self.taken.after_sequence) {
            Some(mark) => self.seal(mark),
            None => Err(Error::new(ErrorKind::Gap, "the event of the snapshot is gone")
                .at_event(self.taken.after_sequence)),
        }
    }
}

impl Logic for SaveLogic {
    type Output = SnapshotInfo;

    fn want(&mut self) -> Result<Step<SnapshotInfo>> {
        if let Stage::Locate(locate) = &self.stage
            && let Some(position) = locate.found()
        {
            self.stage = Stage::Event(position);
        }
        Ok(match &self.stage {
            Stage::Head => Step::Do(Request::Head),
            Stage::Locate(locate) => Step::Do(locate.request()),
            Stage::Event(position) => Step::Do(Request::Events { from: *position, most: 1 }),
            Stage::Write(bytes, _) => {
                Step::Do(Request::PutSnapshot { bytes: Arc::clone(bytes), keep: self.keep })
            }
            Stage::Done(info) => Step::Done(info.clone()),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        let result = match (&mut self.stage, response) {
            (Stage::Head, Response::Head(head)) => self.got_head(head),
            (Stage::Locate(locate), Response::Events(page)) => {
                locate.got(&page);
                Ok(())
            }
            (Stage::Event(_), Response::Events(page)) => self.got_event(&page),
            (Stage::Write(_, info), Response::Done) => {
                let info = info.clone();
                self.stage = Stage::Done(info);
                Ok(())
            }
            (Stage::Write(..), Response::Stands(newer)) => {
                self.stage = Stage::Done(newer);
                Ok(())
            }
            (_, response) => Err(unexpected(&response)),
        };
        result.map_err(Failure::Final)
    }
}
