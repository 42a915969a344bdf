use std::collections::BTreeSet;

use super::{
    blocks::BlockKind,
    document::{Document, Section},
    names::{SectionKind, normal},
    unread::{Role, is_comment},
};
use crate::Result;

/// What changed from one checkpoint to the next, as a document.
///
/// It is read forgivingly: any text is one. [`lint`](super::lint_delta) says what is missing, and
/// [`apply`](super::apply) what cannot be applied.
///
/// ```
/// use afterimage_checkpoint::{Checkpoint, apply, diff, DiffOptions};
///
/// let a = Checkpoint::parse("## Current State\n\n- Phase 1 runs\n")?.named("chk-1");
/// let b = Checkpoint::parse("## Current State\n\n- Phase 1 is done\n")?.named("chk-2");
/// let delta = diff(&a, &b, &DiffOptions::created("2026-01-05T10:00:00Z"))?;
/// assert_eq!((delta.from(), delta.to()), (Some("chk-1"), Some("chk-2")));
/// assert_eq!(apply(&a, &delta)?.text(), b.text());
/// # Ok::<(), afterimage_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointDelta {
    document: Document,
}

/// Something that is added or removed: entries under a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What stands over the entries, where something does.
    pub label: Option<String>,
    /// The titles of the table, where the entries are rows of one.
    pub columns: Option<Vec<String>>,
    /// The entries: cells of rows, or one text for an item or a paragraph.
    pub entries: Vec<Vec<String>>,
    /// The first line, from one.
    pub line: usize,
    /// The line of each entry, from one.
    pub(super) lines: Vec<usize>,
}

impl Part {
    /// Takes an entry out, as a part of its own under the same label.
    pub(super) fn split_entry(&mut self, at: usize) -> Self {
        Self {
            label: self.label.clone(),
            columns: self.columns.clone(),
            line: self.line,
            entries: self.entries.splice(at..=at, []).collect(),
            lines: self.lines.splice(at..=at, []).collect(),
        }
    }
}

/// A value before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The section, field or item.
    pub item: String,
    /// Its value before.
    pub before: String,
    /// Its value after.
    pub after: String,
    /// The line, from one.
    pub line: usize,
}

/// What a delta is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Sections that come, go or move.
    Structural,
    /// Values that change.
    Value,
    /// Files and other outputs.
    Artifact,
    /// Phases, tasks and blockers.
    Progress,
}

impl Category {
    /// The name in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Structural => "structural",
            Self::Value => "value",
            Self::Artifact => "artifact",
            Self::Progress => "progress",
        }
    }
}

