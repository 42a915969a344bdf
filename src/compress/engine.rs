use std::fmt;

use super::CompressionJob;
use crate::{Error, ErrorKind, Result, tokens::TokenCounter};

/// What makes a summary of a job. Object-safe: callers mix engines at run time.
///
/// The state machine does not call engines: it hands out jobs and takes answers, so an async
/// program calls its model as it likes. [`summarize`](Engine::summarize) is for callers that block.
pub trait Engine: fmt::Debug + Send + Sync {
    /// Names the engine in the block, for example `outline`.
    fn id(&self) -> &str;

    /// A summary of the job's passages in at most `job.token_limit` tokens by `counter`.
    ///
    /// # Errors
    /// Whatever keeps it from answering; the job may then be tried again.
    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String>;

    /// As [`summarize`](Engine::summarize); `note` hears of each request to a model, since an engine
    /// may need several for one summary. An engine around another one passes it on.
    ///
    /// # Errors
    /// Those of [`summarize`](Engine::summarize).
    fn summarize_noting(
        &self,
        job: &CompressionJob,
        counter: &dyn TokenCounter,
        note: &mut dyn FnMut(SummaryRequest<'_>),
    ) -> Result<String> {
        let answer = self.summarize(job, counter);
        note(SummaryRequest { job, answer: answer.as_deref().unwrap_or_default() });
        answer
    }
}

/// A request for a summary that a model was sent.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct SummaryRequest<'a> {
    /// What was asked: with a [`CompressionJob::revision`] where it was asked for once more.
    pub job: &'a CompressionJob,
    /// What came back; empty where it failed.
    pub answer: &'a str,
}

/// The answer of an engine to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary<'a> {
    /// What it says of the job's passages.
    pub text: &'a str,
    /// The engine that wrote it: [`Engine::id`], or the name of a model.
    pub engine: &'a str,
}

/// An answer without the white space around it.
///
/// # Errors
/// [`ErrorKind::Engine`] where it is blank, [`ErrorKind::Limit`] where it is longer than asked for.
pub(super) fn bounded(
    engine: &str,
    answer: String,
    job: &CompressionJob,
    counter: &dyn TokenCounter,
) -> Result<String> {
    let trimmed = answer.trim();
    if trimmed.is_empty() {
        return Err(Error::new(ErrorKind::Engine, format!("{engine} answered with nothing")));
    }
    let limit = usize::try_from(job.token_limit).unwrap_or(usize::MAX);
    if counter.count_up_to(trimmed, limit).is_none() {
        let message = format!(
            "expected an answer of {engine} in at most {limit} tokens, found {}",
            counter.count(trimmed)
        );
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(if trimmed.len() == answer.len() { answer } else { trimmed.to_owned() })
}
