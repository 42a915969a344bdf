use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use super::{
    Breakdown, Budget, DroppedFrames, ShortenedFrame, change::Change, last_context::LastContext,
    ledger::WindowLedger, recorded_edits::RecordedEdits, standing::Fallbacks,
};
use crate::{
    Error, ErrorKind, Result,
    compress::{
        CompressionBlock, CompressionJob, CompressionOptions, CompressionTransform, Engine, Epoch,
        Summary,
    },
    hud::{Hud, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis, Role},
    snapshot::{FrameSnapshot, FrameSnapshotBuilder},
    steps::Passage,
    summary::LedgerLine,
    text::quote::guarded,
    veil::History,
};

/// Keeps the contexts of one history within a budget.
#[derive(Clone, Debug)]
pub struct ContextWindow {
    pub(super) hud: Hud,
    pub(super) budget: Budget,
    pub(super) transform: CompressionTransform,
    /// What was dropped and shortened, by its first frame; apart from blocks in effect, but for
    /// blocks that were dropped themselves.
    pub(super) changes: BTreeMap<FrameSeq, Change>,
    /// What the recording says that frames are read as.
    pub(super) edits: RecordedEdits,
    /// Whether the high mark was passed, and the low one not met since.
    pub(super) is_compressing: bool,
    /// How many frames were looked at for results that are too large.
    pub(super) looked_at: usize,
    /// The tokens of those frames as they came.
    pub(super) tokens_looked_at: u64,
    /// The last frame that a context held.
    pub(super) seen: Option<FrameSeq>,
    /// The epochs of the contexts so far.
    pub(super) epochs: u64,
    /// Who took the room where the last context did not fit.
    pub(super) refused: Option<Breakdown>,
    /// What changed since the last context.
    pub(super) pending: Option<Epoch>,
    /// What stands for frames, and how often that changed.
    pub(super) standing: Option<Fallbacks>,
    pub(super) version: u64,
    /// What blocks in effect took the place of, besides frames and blocks: it comes back with them.
    pub(super) replaced: BTreeMap<Arc<str>, Vec<Change>>,
    /// The frames that were sealed since the last context.
    pub(super) sealed: Vec<FrameSeq>,
    pub(super) ledger: WindowLedger,
    /// What requests for summaries go on from.
    last: LastContext,
    /// A snapshot without text, for what is left out.
    pub(super) nothing: Arc<FrameSnapshot>,
}

/// What is to be done for a context to fit.
enum NextStep {
    Job(CompressionJob),
    /// No job is left. The context as it stands, with the version that it is of, where it is known.
    Finish(Option<(u64, RenderedContext)>),
}

/// A context that fits, with what it took.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct FittedContext {
    /// The context.
    pub context: RenderedContext,
    /// What changed of what the context before this one held. `None` where it only grew, so that
    /// all of it but its tail is a prefix of this one.
    pub epoch: Option<Epoch>,
    /// The frames that are left out, in order; those since long ago too.
    /// Shared with the contexts before and after, as long as nothing changes.
    pub dropped: Arc<Vec<DroppedFrames>>,
    /// The frames that are shortened, in order; those since long ago too.
    pub shortened: Arc<Vec<ShortenedFrame>>,
    /// The frames that had no snapshot, and were sealed for this context, in order.
    pub sealed: Arc<[FrameSeq]>,
    /// The lines of the ledger behind the last block, in order, each with the frame that it is from;
    /// none where no block stands in the context. Shared as long as nothing changes.
    pub ledger: Arc<Vec<LedgerLine>>,
    /// The errors that [`ContextWindow::render`] got from the engine in place of summaries.
    pub failures: Arc<[Error]>,
}

impl ContextWindow {
    /// A window for one history that `hud` captured, or captures now: frames that have no snapshot
    /// are sealed when the window first looks at them, each once ever, from the veil of its moment.
    /// The water marks and the fewest frames of `options` are not used: the budget decides.
    pub fn new(hud: Hud, budget: Budget, mut options: CompressionOptions) -> Self {
        options.keep_words = true;
        let nothing = FrameSnapshotBuilder::new(&**hud.counter()).build(Millis::new(0));
        Self {
            hud,
            budget,
            transform: CompressionTransform::new(options),
            changes: BTreeMap::new(),
            edits: RecordedEdits::default(),
            is_compressing: false,
            looked_at: 0,
            tokens_looked_at: 0,
            seen: None,
            epochs: 0,
            refused: None,
            pending: None,
            standing: None,
            version: 0,
            replaced: BTreeMap::new(),
            sealed: Vec::new(),
            ledger: WindowLedger::default(),
            last: LastContext::default(),
            nothing: Arc::new(nothing),
        }
    }

