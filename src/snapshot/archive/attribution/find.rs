use std::{
    fmt,
    ops::{Range, RangeInclusive},
};

use memchr::memmem::Finder;

use super::{
    super::{
        ArchiveReader, Totals,
        place::ArchivedPlace,
        reader::dropped,
        state::{Cursor, State},
        tables::Tables,
    },
    Text, frames_between, segments_between,
};
use crate::{
    Error, Result,
    id::FrameSeq,
    snapshot::{ChunkInfo, get_snapshot_facets},
    text::TextRange,
};

impl ArchiveReader {
    /// Every place of a phrase in the text of the frames, in order; the first match is in the
    /// first frame in which the phrase appeared.
    ///
    /// A place lies in one frame and may touch several of its chunks. Overlapping places are all
    /// found: `aa` twice in `aaa`. Bytes are compared as they are, and the empty phrase is
    /// nowhere.
    ///
    /// The search goes on only as far as it is asked, so that the first match costs a scan up to
    /// it; text in a store is read segment by segment on the way. Runs in O(text) time, and
    /// O(phrase) for each place.
    ///
    /// A frame that could hold the phrase and whose text was dropped is an error of kind
    /// [`ErrorKind::Dropped`](crate::ErrorKind::Dropped) in its place, so that no frame is passed
    /// over in silence; a segment that cannot be read is one error for all its frames. The search
    /// goes on after either.
    ///
    /// ```
    /// use afterimage::{
    ///     id::Millis,
    ///     snapshot::{ChunkOptions, FrameSnapshotBuilder, SnapshotArchive},
    ///     tokens::Chars4,
    /// };
    ///
    /// let mut archive = SnapshotArchive::new();
    /// for (sequence, text) in ["All quiet.", "The hull is breached."].iter().enumerate() {
    ///     let mut builder = FrameSnapshotBuilder::new(&Chars4);
    ///     builder.add_content(text, ChunkOptions::new().facet(format!("event-{sequence}")));
    ///     archive.push(sequence as u64, &builder.build(Millis::new(0)))?;
    /// }
    /// let first = archive.find("hull").next().unwrap()?;
    /// assert_eq!((first.sequence().get(), first.range().start()), (1, 4));
    /// assert_eq!(first.facet_ids(), ["event-1"]);
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn find(&self, phrase: &str) -> PhraseMatches<'_> {
        let from = Cursor { segment: 0, frame: 0, before: Totals::default() };
        PhraseMatches::new(&self.state, from, self.state.end(), phrase)
    }

    /// As [`ArchiveReader::find`], in the frames of a range. Runs in O(text of the range) time, as
    /// far as it is asked, and reads those segments of a store alone.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) where the range runs backwards, and
    /// those of reading the tables of a store.
    pub fn find_in(
        &self,
        phrase: &str,
        range: RangeInclusive<FrameSeq>,
    ) -> Result<PhraseMatches<'_>> {
        let (from, to) = self.cursors(&range)?;
        Ok(PhraseMatches::new(&self.state, from, to, phrase))
    }
}

/// The places of a phrase: see [`ArchiveReader::find`].
pub struct PhraseMatches<'a> {
    state: &'a State,
    from: Cursor,
    to: Cursor,
    /// The segments that were not begun.
    segments: Range<u32>,
    phrase: Phrase,
    here: Option<Scan<'a>>,
}

impl<'a> PhraseMatches<'a> {
    fn new(state: &'a State, from: Cursor, to: Cursor, phrase: &str) -> Self {
        let segments = if phrase.is_empty() { 0..0 } else { segments_between(from, to) };
        Self { state, from, to, segments, phrase: Phrase::new(phrase), here: None }
    }

    fn begin(&self, segment: u32) -> Result<Scan<'a>> {
        let tables = self.state.tables(segment)?;
        let text = Text::of(self.state, segment)?;
        let frames = frames_between(self.from, self.to, segment, tables);
        Ok(Scan { tables, text, frames, stretch: 0..0 })
    }
}

impl<'a> Iterator for PhraseMatches<'a> {
    type Item = Result<PhraseMatch<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(scan) = &mut self.here {
                match scan.next(&self.phrase) {
                    Some(found) => return Some(found),
                    None => self.here = None,
                }
            }
            let segment = self.segments.next()?;
            match self.begin(segment) {
                Ok(scan) => self.here = Some(scan),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl std::iter::FusedIterator for PhraseMatches<'_> {}

impl fmt::Debug for PhraseMatches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhraseMatches").field("phrase", &self.phrase).finish_non_exhaustive()
    }
}

