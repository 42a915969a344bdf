use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use super::{
    Exchange, LimitWindow, Record,
    branches::{Branches, Fork},
    bundle::Bundle,
    draft::{CompactionRecord, FrameDraft, Replaced},
    import_report::{ImportReport, RecordNote, UnknownRecord},
    joining,
    pairing::Pairing,
    parts,
    places::Places,
    recent::Recent,
    starts::Start,
};
use crate::{
    id::{FacetId, FacetType, FrameSeq},
    json::{ObjectExt, Value},
    veil::{
        Branch, Compaction, ContextEdit, Facet, FacetOp, Frame, Imported, PartContent, Source,
        SubagentStart, without,
    },
};

/// How many records that were not understood are named one by one, and have a frame each.
const NAMED_UNKNOWNS: usize = 1_000;
/// How many of them may wait for the session that they belong to.
const EARLY_UNKNOWNS: usize = 256;
/// And how much they may hold, in bytes.
const EARLY_BYTES: usize = 64 << 20;
/// How many kinds of skipped records are told apart, and the kind of the others.
const SKIPPED_KINDS: usize = 200;
const OTHER_KINDS: &str = "other";
/// How many windows of rate limits are kept.
const LIMITS: usize = 1_000;
/// How many characters a kind, and a reason, may have: both quote the input.
const KIND_LENGTH: usize = 80;
const REASON_LENGTH: usize = 240;
/// And the name of a file: systems have none that is longer.
const FILE_LENGTH: usize = 255;

/// A record that stood in the file before.
pub(super) const REPEATED: &str = "repeated record";

/// Whether the id of a record tells it from others. What stands in the place of a redacted one names
/// nothing.
pub(super) fn is_identity(id: &str) -> bool {
    !id.is_empty() && !id.contains(' ')
}

/// How deep a value within a frame may nest. Frames are written as JSON, in which what they hold
/// stands some levels deeper, and are read again up to [`MAX_DEPTH`](crate::json::MAX_DEPTH).
const LEVELS: usize = 100;

/// The highest sequence that a frame keeps: what every reader of JSON holds exactly.
const MAX_SEQUENCE: u64 = 1 << 53;

/// Where readers put what they read.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) ready: VecDeque<Record>,
    pub(super) report: ImportReport,
    session: Option<Arc<str>>,
    /// The name of the file that is read, where it is another than the session's own.
    file: Option<Box<str>>,
    /// Every session so far: they may interleave.
    sessions: HashSet<Arc<str>>,
    pairing: Pairing,
    /// Records that were not understood and that came before any session.
    early: Vec<FrameDraft>,
    early_bytes: usize,
    /// Records that were not understood and wait to become one frame.
    bundle: Option<Bundle>,
    sequence: u64,
    /// The last sequence of each session.
    last: HashMap<Arc<str>, u64>,
    places: Places,
    /// The frame of a call, by its id.
    calls: Recent<u64>,
    /// The frames that hold what a message says before its summary, since they were last taken.
    parted: Vec<u64>,
    /// The exchanges so far, where the caller wants them.
    exchanges: Option<Vec<Exchange>>,
}

