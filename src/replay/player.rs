use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    ReplayFigures, ReplayPolicy, SummaryCalls,
    asked::{LastRequest, NotingEngine},
    keeper::{Asking, Keeper, Request},
    measuring::Measuring,
    media::Media,
    needs::Names,
};
use crate::{
    Result,
    compress::{Engine, Epoch},
    export::{Export, ExportOptions, ExportedRequest, Form},
    hud::{Hud, ProviderFraming, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    json::Value,
    request::{Answers, Reports},
    snapshot::FrameSnapshot,
    veil::{Frame, History, Source},
    window::{Budget, DroppedFrames, ShortenedFrame},
};

/// Replays one session.
#[derive(Debug)]
pub struct Replay {
    hud: Hud,
    budget: Budget,
    framing: ProviderFraming,
    form: Option<Form>,
    engine: Arc<dyn Engine>,
    calls: SummaryCalls,
    keeper: Keeper,
    history: History,
    /// The tokens of all of it, as messages.
    whole: u64,
    /// The frames of calls with those of their results, and the other way round.
    partners: HashMap<FrameSeq, Vec<FrameSeq>>,
    names: Names,
    measuring: Option<Measuring>,
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
    /// The last request in the form of a provider, where summaries go on from it.
    last_body: Option<Value>,
    is_fit: bool,
    held: HashSet<FrameSeq>,
    media: Media,
    /// The last frame before the last request.
    until: Option<FrameSeq>,
    figures: ReplayFigures,
}

/// A turn of the agent with the request before it.
#[non_exhaustive]
#[derive(Debug)]
pub struct ReplayedTurn<'r> {
    /// The context; `None` where what must stay does not fit.
    pub context: Option<&'r RenderedContext>,
    /// The same in the form of a provider, where one was asked for.
    pub exported: Option<ExportedRequest>,
    /// The tokens of that, with what the provider adds; 0 where none was asked for.
    pub exported_tokens: u64,
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
        let keeper = Keeper::new(&hud, budget, policy);
        let (history, whole, partners, names, session, answers, reports) = Default::default();
        let measuring = None;
        let (request, last, unsent, is_fit, held, figures) = Default::default();
        let (media, until, last_body) = Default::default();
        Self {
            hud,
            budget,
            framing: ProviderFraming::default(),
            form: None,
            engine,
            calls: SummaryCalls::default(),
            keeper,
            history,
            whole,
            partners,
            names,
            measuring,
            session,
            answers,
            reports,
            request,
            unsent,
            last,
            last_body,
            is_fit,
            held,
            media,
            until,
            figures,
        }
    }

    /// The ranges that the engine could not summarise, each with why the last time. O(ranges).
    pub fn failed(&self) -> Vec<(Arc<str>, String)> {
        self.keeper.failed()
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

    /// How a model is asked for summaries, so that the bill has what that costs; otherwise summaries
    /// cost nothing.
    #[must_use]
    pub fn summary_calls(self, calls: SummaryCalls) -> Self {
        Self { calls, ..self }
    }

    /// Writes each request in the form of a provider too, and fits it with what that adds: ids and
    /// names of tools, and what repairs a history. It takes frames in the format `native`.
    /// [`Form::Messages`] and [`Form::Plain`] are the context itself.
    #[must_use]
    pub fn form(self, form: Form) -> Self {
        Self { form: Some(form), ..self }
    }

    /// What the images, sounds and documents of a frame cost: they take room in the budget, as long
    /// as a request holds the frame as it is.
    #[must_use]
    pub fn media(self, of: impl Fn(&Frame) -> u64 + Send + 'static) -> Self {
        Self { media: Media::new(of), ..self }
    }

    /// Measures what requests still say of what the session said before: of those that hold less than
    /// all of it, the first and every eighth. Each costs time in the whole session.
    #[must_use]
    pub fn measure_survival(self) -> Self {
        Self { measuring: Some(Measuring::default()), ..self }
    }

    /// Takes the next frame. Where it begins a turn of the agent, the request that would have been
    /// sent before it is made first; it is the answer.
    ///
    /// Costs time in the frames of that request and in those that are new, however long the session
    /// is. Without a policy the request holds all of it.
    ///
    /// # Errors
    /// Those of capture, of the renderer and of an [`Export`].
    pub fn push(&mut self, frame: Frame, now: Millis) -> Result<Option<ReplayedTurn<'_>>> {
        let is_agents = frame.source == Source::Agent;
        let begins = self.reports.would_begin(&self.session, &self.answers, &frame);
        if begins && self.request.is_none() {
            self.request = Some(self.make_request(now)?);
        }
        let frame = self.hud.capture(&mut self.history, frame, now)?;
        self.media.push(&frame);
        let Some(said) = &frame.rendered_snapshot else { return Ok(None) };
        if said.is_empty() {
            // The request stands until the agent says something.
            return Ok(None);
        }
        let made = self.sent_request(begins);
        let tokens = said.exact_tokens().unwrap_or(said.total_tokens());
        self.whole += tokens + self.framing.per_message;
        if is_agents {
            self.figures.tokens_answered += tokens;
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
        if let Some(measuring) = &mut self.measuring {
            measuring.push(&frame, said, self.hud.role_of(&frame.source));
        }
        Ok(made.map(|made| ReplayedTurn {
            context: self.last.as_ref().filter(|_| self.is_fit),
            exported: made.exported,
            exported_tokens: made.tokens,
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

    /// The request of this turn. One that is too much with what its provider's form adds, and with
    /// its images, is made again in less room.
    ///
    /// Room is set aside for the images of the last request, and for those that came since, but never
    /// all of it: where frames go, so do theirs.
    fn make_request(&mut self, now: Millis) -> Result<Request> {
        let room = self.budget.room();
        let stays = |frame| self.held.contains(&frame) || self.until.is_none_or(|to| frame > to);
        let images = self.media.tokens(stays).min(room / 2);
        let Self { hud, history, framing, keeper, media, .. } = self;
        let mut request = RenderRequest { framing: *framing, ..RenderRequest::default() };
        request.framing.per_reply = request.framing.per_reply.saturating_add(images);
        let asking = Asking { hud, history, request: &request, room, now };
        keeper.begin_turn(&asking)?;
        let last = LastRequest { context: self.last.as_ref(), body: self.last_body.as_ref() };
        let engine = NotingEngine::new(&*self.engine, self.calls, last);
        let mut before = None;
        let made = loop {
            let mut made = keeper.request(hud, history, (&request, room), &engine, now)?;
            made.whole = self.whole;
            made.epoch = joined(before.take(), made.epoch.take());
            made.aside = request.framing.per_reply.saturating_sub(framing.per_reply);
            let Some(context) = &made.context else { break made };
            made.exported =
                self.form.map(|form| exported(history, context, form)).transpose()?.flatten();
            let images = media.held_by(context);
            let texts = match &made.exported {
                Some(exported) => {
                    made.tokens = exported.tokens(&**hud.counter(), *framing);
                    made.tokens
                }
                None if images == 0 => break made,
                None => context.tokens().total.saturating_sub(made.aside),
            };
            let tokens = texts.saturating_add(images);
            if tokens <= room || keeper.is_unlimited() {
                break made;
            }
            if request.framing.per_reply > room {
                break Request { epoch: made.epoch, ..Request::default() };
            }
            let more = (tokens - room).max(room / 100).max(1);
            // Where frames go, so do their images: at most half of what is left at a time.
            let most = (room.saturating_sub(made.aside) / 2).max(1);
            let more = if images > 0 { more.min(most) } else { more };
            request.framing.per_reply = request.framing.per_reply.saturating_add(more);
            before = made.epoch;
        };
        self.figures.add_spent(engine.spent());
        Ok(made)
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
        let media = self.media.held_by(&context);
        let total = context.tokens().total.saturating_sub(made.aside);
        self.figures.media_tokens += media;
        self.until = self.history.frames().last().map(|frame| frame.sequence);
        let (framing, room) = (self.framing, self.budget.room());
        let prefix = self
            .last
            .as_ref()
            .map_or(0, |last| context.unchanged_prefix(last, framing, &**self.hud.counter()));
        self.figures.tokens_sent += total;
        self.figures.tokens_cached += prefix.min(total);
        let all = total.max(made.tokens).saturating_add(media);
        self.figures.over_budget += u64::from(all > room);
        // A request that was never sent may have had the blocks that this one has.
        let has_blocks = made.epoch.as_ref().is_some_and(|epoch| !epoch.blocks.is_empty());
        self.figures.compressions += u64::from(made.is_compressed || has_blocks);
        if let Some(measuring) = self.measuring.as_mut().filter(|_| made.whole > total) {
            self.figures.survival += measuring.look(&context);
        }
        if made.whole > room {
            self.figures.full_sent += total;
            self.figures.full_room += room;
        }
        self.held = context.frame_to_message().map(|(frame, _)| frame).collect();
        let shortened = made.shortened.iter().map(|what| what.frame);
        let there: HashSet<FrameSeq> = self.held.iter().copied().chain(shortened).collect();
        let partners = there.iter().filter_map(|frame| self.partners.get(frame)).flatten();
        let is_gone = |partner: &&FrameSeq| !there.contains(partner);
        self.figures.orphans += partners.filter(is_gone).count() as u64;
        if self.calls == SummaryCalls::Continued {
            self.last_body = made.exported.as_ref().map(ExportedRequest::value);
        }
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

/// The context in the form of a provider; `None` where that is the context itself.
fn exported(
    history: &History,
    context: &RenderedContext,
    form: Form,
) -> Result<Option<ExportedRequest>> {
    match form {
        Form::Messages | Form::Plain => Ok(None),
        form => Ok(Export::of(history, context)?.in_form(form, &ExportOptions::default())),
    }
}
