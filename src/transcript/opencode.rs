//! Exports of OpenCode: messages whose parts are what the model said and what its tools gave.

use super::{
    draft::{CompactionRecord, FrameDraft},
    parts::{self, Arguments, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{Facet, Source},
};

/// Reads `{info, messages: [{info, parts}]}`.
pub(super) struct OpenCodeReader;

impl OpenCodeReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let is_message = |message: &Value| {
            message.get("info").is_some_and(|info| info.str_at("role").is_some())
                && message.get("parts").is_some_and(|parts| parts.as_array().is_some())
        };
        value
            .get("messages")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(is_message))
    }
}

impl super::Decoder for OpenCodeReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let mut document = match value {
            Value::Object(document) => document,
            other => return sink.unknown(line, "no export of OpenCode", other),
        };
        let name =
            document.get("info").and_then(|info| info.str_at("id")).unwrap_or("1").to_owned();
        sink.session(&name);
        let messages = take::list(&mut document, "messages").unwrap_or_default();
        document.keys().for_each(|key| sink.skip(key));
        for message in messages {
            let Value::Object(mut message) = message else {
                sink.unknown(line, format!("{} is no message", message.kind()), message);
                continue;
            };
            let parts = take::list(&mut message, "parts");
            match (take::object(&mut message, "info"), parts) {
                (Some(info), Some(parts)) => self::message(info, parts, line, sink),
                (info, parts) => {
                    message.put_some("info", info);
                    message.put_some("parts", parts.map(Value::Array));
                    sink.unknown(line, "a message without `info` and `parts`", message.into());
                }
            }
        }
    }
}

/// A message of the user, or an answer: each step of one is a request of its own.
fn message(mut info: Object, parts: Vec<Value>, line: u64, sink: &mut Sink) {
    let is_answer = info.get("role").and_then(Value::as_str) == Some("assistant");
    let (source, text_type) = if is_answer {
        (Source::Agent, FacetType::SPEECH)
    } else {
        (Source::User, FacetType::EVENT)
    };
    // The answer that holds a summary takes the place of all before it.
    let is_summary = is_answer && info.get("summary").and_then(Value::as_bool) == Some(true);
    let text_type = if is_summary { FacetType::SUMMARY } else { text_type };
    let time = info.get("time").and_then(|time| time.get("created")).map(Value::to_string);
    let reported = usage(info.get("tokens"), info.get("cost"));
    info.put_some("model", info.get("modelID").and_then(Value::as_str).map(str::to_owned));
    if info.get("error").is_some() {
        info.put("stopReason", "error");
    }
    let mut next = FrameDraft::message(source.clone(), line);
    next.uuid = take::text(&mut info, "id");
    next.compacted = is_summary.then(|| CompactionRecord::of("opencode"));
    let (mut steps, mut results) = (Vec::new(), Vec::new());
    for value in parts {
        let Value::Object(mut part) = value else {
            next.facets.push(parts::opaque("part", value));
            continue;
        };
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("part").to_owned();
        match kind.as_str() {
            "text" | "reasoning"
                if part.get("text").is_some_and(|text| text.as_str().is_some()) =>
            {
                let text = take::text(&mut part, "text").unwrap_or_default();
                // What the client shows to people alone.
                if part.get("ignored").and_then(Value::as_bool) == Some(true) {
                    sink.skip("ignored text");
                    continue;
                }
                let thinks = kind == "reasoning";
                let of = if thinks { FacetType::THOUGHT } else { text_type.clone() };
                next.facets.push(with_origin(parts::text(of, text), part.into()));
            }
            "tool" => {
                let (call, result) = tool(part);
                next.facets.push(call);
                results.extend(result);
            }
            "file" => next.facets.push(file(part)),
            "step-finish" => {
                next.payload.put_some("usage", usage(part.get("tokens"), part.get("cost")));
                steps.push((
                    std::mem::replace(&mut next, FrameDraft::record(source.clone(), line)),
                    std::mem::take(&mut results),
                ));
            }
            "step-start" | "snapshot" | "patch" | "retry" | "compaction" => sink.skip(&kind),
            kind => next.facets.push(parts::opaque(kind, part.into())),
        }
    }
    if steps.is_empty() || !next.facets.is_empty() {
        next.payload.put_some("usage", reported.filter(|_| steps.is_empty()));
        steps.push((next, results));
    }
    for (mut step, results) in steps {
        step.timestamp.clone_from(&time);
        for (key, value) in &info {
            if !step.payload.contains_key(key) {
                step.payload.put(key, value.clone());
            }
        }
        sink.push(step);
        if !results.is_empty() {
            let draft = FrameDraft::record(Source::Environment, line);
            sink.push(FrameDraft { facets: results, timestamp: time.clone(), ..draft });
        }
    }
}

