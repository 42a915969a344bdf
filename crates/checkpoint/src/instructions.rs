//! What the section Merge Instructions says: exact steps, sentences, or the whole checkpoint.

use super::{
    blocks::{Block, BlockKind},
    declared::{is_comment, is_nothing},
    delta::{CheckpointDelta, item_text, mark_width},
    exact::{self, PatchEnds, Step},
    grammar::{Order, order},
};
use crate::{Error, Result};

/// What the section Merge Instructions says.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    /// What the exact instructions are from and to, with its line.
    pub(super) ends: Option<(usize, PatchEnds)>,
    /// The lines of the checkpoint that the delta leads to, where it has all of them.
    pub(super) whole: Option<Vec<String>>,
    pub(super) given: Vec<InstructionAt>,
}

/// An instruction with its place in the delta.
#[derive(Debug)]
pub(super) struct InstructionAt {
    /// The line, from one.
    pub(super) line: usize,
    /// Where the sentence begins in its line, in bytes from zero, and how long it is.
    pub(super) column: usize,
    pub(super) length: usize,
    pub(super) read: Result<Instruction>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    Exact(Step),
    Written(Order),
}

impl Instructions {
    /// Whether they name lines, and so say everything that the delta does.
    pub(super) fn are_exact(&self) -> bool {
        let is_exact = |given: &InstructionAt| matches!(given.read, Ok(Instruction::Exact(_)));
        self.ends.is_some() || self.given.iter().any(is_exact)
    }
}

impl CheckpointDelta {
    /// What the section Merge Instructions says; `None` without one, or where it is empty.
    pub(super) fn instructions(&self) -> Option<Instructions> {
        let (_, section) = self.part("merge instructions")?;
        let document = self.document();
        let mut found = Instructions::default();
        for block in document.blocks_of(section) {
            let text = document.text_of(block);
            match block.kind {
                BlockKind::ListItem { .. } => found.given.push(given(&text, block.line())),
                BlockKind::Paragraph if PatchEnds::read(text.trim()).is_some() => {
                    found.ends = PatchEnds::read(text.trim()).map(|ends| (block.line(), ends));
                }
                BlockKind::Paragraph if PatchEnds::begins(text.trim()) => {
                    let expected = "``N lines `HASH` become M `HASH`.``";
                    found.given.push(misread(&text, block.line(), expected));
                }
                BlockKind::Paragraph if is_nothing(&text) => {}
                BlockKind::Html if is_comment(&text) => {}
                BlockKind::Rule => {}
                BlockKind::Code if found.whole.is_none() && found.ends.is_some() => {
                    found.whole = self.fenced(block);
                    if found.whole.is_none() {
                        let expected = "a checkpoint between two fences";
                        found.given.push(misread(&text, block.line(), expected));
                    }
                }
                _ => {
                    let expected = "an item of the list of instructions";
                    found.given.push(misread(&text, block.line(), expected));
                }
            }
        }
        let is_empty = found.ends.is_none() && found.given.is_empty();
        (!is_empty).then_some(found)
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

/// What is no instruction: without it a part of the others could be carried out.
fn misread(text: &str, line: usize, expected: &str) -> InstructionAt {
    let first = text.trim_end().split('\n').next().unwrap_or_default();
    let column = first.len() - first.trim_start().len();
    let read = Err(Error::unmet(line, expected, format_args!("{:?}", first.trim())));
    InstructionAt { line, column, length: first.len() - column, read }
}

fn given(item: &str, line: usize) -> InstructionAt {
    let lines: Vec<&str> = item.split('\n').collect();
    let first = lines.first().copied().unwrap_or_default();
    let start = first.len() - first.trim_start().len();
    let mark = start + mark_width(first.trim_start());
    let read = match exact::read(&lines, mark, line) {
        Ok(Some(step)) => Ok(Instruction::Exact(step)),
        Ok(None) => order(&item_text(item), line).map(Instruction::Written),
        Err(error) => Err(error),
    };
    let length = first.len().saturating_sub(mark);
    InstructionAt { line, column: mark, length, read }
}
