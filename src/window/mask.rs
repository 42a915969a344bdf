//! Results of tools as one line each: what a context loses at the least cost, and so loses first.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{ContextWindow, change::Change};
use crate::{
    compress::{brief, is_failure},
    hud::RenderedContext,
    id::FrameSeq,
    snapshot::{ChunkRef, PartRef, ToolOutput},
    veil::{Facet, FacetChange, Frame, History, ToolCall, calls_and_results},
};

/// Results of fewer tokens stay: a line would hardly say less.
const LEAST_TOKENS: u64 = 200;

/// The newest frames stay as they are: the agent has not answered them yet.
const NEWEST: usize = 2;

/// What the line says of an output, in bytes: about a quarter of a short one.
const OUTCOME: std::ops::RangeInclusive<usize> = 80..=480;

/// A frame with results that the context holds.
pub(super) struct LiveResults {
    frame: FrameSeq,
    /// Its index in the history.
    at: usize,
    /// The tokens that it takes now.
    tokens: u64,
    may_go: bool,
    answers: Vec<AnsweredCall>,
    text: Arc<str>,
}

/// A result with the call that it answers.
struct AnsweredCall {
    result: Arc<Facet>,
    call: Option<ToolCall>,
    /// Tool and arguments: what two calls share that ask for the same.
    asks: Option<String>,
}

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
            let done = results.answers.iter().filter(|answer| !answer.is_failed());
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

    /// The frames with results that the context holds, in order. Costs time in these.
    pub(super) fn live_results(
        &self,
        history: &History,
        context: &RenderedContext,
    ) -> Vec<LiveResults> {
        let steps = self.transform.steps();
        let mut frames: HashMap<FrameSeq, Arc<Frame>> = HashMap::new();
        let mut results = |frame: FrameSeq, tokens: u64, is_masked: bool| {
            let snapshot = history.snapshot(frame)?;
            let is_result = |chunk: ChunkRef<'_>| matches!(chunk.part(), PartRef::Result { .. });
            if !snapshot.chunks().any(is_result) {
                return None;
            }
            let at = steps.binary_search_by_key(&frame, |step| step.sequence).ok()?;
            let may_go = !is_masked && tokens >= LEAST_TOKENS && !steps.get(at)?.stays;
            let mut part = |frame: FrameSeq, number: u32| {
                let found = match frames.get(&frame) {
                    Some(found) => found,
                    None => frames.entry(frame).or_insert(history.get(frame)?),
                };
                parts(found).get(number as usize).map(|facet| Arc::new((*facet).clone()))
            };
            let pairs = history.pairs().in_frame(frame).iter();
            let answer = |pair: &crate::veil::Pair| {
                let result = part(pair.result.frame, pair.result.number)?;
                let call = part(pair.call.frame, pair.call.number);
                let call = call.as_deref().and_then(Facet::call);
                let asks = call.as_ref().map(|call| {
                    let parameters = call.parameters.map(ToString::to_string).unwrap_or_default();
                    format!("{} {}{parameters}", call.name, call.arguments.unwrap_or_default())
                });
                let call = call.as_ref().map(ToolCall::of);
                Some(AnsweredCall { result, call, asks })
            };
            let answers = pairs.filter_map(answer).collect();
            let text = Arc::from(snapshot.text());
            Some(LiveResults { frame, at, tokens, may_go, answers, text })
        };
        let mut live: Vec<LiveResults> = Vec::new();
        let mut held: Vec<FrameSeq> = context.frame_to_message().map(|(frame, _)| frame).collect();
        held.extend(self.changes.values().filter_map(Change::shortened).map(|what| what.frame));
        held.sort_unstable();
        held.dedup();
        for frame in held {
            let shortened = self.change_of(frame).map(|change| change.shortened());
            let found = match shortened {
                // Dropped with others.
                Some(None) => None,
                Some(Some(what)) => results(frame, what.tokens, what.is_masked()),
                None => {
                    let tokens = history.snapshot(frame).map(|of| super::shrink::tokens_of(&of));
                    results(frame, tokens.unwrap_or_default(), false)
                }
            };
            live.extend(found);
        }
        live
    }

    /// A frame with one line for each of its results: tool, subject, outcome, size, and the id that
    /// expands it. `None` where that saves nothing.
    fn masked(&self, history: &History, of: &LiveResults) -> Option<Change> {
        let line = |id: &str, output: ToolOutput<'_>| {
            let answer = of.answers.iter().find(|answer| {
                output.facet.is_some_and(|facet| answer.result.id.as_str() == facet)
            });
            let call = answer.and_then(|answer| answer.call.as_ref());
            let subject = call.and_then(|call| call.subject.as_deref());
            let tool = call.map(|call| format!("{} ", call.tool)).unwrap_or_default();
            let subject = subject.map(|subject| format!("{subject} ")).unwrap_or_default();
            let is_failed = answer.map_or_else(|| is_failure(output.text), AnsweredCall::is_failed);
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

impl AnsweredCall {
    fn is_failed(&self) -> bool {
        fn text(facet: &Facet) -> &str {
            let inside = || facet.shown_children().map(text).find(|text| !text.is_empty());
            Some(&*facet.content)
                .filter(|text| !text.is_empty())
                .or_else(inside)
                .unwrap_or_default()
        }
        self.result.is_failed() || is_failure(text(&self.result))
    }
}

/// The calls and results of a frame, as [`PartPlace::number`](crate::veil::PartPlace) counts them.
fn parts(frame: &Frame) -> Vec<&Facet> {
    let added = frame.ops.iter().filter_map(|op| match &op.change {
        FacetChange::Add(facet) => Some(&**facet),
        _ => None,
    });
    calls_and_results(added)
}
