use std::sync::{Arc, OnceLock};

use super::{state::Places, tables::Tables, text::SegmentText};

/// Segments are listed in blocks, so that a new one moves no more than a block while readers hold
/// the list.
const BLOCK: usize = 256;

/// How many frames, chunks, bytes and tokens there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub(super) text: TextOf,
    /// Where it is in the store; `None` where it is not, and where that was lost.
    pub(super) places: Option<Places>,
}

/// Where the tables of a segment are.
#[derive(Clone, Debug)]
pub(super) enum TablesOf {
    Memory(Arc<Tables>),
    /// In a store; once they were read they stay.
    Store(Arc<OnceLock<Arc<Tables>>>),
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
    blocks: Vec<Arc<Vec<Entry>>>,
}

impl Directory {
    pub(super) fn push(&mut self, entry: Entry) {
        match self.blocks.last_mut().filter(|block| block.len() < BLOCK) {
            Some(block) => Arc::make_mut(block).push(entry),
            None => self.blocks.push(Arc::new(vec![entry])),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    pub(super) fn get(&self, segment: u32) -> Option<&Entry> {
        self.blocks.get(segment as usize / BLOCK)?.get(segment as usize % BLOCK)
    }

    /// The entry, to be changed. Readers keep the one they have.
    pub(super) fn get_mut(&mut self, segment: u32) -> Option<&mut Entry> {
        let block = self.blocks.get_mut(segment as usize / BLOCK)?;
        Arc::make_mut(block).get_mut(segment as usize % BLOCK)
    }

    /// The number of leading segments for which `is` holds. Runs in O(log n) time.
    pub(super) fn partition_point(&self, is: impl Fn(&Entry) -> bool) -> usize {
        let blocks = self.blocks.partition_point(|block| block.first().is_some_and(&is));
        let Some(last) = blocks.checked_sub(1) else { return 0 };
        last * BLOCK + self.blocks.get(last).map_or(0, |block| block.partition_point(is))
    }
}
