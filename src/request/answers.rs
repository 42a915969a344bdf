use super::reports::Report;
use crate::{
    id::{FacetType, FrameSeq},
    transcript::Usage,
    veil::{FacetChange, Frame, Source},
};

/// Which frames of a session answer a request: the one place that says where requests begin.
///
/// The agent's frames from one frame of somebody else to the next answer one request. Answers that
/// say what they cost each are answers to requests of their own.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    last_shown: Option<FrameSeq>,
    /// Whether an answer goes on, and its usage, where it has said it.
    is_answering: bool,
    usage: Option<Usage>,
    /// The index of the exchange that it answers.
    pub(super) exchange: Option<usize>,
}

/// What a frame is to the requests of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// None of the agent's, or nothing was said before it.
    None,
    /// It begins the answer to a request whose last frame is this.
    Begins(FrameSeq),
    /// It goes on with the answer before it.
    GoesOn,
}

impl Answers {
    /// Takes the next frame, and what it says of its answer. What shows nothing changes nothing. A
    /// frame of an answer that `is_known` goes on with it, wherever it stands.
    pub(super) fn push(
        &mut self,
        frame: &Frame,
        report: &Report,
        shows: bool,
        is_known: bool,
    ) -> Answer {
        if !shows {
            return Answer::None;
        }
        let before = self.last_shown.replace(frame.sequence);
        if frame.source != Source::Agent {
            self.is_answering = false;
            return Answer::None;
        }
        if is_known {
            return Answer::GoesOn;
        }
        let usage = report.usage;
        if self.goes_on(usage) {
            self.usage = self.usage.or(usage);
            return Answer::GoesOn;
        }
        let Some(last) = before else { return Answer::None };
        (self.is_answering, self.usage) = (true, usage);
        Answer::Begins(last)
    }

    /// Whether a frame of the agent with this usage begins an answer, if it shows something.
    pub(super) fn would_begin(&self, usage: Option<Usage>) -> bool {
        self.last_shown.is_some() && !self.goes_on(usage)
    }

    /// Whether what the agent says with this usage belongs to the answer before it.
    fn goes_on(&self, usage: Option<Usage>) -> bool {
        let is_same = self.usage.is_none() || usage.is_none() || self.usage == usage;
        self.is_answering && is_same
    }
}

/// Whether a frame holds a system prompt.
pub(crate) fn adds_system(frame: &Frame) -> bool {
    frame.ops.iter().any(|op| match &op.change {
        FacetChange::Add(facet) => facet.facet_type == FacetType::SYSTEM,
        _ => false,
    })
}
