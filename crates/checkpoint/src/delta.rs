use std::collections::BTreeSet;

use super::{
    blocks::{Block, BlockKind},
    document::{Document, Section},
    names::{SectionKind, normal},
    unread::{Role, is_comment},
};
use crate::Result;

/// What changed from one checkpoint to the next, as a document.
///
/// It is read forgivingly: any text is one. [`lint()`](super::lint()) says what is missing, and
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
        for part in self.added().into_iter().chain(self.removed()) {
            let label = normal(part.label.as_deref().unwrap_or_default());
            let is_of_files = part.columns.iter().flatten().any(|title| normal(title) == "file")
                || label.contains("file")
                || label.contains("artifact");
            found.insert(match () {
                () if is_of_files => Category::Artifact,
                () if label.contains("section") || part.entries.is_empty() => Category::Structural,
                () => category_of(&label),
            });
        }
        found.extend(self.modified().iter().map(|change| {
            let item = normal(&change.item);
            let is_layout = item.contains("order") || item.contains("layout");
            let first = item.split(" / ").next().unwrap_or_default();
            if is_layout { Category::Structural } else { category_of(first) }
        }));
        found.extend((!self.transitions().is_empty()).then_some(Category::Progress));
        found.into_iter().collect()
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
        let Some((index, outer)) = self.part(name) else { return Vec::new() };
        let mut parts: Vec<Part> = Vec::new();
        let add = |section: &Section, parts: &mut Vec<Part>| {
            self.document.blocks_of(section).iter().for_each(|block| self.take(block, parts));
        };
        add(outer, &mut parts);
        // A section of the format is read as what it is, wherever it stands.
        let mut next = 0;
        for section in self.document.sections_in(index) {
            if section.lines.start < next {
                continue;
            }
            if Role::of(section).is_named() {
                next = section.end;
                continue;
            }
            let label = Some(section.title.clone());
            parts.push(Part { label, line: section.line(), ..Part::default() });
            add(section, &mut parts);
        }
        parts.retain(|part| part.label.is_some() || !part.entries.is_empty());
        parts
    }

    fn take(&self, block: &Block, parts: &mut Vec<Part>) {
        let text = self.document.text_of(block);
        let line = block.line();
        let last = parts.last();
        let new = |label| Part { label, line, ..Part::default() };
        let same = last.and_then(|part| part.label.clone());
        // What stands below a table is no row of it.
        let is_closed = last.is_none_or(|part| part.columns.is_some());
        let entry = match &block.kind {
            BlockKind::Paragraph if label(&text).is_some() => {
                parts.push(new(label(&text).map(str::to_owned)));
                return;
            }
            BlockKind::Paragraph if labelled(&text).is_some() => {
                let (label, entry) = labelled(&text).unwrap_or_default();
                parts.push(new(Some(label.to_owned())));
                vec![entry.to_owned()]
            }
            BlockKind::TableHead { cells } => {
                if last.is_none_or(|part| !part.entries.is_empty()) {
                    parts.push(new(same));
                }
                if let Some(part) = parts.last_mut() {
                    part.columns = Some(cells.clone());
                }
                return;
            }
            BlockKind::Rule => return,
            BlockKind::Html if is_comment(&text) => return,
            BlockKind::TableRow { cells, .. } => cells.clone(),
            BlockKind::ListItem { .. } => vec![item_text(&text)],
            _ => vec![text.clone()],
        };
        if is_closed && block.kind.row().is_none() && labelled(&text).is_none() {
            parts.push(new(same));
        }
        if let Some(part) = parts.last_mut() {
            part.entries.push(entry);
            part.lines.push(line);
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
    let rest = item.trim_start();
    let indent = item.len() - rest.len() + mark_width(rest);
    let line = |(at, line): (usize, &'_ str)| -> String {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        let start = if at == 0 { indent } else { blanks.min(indent) };
        line.get(start..).unwrap_or_default().to_owned()
    };
    let lines: Vec<String> = item.split('\n').enumerate().map(line).collect();
    lines.join("\n").trim_end().to_owned()
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
