//! A place in rendered text, with who wrote it.

use std::{io::Write, sync::Arc};

use afterimage::{
    id::Role,
    json::{Object, ObjectExt, Value},
    snapshot::{ChunkRef, FrameSnapshot, find_chunks_by_facet},
    text::TextRange,
    window::LeftAt,
};

use crate::{
    failure::Outcome,
    json::{object, or_null},
    labels::{FrameLabels, Label},
    output::Output,
    style,
    table::{Column, Table, plain},
    text::{grouped, head, line_from, line_to, truncated, width},
};

/// A place in the rendered text of a frame, or of what follows the last one.
pub(crate) struct Hit<'s> {
    pub(crate) session: &'s Arc<str>,
    /// `None` after the last frame.
    sequence: Option<u64>,
    message: Option<usize>,
    /// The chunk in which the place begins.
    chunk: ChunkRef<'s>,
    range: TextRange,
    /// What is marked where the place is shown.
    marked: TextRange,
    facet_ids: Vec<&'s str>,
    tokens: u64,
    snapshot: &'s FrameSnapshot,
    /// Since when the frame is in the context no more.
    left: Option<LeftAt>,
    /// Where it stands in the file, and the tool call that it belongs to.
    label: Label,
}

/// From how many columns on a table has room for everything.
const WIDE: usize = 110;

