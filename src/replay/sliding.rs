//! A window that slides: the oldest frames give way to the newest, as many as it takes.

use std::{ops::Range, sync::Arc};

use crate::{
    Result,
    compress::Unit,
    hud::{Hud, ProviderFraming, RenderRequest, RenderedContext},
    id::Millis,
    snapshot::{FrameSnapshotBuilder, Stands, Substitution},
    veil::History,
    window::{Budget, Dropped},
};

/// How many of the oldest units give way.
#[derive(Debug, Default)]
pub(super) struct Sliding {
    dropped: usize,
}

impl Sliding {
    /// The context that fits, or `None` where what stays does not.
    pub(super) fn render(
        &mut self,
        hud: &Hud,
        history: &History,
        budget: &Budget,
        units: &[(Range<usize>, Unit)],
        now: Millis,
    ) -> Result<Option<(RenderedContext, Vec<Dropped>)>> {
        loop {
            let per_message = ProviderFraming::default().per_message;
            let out: Vec<Dropped> = units
                .iter()
                .take(self.dropped)
                .map(|(_, unit)| Dropped {
                    from: unit.from,
                    to: unit.to,
                    tokens: unit.tokens + unit.messages * per_message,
                    block: None,
                })
                .collect();
            let empty = Arc::new(FrameSnapshotBuilder::new(&**hud.counter()).build(now));
            let substitutions = out.iter().map(|dropped| Substitution {
                block: dropped.id(),
                stands: Stands::Dropped,
                from: dropped.from,
                to: dropped.to,
                snapshot: Arc::clone(&empty),
            });
            let request = RenderRequest {
                substitutions: substitutions.collect(),
                ..RenderRequest::default()
            };
            let context = hud.render(history, &request, now)?;
            let excess = context.tokens().total.saturating_sub(budget.room());
            if excess == 0 {
                return Ok(Some((context, out)));
            }
            // The last unit is what the agent is to answer.
            let rest = units.get(self.dropped..units.len().saturating_sub(1)).unwrap_or_default();
            if rest.is_empty() {
                return Ok(None);
            }
            let mut left = excess;
            for (_, unit) in rest {
                self.dropped += 1;
                left = left.saturating_sub(unit.tokens + unit.messages * per_message);
                if left == 0 {
                    break;
                }
            }
        }
    }
}
