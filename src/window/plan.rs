//! What a window does about frames that are new, and about a context that is too large: the cheapest
//! loss first.

use super::{ContextWindow, DroppedFrames, change::Change};
use crate::{
    ErrorKind, Result,
    hud::{RenderRequest, RenderedContext},
    id::{FrameSeq, Millis, Role},
    veil::History,
};

/// So many of the newest frames are compressed last, however large they are.
const LEAST_PROTECTED: usize = 2;

/// Frames of fewer tokens come back as they are: a block would hardly say less.
const LEAST_RUN: u64 = 64;

impl ContextWindow {
    /// Looks at the frames that are new, after sealing those that have no snapshot; the next context
    /// says which.
    pub(super) fn seal(&mut self, history: &mut History, now: Millis) -> Result<()> {
        // Another history is refused before anything of it is sealed.
        self.transform.look(history)?;
        self.sealed.extend(self.hud.seal_all(history, now)?);
        self.transform.look(history)
    }

    /// Looks at the frames that are new, and takes over the compactions that they tell of.
    pub(super) fn look(&mut self, history: &mut History, now: Millis) -> Result<()> {
        self.seal(history, now)?;
        loop {
            let Self { hud, transform, .. } = self;
            let (tags, asked) = (history.veil().tags(), transform.asked());
            let adopted = transform
                .adopt(history, now, |facet| hud.render_facet(facet, Role::User, tags, now));
            match adopted {
                Ok(None) => break,
                Ok(epoch) => self.take_effect(epoch),
                // A range is planned for some of the frames: their compaction waits for it.
                Err(error) if error.kind() == ErrorKind::Conflict => break,
                // One that is damaged is passed over.
                Err(_) if self.transform.asked() > asked => {}
                Err(error) => return Err(error),
            }
        }
        self.take_edits(history, now)?;
        self.shorten_new(history);
        Ok(())
    }

    /// Takes over what the new frames tell that others are read as. What was made of such a frame
    /// before was made of another text.
    pub(super) fn take_edits(&mut self, history: &History, now: Millis) -> Result<()> {
        for frame in self.edits.follow(&self.hud, history, now)? {
            if self.change_of(frame).and_then(Change::shortened).is_some() {
                self.take_back(frame..=frame);
            }
            self.note(frame, Vec::new());
            self.unsettle();
        }
        Ok(())
    }

    /// Plans what brings a context closer to the low mark; says whether there was anything.
    pub(super) fn plan(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: &RenderedContext,
    ) -> Result<bool> {
        let total = context.tokens().total;
        let excess = total.saturating_sub(self.budget.target());
        if self.shorten_words(history, excess) {
            return Ok(true);
        }
        let live = self.live_results(history, context);
        // What the model waits for stays: what is older goes for its sake.
        let unseen = self.unseen(history, &live);
        let steps = self.transform.steps().len();
        let least = unseen.first().map_or(0, |first| steps - first.at).max(LEAST_PROTECTED);
        let mut protected = self.protected_frames().max(least);
        // The cheapest loss first.
        if self.mask_repeated(history, &live, excess, least)
            || self.mask_old(history, &live, excess, protected)
        {
            return Ok(true);
        }
        if self.transform.plan_frames_saving(history, excess, protected)? > 0 {
            return Ok(true);
        }
        // Before blocks say less for its sake, what takes most of the room does.
        let free = self.free(request, context);
        let over = total.saturating_sub(self.budget.room());
        if over > 0
            && (self.shorten(history, context, free / 2, free / 2)
                || self.shorten_together(history, unseen, over, free / 2))
        {
            return Ok(true);
        }
        if self.transform.plan_saving(history, excess, protected)? > 0 {
            return Ok(true);
        }
        if over == 0 {
            return Ok(false);
        }
        if self.shorten(history, context, free / 2, free / 4)
            || self.shorten_together(history, unseen, over, free / 4)
        {
            return Ok(true);
        }
        while protected > 0 {
            protected /= 2;
            if self.mask_old(history, &live, excess, protected.max(least)) {
                return Ok(true);
            }
            if self.transform.plan_saving(history, excess, protected)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Brings back what was left out while the engine failed, once it answers, as far as a context of
    /// `total` tokens has room below the middle of its marks: blocks and short frames as they were,
    /// other frames as blocks.
    /// Says whether there was anything.
    pub(super) fn plan_dropped(&mut self, history: &History, total: u64) -> Result<bool> {
        let most = self.budget.target().midpoint(self.budget.trigger());
        let room = most.saturating_sub(total);
        let dropped: Vec<DroppedFrames> =
            self.changes.values().filter_map(Change::dropped).cloned().collect();
        if dropped.is_empty() || !self.transform.has_recovered() {
            return Ok(false);
        }
        let steps = self.transform.steps();
        let largest = self.transform.options().max_range_tokens;
        let mut runs: Vec<DroppedFrames> = Vec::new();
        for of in dropped {
            // Frames without text may stand between.
            let is_next = |last: FrameSeq| {
                let from = steps.partition_point(|step| step.sequence <= last);
                let between = steps.iter().skip(from).take_while(|step| step.sequence < of.from);
                between.map(|step| step.tokens).sum::<u64>() == 0
            };
            let goes_on = |last: &&mut DroppedFrames| {
                let is_block = of.block.is_some() || last.block.is_some();
                !is_block && last.tokens + of.tokens <= largest && is_next(last.to)
            };
            match runs.last_mut().filter(goes_on) {
                Some(last) => (last.to, last.tokens) = (of.to, last.tokens + of.tokens),
                None => runs.push(of),
            }
        }
        let is_short = |run: &DroppedFrames| run.block.is_some() || run.tokens < LEAST_RUN;
        if let Some(run) = runs.iter().rfind(|run| is_short(run) && run.tokens <= room) {
            self.take_back(run.from..=run.to);
            self.note(run.from, Vec::new());
            return Ok(true);
        }
        let runs = runs.iter().filter(|run| !is_short(run)).map(|run| run.from..=run.to);
        self.transform.plan_left_out(history, runs.collect(), room)
    }

    /// How many of the newest frames are compressed last.
    fn protected_frames(&self) -> usize {
        let steps = self.transform.steps();
        let most = self.transform.options().protected_frames;
        let mut tokens = 0;
        let newest = steps.iter().rev().take(most).take_while(|step| {
            tokens += match self.change_of(step.sequence) {
                Some(Change::Shortened { what, .. }) => what.tokens,
                Some(Change::Dropped(_)) => 0,
                None => step.tokens,
            };
            tokens <= self.budget.recent
        });
        newest.count().max(most.min(LEAST_PROTECTED))
    }
}
