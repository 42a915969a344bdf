//! Messages that are spread over several records.

use indexmap::IndexMap;

use super::{draft::FrameDraft, recent::Recent, sink::Sink};
use crate::{
    json::{Object, ObjectExt, Value},
    veil::Facet,
};

/// How many message ids are remembered.
const MESSAGES: usize = 1 << 16;
/// How many sessions may have a message that is not ended.
const OPEN: usize = 64;
/// And how much these may hold together, in bytes.
const OPEN_BYTES: usize = 64 << 20;
/// How many records one message may be made of, with those that wait for its end, and how much
/// text they may hold, in bytes.
pub(super) const RECORDS: usize = 1_024;
pub(super) const BYTES: usize = 32 << 20;

/// What a record is to the messages around it.
pub(super) enum Part {
    /// A part of the message with this id.
    Of(String),
    /// Something that may stand between two parts of a message, and then follows it.
    Between,
    /// A message by itself.
    Whole,
    /// A message by itself, which follows what is [put before](Part::Before) it.
    Led,
    /// Something that was sent before the message that it follows in the file; behind another message
    /// it stands between.
    Before,
}

/// Joins the records of each message, session by session.
///
/// A message keeps the place of its first record. Memory is bounded: a part that comes after
/// another message has begun, or after too many records, becomes a frame that is no message.
#[derive(Debug)]
pub(super) struct Joining {
    open: IndexMap<String, Open>,
    seen: Recent<()>,
}

/// A message that may go on.
#[derive(Debug)]
struct Open {
    id: String,
    draft: FrameDraft,
    after: Vec<FrameDraft>,
    records: usize,
    bytes: usize,
    /// Whether the message follows the others.
    is_led: bool,
}

impl Default for Joining {
    fn default() -> Self {
        Self { open: IndexMap::new(), seen: Recent::new(MESSAGES) }
    }
}

impl Joining {
    /// Takes the next record of a session.
    pub(super) fn take(&mut self, session: String, draft: FrameDraft, part: Part, sink: &mut Sink) {
        let bytes = bytes(&draft);
        let open = self.open.get_mut(&session).filter(|open| open.has_room(bytes));
        match (open, part) {
            (Some(open), Part::Of(id)) if open.id == id => open.join(draft, bytes),
            (Some(open), Part::Before) => {
                open.grow(bytes);
                open.after.push(draft);
            }
            (Some(open), Part::Between) if !open.is_led => {
                open.grow(bytes);
                open.after.push(draft);
            }
            (_, Part::Of(id)) => {
                self.end(&session, sink);
                self.begin(session, id, draft, bytes, sink);
            }
            (_, Part::Led) => {
                self.end(&session, sink);
                self.hold(
                    session,
                    Open { is_led: true, ..Open::of(String::new(), draft, bytes) },
                    sink,
                );
            }
            (_, Part::Between | Part::Whole | Part::Before) => {
                self.end(&session, sink);
                give(&session, draft, sink);
            }
        }
        while self.open.len() > 1
            && self.open.values().map(|open| open.bytes).sum::<usize>() > OPEN_BYTES
            && let Some((session, open)) = self.open.shift_remove_index(0)
        {
            open.end(&session, sink);
        }
    }

    /// Ends the messages of all sessions.
    pub(super) fn finish(&mut self, sink: &mut Sink) {
        for (session, open) in std::mem::take(&mut self.open) {
            open.end(&session, sink);
        }
    }

    fn begin(
        &mut self,
        session: String,
        id: String,
        mut draft: FrameDraft,
        bytes: usize,
        sink: &mut Sink,
    ) {
        // A message counts once, however many frames it takes.
        draft.is_message = self.seen.get(&id).is_none();
        self.seen.insert(&id, ());
        self.hold(session, Open::of(id, draft, bytes), sink);
    }

    fn hold(&mut self, session: String, open: Open, sink: &mut Sink) {
        if self.open.len() >= OPEN
            && let Some((session, open)) = self.open.shift_remove_index(0)
        {
            open.end(&session, sink);
        }
        self.open.insert(session, open);
    }

