use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{
    CompressionJob, ContinuedRequest, Engine,
    checked::checked,
    engine::{SummaryRequest, bounded},
};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// An engine of a closure: whatever calls a model in your program.
///
/// The closure's errors become errors of kind [`ErrorKind::Engine`], and so does a panic in it: it
/// ends this answer and not the program (unless that is built to abort). What the closure was
/// changing when it panicked is as the panic left it. An answer that is blank or longer than the
/// job's limit is an error too.
///
/// Answers are checked: the closure is asked once more where an answer lost rules, paths, numbers or
/// names that stand nowhere else. That job has a [`CompressionJob::revision`], and
/// [`prompt`](super::prompt) writes its text. What is still missing is appended. See
/// [`AnswerCheck`](super::AnswerCheck); [`FnEngine::unchecked`] takes answers as they are.
///
/// ```
/// use afterimage::{
///     compress::{CompressionJob, Engine, FnEngine},
///     tokens::{Chars4, TokenCounter},
/// };
///
/// let engine = FnEngine::new("first-words", |job: &CompressionJob, _: &dyn TokenCounter| {
///     Ok::<_, std::io::Error>(job.text().chars().take(20).collect())
/// });
/// assert_eq!(engine.id(), "first-words");
/// let job = CompressionJob::new(Vec::new(), 5);
/// assert!(engine.summarize(&job, &Chars4).is_err(), "nothing was said");
/// ```
pub struct FnEngine<F> {
    id: Box<str>,
    function: F,
    is_checked: bool,
}

impl<F> FnEngine<F> {
    /// An engine with this id that asks `function`.
    pub fn new<E>(id: &str, function: F) -> Self
    where
        F: Fn(&CompressionJob, &dyn TokenCounter) -> Result<String, E> + Send + Sync,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self { id: id.into(), function, is_checked: true }
    }

    /// The same engine, whose answers stand as they are.
    #[must_use]
    pub fn unchecked(self) -> Self {
        Self { is_checked: false, ..self }
    }
}

impl FnEngine<()> {
    /// An engine with this id that asks `function` with the session's own messages and an instruction
    /// behind them, so that the provider reads the messages from its cache.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use afterimage::{
    ///     compress::{ContinuedRequest, FnEngine}, hud::{Hud, RenderRequest},
    ///     id::{FacetType, Millis}, tokens::Chars4,
    ///     veil::{Facet, FacetOp, Frame, History, Source}, window::{Budget, ContextWindow},
    /// };
    ///
    /// let engine = FnEngine::continued("my-model", |request: &ContinuedRequest| {
    ///     // Send `request.messages()` as they were sent before, with the same model and tools, and
    ///     // `request.instruction()` behind them as a message of the user.
    ///     Ok::<_, std::io::Error>(format!("All calm in {} messages.", request.messages().len()))
    /// });
    /// let (hud, now, mut history) = (Hud::new(Arc::new(Chars4)), Millis::new(0), History::new());
    /// let budget = Budget::new(600);
    /// let mut window = ContextWindow::new(hud.clone(), budget, budget.compression());
    /// for n in 0..40_u64 {
    ///     let said = Facet::new(format!("r-{n}"), FacetType::EVENT, "calm ".repeat(25));
    ///     let frame = Frame::new(n, Source::Environment).with(FacetOp::add(said));
    ///     hud.capture(&mut history, frame, now)?;
    ///     window.render(&mut history, &RenderRequest::default(), &engine, now)?;
    /// }
    /// let block = window.transform().blocks().next().unwrap();
    /// assert!(block.snapshot.text().contains("All calm in"));
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn continued<G, E>(
        id: &str,
        function: G,
    ) -> FnEngine<impl Fn(&CompressionJob, &dyn TokenCounter) -> Result<String, E> + Send + Sync>
    where
        G: Fn(&ContinuedRequest) -> Result<String, E> + Send + Sync,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        FnEngine::new(id, move |job: &CompressionJob, counter: &dyn TokenCounter| {
            function(&ContinuedRequest::of(job, counter))
        })
    }
}

impl<F, E> Engine for FnEngine<F>
where
    F: Fn(&CompressionJob, &dyn TokenCounter) -> Result<String, E> + Send + Sync,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn id(&self) -> &str {
        &self.id
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
        let mut ask = |job: &CompressionJob| {
            let answer = self.ask(job, counter);
            note(SummaryRequest { job, answer: answer.as_deref().unwrap_or_default() });
            bounded(&self.id, answer?, job, counter)
        };
        if self.is_checked { checked(job, counter, &mut ask) } else { ask(job) }
    }
}

impl<F> FnEngine<F> {
    fn ask<E>(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String>
    where
        F: Fn(&CompressionJob, &dyn TokenCounter) -> Result<String, E>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match catch_unwind(AssertUnwindSafe(|| (self.function)(job, counter))) {
            Ok(answer) => answer.map_err(|error| failed(&self.id, error.into())),
            Err(panic) => {
                let message = format!("{}: panicked: {}", self.id, said(&*panic));
                Err(Error::new(ErrorKind::Engine, message))
            }
        }
    }
}

/// The error of an engine that failed.
pub(super) fn failed(id: &str, cause: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::new(ErrorKind::Engine, format!("{id}: {cause}")).with_source(cause)
}

/// What a panic says, where it says something.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

impl<F> fmt::Debug for FnEngine<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnEngine").field("id", &self.id).finish_non_exhaustive()
    }
}
