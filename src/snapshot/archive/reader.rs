use std::{ops::RangeInclusive, sync::Arc};

use super::{
    RangeView, Totals, names,
    place::ArchivedPlace,
    state::{CountedBy, Cursor, State},
    writer::segments,
};
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    snapshot::{ChunkInfo, FrameSnapshot, check_range},
};

/// What an archive held at one moment. Cheap to clone, and may be sent to other threads; an
/// archive that takes more frames does not change it.
#[derive(Clone, Debug, Default)]
pub struct ArchiveReader {
    pub(super) state: Arc<State>,
}

impl ArchiveReader {
    /// The number of frames.
    pub fn len(&self) -> usize {
        self.totals().frames as usize
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many frames, chunks, bytes and tokens there are in all. O(1).
    pub fn totals(&self) -> Totals {
        self.state.totals()
    }

    /// The sequence of the last frame.
    pub fn last_sequence(&self) -> Option<FrameSeq> {
        self.state.last_sequence
    }

    /// What counted the tokens; `None` where nobody said, and as long as there is no chunk.
    pub fn tokenizer(&self) -> Option<&str> {
        match &self.state.counted_by {
            CountedBy::Tokenizer(name) => Some(name),
            CountedBy::Nothing | CountedBy::Declared => None,
        }
    }

    /// Whether there is a frame with this sequence. O(log n).
    ///
    /// # Errors
    /// Those of reading a store.
    pub fn contains(&self, sequence: FrameSeq) -> Result<bool> {
        let (from, to) = self.cursors(&(sequence..=sequence))?;
        Ok(from.before != to.before)
    }

    /// A view of one frame; `None` where there is none with this sequence. O(log n).
    ///
    /// # Errors
    /// Those of [`ArchiveReader::range`].
    pub fn get(&self, sequence: impl Into<FrameSeq>) -> Result<Option<RangeView<'_>>> {
        let sequence = sequence.into();
        let view = self.range(sequence..=sequence)?;
        Ok((view.totals().frames > 0).then_some(view))
    }

    /// The snapshot of a frame, equal to the one that was pushed. Copies its text; O(log n)
    /// besides.
    ///
    /// # Errors
    /// Those of [`ArchiveReader::range`].
    pub fn snapshot(&self, sequence: impl Into<FrameSeq>) -> Result<Option<FrameSnapshot>> {
        Ok(self
            .get(sequence)?
            .and_then(|view| view.snapshots().next())
            .map(|(_, snapshot)| snapshot))
    }

    /// A view of the frames from `range.start()` to `range.end()`, both included; sequences that
    /// do not exist are passed over, so a range outside of the history is empty.
    ///
    /// Runs in O(log n) time and copies nothing where all text is in memory. Text in a store is
    /// read here, so that a view never fails.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the range runs backwards, [`ErrorKind::Dropped`] where text
    /// in it was dropped, and those of reading a store.
    pub fn range(&self, range: RangeInclusive<FrameSeq>) -> Result<RangeView<'_>> {
        let (from, to) = self.cursors(&range)?;
        RangeView::new(&self.state, from, to)
    }

    /// A view of all frames. O(log n) where all text is in memory; else it reads all text of the
    /// store, and holds it.
    ///
    /// # Errors
    /// Those of [`ArchiveReader::range`].
    pub fn all(&self) -> Result<RangeView<'_>> {
        self.range(FrameSeq::new(0)..=FrameSeq::new(u64::MAX))
    }

    /// How many frames, chunks, bytes and tokens a range holds, also where its text was dropped.
    /// Runs in O(log n) time over the segments and reads no text.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the range runs backwards, and those of reading a store.
    pub fn measure(&self, range: RangeInclusive<FrameSeq>) -> Result<Totals> {
        let (from, to) = self.cursors(&range)?;
        Ok(to.before.since(from.before))
    }

    /// The chunks that represent `facet`, alone or with others, in order; none for a facet that is
    /// not known. Their text may have been dropped.
    ///
    /// Runs in time proportional to the chunks found, and O(log n) for each segment that holds
    /// some. On an archive of a history, each of the first 16 calls indexes a sixteenth of its
    /// segments, and searches the facet names of the others. Indexing a segment is linear in its
    /// chunks, but for the sort of its facets. The first call on an archive that was opened reads
    /// all its tables and indexes them. A push indexes a segment that it seals.
    ///
    /// # Errors
    /// Those of reading a store.
    pub fn chunks_of(&self, facet: &str) -> Result<Vec<ChunkInfo<'_>>> {
        self.chunks_of_in(facet, FrameSeq::new(0)..=FrameSeq::new(u64::MAX))
    }

    /// As [`ArchiveReader::chunks_of`], in the frames of a range. Costs what
    /// [`ArchiveReader::chunks_of`] does, for the segments of the range.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where the range runs backwards, and those of reading a store.
    pub fn chunks_of_in(
        &self,
        facet: &str,
        range: RangeInclusive<FrameSeq>,
    ) -> Result<Vec<ChunkInfo<'_>>> {
        let (from, to) = self.cursors(&range)?;
        let mut found = Vec::new();
        if from.before == to.before {
            return Ok(found);
        }
        let last = segments(from, to).end.saturating_sub(1);
        let hash = names::hash(facet);
        for segment in self.state.segments_of(facet, names::print(hash), from.segment, last) {
            let tables = self.state.tables(segment)?;
            let chunks = self.state.chunks_of(segment, facet, hash)?;
            let first =
                if segment == from.segment { tables.before(from.frame).chunk_end } else { 0 };
            let end =
                if segment == to.segment { tables.before(to.frame).chunk_end } else { u32::MAX };
            let skip = chunks.partition_point(|chunk| *chunk < first);
            let chunks = chunks.iter().skip(skip).take_while(|chunk| **chunk < end);
            found.extend(
                chunks.map(|chunk| ChunkInfo::archived(ArchivedPlace::new(tables, *chunk))),
            );
        }
        Ok(found)
    }

    /// The places before the first frame of a range and after its last.
    pub(super) fn cursors(&self, range: &RangeInclusive<FrameSeq>) -> Result<(Cursor, Cursor)> {
        check_range(range)?;
        let state = &self.state;
        // Both ends are searched before either is read, so that one does not wait for the other.
        let from = state.find(range.start().get());
        let next = range.end().next().filter(|next| self.last_sequence() >= Some(*next));
        let to = next.map(|next| state.find(next.get()));
        let from = state.cursor(from)?;
        let to = to.map_or_else(|| Ok(state.end()), |to| state.cursor(to))?;
        Ok((from, to))
    }
}

/// The error of a frame whose text was dropped.
pub(super) fn dropped(sequence: FrameSeq) -> Error {
    Error::new(ErrorKind::Dropped, "the text of the frame was dropped").at_frame(sequence.get())
}
