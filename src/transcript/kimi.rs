//! Kimi CLI wire logs: messages, and the events that a step of the loop builds a message from.

use indexmap::IndexMap;

use super::{
    answer,
    branches::Branches,
    chat,
    draft::FrameDraft,
    joining::{self, BYTES, RECORDS},
    kimi_context::{Entry, KimiContext},
    kimi_request::{self, KimiRequest, Known},
    parts::{self, Arguments, with_origin},
    recent::Recent,
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, CopyOf, Facet, ModelAnswer, Source},
};

/// Reads lines of `{type, time, …}`.
#[derive(Default)]
pub(super) struct KimiReader {
    open: Option<Step>,
    /// Steps whose message was given out.
    given: Recent<()>,
    /// The system prompt is written again with every change of the settings.
    system: Option<String>,
    context: KimiContext,
    branches: Branches,
    /// Whether a step began and has said nothing yet.
    has_begun: bool,
    /// What was reported of the answer that is written next: its usage and its model.
    reported: ModelAnswer,
    /// The request that is not answered yet.
    asked: Option<KimiRequest>,
    /// Whether requests are written down, and so how results are told.
    logs_requests: bool,
    /// Tools by their hashes, and the hash of those in force.
    tools: IndexMap<String, Value>,
    tools_hash: Option<String>,
}

/// The step whose message is being built.
struct Step {
    /// Its `stepUuid`; events of older logs have none and belong to the step that is open.
    id: Option<String>,
    message: FrameDraft,
    /// Results that came before the message was whole; they follow it.
    results: Vec<FrameDraft>,
    /// How many events it was made of, and how much they hold: memory is bounded.
    events: usize,
    bytes: usize,
    /// Whether its end was told. What is reported of it may still follow.
    is_ended: bool,
}

impl Step {
    fn has_room(&self, bytes: usize) -> bool {
        self.events < RECORDS && self.bytes + bytes <= BYTES
    }

    fn grow(&mut self, bytes: usize) {
        self.events += 1;
        self.bytes += bytes;
    }
}

/// How many lists of tools are known.
const FEW: usize = 64;
/// The members of a part of an answer that name it and its step.
const PART_NAMES: [&str; 5] = ["type", "uuid", "stepUuid", "step", "turnId"];

impl KimiReader {
    pub(super) fn is_line(value: &Value) -> bool {
        match value.str_at("type") {
            Some("metadata") => value.get("protocol_version").is_some(),
            Some("context.append_message") => value.get("message").is_some(),
            Some("context.append_loop_event") => value.get("event").is_some(),
            _ => false,
        }
    }

    /// Ends what is open. A step that just began and has said nothing goes on.
    fn pause(&mut self, sink: &mut Sink) {
        let has_begun = std::mem::take(&mut self.has_begun);
        self.close(sink);
        self.has_begun = has_begun;
    }

    fn close(&mut self, sink: &mut Sink) {
        let has_begun = std::mem::take(&mut self.has_begun);
        let Some(Step { id, mut message, results, .. }) = self.open.take() else {
            if has_begun {
                self.context.push(sink.next_frame(), Entry::default());
            }
            return;
        };
        message.add_answer(std::mem::take(&mut self.reported));
        message.add_answer(self.asked.take().map(KimiRequest::into_answer).unwrap_or_default());
        if let Some(id) = id {
            self.given.insert(&id, ());
        }
        if message.is_message {
            self.context.push(sink.next_frame(), Entry::default());
        }
        sink.push(message);
        for result in results {
            self.context.push(sink.next_frame(), Entry::default());
            sink.push(result);
        }
    }

    /// The step that an event belongs to, opened where it is not.
    fn step(
        &mut self,
        event: &Object,
        time: Option<&str>,
        line: u64,
        bytes: usize,
        sink: &mut Sink,
    ) -> &mut Step {
        let id = event.str_at("stepUuid");
        let is_other = |open: &Step| id.is_some() && open.id.is_some() && open.id.as_deref() != id;
        if self.open.as_ref().is_some_and(is_other) {
            self.close(sink);
        }
        // What does not fit any more follows as a record that is not counted.
        let is_full = self.open.as_ref().is_some_and(|open| !open.has_room(bytes));
        if is_full {
            self.close(sink);
        }
        let given = &self.given;
        let step = self.open.get_or_insert_with(|| {
            // A step whose message was closed by something in between goes on, uncounted.
            let goes_on = is_full || id.is_some_and(|id| given.get(id).is_some());
            let mut message = FrameDraft::message(Source::Agent, line);
            message.is_message = !goes_on;
            message.timestamp = time.map(str::to_owned);
            message.uuid = id.map(str::to_owned);
            let id = id.map(str::to_owned);
            Step { id, message, results: Vec::new(), events: 0, bytes: 0, is_ended: false }
        });
        step.grow(bytes);
        step
    }

