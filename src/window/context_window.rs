use std::{collections::BTreeMap, sync::Arc};

use super::{
    Breakdown, Budget, DroppedFrames, ShortenedFrame, change::Change, standing::Fallbacks,
};
use crate::{
    Error, ErrorKind, Result,
    compress::{
        CompressionBlock, CompressionJob, CompressionOptions, CompressionTransform, Engine, Epoch,
        Passage, Summary,
    },
    hud::{Hud, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis, Role},
    snapshot::{FrameSnapshot, FrameSnapshotBuilder},
    veil::History,
};

/// So many of the newest frames are compressed last, however large they are.
const LEAST_PROTECTED: usize = 2;

/// Keeps the contexts of one history within a budget.
#[derive(Debug)]
pub struct ContextWindow {
    pub(super) hud: Hud,
    pub(super) budget: Budget,
    pub(super) transform: CompressionTransform,
    /// What was dropped and shortened, by its first frame; apart from blocks in effect, but for
    /// blocks that were dropped themselves.
    pub(super) changes: BTreeMap<FrameSeq, Change>,
    /// Whether the high mark was passed, and the low one not met since.
    is_compressing: bool,
    /// How many frames were looked at for results that are too large.
    pub(super) looked_at: usize,
    /// The last frame that a context held.
    seen: Option<FrameSeq>,
    /// The epochs of the contexts so far.
    epochs: u64,
    /// Who took the room where the last context did not fit.
    pub(super) refused: Option<Breakdown>,
    /// What changed since the last context.
    pending: Option<Epoch>,
    /// What stands for frames, and how often that changed.
    pub(super) standing: Option<Fallbacks>,
    pub(super) version: u64,
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
    /// The errors that [`ContextWindow::render`] got from the engine in place of summaries.
    pub failures: Arc<[Error]>,
}

impl ContextWindow {
    /// A window for one history that `hud` captured. The water marks and the
    /// fewest frames of `options` are not used: the budget decides.
    pub fn new(hud: Hud, budget: Budget, options: CompressionOptions) -> Self {
        let nothing = FrameSnapshotBuilder::new(&**hud.counter()).build(Millis::new(0));
        Self {
            hud,
            budget,
            transform: CompressionTransform::new(options),
            changes: BTreeMap::new(),
            is_compressing: false,
            looked_at: 0,
            seen: None,
            epochs: 0,
            refused: None,
            pending: None,
            standing: None,
            version: 0,
            nothing: Arc::new(nothing),
        }
    }

