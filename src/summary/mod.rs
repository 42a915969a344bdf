//! The summariser that needs no model.
//!
//! ```text
//! frames, passages ─ steps ─→ Ledger      where the session stands: carried on, never compressed
//!                          ─→ Chronicle   what happened in a range
//! task ─ both, and the names in it ─ outline ─→ a text within a limit
//! ```
//!
//! It knows neither blocks nor jobs nor engines: compression hands it a [`Task`] and gets a text.

mod ledger;
mod outline;

use crate::{id::FrameSeq, steps::Passage};
pub(crate) use ledger::{
    Chronicle, ContextTexts, Happened, Section, brief, quoted_item, worth_keeping,
};
pub use ledger::{Ledger, LedgerLine};
pub(crate) use outline::{identifiers, likely_names, outline, ranked_names};

/// What is to be summarised, and what is known besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'t> {
    pub(crate) passages: &'t [Passage],
    /// The last frame.
    pub(crate) to: FrameSeq,
    /// Whether the passages are summaries.
    pub(crate) of_blocks: bool,
    pub(crate) token_limit: usize,
    /// What the model reads after the passages.
    pub(crate) tail: &'t [Passage],
    /// The words of the user that stand in the context themselves.
    pub(crate) words: &'t [Passage],
    /// Where things stood before the passages.
    pub(crate) before: Option<&'t Ledger>,
    /// Where things stand after the passages, where the context says that.
    pub(crate) ledger: Option<&'t Ledger>,
}
