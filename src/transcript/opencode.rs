//! Exports of OpenCode: messages whose parts are what the model said and what its tools gave.

use super::{
    answer,
    draft::{CompactionRecord, FrameDraft},
    parts::{self, Arguments, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, ModelAnswer, Source},
};

/// Reads `{info, messages: [{info, parts}]}`.
pub(super) struct OpenCodeReader;

impl OpenCodeReader {
    pub(super) fn is_document(value: &Value) -> bool {
        let is_message = |message: &Value| {
            message.get("info").is_some()
                && message.get("parts").is_some_and(|parts| parts.as_array().is_some())
        };
        // A session in which nothing was said yet has its id alone.
        let is_new = || value.get("info").is_some_and(|info| info.str_at("id").is_some());
        let messages = value.get("messages").and_then(Value::as_array);
        messages.is_some_and(|all| all.iter().any(is_message) || all.is_empty() && is_new())
    }
}

impl super::Decoder for OpenCodeReader {
    fn record(&mut self, value: Value, line: u64, sink: &mut Sink) {
        let Some((document, messages)) = take::document(value, "messages", line, sink) else {
            return;
        };
        let id = document.get("info").and_then(|info| info.str_at("id"));
        sink.session(id.unwrap_or("1"));
        for message in messages {
            let Value::Object(mut message) = message else {
                sink.unknown(line, format!("{} is no message", message.kind()), message);
                continue;
            };
            let parts = take::list(&mut message, "parts");
            match (take::object(&mut message, "info"), parts) {
                (Some(mut info), Some(parts)) => {
                    info.put_some("record", (!message.is_empty()).then_some(message));
                    self::message(info, parts, line, sink);
                }
                (info, parts) => {
                    message.put_some("info", info);
                    message.put_some("parts", parts.map(Value::Array));
                    sink.unknown(line, "a message without `info` and `parts`", message.into());
                }
            }
        }
    }
}

/// A message of the user, or an answer, and the results of its calls after it.
fn message(mut info: Object, parts: Vec<Value>, line: u64, sink: &mut Sink) {
    let is_answer = info.str_at("role") == Some("assistant");
    let source = if is_answer { Source::Agent } else { Source::User };
    // The answer that holds a summary takes the place of all before it.
    let is_summary = is_answer && info.get("summary").and_then(Value::as_bool) == Some(true);
    let text_type = match (is_summary, is_answer) {
        (true, _) => FacetType::SUMMARY,
        (_, true) => FacetType::SPEECH,
        _ => FacetType::EVENT,
    };
    let mut draft = FrameDraft::message(source, line);
    draft.uuid = take::text(&mut info, "id");
    draft.timestamp = info.get("time").and_then(|time| time.get("created")).map(Value::to_string);
    draft.compacted = is_summary.then(|| CompactionRecord::of("opencode"));
    let stop = info.get("error").map(|_| "error".into());
    let answer = answer::of(info.get("modelID"), usage(&info).as_ref());
    draft.add_answer(ModelAnswer { stop, ..answer });
    draft.payload = info;
    let mut results = FrameDraft::record(Source::Environment, line);
    results.timestamp.clone_from(&draft.timestamp);
    for value in parts {
        let kind = value.str_at("type").unwrap_or("part").to_owned();
        let is_text = value.str_at("text").is_some();
        match (kind.as_str(), value) {
            // What the client shows to people alone.
            ("text", value) if value.get("ignored").and_then(Value::as_bool) == Some(true) => {
                sink.skip("ignored text");
            }
            ("text" | "reasoning", Value::Object(mut part)) if is_text => {
                let text = take::text(&mut part, "text").unwrap_or_default();
                let thinks = kind == "reasoning";
                // What the client put beside the user's words: files, what agents are told.
                let is_notice = part.get("synthetic").and_then(Value::as_bool) == Some(true);
                let of = match (thinks, is_answer) {
                    (true, _) => FacetType::THOUGHT,
                    (_, false) if is_notice => FacetType::NOTICE,
                    _ => text_type.clone(),
                };
                draft.facets.push(with_origin(parts::text(of, text), part.into()));
            }
            ("tool", Value::Object(part)) => {
                let (call, result) = tool(part);
                draft.facets.push(call);
                results.facets.extend(result);
            }
            ("file", value) => draft.facets.push(file(value)),
            ("step-start" | "step-finish" | "snapshot" | "patch" | "retry" | "compaction", _) => {
                sink.skip(&kind);
            }
            (kind, value) => draft.facets.push(parts::opaque(kind, value)),
        }
    }
    let is_notice = |facet: &Facet| facet.facet_type == FacetType::NOTICE;
    if !draft.facets.is_empty() && draft.facets.iter().all(is_notice) {
        draft.source = Source::Environment;
    }
    sink.push(draft);
    if !results.facets.is_empty() {
        sink.push(results);
    }
}

