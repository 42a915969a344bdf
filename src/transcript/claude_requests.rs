//! The requests that Claude Code writes into its sessions since version 2.1.332.
//!
//! `api-request-shape` holds a system prompt and tools, `api-request-blob` a message, both by the
//! SHA-256 of their JSON with sorted keys. `api-request` says what a request has beyond an earlier one:
//! how many of its messages it keeps, and the hashes of those that follow. A hash that no blob has is
//! that of an answer of the file. What does not have the hash that is stated is never used.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt::Write,
    sync::Arc,
};

use indexmap::IndexMap;
use sha2::{Digest, Sha256};

use super::{
    Api, BodyText, Exchange, chat, draft::FrameDraft, exchange::model_named, recent::Recent,
    sink::Sink, take,
};
use crate::{
    id::{FacetType, FrameSeq},
    json::{self, Object, ObjectExt, Value},
    veil::Source,
};

/// How many bytes of messages are kept. The oldest are forgotten first.
const BYTES: usize = 256 << 20;
/// How many messages, and how many requests, are known. All are forgotten where there are more.
const KNOWN: usize = 1 << 18;
/// How many shapes, bodies, and answers that may go on, are kept.
const FEW: usize = 64;
/// How many requests may wait for their answers.
const WAITING: usize = 1_024;

/// The requests of a file, from the records that it holds them in.
#[derive(Debug, Default)]
pub(super) struct LoggedRequests {
    shapes: IndexMap<String, Arc<Object>>,
    /// By their hashes.
    messages: IndexMap<String, Message>,
    bytes: usize,
    /// The index of the first message whose text was not forgotten.
    oldest: usize,
    requests: IndexMap<String, Link>,
    /// The shape of requests that are not answered, and the line of each, by its id.
    shape_of: IndexMap<String, (Arc<Object>, u64)>,
    /// The shape of the last answer of each session, and the line of its system prompt.
    in_force: HashMap<String, (Arc<Object>, u64)>,
    waiting: VecDeque<Waiting>,
    /// The last answers, by session and id, as far as they are written down.
    answers: IndexMap<String, Answer>,
    /// The line of each text and result, by session.
    lines: Recent<u64>,
    /// The last body of each session and shape, which the next one of them shares most with. The one
    /// before is the last of all.
    bodies: IndexMap<String, BodyText>,
    /// The messages that no request named so far, by their hashes: the line of each.
    unnamed: IndexMap<String, u64>,
    /// How many requests have placeholders, and which parameters others lack; the line of the last.
    cut: u64,
    withheld: BTreeSet<String>,
    last_partial: u64,
    /// How many answers are copies, and the line of the last.
    copies: u64,
    last_copy: u64,
}

#[derive(Debug)]
struct Message {
    text: String,
    session: String,
    /// The line of the first record that it was made of, and its frame, where they are known.
    line: Option<u64>,
    frame: Option<FrameSeq>,
}

/// The messages of a request.
#[derive(Debug)]
struct Link {
    /// The index of the request that it goes on from, and how many messages of that it keeps: more than
    /// that one keeps, so each link gives messages.
    base: Option<usize>,
    /// Another before it, and how many there are, so that one is found in few steps.
    jump: Option<usize>,
    depth: usize,
    keep: usize,
    tail: Vec<String>,
}

/// A request whose answer was not read yet.
#[derive(Debug)]
struct Waiting {
    id: String,
    session: String,
    line: u64,
    record: Object,
    /// The line of the first record of the answer.
    answer: Option<u64>,
    status: Option<u64>,
    failure: Option<String>,
}

#[derive(Debug)]
struct Answer {
    session: String,
    line: u64,
    content: Vec<Value>,
    is_new: bool,
}

