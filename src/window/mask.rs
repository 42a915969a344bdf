//! Results of tools as one line each, or without their middle: what a context loses at the least
//! cost, and so loses first.

use std::collections::HashMap;

use super::{
    ContextWindow,
    change::Change,
    live_results::{AnsweredCall, LiveResults, Visibility},
    shortening::Shortening,
};
use crate::{
    id::ChunkType,
    snapshot::{ChunkRef, PartRef, ToolOutput},
    steps::{Class, LineRange},
    summary::brief,
    text::{quote::quoted_line, shortened},
    veil::{CallOutcome, History},
};

/// In fewer tokens than these besides, the ends of a result would hardly say more than a line does.
const LEAST_SPARE: u64 = 128;

/// What the line says of an output, in bytes: about a quarter of a short one.
const OUTCOME: std::ops::RangeInclusive<usize> = 80..=480;

/// What the line says of a call, in bytes.
const LONGEST_SUBJECT: usize = 100;

impl ContextWindow {
    /// Masks results before the newest `protected` frames that say nothing new: those that stand once
    /// more in a later frame, and those of a call that a later one repeats with success, or reads more
    /// of the same file. The oldest go first, until `excess` tokens are saved. Says whether there were
    /// any.
    pub(super) fn mask_repeated(
        &mut self,
        history: &History,
        live: &[LiveResults],
        excess: u64,
        protected: usize,
    ) -> bool {
        let end = self.transform.steps().len().saturating_sub(protected);
        let mut later = LaterResults::default();
        let mut masks = Vec::new();
        for results in live.iter().rev() {
            let is_repeated = results.may_go && results.at < end && later.repeat(results);
            match is_repeated.then(|| self.masked(history, results)).flatten() {
                Some(mask) => masks.push((saved(results, &mask), mask)),
                // What is masked shows nothing any more, and so supersedes nothing.
                None => later.take(results),
            }
        }
        let mut left = excess;
        let must_go = |(saves, _): &(u64, Change)| {
            let is_needed = left > 0;
            left = left.saturating_sub(*saves);
            is_needed
        };
        let masks = masks.into_iter().rev().take_while(must_go).map(|(_, mask)| mask).collect();
        self.enter_all(masks)
    }

    /// Masks results before the newest `protected` frames until `excess` tokens are saved: the oldest,
    /// but for those that need not go for the sake of a larger one behind them. The newest of these
    /// keeps its ends where a line saves too much. Says whether there were any.
    pub(super) fn mask_old(
        &mut self,
        history: &History,
        live: &[LiveResults],
        excess: u64,
        protected: usize,
    ) -> bool {
        let end = self.transform.steps().len().saturating_sub(protected);
        let mut left = excess;
        let mut masks = Vec::new();
        let mut spare = 0;
        for results in live.iter().filter(|of| of.may_go && of.at < end) {
            if left == 0 {
                break;
            }
            let Some(mask) = self.masked(history, results) else { continue };
            let saves = saved(results, &mask);
            (left, spare) = (left.saturating_sub(saves), saves.saturating_sub(left));
            masks.push((results, saves, mask));
        }
        // What need not go for the sake of those behind it stays.
        let mut needed = Vec::new();
        for (results, saves, mask) in masks.into_iter().rev() {
            if saves <= spare {
                spare -= saves;
            } else {
                needed.push((results, mask));
            }
        }
        let partly = needed
            .first()
            .filter(|_| spare >= LEAST_SPARE)
            .and_then(|(of, mask)| self.ends(history, of, mask.shortened()?.tokens + spare));
        let masks = needed.into_iter().map(|(_, mask)| mask);
        let masks = match partly {
            Some(partly) => [partly].into_iter().chain(masks.skip(1)).collect(),
            None => masks.collect(),
        };
        self.enter_all(masks)
    }

