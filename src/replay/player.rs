use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{ReplayFigures, needs::Names, sliding::Sliding};
use crate::{
    ErrorKind, Result,
    compress::{CompressionOptions, CompressionTransform, Engine, Epoch, RangeState},
    hud::{Hud, ProviderFraming, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    request::{Answers, Reports},
    snapshot::FrameSnapshot,
    veil::{Frame, History, Source},
    window::{Budget, ContextWindow, DroppedFrames, RecordedCompactions, ShortenedFrame},
};

/// How contexts are kept within the budget.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplayPolicy {
    /// By a [`ContextWindow`]: blocks stand for older frames.
    Blocks(CompressionOptions),
    /// The oldest frames are left out, as many as it takes, calls with their results.
    Sliding,
    /// Not at all, but for the compactions that the recording tells of.
    Unlimited,
}

/// Replays one session.
#[derive(Debug)]
pub struct Replay {
    hud: Hud,
    budget: Budget,
    framing: ProviderFraming,
    engine: Arc<dyn Engine>,
    keeper: Keeper,
    history: History,
    /// The frames of calls with those of their results, and the other way round.
    partners: HashMap<FrameSeq, Vec<FrameSeq>>,
    names: Names,
    session: Arc<str>,
    answers: Answers,
    reports: Reports,
    /// The request that waits for the agent to say something.
    request: Option<Request>,
    /// What changed in requests that were never sent, since others spoke first.
    unsent: Option<Epoch>,
    /// The last request that could be made, whether the last one could, and the frames that it
    /// held as they are.
    last: Option<RenderedContext>,
    is_fit: bool,
    held: HashSet<FrameSeq>,
    figures: ReplayFigures,
}

#[derive(Debug)]
struct Request {
    context: Option<RenderedContext>,
    epoch: Option<Epoch>,
    dropped: Arc<Vec<DroppedFrames>>,
    shortened: Arc<Vec<ShortenedFrame>>,
}

#[derive(Debug)]
enum Keeper {
    Blocks(Box<ContextWindow>),
    /// The transform finds out which frames go together.
    Sliding(Sliding, Box<CompressionTransform>),
    Unlimited(Box<RecordedCompactions>),
}

/// A turn of the agent with the request before it.
#[non_exhaustive]
#[derive(Debug)]
pub struct ReplayedTurn<'r> {
    /// The context; `None` where what must stay does not fit.
    pub context: Option<&'r RenderedContext>,
    /// What changed of the request before.
    pub epoch: Option<Epoch>,
    /// What is left out. Shared with the turns before and after, as long as nothing changes.
    pub dropped: Arc<Vec<DroppedFrames>>,
    /// What is shortened.
    pub shortened: Arc<Vec<ShortenedFrame>>,
    /// The frames so far, the turn's own among them.
    pub history: &'r History,
}

impl Replay {
    /// A replay that captures frames with `hud`, and compresses with `engine`.
    pub fn new(hud: Hud, budget: Budget, policy: ReplayPolicy, engine: Arc<dyn Engine>) -> Self {
        let keeper = match policy {
            ReplayPolicy::Blocks(options) => {
                Keeper::Blocks(Box::new(ContextWindow::new(hud.clone(), budget, options)))
            }
            ReplayPolicy::Sliding => Keeper::Sliding(Sliding::default(), Box::default()),
            ReplayPolicy::Unlimited => Keeper::Unlimited(Box::default()),
        };
        let (history, partners, names, session, answers, reports) = Default::default();
        let (request, last, unsent, is_fit, held, figures) = Default::default();
        Self {
            hud,
            budget,
            framing: ProviderFraming::default(),
            engine,
            keeper,
            history,
            partners,
            names,
            session,
            answers,
            reports,
            request,
            unsent,
            last,
            is_fit,
            held,
            figures,
        }
    }

    /// The ranges that the engine could not summarise, each with why the last time.
    pub fn failed(&self) -> Vec<(Arc<str>, String)> {
        let Keeper::Blocks(window) = &self.keeper else { return Vec::new() };
        let failed = window.transform().ranges().filter_map(|(id, state)| match state {
            RangeState::Failed { reason } => Some((Arc::clone(id), reason.clone())),
            _ => None,
        });
        failed.collect()
    }

    /// What it came to so far.
    pub fn figures(&self) -> ReplayFigures {
        self.figures
    }

    /// The frames so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What the provider adds around messages, where it is not what OpenAI's chat models add.
    #[must_use]
    pub fn framing(self, framing: ProviderFraming) -> Self {
        Self { framing, ..self }
    }

