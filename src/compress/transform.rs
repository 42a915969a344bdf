mod adopt;
mod branch;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ops::Range,
    sync::Arc,
};

use super::{
    CompressionBlock, CompressionJob, CompressionOptions, CompressionState, NetOps, Passage,
    Summary, Unit,
    block::{Originals, content_hash},
    walk::{Step, Walk},
};
use crate::{
    Error, ErrorKind, Result,
    id::{FacetId, FacetType, FrameSeq, Millis, Role},
    json::{Object, ObjectExt, Value},
    snapshot::{ArchiveReader, FrameSnapshot, Substitution},
    veil::{Facet, History, Saliency},
};

/// Compresses the older frames of one history: plans ranges, hands out jobs, takes summaries, and
/// says what stands for what.
///
/// It calls no model and renders nothing. [`CompressionTransform::plan`] looks at the frames that
/// are new; [`CompressionTransform::next_job`] hands out what is to be summarised;
/// [`CompressionTransform::complete`] and [`CompressionTransform::fail`] take the answer;
/// [`CompressionTransform::apply`] lets blocks take effect, all at once, since each time the
/// provider's prompt cache is lost from the first changed frame on.
#[derive(Clone, Debug, Default)]
pub struct CompressionTransform {
    options: CompressionOptions,
    walk: Walk,
    /// The first frame that no range was planned for and none was passed over.
    front: usize,
    ranges: Vec<PlannedRange>,
    /// The numbers of those that wait, and of those that were handed out.
    pending: BTreeSet<usize>,
    under_way: BTreeSet<usize>,
    /// The blocks that are in effect, by their first frame.
    applied: BTreeMap<FrameSeq, Arc<CompressionBlock>>,
    /// The blocks that a block of blocks was planned for.
    merged: HashSet<Arc<str>>,
    /// The blocks that are ready and not in effect, by the number of their range.
    ready: BTreeMap<usize, Arc<CompressionBlock>>,
    /// The tokens of the frames that no block in effect stands for, and of those blocks.
    live_tokens: u64,
    counted: usize,
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

/// A range that is planned once and never again.
#[derive(Clone, Debug)]
struct PlannedRange {
    id: Arc<str>,
    covers: Covers,
    level: u32,
    tokens: u64,
    original_tokens: u64,
    limit: u64,
    /// The frames after it that were there when it was planned.
    seen: usize,
    state: RangeState,
}

/// How the next range is cut.
#[derive(Clone, Copy)]
struct RangeLimits {
    protected_frames: usize,
    min_frames: usize,
    /// A range of so many tokens goes no further.
    enough: u64,
}

/// What a range replaces.
#[derive(Clone, Debug)]
enum Covers {
    Frames(Range<usize>),
    Blocks(Vec<Arc<CompressionBlock>>),
}

/// Where a planned range is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeState {
    /// It waits to be handed out, until this moment at least.
    Pending {
        /// How often it was tried before.
        tried: u32,
        /// Not to be handed out before.
        not_before: Millis,
    },
    /// It was handed out.
    InProgress {
        /// Which try this is, from one.
        attempt: u32,
    },
    /// Its summary is there.
    Ready,
    /// It was tried as often as the options say, and stays as it is.
    Failed {
        /// Why, the last time.
        reason: String,
    },
}

/// What the application of blocks changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The number of the epoch, from one.
    pub number: u64,
    /// The first frame that is no longer what it was; everything before it stays byte for byte.
    pub from: FrameSeq,
    /// The ids of the blocks that took effect.
    pub blocks: Vec<Arc<str>>,
}

impl CompressionTransform {
    /// A transform for one history.
    pub fn new(options: CompressionOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The options.
    pub fn options(&self) -> &CompressionOptions {
        &self.options
    }

    /// Looks at the frames that are new and plans ranges worth compressing; says how many. A range
    /// never cuts a call from its result, and never holds the operator's words, pinned facets or
    /// one of the newest frames. A frame is planned once.
    ///
    /// Runs in time proportional to what is new: O(1) where nothing is.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where a frame was not captured, [`ErrorKind::Sequence`] where the
    /// history is another one. Nothing is planned then.
    pub fn plan(&mut self, history: &History) -> Result<usize> {
        self.look(history)?;
        let before = self.ranges.len();
        let cut = RangeLimits {
            protected_frames: self.options.protected_frames,
            min_frames: self.options.min_frames,
            enough: u64::MAX,
        };
        while !self.is_settled && self.wants_more() {
            let Some(range) = self.next_range(cut).or_else(|| self.next_blocks()) else {
                // To go on bit by bit with each new frame would cost the cache each time.
                self.is_started = false;
                self.is_settled = true;
                break;
            };
            self.schedule(range);
        }
        Ok(self.ranges.len() - before)
    }

    /// As [`CompressionTransform::plan`], but for ranges that save `tokens` in all, whatever the
    /// water marks and however few frames there are; the newest `protected_frames` are left out.
    /// For whoever knows what a context may cost and by how much it is over.
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
        Ok(self.plan_ranges(tokens, protected_frames, |of, cut| {
            of.next_range(cut).or_else(|| of.next_blocks())
        }))
    }

