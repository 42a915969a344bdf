//! The blocks of a document: what a Markdown library finds, as ranges of lines.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::{lines::Lines, table};

/// A block: whole lines, without the empty ones around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// Its lines, from zero.
    pub lines: Range<usize>,
}

impl Block {
    /// The first line, from one.
    pub fn line(&self) -> usize {
        self.lines.start + 1
    }
}

/// What a block is.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading outside of quotes and lists.
    Heading {
        /// From one to six.
        level: u8,
        /// The text without markup.
        title: String,
    },
    /// A paragraph.
    Paragraph,
    /// An item of a list, with all that is inside of it.
    ListItem {
        /// The list that the item belongs to, counted over the document.
        list: usize,
    },
    /// The titles of a table, with the line under them.
    TableHead {
        /// The titles.
        cells: Vec<String>,
    },
    /// A row of a table.
    TableRow {
        /// The cells as they are written: a row may have fewer or more than its table.
        cells: Vec<String>,
        /// The block of the table's head.
        head: usize,
    },
    /// Code, in fences or set in.
    Code,
    /// A quote.
    Quote,
    /// HTML.
    Html,
    /// A line across.
    Rule,
    /// What else there is: definitions of links.
    Other,
}

impl BlockKind {
    /// The cells of a row.
    pub fn row(&self) -> Option<&[String]> {
        match self {
            Self::TableRow { cells, .. } => Some(cells),
            _ => None,
        }
    }

    /// The titles of a table's head.
    pub(super) fn titles(&self) -> Option<&[String]> {
        match self {
            Self::TableHead { cells } => Some(cells),
            _ => None,
        }
    }
}

/// The blocks from the line `body` on. Runs in time that is linear in the text.
pub(super) fn read(lines: &Lines, body: usize) -> Vec<Block> {
    let start = lines.offset(body);
    let text = lines.text().get(start..).unwrap_or_default();
    let mut reading = Reading {
        lines,
        from: start,
        blocks: Vec::new(),
        next: body,
        depth: 0,
        lists: 0,
        head: 0,
        in_heading: false,
    };
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    for (event, range) in parser {
        reading.take(event, range);
    }
    reading.fill(lines.len());
    reading.blocks
}

struct Reading<'a> {
    lines: &'a Lines,
    /// Where the text that is read begins.
    from: usize,
    blocks: Vec<Block>,
    /// The first line that no block holds yet.
    next: usize,
    depth: usize,
    lists: usize,
    /// The index of the head of the table that is being read.
    head: usize,
    in_heading: bool,
}

impl Reading<'_> {
    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                self.start(&tag, range);
                self.depth += 1;
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.in_heading &= self.depth > 0;
            }
            Event::Rule if self.depth == 0 => self.push(BlockKind::Rule, range),
            Event::Text(text) | Event::Code(text) if self.in_heading => {
                if let Some(Block { kind: BlockKind::Heading { title, .. }, .. }) =
                    self.blocks.last_mut()
                {
                    title.push_str(&text);
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        match (self.depth, tag) {
            (0, Tag::Heading { level, .. }) => {
                self.in_heading = true;
                let level = *level as u8;
                self.push(BlockKind::Heading { level, title: String::new() }, range);
            }
            (0, Tag::Paragraph) => self.push(BlockKind::Paragraph, range),
            (0, Tag::CodeBlock(_)) => self.push(BlockKind::Code, range),
            (0, Tag::BlockQuote(_)) => self.push(BlockKind::Quote, range),
            (0, Tag::HtmlBlock) => self.push(BlockKind::Html, range),
            (0, Tag::List(_)) => self.lists += 1,
            (1, Tag::Item) => self.push(BlockKind::ListItem { list: self.lists }, range),
            (1, Tag::TableHead) => {
                let cells = self.cells(&range);
                self.push(BlockKind::TableHead { cells }, range);
                self.head = self.blocks.len().saturating_sub(1);
                if let Some(head) = self.blocks.last_mut() {
                    head.lines.end = (head.lines.end + 1).min(self.lines.len());
                    self.next = head.lines.end;
                }
            }
            (1, Tag::TableRow) => {
                let cells = self.cells(&range);
                self.push(BlockKind::TableRow { cells, head: self.head }, range);
            }
            _ => {}
        }
    }

    fn cells(&self, range: &Range<usize>) -> Vec<String> {
        table::cells(self.lines.get(self.lines.line_of(self.from + range.start)))
    }

    fn push(&mut self, kind: BlockKind, range: Range<usize>) {
        let text = self.lines.text();
        let range = self.from + range.start..self.from + range.end;
        let inner = text.get(range.clone()).unwrap_or_default();
        let end = range.start + inner.trim_end().len();
        let start = self.lines.line_of(range.start).max(self.next);
        let last = self.lines.line_of(end.saturating_sub(1).max(range.start));
        let lines = start..(last + 1).max(start).min(self.lines.len());
        self.fill(start);
        if lines.is_empty() {
            return;
        }
        self.next = lines.end;
        self.blocks.push(Block { kind, lines });
    }

    /// Makes blocks of the lines up to `end` that are not empty and that nothing holds.
    fn fill(&mut self, end: usize) {
        let mut at = self.next;
        while at < end {
            let is_blank = |index: usize| self.lines.get(index).trim().is_empty();
            if is_blank(at) {
                at += 1;
                continue;
            }
            let stop = (at..end).find(|index| is_blank(*index)).unwrap_or(end);
            self.blocks.push(Block { kind: BlockKind::Other, lines: at..stop });
            at = stop;
        }
        self.next = self.next.max(end);
    }
}
