use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

use indexmap::IndexMap;

use super::{
    Totals,
    reader::dropped,
    state::{Cursor, State},
    tables::{PartKind, Tables},
    text::SegmentText,
    writer::segments,
};
use crate::{
    Result,
    id::{FrameSeq, Role},
    json::Object,
    snapshot::{FrameSnapshot, Part, RenderedChunk, Structure},
    text::TextRange,
};

/// The frames of a range with their text. Borrows from the reader; nothing is copied.
#[derive(Clone)]
pub struct RangeView<'a> {
    state: &'a State,
    from: Cursor,
    to: Cursor,
    /// The text of segments that are in a store, from that of `from` on.
    read: Vec<Option<Arc<SegmentText>>>,
}

impl<'a> RangeView<'a> {
    pub(super) fn new(state: &'a State, from: Cursor, to: Cursor) -> Result<Self> {
        // A range between two frames has no segments.
        let to = if from.before.frames >= to.before.frames { from } else { to };
        let mut view = Self { state, from, to, read: Vec::new() };
        if state.store.is_some() && from != to {
            for segment in segments(from, to) {
                state.tables(segment)?;
                let read = match state.text_here(segment) {
                    Some(_) => None,
                    None => Some(state.text_from_store(segment)?),
                };
                view.read.push(read);
            }
        }
        let has_gaps = |text: &Arc<SegmentText>| !text.is_whole();
        if state.has_gaps || view.read.iter().flatten().any(has_gaps) {
            view.check_gaps()?;
        }
        Ok(view)
    }

    fn check_gaps(&self) -> Result<()> {
        for (segment, frames) in self.segments() {
            let text = self.text_of(segment);
            if text.is_whole() {
                continue;
            }
            let tables = self.state.loaded(segment);
            for frame in frames {
                let range = tables.before(frame).text_end..tables.before(frame + 1).text_end;
                if text.get(range).is_none() {
                    return Err(dropped(tables.sequence(frame)));
                }
            }
        }
        Ok(())
    }

