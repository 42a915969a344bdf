//! What instructions by names do to a document: each whole, or not at all.

use std::fmt;

use super::{
    blocks::{Block, BlockKind},
    declared::Declarations,
    delta::{Part, item_text, mark_width},
    document::{Document, Section},
    edit::Edit,
    front_matter::is_name,
    grammar::Order,
    modified::flat,
    names::{SectionKind, is_status, normal},
};
use crate::{Error, Result};

/// What a delta says, which is carried out on a document, at a line of the delta.
pub(super) struct Performing<'a> {
    pub(super) declared: &'a Declarations,
    /// The line of the instruction, from one.
    pub(super) line: usize,
}

impl Performing<'_> {
    pub(super) fn refused(&self, message: impl fmt::Display) -> Error {
        Error::refused(self.line, message.to_string())
    }

    /// Refuses what is not as expected.
    pub(super) fn unmet(&self, expected: impl fmt::Display, found: impl fmt::Display) -> Error {
        Error::unmet(self.line, expected, found)
    }

    /// Refuses what lacks something.
    pub(super) fn missing(&self, expected: impl fmt::Display) -> Error {
        Error::missing(self.line, expected)
    }

    pub(super) fn perform(&self, document: &Document, order: &Order) -> Result<Document> {
        let edits = match order {
            Order::Append { content, section, state } => {
                vec![self.append(document, content, section, state.as_deref())?]
            }
            Order::Replace { section, content } => {
                let section = self.section(document, section)?;
                let lines = self.replacement(document, section, content)?;
                vec![document.replace_content(section, lines)]
            }
            Order::ReplaceText { old, new, section } => {
                let edit = self.replace_text(document, old, new, section.as_deref())?;
                let index = document.section_at(edit.at.start);
                let place = index.and_then(|index| document.sections().get(index));
                let place = place.map_or("", |section| section.title.as_str());
                self.take_said(new, document, place)?;
                vec![edit]
            }
            Order::SetCell { row, section, column, value } => {
                vec![self.set_cell(document, section, row, column, value)?]
            }
            Order::SetState { item, section, state } => {
                vec![self.set_item_state(document, item, section.as_deref(), state)?]
            }
            Order::SetField { key, value, is_literal } => {
                vec![self.set_field(document, key, value, *is_literal)?]
            }
            Order::Update { what } => return self.update(document, what),
            Order::Remove { content, section } => {
                let block = self.wanted(document, &content.text, section.as_deref())?;
                self.expect_said(document, &content.text, block)?;
                vec![document.remove_lines(block.lines.clone())]
            }
            Order::RemoveSection { name } => {
                let section = self.section(document, name)?;
                vec![document.remove_lines(section.lines.start..section.end)]
            }
            Order::RenameSection { to, .. } | Order::AddSection { name: to, .. }
                if to.trim().is_empty() =>
            {
                return Err(self.missing("a name for the section"));
            }
            Order::AddSection { name, after, body } => {
                self.take_said(body, document, name)?;
                vec![self.add_section(document, name, after.as_deref(), body)?]
            }
            Order::RenameSection { from, to } => {
                let section = self.section(document, from)?;
                if let Some(there) = document.named(to).next()
                    && there.lines.start != section.lines.start
                {
                    return Err(self.is_there(to, there));
                }
                let heading = format!("{} {to}", "#".repeat(section.level.into()));
                vec![Edit::replace(section.lines.start..section.body, vec![heading])]
            }
            Order::MoveTo { content, from, section } => {
                let place = self.section(document, section)?;
                let block = self.wanted(document, &content.text, from.as_deref())?;
                let edit = self.append_block(document, place, block)?;
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

    /// Sets a field that is there, that the format names, or whose name is quoted.
    fn set_field(
        &self,
        document: &Document,
        key: &str,
        value: &str,
        is_literal: bool,
    ) -> Result<Edit> {
        let front = document.front_matter();
        let front = front.ok_or_else(|| self.refused("the checkpoint has no front matter"))?;
        if !is_name(key) {
            return Err(self.refused(format!("{key:?} is no name of a field")));
        }
        if !is_literal && front.field(key).is_none() && !FIELDS.contains(&key) {
            let expected = "a field of the front matter, or the name of a new one in backticks";
            return Err(self.unmet(expected, format_args!("{key:?}")));
        }
        let edit = document.set_field(key, value);
        edit.ok_or_else(|| self.refused("the checkpoint has no front matter"))
    }

    pub(super) fn add_section(
        &self,
        document: &Document,
        name: &str,
        after: Option<&str>,
        body: &str,
    ) -> Result<Edit> {
        if let Some(there) = document.named(name).next() {
            return Err(self.is_there(name, there));
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

    fn is_there(&self, name: &str, there: &Section) -> Error {
        let line = there.line();
        self.refused(format!("the section {name:?} is there already, at line {line}"))
    }

    /// The blocks that say `text`, in a section or anywhere.
    pub(super) fn entries<'d>(
        &self,
        document: &'d Document,
        text: &str,
        section: Option<&str>,
    ) -> Result<Vec<&'d Block>> {
        let place = section.map(|name| self.section(document, name)).transpose()?;
        let blocks = match place {
            Some(section) => document.blocks_of(section),
            None => document.blocks(),
        };
        let wanted = normal(text);
        Ok(blocks.iter().filter(|block| is_called(document, block, &wanted)).collect())
    }

    /// The one block that says `text`, in a section or anywhere.
    pub(super) fn wanted<'d>(
        &self,
        document: &'d Document,
        text: &str,
        section: Option<&str>,
    ) -> Result<&'d Block> {
        match self.entries(document, text, section)?.as_slice() {
            [block] => Ok(block),
            [] => Err(self.refused(match section {
                Some(name) => {
                    let title = &self.section(document, name)?.title;
                    format!("{title:?} has no entry {text:?}")
                }
                None => format!("the checkpoint has no entry {text:?}"),
            })),
            [first, second, ..] => Err(self.refused(format!(
                "more than one entry is {text:?}: at line {} and at line {}",
                first.line(),
                second.line()
            ))),
        }
    }

    /// The one block of a removed entry: its first cell says which, and cells of columns that the
    /// checkpoint has too must be as there.
    pub(super) fn wanted_row<'d>(
        &self,
        document: &'d Document,
        part: &Part,
        entry: &[String],
        section: Option<&str>,
    ) -> Result<&'d Block> {
        let text = entry.first().map(String::as_str).unwrap_or_default();
        let block = self.wanted(document, text, section)?;
        self.expect_cells(document, part, entry, block)?;
        self.expect_said(document, text, block)?;
        Ok(block)
    }

    /// Refuses to take an item away with what stands below its first lines, where neither its name
    /// nor an entry of Removed says that too.
    fn expect_said(&self, document: &Document, text: &str, block: &Block) -> Result<()> {
        let BlockKind::ListItem { .. } = block.kind else { return Ok(()) };
        let removed = self.declared.removed.iter().flat_map(|part| part.entries.iter().flatten());
        let said: Vec<String> =
            removed.map(String::as_str).chain([text]).flat_map(str::lines).map(flat).collect();
        let item = document.text_of(block);
        let Some(at) = nested_at(&item) else { return Ok(()) };
        let below = item.lines().enumerate().skip(at).filter(|(_, line)| !line.trim().is_empty());
        for (offset, line) in below {
            if !said.contains(&flat(line)) {
                let line_number = block.line() + offset;
                let found = format!("{:?} at line {line_number} of the checkpoint", line.trim());
                return Err(self.unmet("the entry in Removed with all that stands below it", found));
            }
        }
        Ok(())
    }

    /// Refuses a row that says something else than a removed entry under the same titles.
    pub(super) fn expect_cells(
        &self,
        document: &Document,
        part: &Part,
        entry: &[String],
        block: &Block,
    ) -> Result<()> {
        let text = entry.first().map(String::as_str).unwrap_or_default();
        let columns = part.columns.as_deref().unwrap_or_default();
        for (column, cell) in columns.iter().zip(entry).skip(1) {
            let at = column_of(document, block, column);
            let found = at.and_then(|at| block.kind.row()?.get(at));
            if let Some(found) = found.filter(|found| normal(found) != normal(cell)) {
                let expected = format!("{column:?} of {text:?} to be {cell:?}");
                let found = format!("{found:?} at line {} of the checkpoint", block.line());
                return Err(self.unmet(expected, found));
            }
        }
        Ok(())
    }

    /// Removes a section of which nothing is left but its heading.
    pub(super) fn remove_emptied(
        &self,
        document: &Document,
        section: Option<&str>,
    ) -> Result<Document> {
        let section = self.section(document, section.unwrap_or_default())?;
        let is_rest = |block: &&Block| {
            let is_inside = (section.body..section.end).contains(&block.lines.start);
            is_inside && !matches!(block.kind, BlockKind::TableHead { .. })
        };
        if let Some(rest) = document.blocks().iter().find(is_rest) {
            let expected = format!("nothing else in {:?}", section.title);
            let line = rest.line();
            let found = format!("line {line} of the checkpoint, which Removed does not name");
            return Err(self.unmet(expected, found));
        }
        document.edited(vec![document.remove_lines(section.lines.start..section.end)])
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

/// Whether a block is an entry of this name: a cell, the text, or what stands before its mark.
pub(super) fn is_called(document: &Document, block: &Block, wanted: &str) -> bool {
    match &block.kind {
        BlockKind::TableRow { .. } => {
            has_cell(document, block, wanted) || normal(document.text_of(block).trim()) == wanted
        }
        BlockKind::Heading { .. } | BlockKind::TableHead { .. } => false,
        BlockKind::ListItem { .. } => {
            let item = item_text(&document.text_of(block));
            normal(&item) == wanted || normal(key_of(&item)) == wanted
        }
        _ => normal(&document.text_of(block)) == wanted,
    }
}

/// Whether a row has a cell that says this; its state is no name, since other rows share it.
pub(super) fn has_cell(document: &Document, row: &Block, wanted: &str) -> bool {
    let BlockKind::TableRow { cells, head } = &row.kind else { return false };
    let titles = match document.blocks().get(*head).map(|head| &head.kind) {
        Some(BlockKind::TableHead { cells }) => cells.as_slice(),
        _ => &[],
    };
    let is_named = |(at, cell): (usize, &String)| {
        !titles.get(at).is_some_and(|title| is_status(title)) && normal(cell) == wanted
    };
    !wanted.is_empty() && cells.iter().enumerate().any(is_named)
}

/// The line of an item, from zero, at which something else than its own text begins: items, a
/// table, a quote, code, or a second paragraph.
pub(super) fn nested_at(item: &str) -> Option<usize> {
    let begins = |line: &str| {
        let line = line.trim_start();
        let marks = ["|", ">", "```", "~~~"];
        line.is_empty() || mark_width(line) > 0 || marks.iter().any(|mark| line.starts_with(mark))
    };
    item.lines().skip(1).position(begins).map(|at| at + 1)
}

pub(super) fn column_of(document: &Document, row: &Block, title: &str) -> Option<usize> {
    let BlockKind::TableRow { head, .. } = row.kind else { return None };
    let BlockKind::TableHead { cells } = &document.blocks().get(head)?.kind else { return None };
    cells.iter().position(|cell| normal(cell) == normal(title))
}

/// The fields of a checkpoint's header that the format names.
pub(super) const FIELDS: [&str; 5] = ["checkpoint", "created", "anchor", "parent", "last_delta"];

/// What an item is about: what stands before the first colon, arrow or dash.
pub(super) fn key_of(item: &str) -> &str {
    let first = item.split('\n').next().unwrap_or_default();
    let cut = [": ", " → ", " -> ", " — ", " – ", " - "].iter().filter_map(|mark| first.find(mark));
    let key = cut.min().and_then(|at| first.get(..at)).unwrap_or(first);
    // A bold key with its colon inside.
    key.trim().trim_end_matches(':')
}