impl LoggedRequests {
    /// Whether the file holds requests.
    pub(super) fn is_used(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether an answer names a request before the file holds anything of requests: a fork copied it.
    pub(super) fn is_copy(&mut self, record: &Object, line: u64) -> bool {
        let is_copy = record.str_at("requestRef").is_some() && self.is_empty();
        self.copies += u64::from(is_copy);
        self.last_copy = if is_copy { line } else { self.last_copy };
        is_copy
    }

    /// Whether the file holds nothing of requests.
    fn is_empty(&self) -> bool {
        self.shapes.is_empty() && !self.is_used()
    }

    /// Takes a system prompt with tools.
    pub(super) fn shape(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        let hash = take::text(&mut record, "shapeHash").unwrap_or_default();
        let Some(Value::Object(shape)) = record.shift_remove("shape") else { return };
        if self.shapes.contains_key(&hash) {
            return;
        }
        let shape = Value::from(shape);
        if hash_of(&shape) != hash {
            return sink
                .note(line, "a system prompt with tools does not have the hash that is stated");
        }
        if self.shapes.len() >= FEW {
            self.shapes.shift_remove_index(0);
        }
        if let Value::Object(shape) = shape {
            self.shapes.insert(hash, Arc::new(shape));
        }
    }

    /// The system prompt and the tools of the request that an answer names, where the session had others
    /// before, as a frame.
    pub(super) fn begins(
        &mut self,
        record: &Object,
        session: &str,
        sink: &Sink,
    ) -> Option<FrameDraft> {
        let (shape, line) = self.shape_of.shift_remove(record.str_at("requestRef")?)?;
        let before = self.in_force.get(session);
        if before.is_some_and(|(before, _)| *before == shape) {
            return None;
        }
        let mut draft = FrameDraft::record(Source::System, line);
        let mut told_at = line;
        let system = shape.get("system");
        if let Some((_, at)) = before.filter(|(before, _)| before.get("system") == system) {
            told_at = *at;
        } else {
            let frame = before.and_then(|(_, at)| sink.frame_at(session, *at));
            draft.edits.extend(frame.map(|frame| (frame, Vec::new())));
            chat::content(system.cloned().unwrap_or_default(), &FacetType::SYSTEM, &mut draft);
        }
        draft.payload.put_some("tools", shape.get("tools").cloned());
        self.in_force.insert(session.to_owned(), (shape, told_at));
        Some(draft)
    }

    /// Takes a message.
    pub(super) fn blob(&mut self, mut record: Object, session: &str, line: u64, sink: &mut Sink) {
        let hash = take::text(&mut record, "hash").unwrap_or_default();
        let Some(message) = record.shift_remove("message").filter(|_| sink.keeps_exchanges())
        else {
            return;
        };
        if hash_of_message(&message) != hash {
            return sink.note(line, "a message of a request does not have the hash that is stated");
        }
        let of = self.line_of(&message, session);
        if self.unnamed.len() >= KNOWN {
            self.unnamed.clear();
        }
        if !self.messages.contains_key(&hash) {
            self.unnamed.insert(hash.clone(), line);
        }
        self.keep(hash, &message, session, of);
    }

    fn keep(&mut self, hash: String, message: &Value, session: &str, line: Option<u64>) {
        let known = self.messages.get_mut(&hash).filter(|known| known.session == session);
        if let Some(known) = known.filter(|known| !known.text.is_empty()) {
            known.line = known.line.or(line);
            return;
        }
        let text = message.to_string();
        if self.messages.len() >= KNOWN {
            (self.bytes, self.oldest) = (0, 0);
            self.messages.clear();
        }
        self.bytes += text.len();
        let message = Message { text, session: session.to_owned(), line, frame: None };
        let (at, before) = self.messages.insert_full(hash, message);
        self.bytes -= before.map_or(0, |before| before.text.len());
        self.oldest = self.oldest.min(at);
        while self.bytes > BYTES
            && let Some((_, oldest)) = self.messages.get_index_mut(self.oldest)
        {
            self.bytes -= std::mem::take(&mut oldest.text).len();
            self.oldest += 1;
        }
    }

    /// Takes note of a text, or of the id of a call that is answered, of a record.
    pub(super) fn note(&mut self, session: &str, text: &str, line: u64) {
        self.lines.insert(&key(session, text), line);
    }

    /// The line of the first record that a message was made of.
    fn line_of(&self, message: &Value, session: &str) -> Option<u64> {
        let line = |text: &str| self.lines.get(&key(session, text));
        match message.get("content")? {
            Value::String(text) => line(text),
            content => content.as_array()?.iter().find_map(|block| {
                line(block.str_at("tool_use_id").or_else(|| block.str_at("text"))?)
            }),
        }
    }

    /// Takes a part of an answer, with the request that it names.
    pub(super) fn answer(&mut self, record: &Object, session: &str, line: u64) {
        let asked = record.str_at("requestRef");
        let waiting = asked.and_then(|asked| self.waiting.iter_mut().find(|of| of.id == asked));
        if let Some(waiting) = waiting {
            waiting.answer.get_or_insert(line);
        }
        let Some(message) = record.get("message").filter(|_| self.is_used()) else { return };
        let content = message.get("content").and_then(Value::as_array).unwrap_or_default();
        let id = key(session, message.str_at("id").unwrap_or_default());
        if self.answers.len() >= FEW && !self.answers.contains_key(&id) {
            self.answers.shift_remove_index(0);
        }
        let known = self.answers.entry(id).or_insert_with(|| Answer {
            session: session.to_owned(),
            line,
            content: Vec::new(),
            is_new: true,
        });
        known.content.extend(content.iter().cloned());
        known.is_new = true;
    }

    /// Has later requests know the answers so far.
    fn settle(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        for answer in answers.values_mut().filter(|answer| answer.is_new) {
            answer.is_new = false;
            let mut message = Object::new();
            message.put("role", "assistant");
            message.put("content", Value::Array(answer.content.clone()));
            let message = Value::from(message);
            let hash = hash_of_message(&message);
            self.keep(hash, &message, &answer.session, Some(answer.line));
        }
        self.answers = answers;
    }

    /// Takes a request. Those before it whose answers have frames are given out.
    pub(super) fn request(&mut self, record: Object, session: &str, line: u64, sink: &mut Sink) {
        let text = |key: &str| record.str_at(key).unwrap_or_default().to_owned();
        let id = text("id");
        if let Some(shape) = self.shapes.get(&text("shapeHash")) {
            if self.shape_of.len() >= WAITING {
                self.shape_of.shift_remove_index(0);
            }
            self.shape_of.insert(id.clone(), (Arc::clone(shape), line));
        }
        if !sink.keeps_exchanges() || self.requests.contains_key(&id) {
            return;
        }
        self.settle();
        self.give(false, sink);
        if self.requests.len() >= KNOWN {
            self.requests.clear();
        }
        let hashes = record.get("tail").and_then(Value::as_array).unwrap_or_default();
        let tail: Option<Vec<String>> =
            hashes.iter().map(|hash| hash.as_str().map(str::to_owned)).collect();
        let keep = match record.get("keep") {
            None | Some(Value::Null) => Some(0),
            Some(keep) => keep.as_u64().and_then(|keep| usize::try_from(keep).ok()),
        };
        let (Some(tail), Some(keep)) = (tail, keep) else {
            let unread = "cannot read `keep` or `tail` of a request: it is worked out instead";
            return sink.note(line, unread);
        };
        for hash in &tail {
            self.unnamed.swap_remove(hash);
        }
        let withheld = record.get("withheld").and_then(Value::as_array).unwrap_or_default();
        self.withheld.extend(withheld.iter().filter_map(Value::as_str).map(str::to_owned));
        let is_cut = record.get("cut").is_some_and(|cut| !cut.is_null());
        self.cut += u64::from(is_cut);
        if is_cut || !withheld.is_empty() {
            self.last_partial = line;
        }
        let base = record.str_at("base").and_then(|base| self.requests.get_index_of(base));
        let link = self.link(base, keep, tail);
        self.requests.insert(id.clone(), link);
        let session = session.to_owned();
        let (answer, status, failure) = Default::default();
        let waiting = Waiting { id, session, line, record, answer, status, failure };
        self.waiting.push_back(waiting);
        if self.waiting.len() > WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.give_one(oldest, sink);
        }
    }

