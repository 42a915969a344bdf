//! How an item of the Responses API becomes a frame.
//!
//! Only items of type `message` are messages. A frame of another item keeps in its payload every
//! field that its facets do not hold, `type` included.

use super::{
    blocks, chat,
    draft::{CompactionRecord, FrameDraft},
    parts::{self, Arguments, with_origin},
    take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, Source},
};

/// The fields in which calls have their arguments, in the order in which they are looked for.
const ARGUMENTS: [&str; 7] =
    ["arguments", "input", "action", "operation", "code", "queries", "revised_prompt"];
/// The fields in which a call of a provider's own tool has its outcome.
const OUTCOMES: [&str; 5] = ["output", "outputs", "results", "result", "error"];

/// The types of an item that stands for all that came before it.
const COMPACTIONS: [&str; 3] = ["compaction", "compaction_summary", "context_compaction"];

/// Whether a value has the shape of an item.
pub(super) fn is_item(value: &Value) -> bool {
    value.str_at("type").or_else(|| value.str_at("role")).is_some()
}

/// Whether an item can be of no other API.
pub(super) fn is_telling(item: &Value) -> bool {
    let is_part = |part: &Value| {
        matches!(part.str_at("type"), Some("input_text" | "output_text" | "input_image"))
    };
    match item.str_at("type") {
        Some("message") | None => item
            .get("content")
            .and_then(Value::as_array)
            .is_some_and(|parts| parts.iter().any(is_part)),
        Some("reasoning") => item.get("summary").is_some(),
        Some(kind) => is_call(kind) || is_output(kind),
    }
}

/// Whether items of this type are known, or of a kind that is.
pub(super) fn is_known(kind: &str) -> bool {
    let others = [
        "message",
        "reasoning",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "item_reference",
        "ghost_snapshot",
        "agent_message",
        "other",
    ];
    is_call(kind) || is_output(kind) || COMPACTIONS.contains(&kind) || others.contains(&kind)
}

fn is_call(kind: &str) -> bool {
    kind.ends_with("_call")
}

fn is_output(kind: &str) -> bool {
    kind.ends_with("_call_output") || kind == "tool_search_output"
}

/// Whether a call has what came of it in a field of its own.
pub(super) fn has_outcome(item: &Value) -> bool {
    item.str_at("type").is_some_and(is_call)
        && OUTCOMES.iter().any(|key| item.get(key).is_some_and(|outcome| !outcome.is_null()))
}

/// An item as a frame, or why it is none.
pub(super) fn draft(item: Value, line: u64) -> Result<FrameDraft, (String, Value)> {
    let Value::Object(mut object) = item else {
        return Err((format!("{} is no item", item.kind()), item));
    };
    let has_role = object.str_at("role").is_some();
    let kind = object.str_at("type").unwrap_or_default().to_owned();
    let mut draft = match kind.as_str() {
        "message" | "" if has_role => return Ok(chat::message(object, line)),
        "message" => return Err(("a message without a role".to_owned(), object.into())),
        "" => return Err(("an item without a type".to_owned(), object.into())),
        "reasoning" => {
            FrameDraft { facets: reasoning(&mut object), ..FrameDraft::record(Source::Agent, line) }
        }
        "agent_message" => {
            let mut draft = FrameDraft::record(Source::Environment, line);
            chat::content(
                object.shift_remove("content").unwrap_or_default(),
                &FacetType::EVENT,
                &mut draft,
            );
            let author = object.str_at("author");
            for facet in &mut draft.facets {
                facet.agent_name = author.map(str::to_owned);
            }
            draft
        }
        kind if is_call(kind) => FrameDraft {
            facets: call(&mut object, kind),
            ..FrameDraft::record(Source::Agent, line)
        },
        kind if is_output(kind) => {
            let id = take::text(&mut object, "call_id");
            let field = if object.contains_key("output") { "output" } else { "tools" };
            let output = object.shift_remove(field);
            let facet = outcome(id.as_deref(), None, field, output, &object);
            FrameDraft { facets: vec![facet], ..FrameDraft::record(Source::Environment, line) }
        }
        kind => {
            let is_compaction = COMPACTIONS.contains(&kind);
            let is_agents =
                is_compaction || matches!(kind, "mcp_list_tools" | "mcp_approval_request");
            let source = if is_agents { Source::Agent } else { Source::Environment };
            let facet = parts::opaque(kind, std::mem::take(&mut object).into());
            // It carries what the model needs of all that came before.
            let compacted = is_compaction.then(|| CompactionRecord::in_place("responses-api"));
            FrameDraft { facets: vec![facet], compacted, ..FrameDraft::record(source, line) }
        }
    };
    draft.payload.extend(object);
    Ok(draft)
}