impl<'s> Hit<'s> {
    /// The place of a text; `None` where it has no byte.
    pub(crate) fn at(
        of: (&'s Arc<str>, Option<u64>, Option<usize>),
        snapshot: &'s FrameSnapshot,
        range: TextRange,
        tokens: impl Fn(ChunkRef<'s>) -> u64,
    ) -> Option<Self> {
        let chunk = snapshot.chunk_at(range.start())?;
        Some(Self::from(of, snapshot, chunk, range, tokens))
    }

    /// The place of a chunk, which may be empty.
    pub(crate) fn of_chunk(
        of: (&'s Arc<str>, Option<u64>, Option<usize>),
        snapshot: &'s FrameSnapshot,
        chunk: ChunkRef<'s>,
        tokens: impl Fn(ChunkRef<'s>) -> u64,
    ) -> Self {
        Self::from(of, snapshot, chunk, chunk.range(), tokens)
    }

    fn from(
        of: (&'s Arc<str>, Option<u64>, Option<usize>),
        snapshot: &'s FrameSnapshot,
        chunk: ChunkRef<'s>,
        range: TextRange,
        tokens: impl Fn(ChunkRef<'s>) -> u64,
    ) -> Self {
        let (session, sequence, message) = of;
        let touched = (chunk.index()..).map_while(|index| snapshot.chunk(index));
        let touched = touched.skip(1).take_while(|chunk| chunk.range().start() < range.end());
        let mut facet_ids: Vec<&str> = Vec::new();
        for id in std::iter::once(chunk).chain(touched).flat_map(|chunk| chunk.facet_ids()) {
            if !facet_ids.contains(&id) {
                facet_ids.push(id);
            }
        }
        Self {
            session,
            sequence,
            message,
            chunk,
            range,
            marked: range,
            facet_ids,
            tokens: tokens(chunk),
            snapshot,
            left: None,
            label: Label::default(),
        }
    }

    /// Says where its first facet stands in the file, and to which tool call it belongs.
    pub(crate) fn labelled(mut self, labels: &FrameLabels) -> Self {
        let first = self.facet_ids.first();
        self.label = first.map_or_else(|| labels.frame(), |facet| labels.of(facet)).clone();
        self
    }

    /// Marks the character that holds this byte.
    pub(crate) fn marking_byte(mut self, byte: usize) -> Self {
        let text = self.snapshot.text();
        let start = (0..=byte).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let length =
            text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        self.marked = TextRange::at(start, length);
        self
    }

    /// Says since when the frame is in the context no more, where it is not.
    pub(crate) fn left(self, left: Option<LeftAt>) -> Self {
        Self { left, ..self }
    }

    /// Whether this stands in the place of its frame and still says what is marked.
    pub(crate) fn is_in(&self, shown: &FrameSnapshot) -> bool {
        let text = self.marked.of(self.snapshot.text());
        let holds = |facet: &&str| {
            let chunks = find_chunks_by_facet(shown, facet);
            chunks.iter().any(|chunk| chunk.content().contains(text))
        };
        self.facet_ids.iter().any(&holds)
    }

    pub(crate) fn to_json(&self) -> Object {
        let mut json = object! {
            "session": &**self.session,
            "sequence": or_null(self.sequence),
            "message": or_null(self.message.map(|message| message as u64)),
            "chunk": self.chunk.index() as u64,
            "start": self.range.start() as u64,
            "end": self.range.end() as u64,
            "facetIds": self.facet_ids.iter().copied().collect::<Value>(),
            "type": or_null(self.chunk.chunk_type()),
            "role": or_null(self.chunk.role().map(Role::as_str)),
            "tokens": self.tokens,
            "inContext": self.left.is_none(),
        };
        if let Some(left) = self.left {
            json.put("leftAt", left.at.get());
        }
        self.label.put(&mut json);
        json
    }

    pub(crate) fn table(out: &Output) -> Table {
        let [time, line] = Label::columns();
        let mut columns = vec![time, line, Column::number("FRAME", 5), Column::number("MSG", 4)];
        let is_wide = out.width >= WIDE;
        columns.extend(is_wide.then(|| Column::number("CHUNK", 5)));
        columns.push(Column::number("BYTES", 11));
        columns.extend(is_wide.then(|| Column::text("ROLE", 9)));
        columns.extend(is_wide.then(|| Column::text("TYPE", 10)));
        columns.extend([Column::number("TOKENS", 6), Column::text("FACET", 0)]);
        Table::new(columns)
    }

    /// Writes a row of the table, and below it the line of text in which the hit begins.
    pub(crate) fn print(&self, table: &Table, out: &mut Output) -> Outcome {
        let kind = self.chunk.chunk_type().unwrap_or("–");
        let kind_style = style::of_type(kind);
        let or_dash =
            |number: Option<u64>| number.map_or("–".to_owned(), |number| number.to_string());
        let facet = match self.facet_ids.as_slice() {
            [] => ("(formatting)".to_owned(), style::DIM),
            [facet] => (self.label.after(facet, table.rest(out)), kind_style.bold()),
            facets => (facets.join(", "), kind_style.bold()),
        };
        let role = self.chunk.role();
        let is_wide = out.width >= WIDE;
        let mut cells = Vec::from(self.label.cells());
        cells.push(plain(or_dash(self.sequence)));
        cells.push(plain(or_dash(self.message.map(|message| message as u64))));
        cells.extend(is_wide.then(|| plain(self.chunk.index().to_string())));
        cells.push(plain(format!("{}..{}", self.range.start(), self.range.end())));
        if is_wide {
            cells.push((role.map_or("–", Role::as_str).to_owned(), style::of_role(role)));
            cells.push((kind.to_owned(), kind_style));
        }
        cells.extend([plain(grouped(self.tokens)), facet]);
        table.row(out, cells)?;
        quote(out, self.snapshot.text(), self.marked)?;
        let dim = out.paint.style(style::DIM);
        let Some(LeftAt { at, has_summary, .. }) = self.left else { return Ok(()) };
        let says = if has_summary { "replaced by the summary of" } else { "left the context at" };
        Ok(writeln!(out, "{:7}{dim}└ {says} frame {at}{dim:#}", "")?)
    }
}

/// Writes the line of a text in which a hit begins, with the hit marked.
pub(crate) fn quote(out: &mut Output, text: &str, marked: TextRange) -> Outcome {
    // What begins with a line feed is shown from the line that follows.
    let hit = marked.of(text);
    let skipped = hit.len() - hit.trim_start_matches('\n').len();
    let skipped = if skipped == hit.len() { 0 } else { skipped };
    let marked = TextRange::at(marked.start() + skipped, hit.len() - skipped);
    let (before, rest) = text.split_at_checked(marked.start()).unwrap_or((text, ""));
    let hit = marked.of(text);
    let after = rest.get(hit.len()..).unwrap_or_default();
    let columns = out.width.saturating_sub(10);
    let more = if head(hit, columns).contains('\n') { "⏎" } else { "" };
    let marked = line_from(hit, columns.saturating_sub(width(more)));
    let room = columns.saturating_sub(width(&marked));
    let after_room = room - room / 3;
    let after = if more.is_empty() { line_from(after, room) } else { String::new() };
    let lead = line_to(before, room - after_room.min(width(&after)));
    let after = truncated(&after, room.saturating_sub(width(&lead)));
    let (dim, hit) = (out.paint.style(style::DIM), out.paint.style(style::HIT));
    Ok(writeln!(out, "{:7}{dim}│{dim:#} {lead}{hit}{marked}{more}{hit:#}{after}", "")?)
}
