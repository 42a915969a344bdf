use std::ops::RangeInclusive;

use foldhash::HashSet;

use super::{ContextWindow, change::Change};
use crate::{
    Result,
    compress::RangePlan,
    hud::RenderRequest,
    id::{FrameSeq, Millis},
    snapshot::{ArchiveReader, Substitution, SubstitutionKind, Totals},
    steps::Passage,
    text::quote::guarded,
    veil::History,
};

/// What compression of a range on demand would do to the context.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangePreview {
    /// What goes, and what stays with why.
    pub plan: RangePlan,
    /// The tokens of the context as it stands.
    pub tokens_before: u64,
    /// The tokens of the context with blocks: at most so many, where each says as much as it may.
    pub tokens_after: u64,
    /// The tokens before the first changed byte: what a provider's cache still holds afterwards.
    pub tokens_unchanged: u64,
}

impl RangePreview {
    /// The tokens of the present context that no cache serves any more: those from the first changed
    /// byte on. 0 where nothing goes.
    pub fn lost_from_cache(&self) -> u64 {
        self.tokens_before.saturating_sub(self.tokens_unchanged)
    }

    /// The tokens of the next request that are billed anew, at most.
    pub fn written_anew(&self) -> u64 {
        self.tokens_after.saturating_sub(self.tokens_unchanged)
    }
}

impl ContextWindow {
    /// Plans a range of the caller's own, as
    /// [`CompressionTransform::compress_range`](crate::compress::CompressionTransform::compress_range)
    /// does, whatever the budget. [`ContextWindow::next_job`] hands it out, or the next
    /// [`ContextWindow::render`] has it summarised; then its blocks take effect. Costs the
    /// planning, as there, and the sealing of new frames.
    ///
    /// # Errors
    /// Those of
    /// [`CompressionTransform::compress_range`](crate::compress::CompressionTransform::compress_range)
    /// and of [`ContextWindow::next_job`].
    pub fn compress_range(
        &mut self,
        history: &mut History,
        range: RangeInclusive<FrameSeq>,
        now: Millis,
    ) -> Result<RangePlan> {
        self.look(history, now)?;
        self.transform.compress_range(history, range)
    }