/// The readable parts of a reasoning item, and an opaque one for what is encrypted.
fn reasoning(item: &mut Object) -> Vec<Facet> {
    let mut facets = Vec::new();
    for field in ["summary", "content"] {
        let Some(Value::Array(list)) = item.get_mut(field).filter(|value| value.at(0).is_some())
        else {
            continue;
        };
        for part in std::mem::take(list) {
            let (text, mut origin) = match part {
                Value::Object(mut part) => (take::text(&mut part, "text"), part),
                Value::String(text) => (Some(text), Object::new()),
                other => {
                    facets.push(parts::opaque(field, other));
                    continue;
                }
            };
            origin.put("field", field);
            facets.push(match text {
                Some(text) => with_origin(parts::thought(text), origin.into()),
                None => parts::opaque(field, origin.into()),
            });
        }
        item.shift_remove(field);
    }
    if item.get("encrypted_content").is_some_and(|value| value.as_str().is_some()) {
        let mut hidden = Object::new();
        hidden.put("encrypted_content", item.shift_remove("encrypted_content").unwrap_or_default());
        facets.push(parts::opaque("encrypted reasoning", hidden.into()));
    }
    facets
}

/// A call, and its result where the item has it.
fn call(item: &mut Object, kind: &str) -> Vec<Facet> {
    let mut origin = Object::new();
    let id = take::text(item, "call_id").or_else(|| {
        let id = item.get("id")?.as_str()?.to_owned();
        origin.put("idFrom", "id");
        Some(id)
    });
    let name = item.str_at("name").map(str::to_owned);
    if name.is_some() {
        item.shift_remove("name");
    }
    let name = name.unwrap_or_else(|| kind.strip_suffix("_call").unwrap_or(kind).to_owned());
    let field =
        ARGUMENTS.into_iter().find(|key| item.get(key).is_some_and(|value| !value.is_null()));
    let arguments = field.and_then(|key| item.shift_remove(key));
    if let Some(field) = field.filter(|field| *field != "arguments") {
        origin.put("field", field);
    }
    // Arguments are text; an action and the like are values.
    if arguments.as_ref().is_some_and(|value| value.as_str().is_none()) {
        origin.put("form", "json");
    }
    let call = parts::call(id.as_deref(), &name, Arguments::from(arguments));
    let mut facets = vec![with_origin(call, origin.into())];
    let field =
        OUTCOMES.into_iter().find(|key| item.get(key).is_some_and(|value| !value.is_null()));
    if let Some(field) = field {
        let value = item.shift_remove(field);
        facets.push(if kind == "image_generation_call" && field == "result" {
            generated_image(id.as_deref(), &name, value, item)
        } else {
            outcome(id.as_deref(), Some(&name), field, value, item)
        });
    }
    facets
}

