use std::sync::Arc;

use super::{
    CompressionTransform, branch,
    range::{Covers, PlannedRange, RangeLimits},
};
use crate::{
    compress::{CompressionBlock, walk::Step},
    id::Role,
    veil::History,
};

impl CompressionTransform {
    /// The next range of frames, front to back.
    pub(super) fn next_range(&mut self, cut: RangeLimits) -> Option<PlannedRange> {
        let options = &self.options;
        let steps = self.walk.steps();
        // Frames that are not sealed yet are newer than all of these.
        let protected = cut.protected_frames.saturating_sub(self.unsealed);
        let end = steps.len().saturating_sub(protected);
        let taken = &self.taken;
        let is_taken = |at: usize| taken.range(..=at).next_back().is_some_and(|(_, end)| at < *end);
        let instruction = self.walk.instruction();
        let is_fixed = |at: usize, step: &Step| {
            step.is_fixed() || step.is_task || instruction == Some(at) || is_taken(at)
        };
        loop {
            // A result whose call stays, stays with it.
            let begins =
                |at: usize| at.checked_sub(1).is_none_or(|before| is_closed(steps, before));
            while steps
                .get(self.front)
                .is_some_and(|step| is_fixed(self.front, step) || !begins(self.front))
            {
                self.front += 1;
            }
            let free = steps.get(self.front..end)?;
            if free.len() < cut.min_frames.max(1) {
                return None;
            }
            // The output of a command stays with it, and so does what may be one.
            let is_whole = |at: usize| {
                let may_ask = steps.get(at).is_some_and(|step| step.may_ask);
                let next = steps.get(at + 1).filter(|step| !is_fixed(at + 1, step));
                let may_answer =
                    |next: &Step| next.command == Some(at) || may_ask && next.role == Role::User;
                next.is_none_or(|next| !may_answer(next))
            };
            let (mut tokens, mut closed) = (0_u64, None);
            let mut is_stopped = false;
            let front = self.front;
            for (at, step) in free.iter().enumerate() {
                let with = tokens.saturating_add(step.tokens);
                if is_fixed(front + at, step)
                    || (with > options.max_range_tokens && closed.is_some())
                {
                    is_stopped = true;
                    break;
                }
                tokens = with;
                if step.is_closed && is_whole(front + at) {
                    closed = Some((at + 1, tokens));
                    if tokens >= cut.enough {
                        is_stopped = true;
                        break;
                    }
                }
            }
            let Some((count, tokens)) = closed else {
                if !is_stopped {
                    return None;
                }
                // Calls that wait up to a frame that stays: they stay too.
                let waits = free.iter().enumerate();
                self.front += waits.take_while(|(at, step)| !is_fixed(front + at, step)).count();
                continue;
            };
            if tokens < options.trigger_tokens {
                if !is_stopped {
                    return None;
                }
                self.front += count;
                continue;
            }
            let frames = self.front..self.front + count;
            self.front = frames.end;
            let (from, to) =
                (steps.get(frames.start)?.sequence, steps.get(frames.end - 1)?.sequence);
            let id = format!("block-{from}-{to}").into();
            return Some(PlannedRange {
                limit: options.block_limit(tokens),
                seen: steps.len(),
                ..PlannedRange::waiting(id, Covers::Frames(frames), 1, tokens)
            });
        }
    }

    /// The oldest run of adjacent blocks of one level that are worth a block of their own; one that
    /// is larger than blocks may be is worth it alone.
    pub(super) fn next_blocks(&mut self, history: &History) -> Option<PlannedRange> {
        let options = self.options.clone();
        let planned = |block: &Arc<CompressionBlock>| {
            self.merged.contains(&block.id) || branch::is_one(block)
        };
        let is_worth_it = |run: &[Arc<CompressionBlock>], tokens: u64| {
            run.len() > 1 && tokens >= options.trigger_tokens
                || !run.is_empty() && tokens > options.max_block_tokens
        };
        let mut run: Vec<Arc<CompressionBlock>> = Vec::new();
        let mut tokens = 0_u64;
        // Instructions that others followed stand between blocks, and frames that were passed over
        // since they are too few: they go with them.
        let kept = self.kept_frames();
        let is_kept = |at: usize| {
            let after = kept.partition_point(|frames| frames.start <= at);
            kept.get(..after).unwrap_or_default().iter().any(|frames| frames.end > at)
        };
        let goes_with = |at: usize| at < self.front && self.walk.may_go(at) && !is_kept(at);
        let adjoin = |one: &CompressionBlock, other: &CompressionBlock| {
            (self.walk.first_after(one.to)..self.walk.first_from(other.from)).all(goes_with)
        };
        for block in self.applied.values() {
            let follows =
                run.last().is_none_or(|last| last.level == block.level && adjoin(last, block));
            let fits =
                run.is_empty() || tokens.saturating_add(block.tokens) <= options.max_range_tokens;
            if !follows || !fits || planned(block) || block.level >= options.max_level {
                if is_worth_it(&run, tokens) {
                    break;
                }
                (run, tokens) = (Vec::new(), 0);
                if planned(block) || block.level >= options.max_level {
                    continue;
                }
            }
            tokens = tokens.saturating_add(block.tokens);
            run.push(Arc::clone(block));
        }
        if !is_worth_it(&run, tokens) {
            return None;
        }
        let run = self.with_frames_between(history, run)?;
        let tokens = run.iter().fold(0_u64, |sum, block| sum.saturating_add(block.tokens));
        let (first, last) = (run.first()?, run.last()?);
        let level = first.level + 1;
        let id = format!("block-{}-{}.{level}", first.from, last.to).into();
        Some(PlannedRange {
            original_tokens: run.iter().fold(0, |sum, block| sum + block.original_tokens),
            limit: options.merged_limit(tokens),
            seen: self.walk.steps().len(),
            ..PlannedRange::waiting(id, Covers::Blocks(run), level, tokens)
        })
    }
}

pub(super) fn is_closed(steps: &[Step], at: usize) -> bool {
    steps.get(at).is_some_and(|step| step.is_closed)
}
