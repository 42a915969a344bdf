//! A sliding window: it drops the oldest frames until the rest fits.

use std::sync::Arc;

use crate::{
    Result,
    compress::Unit,
    hud::{Hud, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    snapshot::{FrameSnapshotBuilder, Substitution, SubstitutionKind},
    veil::History,
    window::{Budget, DroppedFrames},
};

/// The frames that were dropped.
#[derive(Debug, Default)]
pub(super) struct Sliding {
    /// The oldest units, in order.
    dropped: Arc<Vec<DroppedFrames>>,
    /// The same for a renderer: units with nothing between them are one.
    gaps: Vec<Substitution>,
    /// The index of the frame after the last of them.
    end: usize,
}

impl Sliding {
    /// The context that fits, or `None` where what stays does not. Costs time in what stays and in
    /// what is dropped now.
    pub(super) fn render(
        &mut self,
        hud: &Hud,
        history: &History,
        budget: &Budget,
        units: &[Unit],
        asked: &RenderRequest,
        now: Millis,
    ) -> Result<Option<(RenderedContext, Arc<Vec<DroppedFrames>>)>> {
        let per_message = asked.framing.per_message;
        loop {
            let context = hud.render_with(history, asked, &self.gaps, now)?;
            let excess = context.tokens().total.saturating_sub(budget.room());
            if excess == 0 {
                return Ok(Some((context, Arc::clone(&self.dropped))));
            }
            // The last unit is what the agent is to answer.
            let first = self.dropped.len();
            let rest = units.get(first..units.len().saturating_sub(1)).unwrap_or_default();
            if rest.is_empty() {
                return Ok(None);
            }
            let mut left = excess;
            for unit in rest {
                let tokens = unit.tokens + unit.messages * per_message;
                self.drop_unit(hud, unit, tokens, now);
                left = left.saturating_sub(tokens);
                if left == 0 {
                    break;
                }
            }
        }
    }

    fn drop_unit(&mut self, hud: &Hud, unit: &Unit, tokens: u64, now: Millis) {
        let (from, to) = (unit.from, unit.to);
        let dropped = DroppedFrames { from, to, tokens, block: None };
        let range = unit.range();
        match self.gaps.last_mut().filter(|_| self.end == range.start) {
            Some(gap) => gap.to = to,
            None => self.gaps.push(gap(hud, &dropped, now)),
        }
        self.end = range.end;
        Arc::make_mut(&mut self.dropped).push(dropped);
    }
}

/// Nothing in the place of what was dropped.
fn gap(hud: &Hud, dropped: &DroppedFrames, now: Millis) -> Substitution {
    let (from, to): (FrameSeq, FrameSeq) = (dropped.from, dropped.to);
    let snapshot = Arc::new(FrameSnapshotBuilder::new(&**hud.counter()).build(now));
    Substitution { block: dropped.id(), stands: SubstitutionKind::Dropped, from, to, snapshot }
}
