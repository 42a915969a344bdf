//! Parts of messages as the AI SDK and goose write them.

use super::{
    chat,
    draft::FrameDraft,
    gemini_message,
    parts::{self, with_origin},
    sink::Sink,
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet},
};

/// What the AI SDK tells the model of a call that was denied without a reason.
const DENIED: &str = "Tool execution denied.";

/// A part of this type; itself where it is none of these.
pub(super) fn part(mut block: Object, kind: &str, text_type: &FacetType) -> Result<Facet, Object> {
    match kind {
        "tool-call" => Ok(call(block)),
        "tool-result" => {
            let stated = CallOutcome::of_error_mark(block.get("isError"));
            if let Some(output) = block.shift_remove("output") {
                return Ok(result(block, Some(output), stated, false));
            }
            // Version 4 has beside a result what a provider gets in its place.
            if let Some(content) = take::list(&mut block, "experimental_content") {
                return Ok(result(block, Some(content.into()), stated, false));
            }
            let output = block.shift_remove("result");
            Ok(result(block, output, stated, true))
        }
        "toolRequest" | "frontendToolRequest" => goose_call(block),
        "toolResponse" => goose_result(block),
        "reasoning" => {
            let text = take::text(&mut block, "text").or_else(|| take::text(&mut block, kind));
            match text {
                Some(text) => Ok(with_origin(parts::thought(text), block.into())),
                None => Err(block),
            }
        }
        "file" | "media" | "image-data" | "image-url" | "reasoning-file" => {
            let first = |keys: &[&str]| {
                // Version 7 says of data what it is.
                let inner = block.get("data");
                let at = |key: &&str| block.str_at(key).or_else(|| inner?.str_at(key));
                keys.iter().find_map(at).map(str::to_owned)
            };
            let media_type = first(&["mediaType", "mimeType", "contentType"]);
            let is_image = media_type
                .as_ref()
                .map_or(kind.starts_with("image-"), |of| of.starts_with("image/") || of == "image");
            if !is_image {
                return Err(block);
            }
            let source = first(&["url", "data"]);
            Ok(parts::image(media_type.as_deref(), source.as_deref(), block.into()))
        }
        // What a server of the Model Context Protocol gave to be read.
        "resource" => match take::object(&mut block, "resource") {
            Some(mut resource) => {
                let text = take::text(&mut resource, "text");
                block.put("resource", resource);
                match text {
                    Some(text) => {
                        Ok(with_origin(parts::text(text_type.clone(), text), block.into()))
                    }
                    None => Err(block),
                }
            }
            None => Err(block),
        },
        _ => Err(block),
    }
}

/// Gives a message of a user interface the form of version 5, all of it in `parts`: version 4 says
/// text, reasoning and calls beside them again.
pub(super) fn unify(message: &mut Object) {
    let is_part = |part: &Value| part.str_at("type").is_some();
    let has_calls = message.get(CALLS).is_some_and(|calls| calls.as_array().is_some());
    let is_bare = !message.contains_key("parts");
    let mut parts = match message.get_mut("parts") {
        Some(Value::Array(list)) if list.iter().any(is_part) => std::mem::take(list),
        None if has_calls => Vec::new(),
        _ => return,
    };
    for call in take::list(message, CALLS).unwrap_or_default() {
        if !parts.iter().any(|part| part.get("toolInvocation") == Some(&call)) {
            parts.push(part_of("tool-invocation", "toolInvocation", call));
        }
    }
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    for (member, kind) in [("content", "text"), ("reasoning", "reasoning")] {
        let Some(text) = take::text_or_null(message, member) else { continue };
        let of_kind = parts.iter().filter(|part| part.str_at("type") == Some(kind));
        let text_of = |part: &Value| part.str_at(kind).or_else(|| part.str_at("text")).map(bare);
        let (said, words) = (of_kind.filter_map(text_of).collect::<String>(), bare(&text));
        if said != words && !words.is_empty() {
            // Where there are no parts, it was said after the calls.
            let at = if is_bare && kind == "text" { parts.len() } else { 0 };
            parts.insert(at, part_of(kind, kind, text.into()));
        }
    }
    for file in take::list(message, "experimental_attachments").unwrap_or_default() {
        parts.push(match file {
            Value::Object(mut file) => {
                file.put("type", "file");
                file.into()
            }
            other => other,
        });
    }
    message.put("parts", parts);
}