    fn loop_event(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        let Some(Value::Object(event)) = record.get_mut("event") else {
            return sink.unknown(line, "a loop event without an object `event`", record.into());
        };
        let mut event = std::mem::take(event);
        let time = time_of(&record);
        let bytes = joining::size_of_members(&event);
        match event.str_at("type").unwrap_or_default() {
            "content.part" => {
                let value = event.shift_remove("part").unwrap_or_default();
                let facets = part(value, &FacetType::SPEECH);
                let step = self.step(&event, time.as_deref(), line, bytes, sink);
                step.message.facets.extend(facets);
                // What is no name of the step or the part is kept.
                let is_name = |key: &str, value: &Value| {
                    PART_NAMES.contains(&key) && value.as_object().is_none()
                };
                event.retain(|key, value| !is_name(key, value));
                step.message.payload.extend(event);
            }
            "tool.call" => {
                let step = self.step(&event, time.as_deref(), line, bytes, sink);
                step.message.facets.push(call(event));
            }
            "tool.result" => {
                let draft = result(event, line, self.logs_requests);
                let draft = FrameDraft { timestamp: time, ..draft };
                if self.open.as_ref().is_some_and(|step| !step.has_room(bytes)) {
                    self.close(sink);
                }
                if let Some(step) = &mut self.open {
                    step.grow(bytes);
                    step.results.push(draft);
                } else {
                    self.context.push(sink.next_frame(), Entry::default());
                    sink.push(draft);
                }
            }
            kind @ ("step.begin" | "step.end") => {
                sink.skip(kind);
                let begins = kind == "step.begin";
                let id = event.str_at("uuid");
                let is_other =
                    |open: &Step| id.is_some() && open.id.is_some() && open.id.as_deref() != id;
                if begins {
                    self.close(sink);
                    (self.reported, self.asked) = Default::default();
                } else if self.open.is_none() && event.str_at("finishReason") == Some("error") {
                    return self.failed(time, line, sink);
                } else if self.open.is_none() {
                    self.close(sink);
                } else if !self.open.as_ref().is_some_and(is_other)
                    && let Some(step) = &mut self.open
                {
                    step.is_ended = true;
                    step.message.add_answer(answer::of_response(&event));
                }
                self.has_begun = begins;
            }
            other if other.starts_with("step.") => sink.skip(other),
            other => {
                let reason = format!("a loop event of type {other:?}");
                record.put("event", event);
                sink.unknown(line, reason, record.into());
            }
        }
    }

    fn message(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        self.close(sink);
        self.reported = ModelAnswer::default();
        let time = time_of(&record);
        match record.shift_remove("message") {
            Some(Value::Object(message))
                if message.get("role").is_some_and(|role| role.as_str().is_some()) =>
            {
                let entry = Entry::of(&message);
                let mut draft = message_of(message, line);
                if draft.source == Source::User && entry.is_of_program() {
                    draft.source = Source::Environment;
                }
                self.context.push(sink.next_frame(), entry);
                let id = draft.payload.str_at("id").map(str::to_owned);
                (draft.timestamp, draft.uuid) = (time, id);
                sink.push(draft);
            }
            other => {
                record.put_some("message", other);
                sink.unknown(line, "no message with a role", record.into());
            }
        }
    }

    /// Takes what a record reports of an answer: of the open step, or of the one that begins next.
    /// Sums of the session repeat what the records before it said.
    fn usage(&mut self, record: &Object, sink: &mut Sink) {
        let is_sum = record.str_at("usageScope") == Some("session");
        if is_sum || record.get("usage").is_none_or(|usage| usage.as_object().is_none()) {
            return sink.skip("usage.record");
        }
        self.reported = answer::of_response(record);
    }

    /// The settings, and the profile, may hold the system prompt.
    fn config(&mut self, kind: &str, mut record: Object, line: u64, sink: &mut Sink) {
        sink.skip(kind);
        let Some(prompt) = take::text(&mut record, "systemPrompt") else { return };
        if prompt.is_empty() || self.system.as_ref() == Some(&prompt) {
            return;
        }
        self.system = Some(prompt.clone());
        self.pause(sink);
        let before = self.context.system.replace(sink.next_frame());
        let mut draft = FrameDraft::record(Source::System, line);
        draft.facets.push(parts::text(FacetType::SYSTEM, prompt));
        draft.edits.extend(before.map(|frame| (frame, Vec::new())));
        sink.push(draft);
    }

    /// The tools of the requests from here on.
    fn tools(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        let Some(tools) = record.shift_remove("tools").filter(|tools| tools.as_array().is_some())
        else {
            return sink.skip("llm.tools_snapshot");
        };
        if let Some(hash) = take::text(&mut record, "hash") {
            if self.tools.len() >= FEW {
                self.tools.shift_remove_index(0);
            }
            self.tools.insert(hash.clone(), tools.clone());
            self.tools_hash = Some(hash);
        }
        self.pause(sink);
        let mut draft = FrameDraft::of_record(line, time_of(&record), record);
        draft.payload.put("tools", tools);
        sink.push(draft);
    }

