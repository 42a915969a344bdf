use std::{fmt, ops::Range, sync::Arc};

use super::{
    Totals, open_tables::OpenTables, place::ArchivedPlace, sealed_tables::SealedTables,
    tables::Tables, text::SegmentText,
};
use crate::{
    id::{FrameSeq, Role},
    snapshot::{
        ChunkRef, FrameSnapshot, SnapshotIdentity,
        frame_snapshot::{Body, OwnBody},
    },
};

/// A segment takes no frame beyond this many bytes of text.
const SEGMENT_BYTES: usize = 256 << 10;

/// A segment that takes no more frames, with its text. Cheap to clone, and kept alive by whoever
/// holds it.
#[derive(Clone)]
pub(crate) struct SealedSegment {
    pub(super) tables: Arc<SealedTables>,
    pub(super) text: Arc<SegmentText>,
}

impl SealedSegment {
    /// How many frames it holds.
    pub(crate) fn len(&self) -> usize {
        self.tables.frames.len()
    }

    /// The sequence of a frame.
    pub(crate) fn sequence(&self, frame: u32) -> FrameSeq {
        self.tables.sequence(frame)
    }

    /// The text of a frame; `None` where it was dropped.
    pub(crate) fn text(&self, frame: u32) -> Option<&str> {
        self.text.get(self.range(frame))
    }

    /// The text of a chunk of a frame.
    pub(crate) fn chunk_text(&self, frame: u32, chunk: u32) -> Option<&str> {
        let first = self.tables.before(frame).chunk_end;
        self.text.get(self.tables.text_of_chunk(first + chunk))
    }

    /// The first facet of a chunk of a frame.
    pub(crate) fn chunk_facet(&self, frame: u32, chunk: u32) -> Option<&str> {
        let first = self.tables.before(frame).chunk_end;
        ArchivedPlace::in_frame(&self.tables, first + chunk, frame).facets().next()
    }

    /// The snapshot of a frame, whose text stays here; `None` where it was dropped.
    pub(crate) fn snapshot(&self, frame: u32) -> Option<FrameSnapshot> {
        let archived = self.archived(frame)?;
        Some(self.tables.snapshot_with(frame, Body::Archived(archived)))
    }

    /// A frame, which stays here; `None` where its text was dropped.
    pub(crate) fn archived(&self, frame: u32) -> Option<ArchivedFrame> {
        self.text(frame)?;
        Some(ArchivedFrame { segment: self.clone(), frame })
    }

    /// The segment without the texts of these frames. Copies the texts that stay.
    pub(crate) fn without(&self, frames: &Range<u32>) -> Self {
        let end = |frame: u32| self.tables.before(frame).text_end;
        let text = self.text.without(end(self.len() as u32), &(end(frames.start)..end(frames.end)));
        Self { tables: Arc::clone(&self.tables), text: Arc::new(text) }
    }

    /// The segment with nothing but its frames: their texts, chunks and facets are forgotten.
    pub(crate) fn forgotten(&self) -> Self {
        let tables = Tables {
            first_sequence: self.tables.first_sequence,
            frames: Arc::clone(&self.tables.frames),
            ..Tables::default()
        };
        let text = SegmentText::from_parts(String::new(), Some(Box::default()));
        Self {
            tables: Arc::new(SealedTables::new(tables)),
            text: Arc::new(text.unwrap_or_default()),
        }
    }

    /// What is left of these frames.
    pub(crate) fn totals(&self, frames: Range<u32>) -> Totals {
        let mut totals = Totals::default();
        for frame in frames.filter(|frame| self.text(*frame).is_some()) {
            let (before, row) = (self.tables.before(frame), self.tables.before(frame + 1));
            totals.frames += 1;
            totals.chunks += u64::from(row.chunk_end - before.chunk_end);
            totals.bytes += u64::from(row.text_end - before.text_end);
            totals.tokens += row.tokens_end - before.tokens_end;
        }
        totals
    }

    fn range(&self, frame: u32) -> Range<u32> {
        self.tables.before(frame).text_end..self.tables.before(frame + 1).text_end
    }
}

/// Frames that become a segment.
#[derive(Default)]
pub(crate) struct SegmentBuilder {
    tables: OpenTables,
    text: SegmentText,
    first: Option<FrameSeq>,
}

