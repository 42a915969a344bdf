use super::Lack;
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
    /// Takes the next frame. What shows nothing changes nothing.
    pub(crate) fn push(&mut self, frame: &Frame, shows: bool) -> Answer {
        if !shows {
            return Answer::None;
        }
        let before = self.last_shown.replace(frame.sequence);
        if frame.source != Source::Agent {
            self.is_answering = false;
            return Answer::None;
        }
        let usage = Report::of(frame).usage;
        if self.goes_on(usage) {
            self.usage = self.usage.or(usage);
            return Answer::GoesOn;
        }
        let Some(last) = before else { return Answer::None };
        (self.is_answering, self.usage) = (true, usage);
        Answer::Begins(last)
    }

    /// Whether the next frame begins an answer, if it shows something.
    pub(crate) fn would_begin(&self, frame: &Frame) -> bool {
        let is_agents = frame.source == Source::Agent && self.last_shown.is_some();
        is_agents && !self.goes_on(Report::of(frame).usage)
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

/// What a request lacks that is worked out from a transcript.
pub(crate) fn lacks(has_system: bool) -> Vec<Lack> {
    let all = [Lack::Tools, Lack::SystemPrompt, Lack::Parameters];
    all.into_iter().filter(|lack| !has_system || *lack != Lack::SystemPrompt).collect()
}

/// What a source says of an answer besides its content.
pub(super) struct Report {
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) failure: Option<String>,
}

impl Report {
    pub(super) fn of(frame: &Frame) -> Self {
        let get = |key: &str| frame.imported.as_ref()?.get(key);
        let text = |key: &str| get(key)?.as_str().map(str::to_owned);
        Self {
            model: text("model"),
            usage: get("usage").and_then(Usage::of),
            failure: text("stopReason")
                .filter(|reason| matches!(reason.as_str(), "error" | "aborted")),
        }
    }
}
