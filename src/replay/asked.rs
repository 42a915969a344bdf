//! What the summaries themselves cost.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{
    Result,
    compress::{CompressionJob, ContinuedRequest, Engine, SentRequest, SummaryRequest},
    hud::RenderedContext,
    json::Value,
    tokens::TokenCounter,
};

/// How a model is asked for summaries, and so what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryCalls {
    /// No model is asked: summaries cost nothing.
    #[default]
    Free,
    /// With a prompt of its own that holds what is to be summarised, as
    /// [`prompt`](crate::compress::prompt) writes it: nothing of it is in the cache.
    Fresh,
    /// With the instructions after the last request, which the cache holds: a [`ContinuedRequest`].
    /// The engine gets that request with its jobs ([`CompressionJob::sent`]), in the form of a provider
    /// where the replay has one.
    Continued,
}

/// The tokens that summaries took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) calls: u64,
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) output: u64,
}

/// The request that was sent last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastRequest<'e> {
    pub(super) context: Option<&'e RenderedContext>,
    /// The same in the form of a provider, where that is what was sent.
    pub(super) body: Option<&'e Value>,
}

/// An engine that is asked as the replay says, and notes what that costs.
#[derive(Debug)]
pub(super) struct NotingEngine<'e> {
    engine: &'e dyn Engine,
    calls: SummaryCalls,
    last: LastRequest<'e>,
    sent: OnceLock<Arc<SentRequest>>,
    spent: Mutex<Spent>,
}

impl<'e> NotingEngine<'e> {
    pub(super) fn new(engine: &'e dyn Engine, calls: SummaryCalls, last: LastRequest<'e>) -> Self {
        Self { engine, calls, last, sent: OnceLock::new(), spent: Mutex::default() }
    }

    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job with the request that was sent last, where it goes on from there.
    fn going_on(&self, job: &CompressionJob) -> CompressionJob {
        let mut job = job.clone();
        let context = self.last.context.filter(|_| self.calls == SummaryCalls::Continued);
        job.sent = context.map(|context| {
            let sent = || SentRequest { body: self.last.body.cloned(), ..context.into() };
            Arc::clone(self.sent.get_or_init(|| Arc::new(sent())))
        });
        job
    }

    /// What a job costs to ask for: the tokens of the input, and those of them that the cache has.
    fn input(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> (u64, u64) {
        let cached = match (&job.sent, self.last.context) {
            (Some(_), Some(context)) => context.tokens().total,
            _ => 0,
        };
        // What came since the last request stands in the instruction, and is read for the first time.
        let request = ContinuedRequest::of(job, counter);
        (cached + counter.count(request.instruction()) as u64, cached)
    }

    /// Adds a request to what was spent.
    fn add(&self, asked: SummaryRequest<'_>, counter: &dyn TokenCounter) {
        let (input, cached) = self.input(asked.job, counter);
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.calls += 1;
        spent.input += input;
        spent.cached += cached;
        spent.output += counter.count(asked.answer) as u64;
    }
}

impl Engine for NotingEngine<'_> {
    fn id(&self) -> &str {
        self.engine.id()
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        self.summarize_noting(job, counter, &mut |_| {})
    }

    fn summarize_noting(
        &self,
        job: &CompressionJob,
        counter: &dyn TokenCounter,
        note: &mut dyn FnMut(SummaryRequest<'_>),
    ) -> Result<String> {
        self.engine.summarize_noting(&self.going_on(job), counter, &mut |asked| {
            if self.calls != SummaryCalls::Free {
                self.add(asked, counter);
            }
            note(asked);
        })
    }
}
