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
//! // Any token counter fits in; `Bpe::o200k()` of the feature `bpe` counts exactly.
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
//! The guide (`docs/guide.md`, the module `guide`) goes from here to a context within a budget, to state that survives a crash, and to
//! formats, engines and errors of your own.
//!
//! # The map
//!
//! | module | holds | start with |
//! |---|---|---|
//! | [`veil`] | facets, the ops that change them, frames, histories | [`veil::Facet`], [`veil::History`] |
//! | [`snapshot`] | what a frame rendered to: chunks that tile one text; the archive of a history | [`snapshot::FrameSnapshotBuilder`], [`snapshot::SnapshotArchive`] |
//! | [`hud`] | the one renderer, formats, contexts | [`hud::Hud`] |
//! | [`export`] | contexts in the forms of OpenAI and Anthropic, and what their caches keep | [`export::Export`] |
//! | [`transcript`] | readers of what other programs recorded | [`transcript::Transcript`] |
//! | [`steps`] | what tool calls do, to which files, and how they ended | [`steps::FacetCalls`] |
//! | [`compress`] | summaries in the place of ranges of frames, and the engines that write them | [`compress::CompressionTransform`], [`compress::Engine`] |
//! | [`window`] | contexts that fit a budget: compressed, shortened, dropped, or refused | [`window::ContextWindow`] |
//! | [`replay`] | what the requests of a session would have cost | [`replay::Replay`] |
//! | [`request`] | requests as they were sent, logged, or worked out, and what differs between them | [`request::Recording`] |
//! | [`otlp`] | recordings as spans of OpenTelemetry | [`otlp::OtlpWriter`] |
//! | [`bill`] | usage as it was reported, added up, and its price | [`bill::UsageSums`] |
//! | `guard` | what a provider's cache will serve of a request, said before it is sent | `guard::Guard` |
//! | [`session`] | an agent's memory: what was said, the requests that fit, the answers; and what joins the others | [`session::Session`] |
//! | [`id`], [`text`], [`error`] | ids, positions, the error | [`Error`] |
//!
//! These modules are crates of their own, which also stand alone. Each that can fail has an `Error`
//! of its own, which [`Error`] takes with `?`:
//!
//! | module | crate | feature | holds | start with |
//! |---|---|---|---|---|
//! | [`json`] | afterimage-json | | JSON that keeps order and digits | [`json::read`] |
//! | [`tokens`] | afterimage-tokens | `bpe` for exact counts | exact counters, an estimate, a memo | [`tokens::default_counter`] |
//! | `log` | afterimage-log | `storage` | files of checksummed records, locks, atomic writes | `log::RecordWriter` |
//! | [`timeline`] | afterimage-timeline | | world state as deltas and snapshots, in memory and, with `storage`, in a directory | [`timeline::Timeline`] |
//! | `journal` | afterimage-journal | `storage`, `nats` | events with snapshots of what they lead to: in memory, in a directory, on NATS | `journal::Journal`, `journal::Replay` |
//! | [`observe`] | afterimage-observe | `sqlite`, `rules` | tool responses kept for each account, and short summaries with their ages | [`observe::Observations`] |
//! | [`checkpoint`] | afterimage-checkpoint | | summaries of work in Markdown, and deltas between them | [`checkpoint::diff`], [`checkpoint::apply`] |
//! | `record` | afterimage-record | `record`, `wire` | what goes between an agent and a model, byte for byte, and the listener that records it | `record::Recording`, `record::wire::Wire` |
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
//! speaks to a server. With `wire`, `record::wire::Wire` listens on loopback. A [`session::Session`]
//! stamps its steps by the system's clock, and writes what takes long in threads.
//!
//! # Features
//!
//! * `bpe` (default): exact counts for `o200k_base` and `cl100k_base`, for 11 MB more in the program.
//! * `templates`: a template for each facet type.
//! * `storage`: agents' sessions, archives, timelines and journals in directories.
//! * `nats`: journals and agents' sessions on NATS `JetStream`; turns `storage` on.
//! * `sqlite`: observations in a database file.
//! * `record`: recordings of the wire, written and read, and those of other programs.
//! * `wire`: the listener that makes them; turns `record` on.
//! * `rules`: tables in TOML of what exchanges cost, what caches serve, what a secret is, and policies
//!   of observations.
//! * `command`: summaries by a program that reads a prompt.

// Input never panics: what may be absent is matched, not unwrapped.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod bill;
pub mod compress;
pub mod error;
pub mod export;
#[cfg(feature = "rules")]
pub mod guard;
pub mod hud;
pub mod id;
pub mod otlp;
#[cfg(feature = "rules")]
pub mod redact;
pub mod replay;
pub mod request;
pub mod session;
pub mod snapshot;
pub mod steps;
mod summary;
pub mod text;
pub mod transcript;
mod usage;
pub mod veil;
pub mod window;

pub use afterimage_checkpoint as checkpoint;
#[cfg(feature = "storage")]
pub use afterimage_journal as journal;
pub use afterimage_json as json;
#[cfg(feature = "storage")]
pub use afterimage_log as log;
pub use afterimage_observe as observe;
#[cfg(feature = "record")]
pub use afterimage_record as record;
pub use afterimage_timeline as timeline;
pub use afterimage_tokens as tokens;

#[doc(no_inline)]
pub use error::{Error, ErrorKind, Result};

#[cfg(all(feature = "bpe", feature = "storage"))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[doc = include_str!("../docs/FORMAT.md")]
pub mod format_of_files {}

#[doc = include_str!("../docs/exports.md")]
pub mod forms_of_exports {}

#[doc = include_str!("../docs/transcripts.md")]
pub mod formats_of_transcripts {}

#[doc = include_str!("../docs/bill.md")]
pub mod reported_usage_and_prices {}

#[doc = include_str!("../docs/guard.md")]
pub mod predicted_caches {}

#[doc = include_str!("../docs/journal.md")]
pub mod journals {}

#[doc = include_str!("../docs/compression.md")]
pub mod compression {}

#[cfg(feature = "rules")]
#[doc = include_str!("../docs/redaction.md")]
pub mod secrets {}

#[doc = include_str!("../docs/checkpoints.md")]
pub mod checkpoints_and_deltas {}

#[doc = include_str!("../docs/observations.md")]
pub mod observations {}

#[doc = include_str!("../docs/timeline.md")]
pub mod timelines {}

/// The README's example is a test.
#[cfg(all(doctest, feature = "bpe"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// What is known of every recording, as each room answers.
#[cfg(all(test, feature = "record"))]
#[path = "../tests/facts/mod.rs"]
mod facts;
