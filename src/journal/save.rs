use std::sync::Arc;

use super::{
    Replay, SessionName, SnapshotInfo,
    locate::Locate,
    machine::Logic,
    request::{Failure, Mark, Page, Request, Response, Step, unexpected},
    snapshot::{self, Header},
    tail::Tail,
};
use crate::{Error, ErrorKind, Result, id::Millis};

/// Writes a snapshot of a state that was taken after an event.
pub(super) struct SaveLogic {
    session: SessionName,
    state: Vec<u8>,
    schema: u32,
    after_sequence: u64,
    now: Millis,
    keep: usize,
    life: Arc<str>,
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
pub(super) struct Taken {
    /// The state as JSON.
    pub(super) state: Vec<u8>,
    pub(super) schema: u32,
    pub(super) after_sequence: u64,
    pub(super) now: Millis,
}

impl Taken {
    pub(super) fn of<S: Replay>(state: &S, after_sequence: u64, now: Millis) -> Result<Self> {
        let state = serde_json::to_vec(state).map_err(|error| {
            let message = format!("the state does not become JSON: {error}");
            Error::new(ErrorKind::Shape, message).caused_by(error)
        })?;
        Ok(Self { state, schema: S::SCHEMA, after_sequence, now })
    }
}

impl SaveLogic {
    /// `tail` spares the search for the event, where it is the newest.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for a state that is too large.
    pub(super) fn new(
        session: &SessionName,
        tail: Option<&Tail>,
        taken: Taken,
        keep: usize,
    ) -> Result<Self> {
        let Taken { state, schema, after_sequence, now } = taken;
        let (session, keep, life) = (session.clone(), keep.max(1), Arc::from(""));
        let stage = Stage::Head;
        let mut logic = Self { session, state, schema, after_sequence, now, keep, life, stage };
        if let Some(tail) = tail
            && let Some(last) = tail.last().filter(|last| last.sequence == after_sequence)
        {
            logic.life = Arc::clone(&tail.life);
            logic.seal(last)?;
        }
        Ok(logic)
    }

    fn seal(&mut self, mark: Mark) -> Result<()> {
        let header = Header {
            session: self.session.as_str().into(),
            schema: self.schema,
            mark,
            life: Arc::clone(&self.life),
            created_at: self.now,
        };
        let bytes = snapshot::seal(&header, &self.state)?;
        let info = SnapshotInfo {
            after_sequence: self.after_sequence,
            created_at: self.now,
            schema: self.schema,
            stored_bytes: bytes.len() as u64,
        };
        self.stage = Stage::Write(bytes.into(), info);
        Ok(())
    }

    fn is_missing(&self, last: u64) -> Error {
        let message = format!(
            "a snapshot after event {} of a log whose newest event is {last}",
            self.after_sequence
        );
        Error::new(ErrorKind::OutOfRange, message).at_event(last)
    }

    fn got_event(&mut self, page: &Page) -> Result<()> {
        let mark = page.events.first().map(super::request::Placed::mark);
        match mark.filter(|mark| mark.sequence == self.after_sequence) {
            Some(mark) => self.seal(mark),
            None => Err(Error::new(ErrorKind::Gap, "the event of the snapshot is gone")
                .at_event(self.after_sequence)),
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
            (Stage::Head, Response::Head(head)) => {
                self.life = head.life;
                match head.last {
                    Some(last) if last.sequence == self.after_sequence => self.seal(last),
                    Some(last)
                        if self.after_sequence > 0 && last.sequence > self.after_sequence =>
                    {
                        self.stage = Stage::Locate(Locate::new(self.after_sequence, &last));
                        Ok(())
                    }
                    last => Err(self.is_missing(last.map_or(0, |last| last.sequence))),
                }
            }
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