impl Sink {
    /// One whose first frame has this sequence.
    pub(super) fn starting_at(first: FrameSeq) -> Self {
        Self { sequence: first.get(), ..Self::default() }
    }

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
        self.flush();
        self.session = Some(session);
        for draft in std::mem::take(&mut self.early) {
            self.push(draft);
        }
    }

    /// What follows stands in another file than what came before.
    pub(super) fn read_file(&mut self, name: &str) {
        self.file = Some(clip(name, FILE_LENGTH).into());
    }

    /// From now on exchanges are kept.
    pub(super) fn keep_exchanges(&mut self) {
        self.exchanges.get_or_insert_default();
    }

    pub(super) fn keeps_exchanges(&self) -> bool {
        self.exchanges.is_some()
    }

    /// Keeps an exchange of the current session.
    pub(super) fn exchange(&mut self, exchange: Exchange) {
        let session = self.current();
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.push(Exchange { session, ..exchange });
        }
    }

    pub(super) fn take_exchanges(&mut self) -> Vec<Exchange> {
        self.exchanges.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The frames from `first` on, one for each message: what a message says before its summary is
    /// passed over. A caller asks after each record.
    pub(super) fn frames_since(&mut self, first: u64) -> Vec<FrameSeq> {
        let parted = std::mem::take(&mut self.parted);
        let is_whole = |frame: &u64| parted.binary_search(frame).is_err();
        (first..self.sequence).filter(is_whole).map(FrameSeq::new).collect()
    }

    /// The frame that `push` makes; `None` where it makes none, or one of several records.
    pub(super) fn frame_of(&mut self, push: impl FnOnce(&mut Self)) -> Option<FrameSeq> {
        let before = self.sequence;
        push(self);
        let is_one = self.sequence > before && self.bundle.is_none();
        is_one.then(|| (self.sequence - 1).into())
    }

    /// The facets that a frame adds which was not given out yet.
    pub(super) fn facets_of(&self, frame: FrameSeq) -> Option<Vec<Facet>> {
        let at = self.ready.binary_search_by_key(&frame, |record| record.frame.sequence).ok()?;
        Some(self.ready.get(at)?.frame.added().cloned().collect())
    }

    /// Has a frame which was not given out yet tell that earlier ones are read as these facets.
    pub(super) fn tell_edit(&mut self, told_at: FrameSeq, frames: Vec<(FrameSeq, Vec<Facet>)>) {
        let at = self.ready.binary_search_by_key(&told_at, |record| record.frame.sequence);
        if let Some(record) = at.ok().and_then(|at| self.ready.get_mut(at))
            && !frames.is_empty()
        {
            record.frame.events.push(ContextEdit::event(frames));
        }
    }

    /// Tells of a session where a branch begins; the ranges of frames that are outside of it.
    ///
    /// # Errors
    /// Those of [`Branches::begin`].
    pub(super) fn begin_branch(
        &self,
        session: &str,
        branches: &mut Branches,
        fork: Fork,
    ) -> Result<Option<Vec<(u64, u64)>>, &'static str> {
        let Some(session) = self.sessions.get(session) else { return Ok(None) };
        let last_before = |line| self.places.last_before(session, line);
        branches.begin(fork, self.places.first_place(session), last_before)
    }

    /// Records an undo: drops the frames from `cut` on, except those in `kept`. The file must hold one
    /// session alone. Skips the record as `kind` and returns false where there are no such frames, or
    /// where `branches` refuses it; a refusal is noted.
    pub(super) fn take_back(
        &mut self,
        branches: &mut Branches,
        (cut, kept): (u64, &[u64]),
        kind: &str,
        mut draft: FrameDraft,
    ) -> bool {
        let next = self.next_frame();
        let session = self.current();
        let first = self.places.first(&session).unwrap_or(next);
        match branches.go_back(cut, first, next) {
            Ok(Some(outside)) => {
                let mut kept = kept.to_vec();
                kept.sort_unstable();
                let kept: Vec<_> = kept.into_iter().map(|kept| kept..kept + 1).collect();
                let left = outside.into_iter().flat_map(|(from, to)| without(from..to + 1, &kept));
                draft.outside = Some(left.map(|left| (left.start, left.end - 1)).collect());
                self.push(draft);
                return true;
            }
            Ok(None) => {}
            Err(wrong) => self.note(draft.line, wrong),
        }
        self.skip(kind);
        false
    }

    /// The last frame of a session that comes from this line.
    pub(super) fn frame_at(&self, session: &str, line: u64) -> Option<u64> {
        self.places.last_at(self.sessions.get(session)?, line)
    }

    /// The last frame of a session before all that comes from this line or a later one.
    pub(super) fn frame_before(&self, session: &str, line: u64) -> Option<u64> {
        self.places.last_before(self.sessions.get(session)?, line)
    }

    /// The sequence of the frame that the next draft becomes. Records that wait for a frame get
    /// theirs first.
    pub(super) fn next_frame(&mut self) -> u64 {
        self.finish();
        self.sequence
    }

    /// The sequence after the last frame that was made. Records that wait for a frame go on waiting.
    pub(super) fn made(&self) -> u64 {
        self.sequence
    }

    /// Makes frames of all records that wait for one.
    pub(super) fn finish(&mut self) {
        if !self.early.is_empty() {
            self.current();
        }
        self.flush();
    }

    /// Makes a frame of the records that wait for one.
    fn flush(&mut self) {
        if let Some(bundle) = self.bundle.take() {
            self.push_next(bundle.into_draft());
        }
    }

    /// The current session; the first one of a format without names is `1`.
    fn current(&mut self) -> Arc<str> {
        if self.session.is_none() {
            self.session("1");
        }
        self.session.clone().unwrap_or_default()
    }

    /// Makes the next frame of the current session. What a message holds before the summary of a
    /// compaction, which the summary replaces too, becomes a frame of its own.
    pub(super) fn push(&mut self, mut draft: FrameDraft) {
        self.flush();
        let of_api = draft.compacted.as_ref().is_some_and(|told| told.in_place.is_some());
        let at = draft.facets.iter().rposition(parts::is_compaction).filter(|at| of_api && *at > 0);
        if let Some(at) = at {
            let facets = draft.facets.drain(..at).collect();
            let before = FrameDraft {
                facets,
                timestamp: draft.timestamp.clone(),
                uuid: draft.uuid.clone(),
                payload: draft.payload.clone(),
                answer: draft.answer.clone(),
                ..FrameDraft::record(draft.source.clone(), draft.line)
            };
            if self.keeps_exchanges() {
                self.parted.push(self.sequence);
            }
            self.push_next(before);
        }
        self.push_next(draft);
    }

    fn push_next(&mut self, mut draft: FrameDraft) {
        let session = self.current();
        self.pairing.pair(&session, &mut draft);
        let FrameDraft { source, line, timestamp, uuid, is_message, mut payload, .. } = draft;
        let (mut facets, compacted) = (draft.facets, draft.compacted);
        let (session_usage, copied_before) = (draft.session_usage, draft.copied_before);
        let answer = draft.answer.map(|answer| match facets.as_slice() {
            [] => answer,
            _ => Box::new(answer.beside_answer()),
        });
        let (outside, started, edits) = (draft.outside, draft.started, draft.edits);
        facets.iter().for_each(|facet| self.note_unknown(line, facet));
        payload.values_mut().for_each(|value| flatten(value, LEVELS));
        facets.iter_mut().for_each(|facet| flatten_facet(facet, LEVELS));
        for id in facets.iter().filter_map(|facet| facet.call()?.id) {
            self.calls.insert(&call_key(&session, id), self.sequence);
        }
        payload.shrink_to_fit();
        let mut frame = Frame::new(self.sequence, source);
        frame.timestamp = timestamp;
        frame.uuid = uuid;
        let imported = Imported::of_members(line, is_message, payload);
        let file = self.file.clone();
        frame.imported =
            Some(Box::new(Imported { file, answer, session_usage, copied_before, ..imported }));
        frame.events.extend(outside.map(Branch::event));
        frame.events.extend(started.map(|start| self.start(start)));
        frame.events.extend(compacted.and_then(|told| self.compaction(&session, told)));
        frame.events.extend(edit(edits));
        self.places.push(&session, line, self.sequence);
        frame.ops.reserve_exact(facets.len());
        give_frame_ids(&mut facets, self.sequence);
        frame.ops.extend(facets.into_iter().map(FacetOp::add));
        self.push_frame(frame);
    }

    /// Says which parts were not understood.
    fn note_unknown(&mut self, line: u64, facet: &Facet) {
        if let Some(kind) = parts::unknown_type(facet) {
            self.note(
                line,
                &format!("a part of type {kind:?} is not understood, and kept as it is"),
            );
        }
        facet.children.iter().for_each(|child| self.note_unknown(line, child));
    }

    /// The event of the start of a subagent's session.
    fn start(&self, start: Start) -> Value {
        let frame = self.calls.get(&call_key(&start.session, &start.call)).map(FrameSeq::new);
        SubagentStart { session: start.session, call: start.call, frame }.event()
    }

    /// The event of a compaction; none where no frame of the session was replaced.
    fn compaction(&self, session: &Arc<str>, told: CompactionRecord) -> Option<Value> {
        let from = self.places.first(session)?;
        let to = match told.replaced {
            Replaced::All => *self.last.get(session)?,
            Replaced::BeforeLine(line) => self.places.last_before(session, line)?,
            Replaced::BeforeFrame(frame) => frame.checked_sub(1)?,
        };
        let summary = told.summary.map(|mut summary| {
            flatten_facet(&mut summary, LEVELS);
            give_ids(&mut summary, &format!("{}-{}.0", FacetType::SUMMARY, self.sequence));
            summary
        });
        let (from, to, engine) = (FrameSeq::new(from), FrameSeq::new(to), told.engine);
        (from <= to).then(|| match told.in_place {
            Some(kept) => {
                let kept = kept.into_iter().map(FrameSeq::new).map(|kept| kept..=kept);
                Compaction::event_in_place(from, to, engine, kept)
            }
            None => Compaction::event(from, to, engine, summary.as_ref()),
        })
    }

    /// Passes a frame of our own on. It keeps its sequence where that is greater than the last of
    /// its session, else it gets the next, and that is reported.
    pub(super) fn push_own(&mut self, mut frame: Frame) {
        self.flush();
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
        self.last.insert(Arc::clone(&session), self.sequence);
        self.sequence += 1;
        self.ready.push_back(Record { session, frame });
    }

    /// Counts a record that is known and that no frame holds.
    pub(super) fn skip(&mut self, kind: &str) {
        count(&mut self.report.skipped, kind);
    }

    /// Counts a request that went to no model, by its method and path.
    #[cfg(feature = "record")]
    pub(super) fn unlisted(&mut self, target: &str) {
        count(&mut self.report.unlisted, target);
    }

    /// Counts a request to a model whose API is not read. Gives the reason, as a sentence.
    pub(super) fn unread_request(&mut self, api: &str) -> String {
        self.unread_requests(api, 1)
    }

    /// As [`Sink::unread_request`], of so many that stand in one record.
    pub(super) fn unread_requests(&mut self, api: &str, requests: u64) -> String {
        for _ in 0..requests {
            count(&mut self.report.unread_requests, api);
        }
        let what =
            if requests == 1 { "a request".to_owned() } else { format!("{requests} requests") };
        format!("{what} to {api}, which is not read")
    }

    /// Takes what a record says of a window of a rate limit.
    pub(super) fn limit(&mut self, window: &LimitWindow) {
        let limits = &mut self.report.limits;
        let is_known = limits.iter_mut().rev().any(|known| known.join(window));
        if !is_known && limits.len() < LIMITS {
            limits.push(*window);
        }
    }

    /// Notes what is wrong in a record that was read all the same.
    pub(super) fn note(&mut self, line: u64, text: &str) {
        self.report.noted += 1;
        if self.report.notes.len() < NAMED_UNKNOWNS {
            let text = clip(text, REASON_LENGTH).into_owned();
            self.report.notes.push(RecordNote { line, text });
        }
    }

    /// Reports a record that was not understood, and keeps it: as its JSON text, which takes a
    /// fraction of the value's memory.
    #[expect(clippy::needless_pass_by_value, reason = "the value is let go: its text is kept")]
    pub(super) fn unknown(&mut self, line: u64, reason: impl Into<String>, record: Value) {
        self.unread(line, reason, record.to_string());
    }

    /// As [`Sink::unknown`], for text that is no JSON.
    pub(super) fn unread(&mut self, line: u64, reason: impl Into<String>, text: String) {
        let reason = clip(&reason.into(), REASON_LENGTH).into_owned();
        self.report.unknown_records += 1;
        if self.report.unknown.len() >= NAMED_UNKNOWNS {
            self.current();
            let bundle = self.bundle.get_or_insert_with(|| Bundle::new(line, reason));
            bundle.push(line, &text);
            if bundle.is_full() {
                self.flush();
            }
            return;
        }
        self.report.unknown.push(UnknownRecord { line, reason: reason.clone() });
        let mut facet = Facet::new("", FacetType::UNKNOWN, "");
        facet.attributes.put("reason", reason);
        facet.state = Some(Value::String(text));
        let draft =
            FrameDraft { facets: vec![facet], ..FrameDraft::record(Source::Environment, line) };
        let bytes = self.early_bytes + joining::bytes(&draft);
        if self.session.is_none() && self.early.len() < EARLY_UNKNOWNS && bytes <= EARLY_BYTES {
            self.early_bytes = bytes;
            self.early.push(draft);
        } else {
            self.push(draft);
        }
    }
}

