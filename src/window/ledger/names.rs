//! The names of what a context leaves out, in room that nothing else takes.

use std::collections::HashSet;

use super::{WrittenLedger, headed};
use crate::{
    Result,
    compress::Step,
    hud::{RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    steps::Passage,
    summary::{LedgerLine, ranked_names},
    text::quote::quoted_line,
    veil::History,
    window::{ContextWindow, receipt::ReadableText},
};

/// Room for fewer tokens is left free.
const LEAST_TOKENS: u64 = 32;

/// What a line of names begins with.
const TITLE: &str = "Names:";

/// What a line of names adds is known once it stands in the context: so often it is written.
const MOST_TRIES: usize = 4;

impl ContextWindow {
    /// Names in the ledger what the first context leaves out, the likeliest to be needed first, in
    /// the room that is free below the low mark: `context` is what it is otherwise. A ledger that had
    /// to be cut is whole again before.
    ///
    /// Runs in time linear in what is left out and in the context, but for sorts of their words.
    pub(in crate::window) fn name_left_out(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: RenderedContext,
        now: Millis,
    ) -> Result<RenderedContext> {
        let is_asked = self.seen.is_none() && self.budget.ledger > 0;
        let behind = self.transform.last_own_block().map(|block| block.to);
        let Some(behind) = behind.filter(|_| is_asked && self.has_room(&context)) else {
            return Ok(context);
        };
        let context = match self.with_whole_ledger(history, request, &context, now)? {
            Some(whole) if self.has_room(&whole) => whole,
            Some(whole) => return Ok(whole),
            None => return Ok(context),
        };
        let before = self.ledger.written.clone();
        let named = self.with_names(history, request, &context, behind, now);
        // What was tried last stands there.
        self.unsettle();
        match named {
            Ok(Some((written, context))) => {
                self.ledger.named = Some(written.clone());
                self.ledger.written = Some(written);
                Ok(context)
            }
            Ok(None) => {
                self.ledger.written = before;
                Ok(context)
            }
            Err(error) => {
                self.ledger.written = before;
                Err(error)
            }
        }
    }

    fn has_room(&self, context: &RenderedContext) -> bool {
        self.budget.target().saturating_sub(context.tokens().total) >= LEAST_TOKENS
    }

    /// The context with as much of the ledger as the budget allows. `None` where that takes more than
    /// is free.
    fn with_whole_ledger(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: &RenderedContext,
        now: Millis,
    ) -> Result<Option<RenderedContext>> {
        if self.ledger.limit.is_none() {
            return Ok(Some(context.clone()));
        }
        let cut = self.ledger.clone();
        self.ledger.outdate();
        let whole = self.context(history, request, now);
        let most = self.budget.target();
        if whole.as_ref().is_ok_and(|whole| whole.tokens().total <= most) {
            return whole.map(Some);
        }
        self.ledger = cut;
        self.unsettle();
        whole.map(|_| None)
    }

    /// The ledger with most of the names, and the context with it. `None` where none fit.
    fn with_names(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: &RenderedContext,
        behind: FrameSeq,
        now: Millis,
    ) -> Result<Option<(WrittenLedger, RenderedContext)>> {
        let most = self.budget.target();
        let names = self.names_left_out(history, context);
        let before = self.ledger.written.as_ref().map(|of| of.lines.to_vec()).unwrap_or_default();
        let mut free = most.saturating_sub(context.tokens().total);
        let (mut best, mut least) = (None, 0);
        for _ in 0..MOST_TRIES {
            let fitting = self.fitting(&names, free);
            if fitting <= least {
                break;
            }
            let names = names.get(..fitting).unwrap_or_default().join(" ");
            let text = format!("{TITLE} {}", quoted_line(&names));
            let lines = before.iter().cloned().chain([LedgerLine { frame: None, text }]).collect();
            self.ledger.written = self.write_ledger(history, behind, headed(lines), now)?;
            self.unsettle();
            let fuller = self.context(history, request, now)?;
            let total = fuller.tokens().total;
            if total > most {
                free = free.saturating_sub(total - most);
            } else {
                free += most - total;
                least = fitting;
                best = self.ledger.written.clone().map(|written| (written, fuller));
            }
        }
        Ok(best)
    }

    /// How many of the names fit into so many tokens, about.
    fn fitting(&self, names: &[String], tokens: u64) -> usize {
        let counter = self.hud.counter();
        let mut left = tokens.saturating_sub(counter.count(TITLE) as u64 + 1);
        let fits = |name: &&String| {
            let tokens = counter.count(&format!(" {name}")) as u64;
            let fits = tokens <= left;
            left = left.saturating_sub(tokens);
            fits
        };
        names.iter().take_while(fits).count()
    }

    /// The names of what the context leaves out that it does not show, the likeliest to be needed
    /// first: those that say something beside a ledger, and then keys, tags and numbers. What the
    /// session left with a branch is none of it.
    fn names_left_out(&self, history: &History, context: &RenderedContext) -> Vec<String> {
        let steps = self.transform.steps();
        let stands = |step: &&Step| {
            self.change_of(step.sequence).is_none()
                && self.transform.compression_state(step.sequence).is_none()
        };
        let passage = |step: &Step| self.passages_in(history, step.sequence..=step.sequence);
        let left_out = steps.iter().filter(|step| !stands(step) && !step.is_outside());
        let left_out: Vec<Passage> = left_out.flat_map(passage).collect();
        let newest = steps.len().saturating_sub(self.transform.options().protected_frames);
        let tail = steps.get(newest..).unwrap_or_default().iter().filter(stands);
        let tail: Vec<Passage> = tail.flat_map(passage).collect();
        let ranked = |beside| ranked_names(&left_out, &tail, beside, &**self.hud.counter());
        let mut names = ranked(true);
        let known: HashSet<String> = names.iter().cloned().collect();
        names.extend(ranked(false).into_iter().filter(|name| !known.contains(name)));
        let shown = ReadableText::of(context);
        names.retain(|name| !shown.says(name));
        names
    }
}
