//! What the summaries themselves cost.

use std::sync::{Mutex, PoisonError};

use crate::{
    Result,
    compress::{Asked, CompressionJob, Engine, prompt},
    hud::RenderedContext,
    tokens::TokenCounter,
    window::ContinuedPrompt,
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
    /// With the instructions after the last request, which the cache holds: a
    /// [`ContinuedPrompt`].
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

/// An engine that notes what asking it costs.
#[derive(Debug)]
pub(super) struct NotingEngine<'e> {
    engine: &'e dyn Engine,
    calls: SummaryCalls,
    /// The last request.
    last: Option<&'e RenderedContext>,
    spent: Mutex<Spent>,
}

impl<'e> NotingEngine<'e> {
    pub(super) fn new(
        engine: &'e dyn Engine,
        calls: SummaryCalls,
        last: Option<&'e RenderedContext>,
    ) -> Self {
        Self { engine, calls, last, spent: Mutex::default() }
    }

    pub(super) fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a job costs to ask for: the tokens of the input, and those of them that the cache has.
    fn input(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> (u64, u64) {
        let count = |text: &str| counter.count(text) as u64;
        let last = self.last.filter(|_| self.calls == SummaryCalls::Continued);
        let Some(last) = last else { return (count(&prompt(job, counter)), 0) };
        let cached = last.tokens().total;
        // What came since the last request stands in the instruction, and is read for the first time.
        (cached + count(&ContinuedPrompt::of(job, last, counter).instruction), cached)
    }

    /// Adds a request to what was spent.
    fn add(&self, asked: Asked<'_>, counter: &dyn TokenCounter) {
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
        note: &mut dyn FnMut(Asked<'_>),
    ) -> Result<String> {
        self.engine.summarize_noting(job, counter, &mut |asked| {
            if self.calls != SummaryCalls::Free {
                self.add(asked, counter);
            }
            note(asked);
        })
    }
}
