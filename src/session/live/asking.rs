//! The next request of a session: a context that fits, in the provider's form, and its receipt.

use std::sync::Arc;

use super::{
    super::fitting::{FAILURES, Measured, SetAside, answer_job, fit_whole, media_in, next_job},
    Model, Receipt, SessionRequest,
    core::{Core, LastRequest, SentBody},
    receipt::owners_in,
    scale::counted_by,
    step::{BodyChange, RequestStep, Step, hash_of},
    summaries::{Kept, Remembered, Summaries},
};
use crate::{
    Error, ErrorKind, Result,
    compress::{CompressionJob, Engine, FailureLimit},
    export::{Breakpoints, Export, ExportOptions, PrefixRules},
    hud::{ProviderFraming, RenderRequest},
    id::Millis,
    json::Value,
    request::{Request, compare, form_of, tools_written},
    tokens::Slope,
    transcript::{Api, Exchange},
    veil::History,
    window::{ContextWindow, FittedContext},
};
#[cfg(feature = "rules")]
use crate::{
    bill::Prices,
    guard::{CacheForecast, CacheRules, Guard, NoForecast, SentRequest},
};

/// A context that fits a model, as it is sent.
struct Fitted {
    context: FittedContext,
    sent: Measured,
    /// The tokens of its texts and tools, as they are counted here.
    counted: u64,
    /// The tokens that are set aside for what a request has besides its texts.
    aside: u64,
}

impl Core {
    /// The next request to `model`, with its step; without one where it is the last request again, which
    /// waits for its answer.
    pub(super) fn request(
        &mut self,
        model: &Model,
        summaries: &dyn Summaries,
        now: Millis,
    ) -> Result<(SessionRequest, Option<Step>)> {
        if !self.waits_for_answer(model) {
            self.say_what_waited(now)?;
        }
        if !self.is_asked(model) {
            self.show_observations(now)?;
        }
        let tools = self.tools_for(model);
        let kept = Kept::new(summaries);
        let fitted = self.fit(model, &tools, &kept, now)?;
        let Some(exported) = fitted.sent.exported else {
            return Err(Error::new(ErrorKind::Other, "a context that was not exported"));
        };
        let conversation = exported.value();
        if model.is_empty(&conversation) {
            let message = "a request says something; `Session::user` does, or `Session::push`";
            return Err(Error::new(ErrorKind::Other, message));
        }
        let body = model.body(&tools, conversation);
        let is_again = self.is_asked(model);
        let is_again = is_again && self.last.as_ref().is_some_and(|last| *last.sent.body == *body);
        let before = match &self.last {
            Some(last) if is_again => last.before.clone(),
            last => last.as_ref().map(|last| last.sent.clone()),
        };
        let sent = SentBody { api: model.api, body: body.as_str().into(), at: now };
        let media = fitted.sent.media.tokens;
        let expected = counted_by(self.slope(model), fitted.counted).saturating_add(media);
        let request = sent.request();
        let counter = Arc::clone(self.hud.counter());
        let since = |before: &Request| compare(before, &request, &*counter, rules(model.api));
        #[cfg_attr(not(feature = "rules"), expect(unused_mut, reason = "rules say less"))]
        let (total, mut change) = match &before {
            Some(before) => {
                let change = since(&before.request())?;
                (change.prefix.tokens, Some(change))
            }
            None => (since(&request)?.prefix.tokens, None),
        };
        #[cfg(feature = "rules")]
        let cache = self.forecast(before.as_ref(), &request, now)?;
        #[cfg(feature = "rules")]
        if let (Some(change), Ok(forecast)) = (&mut change, &cache) {
            change.prefix.cached = change.prefix.cached.min(forecast.read);
        }
        let blocks = self.window.as_ref().map_or(0, |window| window.transform().blocks().count());
        let receipt = Receipt {
            turn: self.turns + u64::from(!is_again),
            hash: hash_of(&body),
            total: total.saturating_add(media),
            expected,
            media: fitted.sent.media,
            tokens: request.tokens(&*counter),
            owners: owners_in(&fitted.context.context),
            room: model.budget().room(),
            change,
            #[cfg(feature = "rules")]
            cache,
            epoch: fitted.context.epoch,
            blocks,
            dropped: fitted.context.dropped,
            shortened: fitted.context.shortened,
            repairs: exported.report().clone(),
            failures: fitted.context.failures,
        };
        if is_again {
            return Ok((SessionRequest { body, receipt }, None));
        }
        let request = RequestStep {
            model: model.clone(),
            hash: receipt.hash.clone(),
            body: BodyChange::between(before.as_ref().map_or("", |before| &before.body), &body),
            aside: fitted.aside,
            counted: fitted.counted,
            media,
            engine: kept.id().to_owned(),
            summaries: kept.into_answers(),
        };
        let step = Step { request: Some(request), ..self.said(now) };
        let Fitted { aside, counted, .. } = fitted;
        self.asks(LastRequest { model: model.clone(), aside, counted, media, sent, before });
        Ok((SessionRequest { body, receipt }, Some(step)))
    }