    /// The segments of the range, each with the frames in it.
    fn segments(&self) -> impl DoubleEndedIterator<Item = (u32, std::ops::Range<u32>)> + use<'a> {
        let (state, from, to) = (self.state, self.from, self.to);
        let all = if from == to { 0..0 } else { segments(from, to) };
        all.map(move |segment| {
            let first = if segment == from.segment { from.frame } else { 0 };
            let end = if segment == to.segment {
                to.frame
            } else {
                state.loaded(segment).frames.len() as u32
            };
            (segment, first..end)
        })
    }

    fn text_of(&self, segment: u32) -> &SegmentText {
        let read = self.read.get((segment - self.from.segment) as usize).and_then(Option::as_ref);
        match read {
            Some(text) => text,
            None => self.state.text_here(segment).unwrap_or(&self.state.open.text),
        }
    }

    /// How many frames, chunks, bytes and tokens it holds. O(1).
    pub fn totals(&self) -> Totals {
        self.to.before.since(self.from.before)
    }

    /// Whether there is no frame in it.
    pub fn is_empty(&self) -> bool {
        self.totals().frames == 0
    }

    /// The sum of the chunks' tokens. O(1).
    pub fn tokens(&self) -> u64 {
        self.totals().tokens
    }

    /// The bytes of the text. O(1).
    pub fn bytes(&self) -> u64 {
        self.totals().bytes
    }

    /// The sequences of its frames.
    pub fn sequences(&self) -> impl DoubleEndedIterator<Item = FrameSeq> + use<'a> {
        let state = self.state;
        self.segments().flat_map(move |(segment, frames)| {
            frames.map(move |frame| state.loaded(segment).sequence(frame))
        })
    }

    /// The text, in as many pieces as there are segments.
    pub fn text(&self) -> RangeText<'_> {
        RangeText { view: self }
    }

    /// The chunks in order, each with its text.
    pub fn chunks(&self) -> impl Iterator<Item = RangeChunk<'_>> {
        self.segments().flat_map(move |(segment, frames)| {
            let tables = self.state.loaded(segment);
            let text = self.text_of(segment);
            let (first, end) = (tables.before(frames.start), tables.before(frames.end));
            // Frames come with the chunks, so that none is looked for.
            let mut frame = frames.start;
            (first.chunk_end..end.chunk_end).map(move |chunk| {
                while frame + 1 < frames.end && tables.before(frame + 1).chunk_end <= chunk {
                    frame += 1;
                }
                let content = text.get(tables.text_of_chunk(chunk)).unwrap_or_default();
                RangeChunk { chunk: ArchivedChunk { tables, chunk, frame: Some(frame) }, content }
            })
        })
    }

    /// The snapshots of its frames, equal to those that were pushed. Each copies its text.
    pub fn snapshots(&self) -> impl Iterator<Item = (FrameSeq, FrameSnapshot)> {
        self.segments().flat_map(move |(segment, frames)| {
            let (tables, text) = (self.state.loaded(segment), self.text_of(segment));
            frames.map(move |frame| {
                let range = tables.before(frame).text_end..tables.before(frame + 1).text_end;
                let text = text.get(range).unwrap_or_default();
                (tables.sequence(frame), tables.snapshot(frame, text))
            })
        })
    }

    /// The distinct facets in order of first appearance. Runs in O(chunks) time.
    pub fn facets(&self) -> Vec<&'a str> {
        let mut facets = indexmap::IndexSet::<&'a str, foldhash::fast::FixedState>::default();
        for (segment, frames) in self.segments() {
            let tables = self.state.loaded(segment);
            let (first, end) = (tables.before(frames.start), tables.before(frames.end));
            for chunk in first.chunk_end..end.chunk_end {
                facets.extend(ArchivedChunk::new(tables, chunk).facet_ids());
            }
        }
        facets.into_iter().collect()
    }

    /// The chunks by role, in order of first appearance; `None` holds those without one.
    pub fn by_role(&self) -> IndexMap<Option<Role>, Vec<RangeChunk<'_>>> {
        let mut groups = IndexMap::<_, Vec<_>>::new();
        self.chunks().for_each(|chunk| groups.entry(chunk.role()).or_default().push(chunk));
        groups
    }

    /// The chunks by type, in order of first appearance; `None` holds those without one.
    pub fn by_type(&self) -> IndexMap<Option<&str>, Vec<RangeChunk<'_>>> {
        let mut groups = IndexMap::<_, Vec<_>>::new();
        self.chunks().for_each(|chunk| groups.entry(chunk.chunk_type()).or_default().push(chunk));
        groups
    }
}

impl fmt::Debug for RangeView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeView").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

/// The text of a range.
#[derive(Clone, Copy, Debug)]
pub struct RangeText<'v> {
    view: &'v RangeView<'v>,
}

impl<'v> RangeText<'v> {
    /// The bytes in all.
    pub fn len(self) -> usize {
        self.view.bytes() as usize
    }

    /// Whether there is no byte.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The text, where one segment holds it: most ranges of up to some hundred kilobytes.
    pub fn as_str(self) -> Option<&'v str> {
        let mut pieces = self.pieces();
        let first = pieces.next().unwrap_or_default();
        pieces.next().is_none().then_some(first)
    }

    /// The text piece by piece, one for each segment that holds some. Copies nothing.
    pub fn pieces(self) -> impl Iterator<Item = &'v str> {
        self.view.segments().filter_map(move |(segment, frames)| {
            let tables = self.view.state.loaded(segment);
            let range = tables.before(frames.start).text_end..tables.before(frames.end).text_end;
            let piece = self.view.text_of(segment).get(range);
            piece.filter(|piece| !piece.is_empty())
        })
    }

    /// The text in one: borrowed where one segment holds it, else copied once.
    pub fn join(self) -> Cow<'v, str> {
        if let Some(text) = self.as_str() {
            return Cow::Borrowed(text);
        }
        let mut text = String::with_capacity(self.len());
        self.pieces().for_each(|piece| text.push_str(piece));
        Cow::Owned(text)
    }
}

impl fmt::Display for RangeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|piece| f.write_str(piece))
    }
}