    /// As [`CompressionTransform::plan_saving`], but for ranges of frames alone: no block of blocks.
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
        Ok(self.plan_ranges(tokens, protected_frames, Self::next_range))
    }

    fn plan_ranges(
        &mut self,
        tokens: u64,
        protected_frames: usize,
        next: impl Fn(&mut Self, RangeLimits) -> Option<PlannedRange>,
    ) -> usize {
        let before = self.ranges.len();
        let ratio = self.options.ratio.max(2);
        let mut left = tokens;
        while left > 0 && !self.is_full() {
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

    /// These frames as they go together, in order.
    pub(crate) fn units(&self) -> &[Unit] {
        self.walk.units()
    }

    /// Whether as many jobs wait as may.
    fn is_full(&self) -> bool {
        let waiting = |range: &&PlannedRange| matches!(range.state, RangeState::Pending { .. });
        self.ranges.iter().rev().take(64).filter(waiting).count() >= self.options.max_pending
    }

    /// Takes note of where a range is.
    fn enter_state(&mut self, number: usize, state: RangeState) {
        self.pending.remove(&number);
        self.under_way.remove(&number);
        match state {
            RangeState::Pending { .. } => drop(self.pending.insert(number)),
            RangeState::InProgress { .. } => drop(self.under_way.insert(number)),
            RangeState::Ready | RangeState::Failed { .. } => {}
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
            RangeState::Failed { .. } => 0,
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

    /// The next range of frames, front to back.
    fn next_range(&mut self, cut: RangeLimits) -> Option<PlannedRange> {
        let options = &self.options;
        let steps = self.walk.steps();
        let end = steps.len().saturating_sub(cut.protected_frames);
        loop {
            // A result whose call stays, stays with it.
            let begins =
                |at: usize| at.checked_sub(1).is_none_or(|before| is_closed(steps, before));
            while steps.get(self.front).is_some_and(|step| step.is_fixed() || !begins(self.front)) {
                self.front += 1;
            }
            let free = steps.get(self.front..end)?;
            if free.len() < cut.min_frames.max(1) {
                return None;
            }
            let (mut tokens, mut closed) = (0_u64, None);
            let mut is_stopped = false;
            for (at, step) in free.iter().enumerate() {
                let with = tokens.saturating_add(step.tokens);
                if step.is_fixed() || (with > options.max_range_tokens && closed.is_some()) {
                    is_stopped = true;
                    break;
                }
                tokens = with;
                if step.is_closed {
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
                self.front += free.iter().take_while(|step| !step.is_fixed()).count();
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
            return Some(PlannedRange {
                id: format!("block-{from}-{to}").into(),
                covers: Covers::Frames(frames),
                level: 1,
                tokens,
                original_tokens: tokens,
                limit: (tokens / options.ratio.max(2)).min(options.max_block_tokens),
                seen: steps.len(),
                state: RangeState::Pending { tried: 0, not_before: Millis::new(i64::MIN) },
            });
        }
    }

    /// The oldest run of adjacent blocks of one level that are worth a block of their own; one that
    /// is larger than blocks may be is worth it alone.
    fn next_blocks(&self) -> Option<PlannedRange> {
        let options = &self.options;
        let planned = |block: &Arc<CompressionBlock>| {
            self.merged.contains(&block.id) || branch::is_one(block)
        };
        let is_worth_it = |run: &[Arc<CompressionBlock>], tokens: u64| {
            run.len() > 1 && tokens >= options.trigger_tokens
                || !run.is_empty() && tokens > options.max_block_tokens
        };
        let mut run: Vec<Arc<CompressionBlock>> = Vec::new();
        let mut tokens = 0_u64;
        let next_frame = |block: &CompressionBlock| {
            let steps = self.walk.steps();
            let at = steps.partition_point(|step| step.sequence <= block.to);
            steps.get(at).map(|step| step.sequence)
        };
        for block in self.applied.values() {
            let follows = run.last().is_none_or(|last| {
                last.level == block.level && next_frame(last) == Some(block.from)
            });
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
        let (first, last) = (run.first()?, run.last()?);
        if !is_worth_it(&run, tokens) {
            return None;
        }
        let level = first.level + 1;
        Some(PlannedRange {
            id: format!("block-{}-{}.{level}", first.from, last.to).into(),
            level,
            tokens,
            original_tokens: run.iter().fold(0, |sum, block| sum + block.original_tokens),
            limit: (tokens / options.ratio.max(2)).min(options.max_block_tokens),
            seen: self.walk.steps().len(),
            state: RangeState::Pending { tried: 0, not_before: Millis::new(i64::MIN) },
            covers: Covers::Blocks(run),
        })
    }

    /// Hands out the next job that waits, as long as no more are under way than the options say.
    ///
    /// Shares the snapshots of the range; copies no text. Leads the veil through the frames once.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] where the history is another one, and those of its ops.
    pub fn next_job(&mut self, history: &History, now: Millis) -> Result<Option<CompressionJob>> {
        if self.under_way.len() >= self.options.max_active {
            return Ok(None);
        }
        let is_due = |range: &&PlannedRange| match range.state {
            RangeState::Pending { not_before, .. } => not_before <= now,
            _ => false,
        };
        let due = |number: &usize| Some((*number, self.ranges.get(*number).filter(is_due)?));
        let Some((number, range)) = self.pending.iter().find_map(due) else { return Ok(None) };
        let range = range.clone();
        let RangeState::Pending { tried, .. } = range.state else { return Ok(None) };
        let (passages, net_ops, tail_from) = match &range.covers {
            Covers::Frames(frames) => (
                self.walk.passages(history, frames.clone())?,
                self.walk.net_ops(history, frames.clone())?,
                frames.end,
            ),
            Covers::Blocks(blocks) => {
                let passages = blocks.iter().map(|block| Passage {
                    from: block.from,
                    to: block.to,
                    role: Role::User,
                    snapshot: Arc::clone(&block.snapshot),
                });
                let last = blocks.last().map(|block| block.to);
                let steps = self.walk.steps();
                let end = steps.partition_point(|step| Some(step.sequence) <= last);
                let shown = passages.filter(|passage| !passage.snapshot.is_empty());
                (shown.collect(), NetOps::joined(blocks.iter().map(|of| &of.net_ops)), end)
            }
        };
        let protected = range.seen.saturating_sub(self.options.protected_frames).max(tail_from);
        let tail = self.walk.passages(history, protected..range.seen)?;
        let mut source_facets = indexmap::IndexSet::new();
        match &range.covers {
            Covers::Frames(_) => {
                let chunks = passages.iter().flat_map(|passage| passage.snapshot.chunks());
                source_facets.extend(chunks.flat_map(|chunk| chunk.owned_facet_ids()));
            }
            Covers::Blocks(blocks) => {
                source_facets.extend(blocks.iter().flat_map(|block| block.source_facets.clone()));
            }
        }
        let (Some(first), Some(last)) = (self.first_of(&range), self.last_of(&range)) else {
            return Ok(None);
        };
        self.enter_state(number, RangeState::InProgress { attempt: tried + 1 });
        Ok(Some(CompressionJob {
            id: range.id,
            from: first,
            to: last,
            level: range.level,
            passages,
            original_tokens: range.original_tokens,
            token_limit: range.limit,
            source_facets: source_facets.into_iter().collect(),
            net_ops,
            tail,
            attempt: tried + 1,
        }))
    }

    /// Whether a job that was handed out waits for its answer.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    fn first_of(&self, range: &PlannedRange) -> Option<FrameSeq> {
        match &range.covers {
            Covers::Frames(frames) => self.walk.steps().get(frames.start).map(|step| step.sequence),
            Covers::Blocks(blocks) => blocks.first().map(|block| block.from),
        }
    }

    fn last_of(&self, range: &PlannedRange) -> Option<FrameSeq> {
        match &range.covers {
            Covers::Frames(frames) => {
                self.walk.steps().get(frames.end.checked_sub(1)?).map(|step| step.sequence)
            }
            Covers::Blocks(blocks) => blocks.last().map(|block| block.to),
        }
    }

    /// Takes the summary of a job that was handed out. `render` makes of the block's facet what
    /// stands in contexts, for example with `Hud::render_facet`; so the summary is guarded against
    /// forged tags and counted like any other text. The block takes effect with
    /// [`CompressionTransform::apply`].
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the job is not under way. [`ErrorKind::Limit`] where the
    /// summary is empty, not shorter than what it stands for, or, rendered, longer than the job's
    /// limit; and those of `render`: tell [`CompressionTransform::fail`] then, or try another
    /// summary. Nothing has changed.
    pub fn complete(
        &mut self,
        job: &CompressionJob,
        summary: Summary<'_>,
        now: Millis,
        render: impl FnOnce(&Facet) -> Result<FrameSnapshot>,
    ) -> Result<Arc<CompressionBlock>> {
        let (number, range) = self.handed_out(job)?;
        let Summary { text, engine } = summary;
        let summary = text.trim();
        let refused =
            |message: String| Err(Error::new(ErrorKind::Limit, message).at_frame(job.from.get()));
        if summary.is_empty() {
            return refused(format!("the summary of {} is empty", job.id));
        }
        let facet = summary_facet(job, summary);
        let snapshot = render(&facet)?;
        let tokens = snapshot.total_tokens();
        if tokens >= range.tokens || tokens > job.token_limit.max(1) {
            return refused(format!(
                "expected a summary of {} in at most {} tokens, found {tokens}",
                job.id, job.token_limit
            ));
        }
        let (originals, inner) = match &range.covers {
            Covers::Frames(_) => (Originals::Held(job.passages.clone()), Vec::new()),
            Covers::Blocks(blocks) => (Originals::Inner, blocks.clone()),
        };
        let block = Arc::new(CompressionBlock {
            id: Arc::clone(&job.id),
            from: job.from,
            to: job.to,
            level: job.level,
            facet: Arc::new(facet),
            snapshot: Arc::new(snapshot),
            source_facets: job.source_facets.clone(),
            content_hash: content_hash(&job.passages),
            original_tokens: job.original_tokens,
            tokens,
            net_ops: job.net_ops.clone(),
            engine: engine.to_owned(),
            created_at: now,
            originals,
            inner,
        });
        self.enter_state(number, RangeState::Ready);
        self.ready.insert(number, Arc::clone(&block));
        Ok(block)
    }

    /// Takes note that a job failed. Its range waits for another try, or stays as it is after the
    /// last.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where the job is not under way.
    pub fn fail(
        &mut self,
        job: &CompressionJob,
        reason: impl Into<String>,
        now: Millis,
    ) -> Result<()> {
        let (number, _) = self.handed_out(job)?;
        let delay = self.options.retry_delay_ms;
        let state = if job.attempt >= self.options.tries {
            RangeState::Failed { reason: reason.into() }
        } else {
            let not_before = Millis::new(now.get().saturating_add(delay));
            RangeState::Pending { tried: job.attempt, not_before }
        };
        self.enter_state(number, state);
        Ok(())
    }

    fn handed_out(&self, job: &CompressionJob) -> Result<(usize, PlannedRange)> {
        let is_it = |range: &&PlannedRange| {
            range.id == job.id && range.state == RangeState::InProgress { attempt: job.attempt }
        };
        let numbers = self.under_way.iter();
        let mut found = numbers.filter_map(|at| Some((*at, self.ranges.get(*at).filter(is_it)?)));
        found.next().map(|(number, range)| (number, range.clone())).ok_or_else(|| {
            let message = format!(
                "the job {} is not running in attempt {}; ask `next_job` for another",
                job.id, job.attempt
            );
            Error::new(ErrorKind::Conflict, message).at_frame(job.from.get())
        })
    }

    /// Lets all blocks that are ready take effect. `None` where there are none.
    pub fn apply(&mut self) -> Option<Epoch> {
        let ready = std::mem::take(&mut self.ready);
        let from = ready.values().map(|block| block.from).min()?;
        self.is_settled = false;
        let mut blocks = Vec::new();
        for (number, block) in ready {
            let before = self.ranges.get(number).map_or(0, |range| range.tokens);
            self.live_tokens = self.live_tokens.saturating_sub(before).saturating_add(block.tokens);
            for replaced in block.blocks() {
                self.applied.remove(&replaced.from);
            }
            // The block has the blocks that it stands for; held here too, they could not be let go.
            let steps = self.walk.steps();
            let frames = steps.partition_point(|step| step.sequence < block.from)
                ..steps.partition_point(|step| step.sequence <= block.to);
            if let Some(range) = self.ranges.get_mut(number) {
                range.covers = Covers::Frames(frames);
            }
            blocks.push(Arc::clone(&block.id));
            self.applied.insert(block.from, block);
        }
        self.epoch += 1;
        Some(Epoch { number: self.epoch, from, blocks })
    }

    /// The blocks in effect as a renderer takes them, in order.
    pub fn substitutions(&self) -> Vec<Substitution> {
        self.applied.values().map(|block| block.substitution()).collect()
    }

    /// The blocks in effect, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &Arc<CompressionBlock>> {
        self.applied.values()
    }

    /// The block with this id, in effect or inside of one that is.
    pub fn block(&self, id: &str) -> Option<&Arc<CompressionBlock>> {
        fn find<'b>(
            block: &'b Arc<CompressionBlock>,
            id: &str,
        ) -> Option<&'b Arc<CompressionBlock>> {
            if *block.id == *id {
                return Some(block);
            }
            block.blocks().iter().find_map(|inner| find(inner, id))
        }
        let in_effect = self.applied.values().find(|block| *block.id == *id);
        in_effect.or_else(|| self.applied.values().find_map(|block| find(block, id)))
    }

    /// Gives back the memory of the originals of a block in effect, once `archive` holds the same
    /// text: they expand from there.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where no block in effect has this id, and those of
    /// [`CompressionBlock::expand_from`]: the originals are then held as before.
    pub fn spill(&mut self, id: &str, archive: &ArchiveReader) -> Result<()> {
        let block = self.in_effect(id)?;
        block.expand_from(archive)?;
        block.let_go(Originals::Spilled);
        Ok(())
    }

    /// Gives up the originals of a block in effect, and of the blocks inside of it.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] where no block in effect has this id.
    pub fn forget(&mut self, id: &str) -> Result<()> {
        self.in_effect(id)?.let_go(Originals::Forgotten);
        Ok(())
    }

    fn in_effect(&mut self, id: &str) -> Result<&mut CompressionBlock> {
        let block = self.applied.values_mut().find(|block| *block.id == *id).map(Arc::make_mut);
        block.ok_or_else(|| Error::new(ErrorKind::Conflict, format!("no block {id} is in effect")))
    }

    /// The block that stands for a frame, with the frame's own tokens: what
    /// [`CompressionTransform::frame_to_json`] writes beside its snapshot. `None` where the frame stands for itself.
    pub fn compression_state(&self, sequence: FrameSeq) -> Option<CompressionState> {
        let (_, block) = self.applied.range(..=sequence).next_back()?;
        let steps = self.walk.steps();
        let at = steps.partition_point(|step| step.sequence < sequence);
        let step =
            steps.get(at).filter(|step| step.sequence == sequence && sequence <= block.to)?;
        Some(CompressionState { replaced_by: Arc::clone(&block.id), original_tokens: step.tokens })
    }

    /// The tokens of frames and blocks as they stand: the sum over chunks.
    pub fn live_tokens(&self) -> u64 {
        self.live_tokens
    }

    /// The ranges that were planned, in order, each with its id and where it is.
    pub fn ranges(&self) -> impl Iterator<Item = (&Arc<str>, &RangeState)> {
        self.ranges.iter().map(|range| (&range.id, &range.state))
    }

    /// Plan and results as facets of type `state`, one for each range, for whoever shows them.
    pub fn facets(&self) -> Vec<Facet> {
        let facet = |range: &PlannedRange| {
            let mut state = Object::new();
            let (name, reason) = match &range.state {
                RangeState::Pending { .. } => ("pending", None),
                RangeState::InProgress { .. } => ("inProgress", None),
                RangeState::Ready => ("ready", None),
                RangeState::Failed { reason } => ("failed", Some(reason.as_str())),
            };
            state.put("state", name);
            state.put_some("from", self.first_of(range).map(FrameSeq::get));
            state.put_some("to", self.last_of(range).map(FrameSeq::get));
            state.put("level", u64::from(range.level));
            state.put("originalTokens", range.original_tokens);
            state.put_some("reason", reason);
            let mut facet = Facet::new(FacetId::from(&*range.id), FacetType::STATE, "");
            facet.state = Some(Value::Object(state));
            facet
        };
        self.ranges.iter().map(facet).collect()
    }
}

fn is_closed(steps: &[Step], at: usize) -> bool {
    steps.get(at).is_some_and(|step| step.is_closed)
}

/// The facet of a summary.
fn summary_facet(job: &CompressionJob, summary: &str) -> Facet {
    let mut facet = Facet::new(FacetId::from(&*job.id), FacetType::SUMMARY, summary);
    facet.target_facet_ids.clone_from(&job.source_facets);
    facet.saliency = Some(Saliency { reference: true, ..Saliency::default() });
    facet
}
