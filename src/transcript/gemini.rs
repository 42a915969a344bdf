//! Gemini CLI sessions: one document, or a log by line in which later lines replace messages.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::{
    branches::Branches,
    draft::{CompactionRecord, FrameDraft, Replaced},
    gemini_message::{RESPONSE, give, is_notice},
    joining,
    live_messages::LiveMessages,
    recent::Recent,
    sink::Sink,
    take,
};
use crate::json::{Object, Value};

/// How many messages are held back, so that a later line can still replace them. A line replaces
/// the message that it was written for: the last one, or one of the same turn.
#[cfg(not(test))]
const HELD: usize = 256;
#[cfg(test)]
const HELD: usize = 4;
/// How much they may hold, in bytes.
const HELD_BYTES: usize = 64 << 20;

/// Reads `{sessionId, projectHash, messages}`, and the same messages by line.
#[derive(Default)]
pub(super) struct GeminiReader {
    /// The messages that may still be replaced, in the order of their first lines.
    held: IndexMap<Key, (u64, Object)>,
    held_bytes: usize,
    /// Of the messages that were given out by id, whether they are in the context.
    given: Recent<bool>,
    nameless: u64,
    /// The ids of the messages in the context that were given out.
    live: LiveMessages<Option<String>>,
    branches: Branches,
    /// The results that were shown: the program writes each a second time, as a message of the user,
    /// and again when it resumes a session.
    shown: Recent<()>,
    /// A context that was written anew, while the next line may write another.
    renewed: Option<(Object, u64)>,
}

/// What a message is replaced by.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Id(String),
    /// Without an id it is not replaced; this is the how manieth of those it is.
    Nameless(u64),
}

