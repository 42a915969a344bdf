//! Policies that leave the oldest frames out: as few as it takes, or down to a share.

use std::sync::Arc;

use super::keeper::Asking;
use crate::{
    Result,
    compress::{CompressionTransform, Unit},
    hud::RenderedContext,
    snapshot::{FrameSnapshotBuilder, Substitution, SubstitutionKind},
    window::DroppedFrames,
};

/// The frames that were dropped.
#[derive(Debug)]
pub(super) struct Dropping {
    /// Whether the user's first message stays.
    keeps_first: bool,
    /// How much of the room is left filled when it was full, in percent.
    share: u64,
    /// How many of the newest units may stay.
    newest: usize,
    /// The oldest units, in order.
    dropped: Arc<Vec<DroppedFrames>>,
    /// The same for a renderer: units with nothing between them are one.
    gaps: Vec<Substitution>,
    /// The index of the frame after the last of them.
    end: usize,
    /// The index of the next unit that may go.
    next: usize,
    /// The first unit that only the user speaks, once it is known.
    first: Option<usize>,
}

impl Dropping {
    /// Drops as little as it takes, or down to `share` percent of the room.
    pub(super) fn new(keeps_first: bool, share: u64) -> Self {
        let (dropped, gaps, end, next, first) = Default::default();
        let newest = usize::MAX;
        Self { keeps_first, share: share.min(100), newest, dropped, gaps, end, next, first }
    }

    /// As this, but no more than the newest so many units stay.
    pub(super) fn of_newest(self, units: u64) -> Self {
        Self { newest: usize::try_from(units).unwrap_or(usize::MAX).max(1), ..self }
    }

    /// What was dropped so far.
    pub(super) fn dropped(&self) -> Arc<Vec<DroppedFrames>> {
        Arc::clone(&self.dropped)
    }

    /// The context that fits, or `None` where what stays does not; `instead` stands for frames that
    /// are not dropped. Costs time in what stays and in what is dropped now.
    pub(super) fn render(
        &mut self,
        asking: &Asking<'_>,
        transform: &CompressionTransform,
        instead: &[Substitution],
    ) -> Result<Option<RenderedContext>> {
        let units = transform.units();
        if self.keeps_first && self.first.is_none() {
            self.first = units.iter().position(|unit| is_of_user(unit, transform));
        }
        let per_message = asking.request.framing.per_message;
        let gone = units.len().saturating_sub(self.newest);
        for unit in units.get(self.next..gone).unwrap_or_default() {
            self.next += 1;
            self.drop_unit(asking, unit, unit.tokens + unit.messages * per_message);
        }
        loop {
            let context = asking.render(&over(&self.gaps, instead))?;
            let total = context.tokens().total;
            if total <= asking.room {
                return Ok(Some(context));
            }
            // The last unit is what the agent is to answer.
            let may_go = units.get(self.next..units.len().saturating_sub(1)).unwrap_or_default();
            let mut left = total.saturating_sub(asking.room * self.share / 100);
            let before = self.next;
            for unit in may_go {
                self.next += 1;
                if self.first == Some(self.next - 1) {
                    continue;
                }
                let tokens = unit.tokens + unit.messages * per_message;
                self.drop_unit(asking, unit, tokens);
                left = left.saturating_sub(tokens);
                if left == 0 {
                    break;
                }
            }
            if self.next == before {
                return Ok(None);
            }
        }
    }

    fn drop_unit(&mut self, asking: &Asking<'_>, unit: &Unit, tokens: u64) {
        let (from, to) = (unit.from, unit.to);
        let dropped = DroppedFrames { from, to, tokens, block: None };
        let range = unit.range();
        match self.gaps.last_mut().filter(|_| self.end == range.start) {
            Some(gap) => gap.to = to,
            None => self.gaps.push(gap(asking, &dropped)),
        }
        self.end = range.end;
        Arc::make_mut(&mut self.dropped).push(dropped);
    }
}

/// Nothing in the place of what was dropped.
pub(super) fn gap(asking: &Asking<'_>, dropped: &DroppedFrames) -> Substitution {
    let snapshot = FrameSnapshotBuilder::new(&**asking.hud.counter()).build(asking.now);
    Substitution {
        block: dropped.id(),
        stands: SubstitutionKind::Dropped,
        from: dropped.from,
        to: dropped.to,
        snapshot: Arc::new(snapshot),
    }
}

/// Whether a unit is a message of the user.
pub(super) fn is_of_user(unit: &Unit, transform: &CompressionTransform) -> bool {
    unit.range().all(|index| transform.is_words(index))
}

/// What was dropped, and of what stands instead of frames what is not inside of that, in order.
pub(super) fn over(gaps: &[Substitution], instead: &[Substitution]) -> Vec<Substitution> {
    let is_out = |one: &&Substitution| {
        let at = gaps.partition_point(|gap| gap.to < one.from);
        gaps.get(at).is_none_or(|gap| one.to < gap.from)
    };
    let mut all: Vec<Substitution> =
        gaps.iter().chain(instead.iter().filter(is_out)).cloned().collect();
    all.sort_by_key(|one| one.from);
    all
}
