mod adopt;
mod between;
mod branch;
mod cut;
mod effect;
mod jobs;
mod load;
mod on_demand;
mod range;
mod retry;
mod save;
mod undo;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ops::Range,
    sync::Arc,
};

use self::{
    jobs::RunningJob,
    range::{Covers, PlannedRange, RangeLimits},
};
pub use self::{
    on_demand::{RangePlan, StayReason, StayingFrames},
    range::RangeState,
};
use super::{
    CompressionBlock, CompressionOptions, CompressionState, Unit,
    walk::{Step, Walk},
};
use crate::{
    Result,
    id::{FacetId, FacetType, FrameSeq},
    json::{Object, ObjectExt, Value},
    snapshot::FrameSnapshot,
    veil::{Facet, Frame, History, VisibleFacets},
};

/// Compresses the older frames of one history: plans ranges, hands out jobs, takes summaries, and
/// says what stands for what.
///
/// It calls no model and renders nothing. [`CompressionTransform::plan`] looks at the frames that
/// are new; [`CompressionTransform::next_job`] hands out what is to be summarised;
/// [`CompressionTransform::complete`] and [`CompressionTransform::fail`] take the answer;
/// [`CompressionTransform::apply`] lets blocks take effect, all at once, since each time the
/// provider's prompt cache is lost from the first changed frame on.
///
/// No range stays stuck. One whose tries failed is tried again after a while
/// ([`CompressionOptions::retry_most_ms`]), and one whose job was dropped without an answer waits
/// for another.
#[derive(Clone, Debug, Default)]
pub struct CompressionTransform {
    options: CompressionOptions,
    walk: Walk,
    /// The first frame that no range was planned for and none was passed over.
    front: usize,
    ranges: Vec<PlannedRange>,
    /// The frames, by first index, that ranges on demand took before the planning came to them.
    taken: BTreeMap<usize, usize>,
    /// The numbers of those that wait, of those that were handed out, each with its job, and of those
    /// that failed and are tried again.
    pending: BTreeSet<usize>,
    under_way: BTreeMap<usize, RunningJob>,
    failed: BTreeSet<usize>,
    /// The blocks that are in effect, by their first frame.
    applied: BTreeMap<FrameSeq, Arc<CompressionBlock>>,
    /// The blocks that a block of blocks was planned for.
    merged: HashSet<Arc<str>>,
    /// The blocks that are ready and not in effect, by the number of their range.
    ready: BTreeMap<usize, Arc<CompressionBlock>>,
    /// The tokens of the frames that no block in effect stands for, and of those blocks.
    live_tokens: u64,
    counted: usize,
    /// How many of the newest frames were not looked at, since one has no snapshot.
    unsealed: usize,
    /// The frames that were asked whether they tell of a compaction or of a branch.
    adopted: usize,
    /// The indices of those that tell of a compaction.
    telling: Vec<usize>,
    /// The ids of the blocks that were imported.
    imported: HashSet<Arc<str>>,
    /// The frames, by their indices, that are on branches which the session left.
    outside: Vec<Range<usize>>,
    /// Whether nothing was left to plan the last time, and nothing has changed since.
    is_settled: bool,
    /// Whether compression was started by the high-water mark and has not met the low one.
    is_started: bool,
    epoch: u64,
}

/// What [`CompressionTransform::plan_sealing`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPlan {
    /// How many ranges were planned.
    pub ranges: usize,
    /// The frames that were sealed, in order.
    pub sealed: Vec<FrameSeq>,
}

/// What the application of blocks changed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// The number of the epoch, from one.
    pub number: u64,
    /// The first frame that is no longer what it was; everything before it stays byte for byte.
    pub from: FrameSeq,
    /// The ids of the blocks that took effect.
    pub blocks: Vec<Arc<str>>,
}

impl Epoch {
    /// Both as one: the first change, and all blocks.
    pub(crate) fn and(self, then: Self) -> Self {
        let blocks = self.blocks.into_iter().chain(then.blocks).collect();
        Self { number: then.number, from: self.from.min(then.from), blocks }
    }
}

impl CompressionTransform {
    /// A transform for one history.
    pub fn new(options: CompressionOptions) -> Self {
        let walk = Walk::new(options.keep_words);
        Self { options, walk, ..Self::default() }
    }

    /// From now on plans are made with other options.
    pub(crate) fn set_options(&mut self, options: CompressionOptions) {
        self.options = options;
    }

    /// The options.
    pub fn options(&self) -> &CompressionOptions {
        &self.options
    }

