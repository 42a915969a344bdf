use std::{ops::Range, sync::Arc};

use super::{Frame, History, Source};
use crate::{
    id::FrameSeq,
    snapshot::{FrameSnapshot, SharedSnapshot},
};

/// Frames of a history, in order. Those that the history has packed are read when they are asked
/// for.
///
/// ```
/// use afterimage::veil::{Frame, History, Source};
///
/// let mut history = History::new();
/// for sequence in 0..3_u64 {
///     history.push(Frame::new(sequence, Source::User))?;
/// }
/// assert_eq!(history.frames().len(), 3);
/// assert_eq!(history.frames().last().unwrap().sequence.get(), 2);
/// assert!(history.frames().rev().map(|frame| frame.sequence.get()).eq([2, 1, 0]));
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Frames<'h> {
    history: &'h History,
    range: Range<usize>,
}

impl<'h> Frames<'h> {
    pub(super) fn new(history: &'h History, range: Range<usize>) -> Self {
        Self { history, range }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The frame at `index`. A packed one is read: O(its size).
    pub fn get(&self, index: usize) -> Option<Arc<Frame>> {
        self.at(index).and_then(|at| self.history.frame_at(at))
    }

    /// The first. A packed one is read: O(its size).
    pub fn first(&self) -> Option<Arc<Frame>> {
        self.get(0)
    }

    /// The frames with these indices; none where the range is not within.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        Self { history: self.history, range: self.range.start + start..self.range.start + end }
    }

    /// The sequence of the frame at `index`. Reads no frame. O(log n).
    pub fn sequence(&self, index: usize) -> Option<FrameSeq> {
        self.at(index).and_then(|at| self.history.sequence_at(at))
    }

    /// The source of the frame at `index`. Reads no more of it. O(log n).
    pub fn source(&self, index: usize) -> Option<Source> {
        self.at(index).and_then(|at| self.history.source_at(at))
    }

    /// What the frame at `index` rendered to, where it was captured. Copies no text. O(log n).
    pub fn snapshot(&self, index: usize) -> Option<Arc<FrameSnapshot>> {
        self.at(index).and_then(|at| self.history.snapshot_at(at))
    }

    /// The sequence and the source of the frame at `index`, and what it rendered to. Puts no snapshot
    /// together.
    pub(crate) fn shown(&self, index: usize) -> Option<(FrameSeq, Source, Option<SharedSnapshot>)> {
        self.at(index).and_then(|at| self.history.shown_at(at))
    }

    /// Whether the frame at `index` was forgotten: see [`History::forget`]. O(log n).
    pub fn is_forgotten(&self, index: usize) -> bool {
        self.at(index).is_some_and(|at| self.history.is_forgotten_at(at))
    }

    /// The first index whose frame's sequence is not below `sequence`. O(log n).
    pub fn first_from(&self, sequence: FrameSeq) -> usize {
        let (mut start, mut end) = (0, self.len());
        while start < end {
            let middle = start + (end - start) / 2;
            if self.sequence(middle).is_some_and(|found| found < sequence) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    /// The first index whose frame's sequence is greater than `sequence`. O(log n).
    pub fn first_after(&self, sequence: FrameSeq) -> usize {
        sequence.next().map_or(self.len(), |next| self.first_from(next))
    }

    fn at(&self, index: usize) -> Option<usize> {
        let at = self.range.start.checked_add(index)?;
        self.range.contains(&at).then_some(at)
    }
}

impl Iterator for Frames<'_> {
    type Item = Arc<Frame>;

    fn next(&mut self) -> Option<Arc<Frame>> {
        self.history.frame_at(self.range.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<Arc<Frame>> {
        self.history.frame_at(self.range.nth(n)?)
    }

    /// The last frame. Reads no other.
    fn last(mut self) -> Option<Arc<Frame>> {
        self.next_back()
    }

    fn count(self) -> usize {
        self.len()
    }
}

impl DoubleEndedIterator for Frames<'_> {
    fn next_back(&mut self) -> Option<Arc<Frame>> {
        self.history.frame_at(self.range.next_back()?)
    }

    fn nth_back(&mut self, n: usize) -> Option<Arc<Frame>> {
        self.history.frame_at(self.range.nth_back(n)?)
    }
}

impl ExactSizeIterator for Frames<'_> {}
impl std::iter::FusedIterator for Frames<'_> {}