impl SegmentBuilder {
    /// With room for the first of these snapshots, as far as a segment takes them.
    pub(crate) fn for_snapshots<'s>(all: impl Iterator<Item = &'s FrameSnapshot>) -> Self {
        let mut builder = Self::default();
        let (mut frames, mut chunks, mut bytes) = (0, 0, 0);
        for snapshot in all {
            bytes += snapshot.text().len();
            if bytes > SEGMENT_BYTES && frames > 0 {
                bytes -= snapshot.text().len();
                break;
            }
            frames += 1;
            chunks += snapshot.len();
        }
        builder.text.reserve(bytes);
        builder.tables.reserve(frames, chunks);
        builder
    }

    /// Adds a frame, whose sequence is greater than the last. Says whether the segment has room for
    /// it; a frame that is larger than a segment may be is one by itself.
    pub(crate) fn push(&mut self, sequence: FrameSeq, snapshot: &FrameSnapshot) -> bool {
        let first = *self.first.get_or_insert(sequence);
        let bytes = self.text.held().len() + snapshot.text().len();
        let is_beyond = bytes > SEGMENT_BYTES && !self.tables.frames.is_empty()
            || bytes > u32::MAX as usize
            || sequence.get() - first.get() > u64::from(u32::MAX);
        if !is_beyond {
            self.tables.push(sequence, snapshot);
            self.text.push(snapshot.text(), SEGMENT_BYTES);
        }
        !is_beyond
    }

    /// The segment; `None` without a frame.
    pub(crate) fn finish(self) -> Option<SealedSegment> {
        let Self { tables, mut text, .. } = self;
        if tables.frames.is_empty() {
            return None;
        }
        text.shrink_to_fit();
        Some(SealedSegment { tables: Arc::new(tables.seal()), text: Arc::new(text) })
    }
}

impl fmt::Debug for SealedSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedSegment").field("frames", &self.len()).finish_non_exhaustive()
    }
}

/// A frame in a segment, which it keeps alive: what a snapshot is whose text is archived.
#[derive(Clone, Debug)]
pub(crate) struct ArchivedFrame {
    segment: SealedSegment,
    frame: u32,
}

impl ArchivedFrame {
    pub(in crate::snapshot) fn text(&self) -> &str {
        self.segment.text(self.frame).unwrap_or_default()
    }

    pub(in crate::snapshot) fn len(&self) -> usize {
        let chunks = self.chunks();
        (chunks.end - chunks.start) as usize
    }

    pub(in crate::snapshot) fn chunk(&self, index: usize) -> Option<ChunkRef<'_>> {
        let chunks = self.chunks();
        let chunk = chunks.start.checked_add(u32::try_from(index).ok()?)?;
        let tables = &self.segment.tables;
        let text = self.segment.text.get(tables.text_of_chunk(chunk))?;
        let place = ArchivedPlace::in_frame(tables, chunk, self.frame);
        chunks.contains(&chunk).then(|| ChunkRef::archived(place, text))
    }

    /// The index of the chunk that holds a byte of the frame's text.
    pub(in crate::snapshot) fn index_at(&self, offset: usize) -> usize {
        let tables = &self.segment.tables;
        let (before, chunks) = (tables.before(self.frame), self.chunks());
        let Some(byte) = u32::try_from(offset).ok().and_then(|at| at.checked_add(before.text_end))
        else {
            return self.len();
        };
        (tables.chunk_at(byte).clamp(chunks.start, chunks.end) - chunks.start) as usize
    }

    pub(in crate::snapshot) fn to_own(&self) -> OwnBody {
        self.segment.tables.own_body(self.frame, self.text())
    }

    /// Who speaks the chunk at `index`.
    pub(in crate::snapshot) fn role(&self, index: usize) -> Option<Role> {
        let tables = &self.segment.tables;
        tables.kind_of_chunk(self.chunks().start.checked_add(u32::try_from(index).ok()?)?).role
    }

    pub(in crate::snapshot) fn total_tokens(&self) -> u64 {
        let tables = &self.segment.tables;
        tables.before(self.frame + 1).tokens_end - tables.before(self.frame).tokens_end
    }

    pub(in crate::snapshot) fn exact_tokens(&self) -> Option<u64> {
        self.segment.tables.exact_tokens(self.frame)
    }

    pub(in crate::snapshot) fn identity(&self) -> Option<&Arc<SnapshotIdentity>> {
        self.segment.tables.identity(self.frame)
    }

    fn chunks(&self) -> Range<u32> {
        let tables = &self.segment.tables;
        tables.before(self.frame).chunk_end..tables.before(self.frame + 1).chunk_end
    }
}
