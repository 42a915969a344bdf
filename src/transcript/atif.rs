//! Trajectories of ATIF, the Agent Trajectory Interchange Format of Harbor: steps of the user, the
//! agent and the system, with the calls of a step and what they gave in it.

use super::{
    answer, chat,
    draft::FrameDraft,
    names::Names,
    parts::{self, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, CopyOf, Facet, Source},
};

/// Where a result names the trajectories of the subagents that gave it.
const REFERENCE: &str = "subagent_trajectory_ref";

/// Reads `{schema_version, session_id, agent, steps, final_metrics, subagent_trajectories}`.
#[derive(Default)]
pub(super) struct AtifReader {
    names: Names,
}

impl AtifReader {
    pub(super) fn is_document(value: &Value) -> bool {
        value.str_at("schema_version").is_some_and(|version| version.starts_with("ATIF"))
            && value.get("steps").is_some_and(|steps| steps.as_array().is_some())
    }
}

impl super::Decoder for AtifReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Some((mut document, steps)) = take::document(value, "steps", line, sink) else {
            return;
        };
        let name = ["trajectory_id", "session_id"].iter().find_map(|key| document.str_at(key));
        sink.session(&self.names.unique(name.unwrap_or("1").to_owned()));
        let mut agent = take::object(&mut document, "agent").unwrap_or_default();
        if let Some(tools) = take::list(&mut agent, "tool_definitions") {
            let mut draft = FrameDraft::of_record(line, None, agent.clone());
            draft.payload.put("tools", Value::Array(tools));
            sink.push(draft);
        }
        let mut sums = document.get("final_metrics").and_then(sums);
        if steps.iter().any(|step| step.get("metrics").is_some_and(|said| !said.is_null())) {
            sums = None;
        }
        let last = steps.len().saturating_sub(1);
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Value::Object(step) => {
                    let of_session = sums.take_if(|_| index == last);
                    self::step(step, &agent, of_session.as_ref(), line, sink);
                }
                other => sink.unknown(line, format!("{} is no step", other.kind()), other),
            }
        }
        for of_subagent in take::list(&mut document, "subagent_trajectories").unwrap_or_default() {
            self.record(of_subagent, line, sink);
        }
    }
}

/// A step: a message, and what its calls gave in a record of the environment after it.
fn step(mut step: Object, agent: &Object, sums: Option<&Value>, line: u64, sink: &mut Sink) {
    let (source, text_type) = match step.str_at("source") {
        Some("agent") => (Source::Agent, FacetType::SPEECH),
        Some(role) => chat::source_of_role(role),
        None => return sink.unknown(line, "a step without a source", step.into()),
    };
    let mut draft = FrameDraft::message(source, line);
    draft.timestamp = take::text(&mut step, "timestamp");
    if let Some(text) = take::text(&mut step, "reasoning_content").filter(|text| !text.is_empty()) {
        let mut origin = Object::new();
        origin.put("field", "reasoning_content");
        draft.facets.push(with_origin(parts::thought(text), origin.into()));
    }
    match step.shift_remove("message") {
        Some(Value::Array(list)) => {
            draft.payload.put("form", "parts");
            draft.facets.extend(list.into_iter().map(|part| self::part(part, &text_type)));
        }
        Some(message) => chat::content(message, &text_type, &mut draft),
        None => draft.payload.put("form", "absent"),
    }
    let calls = take::list(&mut step, "tool_calls").unwrap_or_default();
    let has_calls = !calls.is_empty();
    draft.facets.extend(calls.into_iter().map(call));
    let mut said = answer::of(
        step.get("model_name").filter(|model| !model.is_null()).or(agent.get("model_name")),
        step.get("metrics").and_then(metrics).as_ref(),
    );
    if step.get("is_copied_context").and_then(Value::as_bool) == Some(true) {
        said.copied = Some(CopyOf::default());
    }
    draft.add_answer(said);
    draft.session_usage.extend(sums.map(|sums| answer::of(None, Some(sums))));
    if step.get("extra").is_some_and(|extra| !extra.is_null()) {
        sink.skip("extra");
    }
    let mut results = FrameDraft::record(Source::Environment, line);
    results.timestamp.clone_from(&draft.timestamp);
    if let Some(mut observation) = take::object(&mut step, "observation") {
        let given = take::list(&mut observation, "results").unwrap_or_default();
        let refers = |given: &&Value| given.get(REFERENCE).is_some_and(|list| !list.is_null());
        given.iter().filter(refers).for_each(|_| sink.skip(REFERENCE));
        results.facets.extend(given.into_iter().map(|given| result(given, has_calls)));
        step.put_some("observation", (!observation.is_empty()).then_some(observation));
    }
    draft.payload.extend(step);
    sink.push(draft);
    if !results.facets.is_empty() {
        sink.push(results);
    }
}

/// The usage of a step by the names of Chat Completions, with its cost.
fn metrics(metrics: &Value) -> Option<Value> {
    let places = ["prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"];
    answer::usage_at(metrics, places)
}

/// That of a whole trajectory.
fn sums(metrics: &Value) -> Option<Value> {
    let places =
        ["total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd"];
    answer::usage_at(metrics, places)
}

