//! Changes to a document that leave everything else as it is.

use std::ops::Range;

use super::{
    blocks::{Block, BlockKind},
    document::{Document, Section},
    front_matter::quoted,
    lines::EditedLine,
    table,
};
use crate::Result;

/// New lines in place of some of a document: made by the methods of [`Document`] that name a place,
/// and carried out by [`Document::edited`].
#[derive(Clone, Debug)]
pub struct Edit {
    pub(super) at: Range<usize>,
    pub(super) lines: Vec<String>,
}

impl Edit {
    /// New lines in place of these, which are counted from zero.
    pub fn replace(at: Range<usize>, lines: Vec<String>) -> Self {
        Self { at, lines }
    }

    fn insert(at: usize, lines: Vec<String>) -> Self {
        Self { at: at..at, lines }
    }
}

/// The lines of a text. O(text).
pub fn lines_of(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

impl Document {
    /// The document after `edits`, which do not overlap. Every other line keeps its bytes.
    ///
    /// Cost: O(the text), which is written and read anew.
    ///
    /// # Errors
    /// `Limit` where the result is larger than [`MAX_BYTES`](crate::MAX_BYTES) or nested too deeply.
    pub fn edited(&self, mut edits: Vec<Edit>) -> Result<Self> {
        edits.sort_by_key(|edit| edit.at.start);
        let mut lines = Vec::with_capacity(self.lines.len());
        let mut next = 0;
        for edit in edits {
            lines.extend((next..edit.at.start.max(next)).map(EditedLine::Kept));
            lines.extend(edit.lines.into_iter().map(EditedLine::New));
            next = next.max(edit.at.end);
        }
        lines.extend((next..self.lines.len()).map(EditedLine::Kept));
        self.rewritten(&lines)
    }

    fn is_blank(&self, index: usize) -> bool {
        self.lines.get(index).trim().is_empty()
    }

    /// Appends items to a section: to its last list, or as a new one.
    ///
    /// Cost: O(blocks of the section, and the items).
    pub fn append_items(&self, section: &Section, items: &[String]) -> Edit {
        let items = items.iter().flat_map(|item| lines_of(item)).collect();
        let is_item = |block: &Block| matches!(block.kind, BlockKind::ListItem { .. });
        self.append(section, items, is_item)
    }

    /// Appends rows to the last table of a section; `None` where it has none.
    ///
    /// Cost: O(blocks of the section).
    pub fn append_rows(&self, section: &Section, rows: Vec<String>) -> Option<Edit> {
        let is_row = |block: &Block| {
            matches!(block.kind, BlockKind::TableRow { .. } | BlockKind::TableHead { .. })
        };
        let last = self.blocks_of(section).iter().rev().find(|block| is_row(block))?;
        Some(Edit::insert(last.lines.end, rows))
    }

    /// Appends lines of their own to the end of a section. O(lines).
    pub fn append_block(&self, section: &Section, lines: Vec<String>) -> Edit {
        self.append(section, lines, |_| false)
    }

    fn append(
        &self,
        section: &Section,
        mut lines: Vec<String>,
        joins: impl Fn(&Block) -> bool,
    ) -> Edit {
        let last = self.blocks_of(section).last();
        let at = last.map_or(section.body, |block| block.lines.end);
        if last.is_none_or(|last| !joins(last)) && at > 0 {
            lines.insert(0, String::new());
        }
        if at < self.lines.len() && !self.is_blank(at) {
            lines.push(String::new());
        }
        Edit::insert(at, lines)
    }

    /// Puts lines in place of what stands between a section's heading and the next one.
    pub(super) fn replace_body(&self, section: &Section, lines: Vec<String>) -> Edit {
        self.replace_filled(section, section.body..section.lines.end, lines)
    }

    /// Puts lines in place of a section's content, with the sections inside of it that the format
    /// does not name. Linear in the sections inside of it, and the empty lines around the content.
    pub fn replace_content(&self, section: &Section, lines: Vec<String>) -> Edit {
        self.replace_filled(section, section.body..self.content_end(section), lines)
    }

    fn replace_filled(
        &self,
        section: &Section,
        mut within: Range<usize>,
        lines: Vec<String>,
    ) -> Edit {
        let is_filled = |index: &usize| !self.is_blank(*index);
        match (within.clone().find(is_filled), within.rfind(is_filled)) {
            (Some(first), Some(last)) if lines.is_empty() => self.remove_lines(first..last + 1),
            (Some(first), Some(last)) => Edit::replace(first..last + 1, lines),
            _ if lines.is_empty() => Edit::insert(section.body, lines),
            _ => self.append(section, lines, |_| false),
        }
    }

    /// Takes lines away, and empty ones where two would meet or where they would end the text.
    /// Linear in the empty lines that it takes away.
    pub fn remove_lines(&self, mut lines: Range<usize>) -> Edit {
        let blank_before = lines.start.checked_sub(1).is_none_or(|before| self.is_blank(before));
        if blank_before && lines.end < self.lines.len() && self.is_blank(lines.end) {
            lines.end += 1;
        }
        if lines.end == self.lines.len() {
            while lines.start > 0 && self.is_blank(lines.start - 1) {
                lines.start -= 1;
            }
        }
        Edit::replace(lines, Vec::new())
    }

    /// A new section before the line `at`, with its heading and body apart from what is around.
    /// O(body).
    pub fn insert_section(&self, at: usize, level: u8, title: &str, body: &str) -> Edit {
        let at = at.min(self.lines.len());
        let mut lines = Vec::new();
        if at > 0 && !self.is_blank(at - 1) {
            lines.push(String::new());
        }
        lines.push(format!("{} {title}", "#".repeat(level.into())));
        if !body.is_empty() {
            lines.push(String::new());
            lines.extend(lines_of(body));
        }
        if at < self.lines.len() {
            lines.push(String::new());
        }
        Edit::insert(at, lines)
    }

    /// Sets a cell of a row. O(the row).
    pub(super) fn set_cell(&self, block: &Block, column: usize, text: &str) -> Option<Edit> {
        let row = table::with_cell(self.lines.get(block.lines.start), column, text)?;
        Some(Edit::replace(block.lines.clone(), vec![row]))
    }

    /// Sets a field of the header; a new one goes to its end. Without a header nothing is set.
    /// O(fields).
    pub(super) fn set_field(&self, key: &str, value: &str) -> Option<Edit> {
        let front = self.front_matter()?;
        let line = format!("{key}: {}", quoted(value));
        Some(match front.field(key) {
            Some(field) => Edit::replace(field.line..field.line + 1, vec![line]),
            None => Edit::insert(front.lines.end - 1, vec![line]),
        })
    }
}
