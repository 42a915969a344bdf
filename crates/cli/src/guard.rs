//! `afterimage guard`: what the provider's cache would serve of each request.

mod alike;
pub(crate) mod args;
mod page;

use std::{
    cell::Cell,
    collections::{HashMap, VecDeque},
    io::Write,
    rc::Rc,
};

use afterimage::{
    bill::{Prices, lost_tokens},
    guard::{CacheForecast, CacheRules, Guard, Prediction, ProviderDiagnostics, SentRequest},
    id::Millis,
    json::Object,
    request::{Exchange, Recording, Request},
    transcript::Money,
};

use crate::{
    answer::answer,
    args::{Input, Rendering},
    failure::{Failure, Outcome, Stop},
    input::{self, InputRefusal, Source},
    lens::{Counting, Lens},
    output::{self, Output},
    recorded,
    requests::causes::{BrokenCaches, price_lost},
    usage,
    watch::{Printed, Reading, held, watch},
    when,
};

pub(crate) fn run(args: &args::Guard) -> Outcome {
    let rendering = Rendering { format: None, tokenizer: args.tokenizer.clone() };
    let lens = Lens::new(&rendering, Counting::OnDemand)?;
    let prices = usage::prices(&args.pricing)?;
    let rules = match args.rules.as_deref() {
        Some(path) => {
            let text = usage::text_of_table(path, "rules")?;
            CacheRules::from_toml(&text).map_err(|error| error.in_file(path))?
        }
        None => CacheRules::embedded()?,
    };
    let guard = Guard::new(rules, lens.counter.clone()).with_prices(prices.clone());
    let watching = Watching {
        args,
        guard,
        most: most(args, &prices)?,
        prices,
        lens: &lens,
        has_excess: Cell::new(false),
    };
    let mut out = Output::new(args.coloring.color);
    if args.follow {
        let mut printed = Printed::default();
        watch(&args.input, |input, is_quiet| {
            watching.refresh(input, is_quiet, &mut printed, &mut out)
        })?;
        return watching.verdict();
    }
    input::each(&args.input.of_all_sessions(), true, |source| {
        let recording = recorded::read(source, &lens.counter)?;
        let watched = watching.of(source, &recording, |_| true)?;
        watching.print(source, &watched, true, &mut out)
    })?;
    watching.verdict()
}

/// The most that a request may lose.
fn most(args: &args::Guard, prices: &Prices) -> Outcome<Option<Money>> {
    let Some(text) = args.max_loss.as_deref() else { return Ok(None) };
    let amount = Money::from_decimal(text, prices.currency()).filter(|_| !text.starts_with('-'));
    if let Some(amount) = amount {
        return Ok(Some(amount));
    }
    let failure = format!("expected an amount of money for `--max-loss`, found {text:?}");
    Err(Failure::new(failure).hint("`--max-loss 2.00` is two dollars").into())
}

/// What is watched, and how.
struct Watching<'w> {
    args: &'w args::Guard,
    guard: Guard,
    prices: Prices,
    most: Option<Money>,
    lens: &'w Lens,
    /// Whether a request lost more than it may.
    has_excess: Cell<bool>,
}

/// A request with what was said of it, and what was reported.
struct Watched<'r> {
    exchange: &'r Exchange,
    previous: Option<usize>,
    prediction: Prediction,
    diagnostics: Option<ProviderDiagnostics>,
    /// Whether it failed, and reported no usage.
    is_unpaid: bool,
    is_excess: bool,
    verdict: Option<Verdict>,
}

/// What the report of a request decides, whatever was forecast.
struct Verdict {
    /// The tokens that it paid again.
    lost: u64,
    loss: Option<Money>,
    /// Why.
    cause: Option<String>,
    /// Whether the forecast said the opposite.
    is_contradiction: bool,
}