impl GeminiReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let Some(messages) = value.get("messages").and_then(Value::as_array) else { return false };
        let is_gemini = |message: &Value| message.str_at("type") == Some("gemini");
        value.get("projectHash").is_some() || messages.iter().any(is_gemini)
    }

    /// The header of a log by line, or an answer in it.
    pub(super) fn is_line(value: &Value) -> bool {
        let has = |key: &str| value.str_at(key).is_some();
        let is_header = has("sessionId") && has("projectHash") && value.get("type").is_none();
        is_header || value.str_at("type") == Some("gemini") && has("id")
    }

    /// Takes the results out of a message that were shown before; `None` where it is nothing else.
    fn without_repeats(&mut self, mut message: Object) -> Option<Object> {
        let calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
        for part in calls.filter_map(|call| call.get("result")?.as_array()).flatten() {
            self.shown.insert(&part.to_string(), ());
        }
        let is_result = |part: &Value| part.get(RESPONSE).is_some();
        if let Some(Value::Array(parts)) = message.get_mut("content")
            && parts.iter().any(is_result)
        {
            parts.retain(|part| {
                let text = part.to_string();
                let is_new = self.shown.get(&text).is_none();
                if is_result(part) {
                    self.shown.insert(&text, ());
                }
                is_new
            });
            if parts.is_empty() {
                return None;
            }
        }
        Some(message)
    }

    /// Takes a message of a line; one with an id that is held replaces what is held.
    fn hold(&mut self, message: Object, line: u64, sink: &mut Sink) {
        let Some(message) = self.without_repeats(message) else { return sink.skip(REPEATED) };
        let key = match id_of(&message) {
            Some(id) if self.given.get(&id) == Some(true) => {
                let reason = "replaces a message that was given out already";
                return sink.unknown(line, reason, message.into());
            }
            Some(id) => Key::Id(id),
            None => {
                self.nameless += 1;
                Key::Nameless(self.nameless)
            }
        };
        self.held_bytes += joining::size_of_members(&message);
        match self.held.get_mut(&key) {
            Some((_, held)) => {
                self.held_bytes -= joining::size_of_members(held);
                *held = message;
                sink.skip("replaced message");
            }
            None => {
                self.held.insert(key, (line, message));
            }
        }
        while self.held.len() > HELD || self.held.len() > 1 && self.held_bytes > HELD_BYTES {
            self.give_first(sink);
        }
    }

    fn give_first(&mut self, sink: &mut Sink) {
        if let Some((key, (line, message))) = self.held.shift_remove_index(0) {
            self.held_bytes -= joining::size_of_members(&message);
            let id = match key {
                Key::Id(id) => Some(id),
                Key::Nameless(_) => None,
            };
            self.give(id, message, line, sink);
        }
    }

    fn give_all(&mut self, sink: &mut Sink) {
        while !self.held.is_empty() {
            self.give_first(sink);
        }
    }

    fn give(&mut self, id: Option<String>, message: Object, line: u64, sink: &mut Sink) {
        let frame = sink.next_frame();
        give(message, line, None, sink);
        // Notices are in no context.
        if sink.next_frame() == frame {
            return;
        }
        if let Some(id) = &id {
            self.given.insert(id, true);
        }
        self.live.push(frame, id);
    }

    /// The user went back before a message: it and what follows leave the context.
    fn rewind(&mut self, record: Object, line: u64, sink: &mut Sink) {
        let wanted = record.str_at(REWIND);
        let Some(at) = self.ids().iter().rposition(|id| id.is_some() && *id == wanted) else {
            sink.note(line, "goes back to a message that the context does not hold");
            return sink.skip(REWIND);
        };
        self.take_back(at, REWIND, draft_of(record, line), sink);
    }

    /// The ids of the messages in the context, those that are held after those that were given out.
    fn ids(&self) -> Vec<Option<&str>> {
        let given = self.live.messages().iter().map(|(_, id)| id.as_deref());
        let held = self.held.iter().filter(|(_, (_, message))| !is_notice(message));
        let held = held.map(|(key, _)| match key {
            Key::Id(id) => Some(id.as_str()),
            Key::Nameless(_) => None,
        });
        given.chain(held).collect()
    }

    /// Lets the messages from this index on, of [`GeminiReader::ids`], leave the context by a record.
    fn take_back(&mut self, at: usize, kind: &str, record: FrameDraft, sink: &mut Sink) {
        let forgotten = self.live.forgotten();
        self.give_all(sink);
        // To make room the oldest may have been forgotten.
        let now_forgotten =
            usize::try_from(self.live.forgotten() - forgotten).unwrap_or(usize::MAX);
        let at = at.saturating_sub(now_forgotten);
        let (cut, kept) = self.live.cut(at);
        if sink.take_back(&mut self.branches, (cut, &kept), kind, record) {
            for (_, id) in self.live.split_off(at) {
                id.iter().for_each(|id| self.given.insert(id, false));
            }
        }
    }

    /// Takes the summary that stands before the messages from this index on, of
    /// [`GeminiReader::ids`], in the place of those before it.
    fn compress(&mut self, at: usize, summary: Object, line: u64, sink: &mut Sink) {
        let id = id_of(&summary);
        let first = self.live.messages().get(at).map(|(frame, _)| *frame);
        let replaced = first.map_or(Replaced::All, Replaced::BeforeFrame);
        let told = CompactionRecord { replaced, ..CompactionRecord::of("gemini-cli") };
        let frame = sink.next_frame();
        give(summary, line, Some(told), sink);
        let replaced = self.live.replace_before(at, frame, id.clone());
        replaced
            .iter()
            .filter_map(|(_, id)| id.as_ref())
            .for_each(|id| self.given.insert(id, false));
        id.iter().for_each(|id| self.given.insert(id, true));
    }

    /// `$set` with messages writes the model's context anew. Of several with nothing said between
    /// them the last one holds: a resumed session writes its beginning first, then all of it.
    fn set(&mut self, record: Object, line: u64, sink: &mut Sink) {
        let messages = record.get(SET).and_then(|change| change.get("messages"));
        if messages.and_then(Value::as_array).is_none() {
            return sink.skip(SET);
        }
        let earlier = self.renewed.replace((record, line));
        if earlier.is_some() {
            sink.skip(SET);
        }
    }

    /// Takes over the context that was written anew last. Messages that were seen stay as they were
    /// first sent; the others (a resumed session, a summary) are new, and those that are not among
    /// them leave the context.
    fn renew(&mut self, sink: &mut Sink) {
        let Some((mut record, line)) = self.renewed.take() else { return };
        let list = match record.get_mut(SET) {
            Some(Value::Object(change)) => take::list(change, "messages"),
            _ => None,
        };
        let Some(list) = list else { return };
        let mut kept_from = self.drop_missing(&list, record, line, sink);
        for message in list {
            let message = match message {
                Value::Object(message) => message,
                other => {
                    sink.unknown(line, format!("{} is no message", other.kind()), other);
                    continue;
                }
            };
            let id = id_of(&message);
            let is_seen = id.as_ref().is_some_and(|id| {
                self.given.get(id) == Some(true) || self.held.contains_key(&Key::Id(id.clone()))
            });
            if let Some(at) = kept_from.take() {
                // It is the first of them.
                self.compress(at, message, line, sink);
            } else if !is_seen {
                self.hold(message, line, sink);
            }
        }
    }

    /// Lets the messages leave the context that are not in the new one. Where the first of the new
    /// ones is a summary that replaces them, gives the index of the first message that stays.
    fn drop_missing(
        &mut self,
        list: &[Value],
        record: Object,
        line: u64,
        sink: &mut Sink,
    ) -> Option<usize> {
        let new: HashSet<&str> = list.iter().filter_map(|message| message.str_at("id")).collect();
        let all = self.ids();
        let is_kept = |id: Option<&str>| id.is_some_and(|id| new.contains(id));
        let first = all.iter().position(|id| is_kept(*id)).unwrap_or(all.len());
        let kept = all.iter().filter(|id| is_kept(**id)).count();
        if kept == all.len() {
            sink.skip(SET);
            return None;
        }
        let left = all.len() - first;
        let is_summary = list.first().is_some_and(|message| self.is_summary(message));
        if is_summary && kept == left {
            sink.skip(SET);
            self.give_all(sink);
            return Some(self.live.messages().len().saturating_sub(kept));
        }
        if all.iter().skip(kept).any(|id| is_kept(*id)) {
            sink.note(line, "messages left the context before others that stayed in it");
            sink.skip(SET);
            return None;
        }
        self.take_back(kept, SET, draft_of(record, line), sink);
        None
    }

    /// Whether a message is the summary that a compression puts first.
    fn is_summary(&self, message: &Value) -> bool {
        let is_new = message.str_at("id").is_none_or(|id| self.given.get(id) != Some(true));
        let has_tag = |text: &Value| text.as_str().is_some_and(|text| text.contains(SNAPSHOT));
        let content = message.get("content");
        let parts = content.and_then(Value::as_array).unwrap_or_default();
        let is_said = parts.iter().filter_map(|part| part.get("text")).any(has_tag);
        is_new
            && message.str_at("type") == Some("user")
            && (is_said || content.is_some_and(has_tag))
    }
}