    /// Takes the next frame. Where it begins a turn of the agent, the request that would have been
    /// sent before it is made first; it is the answer.
    ///
    /// Costs time in the frames of that request and in those that are new, however long the session
    /// is. Without a policy the request holds all of it.
    ///
    /// # Errors
    /// Those of capture and of the renderer.
    pub fn push(&mut self, frame: Frame, now: Millis) -> Result<Option<ReplayedTurn<'_>>> {
        let is_agents = frame.source == Source::Agent;
        let begins = self.reports.would_begin(&self.session, &self.answers, &frame);
        if begins && self.request.is_none() {
            self.request = Some(self.make_request(now)?);
        }
        let frame = self.hud.capture(&mut self.history, frame, now)?;
        let Some(said) = &frame.rendered_snapshot else { return Ok(None) };
        if said.is_empty() {
            // The request stands until the agent says something.
            return Ok(None);
        }
        let made = self.sent_request(begins);
        if is_agents {
            self.count_names(said);
        }
        self.reports.push(&self.session, &mut self.answers, &frame, true);
        let pairs = self.history.pairs().in_frame(frame.sequence);
        for pair in pairs.iter().filter(|pair| pair.in_time) {
            let (call, result) = (pair.call.frame, pair.result.frame);
            self.partners.entry(call).or_default().push(result);
            self.partners.entry(result).or_default().push(call);
        }
        self.names.push(frame.sequence, said);
        Ok(made.map(|made| ReplayedTurn {
            context: self.last.as_ref().filter(|_| self.is_fit),
            epoch: made.epoch,
            dropped: made.dropped,
            shortened: made.shortened,
            history: &self.history,
        }))
    }

    /// The request that the agent answers now, counted; one that others spoke before was never sent.
    fn sent_request(&mut self, begins: bool) -> Option<Request> {
        let mut made = self.request.take()?;
        made.epoch = joined(self.unsent.take(), made.epoch.take());
        if !begins || made.context.is_none() {
            self.unsent = made.epoch.take();
        }
        if !begins {
            return None;
        }
        self.count(&mut made);
        Some(made)
    }

    /// Adds the names that the agent uses in `said` to the figures.
    fn count_names(&mut self, said: &FrameSnapshot) {
        let Some(context) = self.last.as_ref().filter(|_| self.is_fit) else { return };
        let is_there = |frame| self.held.contains(&frame);
        let (needed, kept) = self.names.needed(said, context, is_there);
        self.figures.identifiers_needed += needed;
        self.figures.identifiers_kept += kept;
    }

    fn make_request(&mut self, now: Millis) -> Result<Request> {
        let Self { hud, budget, history, .. } = self;
        let asked = RenderRequest { framing: self.framing, ..RenderRequest::default() };
        match &mut self.keeper {
            Keeper::Unlimited(compactions) => {
                compactions.follow(hud, history, now)?;
                let blocks = compactions.blocks();
                Ok(Request::of(Some(hud.render_with(history, &asked, blocks, now)?)))
            }
            Keeper::Sliding(sliding, transform) => {
                transform.look(history)?;
                let units = transform.units();
                let (context, dropped) =
                    sliding.render(hud, history, budget, units, &asked, now)?.unzip();
                Ok(Request { dropped: dropped.unwrap_or_default(), ..Request::of(context) })
            }
            Keeper::Blocks(window) => match window.render(history, &asked, &*self.engine, now) {
                Ok(fitted) => Ok(Request {
                    context: Some(fitted.context),
                    epoch: fitted.epoch,
                    dropped: fitted.dropped,
                    shortened: fitted.shortened,
                }),
                Err(error) if error.kind() == ErrorKind::OverBudget => Ok(Request::of(None)),
                Err(error) => Err(error),
            },
        }
    }

    /// Adds a request to the figures; it is the last from then on.
    fn count(&mut self, made: &mut Request) {
        self.figures.turns += 1;
        let Some(context) = made.context.take() else {
            self.figures.unfit += 1;
            self.is_fit = false;
            return;
        };
        self.is_fit = true;
        let total = context.tokens().total;
        let framing = self.framing;
        let prefix = self
            .last
            .as_ref()
            .map_or(0, |last| context.unchanged_prefix(last, framing, &**self.hud.counter()));
        self.figures.tokens_sent += total;
        self.figures.tokens_cached += prefix.min(total);
        self.figures.over_budget += u64::from(total > self.budget.room());
        let has_blocks = made.epoch.as_ref().is_some_and(|epoch| !epoch.blocks.is_empty());
        self.figures.compressions += u64::from(has_blocks);
        self.held = context.frame_to_message().keys().copied().collect();
        let shortened = made.shortened.iter().map(|what| what.frame);
        let there: HashSet<FrameSeq> = self.held.iter().copied().chain(shortened).collect();
        let partners = there.iter().filter_map(|frame| self.partners.get(frame)).flatten();
        let is_gone = |partner: &&FrameSeq| !there.contains(partner);
        self.figures.orphans += partners.filter(is_gone).count() as u64;
        self.last = Some(context);
    }
}

/// What changed in two steps.
fn joined(earlier: Option<Epoch>, later: Option<Epoch>) -> Option<Epoch> {
    match (earlier, later) {
        (Some(earlier), Some(later)) => Some(Epoch {
            number: later.number,
            from: earlier.from.min(later.from),
            blocks: [earlier.blocks, later.blocks].concat(),
        }),
        (earlier, later) => later.or(earlier),
    }
}

impl Request {
    fn of(context: Option<RenderedContext>) -> Self {
        let (epoch, dropped, shortened) = Default::default();
        Self { context, epoch, dropped, shortened }
    }
}
