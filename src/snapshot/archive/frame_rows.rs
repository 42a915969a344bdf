use std::{ops::Deref, sync::Arc};

/// A frame: where it ends, and what is known of it as a whole. Each sum begins with the segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameRow {
    pub(super) tokens_end: u64,
    pub(super) captured_at: i64,
    pub(super) text_end: u32,
    pub(super) chunk_end: u32,
    /// The exact count of the whole text and one; zero where it is not known.
    pub(super) exact: u32,
    /// What the sequence is beyond that of the segment's first frame.
    pub(super) sequence: u32,
}

const _: () = assert!(size_of::<FrameRow>() == 32);

/// The frames of a segment. Those of a sealed one are shared with the directory, so that a search
/// reads nothing else.
#[derive(Clone, Debug)]
pub(super) enum FrameRows {
    Growing(Vec<FrameRow>),
    Sealed(Arc<[FrameRow]>),
}

impl Default for FrameRows {
    fn default() -> Self {
        Self::Growing(Vec::new())
    }
}

impl Deref for FrameRows {
    type Target = [FrameRow];

    fn deref(&self) -> &[FrameRow] {
        match self {
            Self::Growing(rows) => rows,
            Self::Sealed(rows) => rows,
        }
    }
}

impl FrameRows {
    /// Adds a frame. A sealed segment takes none.
    pub(super) fn push(&mut self, row: FrameRow) {
        if let Self::Growing(rows) = self {
            rows.push(row);
        }
    }

    pub(super) fn reserve(&mut self, more: usize) {
        if let Self::Growing(rows) = self {
            rows.reserve_exact(more);
        }
    }

    /// Ends the growth.
    pub(super) fn seal(&mut self) {
        if let Self::Growing(rows) = self {
            *self = Self::Sealed(std::mem::take(rows).into());
        }
    }

    /// The frames of a sealed segment.
    pub(super) fn shared(&self) -> Option<&Arc<[FrameRow]>> {
        match self {
            Self::Growing(_) => None,
            Self::Sealed(rows) => Some(rows),
        }
    }
}

/// The number of the first frame whose sequence is not less than `beyond` after the first one's.
/// O(1) where sequences rise by one, O(log n) else.
pub(super) fn frame_from(rows: &[FrameRow], beyond: u64) -> u32 {
    let is_here = |row: &FrameRow| u64::from(row.sequence) == beyond;
    match usize::try_from(beyond).ok().filter(|at| rows.get(*at).is_some_and(is_here)) {
        Some(at) => at as u32,
        None => rows.partition_point(|row| u64::from(row.sequence) < beyond) as u32,
    }
}

/// Where a frame begins: the row of the frame before it, or zeros.
pub(super) fn before(rows: &[FrameRow], frame: u32) -> FrameRow {
    let before = (frame as usize).checked_sub(1);
    before.and_then(|before| rows.get(before)).copied().unwrap_or_default()
}
