use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};

use super::FrameBatch;
use crate::{
    id::FrameSeq,
    snapshot::{SealedSegment, Totals},
};

/// The frames of a history that are packed, from the first on.
#[derive(Clone, Debug, Default)]
pub(in crate::veil) struct PackedFrames {
    /// With the index of the first frame of each.
    batches: Vec<(usize, Arc<FrameBatch>)>,
    len: usize,
}

impl PackedFrames {
    pub(in crate::veil) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::veil) fn push(&mut self, batch: Arc<FrameBatch>) {
        let first = self.len;
        self.len += batch.len();
        self.batches.push((first, batch));
    }

    /// The batch of a frame, and its number in it. O(log n).
    pub(in crate::veil) fn at(&self, index: usize) -> Option<(&Arc<FrameBatch>, u32)> {
        let after = self.batches.partition_point(|(first, _)| *first <= index);
        let (first, batch) = self.batches.get(after.checked_sub(1)?)?;
        let row = index - first;
        (row < batch.len()).then_some((batch, row as u32))
    }

    pub(in crate::veil) fn segments(&self) -> impl Iterator<Item = SealedSegment> {
        self.batches.iter().map(|(_, batch)| batch.segment().clone())
    }

    pub(in crate::veil) fn shrink_to_fit(&mut self) {
        self.batches.shrink_to_fit();
    }

    /// Forgets frames. Gives what was forgotten.
    pub(in crate::veil) fn forget(&mut self, range: &RangeInclusive<FrameSeq>) -> Totals {
        let mut forgotten = Totals::default();
        for (_, batch) in &mut self.batches {
            let rows = rows_in(batch, range);
            let totals = batch.segment().totals(rows.clone());
            let has_any = rows.clone().any(|row| !batch.is_forgotten(row));
            if !has_any {
                continue;
            }
            let segment = batch.segment().without(&rows);
            *batch = Arc::new(batch.without(segment, &rows));
            forgotten = forgotten.plus(totals);
        }
        forgotten
    }
}

/// The frames of a batch that are in a range.
fn rows_in(batch: &FrameBatch, range: &RangeInclusive<FrameSeq>) -> Range<u32> {
    let rows = 0..batch.len() as u32;
    let start = rows.clone().find(|row| batch.sequence(*row) >= *range.start());
    let end = rows.clone().find(|row| batch.sequence(*row) > *range.end());
    let end = end.unwrap_or(rows.end);
    start.unwrap_or(rows.end).min(end)..end
}
