use std::{ops::Range, sync::Arc};

use super::{
    CompressionBlock, CompressionTransform, RangeState,
    adopt::{EnteredBlock, NewBlock},
};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetType, Millis},
    snapshot::FrameSnapshot,
    veil::{Branch, Compaction, Facet, History},
};

/// What is named as the engine of blocks that stand for frames of other branches.
const ENGINE: &str = "branch";

/// Whether a block stands for frames of another branch: it must stay apart, to be undone.
pub(super) fn is_one(block: &CompressionBlock) -> bool {
    block.engine == ENGINE
}

impl CompressionTransform {
    /// Lets a branch take effect that the frame after those which were adopted tells of.
    ///
    /// Blocks from the first frame on that changes are undone. The frames outside get blocks that
    /// show nothing; then the compactions of all frames inside are taken over again, in order.
    pub(super) fn enter_branch(
        &mut self,
        history: &History,
        branch: &Branch,
        now: Millis,
        render: &mut impl FnMut(&Facet) -> Result<FrameSnapshot>,
    ) -> Result<Vec<EnteredBlock>> {
        let outside = self.indices(branch);
        if outside == self.outside {
            return Ok(Vec::new());
        }
        if !self.under_way.is_empty() {
            let message = "the session went back to an earlier frame while a job is under way; complete or fail the job first";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let Some(cut) = self.first_change(&outside) else { return Ok(Vec::new()) };
        let Some(from) = self.walk.steps().get(cut).map(|step| step.sequence) else {
            return Ok(Vec::new());
        };
        self.undo_from(cut, &outside);
        let mut entered = vec![(from, None)];
        for frames in &outside {
            let block = self.outside_block(history, frames, now, render)?;
            entered.extend(block.map(|new| self.enter(new)));
        }
        for at in self.telling.clone() {
            let is_outside = outside.iter().any(|frames| frames.contains(&at));
            let Some(frame) = history.frames().get(at).filter(|_| !is_outside) else { continue };
            if let Ok(Some(told)) = Compaction::of(&frame) {
                let blocks = self.blocks_of(history, &told, now, render)?;
                entered.extend(blocks.into_iter().map(|new| self.enter(new)));
            }
        }
        self.outside = outside;
        Ok(entered)
    }

    /// The frames outside of a branch, by their indices.
    fn indices(&self, branch: &Branch) -> Vec<Range<usize>> {
        let ranges =
            branch.outside.iter().map(|range| self.walk.within(*range.start(), *range.end()));
        ranges.filter(|range| !range.is_empty()).collect()
    }

    /// The first frame that changes: one that comes or goes, or the first that a compaction replaced.
    fn first_change(&self, outside: &[Range<usize>]) -> Option<usize> {
        let steps = self.walk.steps();
        let changed = outside.iter().chain(&self.outside).map(|frames| frames.start);
        let changed = changed.min()?;
        let imported = self.applied.values().filter(|block| self.is_imported(block));
        let reaches = |block: &&Arc<CompressionBlock>| {
            steps.get(changed).is_some_and(|step| step.sequence <= block.to)
        };
        let met = self.applied.values().filter(reaches);
        let starts = imported.chain(met).map(|block| self.walk.first_from(block.from));
        starts.chain([changed]).min()
    }

    /// Whether a block was imported, or one inside of it.
    fn is_imported(&self, block: &CompressionBlock) -> bool {
        self.imported.contains(&block.id)
            || block.blocks().iter().any(|inner| self.is_imported(inner))
    }

    /// Undoes all blocks from a frame on, and every range that is not in effect.
    fn undo_from(&mut self, cut: usize, outside: &[Range<usize>]) {
        let Some(from) = self.walk.steps().get(cut).map(|step| step.sequence) else { return };
        let undone = self.applied.split_off(&from);
        for block in undone.values() {
            self.imported.remove(&block.id);
        }
        self.ready.clear();
        let open: Vec<usize> = self.pending.iter().chain(&self.failed).copied().collect();
        for number in open {
            let reason = "the session went back to an earlier frame".to_owned();
            self.enter_state(number, RangeState::Failed { reason });
        }
        self.taken.split_off(&cut);
        self.merged.clear();
        self.walk.release(cut, outside);
        self.front = self.front.min(cut);
        self.is_settled = false;
        self.live_tokens = self.count_live();
    }

    /// A block that shows nothing, for frames of another branch; none where these show nothing.
    fn outside_block(
        &mut self,
        history: &History,
        frames: &Range<usize>,
        now: Millis,
        render: &mut impl FnMut(&Facet) -> Result<FrameSnapshot>,
    ) -> Result<Option<NewBlock>> {
        let passages = self.walk.passages(history, frames.clone())?;
        if passages.is_empty() {
            return Ok(None);
        }
        let facet = Facet::new("", FacetType::SUMMARY, "");
        let snapshot = render(&facet)?;
        let net_ops = self.walk.net_ops(history, frames.clone())?;
        let block = self.imported(frames, passages, facet, snapshot)?;
        let id: Arc<str> = format!("{ENGINE}-{}-{}", block.from, block.to).into();
        let facet = Arc::new(Facet { id: (&*id).into(), ..Facet::clone(&block.facet) });
        let engine = ENGINE.to_owned();
        let block = CompressionBlock { id, facet, net_ops, engine, created_at: now, ..block };
        Ok(Some(NewBlock { block, frames: frames.clone() }))
    }
}
