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
//!       ─ plan ───→ declared changes, and where sentences direct them
//!                 ─ preview ─→ edits, each a document of its own, or refused
//! ```
//!
//! | what | start with |
//! |---|---|
//! | the documents | [`Document`], [`Checkpoint`], [`CheckpointDelta`], [`SectionKind`] |
//! | what is wrong with them | [`lint()`], [`Diagnostic`] |
//! | deltas | [`diff()`], [`apply()`], [`preview()`], [`validate`], [`compose`], [`invert`], [`TriggerPolicy`] |
//! | a folder of both | [`History`] |
//! | smaller ones | [`shrink()`] |
//! | from a session | `afterimage::session::bridge::checkpoint`, which knows frames |
//!
//! Nothing here has a clock: the caller says when something was made.

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod additions;
mod algebra;
mod apply;
mod blocks;
mod changes;
mod delta;
mod diff;
mod document;
pub mod edit;
mod error;
mod exact;
mod front_matter;
mod full_state;
mod grammar;
mod history;
mod instructions;
mod lines;
mod lint;
mod lookup;
mod matching;
mod misplaced;
mod modified;
mod names;
mod patch;
mod plan;
mod preview;
mod shrink;
mod states;
pub mod table;
mod timestamp;
mod trigger;
mod unread;

pub use algebra::{Difference, compose, invert, validate};
pub use apply::apply;
pub use blocks::{Block, BlockKind};
pub use delta::{Category, Change, CheckpointDelta, Part};
pub use diff::{DiffForm, DiffOptions, diff, expect_time};
pub use document::{Document, MAX_BYTES, Section};
pub use edit::Edit;
pub use front_matter::{Field, FrontMatter, header_line};
pub use full_state::Checkpoint;
pub use history::{History, Problem, ProblemKind};
pub use lint::{Diagnostic, DocumentKind, Severity, lint};
pub use names::{MergeRule, SectionKind};
pub use preview::{Effect, Preview, preview};
pub use shrink::{RemovedText, ShrunkCheckpoint, shrink};
pub use timestamp::{is_moment, is_timestamp, timestamp};
pub use trigger::{Occasion, Trigger, TriggerPolicy};

#[doc(no_inline)]
pub use afterimage_json as json;
#[doc(no_inline)]
pub use afterimage_tokens as tokens;
pub use error::{Error, ErrorKind};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
