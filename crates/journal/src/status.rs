use super::{
    SkipReason, SkippedSnapshot, SnapshotInfo,
    load::{fits, is_left_of},
    machine::Logic,
    request::{
        Failure, Head, LogPosition, Page, Position, Proof, Request, Response, Step, StoredSnapshot,
        unexpected,
    },
    snapshot,
};
use crate::Result;

/// What a journal holds of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionStatus {
    /// The sequence of the newest event, also where it has expired; 0 where there never was one.
    pub last_sequence: u64,
    /// The newest snapshot, if there is one that says what it is.
    pub snapshot: Option<SnapshotInfo>,
    /// What is wrong with the newest snapshot, so that a load passes it over. Whether its state is of
    /// a form that a program reads is for that program to say.
    pub skipped_snapshot: Option<SkippedSnapshot>,
}

/// Looks at a session, and at its newest snapshot as far as that can be judged without knowing what
/// its state is.
#[derive(Default)]
pub(super) struct StatusLogic {
    head: Option<Head>,
    status: Option<SessionStatus>,
    /// The event of the snapshot, which the log has still to show.
    unproven: Option<LogPosition>,
}

impl StatusLogic {
    fn got_snapshot(&mut self, kept: Option<StoredSnapshot>) {
        let Some(head) = &self.head else { return };
        let mut status = SessionStatus { last_sequence: head.reached, ..SessionStatus::default() };
        let reason = match kept {
            None => None,
            Some(StoredSnapshot::Unreadable(error)) => {
                Some(SkipReason::Unreadable(error.to_string()))
            }
            Some(StoredSnapshot::Bytes(bytes)) => match snapshot::look(&bytes) {
                Err(reason) => Some(reason),
                Ok((header, info, state)) => {
                    if is_left_of(&header, head) {
                        status.last_sequence = status.last_sequence.max(header.mark.sequence);
                    }
                    status.snapshot = Some(info);
                    let reason = fits(&header, head).and(state).err();
                    let last = head.last.as_ref().map_or(0, |last| last.sequence);
                    if reason.is_none() && header.mark.sequence < last {
                        self.unproven = Some(LogPosition { life: header.life, mark: header.mark });
                    }
                    reason
                }
            },
        };
        self.status = Some(status);
        self.pass_over(reason);
    }

    fn pass_over(&mut self, reason: Option<SkipReason>) {
        let Some(status) = &mut self.status else { return };
        let after_sequence = status.snapshot.as_ref().map(|snapshot| snapshot.after_sequence);
        status.skipped_snapshot = reason.map(|reason| SkippedSnapshot { after_sequence, reason });
    }

    fn got_event(&mut self, page: &Page) {
        let (Some(at), Some(head)) = (self.unproven.take(), &self.head) else { return };
        let Some(found) = page.events.first() else { return };
        let reason = match at.prove(found, head.floor) {
            Proof::Itself | Proof::Next => None,
            Proof::Another => Some(SkipReason::AnotherEvent),
            // Purged, as only a load finds out.
            Proof::Unconnected if found.event.sequence == at.mark.sequence + 1 => None,
            Proof::Unconnected => Some(SkipReason::Unconnected),
        };
        self.pass_over(reason);
    }

    fn unproven(&self) -> Option<Position> {
        self.unproven.as_ref().map(|at| at.mark.position)
    }
}

impl Logic for StatusLogic {
    type Output = SessionStatus;

    fn want(&mut self) -> Result<Step<SessionStatus>> {
        if self.head.is_none() {
            return Ok(Step::Do(Request::Head));
        }
        Ok(match (self.unproven(), &mut self.status) {
            (Some(from), _) => Step::Do(Request::Events { from, most: 1 }),
            (None, Some(status)) => Step::Done(std::mem::take(status)),
            (None, None) => Step::Do(Request::Snapshot { age: 0 }),
        })
    }

    fn got(&mut self, response: Response) -> Result<(), Failure> {
        match (response, &self.head) {
            (Response::Head(head), None) => self.head = Some(head),
            (Response::Snapshot(kept), Some(_)) => self.got_snapshot(kept),
            (Response::Events(page), Some(_)) => self.got_event(&page),
            (response, _) => return Err(Failure::Final(unexpected(&response))),
        }
        Ok(())
    }
}
