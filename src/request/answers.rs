use std::sync::Arc;

use super::{Lack, RecordedTools, reports::Report};
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
    /// Whether an answer goes on; its usage and the provider's id of it, where it has said them.
    is_answering: bool,
    usage: Option<Usage>,
    response: Option<String>,
    /// The index of the exchange that it answers.
    pub(super) exchange: Option<usize>,
    /// The first frame with a system prompt.
    pub(crate) system_from: Option<FrameSeq>,
    /// The tools of the requests, where the transcript says them.
    pub(crate) tools: Option<Arc<RecordedTools>>,
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
    /// What requests lack that are worked out, where the parameters are stated or not.
    pub(crate) fn lacks(&self, has_parameters: bool) -> Vec<Lack> {
        Lack::of_transcript(self.system_from.is_some(), self.tools.is_some(), has_parameters)
    }

    /// The tokens of the tools.
    pub(crate) fn tool_tokens(&self) -> u64 {
        self.tools.as_ref().map_or(0, |tools| tools.tokens)
    }

    /// Takes the next frame, and what it says of its answer. What shows nothing changes nothing, unless
    /// it says that a request failed. A frame of an answer that `is_known` goes on with it, wherever it
    /// stands.
    pub(super) fn push(
        &mut self,
        frame: &Frame,
        report: &Report,
        shows: bool,
        is_known: bool,
    ) -> Answer {
        if !shows {
            let Some(last) = self.last_shown.filter(|_| !is_known && report.is_attempt()) else {
                return Answer::None;
            };
            self.is_answering = false;
            return Answer::Begins(last);
        }
        if self.system_from.is_none() && adds_system(frame) {
            self.system_from = Some(frame.sequence);
        }
        let before = self.last_shown.replace(frame.sequence);
        if frame.source != Source::Agent {
            self.is_answering = false;
            return Answer::None;
        }
        if is_known {
            return Answer::GoesOn;
        }
        if self.goes_on(report) {
            self.usage = self.usage.take().or_else(|| report.said.usage.clone());
            self.response = self.response.take().or_else(|| report.response().map(str::to_owned));
            return Answer::GoesOn;
        }
        let Some(last) = before else { return Answer::None };
        self.is_answering = true;
        self.usage.clone_from(&report.said.usage);
        self.response = report.response().map(str::to_owned);
        Answer::Begins(last)
    }

    /// Whether a frame of the agent that says this begins an answer, if it shows something.
    pub(super) fn would_begin(&self, report: &Report) -> bool {
        self.last_shown.is_some() && !self.goes_on(report)
    }

    /// Whether both this and the answer that goes on have an id, and not the same.
    pub(super) fn is_other_response(&self, report: &Report) -> bool {
        self.is_same_response(report) == Some(false)
    }

    /// Whether the ids of both are the same; `None` where one of them has none.
    fn is_same_response(&self, report: &Report) -> Option<bool> {
        let (own, next) = self.response.as_deref().zip(report.response())?;
        Some(own == next)
    }

    /// Whether what the agent says belongs to the answer before it: its response is the same, or,
    /// where one of them has no id, its usage.
    fn goes_on(&self, report: &Report) -> bool {
        let is_same = self.is_same_response(report).unwrap_or_else(|| {
            let next = &report.said.usage;
            self.usage.is_none() || next.is_none() || self.usage == *next
        });
        self.is_answering && is_same
    }
}

/// Whether a frame holds a system prompt. An operator's item of the Responses API is none: its
/// requests have the system prompt apart.
fn adds_system(frame: &Frame) -> bool {
    if let Some(of) = &frame.imported
        && (of.kind.as_deref(), of.role.as_deref()) == (Some("message"), Some("developer"))
    {
        return false;
    }
    frame.ops.iter().any(|op| match &op.change {
        FacetChange::Add(facet) => facet.facet_type == FacetType::SYSTEM,
        _ => false,
    })
}
