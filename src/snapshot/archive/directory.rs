use std::sync::{Arc, OnceLock};

use super::{frame_rows::FrameRow, sealed_tables::SealedTables, state::Places, text::SegmentText};

/// Segments are listed in blocks, so that a new one moves no more than a block while readers hold
/// the list.
const BLOCK: usize = 256;

/// How many frames, chunks, bytes and tokens there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// Frames.
    pub frames: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of text, also of text that was dropped.
    pub bytes: u64,
    /// The sum of the chunks' tokens. A token may cross the border of two chunks, so this is not
    /// the count of the joined text.
    pub tokens: u64,
}

impl Totals {
    /// The sums of both; `None` past 64 bits.
    pub(super) fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            frames: self.frames.checked_add(other.frames)?,
            chunks: self.chunks.checked_add(other.chunks)?,
            bytes: self.bytes.checked_add(other.bytes)?,
            tokens: self.tokens.checked_add(other.tokens)?,
        })
    }

    /// The sums of both, of what fits memory.
    pub(crate) fn plus(self, other: Self) -> Self {
        self.checked_add(other).unwrap_or(self)
    }

    /// What is here and was not in `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames.saturating_sub(before.frames),
            chunks: self.chunks.saturating_sub(before.chunks),
            bytes: self.bytes.saturating_sub(before.bytes),
            tokens: self.tokens.saturating_sub(before.tokens),
        }
    }
}

/// A segment that takes no more frames.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) first_sequence: u64,
    /// What all segments before hold.
    pub(super) before: Totals,
    pub(super) tables: TablesOf,
    /// The frames, where the tables are in memory from the start.
    pub(super) frames: Option<Arc<Vec<FrameRow>>>,
    pub(super) text: TextOf,
    /// Where it is in the store; `None` where it is not, and where that was lost.
    pub(super) places: Option<Places>,
}

/// Where the tables of a segment are.
#[derive(Clone, Debug)]
pub(super) enum TablesOf {
    Memory(Arc<SealedTables>),
    /// In a store; once they were read they stay.
    Store(Arc<OnceLock<Arc<SealedTables>>>),
}

/// Where the text of a segment is.
#[derive(Clone, Debug)]
pub(super) enum TextOf {
    Memory(Arc<SegmentText>),
    /// In a store, read where it is asked for.
    Store,
}

/// All segments that take no more frames, in order. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    first_sequence: u64,
    segments: Arc<Segments>,
}

/// The segments of a block. Their first sequences stand apart as well: those of a million frames
/// fit the CPU's cache, so that a search waits for nothing but the entry that it finds.
#[derive(Clone, Debug, Default)]
struct Segments {
    first_sequences: Vec<u64>,
    entries: Vec<Entry>,
}

impl Directory {
    pub(super) fn push(&mut self, entry: Entry) {
        let first_sequence = entry.first_sequence;
        if self.blocks.last().is_none_or(|block| block.segments.entries.len() >= BLOCK) {
            self.blocks.push(Block { first_sequence, segments: Arc::default() });
        }
        if let Some(block) = self.blocks.last_mut() {
            let segments = Arc::make_mut(&mut block.segments);
            segments.first_sequences.push(first_sequence);
            segments.entries.push(entry);
        }
    }

    pub(super) fn len(&self) -> usize {
        let full = self.blocks.len().saturating_sub(1) * BLOCK;
        full + self.blocks.last().map_or(0, |last| last.segments.entries.len())
    }

    pub(super) fn get(&self, segment: u32) -> Option<&Entry> {
        let block = self.blocks.get(segment as usize / BLOCK)?;
        block.segments.entries.get(segment as usize % BLOCK)
    }

    /// The entry, to be changed, its first sequence aside. Readers keep the one they have.
    pub(super) fn get_mut(&mut self, segment: u32) -> Option<&mut Entry> {
        let block = self.blocks.get_mut(segment as usize / BLOCK)?;
        Arc::make_mut(&mut block.segments).entries.get_mut(segment as usize % BLOCK)
    }

    /// The number of leading segments whose first sequence is not above `sequence`. Runs in
    /// O(log n) time.
    pub(super) fn beginning_by(&self, sequence: u64) -> usize {
        let blocks = self.blocks.partition_point(|block| block.first_sequence <= sequence);
        let Some(last) = blocks.checked_sub(1) else { return 0 };
        let inside = self.blocks.get(last).map_or(0, |block| {
            block.segments.first_sequences.partition_point(|first| *first <= sequence)
        });
        last * BLOCK + inside
    }
}