impl CheckpointDelta {
    /// Reads a delta. Linear in its length.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub fn parse(text: impl Into<String>) -> Result<Self> {
        Document::parse(text).map(|document| Self { document })
    }

    /// Reads a delta from bytes. Linear in its length.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Document::read(bytes).map(|document| Self { document })
    }

    pub(super) fn from_document(document: Document) -> Self {
        Self { document }
    }

    /// The document that it is.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The text as it was read or made.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    fn header(&self, key: &str) -> Option<&str> {
        self.document.front_matter()?.get(key)
    }

    /// The header's `delta`: the id. O(fields of the header).
    pub fn id(&self) -> Option<&str> {
        self.header("delta")
    }

    /// The header's `created`. O(fields of the header).
    pub fn created(&self) -> Option<&str> {
        self.header("created")
    }

    /// The header's `from`: the checkpoint that the delta is applied to. O(fields of the header).
    pub fn from(&self) -> Option<&str> {
        self.header("from")
    }

    /// The header's `to`: the checkpoint that it leads to. O(fields of the header).
    pub fn to(&self) -> Option<&str> {
        self.header("to")
    }

    pub(super) fn part(&self, name: &str) -> Option<(usize, &Section)> {
        let mut sections = self.document.sections().iter().enumerate();
        sections.find(|(_, section)| normal(&section.title) == name)
    }

    /// The sentence of the section Summary; empty without one. O(sections), and copies its text.
    pub fn summary(&self) -> String {
        let section = self.part("summary");
        section.map_or_else(String::new, |(_, section)| self.document.body_of(section))
    }

    /// What the section Added holds. O(sections and entries), which are copied.
    pub fn added(&self) -> Vec<Part> {
        self.parts("added")
    }

    /// What the section Removed holds. O(sections and entries), which are copied.
    pub fn removed(&self) -> Vec<Part> {
        self.parts("removed")
    }

    /// The rows of the section Modified. O(sections and entries), which are copied.
    pub fn modified(&self) -> Vec<Change> {
        self.changes("modified")
    }

    /// The rows of the section Status Transitions. O(sections and entries), which are copied.
    pub fn transitions(&self) -> Vec<Change> {
        self.changes("status transitions")
    }

    /// What the delta is about, in the order of [`Category`]. O(operations).
    pub fn categories(&self) -> Vec<Category> {
        let mut found = BTreeSet::new();
        let parts = self.added().into_iter().chain(self.removed());
        for part in parts {
            let label = normal(part.label.as_deref().unwrap_or_default());
            let columns = part.columns.unwrap_or_default();
            let is_of_files = columns.iter().any(|title| normal(title) == "file")
                || label.contains("file")
                || label.contains("artifact");
            if is_of_files {
                found.insert(Category::Artifact);
            } else if label.contains("section") || part.entries.is_empty() {
                found.insert(Category::Structural);
            } else {
                found.insert(category_of(&label));
            }
        }
        for change in self.modified() {
            let item = normal(&change.item);
            found.insert(if item.contains("order") || item.contains("layout") {
                Category::Structural
            } else {
                category_of(item.split(" / ").next().unwrap_or_default())
            });
        }
        if !self.transitions().is_empty() {
            found.insert(Category::Progress);
        }
        found.into_iter().collect()
    }

    /// The line of what was meant as a table in a section, and is none.
    pub(super) fn broken_table(&self, name: &str) -> Option<usize> {
        let (_, section) = self.part(name)?;
        let is_broken = |block: &&super::Block| {
            matches!(block.kind, BlockKind::Paragraph)
                && self.document.line(block.line()).trim_start().starts_with('|')
        };
        self.document.blocks_of(section).iter().find(is_broken).map(super::Block::line)
    }

    fn changes(&self, name: &str) -> Vec<Change> {
        let Some((_, section)) = self.part(name) else { return Vec::new() };
        let blocks = self.document.blocks_of(section).iter();
        let rows = blocks.filter_map(|block| Some((block.line(), block.kind.row()?)));
        let cell = |cells: &[String], at: usize| cells.get(at).cloned().unwrap_or_default();
        rows.map(|(line, cells)| Change {
            item: cell(cells, 0),
            before: cell(cells, 1),
            after: cell(cells, 2),
            line,
        })
        .collect()
    }

    fn parts(&self, name: &str) -> Vec<Part> {
        let Some((index, _)) = self.part(name) else { return Vec::new() };
        let mut parts: Vec<Part> = Vec::new();
        for (at, section) in self.document.sections().iter().enumerate().skip(index) {
            if at > index && !self.is_inside(at, index) {
                break;
            }
            // A section of the format is read as what it is, wherever it stands.
            if at > index && self.is_below_another(at, index) {
                continue;
            }
            if at > index {
                let label = Some(section.title.clone());
                parts.push(Part { label, line: section.line(), ..Part::default() });
            }
            for block in self.document.blocks_of(section) {
                self.take(block, &mut parts);
            }
        }
        parts.retain(|part| part.label.is_some() || !part.entries.is_empty());
        parts
    }

    /// Whether a section inside of another one is, or is inside of, a further one of the format.
    fn is_below_another(&self, mut index: usize, outer: usize) -> bool {
        while let Some(section) = self.document.sections().get(index).filter(|_| index != outer) {
            if Role::of(section).is_named() {
                return true;
            }
            let Some(parent) = section.parent else { break };
            index = parent;
        }
        false
    }

    fn is_inside(&self, mut index: usize, outer: usize) -> bool {
        while let Some(parent) = self.document.sections().get(index).and_then(|s| s.parent) {
            if parent == outer {
                return true;
            }
            index = parent;
        }
        false
    }

    fn take(&self, block: &super::Block, parts: &mut Vec<Part>) {
        let text = self.document.text_of(block);
        if matches!(block.kind, BlockKind::Paragraph) {
            if let Some(label) = label(&text) {
                let label = Some(label.to_owned());
                parts.push(Part { label, line: block.line(), ..Part::default() });
                return;
            }
            if let Some((label, entry)) = labelled(&text) {
                parts.push(Part {
                    label: Some(label.to_owned()),
                    entries: vec![vec![entry.to_owned()]],
                    line: block.line(),
                    lines: vec![block.line()],
                    ..Part::default()
                });
                return;
            }
        }
        if let BlockKind::TableHead { cells } = &block.kind {
            let is_open = parts.last().is_some_and(|part| part.entries.is_empty());
            if !is_open {
                let label = parts.last().and_then(|part| part.label.clone());
                parts.push(Part { label, line: block.line(), ..Part::default() });
            }
            if let Some(part) = parts.last_mut() {
                part.columns = Some(cells.clone());
            }
            return;
        }
        let is_row = matches!(block.kind, BlockKind::TableRow { .. });
        let entry = match &block.kind {
            BlockKind::TableRow { cells, .. } => cells.clone(),
            BlockKind::ListItem { .. } => vec![item_text(&text)],
            BlockKind::Rule => return,
            BlockKind::Html if is_comment(&text) => return,
            _ => vec![text],
        };
        // What stands below a table is no row of it.
        if parts.last().is_none_or(|part| part.columns.is_some() && !is_row) {
            let label = parts.last().and_then(|part| part.label.clone());
            parts.push(Part { label, line: block.line(), ..Part::default() });
        }
        if let Some(part) = parts.last_mut() {
            part.entries.push(entry);
            part.lines.push(block.line());
        }
    }
}