/// Says of a message of a user interface that it holds several answers of the model, read as one.
pub(super) fn note_steps(message: &Object, line: u64, sink: &mut Sink) {
    let parts = message.get("parts").and_then(Value::as_array).unwrap_or_default();
    let steps = parts.iter().filter(|part| part.str_at("type") == Some("step-start")).count();
    if steps > 1 {
        sink.note(line, &format!("holds {steps} answers of the model, and counts as one"));
    }
}

/// Counts what the AI SDK keeps beside what a model reads: metadata, sources, parts of a provider's own.
pub(super) fn count_unsent(draft: &FrameDraft, sink: &mut Sink) {
    const UNSENT: [&str; 4] = ["custom", "source", "source-document", "source-url"];
    let kinds = draft.facets.iter().filter_map(parts::opaque_type);
    kinds.filter(|kind| UNSENT.contains(kind)).for_each(|kind| sink.skip(kind));
    if draft.payload.contains_key("metadata") {
        sink.skip("metadata");
    }
}

/// The calls of a message in version 4.
const CALLS: &str = "toolInvocations";

fn part_of(kind: &str, key: &str, value: Value) -> Value {
    let mut part = Object::new();
    part.put("type", kind);
    part.put(key, value);
    part.into()
}

/// The parts of a message of a user interface: a call has its outcome in itself.
pub(super) fn of_ui(list: Vec<Value>, text_type: &FacetType) -> Vec<Facet> {
    let mut facets = Vec::new();
    for part in list {
        let Value::Object(mut object) = part else {
            facets.push(chat::content_part(part, text_type));
            continue;
        };
        let kind = object.str_at("type").unwrap_or_default().to_owned();
        match (kind.as_str(), object.shift_remove("toolInvocation")) {
            // A mark between two steps says nothing.
            ("step-start", None) if object.len() == 1 => {}
            ("", None) => facets.push(gemini_message::part(object.into(), text_type)),
            ("tool-invocation", Some(Value::Object(mut inner))) => {
                object.shift_remove("type");
                if !object.is_empty() {
                    inner.put("part", object);
                }
                ui_call(inner, &mut facets);
            }
            (kind, None) if is_call(kind) && !object.contains_key("toolName") => {
                let name = kind.strip_prefix("tool-").unwrap_or(kind).to_owned();
                object.put("toolName", name);
                ui_call(object, &mut facets);
            }
            ("dynamic-tool", None) => ui_call(object, &mut facets),
            (_, inner) => {
                object.put_some("toolInvocation", inner);
                facets.push(chat::content_part(object.into(), text_type));
            }
        }
    }
    facets
}

fn is_call(kind: &str) -> bool {
    kind.starts_with("tool-") && !kind.starts_with("tool-approval")
}

/// A call with what came of it, where that is there.
fn ui_call(mut block: Object, facets: &mut Vec<Facet>) {
    let error = take::text(&mut block, "errorText");
    let state = block.str_at("state").unwrap_or_default();
    let stated = CallOutcome::of_status(state.strip_prefix("output-"))
        .max(CallOutcome::failed_if(error.is_some()));
    // The model is told why it may not.
    let reason = block.get("approval").and_then(|approval| approval.str_at("reason"));
    let denied = (stated == CallOutcome::Denied).then(|| reason.unwrap_or(DENIED).to_owned());
    let output = ["output", "result"].iter().find_map(|key| block.shift_remove(key));
    let output = output.filter(|output| !output.is_null()).or(error.or(denied).map(Value::from));
    let mut ids = Object::new();
    for key in ["toolCallId", "toolName"] {
        ids.put_some(key, block.get(key).cloned());
    }
    facets.push(call(block));
    facets.extend(output.map(|output| result(ids, Some(output), stated, true)));
}

fn call(mut block: Object) -> Facet {
    let (id, name) = (take::text(&mut block, "toolCallId"), take::text(&mut block, "toolName"));
    let input = ["input", "args", "rawInput"].iter().find_map(|key| block.shift_remove(key));
    block.shift_remove("type");
    let call = parts::call(id.as_deref(), &name.unwrap_or_default(), input.into());
    with_origin(call, block.into())
}

