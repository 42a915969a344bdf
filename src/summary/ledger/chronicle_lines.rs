//! What a chronicle says, newest first.

use std::ops::Range;

use super::{Chronicle, Section, SectionLine, excerpt::excerpts, replies::telling};
use crate::{id::FrameSeq, steps::OwnWords, text::flat, tokens::TokenCounter};

impl Chronicle {
    /// What the user said, in order.
    pub(crate) fn words(&self) -> &[(FrameSeq, String)] {
        &self.words
    }

    /// What happened, section by section, newest first. `between` are the user's words to list:
    /// `None` for all, in a block. With `Some`, the agent's last words stand in the ledger and are
    /// left out here. `room` is the size of the whole in tokens.
    pub(crate) fn candidates(
        &self,
        between: Option<Range<usize>>,
        room: usize,
        counter: &dyn TokenCounter,
    ) -> Vec<SectionLine> {
        let mut lines = Vec::new();
        let (all, is_block) = (0..self.words.len(), between.is_none());
        let words = self.words.get(between.unwrap_or(all)).unwrap_or_default().iter().rev();
        lines.extend(words.map(|(frame, said)| quoted(*frame, said, room, counter)));
        let open = self.replies.open().filter(|_| is_block);
        let answers = open.iter().chain(self.replies.newest_first());
        lines.extend(answers.map(|(frame, said)| {
            let mut line = SectionLine::new(Section::Answers, *frame, said);
            line.shorter = ANSWERED.map(|most| telling(said, most)).to_vec();
            line.shorter.retain(|text| text.len() < said.len());
            line.spare = usize::from(!line.shorter.is_empty());
            line
        }));
        let decisions = self.decisions.newest_first();
        lines.extend(decisions.map(|of| SectionLine::new(Section::Decisions, of.frame, &*of.text)));
        lines.extend(self.acts());
        lines
    }
}

/// The bytes of an answer where there is less room.
const ANSWERED: [usize; 3] = [240, 120, 60];

/// The tokens of what the user said where there is little room, at least.
const LEAST_WORDS: usize = 16;

/// What parts the paragraphs of a message in one line.
const PARAGRAPH: &str = " ⏎ ";

/// What [`quoted`] made of a message, with its paragraphs.
pub(crate) fn with_paragraphs(quote: &str) -> String {
    quote.replace(PARAGRAPH, "\n\n")
}

/// What the user said: whole, or its head, its rules and its end, the longest form first.
pub(crate) fn quoted(
    frame: FrameSeq,
    said: &str,
    room: usize,
    counter: &dyn TokenCounter,
) -> SectionLine {
    // Whose words a paragraph is may be said by another: where they part is shown.
    let is_one = !said.contains("\n\n") || OwnWords::of(said).is_sure();
    let quote = |text: &str| {
        if is_one {
            return format!("\"{}\"", flat(text));
        }
        let paragraphs = text.split("\n\n").map(flat).filter(|text| !text.is_empty());
        format!("\"{}\"", paragraphs.collect::<Vec<_>>().join(PARAGRAPH))
    };
    let mut forms: Vec<String> = Vec::new();
    let shares = [room / 2, room / 4, room / 12, LEAST_WORDS].map(|share| share.max(LEAST_WORDS));
    for text in excerpts(said, shares, counter).map(|text| quote(&text)) {
        if forms.last().is_none_or(|longer| text.len() < longer.len()) {
            forms.push(text);
        }
    }
    let mut forms = forms.into_iter();
    let mut line = SectionLine::new(Section::Words, frame, forms.next().unwrap_or_default());
    line.shorter = forms.collect();
    line.whole = line.shorter.len();
    line
}
