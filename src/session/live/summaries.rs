//! Where the summaries of a request come from, and what is kept of them.

use std::{
    sync::{Mutex, PoisonError},
    vec,
};

use super::step::AskedSummary;
use crate::{
    Error, ErrorKind, Result,
    compress::{CompressionJob, Engine},
    tokens::TokenCounter,
};

/// An engine that may leave a summary for a later request.
pub(super) trait Summaries: Engine {
    /// Whether the summary of this job has not come yet. It is then on its way.
    fn is_later(&self, job: &CompressionJob) -> bool;
}

/// Summaries whose texts are kept.
#[derive(Debug)]
pub(super) struct Kept<'e> {
    summaries: &'e dyn Summaries,
    answers: Mutex<Vec<AskedSummary>>,
}

impl<'e> Kept<'e> {
    pub(super) fn new(summaries: &'e dyn Summaries) -> Self {
        Self { summaries, answers: Mutex::default() }
    }

    pub(super) fn into_answers(self) -> Vec<AskedSummary> {
        self.answers.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, answer: AskedSummary) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
    }
}

impl Engine for Kept<'_> {
    fn id(&self) -> &str {
        self.summaries.id()
    }

    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        let answer = self.summaries.summarize(job, counter);
        self.keep(match &answer {
            Ok(text) => AskedSummary::Text(text.clone()),
            Err(error) => AskedSummary::Failure(error.message().to_owned()),
        });
        answer
    }
}

impl Summaries for Kept<'_> {
    fn is_later(&self, job: &CompressionJob) -> bool {
        let is_later = self.summaries.is_later(job);
        if is_later {
            self.keep(AskedSummary::Later);
        }
        is_later
    }
}

/// What was kept, again.
#[derive(Debug)]
pub(super) struct Remembered {
    id: String,
    answers: Mutex<vec::IntoIter<AskedSummary>>,
}

impl Remembered {
    pub(super) fn new(id: String, answers: Vec<AskedSummary>) -> Self {
        Self { id, answers: Mutex::new(answers.into_iter()) }
    }
}

impl Engine for Remembered {
    fn id(&self) -> &str {
        &self.id
    }

    fn summarize(&self, _: &CompressionJob, _: &dyn TokenCounter) -> Result<String> {
        let failed = |message: String| Err(Error::new(ErrorKind::Engine, message));
        match self.answers.lock().unwrap_or_else(PoisonError::into_inner).next() {
            Some(AskedSummary::Text(text)) => Ok(text),
            Some(AskedSummary::Failure(message)) => failed(message),
            Some(AskedSummary::Later) | None => {
                failed("a summary that the session did not keep".to_owned())
            }
        }
    }
}

impl Summaries for Remembered {
    fn is_later(&self, _: &CompressionJob) -> bool {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_later = answers.as_slice().first() == Some(&AskedSummary::Later);
        if is_later {
            answers.next();
        }
        is_later
    }
}