    /// Looks at the frames that are new and plans ranges worth compressing; says how many. A range
    /// never cuts a call from its result, and never holds the operator's words, pinned facets or
    /// one of the newest frames. A frame is planned once.
    ///
    /// It goes up to the first frame that has no snapshot; that one and those after it count as
    /// protected frames until they are sealed. See [`CompressionTransform::first_unsealed`], and
    /// [`CompressionTransform::plan_sealing`], which seals them.
    ///
    /// O(1) where nothing is new, and else linear in what is. Above the water mark it is linear in the
    /// frames that are in no range yet too, and in the blocks in effect.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`](crate::ErrorKind::Sequence) where the history is another one. Nothing
    /// is planned then.
    pub fn plan(&mut self, history: &History) -> Result<usize> {
        self.look(history)?;
        let before = self.ranges.len();
        let cut = RangeLimits {
            protected_frames: self.options.protected_frames,
            min_frames: self.options.min_frames,
            enough: u64::MAX,
        };
        while !self.is_settled && self.wants_more() {
            let Some(range) = self.next_range(cut).or_else(|| self.next_blocks(history)) else {
                // To go on bit by bit with each new frame would cost the cache each time.
                self.is_started = false;
                self.is_settled = true;
                break;
            };
            self.schedule(range);
        }
        Ok(self.ranges.len() - before)
    }

    /// As [`CompressionTransform::plan`], after sealing every frame that has no snapshot with what
    /// `seal` makes of it and of what it shows: for example with
    /// [`Hud::render_frame`](crate::hud::Hud::render_frame). Each is rendered from the veil as it
    /// was at that frame, once ever, and no other frame is. Costs the sealing of these frames, and
    /// what [`CompressionTransform::plan`] does.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use afterimage::{
    ///     compress::{CompressionOptions, CompressionTransform}, hud::Hud,
    ///     id::{FacetType, Millis}, tokens::Chars4,
    ///     veil::{Facet, FacetOp, Frame, History, Source},
    /// };
    ///
    /// let (hud, now, mut history) = (Hud::new(Arc::new(Chars4)), Millis::new(0), History::new());
    /// for n in 0..12_u64 {
    ///     let said = Facet::new(format!("said-{n}"), FacetType::EVENT, "calm ".repeat(90));
    ///     history.push(Frame::new(n, Source::User).with(FacetOp::add(said)))?;
    /// }
    /// let options = CompressionOptions { protected_frames: 2, ..CompressionOptions::default() };
    /// let mut transform = CompressionTransform::new(options);
    /// assert_eq!(transform.plan(&history)?, 0);
    /// assert_eq!(transform.first_unsealed(&history), Some(0.into()));
    /// let planned =
    ///     transform.plan_sealing(&mut history, |frame, shown| hud.render_frame(frame, shown, now))?;
    /// assert_eq!((planned.ranges, planned.sealed.len()), (1, 12));
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `seal`, with the frames before that one sealed and nothing planned, and those of
    /// [`CompressionTransform::plan`].
    pub fn plan_sealing(
        &mut self,
        history: &mut History,
        seal: impl FnMut(&Frame, &VisibleFacets) -> Result<FrameSnapshot>,
    ) -> Result<SealedPlan> {
        let sealed = history.seal_all(seal)?;
        Ok(SealedPlan { ranges: self.plan(history)?, sealed })
    }

    /// The first frame of the history that has no snapshot and so was not looked at; `None` where
    /// all of them were. O(log n) for each frame that was not looked at.
    pub fn first_unsealed(&self, history: &History) -> Option<FrameSeq> {
        let frames = history.frames();
        let mut rest = self.walk.steps().len()..frames.len();
        let first = rest.find(|at| frames.snapshot(*at).is_none() && !frames.is_forgotten(*at));
        first.and_then(|at| frames.sequence(at))
    }

    /// As [`CompressionTransform::plan`], but for ranges that save `tokens` in all, whatever the
    /// water marks and however few frames there are; the newest `protected_frames` are left out.
    /// For whoever knows what a context may cost and by how much it is over. Linear in the frames
    /// that are new or in no range yet, and for each block of blocks in the blocks in effect.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::plan`].
    pub fn plan_saving(
        &mut self,
        history: &History,
        tokens: u64,
        protected_frames: usize,
    ) -> Result<usize> {
        self.look(history)?;
        Ok(self.plan_ranges(tokens, protected_frames, 0, |of, cut| {
            of.next_range(cut).or_else(|| of.next_blocks(history))
        }))
    }

