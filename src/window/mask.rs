//! Results of tools as one line each: what a context loses at the least cost, and so loses first.

use std::collections::HashSet;

use super::{ContextWindow, change::Change, live_results::LiveResults};
use crate::{
    compress::{brief, is_failure},
    snapshot::ToolOutput,
    veil::History,
};

/// The newest frames stay as they are: the agent has not answered them yet.
const NEWEST: usize = 2;

/// What the line says of an output, in bytes: about a quarter of a short one.
const OUTCOME: std::ops::RangeInclusive<usize> = 80..=480;

impl ContextWindow {
    /// Masks results that say nothing new: those that stand once more in a later frame, and those
    /// of a call that a later one repeats with success. Says whether there were any.
    pub(super) fn mask_repeated(&mut self, history: &History, live: &[LiveResults]) -> bool {
        let end = self.transform.steps().len().saturating_sub(NEWEST);
        let (mut texts, mut asked) = (HashSet::new(), HashSet::new());
        let mut repeated = Vec::new();
        for results in live.iter().rev() {
            let is_new_text = texts.insert(&results.text);
            let is_asked_again = !results.answers.is_empty()
                && results
                    .answers
                    .iter()
                    .all(|answer| answer.asks.as_ref().is_some_and(|asks| asked.contains(asks)));
            if results.may_go && results.at < end && (!is_new_text || is_asked_again) {
                repeated.push(results);
            }
            let done = results.answers.iter().filter(|answer| !answer.is_failed);
            asked.extend(done.filter_map(|answer| answer.asks.as_ref()));
        }
        let masks: Vec<Change> =
            repeated.into_iter().rev().filter_map(|of| self.masked(history, of)).collect();
        self.enter_all(masks)
    }

    /// Masks results before the newest `protected` frames, the oldest first, until `excess` tokens
    /// are saved. Says whether there were any.
    pub(super) fn mask_old(
        &mut self,
        history: &History,
        live: &[LiveResults],
        excess: u64,
        protected: usize,
    ) -> bool {
        let end = self.transform.steps().len().saturating_sub(protected.max(NEWEST));
        let mut left = excess;
        let mut masks = Vec::new();
        for results in live.iter().filter(|of| of.may_go && of.at < end) {
            if left == 0 {
                break;
            }
            let Some(mask) = self.masked(history, results) else { continue };
            let after = mask.shortened().map_or(0, |what| what.tokens);
            left = left.saturating_sub(results.tokens.saturating_sub(after));
            masks.push(mask);
        }
        self.enter_all(masks)
    }

    fn enter_all(&mut self, changes: Vec<Change>) -> bool {
        let is_any = !changes.is_empty();
        changes.into_iter().for_each(|change| self.enter(change));
        is_any
    }

    /// A frame with one line for each of its results: tool, subject, outcome, size, and the id that
    /// expands it. `None` where that saves nothing.
    fn masked(&self, history: &History, of: &LiveResults) -> Option<Change> {
        let line = |id: &str, output: ToolOutput<'_>| {
            let answer = of.answer_in(output.facet);
            let call = answer.and_then(|answer| answer.call.as_ref());
            let subject = call.and_then(|call| call.subject.as_deref());
            let tool = call.map(|call| format!("{} ", call.tool)).unwrap_or_default();
            let subject = subject.map(|subject| format!("{subject} ")).unwrap_or_default();
            let is_failed =
                answer.map_or_else(|| is_failure(output.text), |answer| answer.is_failed);
            let most = usize::try_from(output.tokens).unwrap_or(usize::MAX);
            let most = most.clamp(*OUTCOME.start(), *OUTCOME.end());
            let outcome = brief(output.text, is_failed, &subject, most);
            format!(
                "[… {tool}{subject}→ {outcome}; {} tokens left out; expand {id} …]",
                output.tokens
            )
        };
        let snapshot = history.snapshot(of.frame)?;
        let change = Change::mask(of.frame, &snapshot, &**self.hud.counter(), line)?;
        change.shortened().is_some_and(|what| what.tokens < of.tokens).then_some(change)
    }
}