/// What came of a call, from the member `field` of its item; `rest` is what the item has besides.
fn outcome(
    id: Option<&str>,
    name: Option<&str>,
    field: &str,
    value: Option<Value>,
    rest: &Object,
) -> Facet {
    let mut origin = Object::new();
    if field != "output" {
        origin.put("field", field);
    }
    let text = |key: &str| rest.str_at(key);
    let failed = field == "error" || text("status") == Some("failed") || text("error").is_some();
    let mut stated = CallOutcome::failed_if(failed);
    let mut facet = parts::result(id, name, "", stated);
    match value {
        Some(Value::String(text)) => facet.content = text,
        Some(Value::Array(list)) => {
            origin.put("form", "parts");
            facet.children = list.into_iter().map(blocks::provider_part).collect();
        }
        // Codex has one part, or the text and whether it went well.
        Some(Value::Object(mut object)) => {
            stated = stated.max(CallOutcome::of_success_mark(object.get("success")));
            if object.contains_key("type") {
                origin.put("form", "part");
                facet.children = vec![blocks::provider_part(object.into())];
            } else if let Some(text) = take::text(&mut object, "content") {
                facet.content = text;
                origin.put("form", "content");
                origin.put("beside", object);
            } else {
                origin.put("form", "json");
                let shown = blocks::provider_item(object.into());
                (facet.content, facet.children) = (shown.content, shown.children);
            }
        }
        Some(Value::Null) => origin.put("form", "null"),
        None => origin.put("form", "absent"),
        Some(other) => {
            origin.put("form", "json");
            facet.content = other.to_string();
        }
    }
    parts::complete_result(&mut facet, None, None, stated);
    with_origin(facet, origin.into())
}