    /// As [`CompressionTransform::plan_saving`], but for ranges of frames alone: no block of blocks.
    ///
    /// As many are planned at a time as were summarised before, and at least
    /// [`CompressionOptions::max_pending`]: a long history takes few plans, and an engine that is
    /// down few jobs.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::plan`].
    pub(crate) fn plan_frames_saving(
        &mut self,
        history: &History,
        tokens: u64,
        protected_frames: usize,
    ) -> Result<usize> {
        self.look(history)?;
        let answered = self.answered();
        Ok(self.plan_ranges(tokens, protected_frames, answered, Self::next_range))
    }

    fn plan_ranges(
        &mut self,
        tokens: u64,
        protected_frames: usize,
        at_a_time: usize,
        next: impl Fn(&mut Self, RangeLimits) -> Option<PlannedRange>,
    ) -> usize {
        let before = self.ranges.len();
        let ratio = self.options.ratio.max(2);
        let mut left = tokens;
        let most = match self.options.max_pending.saturating_sub(self.waiting()) {
            0 => 0,
            free => free.max(at_a_time),
        };
        while left > 0 && self.ranges.len() - before < most {
            // A range of less would be passed over for good.
            let enough = left.saturating_mul(ratio).div_ceil(ratio - 1);
            let enough = enough.max(self.options.trigger_tokens);
            let cut = RangeLimits { protected_frames, min_frames: 1, enough };
            let Some(mut range) = next(self, cut) else { break };
            // Ranges end where frames do: what one saves beyond what is asked, its summary may say.
            range.limit = range.limit.max(range.tokens.saturating_sub(left));
            left = left.saturating_sub(range.tokens.saturating_sub(range.limit));
            self.schedule(range);
        }
        self.ranges.len() - before
    }

    /// Looks at the frames that are new.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::plan`].
    pub(crate) fn look(&mut self, history: &History) -> Result<()> {
        self.walk.follow(history)?;
        self.unsealed = history.frames().len() - self.walk.steps().len();
        self.take_back_dropped();
        self.is_settled &= self.walk.steps().len() == self.counted;
        let new = self.walk.steps().iter().skip(self.counted);
        self.live_tokens = new.fold(self.live_tokens, |sum, step| sum.saturating_add(step.tokens));
        self.counted = self.walk.steps().len();
        Ok(())
    }

    fn schedule(&mut self, range: PlannedRange) {
        if let Covers::Blocks(blocks) = &range.covers {
            self.merged.extend(blocks.iter().map(|block| Arc::clone(&block.id)));
        }
        self.pending.insert(self.ranges.len());
        self.ranges.push(range);
    }

    /// The frames that were looked at, in order.
    pub(crate) fn steps(&self) -> &[Step] {
        self.walk.steps()
    }

    /// The index of the user's first message, where it is kept apart.
    pub(crate) fn task(&self) -> Option<usize> {
        self.walk.task()
    }

    /// The index of the user's last instruction, where it is kept apart.
    pub(crate) fn instruction(&self) -> Option<usize> {
        self.walk.instruction()
    }

    /// Whether the frame with this index holds words of the user.
    pub(crate) fn is_words(&self, index: usize) -> bool {
        self.walk.is_words(index)
    }

    /// Of a frame that holds nothing but what a program answered to a command in the agent's text,
    /// the index of the frame of that command. `None` of every other frame.
    pub(crate) fn command_answered(&self, index: usize) -> Option<usize> {
        self.walk.command_answered(index)
    }

    /// The last block in effect that this transform made, and not another program.
    pub(crate) fn last_own_block(&self) -> Option<&Arc<CompressionBlock>> {
        self.applied.values().rev().find(|block| !self.imported.contains(&block.id))
    }

    /// These frames as they go together, in order.
    pub(crate) fn units(&self) -> &[Unit] {
        self.walk.units()
    }

    /// How many ranges were summarised so far.
    fn answered(&self) -> usize {
        self.ranges.iter().filter(|range| range.state == RangeState::Ready).count()
    }

    /// How many jobs wait, of the last ones.
    fn waiting(&self) -> usize {
        let waiting = |range: &&PlannedRange| matches!(range.state, RangeState::Pending { .. });
        self.ranges.iter().rev().take(64).filter(waiting).count()
    }

    /// Whether as many jobs wait as may.
    fn is_full(&self) -> bool {
        self.waiting() >= self.options.max_pending
    }

