//! What makes a context smaller where no engine can: texts are shortened in their middle, and
//! frames and blocks are dropped.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use super::{
    Breakdown, ContextWindow, DroppedFrames, ShortenedFrame, change::Change, keep_rank::KeepRank,
    shortening::Shortening,
};
use crate::{
    Result,
    compress::{CompressionBlock, Unit},
    hud::{Message, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    snapshot::FrameSnapshot,
    veil::History,
};

/// What is left of a frame that is shortened, in tokens, at least.
pub(super) const LEAST_TOKENS: u64 = 64;

impl ContextWindow {
    /// Shortens the results that are larger than the budget takes, of frames that are new. What came
    /// while there was room stays: the history may never need more.
    pub(super) fn shorten_new(&mut self, history: &History) {
        let most = self.budget.largest_result;
        let room_is_short = self.budget.trigger() / 2;
        let steps = self.transform.steps();
        let mut shortened = Vec::new();
        let new = steps.iter().skip(self.looked_at);
        let frames = history.frames();
        let slice = frames.slice(self.looked_at..frames.len());
        for ((at, step), frame) in (self.looked_at..).zip(new).zip(slice) {
            self.tokens_looked_at += step.tokens;
            let is_needed = self.tokens_looked_at > room_is_short && !step.stays;
            let Some(snapshot) = frame.rendered_snapshot.as_ref().filter(|_| is_needed) else {
                continue;
            };
            let is_replaced = self.transform.compression_state(frame.sequence).is_some();
            let is_large = tokens_of(snapshot) > most.saturating_add(most / 2);
            if is_large && !is_replaced && self.holds_results(at, snapshot) {
                let counter = &**self.hud.counter();
                let shortening = Shortening::of(frame.sequence, snapshot, counter);
                shortened.extend(shortening.results(most));
            }
        }
        self.looked_at = steps.len();
        shortened.into_iter().for_each(|change| self.enter(change));
    }

    /// Shortens the user's first message and last instruction by what the context has too much, at
    /// most to their shares; says whether either was longer.
    pub(super) fn shorten_words(&mut self, history: &History, mut excess: u64) -> bool {
        let steps = self.transform.steps();
        let (first, last) = (self.transform.task(), self.transform.instruction());
        let shares = [(first, self.budget.first_words), (last, self.budget.last_words)];
        let mut shorter = Vec::new();
        for (at, share) in shares {
            let Some(step) = at.and_then(|at| steps.get(at)) else { continue };
            if at == last && first == last && share == self.budget.last_words
                || step.tokens <= share.max(LEAST_TOKENS)
                || step.stays
                || self.change_of(step.sequence).is_some()
                || self.transform.compression_state(step.sequence).is_some()
            {
                continue;
            }
            let Some(snapshot) = self.shown(history, step.sequence) else { continue };
            let counter = &**self.hud.counter();
            // Room that nothing else takes is theirs.
            let share = share.max(LEAST_TOKENS).max(step.tokens.saturating_sub(excess));
            let shortening = Shortening::of(step.sequence, &snapshot, counter);
            let words = shortening.words(share);
            // Each of many texts would have its rules: those of such a message are left out.
            let fits = |change: &Change| change.shortened().is_some_and(|of| of.tokens <= share);
            let change = words.filter(fits).or_else(|| shortening.plain(share));
            let left = change.as_ref().and_then(Change::shortened).map(|of| of.tokens);
            excess = excess.saturating_sub(left.map_or(0, |left| step.tokens.saturating_sub(left)));
            shorter.extend(change);
        }
        let is_shorter = !shorter.is_empty();
        shorter.into_iter().for_each(|change| self.enter(change));
        is_shorter
    }

    /// Gives the user's last instruction back what room there is below the low mark, where contexts
    /// change from there on anyway: `context` is what they are otherwise.
    pub(super) fn lengthen_instruction(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: RenderedContext,
        now: Millis,
    ) -> Result<RenderedContext> {
        let steps = self.transform.steps();
        let at = self.transform.instruction().filter(|at| self.transform.task() != Some(*at));
        let Some(frame) = at.and_then(|at| steps.get(at)).map(|step| step.sequence) else {
            return Ok(context);
        };
        let is_new = self.seen.is_none_or(|seen| frame > seen)
            || self.pending.as_ref().is_some_and(|epoch| epoch.from <= frame);
        if !is_new {
            return Ok(context);
        }
        self.lengthen(history, request, context, (frame, true), now)
    }

    /// Gives what is shortened in the first context of a window back what room there is below the low
    /// mark: the user's first message and last instruction, and then the others from the newest on. There is no cache yet
    /// that it could cost. A result that is shortened whenever it comes stays so.
    pub(super) fn lengthen_first(
        &mut self,
        history: &History,
        request: &RenderRequest,
        mut context: RenderedContext,
        now: Millis,
    ) -> Result<RenderedContext> {
        if self.seen.is_some() {
            return Ok(context);
        }
        let steps = self.transform.steps();
        let words = self.transform.task().into_iter().chain(self.transform.instruction());
        let words = words.filter_map(|at| steps.get(at)).map(|step| step.sequence);
        let words: Vec<FrameSeq> = words.collect();
        let shortened = self.changes.values().rev().filter_map(Change::shortened);
        let most = self.budget.largest_result;
        let is_large = |what: &ShortenedFrame| {
            most < self.budget.room() && what.original_tokens > most.saturating_add(most / 2)
        };
        let is_asked = |what: &&ShortenedFrame| !words.contains(&what.frame) && !is_large(what);
        let others: Vec<FrameSeq> = shortened.filter(is_asked).map(|what| what.frame).collect();
        let words = words.into_iter().map(|frame| (frame, true));
        for frame in words.chain(others.into_iter().map(|frame| (frame, false))) {
            context = self.lengthen(history, request, context, frame, now)?;
        }
        Ok(context)
    }

    /// The context with as much more of a shortened frame as there is room for below the low mark;
    /// `context` where that is nothing. Of the user's words, if `is_words`.
    fn lengthen(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: RenderedContext,
        (frame, is_words): (FrameSeq, bool),
        now: Millis,
    ) -> Result<RenderedContext> {
        let change = self.change_of(frame).cloned();
        let Some((change, snapshot)) = change.zip(self.shown(history, frame)) else {
            return Ok(context);
        };
        let Some(what) = change.shortened().filter(|what| !what.is_masked()) else {
            return Ok(context);
        };
        let most = self.budget.target();
        let share = what.tokens + most.saturating_sub(context.tokens().total);
        // A word more is worth no other context.
        if share < what.tokens + LEAST_TOKENS {
            return Ok(context);
        }
        self.take_back(frame..=frame);
        if share < what.original_tokens {
            let counter = &**self.hud.counter();
            let shorten = if is_words { Shortening::words } else { Shortening::results };
            let longer = Shortening::of(frame, &snapshot, counter).longest(share, shorten);
            let is_longer =
                |longer: &Change| longer.shortened().is_some_and(|of| of.tokens > what.tokens);
            self.enter(longer.filter(is_longer).unwrap_or_else(|| change.clone()));
        } else {
            self.note(frame, Vec::new());
        }
        let longer = self.context(history, request, now)?;
        if longer.tokens().total <= most {
            return Ok(longer);
        }
        self.enter(change);
        self.context(history, request, now)
    }

    /// Drops and shortens until the context fits, which is `context` at first.
    pub(super) fn fit(
        &mut self,
        history: &History,
        request: &RenderRequest,
        mut context: RenderedContext,
        now: Millis,
    ) -> Result<RenderedContext> {
        if self.budget.room() == 0 && self.budget.tools > 0 {
            // Whatever is left out, nothing fits.
            let all = self.breakdown_of(request, &context);
            let breakdown = Breakdown { blocks: 0, others: 0, largest: Vec::new(), ..all };
            let error = breakdown.error();
            self.refused = Some(breakdown);
            return Err(error);
        }
        // What may be left of a frame: first an eighth of the free room, so that each of the newest
        // keeps its share; less only where that is still too much.
        let mut share = 8;
        let mut dropped = Vec::new();
        loop {
            if context.tokens().total <= self.budget.room() {
                return self.refill(history, request, context, dropped, now);
            }
            // Where things stand says less before frames go.
            let sixth = self.free(request, &context) / 6;
            if self.ledger.tokens() > sixth && self.ledger.limit.is_none_or(|limit| limit > sixth) {
                self.ledger.shrink_to(sixth);
                context = self.context(history, request, now)?;
                continue;
            }
            let least = (self.free(request, &context) / share).max(LEAST_TOKENS);
            let gone = self.drop_some(history, request, &context);
            let is_less = !gone.is_empty();
            dropped.extend(gone);
            if is_less || self.shorten(history, &context, 0, least) {
                context = self.context(history, request, now)?;
                continue;
            }
            if least == LEAST_TOKENS && self.ledger.behind().is_some() {
                self.ledger.shrink_to(0);
                context = self.context(history, request, now)?;
                continue;
            }
            if least == LEAST_TOKENS {
                let breakdown = self.breakdown_of(request, &context);
                let error = breakdown.error();
                self.refused = Some(breakdown);
                return Err(error);
            }
            share *= 2;
        }
    }

    /// Shortens the largest frame that has more than `above` tokens, so that the context fits or
    /// `least` tokens of it are left. Says whether there was one.
    pub(super) fn shorten(
        &mut self,
        history: &History,
        context: &RenderedContext,
        above: u64,
        least: u64,
    ) -> bool {
        let excess = context.tokens().total.saturating_sub(self.budget.room());
        let mut largest = self.live_frames(history, context);
        largest.retain(|(_, tokens)| *tokens > above.max(least));
        largest.sort_by_key(|(frame, tokens)| (u64::MAX - tokens, *frame));
        let shorter = largest.into_iter().find_map(|(frame, tokens)| {
            let snapshot = self.shown(history, frame)?;
            let limit = tokens.saturating_sub(excess).max(least);
            // Each text that is cut takes a marker, so that a limit close to what is left may come
            // to no less.
            let halved = |limit: &u64| (*limit > least).then(|| (limit / 2).max(least));
            let shortening = Shortening::of(frame, &snapshot, &**self.hud.counter());
            let shortened = |limit: u64| {
                let change = shortening.results(limit)?;
                change.shortened().is_some_and(|what| what.tokens < tokens).then_some(change)
            };
            std::iter::successors(Some(limit), halved).find_map(shortened)
        });
        let is_shorter = shorter.is_some();
        shorter.into_iter().for_each(|change| self.enter(change));
        is_shorter
    }

    /// Takes back the user's words, blocks and recent frames that were dropped for this context where
    /// there is room for them after all: more went after them. The most worth comes first.
    fn refill(
        &mut self,
        history: &History,
        request: &RenderRequest,
        mut context: RenderedContext,
        mut dropped: Vec<(KeepRank, DroppedFrames)>,
        now: Millis,
    ) -> Result<RenderedContext> {
        dropped.sort_by(|(one, _), (other, _)| other.order(one));
        for (worth, frames) in dropped {
            let most = self.budget.room();
            if worth.is_cheap() || context.tokens().total + frames.tokens > most {
                continue;
            }
            let changes = self.take_back(frames.from..=frames.to);
            let fuller = self.context(history, request, now)?;
            if fuller.tokens().total <= most {
                context = fuller;
            } else {
                changes.into_iter().for_each(|change| self.enter(change));
            }
        }
        Ok(context)
    }

    /// What a context is brought down to where something goes that is not worth much: not every turn
    /// is to drop something.
    fn seldom(&self) -> u64 {
        self.budget.target().midpoint(self.budget.room())
    }

    /// Drops what is least worth, and says what that was.
    fn drop_some(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: &RenderedContext,
    ) -> Vec<(KeepRank, DroppedFrames)> {
        let (room, seldom) = (self.budget.room(), self.seldom());
        let mut total = context.tokens().total;
        let mut gone = Vec::new();
        let candidates = self.candidates(history, request, context);
        // What has no room by itself goes first: everything else would give way to it in vain.
        let (hopeless, others): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|(_, dropped)| dropped.tokens > room);
        for (worth, dropped) in hopeless.into_iter().chain(others) {
            // What is recent, or stands for many frames, goes only as far as it must.
            let goal = if worth.is_cheap() { seldom } else { room };
            if total <= goal {
                break;
            }
            total = total.saturating_sub(dropped.tokens);
            self.enter(Change::Dropped(dropped.clone()));
            gone.push((worth, dropped));
        }
        gone
    }

    /// What may be dropped, the least worth first: frames that go together, and blocks. The newest
    /// stays: it is what the model is to answer.
    fn candidates(
        &self,
        history: &History,
        request: &RenderRequest,
        context: &RenderedContext,
    ) -> Vec<(KeepRank, DroppedFrames)> {
        let steps = self.transform.steps();
        let live: BTreeMap<FrameSeq, u64> =
            self.live_frames(history, context).into_iter().collect();
        let mut frames = live.keys().copied().peekable();
        let per_message = request.framing.per_message;
        let recent = steps.len().saturating_sub(self.transform.options().protected_frames);
        let mut candidates: Vec<(KeepRank, DroppedFrames)> = Vec::new();
        while let Some(frame) = frames.next() {
            let units = self.transform.units();
            let at = units.partition_point(|unit| unit.to < frame);
            let Some(unit) = units.get(at).filter(|unit| unit.from <= frame) else { continue };
            // A command in the agent's text goes with the output right behind it.
            let is_output = |next: &&Unit| {
                let (start, before) = (next.range().start, unit.range().end);
                let answers = |command: usize| command + 1 == before && start == before;
                self.transform.command_answered(start).is_some_and(answers)
                    && live.contains_key(&next.from)
            };
            let last = units.get(at + 1).filter(is_output).unwrap_or(unit);
            let (from, to, range) = (unit.from, last.to, unit.range().start..last.range().end);
            while frames.next_if(|frame| *frame <= to).is_some() {}
            let (messages, tokens) = live
                .range(from..=to)
                .fold((0, 0), |(count, sum), (_, tokens)| (count + 1, sum + tokens));
            let is_recent = range.end > recent;
            let is_words = [self.transform.task(), self.transform.instruction()];
            let is_words = is_words.into_iter().flatten().any(|at| range.contains(&at));
            let is_command = range.clone().any(|at| self.transform.command_answered(at).is_some());
            let frames = history.frames().slice(range);
            let worth = KeepRank::of_frames(frames, from, is_recent).keep(is_words);
            let worth = if is_command { worth.as_done() } else { worth };
            let tokens = tokens + messages * per_message;
            candidates.push((worth, DroppedFrames { from, to, tokens, block: None }));
        }
        let first_recent = steps.get(recent).map(|step| step.sequence);
        candidates.extend(self.live_blocks(context).map(|block| {
            let (from, to) = (block.from, block.to);
            let worth = KeepRank::of_block(from, first_recent.is_some_and(|first| to >= first));
            let tokens = block.tokens + per_message;
            (worth, DroppedFrames { from, to, tokens, block: Some(Arc::clone(&block.id)) })
        }));
        let newest = candidates.iter().map(|(_, dropped)| dropped.to).max();
        candidates.retain(|(_, dropped)| Some(dropped.to) != newest);
        candidates.sort_by(|(one, _), (other, _)| one.order(other));
        candidates
    }

    /// The frames that the context holds, as they are or shortened, with their tokens, in order; but
    /// for those that stay as they are. Runs in time proportional to the context.
    fn live_frames(&self, history: &History, context: &RenderedContext) -> Vec<(FrameSeq, u64)> {
        let held = context.frame_to_message().filter_map(|(frame, _)| {
            let snapshot = history.snapshot(frame)?;
            self.change_of(frame).is_none().then(|| (frame, tokens_of(&snapshot)))
        });
        let shortened = self.changes.values().chain(self.edited()).filter_map(Change::shortened);
        let shortened = shortened.map(|what| (what.frame, what.tokens));
        let steps = self.transform.steps();
        let may_go = |(frame, _): &(FrameSeq, u64)| {
            let at = steps.binary_search_by_key(frame, |step| step.sequence);
            at.ok().and_then(|at| steps.get(at)).is_some_and(|step| !step.stays)
        };
        let mut live: Vec<(FrameSeq, u64)> = held.chain(shortened).filter(may_go).collect();
        live.sort_unstable();
        live
    }

    /// The blocks that the context holds.
    fn live_blocks(
        &self,
        context: &RenderedContext,
    ) -> impl Iterator<Item = &Arc<CompressionBlock>> {
        let blocks = context.messages().iter().filter(|message| message.is_block());
        let held: Vec<_> = blocks.filter_map(Message::frames).collect();
        let is_held = move |block: &&Arc<CompressionBlock>| {
            held.binary_search(&(block.from, block.to)).is_ok()
                && !self.changes.contains_key(&block.from)
        };
        self.transform.blocks().filter(is_held)
    }

    /// The tokens that are left for frames and blocks.
    pub(super) fn free(&self, request: &RenderRequest, context: &RenderedContext) -> u64 {
        let of = self.breakdown_of(request, context);
        let fixed = of.system_prompt + of.pinned + of.tail + of.framing;
        self.budget.room().saturating_sub(fixed)
    }

    /// What was done to a frame, besides blocks.
    pub(super) fn change_of(&self, frame: FrameSeq) -> Option<&Change> {
        let (_, change) = self.changes.range(..=frame).next_back()?;
        Some(change).filter(|change| frame <= change.to())
    }

    /// Takes back what was done to any of these frames, and says what that was. Runs in time
    /// proportional to what is taken back: changes never overlap.
    pub(super) fn take_back(&mut self, range: RangeInclusive<FrameSeq>) -> Vec<Change> {
        let mut taken = Vec::new();
        while let Some((from, change)) = self.changes.range(..=*range.end()).next_back()
            && change.to() >= *range.start()
        {
            let from = *from;
            taken.extend(self.changes.remove(&from));
            self.unsettle();
        }
        taken.reverse();
        taken
    }

    /// Lets a change take effect in place of what was done to its frames before.
    pub(super) fn enter(&mut self, change: Change) {
        let over = self.take_back(change.from()..=change.to());
        let from = over.iter().map(Change::from).fold(change.from(), FrameSeq::min);
        self.note(from, Vec::new());
        self.changes.insert(change.from(), change);
        self.unsettle();
    }
}

pub(super) fn tokens_of(snapshot: &FrameSnapshot) -> u64 {
    snapshot.exact_tokens().unwrap_or(snapshot.total_tokens())
}
