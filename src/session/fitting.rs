use std::{collections::BTreeMap, ops::RangeInclusive};

use crate::{
    ErrorKind, Result,
    bill::{MediaCount, MediaItem},
    compress::{CompressionJob, CompressionOptions, Engine, FailureLimit},
    export::{Export, ExportOptions, ExportedRequest, Form},
    hud::{Hud, ProviderFraming, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    veil::History,
    window::{Breakdown, Budget, ContextWindow, FittedContext, RangePreview},
};

/// After so many failures in a row an engine is asked more rarely.
const FAILURES: u32 = 4;

/// Fits a whole session into a budget, as the request of a provider where one is asked for.
///
/// A [`ContextWindow`] fits the texts of a context. A request has ids and names of tools besides,
/// which differ from provider to provider: they count here too. Definitions of tools are no part of
/// an export: [`Budget::taking`] leaves room for them.
///
/// ```
/// use std::sync::Arc;
/// use afterimage::{
///     compress::OutlineEngine, export::Form, hud::{Hud, NativeFormat}, id::{FacetType, Millis},
///     session::{Fit, RequestFitter}, tokens::Chars4,
///     veil::{Facet, FacetOp, Frame, History, Source}, window::Budget,
/// };
///
/// let hud = Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build();
/// let mut history = History::new();
/// for n in 0..40_u64 {
///     let text = format!("Reading {n} of sensor S-{}: {}", 1000 + n, "calm ".repeat(20));
///     let facet = Facet::new(format!("reading-{n}"), FacetType::EVENT, text);
///     let frame = Frame::new(n, Source::Environment).with(FacetOp::add(facet));
///     hud.capture(&mut history, frame, Millis::new(0))?;
/// }
/// let fitter = RequestFitter::new(hud, Budget::once(800)).form(Form::OpenaiChat);
/// let fitted = fitter.fit(&mut history, &OutlineEngine, Millis::new(0), |_| {})?;
/// assert!(fitted.tokens_before > 800 && fitted.tokens_after <= 800);
/// assert!(matches!(fitted.fit, Fit::Fits(_)) && fitted.exported.is_some());
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RequestFitter {
    hud: Hud,
    budget: Budget,
    options: CompressionOptions,
    form: Option<Form>,
    export: ExportOptions,
    framing: ProviderFraming,
    range: Option<RangeInclusive<FrameSeq>>,
    model: Option<String>,
}

/// A session that was fitted into a budget, or could not be.
#[derive(Debug)]
pub struct FittedRequest {
    /// The tokens of its context, or of its request, without a budget.
    pub tokens_before: u64,
    /// What was done to the session.
    pub window: ContextWindow,
    /// The frames that had no snapshot, and were sealed, in order.
    pub sealed: Vec<FrameSeq>,
    /// The context that fits.
    pub fit: Fit,
    /// The context as a request, where a form was asked for and it fits.
    pub exported: Option<ExportedRequest>,
    /// The tokens of what fits; 0 where nothing does.
    pub tokens_after: u64,
    /// The images, sounds and documents of its context without a budget, by the rule of the model.
    pub media_before: MediaCount,
    /// Those of what fits. Their tokens are in no other figure, and take room in the budget.
    pub media_after: MediaCount,
}

/// Whether a session fits its budget.
#[derive(Debug)]
pub enum Fit {
    /// The context that fits.
    Fits(Box<FittedContext>),
    /// What must stay is more: who takes the room.
    Unfit(Box<Breakdown>),
}

/// What a fitter is about to do.
#[derive(Clone, Copy, Debug)]
pub enum FittingStep<'j> {
    /// The session was measured: so many tokens.
    Measured(u64),
    /// The engine is asked.
    Asking(&'j CompressionJob),
}

impl RequestFitter {
    /// Fits contexts of `hud` into `budget`, compressing as the budget says.
    pub fn new(hud: Hud, budget: Budget) -> Self {
        let (options, export, framing) =
            (budget.compression(), ExportOptions::default(), ProviderFraming::default());
        Self { hud, budget, options, form: None, export, framing, range: None, model: None }
    }

    /// Compresses with other options.
    #[must_use]
    pub fn options(self, options: CompressionOptions) -> Self {
        Self { options, ..self }
    }

    /// Fits the request of a provider. [`Form::Messages`] and [`Form::Plain`] are the context
    /// itself.
    #[must_use]
    pub fn form(self, form: Form) -> Self {
        Self { form: Some(form), ..self }
    }

    /// Writes the request with other options.
    #[must_use]
    pub fn export(self, export: ExportOptions) -> Self {
        Self { export, ..self }
    }

    /// What the provider adds around messages, where it is not what OpenAI's chat models add.
    #[must_use]
    pub fn framing(self, framing: ProviderFraming) -> Self {
        Self { framing, ..self }
    }

    /// Counts images and documents by the rule of this model: they take room in the budget. What
    /// they cost is unknown without it.
    #[must_use]
    pub fn model(self, model: Option<String>) -> Self {
        Self { model, ..self }
    }

    /// Compresses these frames first, whatever the budget:
    /// [`ContextWindow::compress_range`].
    #[must_use]
    pub fn range(self, range: RangeInclusive<FrameSeq>) -> Self {
        Self { range: Some(range), ..self }
    }

    /// What [`RequestFitter::range`] would do with these frames, to the context of a whole session:
    /// [`ContextWindow::preview_range`]. O(frames in the range), and renders them.
    ///
    /// # Errors
    /// Those of [`ContextWindow::preview_range`].
    pub fn preview_range(
        &self,
        history: &mut History,
        range: RangeInclusive<FrameSeq>,
        now: Millis,
    ) -> Result<RangePreview> {
        let mut window = ContextWindow::new(self.hud.clone(), self.budget, self.options.clone());
        let request = RenderRequest { framing: self.framing, ..RenderRequest::default() };
        window.preview_range(history, &request, range, now)
    }

    /// Fits a session, asking `engine` for summaries. Frames without a snapshot are sealed first:
    /// [`FittedRequest::sealed`]. An engine that fails four times in a row is asked more rarely
    /// ([`FailureLimit`](crate::compress::FailureLimit)); what it did not summarise is shortened or
    /// left out. `watch` hears of each step, for programs that show progress. Renders and exports
    /// the whole session once, and what is left of it for each try.
    ///
    /// # Errors
    /// A frame that the format refuses, a context that an export refuses, and those of
    /// [`ContextWindow::compress_range`] where a range is asked for. That a session does not fit is no
    /// error: see [`Fit::Unfit`].
    pub fn fit(
        &self,
        history: &mut History,
        engine: &dyn Engine,
        now: Millis,
        mut watch: impl FnMut(FittingStep<'_>),
    ) -> Result<FittedRequest> {
        let engine = FailureLimit::new(engine, FAILURES);
        let mut window = ContextWindow::new(self.hud.clone(), self.budget, self.options.clone());
        let mut request = RenderRequest { framing: self.framing, ..RenderRequest::default() };
        let sealed = self.hud.seal_all(history, now)?;
        // What the whole session renders to is let go before anything else takes room.
        let before = self.hud.render(history, &request, now)?;
        let (_, tokens_before) = self.request(history, &before)?;
        let media = media_of(history);
        let media_before = self.media_in(&media, &before);
        drop(before);
        watch(FittingStep::Measured(tokens_before));
        if let Some(range) = &self.range {
            window.compress_range(history, range.clone(), now)?;
        }
        let room = self.budget.room();
        let (fit, exported, tokens_after, media_after) = loop {
            while let Some(mut job) = window.next_job(history, &request, now)? {
                // What this loop made before was never sent.
                job.sent = None;
                watch(FittingStep::Asking(&job));
                if let Err(error) = window.run(&job, history, &engine, now) {
                    window.fail(&job, error.message(), now)?;
                }
            }
            match window.finish(history, &request, now) {
                Ok(fitted) => {
                    let (exported, tokens) = self.request(history, &fitted.context)?;
                    // What was set aside is in the count of a context, and not of an export.
                    let aside = request.framing.per_reply - self.framing.per_reply;
                    let tokens = tokens - if exported.is_none() { aside.min(tokens) } else { 0 };
                    let beside = self.media_in(&media, &fitted.context);
                    let whole = tokens.saturating_add(beside.tokens);
                    if whole <= room {
                        break (Fit::Fits(Box::new(fitted)), exported, tokens, beside);
                    }
                    // Ids and names of tools are what this provider adds to the texts, and so are
                    // the images that still stand in the context. Where frames go, so do theirs:
                    // at most half of what is left is set aside at a time.
                    let more = (whole - room).max(room / 100);
                    let most = (room.saturating_sub(aside) / 2).max(1);
                    let more = if beside.tokens > 0 { more.min(most) } else { more };
                    request.framing.per_reply = request.framing.per_reply.saturating_add(more);
                }
                Err(error) if error.kind() == ErrorKind::OverBudget => {
                    let breakdown = window.last_breakdown().cloned().unwrap_or_default();
                    break (Fit::Unfit(Box::new(breakdown)), None, 0, MediaCount::default());
                }
                Err(error) => return Err(error),
            }
        };
        Ok(FittedRequest {
            tokens_before,
            window,
            sealed,
            fit,
            exported,
            tokens_after,
            media_before,
            media_after,
        })
    }

    /// The media of the frames that a context holds as they are.
    fn media_in(
        &self,
        media: &BTreeMap<FrameSeq, Vec<MediaItem>>,
        context: &RenderedContext,
    ) -> MediaCount {
        let mut count = MediaCount::default();
        let items = media.iter().filter(|(frame, _)| context.message_of(**frame).is_some());
        items.flat_map(|(_, items)| items).for_each(|item| count.add(item, self.model.as_deref()));
        count
    }

    /// The context as a request, and its tokens: every text in it, and what the provider adds.
    fn request(
        &self,
        history: &History,
        context: &RenderedContext,
    ) -> Result<(Option<ExportedRequest>, u64)> {
        let export = || Export::of(history, context);
        let exported = match self.form {
            Some(Form::OpenaiChat) => export()?.openai_chat(&self.export),
            Some(Form::Responses) => export()?.responses(&self.export),
            Some(Form::Anthropic) => export()?.anthropic(&self.export),
            Some(Form::Messages | Form::Plain) | None => return Ok((None, context.tokens().total)),
        };
        let tokens = exported.tokens(&**self.hud.counter(), self.framing);
        Ok((Some(exported), tokens))
    }
}

/// The media of each frame that has some.
fn media_of(history: &History) -> BTreeMap<FrameSeq, Vec<MediaItem>> {
    let frames = history.frames();
    let of = (0..frames.len()).filter_map(|index| {
        let frame = frames.get(index)?;
        Some((frame.sequence, MediaItem::of_frame(&frame)))
    });
    of.filter(|(_, items)| !items.is_empty()).collect()
}
