use std::{fmt, thread};

use super::{
    SessionName,
    request::{Machine, Request, Response, Step},
};
use crate::{
    Result,
    log::{CutTail, LostEnd, TornFile},
};

/// What a journal stands on: it does as it is asked, and decides nothing.
pub(super) trait Store: fmt::Debug + Send {
    fn perform(&mut self, session: &SessionName, request: Request) -> Response;

    /// The sessions that have events.
    fn sessions(&mut self) -> Result<Vec<SessionName>>;

    /// Accepts that the end of a log is missing that was acknowledged, and says what was missing.
    fn repair(&mut self, session: &SessionName) -> Result<Option<LostEnd>> {
        let _ = session;
        Ok(None)
    }

    /// Lets go what is known of a session: it is looked at anew.
    fn reopen(&mut self, session: &SessionName) {
        let _ = session;
    }

    /// The logs that were seen not to end where they were acknowledged.
    fn lost_ends(&self) -> &[LostEnd] {
        &[]
    }

    /// The one of them that is of a session.
    fn lost_end(&self, session: &SessionName) -> Option<&LostEnd> {
        let _ = session;
        None
    }

    /// What files were seen to end with, and what was passed over.
    fn torn_tails(&self) -> &[TornFile] {
        &[]
    }

    /// What was cut from files that were left torn.
    fn cut_tails(&self) -> &[CutTail] {
        &[]
    }
}

/// Runs an operation to its end.
pub(super) fn drive<M: Machine>(
    store: &mut dyn Store,
    session: &SessionName,
    machine: &mut M,
) -> M::Output {
    loop {
        match machine.step() {
            Step::Done(output) => return output,
            Step::Do(Request::Wait(time)) => {
                thread::sleep(time);
                machine.take(Response::Done);
            }
            Step::Do(request) => machine.take(store.perform(session, request)),
        }
    }
}
