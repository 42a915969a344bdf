//! afterimage keeps what an LLM agent actually saw.
//!
//! An agent's prompt is rendered every turn from state that keeps changing. Later nobody can say
//! what the model saw, which part of the system wrote a line, or why it cost what it cost. This
//! crate renders an agent's history frame by frame, captures each frame's text as chunks that know
//! their facets, role and exact tokens, and uses that capture from then on.
//!
//! ```
//! use std::sync::Arc;
//! use afterimage::{
//!     hud::{Hud, RenderRequest}, id::{FacetType, Millis}, json::Object, tokens::Chars4,
//!     veil::{Facet, FacetOp, Frame, History, Source},
//! };
//!
//! // Any token counter fits in; `Tiktoken::o200k()` of the feature `tiktoken` counts exactly.
//! let hud = Hud::new(Arc::new(Chars4));
//! let mut history = History::new();
//!
//! // Frame 0: a sensor appears. Frame 1: the user asks. Each is rendered once, and sealed.
//! let hull = Facet::new("hull", FacetType::STATE, "Hull at 98 %").named("ship_status");
//! let ask = Facet::new("ask-1", FacetType::EVENT, "Are we safe?");
//! hud.capture(&mut history, Frame::new(0, Source::Environment).with(FacetOp::add(hull)), Millis::new(0))?;
//! hud.capture(&mut history, Frame::new(1, Source::User).with(FacetOp::add(ask)), Millis::new(1_000))?;
//!
//! // Frame 2 changes the state. The past stays as the model saw it.
//! let changes = Object::from_iter([("content".to_owned(), "Hull at 12 %".into())]);
//! let hit = Frame::new(2, Source::Environment).with(FacetOp::rewrite("hull", changes));
//! hud.capture(&mut history, hit, Millis::new(2_000))?;
//!
//! let context = hud.render(&history, &RenderRequest::default(), Millis::new(2_000))?;
//! assert_eq!(context.messages()[0].content(), "<ship_status>\nHull at 98 %\n</ship_status>");
//! assert_eq!(context.messages()[2].content(), "<ship_status>\nHull at 12 %\n</ship_status>");
//!
//! // Which facet wrote the byte at offset 0 of the second message?
//! let owner = context.owner_of(1, 0).unwrap();
//! assert_eq!(format!("{owner:?}"), "Chunk { frame: FrameSeq(1), chunk: 0, facet_ids: [\"ask-1\"] }");
//! # Ok::<(), afterimage::Error>(())
//! ```
//!
//! # The map
//!
//! | module | holds | start with |
//! |---|---|---|
//! | [`veil`] | facets, the ops that change them, frames, histories | [`veil::Facet`], [`veil::History`] |
//! | [`snapshot`] | what a frame rendered to: chunks that tile one text; the archive of a history | [`snapshot::FrameSnapshotBuilder`], [`snapshot::SnapshotArchive`] |
//! | [`hud`] | the one renderer, formats, contexts | [`hud::Hud`] |
//! | [`export`] | contexts in the forms of OpenAI and Anthropic, and what their caches keep | [`export::Export`] |
//! | [`tokens`] | exact counters, an estimate, a memo | [`tokens::TokenCounter`] |
//! | [`transcript`] | readers of what other programs recorded | [`transcript::Transcript`] |
//! | [`compress`] | ranges of frames that give way to summaries, and what writes those | [`compress::CompressionTransform`], [`compress::Engine`] |
//! | [`window`] | contexts that fit a budget: compressed, shortened, dropped, or refused | [`window::ContextWindow`] |
//! | [`replay`] | what the requests of a session would have cost | [`replay::Replay`] |
//! | `checkpoint` (feature `checkpoint`) | summaries of work in Markdown, and deltas between them | `checkpoint::diff`, `checkpoint::apply` |
//! | [`observe`] | tool responses kept for each account, and short summaries with their ages | [`observe::Observations`] |
//! | `journal` (feature `journal`) | events with snapshots of what they lead to: in memory, in a directory, on NATS | `journal::Journal`, `journal::Replay` |
//! | [`session`] | what joins the others: observations in contexts, states that replay from journals | [`session::bridge`] |
//! | [`json`] | JSON that keeps order and digits | [`json::read`] |
//! | `timeline` (feature `timeline`) | world state as deltas and snapshots, in memory and in a directory | `timeline::Timeline`, `timeline::session::SessionDir` |
//! | `log` (feature `storage`) | files of checksummed records, locks, atomic writes | `log::RecordWriter` |
//! | [`id`], [`text`], [`error`] | ids, positions, the error | [`Error`] |
//!
//! Wire types implement serde's traits with the field names of the wire (`docs/FORMAT.md`).
//!
//! # What it does not do
//!
//! It calls no model, has no clock, no randomness, no globals and no threads, and it touches no
//! file but through [`transcript::Transcript::open`] and, with the feature `storage`, through
//! `log`: the caller passes `now` and hands input in. With the feature `command`,
//! `compress::CommandEngine` runs a program, with a clock and threads to stop it, and with
//! `sqlite` `observe::SqliteStore` uses a database file. With `nats`, `journal::NatsJournal`
//! speaks to a server.
//!
//! # Features
//!
//! * `tiktoken` (default): exact counts through tiktoken-rs.
//! * `bpe`: the same counts, faster, for 34 to 49 MB more in the binary.
//! * `templates`: a template for each facet type.
//! * `storage`: archives on disk, and what they write through: files of checksummed records.
//! * `timeline`: world state as deltas and snapshots; with `storage` in session directories.
//! * `journal`: events with snapshots of what they lead to, in memory and in a directory.
//! * `nats`: the same on NATS JetStream, async.
//! * `command`: summaries by any program that reads a prompt.
//! * `checkpoint`: checkpoints in Markdown, and deltas between them.
//! * `sqlite`: observations in a database file.
//! * `toml`: policies of observations as TOML.

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[cfg(feature = "checkpoint")]
pub mod checkpoint;
pub mod compress;
pub mod error;
pub mod export;
pub mod hud;
pub mod id;
#[cfg(feature = "journal")]
pub mod journal;
pub mod json;
#[cfg(feature = "storage")]
pub mod log;
pub mod observe;
pub mod replay;
pub mod session;
pub mod snapshot;
pub mod text;
#[cfg(feature = "timeline")]
pub mod timeline;
pub mod tokens;
pub mod transcript;
pub mod veil;
pub mod window;

#[doc(no_inline)]
pub use error::{Error, ErrorKind, Result};

#[doc = include_str!("../docs/FORMAT.md")]
pub mod format_of_files {}

#[doc = include_str!("../docs/exports.md")]
pub mod forms_of_exports {}

#[doc = include_str!("../docs/transcripts.md")]
pub mod formats_of_transcripts {}

#[doc = include_str!("../docs/journal.md")]
pub mod journals {}

#[doc = include_str!("../docs/compression.md")]
pub mod compression {}

#[cfg(feature = "checkpoint")]
#[doc = include_str!("../docs/checkpoints.md")]
pub mod checkpoints_and_deltas {}
#[doc = include_str!("../docs/observations.md")]
pub mod observations {}
#[cfg(feature = "timeline")]
#[doc = include_str!("../docs/timeline.md")]
pub mod timelines {}

/// The README's example is a test.
#[cfg(all(doctest, feature = "tiktoken"))]
#[doc = include_str!("../README.md")]
struct Readme;
