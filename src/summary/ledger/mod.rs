//! Where a session stands: what compression carries on and never compresses again.
//!
//! ```text
//! passages ─ steps ───→ who speaks, what is demanded, what calls do, what came of them
//!          ─ decision → what the agent decided, and what it found missing
//! Ledger ─ sections ──→ lines by their worth, each with the frame that it is from
//! ```

mod act;
mod answer;
mod calls;
mod chronicle;
mod chronicle_lines;
mod context_texts;
mod decision;
mod decisions;
mod excerpt;
mod filling;
mod frames;
mod item;
mod json_row;
mod left_out;
mod obstacle;
mod open_call;
mod open_result;
mod replies;
mod section;
mod standing;
mod state;
mod trailer;

pub(crate) use answer::{brief, worth_keeping};
pub(crate) use chronicle::{Chronicle, Happened};
pub(super) use chronicle_lines::{quoted, with_paragraphs};
pub(crate) use context_texts::ContextTexts;
pub(super) use excerpt::{excerpt, excerpts_of_summary};
pub(super) use filling::{Filling, Form, take, write};
pub(crate) use item::quoted_item;
pub(super) use left_out::LeftOut;
pub use section::LedgerLine;
pub(crate) use section::Section;
pub(super) use section::SectionLine;
pub use state::Ledger;
