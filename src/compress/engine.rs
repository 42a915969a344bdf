use std::fmt;

use super::CompressionJob;
use crate::{Result, tokens::TokenCounter};

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
}
