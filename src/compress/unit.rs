use super::Step;
use crate::id::FrameSeq;

/// Frames that only go together: calls with their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) from: FrameSeq,
    pub(crate) to: FrameSeq,
    pub(crate) tokens: u64,
    pub(crate) messages: u64,
}

/// The frames in `steps` as units, without those that stay as they are and those that an imported
/// block stands for; each with its range of indices. A unit whose calls wait up to such a frame is
/// none; one whose calls still wait is the last.
pub(crate) fn units(steps: &[Step]) -> Vec<(std::ops::Range<usize>, Unit)> {
    let mut units = Vec::new();
    let mut open: Option<(usize, Unit)> = None;
    let mut is_closed = true;
    for (at, step) in steps.iter().enumerate() {
        if step.is_fixed() || (open.is_none() && !is_closed) {
            open = None;
            is_closed = step.is_closed;
            continue;
        }
        let (first, unit) = open.get_or_insert((
            at,
            Unit { from: step.sequence, to: step.sequence, tokens: 0, messages: 0 },
        ));
        unit.to = step.sequence;
        unit.tokens = unit.tokens.saturating_add(step.tokens);
        unit.messages += 1;
        is_closed = step.is_closed;
        if is_closed {
            units.push((*first..at + 1, *unit));
            open = None;
        }
    }
    units.extend(open.map(|(first, unit)| (first..steps.len(), unit)));
    units
}