/// A result; `block` is what its part has besides the output. A raw output is as the tool gave it.
fn result(mut block: Object, output: Option<Value>, stated: CallOutcome, is_raw: bool) -> Facet {
    let (id, name) = (take::text(&mut block, "toolCallId"), take::text(&mut block, "toolName"));
    block.shift_remove("type");
    let mut facet = parts::result(id.as_deref(), name.as_deref(), "", stated);
    let mut shown = output.unwrap_or_default();
    let mut is_json = is_raw;
    // The SDK says what an output is; goose's is what a server of the Model Context Protocol gave.
    if let Value::Object(output) = &mut shown {
        let kind = output.str_at("type").filter(|_| !is_raw).unwrap_or_default();
        is_json |= matches!(kind, "json" | "error-json");
        let of_kind = kind.split_once("error-").map_or(kind, |_| "error");
        let stated = CallOutcome::of_status(Some(of_kind));
        let stated = stated.max(CallOutcome::of_error_mark(output.get("isError")));
        parts::complete_result(&mut facet, None, None, stated);
        let key = if output.contains_key("type") { "value" } else { "content" };
        if !is_raw && let Some(inner) = output.shift_remove(key) {
            let rest = std::mem::take(output);
            block.put_some("beside", (!rest.is_empty()).then_some(rest));
            shown = inner;
        }
    }
    match shown {
        Value::String(text) => facet.content = text,
        Value::Array(list) if !is_json => {
            block.put("form", "parts");
            let part = |part| chat::content_part(part, &FacetType::RESULT);
            facet.children = list.into_iter().map(part).collect();
        }
        Value::Null => block.put("form", "null"),
        other => {
            block.put("form", "json");
            facet.content = other.to_string();
        }
    }
    with_origin(facet, block.into())
}

fn goose_call(mut block: Object) -> Result<Facet, Object> {
    let Some(Value::Object(mut outer)) = block.shift_remove("toolCall") else { return Err(block) };
    let Some(Value::Object(mut inner)) = outer.shift_remove("value") else {
        block.put("toolCall", outer);
        return Err(block);
    };
    let (id, name) = (take::text(&mut block, "id"), take::text(&mut inner, "name"));
    let arguments = inner.shift_remove("arguments");
    block.shift_remove("type");
    for rest in [outer, inner] {
        block.put_unknown(&rest);
    }
    let call = parts::call(id.as_deref(), &name.unwrap_or_default(), arguments.into());
    Ok(with_origin(call, block.into()))
}

fn goose_result(mut block: Object) -> Result<Facet, Object> {
    let Some(Value::Object(mut outer)) = block.shift_remove("toolResult") else {
        return Err(block);
    };
    if let Some(id) = block.shift_remove("id") {
        block.put("toolCallId", id);
    }
    let stated = CallOutcome::of_status(outer.str_at("status"));
    let output = outer.shift_remove("value").or_else(|| outer.shift_remove("error"));
    block.put_unknown(&outer);
    Ok(result(block, output, stated, false))
}

#[cfg(test)]
mod tests {
    use crate::transcript::testing::{check, outline};