/// What is known of a chunk in an archive, its text aside. Cheap to copy.
#[derive(Clone, Copy)]
pub struct ArchivedChunk<'a> {
    pub(super) tables: &'a Tables,
    /// Its number in the segment.
    pub(super) chunk: u32,
    /// The number of its frame, where that is known without looking for it.
    frame: Option<u32>,
}

impl<'a> ArchivedChunk<'a> {
    pub(super) fn new(tables: &'a Tables, chunk: u32) -> Self {
        Self { tables, chunk, frame: None }
    }

    fn frame(self) -> u32 {
        self.frame.unwrap_or_else(|| self.tables.frame_of_chunk(self.chunk))
    }

    /// The sequence of its frame. O(log n).
    pub fn sequence(self) -> FrameSeq {
        self.tables.sequence(self.frame())
    }

    /// The index in the frame's snapshot, from zero. O(log n).
    pub fn index(self) -> usize {
        (self.chunk - self.tables.before(self.frame()).chunk_end) as usize
    }

    /// Where the text stands in the frame's text. O(log n).
    pub fn range(self) -> TextRange {
        let range = self.tables.text_of_chunk(self.chunk);
        let start = range.start - self.tables.before(self.frame()).text_end;
        TextRange::at(start as usize, range.len())
    }

    /// The tokens of the text alone.
    pub fn tokens(self) -> u64 {
        self.tables.tokens_of_chunk(self.chunk)
    }

    /// The facets that the text represents; none for formatting.
    pub fn facet_ids(self) -> impl Iterator<Item = &'a str> + Clone {
        let facets = self.tables.facets_of(self.tables.chunk_row_at(self.chunk).facets);
        let count = facets.as_slice().len();
        (0..count)
            .filter_map(move |at| facets.as_slice().get(at).copied())
            .map(|facet| self.tables.facets.get(facet))
    }

    /// The type of the chunk.
    pub fn chunk_type(self) -> Option<&'a str> {
        self.tables.word(self.tables.kind_of_chunk(self.chunk).chunk_type)
    }

    /// Who speaks it.
    pub fn role(self) -> Option<Role> {
        self.tables.kind_of_chunk(self.chunk).role
    }

    /// Which part of a message it is. Copies ids and names.
    pub fn part(self) -> Part {
        let kind = self.tables.kind_of_chunk(self.chunk);
        if kind.part == PartKind::Text { Part::Text } else { self.tables.part(kind) }
    }

    /// Where it stands in the frame's nesting. Copies the list of what is nested in it.
    pub fn structure(self) -> Option<Structure> {
        self.tables.structure_of_chunk(self.chunk)
    }

    /// Free fields of whoever made the chunk.
    pub fn metadata(self) -> Option<&'a Object> {
        self.tables.rare_of_chunk(self.chunk)?.metadata.as_deref()
    }
}

impl fmt::Debug for ArchivedChunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchivedChunk")
            .field("sequence", &self.sequence())
            .field("index", &self.index())
            .field("range", &self.range())
            .field("tokens", &self.tokens())
            .field("facet_ids", &self.facet_ids().collect::<Vec<_>>())
            .field("chunk_type", &self.chunk_type())
            .field("role", &self.role())
            .field("part", &self.part())
            .finish_non_exhaustive()
    }
}

/// A chunk of a range, with its text. Cheap to copy.
#[derive(Clone, Copy)]
pub struct RangeChunk<'v> {
    chunk: ArchivedChunk<'v>,
    content: &'v str,
}

impl<'v> RangeChunk<'v> {
    /// The rendered text.
    pub fn content(self) -> &'v str {
        self.content
    }

    /// The owned form. Copies the text.
    pub fn to_owned(self) -> RenderedChunk {
        let chunk = self.chunk.tables.chunk_without_text(self.chunk.chunk);
        RenderedChunk { content: self.content.to_owned(), ..chunk }
    }
}

impl<'v> Deref for RangeChunk<'v> {
    type Target = ArchivedChunk<'v>;

    fn deref(&self) -> &ArchivedChunk<'v> {
        &self.chunk
    }
}

impl fmt::Debug for RangeChunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeChunk")
            .field("chunk", &self.chunk)
            .field("content", &self.content)
            .finish()
    }
}
