use super::{Section, SectionLine, item::quoted_item};
use crate::{
    id::FrameSeq,
    steps::{Passage, holds_rule},
    text::flat,
};

/// What a context says besides the ledger, which need not say it again.
#[derive(Debug, Default)]
pub(crate) struct ContextTexts<'c> {
    /// The user's words that stand in the context themselves, as they stand there.
    words: Vec<(FrameSeq, String)>,
    /// What the blocks say.
    blocks: Vec<&'c str>,
}

impl<'c> ContextTexts<'c> {
    /// These words of the user stand in the context besides these blocks. O(n) in their texts.
    pub(crate) fn new(words: &[Passage], blocks: Vec<&'c str>) -> Self {
        let word = |of: &Passage| (of.from, flat(of.snapshot.text()));
        Self { words: words.iter().map(word).collect(), blocks }
    }

    /// Whether the context says a line elsewhere, or something that is later than it.
    pub(super) fn says(&self, line: &SectionLine) -> bool {
        let stands = |said: &str| {
            let of_frame = self.words.iter().filter(|(frame, _)| Some(*frame) == line.frame);
            of_frame.into_iter().any(|(_, text)| holds_rule(text, said))
        };
        match line.section {
            // The middle of long words is left out, and may hold the rule or the step.
            Section::Rules => stands(line.shorter.first().unwrap_or(&line.text).trim_matches('"')),
            Section::Plan => match line.shorter.get(1) {
                Some(step) => stands(step),
                None => self.words.iter().any(|(frame, _)| Some(*frame) == line.frame),
            },
            // The user said something since.
            Section::Speech => self.words.iter().any(|(frame, _)| Some(*frame) > line.frame),
            Section::Decisions => {
                let said = quoted_item(&line.text);
                self.blocks.iter().any(|block| block.contains(&*said))
            }
            _ => false,
        }
    }
}