    #[test]
    fn messages_of_the_ai_sdk_have_their_calls_and_results() {
        let report = check(
            "openai-chat",
            r#"[{"role":"user","content":"a"},
                {"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"tool-call","toolCallId":"c","toolName":"f","input":{"x":1}}]},
                {"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"text","value":"T"}}]},
                {"role":"assistant","content":[{"type":"tool-call","toolCallId":"d","toolName":"f","args":{}}]},
                {"role":"tool","content":[{"type":"tool-result","toolCallId":"d","toolName":"f","output":{"type":"error-json","value":{"no":1}}}]}]"#,
            r#"
1/user*
  event "a"
1/agent*
  thought "hm"
  action "" {"toolName":"f","toolCallId":"c","parameters":{"x":1}}
1/environment*
  result "T" {"toolName":"f","toolCallId":"c"}
1/agent*
  action "" {"toolName":"f","toolCallId":"d","parameters":{}}
1/environment*
  result "{\"no\":1}" {"toolName":"f","toolCallId":"d","outcome":"failed"}"#,
        );
        assert_eq!(report.noted, 0);
    }

    #[test]
    fn a_message_of_several_answers_says_so() {
        let step = r#"{"type":"step-start"},{"type":"text","text":"a"}"#;
        for (steps, noted) in [(1, 0), (3, 1)] {
            let parts = vec![step; steps].join(",");
            let list = format!(r#"[{{"id":"1","role":"assistant","parts":[{parts}]}}]"#);
            assert_eq!(outline(&list).2.noted, noted, "{steps}");
        }
    }

    #[test]
    fn what_the_model_does_not_read_is_counted() {
        let report = check(
            "openai-chat",
            r#"[{"id":"1","role":"user","metadata":{"by":"me"},"parts":[{"type":"text","text":"a"}]},
                {"id":"2","role":"assistant","parts":[{"type":"source-url","url":"https://a.b"},{"type":"text","text":"b"}]},
                {"role":"assistant","content":[{"type":"custom","kind":"k.compaction"}]}]"#,
            r#"
1/user*
  event "a"
1/agent*
  opaque "[source-url, 41 bytes]"
  speech "b"
1/agent*
  opaque "[custom, 39 bytes]""#,
        );
        let skipped: Vec<_> = report.skipped.keys().map(String::as_str).collect();
        assert_eq!(skipped, ["custom", "metadata", "source-url"]);
    }

    #[test]
    fn an_output_that_is_sent_as_json_is_its_whole_json() {
        check(
            "openai-chat",
            r#"[{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","toolName":"f","output":{"type":"json","value":[{"type":"text","text":"T","by":"me"}]}},
                  {"type":"tool-result","toolCallId":"b","toolName":"f","result":[{"type":"pier"}]},
                  {"type":"tool-result","toolCallId":"c","toolName":"f","result":"short","experimental_content":[{"type":"text","text":"long"}]}]},
                {"id":"2","role":"assistant","parts":[
                  {"type":"tool-f","toolCallId":"d","state":"output-available","input":{},"output":{"type":"content","value":[{"type":"text","text":"T"}],"by":"me"}},
                  {"type":"tool-f","toolCallId":"e","state":"output-available","input":{},"output":[{"type":"text","text":"T","by":"me"}]}]}]"#,
            r#"
1/environment*
  result "[{\"type\":\"text\",\"text\":\"T\",\"by\":\"me\"}]" {"toolName":"f","toolCallId":"a"}
  result "[{\"type\":\"pier\"}]" {"toolName":"f","toolCallId":"b"}
  result "" {"toolName":"f","toolCallId":"c"}
    result "long"
1/agent*
  action "" {"toolName":"f","toolCallId":"d","parameters":{}}
  result "{\"type\":\"content\",\"value\":[{\"type\":\"text\",\"text\":\"T\"}],\"by\":\"me\"}" {"toolName":"f","toolCallId":"d","outcome":"done"}
  action "" {"toolName":"f","toolCallId":"e","parameters":{}}
  result "[{\"type\":\"text\",\"text\":\"T\",\"by\":\"me\"}]" {"toolName":"f","toolCallId":"e","outcome":"done"}"#,
        );
    }

    #[test]
    fn messages_of_a_user_interface_hold_calls_with_their_outcome() {
        check(
            "openai-chat",
            r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"a"}]},
                {"id":"2","role":"assistant","parts":[{"type":"step-start"},
                  {"type":"tool-tide","toolCallId":"c","state":"output-available","input":{"x":1},"output":"T"},
                  {"type":"dynamic-tool","toolName":"g","toolCallId":"d","state":"output-error","input":{},"errorText":"no"},
                  {"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"e","toolName":"h","args":{},"result":{"a":1}}},
                  {"type":"text","text":"b","state":"done"}]}]"#,
            r#"
1/user*
  event "a"
