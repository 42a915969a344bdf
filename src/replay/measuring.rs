use std::sync::Arc;

use super::survival::Survival;
use crate::{
    compress::Passage,
    hud::RenderedContext,
    id::Role,
    snapshot::FrameSnapshot,
    veil::{Frame, Source},
};

/// One request of so many is looked at.
const STEP: u64 = 8;

/// What a session said, and when requests are looked at for it.
#[derive(Debug, Default)]
pub(super) struct Measuring {
    /// What was said but by the operator, and what of it the user said.
    messages: Vec<Passage>,
    spoken: Vec<Passage>,
    requests: u64,
}

impl Measuring {
    pub(super) fn push(&mut self, frame: &Frame, said: &Arc<FrameSnapshot>, role: Role) {
        if role == Role::System {
            return;
        }
        let at = frame.sequence;
        let source = Some(frame.source.clone());
        let passage = Passage { source, ..Passage::new(at, at, role, Arc::clone(said)) };
        if frame.source == Source::User {
            self.spoken.push(passage.clone());
        }
        self.messages.push(passage);
    }

    /// What a request still says, where it is one that is looked at.
    pub(super) fn look(&mut self, context: &RenderedContext) -> Survival {
        self.requests += 1;
        if self.requests % STEP != 1 {
            return Survival::default();
        }
        let mut text = String::new();
        for message in context.messages() {
            text.push_str(&message.content());
            text.push('\n');
        }
        Survival::of(&self.messages, &self.spoken, &text)
    }
}