    /// Takes a request of the loop. Tools that were in force before may be again.
    fn request(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        self.logs_requests = true;
        sink.skip("llm.request");
        if record.str_at("kind") != Some("loop") {
            return;
        }
        self.pause(sink);
        let hash = record.str_at("toolsHash");
        if let Some(tools) = hash.and_then(|hash| self.tools.get(hash))
            && hash != self.tools_hash.as_deref()
        {
            self.tools_hash = hash.map(str::to_owned);
            let mut draft = FrameDraft::record(Source::Environment, line);
            draft.payload.put("tools", tools.clone());
            sink.push(draft);
        }
        let known = Known {
            messages: self.context.count(),
            has_summary: self.context.has_summary(),
            system: self.system.as_deref(),
            tools: self.tools_hash.as_deref(),
        };
        let (request, wrong) = KimiRequest::of(&mut record, &known);
        wrong.into_iter().for_each(|wrong| sink.note(line, &wrong));
        self.asked = Some(request);
    }

    /// A step that failed before anything was said: no message of the context.
    fn failed(&mut self, time: Option<String>, line: u64, sink: &mut Sink) {
        self.has_begun = false;
        let mut draft = FrameDraft::record(Source::Agent, line);
        draft.timestamp = time;
        draft.add_answer(self.asked.take().map(KimiRequest::into_answer).unwrap_or_default());
        draft.add_answer(ModelAnswer { stop: Some("error".into()), ..ModelAnswer::default() });
        sink.push(draft);
    }

    /// What stands in for the compacted messages from then on.
    fn compaction(&mut self, mut record: Object, line: u64, sink: &mut Sink) {
        self.close(sink);
        let mut draft = FrameDraft::record(Source::Environment, line);
        draft.timestamp = time_of(&record);
        let is_text =
            |key: &&str| record.get(key).is_some_and(|summary| summary.as_str().is_some());
        if let Some(key) = ["contextSummary", "summary"].into_iter().find(is_text) {
            if let Some(summary) = take::text(&mut record, key) {
                let facet = parts::text(FacetType::SUMMARY, summary);
                draft.facets.push(with_origin(facet, field(key)));
            }
        } else if let Some(Value::Object(message)) = record.get_mut("summary")
            && let Some(content) = take::list(message, "content")
        {
            // Of older versions it is a message.
            draft.facets =
                content.into_iter().flat_map(|it| part(it, &FacetType::SUMMARY)).collect();
        }
        if draft.facets.is_empty() {
            return sink.unknown(line, "a compaction without a summary", record.into());
        }
        let (told, wrong) = self.context.compact(&record, sink.next_frame());
        wrong.into_iter().for_each(|wrong| sink.note(line, wrong));
        draft.compacted = Some(told);
        draft.payload = record;
        sink.push(draft);
    }

    /// Takes back the last prompts and what followed them, or all of the context.
    fn take_back(&mut self, kind: &str, record: Object, line: u64, sink: &mut Sink) {
        self.close(sink);
        let count = record.get("count").and_then(Value::as_u64);
        let is_clear = kind == "context.clear";
        let at = match if is_clear { Ok(0) } else { self.context.undone(count) } {
            Ok(at) => at,
            Err(wrong) => {
                sink.note(line, wrong);
                return sink.skip(kind);
            }
        };
        let (cut, kept) = self.context.cut(at);
        let cut = if is_clear { 0 } else { cut };
        let draft = FrameDraft::of_record(line, time_of(&record), record);
        if sink.take_back(&mut self.branches, (cut, &kept), kind, draft) {
            self.context.leave(at);
        }
    }
}

impl super::Decoder for KimiReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let record = match value {
            Value::Object(record) => record,
            other => return sink.unknown(line, format!("{} is no record", other.kind()), other),
        };
        let kind = record.str_at("type");
        if kind != Some("usage.record") && self.open.as_ref().is_some_and(|step| step.is_ended) {
            self.close(sink);
        }
        match kind {
            Some("usage.record") => self.usage(&record, sink),
            Some("context.append_message") => self.message(record, line, sink),
            Some("context.append_loop_event") => self.loop_event(record, line, sink),
            Some("context.apply_compaction") => self.compaction(record, line, sink),
            Some(kind @ ("config.update" | "profile.bind")) => {
                let kind = kind.to_owned();
                self.config(&kind, record, line, sink);
            }
            Some("llm.tools_snapshot") => self.tools(record, line, sink),
            Some("llm.request") => self.request(record, line, sink),
            Some(kind @ ("context.undo" | "context.clear")) => {
                let kind = kind.to_owned();
                self.take_back(&kind, record, line, sink);
            }
            // The records before it are copies.
            Some("forked") => {
                self.close(sink);
                let mut draft = FrameDraft::record(Source::Environment, line);
                draft.timestamp = time_of(&record);
                draft.copied_before = Some(CopyOf::default());
                sink.push(draft);
            }
            Some(kind) if kind == "metadata" || kind.contains('.') => sink.skip(kind),
            Some(kind) => sink.unknown(line, format!("a record of type {kind:?}"), record.into()),
            None => sink.unknown(line, "a record without a type", record.into()),
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.close(sink);
    }
}