    /// Leads to the last request before this base that keeps less. O(log n).
    fn link(&self, mut base: Option<usize>, keep: usize, tail: Vec<String>) -> Link {
        let at = |index: Option<usize>| Some(self.requests.get_index(index?)?.1);
        while let Some(link) = at(base).filter(|link| keep <= link.keep) {
            let is_far = at(link.jump).is_some_and(|over| keep <= over.keep);
            base = if is_far { link.jump } else { link.base };
        }
        let depth = |index| at(index).map_or(0, |link| link.depth);
        let over = at(base).and_then(|link| link.jump);
        let far = at(over).and_then(|link| link.jump);
        // Two jumps of one length are one of their sum.
        let is_even = depth(base) + depth(far) == depth(over) * 2;
        let jump = if is_even { far } else { base };
        Link { base, jump, depth: depth(base) + 1, keep, tail }
    }

    /// Takes why the last request of a session failed.
    pub(super) fn failed(&mut self, record: &Object, session: &str) {
        let mut waiting = self.waiting.iter_mut().rev();
        let last = waiting.find(|of| of.session == session && of.answer.is_none());
        let (Some(last), Some(error)) = (last, record.get("error")) else { return };
        last.status = error.get("status").and_then(Value::as_u64);
        let said = error.str_at("formatted").or_else(|| error.str_at("message"));
        let status = last.status.map(|status| format!("status {status}"));
        last.failure = status.or_else(|| said.map(str::to_owned));
    }

