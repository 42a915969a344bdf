//! inspect logs: one conversation per sample and epoch, long strings set aside as attachments.

use std::collections::{HashMap, VecDeque};

use super::{
    answer, chat,
    draft::FrameDraft,
    names::{Names, label},
    parts::{self, Arguments, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{MAX_BYTES, Object, Value},
    veil::{AnswerId, CallOutcome, Facet, ModelAnswer},
};

/// Reads `{version, eval, samples: [{id, epoch, messages, attachments}]}`.
#[derive(Default)]
pub(super) struct InspectReader {
    names: Names,
}

impl InspectReader {
    /// A log, with samples or without (a header only).
    pub(super) fn is_document(value: &Value) -> bool {
        let has_samples = value.get("samples").is_some_and(|samples| samples.as_array().is_some());
        let is_header = || value.get("version").is_some() && value.get("plan").is_some();
        value.get("eval").is_some_and(|eval| eval.as_object().is_some())
            && (has_samples || is_header())
    }

    fn sample(&mut self, mut sample: Object, line: u64, sink: &mut Sink) {
        let Some(messages) = take::list(&mut sample, "messages") else {
            return sink.unknown(line, "a sample without a list `messages`", sample.into());
        };
        let attachments = take::object(&mut sample, "attachments").unwrap_or_default();
        let mut answers = Answers::of(&sample, &messages);
        let (id, epoch) = (label(sample.get("id")), label(sample.get("epoch")));
        sink.session(&self.names.unique(format!("sample-{id}-epoch-{epoch}")));
        for key in sample.keys() {
            sink.skip(key);
        }
        let mut attachments = Attachments { texts: attachments, budget: MAX_BYTES };
        for mut value in messages {
            attachments.resolve(&mut value);
            match value {
                Value::Object(object)
                    if object.get("role").is_some_and(|role| role.as_str().is_some()) =>
                {
                    let event = answers.event_of(&object);
                    let mut draft = message(object, line);
                    draft.add_answer(event);
                    sink.push(draft);
                }
                other => chat::message_or_unknown(other, line, sink),
            }
        }
    }
}

impl super::Decoder for InspectReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let mut log = match value {
            Value::Object(log) => log,
            other => return sink.unknown(line, "no inspect log", other),
        };
        let samples = log.shift_remove("samples");
        for key in log.keys() {
            sink.skip(key);
        }
        let samples = match samples {
            Some(Value::Array(samples)) => samples,
            None | Some(Value::Null) => Vec::new(),
            Some(other) => return sink.unknown(line, "`samples` is not a list", other),
        };
        for sample in samples {
            match sample {
                Value::Object(sample) => self.sample(sample, line, sink),
                other => sink.unknown(line, format!("{} is no sample", other.kind()), other),
            }
        }
    }
}

/// What the events of a sample say of the model's answers: their usage.
struct Answers {
    by_id: HashMap<String, ModelAnswer>,
    /// Where no answer has an id, and there are as many messages: in their order.
    in_order: VecDeque<ModelAnswer>,
}

impl Answers {
    fn of(sample: &Object, messages: &[Value]) -> Self {
        let older = || sample.get("transcript").and_then(|transcript| transcript.get("events"));
        let events = sample.get("events").or_else(older).and_then(Value::as_array);
        let events = events.unwrap_or_default();
        let (mut by_id, mut in_order) = (HashMap::new(), VecDeque::new());
        for output in events.iter().filter(|event| event.str_at("event") == Some("model")) {
            let Some(output) = output.get("output") else { continue };
            let answer = answer::of(output.get("model"), output.get("usage"));
            match output.pointer("/choices/0/message").and_then(|message| message.str_at("id")) {
                Some(id) => {
                    by_id.insert(id.to_owned(), answer);
                }
                None => in_order.push_back(answer),
            }
        }
        let is_answer = |message: &&Value| message.str_at("role") == Some("assistant");
        if !by_id.is_empty() || in_order.len() != messages.iter().filter(is_answer).count() {
            in_order.clear();
        }
        Self { by_id, in_order }
    }

