use super::{
    SnapshotInfo,
    machine::Logic,
    request::{Failure, Kept, Request, Response, Step, unexpected},
    snapshot,
};
use crate::Result;

/// What a journal holds of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionStatus {
    /// The sequence of the newest event; 0 where there is none.
    pub last_sequence: u64,
    /// The newest snapshot, if there is one that can be read.
    pub snapshot: Option<SnapshotInfo>,
}

#[derive(Default)]
pub(super) struct StatusLogic {
    last_sequence: Option<u64>,
    status: Option<SessionStatus>,
}

impl Logic for StatusLogic {
    type Output = SessionStatus;

    fn want(&mut self) -> Result<Step<SessionStatus>> {
        Ok(match (self.status.take(), self.last_sequence) {
            (Some(status), _) => Step::Done(status),
            (None, None) => Step::Do(Request::Head),
            (None, Some(_)) => Step::Do(Request::Snapshot { age: 0 }),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (response, self.last_sequence) {
            (Response::Head(head), None) => {
                self.last_sequence = Some(head.last.map_or(0, |last| last.sequence));
            }
            (Response::Snapshot(kept), Some(last_sequence)) => {
                let snapshot = match kept {
                    Some(Kept::Bytes(bytes)) => snapshot::info(&bytes),
                    _ => None,
                };
                self.status = Some(SessionStatus { last_sequence, snapshot });
            }
            (response, _) => return Err(Failure::Final(unexpected(&response))),
        }
        Ok(())
    }
}