    /// The compaction's own request, which the client does not log. `None` of a session without
    /// requests.
    pub(super) fn compacted(&self, record: &Object, line: u64) -> Option<Exchange> {
        let metadata = record.get("compactMetadata");
        self.is_used().then(|| Exchange {
            line: Some(line),
            api: Api::Messages,
            time: record.str_at("timestamp").map(str::to_owned),
            duration_ms: metadata.and_then(|of| of.get("durationMs")?.as_u64()),
            unread: Some("the client logs no request of a compaction".to_owned()),
            request: "{}".into(),
            ..Exchange::default()
        })
    }

    /// Gives out the requests whose answers have frames; at the end all.
    pub(super) fn give(&mut self, is_end: bool, sink: &mut Sink) {
        if is_end {
            self.settle();
            self.note_partial(sink);
            let copies = std::mem::take(&mut self.copies);
            if copies > 0 && self.is_empty() {
                sink.note(
                    self.last_copy,
                    &format!(
                        "the file lacks the requests that answers name: {copies} count as what a \
                         fork copied"
                    ),
                );
            }
        }
        for waiting in std::mem::take(&mut self.waiting) {
            let frame = waiting.answer.and_then(|line| sink.frame_at(&waiting.session, line));
            if is_end || frame.is_some() {
                self.give_one(waiting, sink);
            } else {
                self.waiting.push_back(waiting);
            }
        }
    }

    /// Says what the client left out of what it wrote down, and which messages it wrote down for nothing.
    fn note_partial(&mut self, sink: &mut Sink) {
        if let cut @ 1.. = std::mem::take(&mut self.cut) {
            let says = format!("placeholders stand in the messages of {cut} of the requests");
            sink.note(self.last_partial, &says);
        }
        let withheld: Vec<_> = std::mem::take(&mut self.withheld).into_iter().collect();
        if !withheld.is_empty() {
            let names = withheld.join(", ");
            sink.note(self.last_partial, &format!("requests lack parameters: {names}"));
        }
        let unnamed = std::mem::take(&mut self.unnamed);
        if let Some(line) = unnamed.values().max() {
            let count = unnamed.len();
            sink.note(*line, &format!("no request has {count} of the messages that were logged"));
        }
    }

