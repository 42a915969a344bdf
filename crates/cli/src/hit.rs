//! A place in rendered text, with who wrote it.

use std::{io::Write, sync::Arc};

use afterimage::{
    id::{FrameSeq, Role},
    snapshot::{ChunkRef, FrameSnapshot, find_chunks_by_facet},
    text::TextRange,
    window::LeftAt,
};

use crate::{
    answer::answer,
    failure::Outcome,
    labels::{FrameLabels, Label, PlacedCall},
    lens::CountsAnswer,
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

answer! {
    /// A hit in a frame, or in what follows the last one.
    pub(crate) struct HitAnswer<'h> as "hit" {
        /// the file, where several are named
        file?: &'h str,
        /// the session of the frame
        session: &'h str,
        /// the frame; null in what the model sees after the last one
        sequence: Option<u64>,
        /// the index of the message in the session's context after the last frame, from 0, as
        /// `render --as messages` numbers them; null where the frame shows nothing, or is in the
        /// context no more
        message: Option<usize>,
        /// the index of the chunk in which the hit begins, from 0
        chunk: usize,
        /// the first byte of the hit in the text of the frame
        start: usize,
        /// the byte after its last
        end: usize,
        /// the facets of all chunks that the hit touches, each once
        facet_ids: &'h [&'h str],
        /// the type of that chunk
        r#type: Option<&'h str>,
        /// its role
        role: Option<&'h str>,
        /// its tokens: of the whole chunk, not of the hit
        tokens: u64,
        /// whether the context after the last frame holds it. A summary is in it under the frame that
        /// tells of it
        in_context: bool,
        /// where it does not: the frame that tells so
        left_at?: FrameSeq,
        ..label: PlacedCall,
        ..counts: Option<CountsAnswer<'h>>,
    }
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

    /// The hit in this file, with what counted its tokens.
    pub(crate) fn answer<'h>(
        &'h self,
        file: Option<&'h str>,
        counts: Option<CountsAnswer<'h>>,
    ) -> HitAnswer<'h> {
        HitAnswer {
            file,
            session: self.session,
            sequence: self.sequence,
            message: self.message,
            chunk: self.chunk.index(),
            start: self.range.start(),
            end: self.range.end(),
            facet_ids: &self.facet_ids,
            r#type: self.chunk.chunk_type(),
            role: self.chunk.role().map(Role::as_str),
            tokens: self.tokens,
            in_context: self.left.is_none(),
            left_at: self.left.map(|left| left.at),
            label: self.label.placed_call(),
            counts,
        }
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