    /// What a cache will make of a request after the one before it.
    #[cfg(feature = "rules")]
    fn forecast(
        &mut self,
        before: Option<&SentBody>,
        request: &Request,
        now: Millis,
    ) -> Result<Result<CacheForecast, NoForecast>> {
        let guard = match self.guard.take() {
            Some(guard) => guard,
            None => Guard::new(CacheRules::embedded()?, Arc::clone(self.hud.counter()))
                .with_prices(Prices::embedded()?),
        };
        let was = before.map(|before| (before.request(), before.at));
        let before = was.as_ref().map(|(request, at)| {
            let before = SentRequest::new(request).at(*at);
            self.reported.as_ref().map_or(before, |usage| before.reported(usage))
        });
        let prediction = guard.predict(before.as_ref(), &SentRequest::new(request).at(now));
        self.guard = Some(guard);
        Ok(prediction?.cache)
    }

    /// Makes a request again for the window after it, with what an engine answered then.
    pub(super) fn ask_again(
        &mut self,
        model: &Model,
        summaries: &Remembered,
        now: Millis,
    ) -> Result<()> {
        let tools = self.tools_for(model);
        self.fit(model, &tools, summaries, now).map(drop)
    }

    fn slope(&self, model: &Model) -> Slope {
        self.scales.of(model, &**self.hud.counter())
    }

    fn tools_for(&self, model: &Model) -> Vec<Value> {
        self.tools.iter().map(|tool| tools_written(tool, model.api)).collect()
    }

    /// The context that fits `model` beside these tools.
    fn fit(
        &mut self,
        model: &Model,
        tools: &[Value],
        summaries: &dyn Summaries,
        now: Millis,
    ) -> Result<Fitted> {
        let counter = Arc::clone(self.hud.counter());
        let budget = model.budget_beside(tools, &*counter, self.slope(model));
        let mut window = match (self.window.take(), self.saved_window.take()) {
            (Some(window), _) => window,
            (None, Some(saved)) => {
                ContextWindow::from_json(saved, self.hud.clone(), &mut self.history, now)?
            }
            (None, None) => ContextWindow::new(self.hud.clone(), budget, budget.compression()),
        };
        if *window.budget() != budget {
            window.set_budget(budget, budget.compression());
        }
        let framing = ProviderFraming::default();
        let mut aside = SetAside::new(framing, self.last.as_ref().map_or(0, |last| last.aside));
        let is_again = self.is_asked(model);
        let last_end = self.last_end();
        let Self { history, media, waiting, .. } = self;
        let measure = |history: &_, fitted: &FittedContext| {
            let export = Export::of(history, &fitted.context)?;
            let blocks = fitted.context.messages().iter().filter(|message| message.is_block());
            let blocks = blocks.filter_map(|message| Some(message.frames()?.1));
            let breakpoints = Breakpoints::Stable(blocks.chain(last_end).collect());
            let options = ExportOptions { breakpoints, ..ExportOptions::default() };
            let exported = export.in_form(form_of(model.api), &options);
            let tokens = exported.as_ref().map_or(0, |of| of.tokens(&*counter, framing));
            let media = media_in(media, &fitted.context, Some(&model.name));
            Ok(Measured { exported, tokens, media })
        };
        let engine = FailureLimit::new(summaries, FAILURES);
        let mut summarise =
            |window: &mut ContextWindow, history: &mut _, request: &RenderRequest| {
                // The same request again stays as it was, whatever has come meanwhile.
                if is_again && !waiting.is_empty() {
                    return Ok(Vec::new());
                }
                summarise(window, history, request, waiting, (summaries, &engine), now)
            };
        let fitted = fit_whole(&mut window, history, &mut aside, now, &mut summarise, measure);
        let (context, sent) = fitted?;
        self.window = Some(window);
        let counted = sent.tokens.saturating_add(budget.tools);
        Ok(Fitted { context, sent, counted, aside: aside.tokens() })
    }
}

/// Has the summaries written that are due. One that comes later is waited for where the context does
/// not fit without it.
fn summarise(
    window: &mut ContextWindow,
    history: &mut History,
    request: &RenderRequest,
    waiting: &mut Vec<CompressionJob>,
    (summaries, engine): (&dyn Summaries, &dyn Engine),
    now: Millis,
) -> Result<Vec<Error>> {
    let mut failures = Vec::new();
    let mut asked = std::mem::take(waiting).into_iter();
    loop {
        while let Some(job) = match asked.next() {
            Some(job) => Some(job),
            None => next_job(window, history, request, now)?,
        } {
            if summaries.is_later(&job) {
                waiting.push(job);
            } else {
                failures.extend(answer_job(window, history, &job, engine, now)?);
            }
        }
        if waiting.is_empty() || window.fits(history, request, now)? {
            return Ok(failures);
        }
        for job in std::mem::take(waiting) {
            failures.extend(answer_job(window, history, &job, engine, now)?);
        }
    }
}

/// What the caches of providers serve.
fn rules(api: Api) -> PrefixRules {
    match api {
        Api::Messages => PrefixRules::ANTHROPIC,
        _ => PrefixRules::OPENAI,
    }
}

impl SentBody {
    /// As a request that was sent.
    fn request(&self) -> Request {
        let (api, request) = (self.api, Arc::clone(&self.body).into());
        Request::recorded(&Exchange { api, request, ..Exchange::default() })
    }
}