    fn give_one(&mut self, waiting: Waiting, sink: &mut Sink) {
        let frame = |line: Option<u64>| sink.frame_at(&waiting.session, line?).map(FrameSeq::new);
        let shape = waiting.record.str_at("shapeHash").and_then(|hash| self.shapes.get(hash));
        let in_force = self.in_force.get(&waiting.session);
        let system = in_force.filter(|(in_force, _)| shape.is_some_and(|of| of == in_force));
        let system_frame = frame(system.map(|(_, line)| *line));
        let answer = frame(waiting.answer);
        // What failed stands behind all that came before it.
        let before = || sink.frame_before(&waiting.session, waiting.line).map(FrameSeq::new);
        let last_frame = if answer.is_none() { before() } else { None };
        let (body, frames, unread) = match self.body(&waiting, sink) {
            Ok((body, frames)) => (body, frames, None),
            Err(lacks) => {
                sink.note(waiting.line, &format!("cannot put a request together: {lacks}"));
                // One that was answered is worked out.
                if answer.is_some() {
                    return;
                }
                ("{}".into(), vec![last_frame], Some(lacks.to_owned()))
            }
        };
        let model = waiting.record.get("params").and_then(|params| params.str_at("model"));
        let failure = waiting.failure.or_else(|| Some("the file holds no answer".to_owned()));
        sink.session(&waiting.session);
        sink.exchange(Exchange {
            line: Some(waiting.line),
            api: Api::Messages,
            time: waiting.record.str_at("timestamp").map(str::to_owned),
            model: model.and_then(model_named),
            status: waiting.status,
            failure: failure.filter(|_| waiting.answer.is_none()),
            answer_frames: answer.into_iter().collect(),
            request: body,
            system_frame,
            last_frame,
            frames,
            unread,
            ..Exchange::default()
        });
    }

    /// The hashes of the messages of a request; `None` where what it keeps is not known.
    fn hashes(&self, id: &str) -> Option<Vec<&String>> {
        let mut link = self.requests.get(id)?;
        let mut wanted = link.keep.saturating_add(link.tail.len());
        let mut runs = Vec::new();
        // A link leads to an earlier request, so this ends.
        loop {
            if wanted > link.keep {
                runs.push(link.tail.get(..wanted - link.keep)?);
                wanted = link.keep;
            }
            if wanted == 0 {
                return Some(runs.into_iter().rev().flatten().collect());
            }
            link = self.requests.get_index(link.base?)?.1;
        }
    }

