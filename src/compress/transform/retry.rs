//! Ranges that were not summarised: jobs that failed, and jobs that were dropped.

use super::{
    CompressionTransform, RangeState,
    jobs::RunningJob,
    range::{Covers, PlannedRange},
};
use crate::id::{FrameSeq, Millis};

impl CompressionTransform {
    /// When the next range that failed is handed out again, as far as that is known. O(ranges that failed).
    pub fn next_retry(&self) -> Option<Millis> {
        let failed = self.failed.iter().filter_map(|number| self.ranges.get(*number));
        failed.filter(|range| self.is_there(range)).filter_map(|range| range.retry_at).min()
    }

    /// The range that failed and is due, by its number; of several the one that waits longest.
    pub(super) fn failed_due(&self, now: Millis) -> Option<(usize, &PlannedRange)> {
        let failed = self.failed.iter().filter_map(|at| Some((*at, self.ranges.get(*at)?)));
        let due = failed.filter_map(|(at, range)| Some((range.retry_at?, at, range)));
        let due =
            due.filter(|(when, _, range)| self.is_due(range, *when, now) && self.is_there(range));
        due.min_by_key(|(when, at, _)| (*when, *at)).map(|(_, at, range)| (at, range))
    }

    /// Whether a range may be handed out that waits for a moment. Where the clock stands still, new
    /// frames are what passes: one, and after each failure twice as many.
    pub(super) fn is_due(&self, range: &PlannedRange, moment: Millis, now: Millis) -> bool {
        let new = self.walk.steps().len().saturating_sub(range.handed_after);
        let failed = range.tried.saturating_sub(self.options.tries);
        let has_passed = || new.checked_shr(failed).is_some_and(|new| new > 0);
        moment <= now || now <= range.handed_out && has_passed()
    }

    /// Whether no other blocks are in effect by now than those that a range is to replace.
    fn is_there(&self, range: &PlannedRange) -> bool {
        let Covers::Blocks(blocks) = &range.covers else { return true };
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return false };
        let mut met = self.meeting(first.from, last.to).peekable();
        met.peek().is_some() && met.all(|found| blocks.iter().any(|block| block.id == found.id))
    }

    /// The job of a range failed.
    pub(super) fn fail_range(&mut self, number: usize, reason: String, now: Millis) {
        let Some(range) = self.ranges.get(number) else { return };
        let (tried, tries) = (range.tried, self.options.tries);
        if tried < tries {
            let not_before = now.get().saturating_add(self.options.retry_delay_ms);
            let not_before = Millis::new(not_before);
            return self.enter_state(number, RangeState::Pending { tried, not_before });
        }
        let retry_at = self.retry_moment(range.handed_out.max(now), tried - tries);
        self.enter_state(number, RangeState::Failed { reason });
        if let (Some(range), Some(_)) = (self.ranges.get_mut(number), retry_at) {
            range.retry_at = retry_at;
            self.failed.insert(number);
        }
        if tried > tries {
            // What is down for one is down for all.
            let frames = self.walk.steps().len();
            for other in self.failed.clone() {
                if let Some(range) = self.ranges.get_mut(other) {
                    range.retry_at = range.retry_at.max(retry_at);
                    range.handed_after = frames;
                }
            }
        }
    }

    /// A range was summarised: the engine answers, and what failed before is due. A range that goes on
    /// failing while others are answered waits for one answer, then for two, four and so on.
    pub(super) fn hasten_retries(&mut self, number: usize, now: Millis) {
        let tries = self.options.tries;
        let had_failed = self.ranges.get(number).is_some_and(|range| range.tried > tries);
        for other in self.failed.clone() {
            let later = self.ranges.iter().skip(other + 1);
            let answered = later.filter(|range| range.state == RangeState::Ready).count();
            let Some(range) = self.ranges.get_mut(other) else { continue };
            let failed = range.tried.saturating_sub(tries);
            if had_failed || answered.checked_shr(failed).is_some_and(|answers| answers > 0) {
                range.retry_at = range.retry_at.min(Some(now));
            }
        }
    }

    /// When a range is tried again that failed so often before as a range that had failed.
    fn retry_moment(&self, now: Millis, before: u32) -> Option<Millis> {
        let most = self.options.retry_most_ms;
        if most <= 0 {
            return None;
        }
        let doubled = 2_i64.saturating_pow(before.saturating_add(1));
        let wait = self.options.retry_delay_ms.max(1).saturating_mul(doubled).min(most);
        now.get().checked_add(wait).map(Millis::new)
    }

    /// Takes back the ranges whose jobs were dropped without an answer.
    pub(super) fn take_back_dropped(&mut self) {
        let is_dropped = |(_, job): &(&usize, &RunningJob)| job.is_dropped();
        let dropped: Vec<usize> =
            self.under_way.iter().filter(is_dropped).map(|(number, _)| *number).collect();
        for number in dropped {
            let Some(range) = self.ranges.get(number) else { continue };
            let (tried, handed_out) = (range.tried, range.handed_out);
            if tried < self.options.tries {
                let not_before = Millis::new(i64::MIN);
                self.enter_state(number, RangeState::Pending { tried, not_before });
            } else {
                let reason = "the job was dropped without an answer".to_owned();
                self.fail_range(number, reason, handed_out);
            }
        }
    }

    /// No failed range that meets the frames from `from` to `to` is tried again.
    pub(super) fn give_up(&mut self, from: FrameSeq, to: FrameSeq) {
        for number in self.failed.clone() {
            let Some(range) = self.ranges.get(number) else { continue };
            if self.meets(range, from, to) {
                self.failed.remove(&number);
                if let Some(range) = self.ranges.get_mut(number) {
                    range.retry_at = None;
                }
            }
        }
    }
}
