use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use super::{Record, pairing::Pairing};
use crate::{
    id::{FacetId, FacetType},
    json::{Object, ObjectExt, Value},
    veil::{Facet, FacetOp, Frame, Source},
};

/// The topic of the event that marks a frame as a message of its source.
pub const MESSAGE_TOPIC: &str = "transcript:message";
/// The topic of the event of a frame that its source does not count as a message.
pub const RECORD_TOPIC: &str = "transcript:record";

/// How many records that were not understood are named one by one.
const NAMED_UNKNOWNS: usize = 1_000;
/// How many of them may wait for the session that they belong to.
const EARLY_UNKNOWNS: usize = 256;

/// The highest sequence that a frame keeps: what every reader of JSON holds exactly.
const MAX_SEQUENCE: u64 = 1 << 53;

/// What an import saw besides the frames that it gave.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Records that are known and that the model never saw, by kind.
    pub skipped: BTreeMap<String, u64>,
    /// How many records were not understood; each is kept as a facet of type `unknown`.
    pub unknown_records: u64,
    /// The first thousand of them.
    pub unknown: Vec<UnknownRecord>,
    /// How many sessions were seen.
    pub sessions: u64,
    /// How many frames of our own had a sequence that was not greater than the last of their
    /// session, and got the next.
    pub renumbered: u64,
}

/// A record that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRecord {
    /// The line in the file, from one.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// A frame in the making: what a reader knows of one message or record.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) source: Source,
    pub(super) line: u64,
    pub(super) timestamp: Option<String>,
    pub(super) uuid: Option<String>,
    /// Whether the source counts it as a message.
    pub(super) is_message: bool,
    /// What the source says of the message besides its content.
    pub(super) payload: Object,
    /// What the message holds, in order. Ids are given when the frame is made.
    pub(super) facets: Vec<Facet>,
}

impl Draft {
    pub(super) fn message(source: Source, line: u64) -> Self {
        let (timestamp, uuid, payload, facets) = Default::default();
        Self { source, line, timestamp, uuid, is_message: true, payload, facets }
    }

    /// A frame that its source does not count as a message.
    pub(super) fn record(source: Source, line: u64) -> Self {
        Self { is_message: false, ..Self::message(source, line) }
    }
}

/// Where readers put what they read.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) ready: VecDeque<Record>,
    pub(super) report: Report,
    session: Option<Arc<str>>,
    /// Every session so far: they may interleave.
    sessions: HashSet<Arc<str>>,
    pairing: Pairing,
    /// Records that were not understood and that came before any session.
    early: Vec<Draft>,
    sequence: u64,
    /// The last sequence of each session whose frames bring their own.
    last: HashMap<Arc<str>, u64>,
}

impl Sink {
    /// Starts the session `name`, or goes on with it; what follows belongs to it.
    pub(super) fn session(&mut self, name: &str) {
        if self.session.as_deref() == Some(name) {
            return;
        }
        let session = self.sessions.get(name).cloned().unwrap_or_else(|| {
            let session: Arc<str> = name.into();
            self.sessions.insert(session.clone());
            self.report.sessions += 1;
            session
        });
        self.session = Some(session);
        for draft in std::mem::take(&mut self.early) {
            self.push(draft);
        }
    }

    /// Ends the input.
    pub(super) fn finish(&mut self) {
        if !self.early.is_empty() {
            self.current();
        }
    }

    /// The current session; the first one of a format without names is `1`.
    fn current(&mut self) -> Arc<str> {
        if self.session.is_none() {
            self.session("1");
        }
        self.session.clone().unwrap_or_default()
    }

    /// Makes the next frame of the current session.
    pub(super) fn push(&mut self, draft: Draft) {
        let Draft { source, line, timestamp, uuid, is_message, payload, mut facets } = draft;
        let session = self.current();
        self.pairing.pair(&session, &mut facets);
        let mut event = Object::new();
        event.put("topic", if is_message { MESSAGE_TOPIC } else { RECORD_TOPIC });
        event.put("line", line);
        if !payload.is_empty() {
            event.put("payload", payload);
        }
        let mut frame = Frame::new(self.sequence, source);
        frame.timestamp = timestamp;
        frame.uuid = uuid;
        frame.events = vec![event.into()];
        for (index, mut facet) in facets.into_iter().enumerate() {
            let name = format!("{}-{}.{index}", facet.facet_type, self.sequence);
            give_ids(&mut facet, &name);
            frame.ops.push(FacetOp::add(facet));
        }
        self.push_frame(frame);
    }

    /// Passes a frame of our own on. It keeps its sequence where that is greater than the last of
    /// its session, else it gets the next, and that is reported.
    pub(super) fn push_own(&mut self, mut frame: Frame) {
        let session = self.current();
        let last = self.last.get(&session).copied();
        let sequence = frame.sequence.get();
        if sequence > MAX_SEQUENCE || last.is_some_and(|last| sequence <= last) {
            self.report.renumbered += 1;
            frame.sequence = last.map_or(0, |last| last + 1).into();
        }
        self.last.insert(Arc::clone(&session), frame.sequence.get());
        self.sequence = self.sequence.max(frame.sequence.get() + 1);
        self.ready.push_back(Record { session, frame });
    }

    /// Passes a frame on under the next sequence of the file.
    fn push_frame(&mut self, mut frame: Frame) {
        let session = self.current();
        frame.sequence = self.sequence.into();
        if let Some(last) = self.last.get_mut(&session) {
            *last = self.sequence;
        }
        self.sequence += 1;
        self.ready.push_back(Record { session, frame });
    }

    /// Counts a record that is known and that the model never saw.
    pub(super) fn skip(&mut self, kind: &str) {
        match self.report.skipped.get_mut(kind) {
            Some(count) => *count += 1,
            None => {
                self.report.skipped.insert(kind.to_owned(), 1);
            }
        }
    }

    /// Reports a record that was not understood, and keeps it.
    pub(super) fn unknown(&mut self, line: u64, reason: impl Into<String>, record: Value) {
        let reason = reason.into();
        self.report.unknown_records += 1;
        if self.report.unknown.len() < NAMED_UNKNOWNS {
            self.report.unknown.push(UnknownRecord { line, reason: reason.clone() });
        }
        let mut facet = Facet::new("", FacetType::UNKNOWN, "");
        facet.attributes.put("reason", reason);
        facet.state = Some(record);
        let draft = Draft { facets: vec![facet], ..Draft::record(Source::Environment, line) };
        if self.session.is_none() && self.early.len() < EARLY_UNKNOWNS {
            self.early.push(draft);
        } else {
            self.push(draft);
        }
    }
}

fn give_ids(facet: &mut Facet, id: &str) {
    facet.id = FacetId::from(id);
    for (index, child) in facet.children.iter_mut().enumerate() {
        give_ids(child, &format!("{id}.{index}"));
    }
}