/// What is looked for.
#[derive(Debug)]
struct Phrase {
    finder: Finder<'static>,
    bytes: u32,
    /// The bytes of the first character: how far the next place is away at least.
    step: u32,
}

impl Phrase {
    fn new(phrase: &str) -> Self {
        // A text holds less than 4 GiB, and so no longer phrase.
        let bytes = u32::try_from(phrase.len()).unwrap_or(u32::MAX);
        let step = phrase.chars().next().map_or(1, char::len_utf8) as u32;
        Self { finder: Finder::new(phrase).into_owned(), bytes, step }
    }
}

/// The search through one segment.
struct Scan<'a> {
    tables: &'a Tables,
    text: Text<'a>,
    /// The frames that were not begun.
    frames: Range<u32>,
    /// What is left of the text that is being looked through, in the segment: that of all frames
    /// where nothing was dropped, else that of one.
    stretch: Range<u32>,
}

impl<'a> Scan<'a> {
    fn next(&mut self, phrase: &Phrase) -> Option<Result<PhraseMatch<'a>>> {
        loop {
            if let Some(found) = self.next_in_stretch(phrase) {
                return Some(Ok(found));
            }
            if self.frames.is_empty() {
                return None;
            }
            let Range { start, end } = self.frames.clone();
            let end = if self.text.is_whole() { end } else { start + 1 };
            self.frames.start = end;
            self.stretch = self.tables.before(start).text_end..self.tables.before(end).text_end;
            let could_hold = self.stretch.end - self.stretch.start >= phrase.bytes;
            if could_hold && self.text.get(self.stretch.clone()).is_none() {
                self.stretch = 0..0;
                return Some(Err(self.gone(start)));
            }
        }
    }

    fn gone(&self, frame: u32) -> Error {
        dropped(self.tables.sequence(frame))
    }

    fn next_in_stretch(&mut self, phrase: &Phrase) -> Option<PhraseMatch<'a>> {
        loop {
            let text = self.text.get(self.stretch.clone())?;
            let Some(found) = phrase.finder.find(text.as_bytes()) else {
                self.stretch.start = self.stretch.end;
                return None;
            };
            let start = self.stretch.start + found as u32;
            self.stretch.start = start + phrase.step;
            let frame = self.tables.frames.partition_point(|frame| frame.text_end <= start) as u32;
            // What begins in a frame and ends in the next was never one text.
            let end = start + phrase.bytes;
            if end <= self.tables.before(frame + 1).text_end {
                let tables = self.tables;
                return Some(PhraseMatch {
                    tables,
                    frame,
                    chunk: tables.chunk_at(start),
                    start,
                    end,
                });
            }
        }
    }
}

/// A place of a phrase in the text of a frame. Cheap to copy.
#[derive(Clone, Copy)]
pub struct PhraseMatch<'a> {
    tables: &'a Tables,
    frame: u32,
    /// The chunk in which it begins.
    chunk: u32,
    /// Where it is in the segment.
    start: u32,
    end: u32,
}

impl<'a> PhraseMatch<'a> {
    /// The frame.
    pub fn sequence(self) -> FrameSeq {
        self.tables.sequence(self.frame)
    }

    /// Where it stands in the frame's text.
    pub fn range(self) -> TextRange {
        let start = self.start - self.tables.before(self.frame).text_end;
        TextRange::at(start as usize, (self.end - self.start) as usize)
    }

    /// The chunk in which it begins.
    pub fn chunk(self) -> ChunkInfo<'a> {
        ChunkInfo::archived(ArchivedPlace::new(self.tables, self.chunk))
    }

    /// All chunks that it touches, in order; empty ones inside of it are touched too. O(chunks that
    /// it touches) for all of them.
    pub fn chunks(self) -> impl Iterator<Item = ChunkInfo<'a>> {
        let Self { tables, end, .. } = self;
        let rest = self.chunk + 1..tables.before(self.frame + 1).chunk_end;
        let touched = rest.take_while(move |chunk| tables.text_of_chunk(*chunk).start < end);
        let info = |chunk| ChunkInfo::archived(ArchivedPlace::new(tables, chunk));
        std::iter::once(self.chunk).chain(touched).map(info)
    }

    /// The facets of all chunks that it touches, each once, in order of first appearance. O(chunks
    /// that it touches).
    pub fn facet_ids(self) -> Vec<&'a str> {
        get_snapshot_facets(self.chunks())
    }
}

impl fmt::Debug for PhraseMatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhraseMatch")
            .field("sequence", &self.sequence())
            .field("range", &self.range())
            .field("chunk", &self.chunk().index())
            .field("facet_ids", &self.facet_ids())
            .finish()
    }
}
