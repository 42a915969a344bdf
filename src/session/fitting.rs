use std::{collections::BTreeMap, ops::RangeInclusive};

use crate::{
    Error, ErrorKind, Result,
    bill::{MediaCount, MediaItem},
    compress::{CompressionJob, CompressionOptions, Engine, Epoch, FailureLimit},
    export::{Export, ExportOptions, ExportedRequest, Form},
    hud::{Hud, ProviderFraming, RenderRequest, RenderedContext},
    id::{FrameSeq, Millis},
    veil::History,
    window::{Breakdown, Budget, ContextWindow, FittedContext, RangePreview},
};

/// After so many failures in a row an engine is asked more rarely.
pub(super) const FAILURES: u32 = 4;

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
        let mut room = SetAside::new(self.framing, 0);
        let request = &room.request;
        let sealed = self.hud.seal_all(history, now)?;
        // What the whole session renders to is let go before anything else takes room.
        let before = self.hud.render(history, request, now)?;
        let (_, tokens_before) = self.request(history, &before)?;
        let media = media_of(history);
        let media_before = media_in(&media, &before, self.model.as_deref());
        drop(before);
        watch(FittingStep::Measured(tokens_before));
        if let Some(range) = &self.range {
            window.compress_range(history, range.clone(), now)?;
        }
        let mut summarise =
            |window: &mut ContextWindow, history: &mut History, request: &RenderRequest| {
                let mut failures = Vec::new();
                while let Some(job) = next_job(window, history, request, now)? {
                    watch(FittingStep::Asking(&job));
                    failures.extend(answer_job(window, history, &job, &engine, now)?);
                }
                Ok(failures)
            };
        let measure = |history: &_, fitted: &FittedContext| {
            let (exported, tokens) = self.request(history, &fitted.context)?;
            let media = media_in(&media, &fitted.context, self.model.as_deref());
            Ok(Measured { exported, tokens, media })
        };
        let fitted = fit_whole(&mut window, history, &mut room, now, &mut summarise, measure);
        let (fit, Measured { exported, tokens: tokens_after, media: media_after }) = match fitted {
            Ok((fitted, measured)) => (Fit::Fits(Box::new(fitted)), measured),
            Err(error) if error.kind() == ErrorKind::OverBudget => {
                let breakdown = window.last_breakdown().cloned().unwrap_or_default();
                (Fit::Unfit(Box::new(breakdown)), Measured::default())
            }
            Err(error) => return Err(error),
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

    /// The context as a request, and its tokens: every text in it, and what the provider adds.
    fn request(
        &self,
        history: &History,
        context: &RenderedContext,
    ) -> Result<(Option<ExportedRequest>, u64)> {
        let is_export = |form: &Form| !matches!(form, Form::Messages | Form::Plain);
        let exported = match self.form.filter(is_export) {
            Some(form) => Export::of(history, context)?.in_form(form, &self.export),
            None => None,
        };
        let Some(exported) = exported else { return Ok((None, context.tokens().total)) };
        let tokens = exported.tokens(&**self.hud.counter(), self.framing);
        Ok((Some(exported), tokens))
    }
}

/// What is sent of a context.
#[derive(Default)]
pub(super) struct Measured {
    /// The context as a request; none where the context is sent as it is.
    pub(super) exported: Option<ExportedRequest>,
    /// Its tokens: every text in it, and what the provider adds.
    pub(super) tokens: u64,
    /// The images, sounds and documents in it.
    pub(super) media: MediaCount,
}

/// How contexts are rendered where more than their texts takes room.
pub(super) struct SetAside {
    /// What is set aside counts as framing.
    request: RenderRequest,
    /// The framing that is the provider's.
    own: u64,
}

impl SetAside {
    /// So many tokens set aside.
    pub(super) fn new(framing: ProviderFraming, tokens: u64) -> Self {
        let own = framing.per_reply;
        let framing = ProviderFraming { per_reply: own.saturating_add(tokens), ..framing };
        Self { request: RenderRequest { framing, ..RenderRequest::default() }, own }
    }

    /// The tokens that are set aside.
    pub(super) fn tokens(&self) -> u64 {
        self.request.framing.per_reply.saturating_sub(self.own)
    }
}

/// Has summaries written that are due for a context, and gives the errors of their engine.
pub(super) type Summarise<'s> =
    dyn FnMut(&mut ContextWindow, &mut History, &RenderRequest) -> Result<Vec<Error>> + 's;

/// The next summary that is due for a context that is not sent before it fits.
pub(super) fn next_job(
    window: &mut ContextWindow,
    history: &mut History,
    request: &RenderRequest,
    now: Millis,
) -> Result<Option<CompressionJob>> {
    let mut job = window.next_job(history, request, now)?;
    if let Some(job) = &mut job {
        // What was made for such a context before was never sent.
        job.sent = None;
    }
    Ok(job)
}

/// Has `engine` answer a job; gives its error where it failed.
pub(super) fn answer_job(
    window: &mut ContextWindow,
    history: &History,
    job: &CompressionJob,
    engine: &dyn Engine,
    now: Millis,
) -> Result<Option<Error>> {
    let Err(error) = window.run(job, history, engine, now) else { return Ok(None) };
    window.fail(job, error.message(), now)?;
    Ok(Some(error))
}

/// Fits the context of a window as it is sent: a request has ids and names of tools besides texts,
/// and media take room too. What they take is set aside, for the next context too.
pub(super) fn fit_whole(
    window: &mut ContextWindow,
    history: &mut History,
    aside: &mut SetAside,
    now: Millis,
    summarise: &mut Summarise<'_>,
    measure: impl Fn(&History, &FittedContext) -> Result<Measured>,
) -> Result<(FittedContext, Measured)> {
    let room = window.budget().room();
    let mut epoch: Option<Epoch> = None;
    let mut failures = Vec::new();
    loop {
        failures.extend(summarise(window, history, &aside.request)?);
        let mut fitted = window.finish(history, &aside.request, now)?;
        epoch = match (epoch, fitted.epoch.take()) {
            (Some(first), Some(then)) => Some(first.and(then)),
            (first, then) => first.or(then),
        };
        let measured = measure(history, &fitted)?;
        // What was set aside is in the count of a context, and not of an export.
        let tokens = match measured.exported {
            None => measured.tokens.saturating_sub(aside.tokens()),
            Some(_) => measured.tokens,
        };
        let whole = tokens.saturating_add(measured.media.tokens);
        if whole <= room {
            let failures = failures.into();
            return Ok((
                FittedContext { epoch, failures, ..fitted },
                Measured { tokens, ..measured },
            ));
        }
        // Where frames go, so do ids and images: at most half of what is left is set aside at a time.
        let more = (whole - room).max(room / 100);
        let most = (room.saturating_sub(aside.tokens()) / 2).max(1);
        let more = if measured.media.tokens > 0 { more.min(most) } else { more };
        let framing = &mut aside.request.framing;
        framing.per_reply = framing.per_reply.saturating_add(more);
    }
}

/// The media of the frames that a context holds as they are, by the rule of a model.
pub(super) fn media_in(
    media: &BTreeMap<FrameSeq, Vec<MediaItem>>,
    context: &RenderedContext,
    model: Option<&str>,
) -> MediaCount {
    let mut count = MediaCount::default();
    let items = media.iter().filter(|(frame, _)| context.message_of(**frame).is_some());
    items.flat_map(|(_, items)| items).for_each(|item| count.add(item, model));
    count
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