/// Counts one of a kind: there are many only of what a source makes up.
fn count(kinds: &mut BTreeMap<String, u64>, kind: &str) {
    let kind = clip(kind, KIND_LENGTH);
    let is_kept = kinds.len() < SKIPPED_KINDS || kinds.contains_key(&*kind);
    let kind = if is_kept { &*kind } else { OTHER_KINDS };
    match kinds.get_mut(kind) {
        Some(count) => *count += 1,
        None => {
            kinds.insert(kind.to_owned(), 1);
        }
    }
}

/// Ids of calls repeat from session to session.
fn call_key(session: &str, id: &str) -> String {
    format!("{session}\0{id}")
}

/// The text, without its end where it has more than `limit` characters.
fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Makes a value that nests deeper than `levels` a string: its JSON text.
fn flatten(value: &mut Value, levels: usize) {
    if is_deeper(value, levels) {
        *value = Value::String(value.to_string());
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let next = levels.checked_sub(1);
    let is_deeper = |value| next.is_none_or(|next| is_deeper(value, next));
    match value {
        Value::Array(array) => next.is_none() || array.iter().any(is_deeper),
        Value::Object(object) => next.is_none() || object.values().any(is_deeper),
        _ => false,
    }
}

/// The same for what a facet holds. The parameters of a call become its arguments.
fn flatten_facet(facet: &mut Facet, levels: usize) {
    if let Some(state) = &mut facet.state {
        flatten(state, levels);
    }
    if let Some(part) = &mut facet.part {
        if let PartContent::Call { parameters, arguments, .. } = &mut part.content
            && let Some(value) = parameters.take_if(|value| is_deeper(value, levels))
        {
            arguments.get_or_insert_with(|| value.to_string().into_boxed_str());
        }
        match &mut part.source.native {
            Some(Value::Object(native)) => {
                native.values_mut().for_each(|value| flatten(value, levels));
            }
            Some(native) => flatten(native, levels),
            None => {}
        }
    }
    facet.attributes.values_mut().for_each(|value| flatten(value, levels));
    // A child stands in a list, in an object.
    let levels = levels.saturating_sub(2);
    facet.children.iter_mut().for_each(|child| flatten_facet(child, levels));
}

/// Gives the facets of a frame their ids.
fn give_frame_ids(facets: &mut [Facet], frame: u64) {
    for (index, facet) in facets.iter_mut().enumerate() {
        let mut id = format!("{}-{frame}.{index}", facet.facet_type);
        // What comes from a file says from which, wherever its owner is named.
        if let Some(name) = &facet.display_name {
            id = format!("{id}:{}", clip(name, KIND_LENGTH));
        }
        give_ids(facet, &id);
    }
}

/// The event that tells what is read of earlier frames.
fn edit(mut edits: Vec<(u64, Vec<Facet>)>) -> Option<Value> {
    for (frame, facets) in &mut edits {
        facets.iter_mut().for_each(|facet| flatten_facet(facet, LEVELS));
        give_frame_ids(facets, *frame);
    }
    let edits = edits.into_iter().map(|(frame, facets)| (FrameSeq::new(frame), facets));
    (edits.len() > 0).then(|| ContextEdit::event(edits))
}

fn give_ids(facet: &mut Facet, id: &str) {
    facet.id = FacetId::from(id);
    for (index, child) in facet.children.iter_mut().enumerate() {
        give_ids(child, &format!("{id}.{index}"));
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Transcript, KIND_LENGTH, OTHER_KINDS, SKIPPED_KINDS, Sink};
    use crate::{
        json::{self, Value},
        veil::{Facet, FacetChange, Frame},
    };

    /// The first facet of an input, whose frames read back equal.
    fn read(input: &str) -> Facet {
        let frames: Vec<_> = Transcript::new(input.as_bytes())
            .unwrap()
            .map(|record| record.unwrap().frame)
            .collect();
        for frame in &frames {
            let written = json::read(frame.to_json().to_string().as_bytes()).unwrap();
            assert_eq!(Frame::from_json(written).unwrap(), *frame);
        }
        let FacetChange::Add(facet) = &frames[0].ops[0].change else { panic!("{frames:?}") };
        Facet::clone(facet)
    }

    fn nested(levels: usize) -> String {
        format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn a_call_with_deep_arguments_is_a_call_whose_frame_reads_back() {
        for levels in [100, 101, 125] {
            let arguments = nested(levels);
            let facet = read(&format!(
                r#"[{{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"f","arguments":"{arguments}"}}}}]}}]"#
            ));
            let call = facet.call().unwrap();
            assert_eq!(call.parameters.is_some(), levels <= 100);
            assert_eq!(call.arguments.is_some(), levels > 100);
            let written = call.arguments.map(str::to_owned);
            assert_eq!(written.or_else(|| call.parameters.map(Value::to_string)), Some(arguments));
        }
    }

    #[test]
    fn what_a_report_quotes_is_bounded() {
        let mut sink = Sink::default();
        for kind in 0..1_000 {
            sink.skip(&format!("{kind}{}", "é".repeat(1_000)));
        }
        sink.unknown(1, "é".repeat(1_000), Value::Null);
        let skipped = &sink.report.skipped;
        assert_eq!((skipped.len(), skipped[OTHER_KINDS]), (SKIPPED_KINDS + 1, 800));
        assert!(skipped.keys().all(|kind| kind.chars().count() <= KIND_LENGTH + 1));
        assert!(sink.report.unknown[0].reason.chars().count() < 300);
    }

    #[test]
    fn a_deep_unknown_record_is_kept_as_its_text() {
        let record = format!(r#"{{"x":{}}}"#, nested(126));
        let facet = read(&format!("{record}\n{{\"role\":\"user\",\"content\":\"a\"}}\n"));
        assert_eq!(facet.state, Some(Value::String(record)));
    }
}
