use super::{
    Replay, SessionName, SkipReason, Snapshot,
    machine::Logic,
    request::{Failure, Request, Response, Step, StoredSnapshot, unexpected},
    snapshot::{self, Opened},
};
use crate::{Error, ErrorKind, Result};

/// Reads the newest snapshot, as it is.
pub(super) struct FetchLogic<S> {
    session: SessionName,
    fetched: FetchedEvents<S>,
}

enum FetchedEvents<S> {
    NotYet,
    None,
    Some(Box<Snapshot<S>>),
}

impl<S: Replay> FetchLogic<S> {
    pub(super) fn new(session: SessionName) -> Self {
        Self { session, fetched: FetchedEvents::NotYet }
    }

    fn open(&self, kept: Option<StoredSnapshot>) -> Result<Option<Snapshot<S>>> {
        let opened = match kept {
            None => return Ok(None),
            Some(StoredSnapshot::Unreadable(error)) => {
                let message = format!("the snapshot cannot be used: {}", error.message());
                return Err(Error::new(error.kind(), message).with_source(error));
            }
            Some(StoredSnapshot::Bytes(bytes)) => {
                snapshot::open::<S>(&bytes, &self.session, |_| Ok(()))
            }
        };
        let opened = opened.and_then(|Opened { info, state, .. }| {
            let (after_sequence, created_at) = (info.after_sequence, info.created_at);
            state.map(|state| Snapshot { state, after_sequence, created_at })
        });
        opened.map(Some).map_err(|reason| {
            let kind = match reason {
                SkipReason::Format(_) | SkipReason::Schema { .. } => ErrorKind::Version,
                SkipReason::State(_) => ErrorKind::Shape,
                _ => ErrorKind::Damaged,
            };
            Error::new(kind, format!("the snapshot cannot be used: {reason}"))
        })
    }
}

impl<S: Replay> Logic for FetchLogic<S> {
    type Output = Option<Snapshot<S>>;

    fn want(&mut self) -> Result<Step<Self::Output>> {
        Ok(match std::mem::replace(&mut self.fetched, FetchedEvents::NotYet) {
            FetchedEvents::NotYet => Step::Do(Request::Snapshot { age: 0 }),
            FetchedEvents::None => Step::Done(None),
            FetchedEvents::Some(snapshot) => Step::Done(Some(*snapshot)),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match response {
            Response::Snapshot(kept) => {
                let snapshot = self.open(kept).map_err(Failure::Final)?;
                self.fetched = snapshot
                    .map_or(FetchedEvents::None, |found| FetchedEvents::Some(Box::new(found)));
                Ok(())
            }
            response => Err(Failure::Final(unexpected(&response))),
        }
    }
}

/// Removes a session.
#[derive(Default)]
pub(super) struct DeleteLogic {
    is_done: bool,
}

impl Logic for DeleteLogic {
    type Output = ();

    fn want(&mut self) -> Result<Step<()>> {
        Ok(if self.is_done { Step::Done(()) } else { Step::Do(Request::Delete) })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match response {
            Response::Done => {
                self.is_done = true;
                Ok(())
            }
            response => Err(Failure::Final(unexpected(&response))),
        }
    }
}
