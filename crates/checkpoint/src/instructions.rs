//! What the section Merge Instructions says: exact steps, the whole checkpoint, or sentences.

use super::{
    blocks::{Block, BlockKind},
    delta::{CheckpointDelta, item_text, mark_width},
    exact::{self, PatchEnds, Step},
    grammar::{Order, order},
    unread::{is_comment, is_nothing},
};
use crate::Error;

/// What the section Merge Instructions says.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    /// What the exact instructions are from and to, with its line.
    pub(super) ends: Option<(usize, PatchEnds)>,
    /// The lines of the checkpoint that the delta leads to, where it has all of them.
    pub(super) whole: Option<Vec<String>>,
    /// The steps that name lines, each with its line in the delta, from one.
    pub(super) steps: Vec<(usize, Step)>,
    /// The sentences that name sections, likewise.
    pub(super) orders: Vec<(usize, Order)>,
    /// What is no instruction: without it a part of the others could be carried out.
    pub(super) wrong: Vec<Error>,
}

impl Instructions {
    /// Whether they name lines, and so say everything that the delta does.
    pub(super) fn are_exact(&self) -> bool {
        self.ends.is_some() || !self.steps.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_none() && self.first_line().is_none()
    }

    /// The line of the first instruction of any kind.
    pub(super) fn first_line(&self) -> Option<usize> {
        let wrong = self.wrong.iter().filter_map(|error| Some(error.place().line? as usize));
        let steps = self.steps.iter().map(|(line, _)| *line);
        steps.chain(self.orders.iter().map(|(line, _)| *line)).chain(wrong).min()
    }

    /// Takes a block of the section. `text` is what it says.
    fn take(&mut self, delta: &CheckpointDelta, block: &Block, text: &str) {
        let expected = match block.kind {
            BlockKind::ListItem { .. } => return self.item(text, block.line()),
            BlockKind::Paragraph if PatchEnds::begins(text.trim()) => {
                if let Some(ends) = PatchEnds::read(text.trim()) {
                    self.ends = Some((block.line(), ends));
                    return;
                }
                "``N lines `HASH` become M `HASH`.``"
            }
            BlockKind::Paragraph if is_nothing(text) => return,
            BlockKind::Html if is_comment(text) => return,
            BlockKind::Rule => return,
            BlockKind::Code if self.whole.is_none() && self.ends.is_some() => {
                self.whole = delta.fenced(block);
                if self.whole.is_some() {
                    return;
                }
                "a checkpoint between two fences"
            }
            _ => "an item of the list of instructions",
        };
        let first = text.trim().lines().next().unwrap_or_default();
        self.wrong.push(Error::unmet(block.line(), expected, format_args!("{first:?}")));
    }

    fn item(&mut self, item: &str, line: usize) {
        let lines: Vec<&str> = item.split('\n').collect();
        let first = lines.first().copied().unwrap_or_default();
        let start = first.len() - first.trim_start().len();
        let mark = start + mark_width(first.trim_start());
        match exact::read(&lines, mark, line) {
            Ok(Some(step)) => self.steps.push((line, step)),
            Ok(None) => match order(&item_text(item), line) {
                Ok(order) => self.orders.push((line, order)),
                Err(error) => self.wrong.push(error),
            },
            Err(error) => self.wrong.push(error),
        }
    }
}

impl CheckpointDelta {
    /// What the section Merge Instructions says; nothing without one.
    pub(super) fn instructions(&self) -> Instructions {
        let mut found = Instructions::default();
        let section = self.part("merge instructions").map(|(_, section)| section);
        for block in section.map_or(&[][..], |section| self.document().blocks_of(section)) {
            found.take(self, block, &self.document().text_of(block));
        }
        found
    }

    /// The lines between the fences of a code block.
    fn fenced(&self, block: &Block) -> Option<Vec<String>> {
        let lines = &self.document().lines;
        let (first, last) = (block.lines.start, block.lines.end.checked_sub(1)?);
        let open = lines.get(first);
        let sign = if open.starts_with('~') { '~' } else { '`' };
        let fence = open.get(..open.len() - open.trim_start_matches(sign).len())?;
        let is_closed = fence.len() >= 3 && first < last && lines.get(last).trim_end() == fence;
        is_closed.then(|| (first + 1..last).map(|index| lines.get(index).to_owned()).collect())
    }
}