    /// The body of a request, and the first frame of each of its messages.
    fn body(
        &mut self,
        waiting: &Waiting,
        sink: &Sink,
    ) -> Result<(BodyText, Vec<Option<FrameSeq>>), &'static str> {
        let lacks_request = "the request that it goes on from is not in the file, or too far back";
        let hashes = self.hashes(&waiting.id).ok_or(lacks_request)?;
        let places: Option<Vec<usize>> =
            hashes.into_iter().map(|hash| self.messages.get_index_of(hash)).collect();
        let lacks_message = "a message of it is not in the file, or too far back";
        let places = places.ok_or(lacks_message)?;
        let shape = waiting.record.str_at("shapeHash").and_then(|hash| self.shapes.get(hash));
        let shape =
            shape.ok_or("its system prompt and tools are not in the file, or too far back")?;
        let params = waiting.record.get("params").and_then(Value::as_object);
        let mut body = params.cloned().unwrap_or_default();
        // It is a header on the wire.
        body.shift_remove("betas");
        let mut head = Value::from(Object::clone(shape));
        let mut marked: IndexMap<usize, Value> = IndexMap::new();
        let marks = waiting.record.get("cacheControl").and_then(Value::as_array);
        for mark in marks.unwrap_or_default() {
            let path = mark.get("path").and_then(Value::as_array).unwrap_or_default();
            let value = mark.get("value").cloned().unwrap_or_default();
            let is_put = match path {
                [list, index, rest @ ..] if list.as_str() == Some("messages") => {
                    let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                    let of = index.and_then(|index| Some((index, *places.get(index)?)));
                    of.is_some_and(|(index, place)| {
                        let text = self.messages.get_index(place).map(|(_, message)| &message.text);
                        let read = || json::read(text?.as_bytes()).ok();
                        let message =
                            marked.entry(index).or_insert_with(|| read().unwrap_or_default());
                        put_mark(message, rest, value)
                    })
                }
                path => put_mark(&mut head, path, value),
            };
            if !is_put {
                return Err("a mark of the cache has no place in it");
            }
        }
        let mut messages = String::new();
        let mut frames = Vec::with_capacity(places.len());
        for (index, place) in places.into_iter().enumerate() {
            let Some((_, message)) = self.messages.get_index_mut(place) else {
                return Err(lacks_message);
            };
            if message.text.is_empty() {
                return Err(lacks_message);
            }
            let is_own = message.session == waiting.session;
            if let (None, Some(line), true) = (message.frame, message.line, is_own) {
                message.frame = sink.frame_at(&message.session, line).map(FrameSeq::new);
            }
            frames.push(message.frame.filter(|_| is_own));
            messages.push_str(if messages.is_empty() { "" } else { "," });
            match marked.get(&index) {
                Some(marked) => messages.push_str(&marked.to_string()),
                None => messages.push_str(&message.text),
            }
        }
        // The order of the members is that of the wire.
        let model = body.shift_remove("model").unwrap_or_default();
        let mut text = format!("{{\"model\":{model},\"messages\":[{messages}]");
        let head = head.as_object().into_iter().flatten();
        for (key, value) in head.chain(body.iter()) {
            let _ = write!(text, ",{}:{value}", Value::from(key.as_str()));
        }
        text.push('}');
        let of = key(&waiting.session, waiting.record.str_at("shapeHash").unwrap_or_default());
        let before = self.bodies.shift_remove(&of);
        let before = before.or_else(|| self.bodies.last().map(|(_, body)| body.clone()));
        let before = before.unwrap_or_default();
        let start = before.shared_with(text.as_bytes());
        let body = BodyText::after(&before, start, text.as_bytes());
        let body = body.unwrap_or_else(|| text.as_str().into());
        if self.bodies.len() >= FEW {
            self.bodies.shift_remove_index(0);
        }
        self.bodies.insert(of, body.clone());
        Ok((body, frames))
    }
}

fn key(session: &str, text: &str) -> String {
    [session, text.trim()].join("\0")
}

/// Puts a mark of the cache at the end of a path. False where the path leads nowhere.
fn put_mark(mut at: &mut Value, path: &[Value], mark: Value) -> bool {
    for step in path {
        if let (Value::String(text), Value::Number(_)) = (&*at, step) {
            *at = Value::Array(vec![text_block(text)]);
        }
        let next = match at {
            Value::Object(object) => step.as_str().and_then(|key| object.get_mut(key)),
            Value::Array(list) => {
                let index = step.as_u64().and_then(|index| usize::try_from(index).ok());
                index.and_then(|index| list.get_mut(index))
            }
            _ => None,
        };
        let Some(next) = next else { return false };
        at = next;
    }
    let Value::Object(block) = at else { return false };
    block.put("cache_control", mark);
    true
}

fn text_block(text: &str) -> Value {
    let mut block = Object::new();
    block.put("type", "text");
    block.put("text", text);
    block.into()
}

/// The hash of a message: a text alone counts as a block of text.
fn hash_of_message(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => {
            let mut message = message.as_object().cloned().unwrap_or_default();
            message.put("content", Value::Array(vec![text_block(text)]));
            hash_of(&message.into())
        }
        _ => hash_of(message),
    }
}

/// The SHA-256 of the JSON of a value, the members of its objects sorted.
fn hash_of(value: &Value) -> String {
    let mut text = String::new();
    write_sorted(value, &mut text);
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_sorted(value, out);
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (index, value) in list.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_sorted(value, out);
            }
            out.push(']');
        }
        value => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
#[path = "claude_requests_tests.rs"]
mod tests;
