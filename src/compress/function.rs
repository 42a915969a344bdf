use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{CompressionJob, Engine, engine::bounded};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// An engine of a closure: whatever calls a model in your program.
///
/// The closure's errors become errors of kind [`ErrorKind::Engine`], and so does a panic in it: it
/// ends this answer and not the program (unless that is built to abort). What the closure was
/// changing when it panicked is as the panic left it. An answer that is blank or longer than the
/// job's limit is an error too.
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
}

impl<F> FnEngine<F> {
    /// An engine with this id that asks `function`.
    pub fn new<E>(id: &str, function: F) -> Self
    where
        F: Fn(&CompressionJob, &dyn TokenCounter) -> Result<String, E> + Send + Sync,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self { id: id.into(), function }
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
        let failed =
            |why: &dyn fmt::Display| Error::new(ErrorKind::Engine, format!("{}: {why}", self.id));
        let answer = match catch_unwind(AssertUnwindSafe(|| (self.function)(job, counter))) {
            Ok(answer) => answer.map_err(|error| {
                let error = error.into();
                failed(&error).with_source(error)
            })?,
            Err(panic) => return Err(failed(&format_args!("panicked: {}", said(&*panic)))),
        };
        bounded(&self.id, answer, job, counter)
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