/// A generated image is base64 in `result`.
fn generated_image(id: Option<&str>, name: &str, data: Option<Value>, item: &Object) -> Facet {
    let format = item.str_at("output_format").unwrap_or("png");
    let media_type = format!("image/{format}");
    let mut block = Object::new();
    block.put_some("result", data);
    let block = Value::Object(block);
    let source = block.str_at("result").map(str::to_owned);
    let image = parts::image(Some(&media_type), source.as_deref(), block);
    let mut origin = Object::new();
    origin.put("field", "result");
    with_origin(
        parts::result(id, Some(name), "", CallOutcome::Unstated).with_child(image),
        origin.into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, transcript::testing::facet_lines};

    /// The source of the item's frame and its payload, then one line per facet.
    #[track_caller]
    fn check(input: &str, expected: &str) {
        let draft = draft(json::read(input.as_bytes()).unwrap(), 1).unwrap();
        assert!(!draft.is_message, "{input}");
        let payload = Value::Object(draft.payload);
        let found = format!("{} {payload}\n{}", draft.source.as_str(), facet_lines(&draft.facets));
        assert!(
            found.trim_end() == expected.trim(),
            "expected:\n{}\n\nfound:\n{found}",
            expected.trim()
        );
    }

    #[test]
    fn arguments_stand_in_many_fields() {
        check(
            r#"{"type":"custom_tool_call","id":"i","call_id":"c","name":"apply_patch","input":"*** Begin"}"#,
            r#"
agent {"type":"custom_tool_call","id":"i"}
action "" {"toolName":"apply_patch","toolCallId":"c","arguments":"*** Begin"} origin {"field":"input"}"#,
        );
        check(
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":null,"namespace":null}"#,
            r#"
agent {"type":"function_call","arguments":null,"namespace":null}
action "" {"toolName":"f","toolCallId":"c"}"#,
        );
        check(
            r#"{"type":"web_search_call","status":"completed","action":{"type":"search"}}"#,
            r#"
agent {"type":"web_search_call","status":"completed"}
action "" {"toolName":"web_search","parameters":{"type":"search"}} origin {"field":"action","form":"json"}"#,
        );
    }

    #[test]
    fn a_providers_call_has_its_result_in_the_same_item() {
        check(
            r#"{"type":"mcp_call","id":"m","name":"ask","arguments":"{}","error":null,"output":"A."}"#,
            r#"
agent {"type":"mcp_call","id":"m","error":null}
action "" {"toolName":"ask","toolCallId":"m","parameters":{}} origin {"idFrom":"id"}
result "A." {"toolName":"ask","toolCallId":"m"}"#,
        );
        check(
            r#"{"type":"mcp_call","id":"m","name":"ask","arguments":"{}","error":"no","output":null}"#,
            r#"
agent {"type":"mcp_call","id":"m","output":null}
action "" {"toolName":"ask","toolCallId":"m","parameters":{}} origin {"idFrom":"id"}
result "no" {"toolName":"ask","toolCallId":"m","outcome":"failed"} origin {"field":"error"}"#,
        );
        check(
            r#"{"type":"code_interpreter_call","id":"c","code":"1+1","outputs":[{"type":"logs","logs":"2"},{"type":"image","url":"https://a.b/c"}]}"#,
            r#"
agent {"type":"code_interpreter_call","id":"c"}
action "" {"toolName":"code_interpreter","toolCallId":"c","arguments":"1+1"} origin {"idFrom":"id","field":"code"}
result "" {"toolName":"code_interpreter","toolCallId":"c"} origin {"field":"outputs","form":"parts"}
  result "{\"type\":\"logs\",\"logs\":\"2\"}" origin {"form":"json"}
  image "[image: https://a.b/c]" origin {"type":"image","url":"https://a.b/c"}"#,
        );
        check(
            r#"{"type":"image_generation_call","id":"g","revised_prompt":"a cat","result":"AAAA"}"#,
            r#"
agent {"type":"image_generation_call","id":"g"}
action "" {"toolName":"image_generation","toolCallId":"g","arguments":"a cat"} origin {"idFrom":"id","field":"revised_prompt"}
result "" {"toolName":"image_generation","toolCallId":"g"} origin {"field":"result"}
  image "[image/png, 3 bytes]" origin {"result":"AAAA"}"#,
        );
    }

    #[test]
    fn outputs_are_text_parts_or_objects() {
        check(
            r#"{"type":"function_call_output","call_id":"c","output":{"type":"input_text","text":"a\n"}}"#,
            r#"
environment {"type":"function_call_output"}
result "" {"toolCallId":"c"} origin {"form":"part"}
  result "a\n" origin {"type":"input_text"}"#,
        );
        check(
            r#"{"type":"function_call_output","call_id":"c","output":{"content":"no such file","success":false}}"#,
            r#"
environment {"type":"function_call_output"}
result "no such file" {"toolCallId":"c","outcome":"failed"} origin {"beside":{"success":false},"form":"content"}"#,
        );
        check(
            r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}"#,
            r#"
environment {"type":"computer_call_output"}
result "" {"toolCallId":"c"} origin {"form":"part"}
  image "[image/png, 3 bytes]" origin {"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}"#,
        );
        check(
            r#"{"type":"tool_search_output","call_id":"c","tools":[{"name":"f"}]}"#,
            r#"
environment {"type":"tool_search_output"}
result "" {"toolCallId":"c"} origin {"field":"tools","form":"parts"}
  result "{\"name\":\"f\"}" origin {"form":"json"}"#,
        );
    }

    #[test]
    fn an_encrypted_thought_is_opaque_and_an_empty_one_is_kept() {
        check(
            r#"{"type":"reasoning","summary":[],"content":null,"encrypted_content":"gA"}"#,
            r#"
agent {"type":"reasoning","summary":[],"content":null}
opaque "[encrypted reasoning, 26 bytes]" origin {"encrypted_content":"gA"}"#,
        );
    }

    #[test]
    fn another_agents_message_keeps_its_author() {
        check(
            r#"{"type":"agent_message","author":"ada","content":[{"type":"input_text","text":"done"}]}"#,
            r#"
environment {"form":"parts","type":"agent_message","author":"ada"}
event "done" origin {"type":"input_text"}"#,
        );
    }
}
