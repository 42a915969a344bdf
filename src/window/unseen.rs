//! Results that the model has not seen yet: it waits for them, so they lose least.

use super::{
    ContextWindow, live_results::LiveResults, shortening::Shortening, shrink::LEAST_TOKENS,
};
use crate::veil::{History, Source};

impl ContextWindow {
    /// Those of the results that no frame of the agent follows.
    pub(super) fn unseen<'l>(
        &self,
        history: &History,
        live: &'l [LiveResults],
    ) -> &'l [LiveResults] {
        let (frames, steps) = (history.frames(), self.transform.steps());
        let first = live.first().map_or(steps.len(), |first| first.at);
        // What was answered on a branch that the session left, nobody has read.
        let is_left = |at: &usize| matches!(steps.get(*at), Some(step) if step.is_outside());
        let is_agents = |at: &usize| frames.source(*at) == Some(Source::Agent);
        let last = (first..steps.len()).rev().find(|at| is_agents(at) && !is_left(at));
        let seen = live.partition_point(|of| last.is_some_and(|last| of.at <= last));
        live.get(seen..).unwrap_or_default()
    }

    /// Shortens results by `excess` tokens in all, the largest first and these evenly, as long as they
    /// have more than `most` together. Says whether any is shorter.
    pub(super) fn shorten_together(
        &mut self,
        history: &History,
        results: &[LiveResults],
        excess: u64,
        most: u64,
    ) -> bool {
        let all: u64 = results.iter().map(|of| of.tokens).sum();
        let left = all.saturating_sub(excess).max(most);
        if left >= all {
            return false;
        }
        let limit = even_share(results, left).max(LEAST_TOKENS);
        let larger = results.iter().filter(|of| of.may_go && of.tokens > limit);
        let shorter = larger.filter_map(|of| {
            let snapshot = self.shown(history, of.frame)?;
            let counter = &**self.hud.counter();
            let shortening = Shortening::of(of.frame, &snapshot, counter);
            let change = shortening.longest(limit, Shortening::results)?;
            change.shortened().is_some_and(|what| what.tokens < of.tokens).then_some(change)
        });
        self.enter_all(shorter.collect())
    }
}

/// What each result may have so that all have `tokens` together: the smaller ones have less.
fn even_share(results: &[LiveResults], tokens: u64) -> u64 {
    let mut sizes: Vec<u64> = results.iter().map(|of| of.tokens).collect();
    sizes.sort_unstable();
    let (mut left, mut larger) = (tokens, sizes.len() as u64);
    for size in sizes {
        if size > left / larger {
            break;
        }
        (left, larger) = (left - size, larger - 1);
    }
    left / larger.max(1)
}
