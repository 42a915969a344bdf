use std::ops::Range;

use super::{
    blocks::{self, Block, BlockKind},
    front_matter::FrontMatter,
    lines::{EditedLine, Lines},
    names::{SectionKind, normal},
};
use crate::{Error, ErrorKind, Result};

/// The most bytes that a document may have: 16 MiB.
pub const MAX_BYTES: usize = 16 << 20;

/// How deep quotes and lists may be nested on one line.
const MAX_NESTING: usize = 256;

/// A Markdown document: its text, header, sections and blocks.
///
/// The text is kept as it was read. Two documents are equal where their lines say the same,
/// whatever ends the lines.
#[derive(Clone, Debug)]
pub struct Document {
    pub(super) lines: Lines,
    front_matter: Option<FrontMatter>,
    blocks: Vec<Block>,
    sections: Vec<Section>,
}

/// A section: a heading and what follows it up to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The heading's text, without markup.
    pub title: String,
    /// The heading's level, from one; zero for what stands before the first heading.
    pub level: u8,
    /// The section that this one is inside of, by its index.
    pub parent: Option<usize>,
    /// The blocks after the heading and before the next one.
    pub(super) blocks: Range<usize>,
    /// The lines from the heading up to the next one.
    pub(super) lines: Range<usize>,
    /// The line after the section and all that are inside of it.
    pub(super) end: usize,
    /// The first line after the heading.
    pub(super) body: usize,
}

impl Section {
    /// The line of the heading, from one.
    pub fn line(&self) -> usize {
        self.lines.start + 1
    }

    /// The section of the format that this is.
    pub fn kind(&self) -> Option<SectionKind> {
        SectionKind::from_title(&self.title)
    }
}

impl Document {
    /// Reads a document. Linear in its length.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for more than [`MAX_BYTES`] and for lines that nest deeper than
    /// 256 quotes and lists, [`ErrorKind::Markdown`] for a NUL, which no text holds.
    pub fn parse(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        if text.len() > MAX_BYTES {
            let message =
                format!("a document has at most {MAX_BYTES} bytes, this one {}", text.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let lines = Lines::new(text);
        for (index, line) in lines.iter().enumerate() {
            let at = |error: Error| error.on_line(index as u64 + 1);
            if let Some(column) = memchr::memchr(0, line.as_bytes()) {
                let error = Error::new(ErrorKind::Markdown, "expected text, found a NUL byte");
                return Err(at(error).at(|place| place.column = Some(column as u64 + 1)));
            }
            if nesting(line) > MAX_NESTING {
                let message = format!("quotes and lists nest at most {MAX_NESTING} deep on a line");
                return Err(at(Error::new(ErrorKind::Limit, message)));
            }
        }
        let front_matter = FrontMatter::read(&lines);
        let body = front_matter.as_ref().map_or(0, |front| front.lines.end);
        let blocks = blocks::read(&lines, body);
        let sections = sections(&blocks, body, lines.len());
        Ok(Self { lines, front_matter, blocks, sections })
    }

    /// Reads a document from bytes.
    ///
    /// Cost: O(bytes).
    ///
    /// # Errors
    /// [`ErrorKind::Utf8`] with line and offset, and as [`Document::parse`].
    pub fn read(bytes: &[u8]) -> Result<Self> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text),
            Err(error) => {
                let offset = error.valid_up_to();
                let before = bytes.get(..offset).unwrap_or_default();
                let line = memchr::memchr_iter(b'\n', before).count() as u64 + 1;
                Err(Error::new(ErrorKind::Utf8, "expected Markdown in UTF-8, found other bytes")
                    .with_source(error)
                    .on_line(line)
                    .at(|place| place.offset = Some(offset as u64)))
            }
        }
    }

    /// The text, byte for byte as it was read or written.
    pub fn text(&self) -> &str {
        self.lines.text()
    }

    /// The text in canonical form: lines that end with `\n`, the last one too, and no byte order
    /// mark at the beginning. Equal documents have the same canonical text.
    ///
    /// Cost: O(the text), which is copied.
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(self.text().len() + 1);
        for line in self.lines.iter() {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The header.
    pub fn front_matter(&self) -> Option<&FrontMatter> {
        self.front_matter.as_ref()
    }

    /// The sections in order. What stands before the first heading is a section of level zero.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Every block in order, headings among them.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks of a section, without those of the sections inside of it.
    pub fn blocks_of(&self, section: &Section) -> &[Block] {
        self.blocks.get(section.blocks.clone()).unwrap_or_default()
    }

    /// The lines of a block, parted by `\n`. Copies it.
    pub fn text_of(&self, block: &Block) -> String {
        self.lines.joined(block.lines.clone())
    }

    /// The text between a section's heading and the next one, without empty lines around it. Copies
    /// it.
    pub fn body_of(&self, section: &Section) -> String {
        let text = self.lines.joined(section.body..section.lines.end);
        text.trim_matches('\n').to_owned()
    }

    /// The text of a section with those inside of it that the format does not name, without empty
    /// lines around it. Copies it.
    pub fn content_of(&self, section: &Section) -> String {
        let text = self.lines.joined(section.body..self.content_end(section));
        text.trim_matches('\n').to_owned()
    }

    /// The line after a section and those inside of it that the format does not name. Linear in the
    /// sections inside of it.
    pub fn content_end(&self, section: &Section) -> usize {
        let is_before = |other: &Section| other.lines.start < section.lines.start;
        let index = self.sections.partition_point(is_before);
        let named = self.sections_in(index).find(|inner| inner.kind().is_some());
        named.map_or(section.end, |named| named.lines.start)
    }

    /// The sections inside of one, at any depth.
    pub(super) fn sections_in(&self, index: usize) -> impl Iterator<Item = &Section> {
        let end = self.sections.get(index).map_or(0, |section| section.end);
        let after = self.sections.iter().skip(index + 1);
        after.take_while(move |inner| inner.lines.start < end)
    }

    /// A section and those around it, from the inside out.
    pub(super) fn around(&self, index: usize) -> impl Iterator<Item = &Section> {
        std::iter::successors(self.sections.get(index), |section| {
            section.parent.and_then(|index| self.sections.get(index))
        })
    }

    /// The section of the format that a section is, or is a part of.
    pub(super) fn kind_around(&self, index: usize) -> Option<SectionKind> {
        let mut around = self.around(index).enumerate();
        let (at, kind) = around.find_map(|(at, section)| Some((at, section.kind()?)))?;
        // Others inside of Essential Information are sections of their own.
        (at == 0 || kind != SectionKind::EssentialInformation).then_some(kind)
    }

    /// The number of lines.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// The line at `number`, from one; empty where there is none.
    pub fn line(&self, number: usize) -> &str {
        number.checked_sub(1).map_or("", |index| self.lines.get(index))
    }

    /// The first section of that kind. O(sections).
    pub fn section(&self, kind: SectionKind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind() == Some(kind))
    }

    /// The sections whose headings are `name`, whatever its case and markup.
    pub(super) fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Section> + use<'a> {
        let name = normal(name);
        self.sections.iter().filter(move |section| normal(&section.title) == name)
    }

    /// The titles over a row of a table; none for another block.
    pub(super) fn titles_over(&self, row: &Block) -> &[String] {
        let BlockKind::TableRow { head, .. } = row.kind else { return &[] };
        let head = self.blocks.get(head);
        head.and_then(|head| head.kind.titles()).unwrap_or_default()
    }

    /// The headings over and at a section: `Essential Information / Decisions`.
    pub(super) fn path_of(&self, index: usize) -> String {
        let names = self.around(index).map(|section| section.title.as_str());
        let mut names: Vec<&str> = names.collect();
        names.reverse();
        names.join(" / ")
    }

    /// The title of the section that holds a line; `front matter` for the header.
    pub(super) fn title_at(&self, line: usize) -> &str {
        let after = self.sections.partition_point(|section| section.lines.start <= line);
        let section = after.checked_sub(1).and_then(|index| self.sections.get(index));
        let section = section.filter(|section| section.lines.contains(&line));
        section.map_or("front matter", |section| &section.title)
    }

    /// The document with the lines that `edited` names.
    pub(super) fn rewritten(&self, edited: &[EditedLine]) -> Result<Self> {
        Self::parse(self.lines.rewritten(edited))
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.lines == other.lines
    }
}

