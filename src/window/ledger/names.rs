//! The names of what a context leaves out, in room that nothing else takes.

use std::{collections::HashSet, ops::RangeInclusive};

use super::super::ContextWindow;
use crate::{
    Result,
    compress::{CompressionJob, LedgerLine, Passage, identifiers, ranked_names},
    hud::{RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    veil::History,
};

/// Room for fewer tokens is left free.
const LEAST_TOKENS: u64 = 32;

/// What a line of names has to begin with.
const TITLE: &str = "Names:";

/// What a line of names adds is known once it stands in the context: so often it is written.
const MOST_TRIES: usize = 4;

impl ContextWindow {
    /// Names in the ledger what the first context leaves out, the likeliest to be needed first, in
    /// the room that is free below the low mark: `context` is what it is otherwise. Later epochs
    /// write the ledger anew, and leave no such room.
    ///
    /// Runs in time linear in what is left out.
    pub(in crate::window) fn name_left_out(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: RenderedContext,
        now: Millis,
    ) -> Result<RenderedContext> {
        let most = self.budget.target();
        let mut free = most.saturating_sub(context.tokens().total);
        let written = self.ledger.written.clone();
        let block = || self.transform.last_own_block().map(|block| block.to);
        let behind = written.as_ref().map(|written| written.behind).or_else(block);
        let is_asked = self.seen.is_none() && self.budget.ledger > 0 && free >= LEAST_TOKENS;
        let Some(behind) = behind.filter(|_| is_asked) else { return Ok(context) };
        let before = written.as_ref().map(|written| written.lines.to_vec()).unwrap_or_default();
        let names = self.names_left_out(history, &context);
        let (mut best, mut count) = ((written, context), 0);
        for _ in 0..MOST_TRIES {
            let fitting = self.fitting(&names, free);
            if fitting == count {
                break;
            }
            let text = format!("{TITLE} {}", names.get(..fitting).unwrap_or_default().join(" "));
            let lines = before.iter().cloned().chain([LedgerLine { frame: None, text }]).collect();
            self.ledger.written = self.write_ledger(history, behind, lines, now)?;
            self.unsettle();
            let fuller = self.context(history, request, now)?;
            let total = fuller.tokens().total;
            if total > most {
                free = free.saturating_sub(total - most);
            } else {
                (best, count) = ((self.ledger.written.clone(), fuller), fitting);
                free += most - total;
            }
        }
        let (written, context) = best;
        self.ledger.written = written;
        self.unsettle();
        Ok(context)
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
    /// first.
    fn names_left_out(&self, history: &History, context: &RenderedContext) -> Vec<String> {
        let blocks = self.transform.blocks().map(|block| block.from..=block.to);
        let changes = self.changes.values().map(|change| change.from()..=change.to());
        let mut ranges: Vec<RangeInclusive<FrameSeq>> = blocks.chain(changes).collect();
        ranges.sort_by_key(|range| *range.start());
        let left_out: Vec<Passage> =
            ranges.into_iter().flat_map(|range| self.passages_in(history, range)).collect();
        let recent = self.transform.options().protected_frames;
        let newest = self.transform.steps().iter().rev().take(recent).map(|step| step.sequence);
        let is_shown = |frame: &FrameSeq| {
            self.change_of(*frame).is_none() && self.transform.compression_state(*frame).is_none()
        };
        let tail =
            newest.filter(is_shown).flat_map(|frame| self.passages_in(history, frame..=frame));
        let mut job = CompressionJob::new(left_out, 0).with_tail(tail.collect());
        job.tail.reverse();
        let texts: Vec<_> = context.messages().iter().map(|message| message.content()).collect();
        let shown: HashSet<&str> =
            texts.iter().flat_map(|text| identifiers(text).chain(words(text))).collect();
        let mut names = ranked_names(&job, &**self.hud.counter());
        names.retain(|name| !shown.contains(name.as_str()));
        names
    }
}

/// The words of a text: what a tool was given may be a name and not look like one.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_'))
}
