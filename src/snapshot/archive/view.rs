use std::{borrow::Cow, fmt, sync::Arc};

use super::{
    RangeByRole, Totals,
    place::ArchivedPlace,
    reader::dropped,
    state::{Cursor, State},
    text::SegmentText,
    writer::segments,
};
use crate::{
    Result,
    id::FrameSeq,
    snapshot::{ChunkRef, FrameSnapshot},
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

    /// The sequences of its frames. O(frames) for all of them.
    pub fn sequences(&self) -> impl DoubleEndedIterator<Item = FrameSeq> + use<'a> {
        let state = self.state;
        self.segments().flat_map(move |(segment, frames)| {
            frames.map(move |frame| state.loaded(segment).sequence(frame))
        })
    }

    /// The chunks by who speaks them. Reads a number of each chunk and no more: 1 to 3 ns a chunk.
    pub fn by_role(&self) -> RangeByRole<'_> {
        let mut by_role = RangeByRole::new(self);
        for (segment, frames) in self.segments() {
            let tables = self.state.loaded(segment);
            let chunks = tables.before(frames.start).chunk_end..tables.before(frames.end).chunk_end;
            by_role.add(segment, tables, chunks);
        }
        by_role
    }

    /// A chunk of a segment that is in the range.
    pub(super) fn chunk_of(&self, segment: u32, chunk: u32) -> ChunkRef<'_> {
        let tables = self.state.loaded(segment);
        let content = self.text_of(segment).get(tables.text_of_chunk(chunk)).unwrap_or_default();
        ChunkRef::archived(ArchivedPlace::new(tables, chunk), content)
    }

    /// The text, in as many pieces as there are segments.
    pub fn text(&self) -> RangeText<'_> {
        RangeText { view: self }
    }

    /// The chunks in order, each with its text. O(chunks) for all of them.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkRef<'_>> {
        self.segments().flat_map(move |(segment, frames)| self.chunks_in(segment, frames))
    }

    /// The frames in order, each with its chunks. O(chunks) for all of them.
    pub fn frames(&self) -> impl Iterator<Item = (FrameSeq, impl Iterator<Item = ChunkRef<'_>>)> {
        self.segments().flat_map(move |(segment, frames)| {
            let tables = self.state.loaded(segment);
            let chunks = move |frame| self.chunks_in(segment, frame..frame + 1);
            frames.map(move |frame| (tables.sequence(frame), chunks(frame)))
        })
    }

    fn chunks_in(
        &self,
        segment: u32,
        frames: std::ops::Range<u32>,
    ) -> impl Iterator<Item = ChunkRef<'_>> {
        let tables = self.state.loaded(segment);
        let text = self.text_of(segment);
        let (first, end) = (tables.before(frames.start), tables.before(frames.end));
        let rows = tables.chunks.get(first.chunk_end as usize..end.chunk_end as usize);
        // Frames come with the chunks, so that none is looked for.
        let mut frame = frames.start;
        let mut frame_end = tables.before(frame + 1).chunk_end;
        let mut start = first.text_end;
        (first.chunk_end..).zip(rows.unwrap_or_default()).map(move |(chunk, row)| {
            while frame + 1 < frames.end && frame_end <= chunk {
                frame += 1;
                frame_end = tables.before(frame + 1).chunk_end;
            }
            let content = text.get(start..row.text_end).unwrap_or_default();
            start = row.text_end;
            ChunkRef::archived(ArchivedPlace::in_frame(tables, chunk, frame), content)
        })
    }

    /// The snapshots of its frames, equal to those that were pushed. Each copies its text. O(text
    /// and chunks) for all of them.
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
}

/// The chunks of a view, in order.
#[expect(clippy::into_iter_without_iter, reason = "the method is called `chunks`")]
impl<'v> IntoIterator for &'v RangeView<'_> {
    type Item = ChunkRef<'v>;
    type IntoIter = Box<dyn Iterator<Item = ChunkRef<'v>> + 'v>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.chunks())
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

    /// The text, where one segment holds it: most ranges of up to some hundred kilobytes. O(segments).
    pub fn as_str(self) -> Option<&'v str> {
        let mut pieces = self.pieces();
        let first = pieces.next().unwrap_or_default();
        pieces.next().is_none().then_some(first)
    }

    /// The text piece by piece, one for each segment that holds some. Copies nothing. O(segments)
    /// for all of them.
    pub fn pieces(self) -> impl Iterator<Item = &'v str> {
        self.view.segments().filter_map(move |(segment, frames)| {
            let tables = self.view.state.loaded(segment);
            let range = tables.before(frames.start).text_end..tables.before(frames.end).text_end;
            let piece = self.view.text_of(segment).get(range);
            piece.filter(|piece| !piece.is_empty())
        })
    }

    /// The text in one: borrowed where one segment holds it, else copied once. O(text), where it
    /// lies in several segments.
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