    /// The budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Keeps contexts within another budget from now on. What stands for frames stays; a context that
    /// is too large for the new budget is compressed when it is next rendered.
    pub fn set_budget(&mut self, budget: Budget, mut options: CompressionOptions) {
        options.keep_words = true;
        self.budget = budget;
        self.transform.set_options(options);
    }

    /// The blocks, the ranges and where they are.
    pub fn transform(&self) -> &CompressionTransform {
        &self.transform
    }

    /// The context of `history` for `request`, within the budget. `engine` writes the summaries,
    /// here and now. One that fails costs a try and fits the context by other means;
    /// [`FittedContext::failures`] has its errors. The window's own substitutions replace those of
    /// the request.
    ///
    /// Seals the frames of the history that have no snapshot, whatever the policy;
    /// [`FittedContext::sealed`] says which. Renders each context that it weighs from the frames'
    /// snapshots: no frame is rendered or counted again. Costs time in the frames of the context and in those that are new, however
    /// long the history is. An epoch costs what stands for frames besides, and the first context the
    /// frames that it leaves out.
    ///
    /// # Errors
    /// [`ErrorKind::OverBudget`] where what must stay does not fit; see
    /// [`ContextWindow::breakdown`]. [`ErrorKind::Sequence`] where the history is another one, and those of the renderer.
    pub fn render(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        engine: &dyn Engine,
        now: Millis,
    ) -> Result<FittedContext> {
        let mut failures = Vec::new();
        loop {
            match self.next(history, request, now)? {
                NextStep::Job(job) => {
                    if let Err(error) = self.run(&job, history, engine, now) {
                        self.fail(&job, error.to_string(), now)?;
                        failures.push(error);
                    }
                }
                NextStep::Finish(known) => {
                    let fitted = self.finish_with(history, request, known, now)?;
                    return Ok(FittedContext { failures: failures.into(), ..fitted });
                }
            }
        }
    }

    /// Has `engine` answer a job, and again for less where its answer grew over the limit in
    /// rendering; for whoever shows how far compression is. Tell [`ContextWindow::fail`] of an
    /// error. Costs at most three answers of the engine, and [`ContextWindow::complete`] for each.
    ///
    /// # Errors
    /// Those of the engine, with the first frame of the job, and of [`ContextWindow::complete`].
    pub fn run(
        &mut self,
        job: &CompressionJob,
        history: &History,
        engine: &dyn Engine,
        now: Millis,
    ) -> Result<Arc<CompressionBlock>> {
        let mut asked = job.clone();
        loop {
            let text = engine.summarize(&asked, &**self.hud.counter());
            let text = text.map_err(|error| error.at_frame(job.from.get()))?;
            let summary = Summary { text: &text, engine: engine.id() };
            let done = self.complete(job, summary, history, now);
            let is_over = |error: &Error| error.kind() == ErrorKind::Limit;
            if !done.as_ref().is_err_and(is_over) || asked.token_limit <= job.token_limit / 2 {
                return done;
            }
            asked.token_limit = asked.token_limit * 2 / 3;
        }
    }