/// The time of a record: milliseconds, or text.
fn time_of(record: &Object) -> Option<String> {
    match record.get("time")? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn field(name: &str) -> Value {
    let mut origin = Object::new();
    origin.put("field", name);
    origin.into()
}

/// A message as in a chat list, but for its spelling.
fn message_of(message: Object, line: u64) -> FrameDraft {
    let mut draft = chat::message_with_parts(message, line, part);
    // One text is sent as a text.
    draft.payload.shift_remove("form");
    let calls = take::list(&mut draft.payload, "toolCalls").unwrap_or_default();
    draft.facets.extend(calls.into_iter().map(chat::tool_call));
    if draft.facets.iter().any(|facet| facet.facet_type == FacetType::RESULT) {
        let id = take::text(&mut draft.payload, "toolCallId");
        let stated = CallOutcome::of_error_mark(draft.payload.get("isError"));
        chat::complete_result(&mut draft, id.as_deref(), None, stated);
    }
    draft
}

/// A part: `think` is reasoning, images are spelled `imageUrl`.
fn part(value: Value, text_type: &FacetType) -> Vec<Facet> {
    let Value::Object(mut object) = value else {
        return vec![chat::content_part(value, text_type)];
    };
    let facet = match object.str_at("type") {
        Some("think") => match take::text(&mut object, "think") {
            Some(text) => {
                // The member of a message that it is sent back in.
                if let Some(key) = take::text(&mut object, "reasoningKey") {
                    object.put("field", key);
                }
                with_origin(parts::thought(text), object.into())
            }
            None => parts::opaque("reasoning", object.into()),
        },
        Some("image_url") if object.contains_key("imageUrl") => {
            let url = object.get("imageUrl").map(|image| image.get("url").unwrap_or(image));
            let url = url.and_then(Value::as_str).map(str::to_owned);
            parts::image(None, url.as_deref(), object.into())
        }
        _ => chat::content_part(object.into(), text_type),
    };
    vec![facet]
}

fn call(mut event: Object) -> Facet {
    let (id, name) = (take::text(&mut event, "toolCallId"), take::text(&mut event, "name"));
    let arguments = Arguments::from(event.shift_remove("args"));
    let call = parts::call(id.as_deref(), name.as_deref().unwrap_or_default(), arguments);
    with_origin(call, event.into())
}

/// A result: `{output, isError?}`, whose output is text or a list of parts. The model is told more of
/// it: how long it took, and of versions that write their requests down that it failed or is empty.
fn result(mut event: Object, line: u64, is_told: bool) -> FrameDraft {
    let mut draft = FrameDraft::record(Source::Environment, line);
    let id = take::text(&mut event, "toolCallId");
    let id = id.as_deref();
    let mut outcome = match event.shift_remove("result") {
        Some(Value::Object(outcome)) => outcome,
        other => {
            let mut outcome = Object::new();
            outcome.put_some("output", other);
            outcome
        }
    };
    let stated = CallOutcome::of_error_mark(outcome.get("isError"));
    let is_failed = outcome.get("isError").and_then(Value::as_bool) == Some(true);
    let time = outcome.get("durationMs").and_then(Value::as_u64);
    let told = is_told.then(|| outcome.str_at("note").map(str::to_owned));
    let mut facet = match outcome.shift_remove("output") {
        Some(Value::String(text)) => parts::result(id, None, text, stated),
        Some(Value::Array(list)) => {
            let mut facet = parts::result(id, None, "", stated);
            facet.children =
                list.into_iter().flat_map(|value| part(value, &FacetType::RESULT)).collect();
            facet
        }
        None | Some(Value::Null) => parts::result(id, None, "", stated),
        Some(other) => {
            let text = other.to_string();
            outcome.put("output", other);
            parts::result(id, None, text, stated)
        }
    };
    if let Some(note) = told {
        kimi_request::tell(&mut facet, is_failed, note);
    }
    if let Some(time) = time {
        kimi_request::tell_time(&mut facet, time);
    }
    draft.facets.push(with_origin(facet, outcome.into()));
    draft.payload = event;
    draft
}

#[cfg(test)]
#[path = "kimi_tests.rs"]
mod tests;