    /// What the event of a message of the model says.
    fn event_of(&mut self, message: &Object) -> ModelAnswer {
        let text = |key: &str| message.str_at(key);
        if text("role") != Some("assistant") {
            return ModelAnswer::default();
        }
        let id = text("id");
        let found = id.and_then(|id| self.by_id.remove(id)).or_else(|| self.in_order.pop_front());
        let id = id.filter(|_| found.as_ref().is_some_and(|found| found.usage.is_some()));
        let id = id.map(|id| AnswerId::Response(id.into()));
        ModelAnswer { id, ..found.unwrap_or_default() }
    }
}

/// The strings that a sample sets aside.
struct Attachments {
    texts: Object,
    /// How many bytes may still be put in place: the same long string may be named again and
    /// again, and a small file must not become an endless one.
    budget: usize,
}

impl Attachments {
    /// Puts the strings back in place; a name that does not resolve stays.
    fn resolve(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let Some(hash) = text.strip_prefix("attachment://") else { return };
                let Some(found) = self.texts.str_at(hash) else { return };
                if let Some(left) = self.budget.checked_sub(found.len()) {
                    self.budget = left;
                    found.clone_into(text);
                }
            }
            Value::Array(array) => array.iter_mut().for_each(|value| self.resolve(value)),
            Value::Object(object) => object.values_mut().for_each(|value| self.resolve(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// A message. A tool's message names its tool as `function`, and its failure as `error`.
fn message(object: Object, line: u64) -> FrameDraft {
    let text = |key: &str| object.str_at(key).map(str::to_owned);
    let (name, error) = (text("function"), object.get("error"));
    let kind = error.and_then(|error| error.str_at("type"));
    let failed = error.is_some_and(|error| !error.is_null());
    let stated = CallOutcome::failed_if(failed).max(CallOutcome::of_status(kind));
    let reason = error.and_then(|error| error.str_at("message")).map(str::to_owned);
    let mut draft = chat::message_with_parts(object, line, part);
    chat::complete_result(&mut draft, None, name.as_deref(), stated);
    let result = draft.facets.iter_mut().find(|facet| facet.facet_type == FacetType::RESULT);
    if let (Some(result), Some(reason)) = (result, reason)
        && result.content.is_empty()
        && result.children.is_empty()
    {
        // The model is told the reason in place of an empty content.
        result.content = reason;
        result.part_mut().source.field = Some("error.message".into());
    }
    draft
}

fn part(value: Value, text_type: &FacetType) -> Vec<Facet> {
    match value {
        Value::Object(object) if kind(&object) == Some("reasoning") => vec![reasoning(object)],
        Value::Object(object)
            if kind(&object) == Some("tool_use") && !object.contains_key("input") =>
        {
            server_call(object)
        }
        other => vec![chat::content_part(other, text_type)],
    }
}

fn kind(part: &Object) -> Option<&str> {
    part.get("type")?.as_str()
}

/// Reasoning. What is redacted is encrypted: then the summary, where there is one, is the text.
fn reasoning(mut part: Object) -> Facet {
    let is_redacted = part.get("redacted").and_then(Value::as_bool).unwrap_or_default();
    let key = if is_redacted { "summary" } else { "reasoning" };
    match take::text(&mut part, key) {
        Some(text) => with_origin(parts::thought(text), part.into()),
        None => parts::opaque("reasoning", part.into()),
    }
}

/// A call that the provider ran itself, with what came of it in the same part.
fn server_call(mut part: Object) -> Vec<Facet> {
    let (id, name) = (take::text(&mut part, "id"), take::text(&mut part, "name"));
    let (id, name) = (id.as_deref(), name.as_deref().unwrap_or_default());
    let arguments = Arguments::from(part.shift_remove("arguments"));
    let is_there = |key: &&str| part.get(key).is_some_and(|value| !value.is_null());
    let key = ["error", "result"].into_iter().find(is_there);
    let outcome = key.and_then(|key| part.shift_remove(key));
    let stated = CallOutcome::failed_if(key == Some("error"));
    let mut facets = vec![with_origin(parts::call(id, name, arguments), part.into())];
    match outcome {
        None => {}
        Some(Value::String(text)) => facets.push(parts::result(id, Some(name), text, stated)),
        Some(other) => {
            let text = other.to_string();
            facets.push(with_origin(parts::result(id, Some(name), text, stated), other));
        }
    }
    facets
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn a_sample_is_a_session_and_attachments_are_put_back() {
        check(
            r#"{"version": 2, "eval": {"task": "t"}, "samples": [
                 {"id": 1, "epoch": 1, "input": "i", "attachments": {"h": "long text"}, "transcript": {}, "messages": [
                   {"role": "user", "content": "attachment://h"},
                   {"role": "user", "content": [{"type": "image", "image": "attachment://gone"}]},
                   {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "Hm.", "signature": "s"},
                      {"type": "text", "text": "I go."}],
                    "tool_calls": [{"id": "c", "function": "go", "arguments": {"url": "attachment://h"}, "type": "function"}]},
                   {"role": "tool", "content": "", "tool_call_id": "c", "function": "go",
                    "error": {"type": "timeout", "message": "too slow"}}]},
                 {"id": "a", "epoch": 2, "events": [], "messages": [{"role": "tool", "tool_call_id": "x", "function": "go",
                    "content": [{"type": "text", "text": "ok"}]}]},
                 {"id": 3}, null]}"#,
            r#"
            inspect
            # sample-1-epoch-1
            user message
              event "long text"
            user message {"form":"parts"}
              image "[image: attachment://gone]" <- {"type":"image","image":"attachment://gone"}
            agent message {"form":"parts"}
              thought "Hm." <- {"type":"reasoning","signature":"s"}
              speech "I go." <- {"type":"text"}
              call go c {"url":"long text"}
            environment message {"function":"go","error":{"type":"timeout","message":"too slow"}}
              result go c failed "too slow" <- {"field":"error.message"}
            # sample-a-epoch-2
            environment message {"form":"parts","function":"go"}
              result go x ""
                result - - "ok" <- {"type":"text"}
            environment -
              unknown (a sample without a list `messages`) {"id":3}
            environment -
              unknown (null is no sample) null
            messages 5, calls 1, results 2, sessions 2, unknown 2, skipped {"epoch": 2, "eval": 1, "events": 1, "id": 2, "input": 1, "transcript": 1, "version": 1}
            "#,
        );
    }

    #[test]
    fn redacted_reasoning_and_calls_of_the_provider() {
        check(
            r#"{"eval": {}, "samples": [{"id": 1, "epoch": 1, "messages": [{"role": "assistant", "content": [
                 {"type": "reasoning", "reasoning": "gAAA", "redacted": true, "summary": "Thinking of you"},
                 {"type": "reasoning", "reasoning": "gAAA", "redacted": true},
                 {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "search", "arguments": "{\"q\":1}", "result": "found", "error": null}]}]}]}"#,
            r#"
            inspect
            # sample-1-epoch-1
            agent message {"form":"parts"}
              thought "Thinking of you" <- {"type":"reasoning","reasoning":"gAAA","redacted":true}
              opaque "[reasoning, 55 bytes]" <- {"type":"reasoning","reasoning":"gAAA","redacted":true}
              call search w {"q":1} <- {"type":"tool_use","tool_type":"web_search","error":null}
              result search w "found"
            messages 1, calls 1, results 1, sessions 1, unknown 0, skipped {"epoch": 1, "eval": 1, "id": 1}
            "#,
        );
    }

    #[test]
    fn a_header_alone_has_no_session() {
        check(
            r#"{"version": 2, "eval": {}, "plan": {}}"#,
            r#"
            inspect
            messages 0, calls 0, results 0, sessions 0, unknown 0, skipped {"eval": 1, "plan": 1, "version": 1}
            "#,
        );
    }
}