    /// The next range that is to be summarised for the context to fit; `None` where there is
    /// none, and [`ContextWindow::finish`] makes the context. Answer each with
    /// [`ContextWindow::complete`] or [`ContextWindow::fail`]: while one is under way, nothing more
    /// is planned. Costs what [`ContextWindow::render`] does, without the engine.
    ///
    /// # Errors
    /// Those of [`ContextWindow::render`], but for [`ErrorKind::OverBudget`].
    pub fn next_job(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<Option<CompressionJob>> {
        match self.next(history, request, now)? {
            NextStep::Job(job) => Ok(Some(job)),
            NextStep::Finish(_) => Ok(None),
        }
    }

    fn next(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<NextStep> {
        self.look(history, now)?;
        loop {
            if let Some(job) = self.transform.next_job(history, now)? {
                let has_ledger = self.budget.ledger > 0;
                let job = if has_ledger {
                    self.with_ledger(history, job)
                } else {
                    job.with_context(self.standing_words(history), 0)
                };
                return Ok(NextStep::Job(self.last.give(job)));
            }
            if self.transform.is_under_way() {
                // What it saves is not known yet.
                return Ok(NextStep::Finish(None));
            }
            self.apply();
            let context = self.context(history, request, now)?;
            let total = context.tokens().total;
            let (trigger, target) = (self.budget.trigger(), self.budget.target());
            let enough = if self.is_compressing { target.midpoint(trigger) } else { trigger };
            self.is_compressing = total > enough;
            if !self.is_compressing || !self.plan(history, request, &context)? {
                self.is_compressing = false;
                if self.plan_dropped(history, total)? {
                    continue;
                }
                return Ok(NextStep::Finish(Some((self.version, context))));
            }
        }
    }

    /// Takes the summary of a job: as [`CompressionTransform::complete`], rendered by the
    /// window's own HUD. Costs what that does, and renders and counts the summary.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::complete`] and of the renderer.
    pub fn complete(
        &mut self,
        job: &CompressionJob,
        summary: Summary<'_>,
        history: &History,
        now: Millis,
    ) -> Result<Arc<CompressionBlock>> {
        let Self { hud, transform, .. } = self;
        let tags = history.veil().tags();
        transform
            .complete(job, summary, now, |facet| hud.render_facet(facet, Role::User, tags, now))
    }

    /// Takes note that a job failed: as [`CompressionTransform::fail`]. Costs as much.
    ///
    /// # Errors
    /// Those of [`CompressionTransform::fail`].
    pub fn fail(
        &mut self,
        job: &CompressionJob,
        reason: impl Into<String>,
        now: Millis,
    ) -> Result<()> {
        self.transform.fail(job, reason, now)
    }

    /// Whether the context as it stands fits, without what is under way.
    ///
    /// # Errors
    /// Those of [`ContextWindow::next_job`].
    pub(crate) fn fits(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<bool> {
        self.look(history, now)?;
        self.apply();
        Ok(self.context(history, request, now)?.tokens().total <= self.budget.room())
    }

    /// The context, once no job is left: what is still too much is dropped and shortened. Costs
    /// what [`ContextWindow::render`] does, without the engine.
    ///
    /// # Errors
    /// [`ErrorKind::OverBudget`] where what must stay does not fit: nothing is dropped then.
    /// [`ErrorKind::Sequence`] where the history is another one, and those of the renderer.
    pub fn finish(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<FittedContext> {
        self.finish_with(history, request, None, now)
    }

    /// As [`ContextWindow::finish`]; `known` is the context as it stood at a version.
    fn finish_with(
        &mut self,
        history: &mut History,
        request: &RenderRequest,
        known: Option<(u64, RenderedContext)>,
        now: Millis,
    ) -> Result<FittedContext> {
        // What waited for a range may take effect now.
        self.look(history, now)?;
        self.apply();
        let context = match known {
            Some((version, context)) if version == self.version => context,
            _ => self.context(history, request, now)?,
        };
        let context = if context.tokens().total <= self.budget.room() {
            context
        } else {
            self.shrink(history, request, context, now)?
        };
        let context = self.lengthen_instruction(history, request, context, now)?;
        let context = self.lengthen_first(history, request, context, now)?;
        let context = self.name_left_out(history, request, context, now)?;
        self.refused = None;
        self.last.note(&context);
        self.seen = history.frames().last().map(|frame| frame.sequence);
        let epoch = self.pending.take();
        self.epochs += u64::from(epoch.is_some());
        let Fallbacks { dropped, shortened, .. } = self.standing();
        let sealed = std::mem::take(&mut self.sealed).into();
        let (ledger, failures) = (self.ledger.lines(), Arc::default());
        Ok(FittedContext { context, epoch, dropped, shortened, sealed, ledger, failures })
    }

    /// Drops and shortens until the context fits; changes nothing where it cannot.
    fn shrink(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: RenderedContext,
        now: Millis,
    ) -> Result<RenderedContext> {
        let before = (self.changes.clone(), self.pending.clone(), self.ledger.clone());
        self.fit(history, request, context, now).inspect_err(|_| {
            (self.changes, self.pending, self.ledger) = before;
            self.unsettle();
        })
    }

    /// Lets the blocks that are ready take effect.
    fn apply(&mut self) {
        let epoch = self.transform.apply();
        self.take_effect(epoch);
    }

    /// Takes note of blocks that took effect. What was done to their frames before is over.
    pub(super) fn take_effect(&mut self, epoch: Option<Epoch>) {
        let Some(epoch) = epoch else { return };
        self.ledger.outdate();
        // A compaction of another program may begin or end inside of what was dropped together.
        self.unsettle();
        let Self { changes, replaced, transform, .. } = self;
        let known = transform.blocks_by_id();
        // A block that a branch undid was dropped with it.
        changes.retain(|_, change| {
            let block = change.dropped().and_then(|dropped| dropped.block.as_deref());
            block.is_none_or(|id| known.contains_key(id))
        });
        replaced.retain(|id, _| known.contains_key(&**id));
        let blocks = epoch.blocks.iter().filter_map(|id| known.get(&**id));
        let ranges: Vec<_> =
            blocks.map(|block| (Arc::clone(&block.id), block.from..=block.to)).collect();
        let mut first = epoch.from;
        for (id, range) in ranges {
            let over = self.take_back(range);
            if let Some(from) = over.iter().map(Change::from).min() {
                first = first.min(from);
                self.replaced.insert(id, over);
            }
        }
        self.note(first, epoch.blocks);
    }

    /// Remembers that contexts are no longer what they were from this frame on.
    pub(super) fn note(&mut self, from: FrameSeq, blocks: Vec<Arc<str>>) {
        if self.seen.is_none_or(|seen| from > seen) {
            return;
        }
        let number = self.epochs + 1;
        let epoch = self.pending.get_or_insert(Epoch { number, from, blocks: Vec::new() });
        epoch.from = epoch.from.min(from);
        epoch.blocks.extend(blocks);
    }

    /// The context as it stands, whatever it costs.
    pub(super) fn context(
        &mut self,
        history: &History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<RenderedContext> {
        self.refresh_ledger(history, now)?;
        let substitutions = self.standing().substitutions;
        self.hud.render_with(history, request, (&substitutions, Some(guarded)), now)
    }

    /// The original frames of a block, or of what was shortened or dropped, by the id that stands
    /// in the context. Those of the `ledger` are the frames that its lines are from. Linear in what
    /// stands for frames, and O(log n) for each frame that it gives.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where nothing in effect has the id, and those of
    /// [`CompressionBlock::expand`].
    pub fn expand(&self, history: &History, id: &str) -> Result<Vec<Passage>> {
        if let Some(block) = self.transform.block(id) {
            return block.expand();
        }
        if self.ledger.substitution().is_some_and(|ledger| *ledger.block == *id) {
            return Ok(self.ledger_frames(history));
        }
        self.expand_change(history, id)
    }

    /// The original frames of what was shortened or dropped, by its id.
    fn expand_change(&self, history: &History, id: &str) -> Result<Vec<Passage>> {
        let mut changes = self.changes.values().chain(self.edited());
        let Some(change) = changes.find(|change| *change.id() == *id) else {
            let message = format!("expected the id of a block in effect, found {id:?}");
            return Err(Error::new(ErrorKind::OutOfRange, message));
        };
        Ok(self.passages_in(history, change.from()..=change.to()))
    }

    /// The frames of a range that show something, as they were captured.
    pub(super) fn passages_in(
        &self,
        history: &History,
        range: RangeInclusive<FrameSeq>,
    ) -> Vec<Passage> {
        let frames = history.frames();
        let inside = frames.first_from(*range.start())..frames.first_after(*range.end());
        let passage = |index: usize| {
            let role = frames.snapshot(index)?.chunks().find_map(|chunk| chunk.role());
            let source = || frames.source(index).unwrap_or_default();
            let role = role.unwrap_or_else(|| self.hud.role_of(&source()));
            Passage::of_frame(history, index, role)
        };
        inside.filter_map(passage).filter(|passage| !passage.snapshot.is_empty()).collect()
    }
}
