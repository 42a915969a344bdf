//! OpenHands events: what a party did (`action`) and what it observed (`observation`).

use std::collections::HashSet;

use super::{
    answer,
    draft::FrameDraft,
    names::{Names, label},
    parts::{self, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, Source},
};

/// Reads a list of events, and lines of the resolver, each with such a list as its `history`.
#[derive(Default)]
pub(super) struct OpenHandsReader {
    names: Names,
}

impl OpenHandsReader {
    pub(super) fn is_document(value: &Value) -> bool {
        value.as_array().is_some_and(|events| events.iter().any(is_event))
    }

    pub(super) fn is_line(value: &Value) -> bool {
        let has_history = value.get("history").is_some_and(|history| history.as_array().is_some());
        has_history && value.get("instruction").is_some()
    }

    /// A line of the resolver. What it says besides the events stands before them, as a record.
    fn resolved(&mut self, mut line_of: Object, line: u64, sink: &mut Sink) {
        let Some(events) = take::list(&mut line_of, "history") else {
            return sink.unknown(line, "no list `history`", line_of.into());
        };
        let issue = line_of.get("issue").and_then(|issue| issue.get("number"));
        let name = match line_of.get("instance_id").or(issue) {
            None | Some(Value::Null) => line.to_string(),
            id => label(id),
        };
        sink.session(&self.names.unique(name));
        sink.push(FrameDraft { payload: line_of, ..FrameDraft::record(Source::Environment, line) });
        session(events, line, sink);
    }
}

impl super::Decoder for OpenHandsReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        match value {
            Value::Array(events) => session(events, line, sink),
            Value::Object(object) if object.contains_key("history") => {
                self.resolved(object, line, sink);
            }
            other => sink.unknown(line, "neither events nor a line with a `history`", other),
        }
    }
}

fn is_event(value: &Value) -> bool {
    value.get("source").is_some()
        && (value.get("action").is_some() || value.get("observation").is_some())
}

/// The events of one session. Older files have them in pairs of an action and its observation.
fn session(events: Vec<Value>, line: u64, sink: &mut Sink) {
    let flat = |event| match event {
        Value::Array(pair) => pair,
        single => vec![single],
    };
    let events: Vec<Value> = events.into_iter().flat_map(flat).collect();
    let mut history = History::of(&events);
    for event in events {
        match event {
            Value::Object(event) if event.contains_key("action") => {
                history.action(event, line, sink);
            }
            Value::Object(event) if event.contains_key("observation") => {
                history.observation(event, line, sink);
            }
            other => sink.unknown(line, "neither an action nor an observation", other),
        }
    }
}

/// What must be known of all events before the first is read.
struct History {
    /// The ids of the agent's actions that are calls.
    calls: HashSet<u64>,
    /// The response that was kept last: every event of one repeats it.
    response: Option<Value>,
}

impl History {
    fn of(events: &[Value]) -> Self {
        let answered: HashSet<u64> = events
            .iter()
            .filter(|event| event.str_at("observation").is_some_and(is_answer))
            .filter_map(|event| event.get("cause")?.as_u64())
            .collect();
        let is_call = |event: &&Value| {
            let is_agent = event.str_at("source") == Some("agent");
            let acts = event.str_at("action").is_some_and(|action| !is_message(action));
            let id = event.get("id").and_then(Value::as_u64);
            let has_answer = id.is_some_and(|id| answered.contains(&id));
            is_agent && acts && (has_metadata(event.as_object()) || has_answer)
        };
        let calls = events.iter().filter(is_call).filter_map(|event| event.get("id")?.as_u64());
        Self { calls: calls.collect(), response: None }
    }

    fn is_call(&self, event: &Object) -> bool {
        let is_agent = event.str_at("source") == Some("agent");
        let id = event.get("id").and_then(Value::as_u64);
        is_agent && (has_metadata(Some(event)) || id.is_some_and(|id| self.calls.contains(&id)))
    }

