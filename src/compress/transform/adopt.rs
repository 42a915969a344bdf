use std::{ops::Range, sync::Arc};

use super::{CompressionTransform, Covers, Epoch, PlannedRange, RangeState};
use crate::{
    Error, ErrorKind, Result,
    compress::{
        CompressionBlock, NetOps, Passage,
        block::{Originals, content_hash},
    },
    id::{FacetType, FrameSeq, Millis},
    snapshot::FrameSnapshot,
    veil::{Branch, Compaction, Facet, History, without},
};

impl CompressionTransform {
    /// Takes over the compactions that frames tell of and that were not taken over yet: each
    /// becomes a block in effect, whose originals are the frames that were replaced. `render` makes of a
    /// summary what stands in contexts, as in [`CompressionTransform::complete`].
    ///
    /// Where a frame tells of a [`Branch`], the frames that are outside of it get blocks that show
    /// nothing. The compactions that these frames tell of are undone, and those that were undone by
    /// an earlier branch and are on this one take effect again. So is every block from the first
    /// frame on that changed; what a plan had for it is planned anew.
    ///
    /// The frame that says the summary gets a block of its own that shows nothing, since the
    /// summary stands in the place of the frames that were replaced. Frames that no block stands for
    /// (the operator's words, pinned facets) stay, and what was replaced after them gets a block that
    /// shows nothing too. A block that is in effect already and whose frames were replaced again is
    /// inside of the new one; where it stands for other frames too, the compaction is passed over
    /// for good, since the frames that it named stand in contexts no more. Where the compaction
    /// parted a call from its result, the frames from the call on stay, and at its beginning those
    /// up to the result. A frame that says the summary and holds a call or a result stays whole,
    /// and what was replaced shows nothing.
    ///
    /// What frames tell of that are not sealed yet is taken over once they are
    /// ([`CompressionTransform::first_unsealed`]).
    ///
    /// Each frame is looked at once; the veil is led through the frames that were replaced.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::plan`]; those of [`Compaction::of`], once: the next call
    /// passes that one over. [`ErrorKind::Conflict`] where a range is planned, and not in effect
    /// yet, that holds some of the frames, or, for a branch, where a job is under way; and those of `render`: the next call begins with the
    /// compaction that failed. Where others were taken over before it in the same call, their epoch
    /// is returned, and the error by the next call.
    pub fn adopt(
        &mut self,
        history: &History,
        now: Millis,
        mut render: impl FnMut(&Facet) -> Result<FrameSnapshot>,
    ) -> Result<Option<Epoch>> {
        self.look(history)?;
        let mut adopted = Vec::new();
        let frames = history.frames();
        for frame in frames.slice(self.adopted..self.walk.steps().len()) {
            let frame = &*frame;
            let told = Branch::of(frame).and_then(|branch| Ok((branch, Compaction::of(frame)?)));
            let is_damaged = told.is_err();
            let entered = told.and_then(|(branch, compaction)| {
                let mut entered = match branch {
                    Some(branch) => self.enter_branch(history, &branch, now, &mut render)?,
                    None => Vec::new(),
                };
                if let Some(told) = compaction {
                    if self.telling.last() != Some(&self.adopted) {
                        self.telling.push(self.adopted);
                    }
                    let blocks = self.blocks_of(history, &told, now, &mut render)?;
                    entered.extend(blocks.into_iter().map(|new| self.enter(new)));
                }
                Ok(entered)
            });
            match entered {
                Ok(entered) => adopted.extend(entered),
                // The epoch of those before it comes first; the next call meets the error again.
                Err(_) if !adopted.is_empty() => break,
                Err(error) => {
                    self.adopted += usize::from(is_damaged);
                    return Err(error.at_frame(frame.sequence.get()));
                }
            }
            self.adopted += 1;
        }
        let Some(from) = adopted.iter().map(|(from, _)| *from).min() else { return Ok(None) };
        self.epoch += 1;
        let blocks = adopted.into_iter().filter_map(|(_, id)| id);
        let blocks = blocks.filter(|id| self.block(id).is_some()).collect();
        Ok(Some(Epoch { number: self.epoch, from, blocks }))
    }

    /// How many frames were asked whether they tell of a compaction.
    pub(crate) fn asked(&self) -> usize {
        self.adopted
    }

    /// The blocks that a compaction comes to, each with the frames that it stands for.
    pub(super) fn blocks_of(
        &mut self,
        history: &History,
        told: &Compaction,
        now: Millis,
        render: &mut impl FnMut(&Facet) -> Result<FrameSnapshot>,
    ) -> Result<Vec<NewBlock>> {
        let (replaced, told_at) =
            (self.walk.within(told.from, told.to), self.walk.first_from(told.told_at));
        let start = self.walk.whole_start(replaced.start, replaced.end);
        let end = self.walk.whole_end(start, replaced.end);
        let kept = told.kept.iter().map(|range| self.walk.within(*range.start(), *range.end()));
        let kept: Vec<_> = kept.collect();
        let gone = self.walk.runs(start..end).into_iter().flat_map(|run| without(run, &kept));
        let own = told_at..told_at + 1;
        // A call or a result stays where it is, and then what the frame says besides it too.
        let stays =
            told.is_said && (told.is_in_place || self.walk.has_exchange(history, own.clone())?);
        let own = Some(own).filter(|_| told.is_said && !stays);
        let silent = Facet::new(told.summary.id.clone(), FacetType::SUMMARY, "");
        let mut runs = Vec::new();
        for frames in gone.chain(own) {
            let passages = self.walk.passages(history, frames.clone())?;
            if passages.is_empty() {
                continue;
            }
            if frames.start == told_at && runs.is_empty() {
                // Nothing was replaced, so the summary stays where it is.
                break;
            }
            runs.push((frames, passages));
        }
        if runs.iter().any(|(frames, _)| self.is_cut(frames)) {
            return Ok(Vec::new());
        }
        runs.iter().try_for_each(|(frames, _)| self.waits(frames))?;
        let mut entering = Vec::new();
        for (frames, passages) in runs {
            let is_first = entering.is_empty() && !stays;
            let facet = if is_first { &told.summary } else { &silent };
            let snapshot = render(facet)?;
            let net_ops = self.walk.net_ops(history, frames.clone())?;
            let engine = told.engine.clone();
            let facet = facet.clone();
            let block = self.imported(&frames, passages, facet, snapshot)?;
            let block = CompressionBlock { net_ops, engine, created_at: now, ..block };
            entering.push(NewBlock { block, frames });
        }
        Ok(entering)
    }