    /// The budget.
    pub fn budget(&self) -> &Budget {
        &self.budget
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
    /// Renders each context that it weighs from the frames' snapshots: no frame is rendered or
    /// counted again. Costs time in the frames of the context and in those that are new, however
    /// long the history is; an epoch costs what stands for frames besides.
    ///
    /// # Errors
    /// [`ErrorKind::OverBudget`] where what must stay does not fit; see
    /// [`ContextWindow::breakdown`]. [`ErrorKind::Shape`] where a frame was not captured,
    /// [`ErrorKind::Sequence`] where the history is another one, and those of the renderer.
    pub fn render(
        &mut self,
        history: &History,
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
    /// error.
    ///
    /// # Errors
    /// Those of the engine and of [`ContextWindow::complete`].
    pub fn run(
        &mut self,
        job: &CompressionJob,
        history: &History,
        engine: &dyn Engine,
        now: Millis,
    ) -> Result<Arc<CompressionBlock>> {
        let mut asked = job.clone();
        loop {
            let text = engine.summarize(&asked, &**self.hud.counter())?;
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
    /// is planned.
    ///
    /// # Errors
    /// Those of [`ContextWindow::render`], but for [`ErrorKind::OverBudget`].
    pub fn next_job(
        &mut self,
        history: &History,
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
        history: &History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<NextStep> {
        self.look(history, now)?;
        loop {
            if let Some(job) = self.transform.next_job(history, now)? {
                return Ok(NextStep::Job(job));
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
                return Ok(NextStep::Finish(Some((self.version, context))));
            }
        }
    }

    /// Looks at the frames that are new, and takes over the compactions that they tell of.
    fn look(&mut self, history: &History, now: Millis) -> Result<()> {
        self.transform.look(history)?;
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
        self.shorten_new(history);
        Ok(())
    }

    /// Plans what brings a context closer to the low mark; says whether there was anything.
    fn plan(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: &RenderedContext,
    ) -> Result<bool> {
        let total = context.tokens().total;
        let excess = total.saturating_sub(self.budget.target());
        let mut protected = self.protected_frames();
        if self.transform.plan_frames_saving(history, excess, protected)? > 0 {
            return Ok(true);
        }
        // Before blocks say less for its sake, what takes most of the room does.
        let free = self.free(request, context);
        let is_over = total > self.budget.room();
        if is_over && self.shorten(history, context, free / 2, free / 2) {
            return Ok(true);
        }
        if self.transform.plan_saving(history, excess, protected)? > 0 {
            return Ok(true);
        }
        if !is_over {
            return Ok(false);
        }
        if self.shorten(history, context, free / 2, free / 4) {
            return Ok(true);
        }
        while protected > 0 {
            protected /= 2;
            if self.transform.plan_saving(history, excess, protected)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
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

    /// Takes the summary of a job: as [`CompressionTransform::complete`], rendered by the
    /// window's own HUD.
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

    /// Takes note that a job failed: as [`CompressionTransform::fail`].
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

    /// The context, once no job is left: what is still too much is dropped and shortened.
    ///
    /// # Errors
    /// [`ErrorKind::OverBudget`] where what must stay does not fit: nothing is dropped then.
    /// [`ErrorKind::Shape`] where a frame was not captured, [`ErrorKind::Sequence`] where the
    /// history is another one, and those of the renderer.
    pub fn finish(
        &mut self,
        history: &History,
        request: &RenderRequest,
        now: Millis,
    ) -> Result<FittedContext> {
        self.finish_with(history, request, None, now)
    }

    /// As [`ContextWindow::finish`]; `known` is the context as it stood at a version.
    fn finish_with(
        &mut self,
        history: &History,
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
        self.refused = None;
        self.seen = history.frames().last().map(|frame| frame.sequence);
        let epoch = self.pending.take();
        self.epochs += u64::from(epoch.is_some());
        let Fallbacks { dropped, shortened, .. } = self.standing();
        Ok(FittedContext { context, epoch, dropped, shortened, failures: Arc::default() })
    }

    /// Drops and shortens until the context fits; changes nothing where it cannot.
    fn shrink(
        &mut self,
        history: &History,
        request: &RenderRequest,
        context: RenderedContext,
        now: Millis,
    ) -> Result<RenderedContext> {
        let before = (self.changes.clone(), self.pending.clone());
        self.fit(history, request, context, now).inspect_err(|_| {
            (self.changes, self.pending) = before;
            self.unsettle();
        })
    }

    /// Lets the blocks that are ready take effect.
    fn apply(&mut self) {
        let epoch = self.transform.apply();
        self.take_effect(epoch);
    }

    /// Takes note of blocks that took effect. What was done to their frames before is over.
    fn take_effect(&mut self, epoch: Option<Epoch>) {
        let Some(epoch) = epoch else { return };
        let blocks = epoch.blocks.iter().filter_map(|id| self.transform.block(id));
        let ranges: Vec<_> = blocks.map(|block| block.from..=block.to).collect();
        // A compaction of another program may begin or end inside of what was dropped together.
        self.unsettle();
        // A block that a branch undid was dropped with it.
        let Self { changes, transform, .. } = self;
        changes.retain(|_, change| {
            let block = change.dropped().and_then(|dropped| dropped.block.as_deref());
            block.is_none_or(|id| transform.block(id).is_some())
        });
        let over = ranges.into_iter().filter_map(|range| self.take_back(range));
        let from = over.fold(epoch.from, FrameSeq::min);
        self.note(from, epoch.blocks);
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
        let substitutions = self.standing().substitutions;
        self.hud.render_with(history, request, &substitutions, now)
    }

    /// The original frames of a block, or of what was shortened or dropped, by the id that stands
    /// in the context.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfRange`] where nothing in effect has the id, and those of
    /// [`CompressionBlock::expand`].
    pub fn expand(&self, history: &History, id: &str) -> Result<Vec<Passage>> {
        if let Some(block) = self.transform.block(id) {
            return block.expand();
        }
        let Some(change) = self.changes.values().find(|change| *change.id() == *id) else {
            let message = format!("expected the id of a block in effect, found {id:?}");
            return Err(Error::new(ErrorKind::OutOfRange, message));
        };
        let range = change.from()..=change.to();
        let frames = history.frames();
        let inside = frames.first_from(*range.start())..frames.first_after(*range.end());
        let passage = |index: usize| {
            let (snapshot, sequence) = (frames.snapshot(index)?, frames.sequence(index)?);
            let role = snapshot.chunks().find_map(|chunk| chunk.role());
            let role =
                role.unwrap_or_else(|| self.hud.role_of(&frames.source(index).unwrap_or_default()));
            Some(Passage { from: sequence, to: sequence, role, snapshot })
        };
        Ok(inside.filter_map(passage).filter(|passage| !passage.snapshot.is_empty()).collect())
    }
}
