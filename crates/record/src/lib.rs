//! A recording of what goes between an agent and a model: requests and answers, byte for byte.
//!
//! ```
//! use afterimage_record::{End, Recording, RecordingWriter, RequestBody, ResponseHead, Start};
//!
//! # let scratch = tempfile::tempdir().unwrap();
//! # let folder = scratch.path().join("recording");
//! let (mut writer, _) = RecordingWriter::open_private(&folder)?;
//! let start = Start { path: "/responses".into(), ..Start::now("POST", "openai") };
//! let exchange = writer.start(&start)?;
//! writer.request(exchange, "openai", RequestBody::whole(b"{\"input\": \"Is it open?\"}"))?;
//! writer.response(exchange, &ResponseHead { status: 200, ..ResponseHead::default() })?;
//! writer.part(exchange, b"{\"output\": []}")?;
//! writer.end(exchange, &End { bytes: 14, stored: 14, ..End::default() })?;
//! writer.sync()?; // From here on a loss of power loses nothing of it.
//!
//! // Whoever reads need not wait for the writer.
//! let recording = Recording::open(&folder)?.expect("it is one");
//! let [exchange] = recording.exchanges() else { panic!("one exchange") };
//! assert_eq!(recording.request(exchange)?.whole(), Some(&b"{\"input\": \"Is it open?\"}"[..]));
//! assert_eq!(recording.response(exchange)?.whole(), Some(&b"{\"output\": []}"[..]));
//! # Ok::<(), afterimage_record::Error>(())
//! ```
//!
//! [`RecordingWriter`] appends to the file `wire.rec` of a folder, and [`Recording`] reads it, also
//! while it is written. [`Recorder`] owns a writer on a thread of its own, so that whoever passes
//! bytes on never waits for a disk. `docs/FORMAT.md` describes the bytes.
//!
//! Of headers and of the target only what [`allowed_headers`] and [`allowed_path`] let through is
//! written. Bodies are written as they are, with any secret that they hold, unless a [`Redact`] takes
//! these out.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod allowed;
mod base;
mod bodies;
mod coding;
mod content;
mod entry;
mod error;
mod folder;
mod packer;
mod place;
mod reader;
mod recorder;
mod socket_answers;
#[cfg(feature = "wire")]
pub mod wire;
mod writer;

pub use allowed::{allowed_headers, allowed_path};
pub use bodies::RequestBodies;
pub use coding::MOST_STORED;
pub use content::{unpacked, unpacked_start};
pub use entry::{End, RequestBody, ResponseHead, Start};
pub use error::{Error, ErrorKind};
pub use folder::{FILE_NAME, is_recording};
pub use reader::{Body, Exchange, Outcome, Recording, is_live};
pub use recorder::{Limits, Recorder, RecorderOptions, Redact, RequestRecorder, ResponseRecorder};
pub use socket_answers::{AnswerEvent, SocketAnswers};
pub use writer::{ExchangeId, RecordingWriter};

/// The result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