    /// A block for these frames; the blocks in effect within them are inside of it.
    pub(super) fn imported(
        &self,
        frames: &Range<usize>,
        passages: Vec<Passage>,
        mut facet: Facet,
        snapshot: FrameSnapshot,
    ) -> Result<CompressionBlock> {
        let steps = self.walk.steps().get(frames.clone()).unwrap_or_default();
        let Some((from, to)) = self.ends(frames) else {
            return Err(Error::new(ErrorKind::OutOfRange, "expected frames, found none"));
        };
        let inner: Vec<_> = self.meeting(from, to).cloned().collect();
        let level = 1 + inner.iter().map(|block| block.level).max().unwrap_or(0);
        let suffix = if level > 1 { format!(".{level}") } else { String::new() };
        let source_facets = Passage::facets_of(&passages);
        facet.target_facet_ids.clone_from(&source_facets);
        Ok(CompressionBlock {
            id: format!("block-{from}-{to}{suffix}").into(),
            from,
            to,
            level,
            facet: Arc::new(facet),
            tokens: snapshot.total_tokens(),
            snapshot: Arc::new(snapshot),
            source_facets,
            content_hash: content_hash(&passages),
            original_tokens: steps.iter().fold(0, |sum, step| sum.saturating_add(step.tokens)),
            net_ops: NetOps::default(),
            engine: String::new(),
            created_at: Millis::default(),
            originals: Originals::Held(passages),
            inner,
        })
    }

    /// The blocks in effect that stand for any of the frames from `from` to `to`.
    pub(super) fn meeting(
        &self,
        from: FrameSeq,
        to: FrameSeq,
    ) -> impl Iterator<Item = &Arc<CompressionBlock>> {
        self.applied.values().filter(move |block| block.from <= to && from <= block.to)
    }

    /// Whether a block in effect stands for some of the frames and for others too.
    fn is_cut(&self, frames: &Range<usize>) -> bool {
        self.ends(frames).is_some_and(|(from, to)| {
            self.meeting(from, to).any(|block| block.from < from || to < block.to)
        })
    }

    /// Refuses frames where a range that is not in effect yet holds some of them.
    fn waits(&self, frames: &Range<usize>) -> Result<()> {
        let Some((from, to)) = self.ends(frames) else { return Ok(()) };
        let meets = |range: &PlannedRange| self.meets(range, from, to);
        let open = self.pending.iter().chain(self.under_way.keys()).chain(self.ready.keys());
        let first = open.filter(|number| self.ranges.get(**number).is_some_and(meets)).min();
        match first.and_then(|number| self.ranges.get(*number)) {
            None => Ok(()),
            Some(range) => {
                let id = &range.id;
                let message = format!(
                    "the planned range {id} holds some of the frames {from} to {to} that a compaction replaces; call `adopt` before `plan`"
                );
                Err(Error::new(ErrorKind::Conflict, message))
            }
        }
    }

    /// The first and the last of these frames.
    pub(super) fn ends(&self, frames: &Range<usize>) -> Option<(FrameSeq, FrameSeq)> {
        let steps = self.walk.steps().get(frames.clone())?;
        Some((steps.first()?.sequence, steps.last()?.sequence))
    }

    /// Lets a block take effect; says from which frame on, and its id.
    pub(super) fn enter(&mut self, entering: NewBlock) -> EnteredBlock {
        let NewBlock { block, frames } = entering;
        let steps = self.walk.steps().get(frames.clone()).unwrap_or_default();
        let is_within = |step: FrameSeq| {
            block.inner.iter().any(|inner| (inner.from..=inner.to).contains(&step))
        };
        let live = steps.iter().filter(|step| !is_within(step.sequence)).map(|step| step.tokens);
        let live = live.chain(block.inner.iter().map(|inner| inner.tokens));
        let before = live.fold(0_u64, u64::saturating_add);
        self.live_tokens = self.live_tokens.saturating_sub(before).saturating_add(block.tokens);
        for inner in &block.inner {
            self.applied.remove(&inner.from);
        }
        self.give_up(block.from, block.to);
        let (id, covers) = (Arc::clone(&block.id), Covers::Frames(frames.clone()));
        self.ranges.push(PlannedRange {
            limit: block.tokens,
            seen: self.walk.steps().len(),
            state: RangeState::Ready,
            ..PlannedRange::waiting(id, covers, block.level, block.original_tokens)
        });
        self.walk.take(frames);
        self.is_settled = false;
        self.imported.insert(Arc::clone(&block.id));
        let entered = (block.from, Some(Arc::clone(&block.id)));
        self.applied.insert(block.from, Arc::new(block));
        entered
    }
}

/// From which frame on contexts are other ones, and the block that took effect there, if one did.
pub(super) type EnteredBlock = (FrameSeq, Option<Arc<str>>);

/// A block that is to take effect, and the indices of the frames that it stands for.
pub(super) struct NewBlock {
    pub(super) block: CompressionBlock,
    pub(super) frames: Range<usize>,
}