/// The usage in the names of those whose input leaves out what the cache served; the output leaves out
/// the reasoning.
fn usage(info: &Object) -> Option<Value> {
    let tokens = info.get("tokens")?;
    let mut usage = Object::new();
    let cache = |key: &str| tokens.get("cache").and_then(|cache| cache.get(key)).cloned();
    let reasoning = tokens.get("reasoning");
    let more = reasoning.and_then(Value::as_u64).unwrap_or(0);
    let output = tokens.get("output").map(|output| match output.as_u64() {
        Some(output) => output.saturating_add(more).into(),
        None => output.clone(),
    });
    usage.put_some("input", tokens.get("input").cloned());
    usage.put_some("output", output);
    usage.put_some("reasoning", reasoning.cloned());
    usage.put_some("cacheRead", cache("read"));
    usage.put_some("cacheWrite", cache("write"));
    usage.put_some("cost", info.get("cost").cloned());
    Some(usage.into())
}

/// A call, and its result where it has ended.
fn tool(mut part: Object) -> (Facet, Option<Facet>) {
    let (id, name) = (take::text(&mut part, "callID"), take::text(&mut part, "tool"));
    let (id, name) = (id.as_deref(), name.as_deref().unwrap_or_default());
    let mut state = take::object(&mut part, "state").unwrap_or_default();
    let arguments = Arguments::from(state.shift_remove("input"));
    let stated = CallOutcome::of_status(state.str_at("status"));
    let key = if stated.is_failure() { "error" } else { "output" };
    let said = take::text(&mut state, key);
    let files = take::list(&mut state, "attachments").unwrap_or_default();
    let result = said.map(|text| {
        let mut facet = parts::result(id, Some(name), &*text, stated.said_as(&text));
        facet.children = files.into_iter().map(file).collect();
        facet
    });
    part.put("state", state);
    (with_origin(parts::call(id, name, arguments), part.into()), result)
}

/// A file: an image, or something that is kept whole.
fn file(part: Value) -> Facet {
    let url = part.str_at("url").map(str::to_owned);
    match part.str_at("mime").map(str::to_owned) {
        Some(kind) if kind.starts_with("image/") => parts::image(Some(&kind), url.as_deref(), part),
        _ => parts::opaque("file", part),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::check;
    use crate::transcript::Transcript;

    #[test]
    fn exports_that_stand_one_a_line_are_sessions_of_one_file() {
        let export = |id: &str| {
            format!(
                r#"{{"info":{{"id":"{id}"}},"messages":[{{"info":{{"role":"user"}},"parts":[{{"type":"text","text":"Go"}}]}}]}}"#
            )
        };
        let lines = [export("a"), r#"{"info":{"id":"n"},"messages":[]}"#.to_owned(), export("b")];
        let text = lines.join("\n");
        let transcript = Transcript::new(text.as_bytes()).unwrap();
        let sessions = transcript.map(|record| record.unwrap().session.to_string());
        assert_eq!(sessions.collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn parts_are_what_was_said_called_and_given() {
        check(
            r#"{"info": {"id": "ses"}, "messages": [
                 {"info": {"role": "user", "id": "m1", "time": {"created": 5}}, "parts": [{"type": "text", "text": "Look"}, {"type": "text", "text": "hid", "ignored": true},
                   {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}]},
                 {"info": {"role": "assistant", "modelID": "q", "cost": 0, "tokens": {"input": 7, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}}},
                  "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "Hm"},
                   {"type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed", "input": {"c": 1}, "output": "a.txt"}},
                   {"type": "tool", "tool": "bash", "callID": "c2", "state": {"status": "error", "input": {}, "error": "no"}},
                   {"type": "tool", "tool": "bash", "callID": "c3", "state": {"status": "running", "input": {}}},
                   {"type": "novel", "x": 1}, {"type": "step-finish"}]},
                 {"info": {"role": "assistant", "summary": true}, "parts": [{"type": "text", "text": "So far"}]},
                 {"info": {}}, 5]}"#,
            r#"
            opencode
            # ses
            user message m1 5 {"time":{"created":5}}
              event "Look" <- {"type":"text"}
              image "[image/png, 3 bytes]" <- {"type":"file","mime":"image/png","url":"data:image/png;base64,AAAA"}
            agent message {"answer":{"model":"q","usage":{"input":10,"cacheRead":3,"cacheWrite":0,"output":3,"reasoning":1,"cost":{"amount":"0","currency":"USD"}}},"modelID":"q","cost":0,"tokens":{"input":7,"output":2,"reasoning":1,"cache":{"read":3,"write":0}}}
              thought "Hm" <- {"type":"reasoning"}
              call bash c1 {"c":1} <- {"type":"tool","state":{"status":"completed"}}
              call bash c2 {} <- {"type":"tool","state":{"status":"error"}}
              call bash c3 {} <- {"type":"tool","state":{"status":"running"}}
              opaque "[novel, 22 bytes]" <- {"type":"novel","x":1}
            environment -
              result bash c1 done "a.txt"
              result bash c2 failed "no"
            agent message {"summary":true}
              summary "So far" <- {"type":"text"}
            environment -
              unknown (a message without `info` and `parts`) {"info":{}}
            environment -
              unknown (a number is no message) 5
            messages 3, calls 3, results 2, sessions 1, unknown 2, skipped {"ignored text": 1, "info": 1, "step-finish": 1, "step-start": 1}
            "#,
        );
    }
}