    /// Inserts a frame before the open prompt and its attachments; if no prompt is open, appends it.
    pub(super) fn begin_with(&mut self, session: &str, draft: FrameDraft, sink: &mut Sink) {
        if let Some(open) = self.open.get_mut(session).filter(|open| open.is_led) {
            open.after.insert(0, draft);
        } else {
            self.end(session, sink);
            give(session, draft, sink);
        }
    }

    /// Ends the message of a session.
    pub(super) fn end(&mut self, session: &str, sink: &mut Sink) {
        if let Some(open) = self.open.shift_remove(session) {
            open.end(session, sink);
        }
    }
}

impl Open {
    fn of(id: String, draft: FrameDraft, bytes: usize) -> Self {
        Self { id, draft, after: Vec::new(), records: 1, bytes, is_led: false }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.records < RECORDS && self.bytes + bytes <= BYTES
    }

    fn grow(&mut self, bytes: usize) {
        self.records += 1;
        self.bytes += bytes;
    }

    /// Adds a part. What the parts say of the whole message (usage, the reason to stop) is taken
    /// from the last; what tells the records apart is listed under `parts`.
    fn join(&mut self, mut part: FrameDraft, bytes: usize) {
        self.grow(bytes);
        let first = note(&self.draft);
        let next = note(&part);
        match self.draft.payload.get_mut("parts") {
            Some(Value::Array(parts)) => parts.push(next),
            _ => self.draft.payload.put("parts", Value::Array(vec![first, next])),
        }
        self.draft.facets.extend(part.facets);
        part.payload.shift_remove("record");
        self.draft.payload.extend(part.payload);
        let before = self.draft.answer.take().unwrap_or_default();
        self.draft.answer = part.answer;
        self.draft.add_answer(*before);
    }

    fn end(mut self, session: &str, sink: &mut Sink) {
        let mut last = None;
        if self.is_led {
            // The first frame of a branch tells where it begins.
            if let Some(first) = self.after.first_mut() {
                first.outside = self.draft.outside.take();
            }
            last = Some(self.draft);
        } else {
            give(session, self.draft, sink);
        }
        for draft in self.after.into_iter().chain(last) {
            give(session, draft, sink);
        }
    }
}

fn give(session: &str, draft: FrameDraft, sink: &mut Sink) {
    sink.session(session);
    sink.push(draft);
}

/// What tells a record from the others of its message: ids, time, and the number of its blocks.
fn note(draft: &FrameDraft) -> Value {
    let mut note = Object::new();
    note.put("line", draft.line);
    note.put_some("uuid", draft.uuid.as_deref());
    note.put_some("timestamp", draft.timestamp.as_deref());
    let parent = draft.payload.get("record").and_then(|record| record.get("parentUuid"));
    note.put_some("parentUuid", parent.cloned());
    note.put("blocks", draft.facets.len() as u64);
    note.into()
}

/// The size of a value in bytes, roughly.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(array) => array.iter().map(|value| 8 + size(value)).sum(),
        Value::Object(object) => size_of_members(object),
        _ => 8,
    }
}

/// The size of an object in bytes, roughly.
pub(super) fn size_of_members(object: &Object) -> usize {
    object.iter().map(|(key, value)| 8 + key.len() + size(value)).sum()
}

/// The size of a draft in bytes, roughly.
pub(super) fn bytes(draft: &FrameDraft) -> usize {
    fn of_facet(facet: &Facet) -> usize {
        let part = facet.part.as_deref();
        let native = part.and_then(|part| part.source.native.as_ref());
        let parameters = facet.call().and_then(|call| call.parameters);
        let values = facet.state.iter().chain(facet.attributes.values());
        let values = values.chain(native).chain(parameters).map(size).sum::<usize>();
        facet.content.len() + values + facet.children.iter().map(of_facet).sum::<usize>()
    }
    draft.facets.iter().map(of_facet).sum::<usize>()
        + draft.payload.values().map(size).sum::<usize>()
}
