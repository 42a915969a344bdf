use std::sync::atomic::{AtomicU32, Ordering};

use super::{CompressionJob, Engine, engine::Asked};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// An engine that is not asked again once it failed so often in a row: one that hangs would
/// otherwise take its whole time for each range.
///
/// ```
/// use afterimage::{
///     compress::{CompressionJob, Engine, FailureLimit, FnEngine},
///     tokens::{Chars4, TokenCounter},
/// };
///
/// let down = FnEngine::new("model", |_: &CompressionJob, _: &dyn TokenCounter| Err::<String, _>("down"));
/// let engine = FailureLimit::new(down, 1);
/// let job = CompressionJob::new(Vec::new(), 5);
/// assert_eq!(engine.summarize(&job, &Chars4).unwrap_err().message(), "model: down");
/// let error = engine.summarize(&job, &Chars4).unwrap_err();
/// assert_eq!(error.message(), "not asked: model failed 1 times in a row");
/// ```
#[derive(Debug)]
pub struct FailureLimit<E> {
    engine: E,
    most: u32,
    failures: AtomicU32,
}

impl<E: Engine> FailureLimit<E> {
    /// `engine`, until it failed `most` times in a row.
    pub fn new(engine: E, most: u32) -> Self {
        Self { engine, most, failures: AtomicU32::new(0) }
    }
}

impl<E: Engine> Engine for FailureLimit<E> {
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
        if self.failures.load(Ordering::Relaxed) >= self.most {
            let (id, most) = (self.engine.id(), self.most);
            let message = format!("not asked: {id} failed {most} times in a row");
            return Err(Error::new(ErrorKind::Engine, message));
        }
        let answer = self.engine.summarize_noting(job, counter, note);
        match &answer {
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            Err(_) => drop(self.failures.fetch_add(1, Ordering::Relaxed)),
        }
        answer
    }
}

impl Engine for Box<dyn Engine> {
    fn id(&self) -> &str {
        (**self).id()
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        (**self).summarize(job, counter)
    }

    fn summarize_noting(
        &self,
        job: &CompressionJob,
        counter: &dyn TokenCounter,
        note: &mut dyn FnMut(Asked<'_>),
    ) -> Result<String> {
        (**self).summarize_noting(job, counter, note)
    }
}

impl<E: Engine + ?Sized> Engine for &E {
    fn id(&self) -> &str {
        (**self).id()
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        (**self).summarize(job, counter)
    }

    fn summarize_noting(
        &self,
        job: &CompressionJob,
        counter: &dyn TokenCounter,
        note: &mut dyn FnMut(Asked<'_>),
    ) -> Result<String> {
        (**self).summarize_noting(job, counter, note)
    }
}
