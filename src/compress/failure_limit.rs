use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{CompressionJob, Engine, engine::SummaryRequest};
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// An engine that is asked seldom once it failed so often in a row: one that hangs would otherwise
/// take its whole time for each range. It is asked again after so many jobs were refused, and where
/// it fails again after twice as many each time; so one that is back is found.
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
    count: Mutex<FailureCount>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FailureCount {
    /// How often it failed in a row.
    failures: u32,
    /// How many jobs are still refused before it is asked again.
    refusals: u32,
    /// How many are refused the next time that it fails.
    next: u32,
}

impl<E: Engine> FailureLimit<E> {
    /// `engine`, until it failed `most` times in a row.
    pub fn new(engine: E, most: u32) -> Self {
        Self { engine, most: most.max(1), count: Mutex::default() }
    }

    fn count(&self) -> MutexGuard<'_, FailureCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the engine failed in a row, where the job is refused for that.
    fn refuses(&self) -> Option<u32> {
        let mut count = self.count();
        if count.refusals == 0 {
            return None;
        }
        count.refusals -= 1;
        Some(count.failures)
    }

    fn note(&self, is_answered: bool) {
        let mut count = self.count();
        if is_answered {
            *count = FailureCount::default();
            return;
        }
        count.failures = count.failures.saturating_add(1);
        if count.failures >= self.most {
            count.refusals = count.next.max(self.most);
            count.next = count.refusals.saturating_mul(2);
        }
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
        note: &mut dyn FnMut(SummaryRequest<'_>),
    ) -> Result<String> {
        if let Some(failures) = self.refuses() {
            let message = format!("not asked: {} failed {failures} times in a row", self.id());
            return Err(Error::new(ErrorKind::Engine, message).at_frame(job.from.get()));
        }
        let answer = self.engine.summarize_noting(job, counter, note);
        self.note(answer.is_ok());
        answer
    }
}

/// An engine behind a pointer.
macro_rules! engine_behind {
    ($(impl<$generic:ident> $pointer:ty;)*) => {$(
        impl<$generic: Engine + ?Sized> Engine for $pointer {
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
                note: &mut dyn FnMut(SummaryRequest<'_>),
            ) -> Result<String> {
                (**self).summarize_noting(job, counter, note)
            }
        }
    )*};
}

engine_behind! {
    impl<E> Box<E>;
    impl<E> Arc<E>;
    impl<E> &E;
}
