//! The end of a request that goes on from the one before it: what stands before it is the same.

use super::{Recording, Request, parts::Frames};
use crate::{Result, id::FrameSeq};

/// Where a turn of the agent begins in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnStart {
    /// The index of its first message.
    pub(crate) index: usize,
    /// The frame of that message.
    pub(crate) frame: Option<FrameSeq>,
}

impl Recording {
    /// A request without the messages before a turn of the one before it, where these are the same,
    /// and how many messages come before the turn nevertheless. Of one that was worked out the system
    /// prompt is missing, which is the same. `None` where the requests differ before the turn, or
    /// nobody knows.
    ///
    /// Cost: O(messages) for their places, and what is written from the turn on.
    pub(crate) fn grown(
        &self,
        number: usize,
        previous: usize,
        turn: TurnStart,
    ) -> Result<Option<(Request, usize)>> {
        let (exchange, context) = self.found(number)?;
        if let Some(context) = context {
            let has_grown = !context.has_tail && self.has_grown(previous, number);
            let Some(from) = turn.frame.filter(|_| has_grown) else { return Ok(None) };
            let request = self.worked_out(exchange, context, Some(from))?;
            // What opens a conversation in the middle is in none of them.
            let begins = request.frames().iter().position(|frame| *frame == Some(from));
            return Ok(begins.map(|begins| (request, begins)));
        }
        let (was, is) = (self.outlined(previous)?, self.outlined(number)?);
        let (before, request) = (was.request(), is.request());
        let kept = is.messages().get(..=turn.index).filter(|places| {
            was.messages().get(..=turn.index) == Some(*places) && before.api() == request.api()
        });
        let Some([first, .., last]) = kept else { return Ok(None) };
        let text = request.text();
        let ends = text.part(0..first.start).zip(text.part(last.start..text.len()));
        let Some((head, rest)) = ends.filter(|_| text.shared_start(before.text()) >= last.end)
        else {
            return Ok(None);
        };
        let (body, provenance) = (format!("{head}{rest}").into(), request.provenance().clone());
        let end = Request::new(request.api(), provenance, body, Frames::default());
        Ok(Some((end, 0)))
    }
}