impl Watched<'_> {
    fn forecast(&self) -> Option<&CacheForecast> {
        self.prediction.cache.as_ref().ok()
    }

    /// The tokens that were paid again, and what they cost: by the report, else by the forecast.
    fn lost(&self) -> (Option<u64>, Option<Money>) {
        match (&self.verdict, self.forecast()) {
            (Some(verdict), _) => (Some(verdict.lost), verdict.loss),
            (None, forecast) => (forecast.map(|of| of.lost), forecast.and_then(|of| of.loss)),
        }
    }

    /// Why the cache served less than it could: by the report where it says so, else by the forecast.
    fn cause(&self) -> Option<String> {
        let of_report = self.verdict.as_ref().and_then(|verdict| verdict.cause.clone());
        of_report.or_else(|| self.prediction.cause())
    }

    /// What was reported: read, and written.
    fn reported(&self) -> (Option<u64>, Option<u64>) {
        let usage = self.exchange.usage.as_ref();
        let figures = usage.map(|usage| (usage.cache_read, usage.cache_write));
        figures.unwrap_or_default()
    }
}

impl Watching<'_> {
    /// A failure where a request lost more than it may.
    fn verdict(&self) -> Outcome {
        if self.has_excess.get() { Err(Stop::Negative) } else { Ok(()) }
    }

    /// Prints what is new in a file that is followed.
    fn refresh(
        &self,
        input: &Input,
        is_quiet: bool,
        printed: &mut Printed<()>,
        out: &mut Output,
    ) -> Outcome<Reading> {
        let mut is_held = false;
        input::read(input, false, InputRefusal::Ends, |source| {
            let recording = recorded::read(source, &self.lens.counter)?;
            if !printed.are_in(recording.exchanges()) {
                source.note("the file was replaced or cut: it is followed from its beginning");
                *printed = Printed::default();
            }
            let held = held(source, &recording, is_quiet);
            is_held = !held.is_empty();
            let mut seen = HashMap::new();
            let wanted = |of: &Exchange| !held.contains(&of.number) && !printed.has(of, &mut seen);
            let watched = self.of(source, &recording, wanted)?;
            let is_first = printed.is_none();
            let exchanges = recording.exchanges().iter();
            let ready: Vec<&Exchange> = exchanges.filter(|of| !held.contains(&of.number)).collect();
            if !watched.is_empty() {
                self.print(source, &watched, is_first, out)?;
            }
            printed.take(&ready, None);
            Ok(())
        })?;
        Ok(Reading { is_held, is_none: printed.is_none() })
    }

    /// What is said of the requests of a recording that are wanted.
    fn of<'r>(
        &self,
        source: &Source,
        recording: &'r Recording,
        mut wanted: impl FnMut(&Exchange) -> bool,
    ) -> Outcome<Vec<Watched<'r>>> {
        let session = self.args.input.session.as_deref();
        let (mut watched, mut recent) = (Vec::new(), RecentRequests::default());
        let broken = BrokenCaches::of(recording).map_err(|error| source.refuse(error))?;
        let (mut worked_out, mut unread) = (0_u64, 0_u64);
        let mut advice = None;
        for exchange in recording.exchanges() {
            if !wanted(exchange) || session.is_some_and(|session| session != &*exchange.session) {
                continue;
            }
            if exchange.unread.is_some() {
                unread += 1;
            } else if exchange.provenance.lacks().is_empty() {
                let of = self
                    .one((recording, &broken), exchange, &mut recent)
                    .map_err(|error| source.refuse(error))?;
                watched.push(of);
            } else {
                worked_out += 1;
                let lacks = exchange.provenance.lacks();
                advice = advice.or_else(|| recorded::advice(source.format(), lacks));
            }
        }
        if let (Some(session), false) = (session, self.args.follow) {
            recorded::expect_session(source, recording, session)?;
        }
        if unread > 0 {
            let requests = crate::text::counted(unread, "request");
            source.note(&format!(
                "no forecast of {requests} whose bodies are not known: `afterimage requests` says why"
            ));
        }
        if worked_out > 0 {
            let requests = crate::text::counted(worked_out, "request");
            let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
            source.note(&format!(
                "no forecast of {requests} that were worked out from a transcript: `afterimage \
                 requests --broken` says what these lost{advice}"
            ));
        }
        Ok(watched)
    }

    fn one<'r>(
        &self,
        (recording, broken): (&'r Recording, &BrokenCaches),
        exchange: &'r Exchange,
        recent: &mut RecentRequests,
    ) -> afterimage::Result<Watched<'r>> {
        let mut previous = answered_before(recording, exchange.number);
        if previous.is_none() {
            let request = recent.of(recording, exchange.number)?;
            let earlier = answered_last(recording, exchange.number);
            let earlier = earlier.map(|of| Ok((of, recent.of(recording, of.number)?)));
            let earlier: Vec<_> = earlier.collect::<afterimage::Result<_>>()?;
            previous = alike::find_continued(recording, &earlier, &request);
        }
        let before = match previous {
            Some(of) => Some((of, recent.of(recording, of.number)?)),
            None => None,
        };
        let request = recent.of(recording, exchange.number)?;
        let next = sent(&request, exchange);
        let before = before.as_ref().map(|(of, request)| {
            let sent = sent(request, of);
            match &of.usage {
                Some(usage) => sent.reported(usage),
                None => sent,
            }
        });
        let prediction = self.guard.predict(before.as_ref(), &next)?;
        let verdict = self.judge((recording, broken), exchange, previous, &prediction)?;
        let forecast = prediction.cache.as_ref().ok().and_then(|of| of.loss);
        let loss = verdict.as_ref().map_or(forecast, |verdict| verdict.loss);
        // A call that failed without usage was paid by nobody.
        let is_failed = exchange.failure.is_some();
        let is_unpaid = is_failed && exchange.usage.is_none();
        let is_more = |(most, loss): (Money, Money)| loss.pico() > most.pico();
        let is_excess = !is_unpaid && self.most.zip(loss).is_some_and(is_more);
        let response = exchange.response.as_deref();
        Ok(Watched {
            exchange,
            previous: previous.map(|of| of.number),
            prediction,
            diagnostics: response.and_then(ProviderDiagnostics::of),
            is_unpaid,
            is_excess,
            verdict,
        })
    }

    /// What the report of a request decides; `None` where it has none that tells.
    fn judge(
        &self,
        (recording, broken): (&Recording, &BrokenCaches),
        exchange: &Exchange,
        previous: Option<&Exchange>,
        prediction: &Prediction,
    ) -> afterimage::Result<Option<Verdict>> {
        let cause = broken.cause(&self.guard, recording, exchange.number)?;
        let in_session = broken.lost(exchange);
        // What a request goes on from may be in another session.
        let is_other = |of: &&Exchange| of.session != exchange.session;
        let beside = previous.filter(is_other).zip(exchange.usage.as_ref());
        let beside = beside.and_then(|(previous, usage)| {
            lost_tokens((previous.usage.as_ref()?, previous.model.as_deref()), usage)
        });
        let lost = beside.filter(|lost| *lost > 0).or(in_session);
        let of = |lost: u64| Verdict {
            lost,
            loss: price_lost(&self.prices, lost, exchange),
            cause,
            is_contradiction: prediction
                .cache
                .as_ref()
                .is_ok_and(|forecast| (forecast.lost > 0) != (lost > 0)),
        };
        Ok(lost.map(of))
    }

    fn print(
        &self,
        source: &Source,
        watched: &[Watched<'_>],
        is_first: bool,
        out: &mut Output,
    ) -> Outcome {
        if self.args.json {
            watched.iter().try_for_each(|of| out.answer(&answer(source, of)))?;
        } else {
            page::print(self, source, watched, is_first, out)?;
        }
        out.flush()?;
        self.has_excess.set(self.has_excess.get() || watched.iter().any(|of| of.is_excess));
        for of in watched.iter().filter(|of| of.is_excess) {
            let loss = of.lost().1.map(usage::money);
            let cause = of.cause().map(|cause| format!(": {cause}"));
            output::note(&format!(
                "request {} of {} pays {} again for what was cached{}",
                of.exchange.number,
                source.name(),
                loss.unwrap_or_default(),
                cause.unwrap_or_default(),
            ));
        }
        Ok(())
    }
}