    fn action(&mut self, mut event: Object, line: u64, sink: &mut Sink) {
        let Some(action) = event.str_at("action").map(str::to_owned) else {
            return sink.unknown(line, "an action without a name", event.into());
        };
        let is_environment = event.str_at("source") == Some("environment");
        let is_state = matches!(action.as_str(), "change_agent_state" | "recall" | "null");
        if is_state || is_environment && !is_message(&action) {
            return sink.skip(&action);
        }
        let (mut draft, repeats) = self.draft(&mut event, line);
        if is_message(&action) {
            draft.is_message = true;
            message(&action, &mut event, &mut draft);
        } else if self.is_call(&event) {
            thought(&mut event, &mut draft);
            draft.facets.push(call(&action, &event));
        } else {
            // Neither a message nor a call that anything answers: kept, and not interpreted.
            thought(&mut event, &mut draft);
            let mut origin = Object::new();
            origin.put_some("action", event.shift_remove("action"));
            origin.put_some("args", event.shift_remove("args"));
            draft.facets.push(parts::opaque(&action, origin.into()));
        }
        draft.payload = without_response(event, repeats);
        let response =
            draft.payload.get("tool_call_metadata").and_then(|of| of.get("model_response"));
        let said = response.and_then(Value::as_object).map(answer::of_response);
        draft.add_answer(said.unwrap_or_default());
        sink.push(draft);
    }

    fn observation(&mut self, mut event: Object, line: u64, sink: &mut Sink) {
        let kind = match event.get("observation") {
            Some(Value::String(kind)) => kind.clone(),
            None | Some(Value::Null) => "null".to_owned(),
            Some(_) => {
                return sink.unknown(line, "an observation without a name", event.into());
            }
        };
        if !is_answer(&kind) {
            return sink.skip(if kind == "null" { "null observation" } else { &kind });
        }
        let cause = event.get("cause").and_then(Value::as_u64);
        let is_result = cause.is_some_and(|cause| self.calls.contains(&cause));
        let (mut draft, repeats) = self.draft(&mut event, line);
        draft.source = Source::Environment;
        let (text, origin) = match event.shift_remove("content") {
            Some(Value::String(text)) => (text, Object::new()),
            None | Some(Value::Null) => (String::new(), Object::new()),
            Some(other) => {
                let mut origin = Object::new();
                let text = other.to_string();
                origin.put("content", other);
                (text, origin)
            }
        };
        if is_result {
            let metadata = event.get("tool_call_metadata");
            let of_call = |key: &str| metadata.and_then(|metadata| metadata.str_at(key));
            let stated = CallOutcome::of_success_mark(event.get("success"))
                .max(CallOutcome::of_status(Some(&kind)));
            let result =
                parts::result(of_call("tool_call_id"), of_call("function_name"), text, stated);
            draft.facets.push(with_origin(result, origin.into()));
        } else if text.is_empty() {
            return sink.skip(&kind);
        } else {
            draft.facets.push(with_origin(parts::text(FacetType::EVENT, text), origin.into()));
        }
        draft.payload = without_response(event, repeats);
        sink.push(draft);
    }

    /// A frame for the event, with the reasoning of its response where that is the first to tell
    /// it; and whether the event repeats a response.
    fn draft(&mut self, event: &mut Object, line: u64) -> (FrameDraft, bool) {
        let source = match event.str_at("source") {
            Some("agent") => Source::Agent,
            Some("environment") | None => Source::Environment,
            Some(other) => Source::from(other),
        };
        let mut draft = FrameDraft::record(source, line);
        draft.timestamp = take::text(event, "timestamp");
        let Some(metadata) = event.get("tool_call_metadata") else { return (draft, false) };
        let response = metadata.get("model_response").filter(|of| of.str_at("id").is_some());
        let says_nothing_new = |said: &Object| {
            said.iter().all(|(key, value)| {
                self.response.as_ref().and_then(|kept| kept.get(key)) == Some(value)
            })
        };
        if response.and_then(Value::as_object).is_some_and(says_nothing_new) {
            return (draft, true);
        }
        self.response = response.cloned();
        let answer = metadata
            .get("model_response")
            .and_then(|response| response.pointer("/choices/0/message"));
        let reasoning = answer.and_then(|answer| answer.str_at("reasoning_content"));
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            let mut origin = Object::new();
            origin.put(
                "field",
                "tool_call_metadata.model_response.choices.0.message.reasoning_content",
            );
            draft.facets.push(with_origin(parts::thought(text), origin.into()));
        }
        (draft, false)
    }
}

