use super::{
    SnapshotInfo,
    load::is_left_of,
    machine::Logic,
    request::{Failure, Head, Kept, Request, Response, Step, unexpected},
    snapshot,
};
use crate::Result;

/// What a journal holds of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionStatus {
    /// The sequence of the newest event, also where it has expired; 0 where there never was one.
    pub last_sequence: u64,
    /// The newest snapshot, if there is one that can be read.
    pub snapshot: Option<SnapshotInfo>,
}

#[derive(Default)]
pub(super) struct StatusLogic {
    head: Option<Head>,
    status: Option<SessionStatus>,
}

impl Logic for StatusLogic {
    type Output = SessionStatus;

    fn want(&mut self) -> Result<Step<SessionStatus>> {
        Ok(match (self.status.take(), &self.head) {
            (Some(status), _) => Step::Done(status),
            (None, None) => Step::Do(Request::Head),
            (None, Some(_)) => Step::Do(Request::Snapshot { age: 0 }),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (response, &self.head) {
            (Response::Head(head), None) => self.head = Some(head),
            (Response::Snapshot(kept), Some(head)) => {
                let bytes = match kept {
                    Some(Kept::Bytes(bytes)) => bytes,
                    _ => Vec::new(),
                };
                let left = snapshot::header(&bytes).ok().filter(|found| is_left_of(found, head));
                let left = left.map_or(0, |header| header.mark.sequence);
                let last_sequence = head.reached.max(left);
                let snapshot = snapshot::info(&bytes);
                self.status = Some(SessionStatus { last_sequence, snapshot });
            }
            (response, _) => return Err(Failure::Final(unexpected(&response))),
        }
        Ok(())
    }
}