    /// What [`ContextWindow::compress_range`] would do to the context for `request`: what goes, what
    /// stays and why, the tokens before and after, and what it costs the provider's cache.
    ///
    /// Renders the context twice from snapshots; plans nothing.
    ///
    /// # Errors
    /// Those of [`ContextWindow::compress_range`], but for
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict).
    pub fn preview_range(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        range: RangeInclusive<FrameSeq>,
        now: Millis,
    ) -> Result<RangePreview> {
        self.look(history, now)?;
        let plan = self.transform.preview_range(history, range)?;
        let before = self.context(history, request, now)?;
        let tokens_before = before.tokens().total;
        let Some(first) = plan.goes.first().map(|run| *run.start()) else {
            let (tokens_after, tokens_unchanged) = (tokens_before, tokens_before);
            return Ok(RangePreview { plan, tokens_before, tokens_after, tokens_unchanged });
        };
        let goes = |from: FrameSeq, to: FrameSeq| {
            plan.goes.iter().any(|run| *run.start() <= to && from <= *run.end())
        };
        let is_ledger = |of: &Substitution| of.stands == SubstitutionKind::Ledger;
        let kept = self.substitutions().into_iter();
        let kept = kept.filter(|of| !goes(of.from, of.to) && !is_ledger(of));
        let gone = plan.goes.iter().map(|run| Substitution {
            block: "preview".into(),
            stands: SubstitutionKind::Block,
            from: *run.start(),
            to: *run.end(),
            snapshot: self.nothing.clone(),
        });
        let mut substitutions: Vec<Substitution> = kept.chain(gone).collect();
        substitutions.sort_by_key(|of| of.from);
        let without =
            self.hud.render_with(history, request, (&substitutions, Some(guarded)), now)?;
        let per_message = request.framing.per_message;
        let blocks = plan.goes.len() as u64 * per_message;
        let last = plan.goes.last().map_or(first, |run| *run.end());
        let ledger = match self.ledger_tokens_after(history, last, now)? {
            0 => 0,
            tokens => tokens + per_message,
        };
        let tokens_after = without.tokens().total + plan.limit + blocks + ledger;
        let unchanged = before
            .messages()
            .iter()
            .take_while(|message| message.frames().is_none_or(|(_, last)| last < first));
        let tokens_unchanged = unchanged.map(|message| message.tokens() + per_message).sum();
        Ok(RangePreview { plan, tokens_before, tokens_after, tokens_unchanged })
    }

    /// Takes a block back, as
    /// [`CompressionTransform::undo`](crate::compress::CompressionTransform::undo) does. What stood
    /// in its place before stands there again: frames, shortened ones too, or blocks. The next
    /// context begins a new epoch there. Where there is no room for what came back, that context
    /// shortens and leaves out as ever. O(n log n) in the blocks and in what stands for frames.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::undo`](crate::compress::CompressionTransform::undo). Nothing
    /// has changed then.
    pub fn undo(&mut self, history: &History, id: &str) -> Result<()> {
        let mut outer = Vec::new();
        self.ids_around(id, &mut outer);
        let epoch = self.transform.undo(history, id)?;
        let replaced: Vec<Change> =
            outer.iter().filter_map(|id| self.replaced.remove(id.as_str())).flatten().collect();
        self.take_effect(Some(epoch));
        let in_effect: HashSet<&str> = self.transform.blocks().map(|block| &*block.id).collect();
        let is_there = |change: &Change| {
            let block = change.dropped().and_then(|dropped| dropped.block.as_deref());
            block.is_none_or(|id| in_effect.contains(id))
        };
        let replaced: Vec<Change> = replaced.into_iter().filter(is_there).collect();
        replaced.into_iter().for_each(|change| self.enter(change));
        Ok(())
    }

    /// The blocks around the one with this id, the outermost first, and that one.
    fn ids_around(&self, id: &str, found: &mut Vec<String>) {
        let mut level: Vec<_> = self.transform.blocks().collect();
        let holds = |block: &crate::compress::CompressionBlock| block.holds(id);
        while let Some(block) = level.into_iter().find(|block| holds(block)) {
            found.push(block.id.to_string());
            if *block.id == *id {
                return;
            }
            level = block.blocks().iter().collect();
        }
    }

    /// Gives back the memory of the frames that a block stands for, as
    /// [`CompressionTransform::spill`](crate::compress::CompressionTransform::spill) does. Costs
    /// what that does, and at worst O(n²) in the blocks.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::spill`](crate::compress::CompressionTransform::spill).
    pub fn spill(
        &mut self,
        history: &mut History,
        id: &str,
        archive: &ArchiveReader,
    ) -> Result<Totals> {
        let totals = self.transform.spill(history, id, archive)?;
        self.let_go(id);
        Ok(totals)
    }

    /// Gives up the frames that a block stands for, as
    /// [`CompressionTransform::forget`](crate::compress::CompressionTransform::forget) does. Costs
    /// what that does, and at worst O(n²) in the blocks.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::forget`](crate::compress::CompressionTransform::forget).
    pub fn forget(&mut self, history: &mut History, id: &str) -> Result<Totals> {
        let totals = self.transform.forget(history, id)?;
        self.let_go(id);
        Ok(totals)
    }

    /// What was done to frames that are gone does not come back.
    fn let_go(&mut self, id: &str) {
        let Some(gone) = self.transform.block(id) else { return };
        self.replaced.retain(|id, _| !gone.holds(id));
    }

    /// As [`ContextWindow::expand`], where the originals of blocks are in `archive`. Costs as much,
    /// and reads and copies what it takes from there.
    ///
    /// # Errors
    /// Those of [`ContextWindow::expand`] and of
    /// [`CompressionBlock::expand_from`](crate::compress::CompressionBlock::expand_from).
    pub fn expand_from(
        &self,
        history: &History,
        archive: &ArchiveReader,
        id: &str,
    ) -> Result<Vec<Passage>> {
        match self.transform.block(id) {
            Some(block) => block.expand_from(archive),
            None => self.expand(history, id),
        }
    }
}