/// What is left of an event; a response that an earlier event has is not kept again.
fn without_response(mut event: Object, repeats: bool) -> Object {
    if let (true, Some(Value::Object(metadata))) = (repeats, event.get_mut("tool_call_metadata")) {
        metadata.shift_remove("model_response");
    }
    event
}

/// Whether an observation of this kind tells anything.
fn is_answer(observation: &str) -> bool {
    !matches!(observation, "null" | "recall" | "agent_state_changed")
}

fn is_message(action: &str) -> bool {
    matches!(action, "message" | "system")
}

fn has_metadata(event: Option<&Object>) -> bool {
    let metadata = event.and_then(|event| event.get("tool_call_metadata"));
    metadata.is_some_and(|metadata| metadata.as_object().is_some())
}

/// The text is `args.content`; the event's own `message` is a caption for people.
fn message(action: &str, event: &mut Object, draft: &mut FrameDraft) {
    let text_type = match (&draft.source, action) {
        (_, "system") => {
            draft.source = Source::System;
            FacetType::SYSTEM
        }
        (Source::Agent, _) => FacetType::SPEECH,
        _ => FacetType::EVENT,
    };
    let Some(Value::Object(args)) = event.get_mut("args") else { return };
    match args.shift_remove("content") {
        Some(Value::String(text)) if !text.is_empty() => {
            draft.facets.push(parts::text(text_type, text));
        }
        Some(Value::String(_) | Value::Null) | None => {}
        Some(other) => draft.facets.push(parts::opaque("content", other)),
    }
    if let Some(Value::Array(urls)) = args.get_mut("image_urls") {
        for url in std::mem::take(urls) {
            let source = url.as_str().map(str::to_owned);
            draft.facets.push(parts::image(None, source.as_deref(), url));
        }
    }
}

/// What the agent said before it acted.
fn thought(event: &mut Object, draft: &mut FrameDraft) {
    let Some(Value::Object(args)) = event.get_mut("args") else { return };
    if let Some(Value::String(text)) = args.get_mut("thought")
        && !text.is_empty()
    {
        let mut origin = Object::new();
        origin.put("field", "args.thought");
        let text = std::mem::take(text);
        args.shift_remove("thought");
        draft.facets.push(with_origin(parts::text(FacetType::SPEECH, text), origin.into()));
    }
}

/// The call as the model wrote it; where nothing says how it did, the action itself.
fn call(action: &str, event: &Object) -> Facet {
    let metadata = event.get("tool_call_metadata");
    let of_call = |key: &str| metadata.and_then(|metadata| metadata.str_at(key));
    let (id, name) = (of_call("tool_call_id"), of_call("function_name"));
    let answer =
        metadata.and_then(|metadata| metadata.pointer("/model_response/choices/0/message"));
    let written = answer.and_then(|answer| answer.get("tool_calls")?.as_array());
    let is_it = |call: &&Value| id.is_some() && call.str_at("id") == id;
    let function = written.and_then(|calls| calls.iter().find(is_it)?.get("function"));
    let written = function.and_then(|function| function.get("arguments")).cloned();
    let arguments = written.or_else(|| {
        let mut args = event.get("args").cloned();
        if let Some(Value::Object(args)) = &mut args {
            // An empty thought is no argument, and one with text was taken out before.
            args.shift_remove("thought");
        }
        args
    });
    parts::call(id, name.unwrap_or(action), arguments.into())
}

#[cfg(test)]
#[path = "openhands_tests.rs"]
mod tests;
