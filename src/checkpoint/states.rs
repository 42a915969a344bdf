//! States of items: where they stand in tables and lists, and how they change.

use super::{
    blocks::{Block, BlockKind},
    delta::{Change, mark_width},
    document::Document,
    edit::Edit,
    names::{is_status, normal},
    perform::{Performing, key_of},
};
use crate::Result;

impl Performing<'_> {
    /// Carries out the status transitions in the section of that name, or wherever their items are.
    pub(super) fn update_states(&self, document: &Document, what: &str) -> Result<Document> {
        let transitions = self.delta.transitions();
        if transitions.is_empty() {
            return Err(self.refused("the delta has no Status Transitions to update with"));
        }
        let place = document.named(what).next().map(|section| section.lines.start..section.end);
        let mut document = document.clone();
        for change in transitions {
            let at = Performing { delta: self.delta, line: change.line };
            let edit = at.transition(&document, &change, place.as_ref())?;
            // The edit keeps the number of lines, so the place stays.
            document = document.edited(vec![edit])?;
        }
        Ok(document)
    }

    pub(super) fn transition(
        &self,
        document: &Document,
        change: &Change,
        place: Option<&std::ops::Range<usize>>,
    ) -> Result<Edit> {
        let mut found = Vec::new();
        let mut other = None;
        for block in document.blocks() {
            if place.is_some_and(|place| !place.contains(&block.lines.start)) {
                continue;
            }
            match state_at(document, block, &change.item) {
                Some(state) if normal(state.text()) == normal(&change.before) => {
                    found.push((block, state));
                }
                Some(state) => other = Some((block.line(), state.text().to_owned())),
                None => {}
            }
        }
        match (found.as_slice(), other) {
            ([(block, state)], _) => state
                .edit(document, block, &change.after)
                .ok_or_else(|| self.refused(format!("{:?} cannot be changed", change.item))),
            ([], Some((line, state))) => Err(self.refused(format!(
                "expected {:?} to be {:?}, found {state:?} at line {line} of the checkpoint",
                change.item, change.before
            ))),
            ([], None) => Err(self.refused(format!("no table or list has {:?}", change.item))),
            ([(first, _), (second, _), ..], _) => Err(self.refused(format!(
                "{:?} is there more than once: at line {} and at line {}",
                change.item,
                first.line(),
                second.line()
            ))),
        }
    }
}

/// The state of an item: where it stands in a row, or at the end of an item of a list.
enum State {
    Cell(usize, String),
    Tail(usize, String),
}

impl State {
    fn text(&self) -> &str {
        match self {
            Self::Cell(_, text) | Self::Tail(_, text) => text,
        }
    }

    fn edit(&self, document: &Document, block: &Block, after: &str) -> Option<Edit> {
        match self {
            Self::Cell(column, _) => document.set_cell(block, *column, after),
            Self::Tail(at, text) => {
                let index = block.lines.start;
                let line = document.lines.get(index);
                let line = format!("{}{after}{}", line.get(..*at)?, line.get(at + text.len()..)?);
                Some(Edit::replace(index..index + 1, vec![line]))
            }
        }
    }
}

/// The state that a block gives the item of this name.
fn state_at(document: &Document, block: &Block, item: &str) -> Option<State> {
    let wanted = normal(item);
    match &block.kind {
        BlockKind::TableRow { cells, head } => {
            if !cells.iter().any(|cell| normal(cell) == wanted) {
                return None;
            }
            let BlockKind::TableHead { cells: titles } = &document.blocks().get(*head)?.kind else {
                return None;
            };
            let column = titles.iter().position(|title| is_status(title))?;
            Some(State::Cell(column, cells.get(column)?.clone()))
        }
        BlockKind::ListItem { .. } => {
            let line = document.lines.get(block.lines.start);
            let (_, mark) = ["→", ": "].iter().find_map(|mark| {
                let at = line.rfind(mark)?;
                let start = line.len() - line.trim_start().len();
                let start = start + mark_width(line.trim_start());
                let name = line.get(start..at)?;
                let is_wanted = normal(name) == wanted || normal(key_of(name)) == wanted;
                is_wanted.then_some((name, at + mark.len()))
            })?;
            let tail = line.get(mark..)?;
            let at = mark + tail.len() - tail.trim_start().len();
            Some(State::Tail(at, tail.trim().to_owned()))
        }
        _ => None,
    }
}
