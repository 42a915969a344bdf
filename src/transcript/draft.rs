//! Frames in the making, as readers hand them to the sink.

use super::starts::Start;
use crate::{
    json::{Object, ObjectExt},
    veil::{CopyOf, Facet, ModelAnswer, Source},
};

/// A frame in the making: what a reader knows of one message or record.
#[derive(Debug)]
pub(super) struct FrameDraft {
    pub(super) source: Source,
    pub(super) line: u64,
    pub(super) timestamp: Option<String>,
    pub(super) uuid: Option<String>,
    /// Whether the source counts it as a message.
    pub(super) is_message: bool,
    /// What the source says of the answer that the message is, or is a part of.
    pub(super) answer: Option<Box<ModelAnswer>>,
    /// The usage of answers that no frame shows.
    pub(super) session_usage: Vec<ModelAnswer>,
    /// That all answers before it are copies.
    pub(super) copied_before: Option<CopyOf>,
    /// What the source says of the message besides its content.
    pub(super) payload: Object,
    /// What the message holds, in order. Ids are given when the frame is made.
    pub(super) facets: Vec<Facet>,
    /// That a summary took the place of earlier frames here.
    pub(super) compacted: Option<CompactionRecord>,
    /// The ranges of earlier frames that are not in the context from here on, where they change.
    pub(super) outside: Option<Vec<(u64, u64)>>,
    /// What started the session, of the first frame of a subagent.
    pub(super) started: Option<Start>,
    /// What is read of earlier frames from here on.
    pub(super) edits: Vec<(u64, Vec<Facet>)>,
}

/// The frames that a summary replaced.
#[derive(Clone, Copy, Debug)]
pub(super) enum Replaced {
    /// All that came before.
    All,
    /// Those before the first record that was kept, by its line.
    BeforeLine(u64),
    /// Those before the first frame that was kept; none before frame 0.
    BeforeFrame(u64),
}

/// A compaction as its source tells it.
#[derive(Debug)]
pub(super) struct CompactionRecord {
    /// The program that made the summary.
    pub(super) engine: &'static str,
    /// What the summary replaced.
    pub(super) replaced: Replaced,
    /// What stood in place of the frames, where the message itself does not hold it.
    pub(super) summary: Option<Facet>,
    /// Earlier frames that were kept, where the message is read at its own place, after them.
    pub(super) in_place: Option<Vec<u64>>,
}

impl CompactionRecord {
    /// The message replaced all that came before.
    pub(super) fn of(engine: &'static str) -> Self {
        Self { engine, replaced: Replaced::All, summary: None, in_place: None }
    }

    /// All that came before is ignored by the API; the message stays where it is.
    pub(super) fn in_place(engine: &'static str) -> Self {
        Self { in_place: Some(Vec::new()), ..Self::of(engine) }
    }
}

impl FrameDraft {
    pub(super) fn message(source: Source, line: u64) -> Self {
        let (timestamp, uuid, payload, facets) = Default::default();
        let (answer, session_usage, copied_before) = Default::default();
        let (compacted, outside, started, edits) = Default::default();
        Self {
            source,
            line,
            timestamp,
            uuid,
            is_message: true,
            answer,
            session_usage,
            copied_before,
            payload,
            facets,
            compacted,
            outside,
            started,
            edits,
        }
    }

    /// A frame that its source does not count as a message.
    pub(super) fn record(source: Source, line: u64) -> Self {
        Self { is_message: false, ..Self::message(source, line) }
    }

    /// A frame that shows nothing, of a record that changes the context.
    pub(super) fn of_record(line: u64, timestamp: Option<String>, record: Object) -> Self {
        let mut draft = Self { timestamp, ..Self::record(Source::Environment, line) };
        draft.payload.put("record", record);
        draft
    }
}