    /// How many frames are on branches that the session left.
    pub(crate) fn outside_frames(&self) -> usize {
        self.outside.iter().map(ExactSizeIterator::len).sum()
    }

    /// Takes note of where a range is.
    fn enter_state(&mut self, number: usize, state: RangeState) {
        self.pending.remove(&number);
        self.under_way.remove(&number);
        self.failed.remove(&number);
        if let RangeState::Pending { .. } = state {
            self.pending.insert(number);
        }
        if let Some(range) = self.ranges.get_mut(number) {
            range.state = state;
        }
    }

    /// Whether to plan on: by the water marks, and by how many jobs wait.
    fn wants_more(&mut self) -> bool {
        if self.is_full() {
            return false;
        }
        // What is planned counts as if it were done.
        let saved = |range: &PlannedRange| match range.state {
            RangeState::Failed { .. } | RangeState::Undone => 0,
            _ => range.tokens.saturating_sub(range.limit),
        };
        let open = self.ranges.iter().enumerate().rev().take(64);
        let open = open
            .filter(|(at, range)| range.state != RangeState::Ready || self.ready.contains_key(at));
        let expected = self.live_tokens.saturating_sub(open.map(|(_, range)| saved(range)).sum());
        self.is_started = if self.is_started {
            expected > self.options.low_tokens
        } else {
            expected > self.options.high_tokens
        };
        self.is_started
    }

    /// The first and the last frame of a range.
    fn ends_of(&self, range: &PlannedRange) -> Option<(FrameSeq, FrameSeq)> {
        match &range.covers {
            Covers::Frames(frames) => self.ends(frames),
            Covers::Blocks(blocks) => Some((blocks.first()?.from, blocks.last()?.to)),
        }
    }

    /// Whether a range holds any of the frames from `from` to `to`.
    fn meets(&self, range: &PlannedRange, from: FrameSeq, to: FrameSeq) -> bool {
        self.ends_of(range).is_some_and(|(first, last)| first <= to && from <= last)
    }

    /// The block in effect that stands for a frame.
    fn block_over(&self, frame: FrameSeq) -> Option<&Arc<CompressionBlock>> {
        let (_, block) = self.applied.range(..=frame).next_back()?;
        (frame <= block.to).then_some(block)
    }

    /// The tokens of the frames that no block in effect stands for, and of those blocks.
    fn count_live(&self) -> u64 {
        let steps = self.walk.steps().iter();
        let frames = steps.filter(|step| self.block_over(step.sequence).is_none());
        let blocks = self.applied.values().map(|block| block.tokens);
        frames.map(|step| step.tokens).chain(blocks).fold(0, u64::saturating_add)
    }

    /// The block that stands for a frame, with the frame's own tokens: what
    /// [`CompressionTransform::frame_to_json`] writes beside its snapshot. `None` where the frame stands for itself.
    /// O(log n).
    pub fn compression_state(&self, sequence: FrameSeq) -> Option<CompressionState> {
        let block = self.block_over(sequence)?;
        let step = self.walk.steps().get(self.walk.first_from(sequence));
        let step = step.filter(|step| step.sequence == sequence)?;
        Some(CompressionState { replaced_by: Arc::clone(&block.id), original_tokens: step.tokens })
    }

    /// The tokens of frames and blocks as they stand: the sum over chunks.
    pub fn live_tokens(&self) -> u64 {
        self.live_tokens
    }

    /// The ranges that were planned, in order, each with its id and where it is. O(n) for all of
    /// them.
    pub fn ranges(&self) -> impl Iterator<Item = (&Arc<str>, &RangeState)> {
        self.ranges.iter().map(|range| (&range.id, &range.state))
    }

    /// Plan and results as facets of type `state`, one for each range, for whoever shows them.
    /// O(facets).
    pub fn facets(&self) -> Vec<Facet> {
        let facet = |range: &PlannedRange| {
            let mut state = Object::new();
            let ends = self.ends_of(range);
            state.put("state", range.state.name());
            state.put_some("from", ends.map(|(from, _)| from.get()));
            state.put_some("to", ends.map(|(_, to)| to.get()));
            state.put("level", u64::from(range.level));
            state.put("originalTokens", range.original_tokens);
            state.put_some("reason", range.state.reason());
            let mut facet = Facet::new(FacetId::from(&*range.id), FacetType::STATE, "");
            facet.state = Some(Value::Object(state));
            facet
        };
        self.ranges.iter().map(facet).collect()
    }
}