/// The requests that were looked at last, with what they were parsed to: the next one is compared
/// with one of them, and sessions may take turns.
#[derive(Default)]
struct RecentRequests(VecDeque<(usize, Rc<Request>)>);

impl RecentRequests {
    const KEPT: usize = 8;

    fn of(&mut self, recording: &Recording, number: usize) -> afterimage::Result<Rc<Request>> {
        let known = self.0.iter().position(|(of, _)| *of == number);
        let request = match known.and_then(|at| self.0.remove(at)) {
            Some((_, request)) => request,
            None => Rc::new(recording.request(number)?),
        };
        self.0.truncate(Self::KEPT - 1);
        self.0.push_front((number, Rc::clone(&request)));
        Ok(request)
    }
}

/// The last requests before one that were answered, whatever their session, the latest first.
fn answered_last(recording: &Recording, number: usize) -> impl Iterator<Item = &Exchange> {
    let earlier = recording.exchanges().get(..number.saturating_sub(1)).unwrap_or_default();
    let is_known = |of: &&Exchange| of.has_whole_request() && of.failure.is_none();
    earlier.iter().rev().filter(is_known).take(RecentRequests::KEPT / 2)
}

/// The request before one in its session that was answered: one that failed leaves nothing in a cache.
fn answered_before(recording: &Recording, number: usize) -> Option<&Exchange> {
    let mut before = recording.previous(number);
    while let Some(number) = before {
        let exchange = recording.exchange(number)?;
        if exchange.failure.is_none() {
            return Some(exchange);
        }
        before = recording.previous(number);
    }
    None
}

