//! States of items: where they stand in tables and lists, and how they change.

use super::{
    blocks::{Block, BlockKind},
    delta::{Change, mark_width},
    document::Document,
    edit::Edit,
    lookup::{has_cell, key_of, twice},
    names::{is_status, normal},
};
use crate::{Error, Result};

/// The edit of a row of Status Transitions: the one item of that name, which must be in the state
/// before.
pub(super) fn transition(document: &Document, change: &Change) -> Result<Edit> {
    let Change { item, before, after, line } = change;
    let all = document.blocks().iter();
    let (found, others): (Vec<_>, Vec<_>) = all
        .filter_map(|block| Some((block, state_at(document, block, item)?)))
        .partition(|(_, state)| normal(&state.text) == normal(before));
    let edit = match (found.as_slice(), others.first()) {
        ([(block, state)], _) => state.edit(document, block, after),
        ([(first, _), (second, _), ..], _) => {
            return Err(Error::refused(*line, twice(item, first, second)));
        }
        ([], Some((block, state))) => {
            let expected = format!("{item:?} to be {before:?}");
            let found = format!("{:?} at line {} of the checkpoint", state.text, block.line());
            return Err(Error::unmet(*line, expected, found));
        }
        ([], None) => None,
    };
    edit.ok_or_else(|| Error::refused(*line, format!("no table or list has the state of {item:?}")))
}

/// The state of an item.
pub(super) struct State {
    text: String,
    /// The column of a row, or where it begins in the line of an item of a list.
    at: usize,
}

impl State {
    fn edit(&self, document: &Document, block: &Block, after: &str) -> Option<Edit> {
        if block.kind.row().is_some() {
            return document.set_cell(block, self.at, after);
        }
        let index = block.lines.start;
        let line = document.lines.get(index);
        let (before, rest) = (line.get(..self.at)?, line.get(self.at + self.text.len()..)?);
        Some(Edit::replace(index..index + 1, vec![format!("{before}{after}{rest}")]))
    }
}

/// The state that a block gives the item of this name: under Status in a row, at the end of an
/// item of a list.
pub(super) fn state_at(document: &Document, block: &Block, item: &str) -> Option<State> {
    let wanted = normal(item);
    match &block.kind {
        BlockKind::TableRow { cells, .. } if has_cell(document, block, &wanted) => {
            let at = document.titles_over(block).iter().position(|title| is_status(title))?;
            Some(State { text: cells.get(at)?.clone(), at })
        }
        BlockKind::ListItem { .. } => {
            let line = document.lines.get(block.lines.start);
            let start = line.len() - line.trim_start().len() + mark_width(line.trim_start());
            let end = ["→", ": "].iter().find_map(|mark| {
                let at = line.rfind(mark)?;
                let name = line.get(start..at)?;
                let is_wanted = normal(name) == wanted || normal(key_of(name)) == wanted;
                is_wanted.then_some(at + mark.len())
            })?;
            let tail = line.get(end..)?;
            let at = end + tail.len() - tail.trim_start().len();
            Some(State { text: tail.trim().to_owned(), at })
        }
        _ => None,
    }
}
