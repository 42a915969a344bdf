//! States of items: where they stand in tables and lists, and how they change.

use super::{
    blocks::{Block, BlockKind},
    contents::has_words,
    declared::Claim,
    delta::{Change, mark_width},
    document::Document,
    edit::Edit,
    names::{is_status, normal},
    perform::{Performing, has_cell, key_of},
    presence::Presence,
};
use crate::Result;

impl Performing<'_> {
    /// Carries out what the delta's own rows say of a section, or all status transitions where
    /// the words ask for states.
    pub(super) fn update(&self, document: &Document, what: &str) -> Result<Document> {
        let declared = self.declared;
        if document.named(what).next().is_some() {
            let made = self.update_section(document, what);
            // A section may be called after the states that stand elsewhere.
            let title = self.section(document, what).map(|section| normal(&section.title));
            let is_about = |change: &Change| {
                let first = change.item.split(" / ").next().unwrap_or_default();
                title.as_ref().is_ok_and(|title| normal(first) == *title)
            };
            // What a row says of the section is never passed over.
            let has_rows = declared.modified.iter().any(is_about);
            if made.is_ok() || has_rows || self.expect_states(document, what).is_err() {
                return made;
            }
        }
        self.expect_states(document, what)?;
        if declared.transitions.is_empty() {
            return Err(self.refused("the delta has no Status Transitions to update with"));
        }
        let mut document = document.clone();
        for (index, change) in declared.transitions.iter().enumerate() {
            declared.take(Claim::Transition(index));
            let at = Performing { declared, line: change.line };
            let edit = at.transition(&document, change, None)?;
            document = document.edited(vec![edit])?;
        }
        Ok(document)
    }

    /// The rows of Modified about a section, and the states of what stands in it.
    fn update_section(&self, document: &Document, what: &str) -> Result<Document> {
        let declared = self.declared;
        let title = self.section(document, what)?.title.clone();
        let mut document = document.clone();
        let mut is_any = false;
        for (index, change) in declared.modified.iter().enumerate() {
            let first = change.item.split(" / ").next().unwrap_or_default();
            if normal(first) == normal(&title) {
                declared.take(Claim::Modified(index));
                document = Performing { declared, line: change.line }.modify(&document, change)?;
                is_any = true;
            }
        }
        for (index, change) in declared.transitions.iter().enumerate() {
            let section = self.section(&document, what)?;
            let place = section.lines.start..section.end;
            let mut inside =
                document.blocks().iter().filter(|block| place.contains(&block.lines.start));
            if inside.any(|block| state_at(&document, block, &change.item).is_some()) {
                declared.take(Claim::Transition(index));
                let at = Performing { declared, line: change.line };
                let edit = at.transition(&document, change, Some(&place))?;
                document = document.edited(vec![edit])?;
                is_any = true;
            }
        }
        if is_any {
            return Ok(document);
        }
        let expected = format!(
            "`Replace {title} with CONTENT`, or a row of Modified or Status Transitions about {title}"
        );
        Err(self.unmet(expected, "none"))
    }

    /// Refuses words that do not ask for states: `status`, `states` or `status transitions`, behind
    /// words that all items have in common, or the titles around them.
    fn expect_states(&self, document: &Document, what: &str) -> Result<()> {
        let ends = ["status transitions", "transitions", "status", "statuses", "states", "state"];
        let of = ends.iter().find_map(|end| what.strip_suffix(end));
        let refused = || {
            let expected = "`Update status table`, or the name of a section";
            self.unmet(expected, format_args!("{what:?}"))
        };
        let qualifier = of.ok_or_else(refused)?.trim();
        let is_of_item = |change: &super::delta::Change| has_words(&change.item, qualifier);
        let is_of_title = |block: &Block| match &block.kind {
            BlockKind::TableHead { cells } => cells.iter().any(|cell| has_words(cell, qualifier)),
            BlockKind::Heading { title, .. } => has_words(title, qualifier),
            _ => false,
        };
        let is_known = self.declared.transitions.iter().all(is_of_item)
            || document.blocks().iter().any(is_of_title);
        if is_known { Ok(()) } else { Err(refused()) }
    }

    /// Sets the state of the one item of that name.
    pub(super) fn set_item_state(
        &self,
        document: &Document,
        item: &str,
        section: Option<&str>,
        state: &str,
    ) -> Result<Edit> {
        let place = section.map(|name| self.section(document, name)).transpose()?;
        let place = place.map(|section| section.lines.start..section.end);
        let inside =
            |block: &&Block| place.as_ref().is_none_or(|place| place.contains(&block.lines.start));
        let blocks = document.blocks().iter().filter(inside);
        let found: Vec<_> =
            blocks.filter_map(|block| Some((block, state_at(document, block, item)?))).collect();
        match found.as_slice() {
            [(block, found)] => {
                self.expect_state(document, block, item, found)?;
                found
                    .edit(document, block, state)
                    .ok_or_else(|| self.refused(format!("{item:?} cannot be changed")))
            }
            [] => Err(self.refused(format!("no table or list has the state of {item:?}"))),
            [(first, _), (second, _), ..] => Err(self.twice(item, first, second)),
        }
    }

    /// Refuses what stands behind a colon, unless Status Transitions calls it the state: it may be
    /// all that an item says.
    fn expect_state(
        &self,
        document: &Document,
        block: &Block,
        item: &str,
        found: &State,
    ) -> Result<()> {
        let State::Tail(at, text) = found else { return Ok(()) };
        let line = document.lines.get(block.lines.start);
        let is_behind_arrow = line.get(..*at).is_some_and(|head| head.trim_end().ends_with('→'));
        let is_before = |change: &Change| {
            state_at(document, block, &change.item).is_some()
                && normal(&change.before) == normal(text)
        };
        if is_behind_arrow || self.declared.transitions.iter().any(is_before) {
            return Ok(());
        }
        let expected = format!(
            "the state of {item:?} behind `→` or under Status, or a row of Status Transitions with it"
        );
        let found = format!("{text:?} at line {} of the checkpoint", block.line());
        Err(self.unmet(expected, found))
    }

    fn twice(&self, item: &str, first: &Block, second: &Block) -> crate::Error {
        self.refused(format!(
            "{item:?} is there more than once: at line {} and at line {}",
            first.line(),
            second.line()
        ))
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
            ([], Some((line, state))) => {
                let expected = format!("{:?} to be {:?}", change.item, change.before);
                Err(self
                    .unmet(expected, format_args!("{state:?} at line {line} of the checkpoint")))
            }
            ([], None) => Err(self.refused(format!("no table or list has {:?}", change.item))),
            ([(first, _), (second, _), ..], _) => Err(self.twice(&change.item, first, second)),
        }
    }
}

/// Where a document says that an item is in the state before, and in the one after.
pub(super) fn presence(document: &Document, change: &Change) -> Presence {
    let mut found = Presence::default();
    for block in document.blocks() {
        let Some(state) = state_at(document, block, &change.item) else { continue };
        let is = |wanted: &str| normal(state.text()) == normal(wanted);
        found.before.extend(is(&change.before).then_some(block.lines.start));
        found.after.extend(is(&change.after).then_some(block.lines.start));
    }
    found
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
            if !has_cell(document, block, &wanted) {
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