fn sent<'r>(request: &'r Request, exchange: &Exchange) -> SentRequest<'r> {
    let sent = SentRequest::new(request);
    match exchange.time.as_deref().and_then(when::written) {
        Some(time) => sent.at(Millis::new(time)),
        None => sent,
    }
}

fn answer<'w>(source: &Source, of: &'w Watched<'_>) -> GuardRow<'w> {
    let (read, write) = of.reported();
    let verdict = of.verdict.as_ref();
    GuardRow {
        file: source.name(),
        request: of.exchange.number,
        previous: of.previous,
        session: &of.exchange.session,
        time: of.exchange.time.as_deref(),
        model: of.exchange.model.as_deref(),
        prediction: of.prediction.to_json(),
        cause: of.cause(),
        contradicted: verdict.map(|verdict| verdict.is_contradiction),
        reported: GuardReport {
            input: of.exchange.usage.as_ref().and_then(|usage| usage.input),
            read,
            write,
            lost: verdict.map(|verdict| verdict.lost),
            loss: verdict.and_then(|verdict| verdict.loss),
        },
        diagnostics: of.diagnostics.as_ref(),
        exceeds: of.is_excess,
        unpaid: of.is_unpaid.then_some(true),
    }
}

answer! {
    /// What a request was expected to take from the cache, and what was reported.
    pub(crate) struct GuardRow<'w> {
        /// the file
        file: String,
        /// the number of the request
        request: usize,
        /// the number of the request that it is compared with; null where there is none
        previous: Option<usize>,
        /// the session of the request
        session: &'w str,
        /// when it went out; of a transcript, when the answer came
        time: Option<&'w str>,
        /// its model
        model: Option<&'w str>,
        /// what is expected
        ..prediction: Object,
        /// why the cache serves less than it could, in a sentence: by the report where it says so,
        /// else by the forecast
        cause?: String,
        /// whether the report says the contrary of the forecast; absent where it does not tell
        contradicted?: bool,
        /// what its provider reported
        reported: GuardReport,
        /// what the provider itself says of why its cache served less: `reason` and `missed` (tokens)
        diagnostics?: &'w ProviderDiagnostics,
        /// whether it loses more than `--max-loss` allows
        exceeds: bool,
        /// true where it failed and reported no usage: nobody pays for it, and no total has it
        unpaid?: bool,
    }

    /// What a provider reported of a request.
    pub(crate) struct GuardReport {
        /// the tokens of its input
        input?: u64,
        /// those of them that the cache served
        read?: u64,
        /// the tokens that were written to the cache
        write?: u64,
        /// the tokens that the request before had left there and that were not served
        lost?: u64,
        /// what these cost
        loss?: Money,
    }
}