fn call(call: Value) -> Facet {
    let Value::Object(mut call) = call else { return parts::opaque("tool call", call) };
    let id = take::text(&mut call, "tool_call_id");
    let name = take::text(&mut call, "function_name").unwrap_or_default();
    let arguments = call.shift_remove("arguments");
    with_origin(parts::call(id.as_deref(), &name, arguments.into()), call.into())
}

/// What a call gave; of a step without calls, what the environment said.
fn result(given: Value, has_calls: bool) -> Facet {
    let Value::Object(mut given) = given else { return parts::opaque("result", given) };
    let id = take::text_or_null(&mut given, "source_call_id");
    let mut facet = if has_calls || id.is_some() {
        parts::result(id.as_deref(), None, "", CallOutcome::Unstated)
    } else {
        parts::text(FacetType::EVENT, "")
    };
    match given.shift_remove("content") {
        Some(Value::String(text)) => facet.content = text,
        Some(Value::Array(list)) => {
            given.put("form", "parts");
            facet.children =
                list.into_iter().map(|part| self::part(part, &FacetType::RESULT)).collect();
        }
        None | Some(Value::Null) => given.put("form", "null"),
        Some(other) => {
            given.put("form", "json");
            facet.content = other.to_string();
        }
    }
    with_origin(facet, given.into())
}

/// A part of a message or a result. An image stands in a file beside the trajectory, or at a URL.
fn part(part: Value, text_type: &FacetType) -> Facet {
    if part.str_at("type") != Some("image") {
        return chat::content_part(part, text_type);
    }
    let text = |key: &str| part.get("source").and_then(|of| of.str_at(key)).map(str::to_owned);
    let url = text("path").filter(|path| path.contains("://"));
    parts::image(text("media_type").as_deref(), url.as_deref(), part)
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn a_step_holds_what_was_said_called_and_given() {
        check(
            r#"{"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "version": "1", "model_name": "m", "tool_definitions": [{"type": "function", "function": {"name": "tide"}}]},
               "steps": [
                 {"step_id": 1, "source": "system", "message": "Be brief."},
                 {"step_id": 2, "timestamp": "t", "source": "user", "message": [{"type": "text", "text": "When?"}, {"type": "image", "source": {"media_type": "image/png", "path": "quay.png"}}]},
                 {"step_id": 3, "source": "agent", "model_name": "n", "message": "I look", "reasoning_content": "Hm",
                  "tool_calls": [{"tool_call_id": "c", "function_name": "tide", "arguments": {"day": 1}}, {"tool_call_id": "d", "function_name": "tide", "arguments": {}}],
                  "observation": {"results": [{"source_call_id": "c", "content": "14:20"}, {"source_call_id": "d", "content": [{"type": "text", "text": "15:00"}], "subagent_trajectory_ref": [{"trajectory_path": "tide.json"}]}]}, "extra": {"mood": "calm"},
                  "metrics": {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4, "cost_usd": 0.5}},
                 {"step_id": 4, "source": "agent", "message": "", "observation": {"results": [{"content": "the harbour closes"}]}, "is_copied_context": true},
                 {"message": 1}, 5],
               "final_metrics": {"total_prompt_tokens": 9},
               "subagent_trajectories": [{"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "b"}, "steps": [{"source": "agent", "message": "Yes"}], "final_metrics": {"total_prompt_tokens": 7, "total_completion_tokens": 1}}]}"#,
            r#"
            atif
            # s
            environment - {"record":{"name":"a","version":"1","model_name":"m"},"tools":[{"type":"function","function":{"name":"tide"}}]}
            system message {"step_id":1,"source":"system"}
              system "Be brief."
            user message t {"form":"parts","step_id":2,"source":"user"}
              event "When?" <- {"type":"text"}
              image "[image]" <- {"type":"image","source":{"media_type":"image/png","path":"quay.png"}}
            agent message {"answer":{"model":"n","usage":{"input":9,"cacheRead":4,"output":2,"cost":{"amount":"0.5","currency":"USD"}}},"step_id":3,"source":"agent","model_name":"n","extra":{"mood":"calm"},"metrics":{"prompt_tokens":9,"completion_tokens":2,"cached_tokens":4,"cost_usd":0.5}}
              thought "Hm" <- {"field":"reasoning_content"}
              speech "I look"
              call tide c {"day":1}
              call tide d {}
            environment -
              result tide c "14:20"
              result tide d "" <- {"subagent_trajectory_ref":[{"trajectory_path":"tide.json"}],"form":"parts"}
                result - - "15:00" <- {"type":"text"}
            agent message {"form":"empty","answer":{"model":"m","copied":{}},"step_id":4,"source":"agent","is_copied_context":true}
            environment -
              event "the harbour closes"
            environment -
              unknown (a step without a source) {"message":1}
            environment -
              unknown (a number is no step) 5
            # s-2
            agent message {"sessionUsage":[{"usage":{"input":7,"output":1}}],"source":"agent"}
              speech "Yes"
            messages 5, calls 2, results 2, sessions 2, unknown 2, skipped {"agent": 2, "extra": 1, "final_metrics": 2, "schema_version": 2, "session_id": 2, "subagent_trajectories": 1, "subagent_trajectory_ref": 1}
            "#,
        );
    }
}
