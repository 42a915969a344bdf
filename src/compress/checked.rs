use super::{AnswerCheck, CompressionJob, Engine, engine::SummaryRequest};
use crate::{Result, tokens::TokenCounter};

/// An engine whose summaries are checked: what they lost of rules, paths, numbers and names is asked
/// for once more, and then appended ([`AnswerCheck`]).
///
/// The second request is a job with a [`CompressionJob::revision`]; [`prompt`](super::prompt)
/// writes its text. Where it fails, or its answer is no better, the first answer stands.
///
/// ```
/// use afterimage::compress::{CheckedEngine, Engine, OutlineEngine};
///
/// assert_eq!(CheckedEngine::new(OutlineEngine).id(), "outline");
/// ```
#[derive(Clone, Debug)]
pub struct CheckedEngine<E> {
    engine: E,
}

impl<E: Engine> CheckedEngine<E> {
    /// `engine`, checked.
    pub fn new(engine: E) -> Self {
        Self { engine }
    }
}

impl<E: Engine> Engine for CheckedEngine<E> {
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
        checked(job, counter, &mut |job| self.engine.summarize_noting(job, counter, note))
    }
}

/// Has `ask` answer a job, and once more where the answer lost something. Every engine with a model
/// checks here.
pub(super) fn checked(
    job: &CompressionJob,
    counter: &dyn TokenCounter,
    ask: &mut dyn FnMut(&CompressionJob) -> Result<String>,
) -> Result<String> {
    let first = ask(job)?;
    if job.revision.is_some() || first.trim().is_empty() {
        return Ok(first);
    }
    let check = AnswerCheck::of(job, counter);
    let again = check.revise(job, &first, counter).map(|job| ask(&job));
    let best = match again {
        Some(Ok(second)) => check.better(job, first, second, counter),
        Some(Err(_)) | None => first,
    };
    Ok(check.complete(job, best, counter))
}
