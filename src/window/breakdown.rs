use std::fmt;

use super::ContextWindow;
use crate::{
    Error, ErrorKind, Result,
    hud::{Message, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis, Role},
    veil::History,
};

/// Who takes the room of a request whose context does not fit, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// What a request may have.
    pub room: u64,
    /// What the request adds to its messages ([`Budget::tools`](super::Budget::tools)): definitions
    /// of tools, schemas of structured output.
    pub tools: u64,
    /// The operator's words: the system prompt of the request, and those in the history.
    pub system_prompt: u64,
    /// Pinned facets in the history.
    pub pinned: u64,
    /// Blocks that stand for frames.
    pub blocks: u64,
    /// The newest frames, which are never left out.
    pub recent: u64,
    /// All other frames.
    pub others: u64,
    /// Ambient facets, pending activations, the prefill.
    pub tail: u64,
    /// What the provider adds.
    pub framing: u64,
    /// The largest messages of frames, the largest first; five at most.
    pub largest: Vec<(FrameSeq, u64)>,
}

impl Breakdown {
    /// The tokens of all of it.
    pub fn total(&self) -> u64 {
        let Self { tools, system_prompt, pinned, blocks, recent, others, tail, framing, .. } = self;
        let parts = [tools, system_prompt, pinned, blocks, recent, others, tail, framing];
        parts.into_iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    pub(super) fn error(&self) -> Error {
        Error::new(ErrorKind::OverBudget, self.to_string())
    }
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected a context of at most {} tokens, found {} that must stay (",
            self.room,
            self.total(),
        )?;
        if self.tools > 0 {
            write!(f, "tools {}, ", self.tools)?;
        }
        write!(
            f,
            "system prompt {}, pinned {}, blocks {}, newest frames {}, other frames {}, tail {}, \
             framing {}",
            self.system_prompt,
            self.pinned,
            self.blocks,
            self.recent,
            self.others,
            self.tail,
            self.framing
        )?;
        if let Some((frame, tokens)) = self.largest.first() {
            write!(f, "; the largest is frame {frame} with {tokens}")?;
        }
        f.write_str(")")
    }
}

impl ContextWindow {
    /// The breakdown of the last context that did not fit; `None` if the last one fits.
    pub fn last_breakdown(&self) -> Option<&Breakdown> {
        self.refused.as_ref()
    }

    /// Who takes the room of the context as it stands, before anything is done to make it fit.
    /// Costs the sealing of new frames, and a rendering of the context.
    ///
    /// # Errors
    /// Those of [`ContextWindow::next_job`].
    pub fn breakdown(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<Breakdown> {
        self.seal(history, now)?;
        let context = self.context(history, request, now)?;
        Ok(self.breakdown_of(request, &context))
    }

    pub(super) fn breakdown_of(
        &self,
        request: &RenderRequest,
        context: &RenderedContext,
    ) -> Breakdown {
        let steps = self.transform.steps();
        let newest = self.transform.units().last().map(|unit| unit.from);
        let stays = |frame: FrameSeq| {
            let at = steps.partition_point(|step| step.sequence < frame);
            steps.get(at).is_some_and(|step| step.sequence == frame && step.stays)
        };
        let mut of = Breakdown {
            room: self.budget.room_of_requests(),
            tools: self.budget.tools,
            framing: context.tokens().framing,
            ..Breakdown::default()
        };
        let mut has_prompt = request.system_prompt.as_ref().is_some_and(|text| !text.is_empty());
        for message in context.messages() {
            let tokens = message.tokens();
            let part = match message.frames() {
                None if std::mem::take(&mut has_prompt) => &mut of.system_prompt,
                None => &mut of.tail,
                Some((from, _)) if self.is_whole_block(message, from) => &mut of.blocks,
                Some((from, _)) if stays(from) && message.role() == Role::System => {
                    &mut of.system_prompt
                }
                Some((from, _)) if stays(from) => &mut of.pinned,
                Some((from, _)) => {
                    of.largest.push((from, tokens));
                    if newest.is_some_and(|newest| from >= newest) {
                        &mut of.recent
                    } else {
                        &mut of.others
                    }
                }
            };
            *part = part.saturating_add(tokens);
        }
        of.largest.sort_by_key(|(frame, tokens)| (u64::MAX - tokens, *frame));
        of.largest.truncate(5);
        of
    }

    /// Whether a block that was not dropped stands there, and no frame that was shortened.
    fn is_whole_block(&self, message: &Message, from: FrameSeq) -> bool {
        message.is_block() && !self.changes.contains_key(&from)
    }
}
