//! The images, sounds and documents of a session.

use std::{collections::BTreeMap, fmt};

use crate::{hud::RenderedContext, id::FrameSeq, veil::Frame};

/// How many tokens those of a frame cost.
type MediaTokens = Box<dyn Fn(&Frame) -> u64 + Send>;

/// What images, sounds and documents cost.
#[derive(Default)]
pub(super) struct Media {
    of: Option<MediaTokens>,
    /// The frames that have some, with their tokens.
    frames: BTreeMap<FrameSeq, u64>,
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media").field("frames", &self.frames).finish_non_exhaustive()
    }
}

impl Media {
    pub(super) fn new(of: impl Fn(&Frame) -> u64 + Send + 'static) -> Self {
        Self { of: Some(Box::new(of)), frames: BTreeMap::new() }
    }

    pub(super) fn push(&mut self, frame: &Frame) {
        let tokens = self.of.as_ref().map_or(0, |of| of(frame));
        if tokens > 0 {
            self.frames.insert(frame.sequence, tokens);
        }
    }

    /// The tokens in the frames that are wanted.
    pub(super) fn tokens(&self, is_wanted: impl Fn(FrameSeq) -> bool) -> u64 {
        let wanted = self.frames.iter().filter(|(frame, _)| is_wanted(**frame));
        wanted.fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens))
    }

    /// The tokens of those that a context holds.
    pub(super) fn held_by(&self, context: &RenderedContext) -> u64 {
        self.tokens(|frame| context.message_of(frame).is_some())
    }
}
