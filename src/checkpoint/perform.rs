//! What instructions by names do to a document: each whole, or not at all.

use std::fmt;

use super::{
    blocks::{Block, BlockKind},
    delta::{CheckpointDelta, item_text},
    document::{Document, Section},
    edit::Edit,
    front_matter::is_name,
    grammar::Order,
    names::{SectionKind, normal},
};
use crate::{Error, ErrorKind, Result};

/// A delta that is carried out on a document, at a line of the delta.
pub(super) struct Performing<'a> {
    pub(super) delta: &'a CheckpointDelta,
    /// The line of the instruction, from one.
    pub(super) line: usize,
}

impl Performing<'_> {
    pub(super) fn refused(&self, message: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Instruction, message.to_string()).at_line(self.line as u64)
    }

    pub(super) fn perform(&self, document: &Document, order: &Order) -> Result<Document> {
        let edits = match order {
            Order::Append { content, section, state } => {
                vec![self.append(document, content, section, state.as_deref())?]
            }
            Order::Replace { section, content } => {
                let section = self.section(document, section)?;
                let lines = self.replacement(document, section, content);
                vec![document.replace_content(section, lines)]
            }
            Order::ReplaceText { old, new, section } => {
                vec![self.replace_text(document, old, new, section.as_deref())?]
            }
            Order::SetCell { row, section, column, value } => {
                vec![self.set_cell(document, section, row, column, value)?]
            }
            Order::SetField { key, .. } if !is_name(key) => {
                return Err(self.refused(format!("{key:?} is no name of a field")));
            }
            Order::SetField { key, value } => {
                let edit = document.set_field(key, value);
                vec![edit.ok_or_else(|| self.refused("the checkpoint has no front matter"))?]
            }
            Order::UpdateStates { what } => return self.update_states(document, what),
            Order::Remove { content, section } => {
                let block = self.wanted(document, &content.text, section.as_deref())?;
                vec![document.remove_lines(block.lines.clone())]
            }
            Order::RemoveSection { name } => {
                let section = self.section(document, name)?;
                vec![document.remove_lines(section.lines.start..section.end)]
            }
            Order::RenameSection { to, .. } | Order::AddSection { name: to, .. }
                if to.trim().is_empty() =>
            {
                return Err(self.refused("expected a name for the section"));
            }
            Order::AddSection { name, after, body } => {
                vec![self.add_section(document, name, after.as_deref(), body)?]
            }
            Order::RenameSection { from, to } => {
                let section = self.section(document, from)?;
                let heading = format!("{} {to}", "#".repeat(section.level.into()));
                vec![Edit::replace(section.lines.start..section.body, vec![heading])]
            }
            Order::MoveTo { content, section } => {
                let place = self.section(document, section)?;
                let block = self.wanted(document, &content.text, None)?;
                let text = document.text_of(block);
                let edit = match block.kind {
                    BlockKind::TableRow { .. } => document
                        .append_rows(place, vec![text])
                        .ok_or_else(|| self.refused(format!("{section:?} has no table")))?,
                    _ => document.append_items(place, &[text]),
                };
                vec![document.remove_lines(block.lines.clone()), edit]
            }
        };
        document.edited(edits)
    }

    /// The one section of that name.
    pub(super) fn section<'d>(&self, document: &'d Document, name: &str) -> Result<&'d Section> {
        let mut found = document.named(name);
        match (found.next(), found.next()) {
            (Some(section), None) => Ok(section),
            (Some(first), Some(second)) => Err(self.refused(format!(
                "the checkpoint has more than one section {:?}: at line {} and at line {}",
                first.title,
                first.line(),
                second.line()
            ))),
            (None, _) => {
                let titles = document.sections().iter().filter(|section| section.level > 0);
                let titles: Vec<&str> = titles.map(|section| section.title.as_str()).collect();
                let has = if titles.is_empty() { "none".to_owned() } else { titles.join(", ") };
                Err(self.refused(format!("the checkpoint has no section {name:?}; it has {has}")))
            }
        }
    }

    fn add_section(
        &self,
        document: &Document,
        name: &str,
        after: Option<&str>,
        body: &str,
    ) -> Result<Edit> {
        if let Some(there) = document.named(name).next() {
            let line = there.line();
            return Err(
                self.refused(format!("the section {name:?} is there already, at line {line}"))
            );
        }
        let known = SectionKind::from_title(name).map(SectionKind::level);
        let (at, level) = match after {
            Some(after) => {
                let before = self.section(document, after)?;
                (before.end, before.level)
            }
            None => (document.line_count(), known.unwrap_or(2)),
        };
        Ok(document.insert_section(at, known.unwrap_or(level), name, body))
    }

    /// The one block that says `text`, in a section or anywhere.
    pub(super) fn wanted<'d>(
        &self,
        document: &'d Document,
        text: &str,
        section: Option<&str>,
    ) -> Result<&'d Block> {
        let place = section.map(|name| self.section(document, name)).transpose()?;
        let blocks = match place {
            Some(section) => document.blocks_of(section),
            None => document.blocks(),
        };
        let wanted = normal(text);
        let says = |block: &&Block| match &block.kind {
            BlockKind::TableRow { cells, .. } => {
                cells.iter().any(|cell| normal(cell) == wanted)
                    || normal(document.text_of(block).trim()) == wanted
            }
            BlockKind::Heading { .. } | BlockKind::TableHead { .. } => false,
            BlockKind::ListItem { .. } => {
                let item = item_text(&document.text_of(block));
                normal(&item) == wanted || normal(key_of(&item)) == wanted
            }
            _ => normal(&document.text_of(block)) == wanted,
        };
        let found: Vec<&Block> = blocks.iter().filter(says).collect();
        match found.as_slice() {
            [block] => Ok(block),
            [] => Err(self.refused(match place {
                Some(section) => format!("{:?} has no entry {text:?}", section.title),
                None => format!("the checkpoint has no entry {text:?}"),
            })),
            [first, second, ..] => Err(self.refused(format!(
                "more than one entry is {text:?}: at line {} and at line {}",
                first.line(),
                second.line()
            ))),
        }
    }

    pub(super) fn replace_text(
        &self,
        document: &Document,
        old: &str,
        new: &str,
        section: Option<&str>,
    ) -> Result<Edit> {
        let place = section.map(|name| self.section(document, name)).transpose()?;
        let body = document.front_matter().map_or(0, |front| front.lines.end);
        let lines = place.map_or(body..document.line_count(), |place| place.body..place.lines.end);
        let found: Vec<usize> =
            lines.filter(|index| document.lines.get(*index).contains(old)).collect();
        match found.as_slice() {
            [index] if document.lines.get(*index).matches(old).count() == 1 && !old.is_empty() => {
                let line = document.lines.get(*index).replacen(old, new, 1);
                Ok(Edit::replace(*index..index + 1, vec![line]))
            }
            [] => Err(self.refused(format!("the text {old:?} is not there"))),
            _ => Err(self.refused(format!("the text {old:?} is there more than once"))),
        }
    }

    fn set_cell(
        &self,
        document: &Document,
        section: &str,
        row: &str,
        column: &str,
        value: &str,
    ) -> Result<Edit> {
        let block = self.wanted(document, row, Some(section))?;
        let index = column_of(document, block, column);
        index.and_then(|index| document.set_cell(block, index, value)).ok_or_else(|| {
            self.refused(format!(
                "the row {row:?} at line {} has no column {column:?}",
                block.line()
            ))
        })
    }
}

pub(super) fn column_of(document: &Document, row: &Block, title: &str) -> Option<usize> {
    let BlockKind::TableRow { head, .. } = row.kind else { return None };
    let BlockKind::TableHead { cells } = &document.blocks().get(head)?.kind else { return None };
    cells.iter().position(|cell| normal(cell) == normal(title))
}

/// What an item is about: what stands before the first colon, arrow or dash.
pub(super) fn key_of(item: &str) -> &str {
    let first = item.split('\n').next().unwrap_or_default();
    let cut = [": ", " → ", " -> ", " — ", " – ", " - "].iter().filter_map(|mark| first.find(mark));
    let key = cut.min().and_then(|at| first.get(..at)).unwrap_or(first);
    // A bold key with its colon inside.
    key.trim().trim_end_matches(':')
}
