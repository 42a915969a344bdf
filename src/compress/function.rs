use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{
    CompressionJob, Engine,
    checked::checked,
    engine::{Asked, bounded},
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
/// names that stand nowhere else, by a job with a [`CompressionJob::revision`], of which
/// [`prompt`](super::prompt) writes the text. What is still missing is appended. See
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
        note: &mut dyn FnMut(Asked<'_>),
    ) -> Result<String> {
        let mut ask = |job: &CompressionJob| {
            let answer = self.ask(job, counter);
            note(Asked { job, answer: answer.as_deref().unwrap_or_default() });
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
        let failed =
            |why: &dyn fmt::Display| Error::new(ErrorKind::Engine, format!("{}: {why}", self.id));
        match catch_unwind(AssertUnwindSafe(|| (self.function)(job, counter))) {
            Ok(answer) => answer.map_err(|error| {
                let error = error.into();
                failed(&error).with_source(error)
            }),
            Err(panic) => Err(failed(&format_args!("panicked: {}", said(&*panic)))),
        }
    }
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
