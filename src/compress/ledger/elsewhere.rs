use std::collections::HashSet;

use super::{Section, SectionLine};
use crate::id::FrameSeq;

/// What a context says besides the ledger, which need not say it again.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere<'c> {
    /// The frames whose words stand in the context themselves.
    pub(crate) frames: HashSet<FrameSeq>,
    /// What the blocks say.
    pub(crate) blocks: Vec<&'c str>,
}

impl Elsewhere<'_> {
    /// Whether the context says a line elsewhere, or something that is later than it.
    pub(super) fn says(&self, line: &SectionLine) -> bool {
        let is_shown = line.frame.is_some_and(|frame| self.frames.contains(&frame));
        match line.section {
            Section::Rules | Section::Plan => is_shown,
            // The user said something since.
            Section::Speech => self.frames.iter().any(|frame| Some(*frame) > line.frame),
            Section::Decisions => self.blocks.iter().any(|block| block.contains(&line.text)),
            _ => false,
        }
    }
}
