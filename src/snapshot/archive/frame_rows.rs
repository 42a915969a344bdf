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
