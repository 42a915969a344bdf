use std::ops::Range;

use super::Step;
use crate::id::FrameSeq;

/// Frames that only go together: calls with their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) from: FrameSeq,
    pub(crate) to: FrameSeq,
    pub(crate) tokens: u64,
    pub(crate) messages: u64,
    /// The indices of the frames.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Unit {
    /// The indices of the frames.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// The frames of a history as units, without those that stay as they are and those that an imported
/// block stands for. A unit whose calls wait up to such a frame is none; one whose calls still wait
/// is the last. Each frame is looked at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    all: Vec<Unit>,
    /// Whether the calls of the last unit wait for their results.
    is_open: bool,
    /// Whether a call waits, whose unit is none.
    waits: bool,
    /// How many steps were looked at.
    seen: usize,
}

impl Units {
    /// Looks at the steps that are new.
    pub(super) fn follow(&mut self, steps: &[Step]) {
        for (at, step) in steps.iter().enumerate().skip(self.seen) {
            self.push(at, step);
        }
        self.seen = steps.len();
    }

    fn push(&mut self, at: usize, step: &Step) {
        if step.is_fixed() || (!self.is_open && self.waits) {
            if std::mem::take(&mut self.is_open) {
                self.all.pop();
            }
            self.waits = !step.is_closed;
            return;
        }
        let sequence = step.sequence;
        let new = Unit { from: sequence, to: sequence, tokens: 0, messages: 0, start: at, end: at };
        let unit = if self.is_open { self.all.pop().unwrap_or(new) } else { new };
        self.all.push(Unit {
            to: sequence,
            tokens: unit.tokens.saturating_add(step.tokens),
            messages: unit.messages + 1,
            end: at + 1,
            ..unit
        });
        self.is_open = !step.is_closed;
        self.waits = self.is_open;
    }

    /// Forgets what was seen from the step at `index` on: it changed.
    pub(super) fn forget(&mut self, index: usize) {
        let whole = self.all.len() - usize::from(self.is_open);
        let kept = self.all.partition_point(|unit| unit.end <= index);
        self.all.truncate(kept.min(whole));
        self.seen = self.all.last().map_or(0, |last| last.end);
        (self.is_open, self.waits) = (false, false);
    }

    pub(super) fn all(&self) -> &[Unit] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps: `.` says something, `(` makes a call, `)` answers it, `#` stays.
    fn steps(text: &str) -> Vec<Step> {
        let mut open = 0;
        let step = |(at, sign): (usize, char)| {
            open += i32::from(sign == '(') - i32::from(sign == ')');
            Step::sample(at as u64, sign == '#', open == 0)
        };
        text.chars().enumerate().map(step).collect()
    }

    fn check(text: &str, expected: &[Range<usize>]) {
        let steps = steps(text);
        let mut units = Units::default();
        (0..=steps.len()).for_each(|end| units.follow(&steps[..end]));
        assert_eq!(units.all().iter().map(Unit::range).collect::<Vec<_>>(), expected, "{text}");
        for index in 0..=steps.len() {
            let mut again = units.clone();
            again.forget(index);
            again.follow(&steps);
            assert_eq!(again.all(), units.all(), "{text} from {index}");
        }
    }

    #[test]
    fn units_are_the_same_frame_by_frame_and_after_some_are_forgotten() {
        check("..", &[0..1, 1..2]);
        check(".()..", &[0..1, 1..3, 3..4, 4..5]);
        check(".((", &[0..1, 1..3]);
        check(".((.))", &[0..1, 1..6]);
        check(".(#).", &[0..1, 4..5]);
        check("#.#.", &[1..2, 3..4]);
        check("", &[]);
    }
}
