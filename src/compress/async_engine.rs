use std::fmt;

use super::{AnswerCheck, CompressionJob, ContinuedRequest, engine::bounded, function::failed};
use crate::{Result, tokens::TokenCounter};

/// As [`FnEngine::continued`](super::FnEngine::continued), but of futures: for programs that await
/// their model. It needs no runtime.
///
/// Ask [`ContextWindow::next_job`](crate::window::ContextWindow::next_job) for jobs, await
/// [`summarize`](Self::summarize) for each, and tell
/// [`complete`](crate::window::ContextWindow::complete) or
/// [`fail`](crate::window::ContextWindow::fail). A future that is dropped gives the range back with
/// its job.
///
/// Answers are checked as those of [`FnEngine`](super::FnEngine) are.
///
/// ```
/// use std::{future::Future, pin::pin, sync::Arc, task::{Context, Poll, Waker}};
/// use afterimage::{
///     compress::{AsyncEngine, ContinuedRequest, Summary}, hud::{Hud, RenderRequest},
///     id::{FacetType, Millis}, tokens::Chars4, veil::{Facet, FacetOp, Frame, History, Source},
///     window::{Budget, ContextWindow},
/// };
///
/// let engine = AsyncEngine::new("my-model", |request: ContinuedRequest| async move {
///     // Send `request.messages()` as they were sent before, and `request.instruction()` behind
///     // them as a message of the user. `request.to_json()` is both in one.
///     Ok::<_, std::io::Error>(format!("All calm in {} messages.", request.messages().len()))
/// });
/// let compress = async {
///     let hud = Hud::new(Arc::new(Chars4));
///     let (now, request, mut history) = (Millis::new(0), RenderRequest::default(), History::new());
///     let budget = Budget::new(600);
///     let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
///     for n in 0..40_u64 {
///         let said = Facet::new(format!("r-{n}"), FacetType::EVENT, "calm ".repeat(25));
///         let frame = Frame::new(n, Source::Environment).with(FacetOp::add(said));
///         hud.capture(&mut history, frame, now)?;
///         while let Some(job) = window.next_job(&mut history, &request, now)? {
///             match engine.summarize(&job, &Chars4).await {
///                 Ok(text) => {
///                     let summary = Summary { text: &text, engine: engine.id() };
///                     window.complete(&job, summary, &history, now)?;
///                 }
///                 Err(error) => window.fail(&job, error.to_string(), now)?,
///             }
///         }
///         assert!(window.finish(&mut history, &request, now)?.context.tokens().total <= 600);
///     }
///     Ok::<usize, afterimage::Error>(window.transform().blocks().count())
/// };
/// let Poll::Ready(blocks) = pin!(compress).poll(&mut Context::from_waker(Waker::noop())) else {
///     panic!("nothing is waited for here");
/// };
/// assert!(blocks? > 0);
/// # Ok::<(), afterimage::Error>(())
/// ```
pub struct AsyncEngine<F> {
    id: Box<str>,
    function: F,
    is_checked: bool,
}

impl<F> AsyncEngine<F> {
    /// An engine with this id that awaits what `function` makes of a request.
    pub fn new<Fut, E>(id: &str, function: F) -> Self
    where
        F: Fn(ContinuedRequest) -> Fut,
        Fut: Future<Output = Result<String, E>>,
    {
        Self { id: id.into(), function, is_checked: true }
    }

    /// The same engine, whose answers stand as they are.
    #[must_use]
    pub fn unchecked(self) -> Self {
        Self { is_checked: false, ..self }
    }

    /// Names the engine in the block.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A summary of the job in at most `job.token_limit` tokens by `counter`. Where the answer lost
    /// something it is asked for once more. Costs one or two answers of the future, and reads the
    /// passages for what these lost.
    ///
    /// # Errors
    /// [`ErrorKind::Engine`](crate::ErrorKind::Engine) where the future fails or the answer is blank,
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where it is longer than the limit; each with the
    /// first frame of the job.
    pub async fn summarize<Fut, E>(
        &self,
        job: &CompressionJob,
        counter: &dyn TokenCounter,
    ) -> Result<String>
    where
        F: Fn(ContinuedRequest) -> Fut,
        Fut: Future<Output = Result<String, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let first = self.ask(job, counter).await;
        let first = first.map_err(|error| error.at_frame(job.from.get()))?;
        if !self.is_checked {
            return Ok(first);
        }
        let check = AnswerCheck::of(job, counter);
        let best = match check.revise(job, &first, counter) {
            Some(again) => match self.ask(&again, counter).await {
                Ok(second) => check.better(job, first, second, counter),
                Err(_) => first,
            },
            None => first,
        };
        Ok(check.complete(job, best, counter))
    }

    async fn ask<Fut, E>(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String>
    where
        F: Fn(ContinuedRequest) -> Fut,
        Fut: Future<Output = Result<String, E>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let answer = (self.function)(ContinuedRequest::of(job, counter)).await;
        let answer = answer.map_err(|error| failed(&self.id, error.into()))?;
        bounded(&self.id, answer, job, counter)
    }
}

impl<F> fmt::Debug for AsyncEngine<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncEngine").field("id", &self.id).finish_non_exhaustive()
    }
}
