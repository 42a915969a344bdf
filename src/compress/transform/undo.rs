use std::sync::Arc;

use super::{CompressionTransform, Epoch, RangeState, between::is_verbatim, range::Covers};
use crate::{Error, ErrorKind, Result, compress::CompressionBlock, veil::History};

impl CompressionTransform {
    /// Takes a block back: what it stands for is in contexts again as it was before, frames or
    /// blocks. Where it is inside of other blocks, these are taken back first. No plan compresses
    /// the frames again; [`CompressionTransform::compress_range`] does.
    ///
    /// Cost: O(blocks in effect).
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where no block in effect has this id, or none in one; where another
    /// program compacted the frames, so that the block is what was sent; and where a job for the
    /// block is under way: answer or drop it first. [`ErrorKind::Dropped`] where the history has
    /// forgotten the frames. Nothing has changed then.
    pub fn undo(&mut self, history: &History, id: &str) -> Result<Epoch> {
        let mut chain = Vec::new();
        let outer = self.applied.values().find(|block| holds(block, id, &mut chain));
        let Some(outer) = outer.cloned() else {
            return Err(self.not_in_effect(id));
        };
        self.may_undo(history, &outer, &chain)?;
        self.epoch += 1;
        self.is_settled = false;
        for block in &chain {
            self.take_apart(block);
        }
        let back = chain.last().map(|block| block.blocks()).unwrap_or_default();
        let back = back.iter().filter(|block| !is_verbatim(block));
        let blocks = back.map(|block| Arc::clone(&block.id)).collect();
        Ok(Epoch { number: self.epoch, from: outer.from, blocks })
    }

    fn may_undo(
        &self,
        history: &History,
        outer: &CompressionBlock,
        chain: &[Arc<CompressionBlock>],
    ) -> Result<()> {
        let refused = |kind: ErrorKind, message: String| {
            Err(Error::new(kind, message).at_frame(outer.from.get()))
        };
        if let Some(block) = chain.iter().find(|block| self.imported.contains(&block.id)) {
            let message =
                format!("{} is what {} put in place of the frames", block.id, block.engine);
            return refused(ErrorKind::Conflict, message);
        }
        let mut under_way = self.under_way.keys().filter_map(|at| self.ranges.get(*at));
        if let Some(range) = under_way.find(|range| range.covers.holds(&outer.id)) {
            let message = format!("a job for {} is under way, which holds {}", range.id, outer.id);
            return refused(ErrorKind::Conflict, message);
        }
        let frames = history.frames();
        let mut within = frames.first_from(outer.from)..frames.first_after(outer.to);
        if within.any(|at| frames.is_forgotten(at)) {
            let message = format!("the frames of {} were forgotten", outer.id);
            return refused(ErrorKind::Dropped, message);
        }
        Ok(())
    }

    /// Puts in the place of a block in effect what it stands for.
    fn take_apart(&mut self, block: &CompressionBlock) {
        // What was planned with it has no sense any more.
        let open = self.pending.iter().chain(&self.failed).chain(self.ready.keys());
        let with_it = |number: &usize| {
            self.ranges.get(*number).is_some_and(|range| range.covers.holds(&block.id))
        };
        let open: Vec<usize> = open.copied().filter(with_it).collect();
        for number in open {
            self.ready.remove(&number);
            self.enter_state(number, RangeState::Undone);
            self.empty(number);
        }
        self.applied.remove(&block.from);
        let is_its =
            |range: &super::PlannedRange| range.id == block.id && range.state == RangeState::Ready;
        if let Some(number) = self.ranges.iter().rposition(is_its) {
            self.enter_state(number, RangeState::Undone);
        }
        let back = if block.blocks().is_empty() {
            self.tokens_within(&self.walk.within(block.from, block.to))
        } else {
            block.blocks().iter().fold(0_u64, |sum, inner| sum.saturating_add(inner.tokens))
        };
        self.live_tokens = self.live_tokens.saturating_sub(block.tokens).saturating_add(back);
        // A frame that was kept word for word stands for itself again.
        for inner in block.blocks().iter().filter(|inner| !is_verbatim(inner)) {
            self.applied.insert(inner.from, Arc::clone(inner));
        }
    }
}

impl CompressionTransform {
    /// A range that is over holds its frames alone: held here too, blocks could not be let go.
    fn empty(&mut self, number: usize) {
        let Some(range) = self.ranges.get(number) else { return };
        let Some((first, last)) = self.ends_of(range) else { return };
        let frames = self.walk.within(first, last);
        if let Some(range) = self.ranges.get_mut(number) {
            range.covers = Covers::Frames(frames);
        }
    }
}

/// Whether a block has this id, or one in it; notes the blocks down to that one.
fn holds(block: &Arc<CompressionBlock>, id: &str, chain: &mut Vec<Arc<CompressionBlock>>) -> bool {
    chain.push(Arc::clone(block));
    if *block.id == *id || block.blocks().iter().any(|inner| holds(inner, id, chain)) {
        return true;
    }
    chain.pop();
    false
}
