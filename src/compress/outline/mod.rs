//! The engine that needs no model: an outline of who did what, with the names that will be needed.
//!
//! ```text
//! job ─ entries ─→ who said, called, answered what; JSON as keys and values
//!     ─ identifiers, select ─→ names, ranked by how likely each is needed, for a token
//!     ─ fit ─→ how much detail the limit allows ─ write ─→ the text
//! ```

mod entries;
mod excerpt;
mod fit;
mod identifiers;
mod line;
mod select;
mod write;

use self::{entries::entries, fit::fit, select::Names};
use super::{CompressionJob, Engine};
use crate::{Result, tokens::TokenCounter};

/// The embedded engine: an outline that is made without a model.
///
/// It keeps, in order, who said and did what: the beginning of what the user and the agent said,
/// tool calls with their arguments, and what came of them (`→`); and each identifier, number, date,
/// path and address that is likely to be needed again, beside its JSON key or the words before it.
/// What was named twice, by the user, in a tool's arguments or in the protected tail goes first.
/// Where the limit leaves room, beginnings grow until everything is said. `…` marks what is left
/// out.
///
/// The same job gives the same outline, which holds nothing but what stands in the job, headings
/// and connecting words. It is not safe as structure: tags in the job can stand in the outline.
///
/// Runs in time linear in the job's text and, for the search of the detail that fits, in its
/// mentions of identifiers times the logarithm of their number. Memory is about that of the text.
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
/// let passage = Passage { from: seq, to: seq, role: Role::User, snapshot };
/// let outline = OutlineEngine.summarize(&CompressionJob::new(vec![passage], 20), &Chars4)?;
/// assert_eq!(outline, "User: Please cancel order W1234567.");
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
        let entries = entries(job);
        let names = Names::of(&entries, entries::texts(&job.tail), job.token_limit, counter);
        fit(&entries, &names, job.token_limit, counter)
    }
}

/// The names in a text that may be needed again: ids, numbers, dates, paths, addresses, and words
/// that look like code.
pub(crate) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    identifiers::identifiers(text).map(|(range, _)| range.of(text))
}

/// The identifiers of a job that are likely to be needed again, the one that is most worth its
/// tokens first.
pub(super) fn likely_names(job: &CompressionJob, counter: &dyn TokenCounter) -> Vec<String> {
    let entries = entries(job);
    let names = Names::of(&entries, entries::texts(&job.tail), job.token_limit, counter);
    names.likely(&entries)
}