1/agent*
  action "" {"toolName":"tide","toolCallId":"c","parameters":{"x":1}}
  result "T" {"toolName":"tide","toolCallId":"c","outcome":"done"}
  action "" {"toolName":"g","toolCallId":"d","parameters":{}}
  result "no" {"toolName":"g","toolCallId":"d","outcome":"failed"}
  action "" {"toolName":"h","toolCallId":"e","parameters":{}}
  result "{\"a\":1}" {"toolName":"h","toolCallId":"e"}
  speech "b""#,
        );
    }

    #[test]
    fn messages_of_version_4_say_what_stands_in_their_parts_once() {
        let report = check(
            "openai-chat",
            r#"[{"id":"1","role":"user","content":"When?","parts":[{"type":"text","text":"When?"}],"experimental_attachments":[{"name":"q","contentType":"image/png","url":"data:image/png;base64,AAAA"}]},
                {"id":"2","role":"assistant","content":"I look.\nAt noon.","reasoning":"hm","toolInvocations":[{"state":"result","toolCallId":"c","toolName":"tide","args":{"x":1},"result":{"high":12}}],
                 "parts":[{"type":"step-start"},{"type":"reasoning","reasoning":"hm","details":[]},{"type":"text","text":"I look."},
                  {"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c","toolName":"tide","args":{"x":1},"result":{"high":12}}},
                  {"type":"source","source":{"id":"s"}},{"type":"text","text":" At noon."}]},
                {"id":"3","role":"assistant","content":"Later","toolInvocations":[{"state":"result","toolCallId":"d","toolName":"tide","args":{},"result":"T"}]},
                {"id":"4","role":"assistant","content":"Beside","parts":[{"type":"text","text":"them"}]}]"#,
            r#"
1/user*
  event "When?"
  image "[image/png, 3 bytes]"
1/agent*
  thought "hm"
  speech "I look."
  action "" {"toolName":"tide","toolCallId":"c","parameters":{"x":1}}
  result "{\"high\":12}" {"toolName":"tide","toolCallId":"c"}
  opaque "[source, 37 bytes]"
  speech " At noon."
1/agent*
  action "" {"toolName":"tide","toolCallId":"d","parameters":{}}
  result "T" {"toolName":"tide","toolCallId":"d"}
  speech "Later"
1/agent*
  speech "Beside"
  speech "them""#,
        );
        assert_eq!(report.noted, 0);
    }

    #[test]
    fn images_and_resources_in_results_are_what_they_are() {
        check(
            "openai-chat",
            r#"[{"role":"user","content":[{"type":"file","mediaType":"image/png","data":{"type":"data","data":"AAAA"}},{"type":"file","mediaType":"image/png","data":{"type":"url","url":"https://a.b/c"}}]},
                {"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{}}]},
                {"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f","output":{"type":"content","value":[
                  {"type":"image-data","mediaType":"image/png","data":"AAAA"},{"type":"image-url","url":"https://a.b/d"},{"type":"file-url","url":"https://a.b/e"},
                  {"type":"resource","resource":{"uri":"file:///a","text":"the quay"}},{"type":"resource","resource":{"uri":"file:///b","blob":"AAAA"}}]}}]}]"#,
            r#"
1/user*
  image "[image/png, 3 bytes]"
  image "[image: https://a.b/c]"
1/agent*
  action "" {"toolName":"f","toolCallId":"c","parameters":{}}
1/environment*
  result "" {"toolName":"f","toolCallId":"c"}
    image "[image/png, 3 bytes]"
    image "[image: https://a.b/d]"
    opaque "[file-url, 41 bytes]"
    result "the quay"
    opaque "[resource, 64 bytes]""#,
        );
    }

    #[test]
    fn messages_of_goose_have_their_calls_and_results() {
        let report = check(
            "goose",
            r#"
{"role":"user","created":1,"content":[{"type":"text","text":"a"}]}
{"role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"f","arguments":{"x":1}}}}]}
{"role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":[{"type":"text","text":"T"}]}}]}
{"role":"assistant","content":[{"type":"toolRequest","id":"d","toolCall":{"status":"success","value":{"name":"f","arguments":{}}}}]}
{"role":"user","content":[{"type":"toolResponse","id":"d","toolResult":{"status":"error","error":"no"}}]}
{"role":"assistant","content":[{"type":"novelPart","x":"y"}]}"#,
            r#"
1/user*
  event "a"
1/agent*
  action "" {"toolName":"f","toolCallId":"c","parameters":{"x":1}}
1/user*
  result "" {"toolName":"f","toolCallId":"c","outcome":"done"}
    result "T"
1/agent*
  action "" {"toolName":"f","toolCallId":"d","parameters":{}}
1/user*
  result "no" {"toolName":"f","toolCallId":"d","outcome":"failed"}
1/agent*
  opaque "[novelPart, 28 bytes]""#,
        );
        assert_eq!(
            report.notes[0].text,
            "a part of type \"novelPart\" is not understood, and kept as it is"
        );
    }
}
