use super::{CompressionJob, Engine};
use crate::{Result, summary::outline, tokens::TokenCounter};

/// The embedded engine: a working summary that is made without a model.
///
/// It says where things stand: what the user asked first and last, rules, the last error, open
/// steps of the plan, files that were changed, what the agent said last. Then it says what was
/// done, newest first, with what came of it, and names the identifiers that are likely to be needed
/// again and stand nowhere above. Where the job has a ledger, it says what was done alone. `…` marks
/// what is left out.
///
/// The same job gives the same summary, which holds nothing but what stands in the job, headings
/// and connecting words. No text of the job can begin a line as a heading does: lines of a text begin
/// with a blank. It is not safe as markup: tags in the job can stand in the summary.
///
/// Runs in time linear in the job's text, but for the sort of the names. Memory is about that of
/// the text.
///
/// ```
/// use std::sync::Arc;
///
/// use afterimage::{
///     compress::{CompressionJob, Engine, OutlineEngine, Passage},
///     id::{FrameSeq, Millis, Role},
///     snapshot::{ChunkOptions, FrameSnapshotBuilder},
///     tokens::Chars4,
/// };
///
/// let mut builder = FrameSnapshotBuilder::new(&Chars4);
/// builder.add_content("Please cancel order W1234567.", ChunkOptions::new());
/// let snapshot = Arc::new(builder.build(Millis::new(0)));
/// let seq = FrameSeq::new(1);
/// let passage = Passage::new(seq, seq, Role::User, snapshot);
/// let outline = OutlineEngine.summarize(&CompressionJob::new(vec![passage], 40), &Chars4)?;
/// assert_eq!(outline, "Asked first:\n Please cancel order W1234567.");
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutlineEngine;

impl Engine for OutlineEngine {
    fn id(&self) -> &'static str {
        "outline"
    }

    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where the limit is too small to say anything:
    /// a few tokens.
    fn summarize(&self, job: &CompressionJob, counter: &dyn TokenCounter) -> Result<String> {
        outline(&job.task(), counter)
    }
}