/// What a section of this name is about.
fn category_of(section: &str) -> Category {
    match SectionKind::from_title(section) {
        Some(SectionKind::ArtifactTrail | SectionKind::Breadcrumbs) => Category::Artifact,
        Some(SectionKind::PlayByPlay | SectionKind::CurrentState | SectionKind::NextActions) => {
            Category::Progress
        }
        _ => Category::Value,
    }
}

/// The text of a paragraph that names what follows: bold, or with a colon at its end.
fn label(text: &str) -> Option<&str> {
    let text = text.trim();
    if text.contains('\n') {
        return None;
    }
    let bold = text.strip_prefix("**").and_then(|rest| {
        let (inner, after) = rest.split_once("**")?;
        matches!(after.trim(), "" | ":").then_some(inner)
    });
    bold.or_else(|| text.strip_suffix(':')).map(|label| label.trim().trim_end_matches(':'))
}

/// A paragraph that begins with a bold name and a colon: the name, and what is behind it.
fn labelled(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim().strip_prefix("**")?.split_once("**")?;
    let entry = if name.ends_with(':') { rest } else { rest.strip_prefix(':')? };
    Some((name.trim().trim_end_matches(':'), entry.trim()))
}

/// Whether a line is, or begins with, a bold name and a colon, or names a section of a checkpoint.
pub(super) fn is_label(line: &str) -> bool {
    labelled(line).is_some()
        || label(line).is_some_and(|label| SectionKind::from_title(label).is_some())
}

/// The text of an item without its mark, with its further lines set back.
pub(super) fn item_text(item: &str) -> String {
    let start = item.len() - item.trim_start().len();
    let rest = item.get(start..).unwrap_or_default();
    let width = mark_width(rest);
    let first = rest.get(width..).unwrap_or_default();
    let indent = start + width;
    let mut text = String::with_capacity(first.len());
    for (at, line) in first.split('\n').enumerate() {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let line = if at == 0 { line } else { line.get(blanks.min(indent)..).unwrap_or_default() };
        if at > 0 {
            text.push('\n');
        }
        text.push_str(line);
    }
    text.trim_end().to_owned()
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

/// How many bytes the mark of an item takes with the blank behind it: zero where there is none.
pub(super) fn mark_width(item: &str) -> usize {
    let digits = item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mark = match item.as_bytes().get(digits) {
        Some(b'.' | b')') if digits > 0 => digits + 1,
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        _ => return 0,
    };
    match item.as_bytes().get(mark) {
        Some(b' ' | b'\t') => mark + 1,
        None => mark,
        _ => 0,
    }
}
