//! Checkpoints in Markdown, and deltas between them that a machine can apply.
//!
//! A [`Checkpoint`] is the summary of a long piece of work from which an agent can go on; a
//! [`CheckpointDelta`] says what changed from one to the next. People and models write these by
//! hand: they are read forgivingly, [linted](lint()) strictly, [computed](diff()) and
//! [applied](apply()) mechanically. `docs/checkpoints.md` describes the documents, the grammar of
//! the instructions, and every finding.
//!
//! ```text
//! text ─ Document ─→ lines; front matter, sections, blocks as ranges of lines
//! two documents ─ matching ─→ Patch: lines copied, moved, new, gone      exact, can be inverted
//!               ─ changes  ─→ entries, values, states                    for people
//!               ─ diff     ─→ CheckpointDelta: both, as one document
//! delta ─ grammar ─→ exact steps ─→ Patch ─→ the lines that change; all others keep their bytes
//!                 ─→ orders by name ─ perform ─→ edits, each a document of its own
//! ```
//!
//! | what | start with |
//! |---|---|
//! | the documents | [`Document`], [`Checkpoint`], [`CheckpointDelta`], [`SectionKind`] |
//! | what is wrong with them | [`lint()`], [`Diagnostic`] |
//! | deltas | [`diff()`], [`apply()`], [`validate`], [`compose`], [`invert`], [`TriggerPolicy`] |
//! | a folder of both | [`History`] |
//! | smaller ones | [`shrink()`] |
//! | from a session | [`Draft`], [`CheckpointEngine`] |
//!
//! Nothing here has a clock: the caller says when something was made.

mod additions;
mod algebra;
mod apply;
mod blocks;
mod changes;
mod delta;
mod diff;
mod document;
mod edit;
mod exact;
mod front_matter;
mod full_state;
mod grammar;
mod history;
mod lines;
mod lint;
mod matching;
mod modified;
mod names;
mod patch;
mod perform;
mod session;
mod shrink;
mod states;
mod table;
mod timestamp;
mod trigger;

pub use algebra::{Difference, compose, invert, validate};
pub use apply::apply;
pub use blocks::{Block, BlockKind};
pub use delta::{Category, Change, CheckpointDelta, Part};
pub use diff::{DiffOptions, diff};
pub use document::{Document, MAX_BYTES, MAX_NESTING, Section};
pub use front_matter::{Field, FrontMatter};
pub use full_state::{Checkpoint, InlineDelta};
pub use history::{History, Problem, ProblemKind};
pub use lint::{Diagnostic, DocumentKind, Severity, lint, lint_checkpoint, lint_delta};
pub use names::{MergeRule, Priority, SectionKind};
pub use session::{CheckpointEngine, Draft, DraftOptions};
pub use shrink::{Gone, Shrunk, shrink};
pub use timestamp::is_timestamp;
pub use trigger::{Occasion, Trigger, TriggerPolicy};