/// The usage in the names of those whose input leaves out what the cache served; the output leaves out
/// the reasoning.
fn usage(tokens: Option<&Value>, cost: Option<&Value>) -> Option<Value> {
    let tokens = tokens?;
    let mut usage = Object::new();
    let cache = |key: &str| tokens.get("cache").and_then(|cache| cache.get(key)).cloned();
    let output = tokens.get("output").and_then(Value::as_u64);
    let reasoning = tokens.get("reasoning").and_then(Value::as_u64);
    let whole = output.map(|output| output.saturating_add(reasoning.unwrap_or(0)));
    usage.put_some("input", tokens.get("input").cloned());
    usage.put_some("output", whole.map(Value::from).or_else(|| tokens.get("output").cloned()));
    usage.put_some("reasoning", tokens.get("reasoning").cloned());
    usage.put_some("cacheRead", cache("read"));
    usage.put_some("cacheWrite", cache("write"));
    usage.put_some("cost", cost.cloned());
    Some(usage.into())
}

/// A call, and its result where it has ended.
fn tool(mut part: Object) -> (Facet, Option<Facet>) {
    let (id, name) = (take::text(&mut part, "callID"), take::text(&mut part, "tool"));
    let (id, name) = (id.as_deref(), name.as_deref().unwrap_or_default());
    let mut state = take::object(&mut part, "state").unwrap_or_default();
    let arguments = Arguments::from(state.shift_remove("input"));
    let failed = state.get("status").and_then(Value::as_str) == Some("error");
    let said = take::text(&mut state, if failed { "error" } else { "output" });
    let files = take::list(&mut state, "attachments").unwrap_or_default();
    let result = said.map(|text| {
        let mut facet = parts::result(id, Some(name), text, failed);
        let shown = |value| match value {
            Value::Object(part) => file(part),
            other => parts::opaque("file", other),
        };
        facet.children = files.into_iter().map(shown).collect();
        facet
    });
    part.put("state", state);
    (with_origin(parts::call(id, name, arguments), part.into()), result)
}

/// A file: an image, or something that is kept whole.
fn file(part: Object) -> Facet {
    let text = |key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
    match (text("mime"), text("url")) {
        (Some(kind), Some(url)) if kind.starts_with("image/") => {
            parts::image(Some(&kind), Some(&url), part.into())
        }
        _ => parts::opaque("file", part.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;

    #[test]
    fn each_step_of_an_answer_has_its_usage_and_its_results() {
        check(
            r#"{"info": {"id": "ses"}, "messages": [
                 {"info": {"role": "user", "id": "m1", "time": {"created": 5}}, "parts": [{"type": "text", "text": "Look"}, {"type": "text", "text": "hid", "ignored": true},
                   {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}]},
                 {"info": {"role": "assistant", "modelID": "q", "tokens": {"input": 9}}, "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "Hm"},
                   {"type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed", "input": {"c": 1}, "output": "a.txt"}},
                   {"type": "step-finish", "tokens": {"input": 7, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}}, "cost": 0},
                   {"type": "tool", "tool": "bash", "callID": "c2", "state": {"status": "error", "input": {}, "error": "no"}},
                   {"type": "tool", "tool": "bash", "callID": "c3", "state": {"status": "running", "input": {}}},
                   {"type": "novel", "x": 1}]},
                 {"info": {"role": "assistant", "summary": true}, "parts": [{"type": "text", "text": "So far"}]},
                 {"info": {}}, 5]}"#,
            r#"
            opencode
            # ses
            user message m1 5 {"time":{"created":5}}
              event "Look" <- {"type":"text"}
              image "[image/png, 3 bytes]" <- {"type":"file","mime":"image/png","url":"data:image/png;base64,AAAA"}
            agent message {"usage":{"input":7,"output":3,"reasoning":1,"cacheRead":3,"cacheWrite":0,"cost":0},"modelID":"q","tokens":{"input":9},"model":"q"}
              thought "Hm" <- {"type":"reasoning"}
              call bash c1 {"c":1} <- {"type":"tool","state":{"status":"completed"}}
            environment -
              result bash c1 "a.txt"
            agent - {"modelID":"q","tokens":{"input":9},"model":"q"}
              call bash c2 {} <- {"type":"tool","state":{"status":"error"}}
              call bash c3 {} <- {"type":"tool","state":{"status":"running"}}
              opaque "[novel, 22 bytes]" <- {"type":"novel","x":1}
            environment -
              result bash c2 failed "no"
            agent message {"summary":true}
              summary "So far" <- {"type":"text"}
            environment -
              unknown (a message without `info` and `parts`) {"info":{}}
            environment -
              unknown (a number is no message) 5
            messages 3, calls 3, results 2, sessions 1, unknown 2, skipped {"ignored text": 1, "info": 1, "step-start": 1}
            "#,
        );
    }
}