/// The member of a line that goes back, and of one that changes what is known of the session.
const REWIND: &str = "$rewindTo";
const SET: &str = "$set";
/// A message that holds nothing but results which were shown.
const REPEATED: &str = "repeated result";
/// How the program has a model begin the summary of a compression.
const SNAPSHOT: &str = "<state_snapshot>";

fn draft_of(record: Object, line: u64) -> FrameDraft {
    let timestamp = record.str_at("timestamp").map(str::to_owned);
    FrameDraft::of_record(line, timestamp, record)
}

fn id_of(message: &Object) -> Option<String> {
    message.get("id")?.as_str().map(str::to_owned)
}

impl super::Decoder for GeminiReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let mut object = match value {
            Value::Object(object) => object,
            other => return sink.unknown(line, format!("{} is no message", other.kind()), other),
        };
        if object.contains_key(SET) {
            return self.set(object, line, sink);
        }
        let is_header = object.contains_key("sessionId") && !object.contains_key("type");
        let id = object.str_at("sessionId").filter(|_| is_header && sink.made() == 0);
        if let Some(id) = id.filter(|_| self.held.is_empty()) {
            sink.session(id);
        }
        if !is_header {
            self.renew(sink);
        }
        if object.contains_key(REWIND) {
            self.rewind(object, line, sink);
        } else if let Some(Value::Array(messages)) = object.get_mut("messages") {
            // The whole session, or the header of a log that goes on.
            let messages = std::mem::take(messages);
            sink.skip("header");
            for message in messages {
                match message {
                    Value::Object(message) => match self.without_repeats(message) {
                        Some(message) => self.give(id_of(&message), message, line, sink),
                        None => sink.skip(REPEATED),
                    },
                    other => sink.unknown(line, format!("{} is no message", other.kind()), other),
                }
            }
        } else if is_header {
            sink.skip("header");
        } else {
            self.hold(object, line, sink);
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.renew(sink);
        self.give_all(sink);
    }
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