/// How many quotes and lists a line opens at most.
fn nesting(line: &str) -> usize {
    let mut depth = 0;
    let mut rest = line.trim_start();
    while let Some(inner) = inside(rest) {
        rest = inner.trim_start();
        depth += 1;
    }
    depth
}

/// What stands behind the mark of a quote or of an item.
fn inside(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('>') {
        return Some(quoted);
    }
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = match text.strip_prefix(['-', '+', '*']) {
        Some(item) => item,
        None if number.len() < text.len() => number.strip_prefix(['.', ')'])?,
        None => return None,
    };
    // Without a blank it is a rule, a bold word or a number.
    item.starts_with([' ', '\t']).then_some(item)
}

fn sections(blocks: &[Block], body: usize, end: usize) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let opened = |title: &str, level, parent, (block, line, body): (usize, usize, usize)| Section {
        title: title.to_owned(),
        level,
        parent,
        blocks: block..blocks.len(),
        lines: line..end,
        end,
        body,
    };
    if blocks.first().is_some_and(|first| !matches!(first.kind, BlockKind::Heading { .. })) {
        sections.push(opened("", 0, None, (0, body, body)));
    }
    for (index, block) in blocks.iter().enumerate() {
        let BlockKind::Heading { level, title } = &block.kind else { continue };
        if let Some(last) = sections.last_mut() {
            last.blocks.end = index;
            last.lines.end = block.lines.start;
        }
        while let Some(section) = open.last().and_then(|at| sections.get_mut(*at)) {
            if section.level < *level {
                break;
            }
            section.end = block.lines.start;
            open.pop();
        }
        if let Some(first) = sections.first_mut().filter(|first| first.level == 0) {
            first.end = first.lines.end;
        }
        let starts = (index + 1, block.lines.start, block.lines.end);
        sections.push(opened(title, *level, open.last().copied(), starts));
        open.push(sections.len() - 1);
    }
    sections
}