    /// The beginning and the end of a result in at most `limit` tokens. `None` of a frame that holds
    /// anything else: that would be cut too.
    fn ends(&self, history: &History, of: &LiveResults, limit: u64) -> Option<Change> {
        let snapshot = self.shown(history, of.frame)?;
        let is_result = |chunk: ChunkRef<'_>| {
            chunk.chunk_type() == Some(ChunkType::FORMATTING.as_str())
                || matches!(chunk.part(), PartRef::Result { .. })
        };
        let is_output = self.transform.command_answered(of.at).is_some();
        if of.answers.len() != 1 || !is_output && !snapshot.chunks().all(is_result) {
            return None;
        }
        let counter = &**self.hud.counter();
        Shortening::of(of.frame, &snapshot, counter).longest(limit, Shortening::results)
    }

    pub(super) fn enter_all(&mut self, changes: Vec<Change>) -> bool {
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
            let subject = call.and_then(|call| {
                // A path stays whole.
                let path = call.path.as_ref().map_or(0, |path| path.len());
                Some(shortened(call.subject.as_deref()?, LONGEST_SUBJECT.max(path)))
            });
            let tool = call.map(|call| format!("{} ", call.tool)).unwrap_or_default();
            let subject = subject.map(|subject| format!("{subject} ")).unwrap_or_default();
            let class = answer.map_or_else(
                || Class::of(CallOutcome::Unstated, output.text, None),
                |answer| answer.class,
            );
            let most = usize::try_from(output.tokens).unwrap_or(usize::MAX);
            let most = most.clamp(*OUTCOME.start(), *OUTCOME.end());
            let outcome = brief(output.text, class, &subject, most);
            let said = format!("{tool}{subject}→ {outcome}");
            let said = quoted_line(&said);
            format!("[… {said}; {} tokens left out; expand {id} …]", output.tokens)
        };
        let snapshot = self.shown(history, of.frame)?;
        let change = Change::mask(of.frame, &snapshot, &**self.hud.counter(), line)?;
        change.shortened().is_some_and(|what| what.tokens < of.tokens).then_some(change)
    }
}

/// The tokens that a mask saves.
fn saved(results: &LiveResults, mask: &Change) -> u64 {
    results.tokens.saturating_sub(mask.shortened().map_or(0, |what| what.tokens))
}

/// What the frames show that come after one.
#[derive(Default)]
struct LaterResults<'l> {
    /// How much is shown of each text, at most.
    texts: HashMap<&'l str, Visibility>,
    /// The same of the results of calls that succeeded, by what they asked.
    asked: HashMap<&'l str, Visibility>,
    /// The lines of files in results that stand whole: a shortened one shows only its ends.
    reads: HashMap<&'l str, Vec<LineRange>>,
}

impl<'l> LaterResults<'l> {
    fn take(&mut self, results: &'l LiveResults) {
        let visibility = results.visibility;
        if visibility == Visibility::Line {
            return;
        }
        let note = |most: &mut Visibility| *most = visibility.max(*most);
        note(self.texts.entry(&results.text).or_insert(visibility));
        let is_done = |answer: &&AnsweredCall| !answer.class.is_failure() && !answer.is_unchanged;
        for answer in results.answers.iter().filter(is_done) {
            if let Some(asks) = &answer.asks {
                note(self.asked.entry(asks).or_insert(visibility));
            }
            if visibility == Visibility::Whole
                && let Some((read, lines)) = answer.read.as_ref().zip(answer.lines)
            {
                self.reads.entry(read.of()).or_default().push(lines);
            }
        }
    }

    /// Whether they show what a frame shows, or what its calls asked for.
    fn repeat(&self, results: &LiveResults) -> bool {
        let visibility = results.visibility;
        let is_same_text = self.texts.get(&*results.text).is_some_and(|most| *most >= visibility);
        let is_repeated = |answer: &AnsweredCall| {
            let asked = answer.asks.as_ref().and_then(|asks| self.asked.get(asks.as_str()));
            // What a command did before is out of date, even where not all of the new is shown.
            asked.is_some_and(|most| answer.read.is_none() || *most >= visibility)
                || self.cover(answer)
        };
        is_same_text || !results.answers.is_empty() && results.answers.iter().all(is_repeated)
    }

    /// Whether a later result shows all lines of the file that an answer shows.
    fn cover(&self, answer: &AnsweredCall) -> bool {
        let Some((read, lines)) = answer.read.as_ref().zip(answer.lines) else { return false };
        let reads = self.reads.get(read.of()).map(Vec::as_slice).unwrap_or_default();
        reads.iter().any(|later| later.cover(&lines))
    }
}
