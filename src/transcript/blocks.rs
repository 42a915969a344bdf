//! The blocks of the Messages API: text, thinking, calls, results, images, and what is opaque.

use super::{
    chat,
    parts::{self, with_origin},
    sdk_parts, take,
};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{CallOutcome, Facet, PartContent},
};

/// A content block as a facet; `text_type` is the type of the message's text.
pub(super) fn block(mut block: Object, text_type: &FacetType) -> Facet {
    let kind = block.str_at("type").unwrap_or_default().to_owned();
    match kind.as_str() {
        "text" => match take::text(&mut block, "text") {
            Some(text) => with_origin(parts::text(text_type.clone(), text), block.into()),
            None => parts::opaque("text", block.into()),
        },
        "thinking" => match take::text(&mut block, "thinking") {
            Some(text) => with_origin(parts::thought(text), block.into()),
            None => parts::opaque("thinking", block.into()),
        },
        "redacted_thinking" => parts::opaque("redacted thinking", block.into()),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => call(block, &kind, "input"),
        "toolCall" => call(block, &kind, "arguments"),
        "tool_result" => result(block, &kind),
        kind if kind.ends_with("_tool_result") => result(block, kind),
        "image" | "image_url" | "input_image" | "computer_screenshot" => image(block),
        // The model reads the summary in the place of what came before.
        "compaction" if block.get("content").is_some_and(|text| text.as_str().is_some()) => {
            let summary = take::text(&mut block, "content").unwrap_or_default();
            let facet = parts::text(FacetType::SUMMARY, summary);
            with_origin(facet.with_part(PartContent::Compaction), block.into())
        }
        "" => parts::opaque("block", block.into()),
        kind => {
            let part = sdk_parts::part(block, kind, text_type);
            part.unwrap_or_else(|block| parts::opaque(kind, block.into()))
        }
    }
}

/// A call, with its arguments in the member `key`.
fn call(mut block: Object, kind: &str, key: &str) -> Facet {
    let id = take::text(&mut block, "id");
    let name = take::text(&mut block, "name").unwrap_or_default();
    let arguments = match block.shift_remove(key) {
        Some(Value::Null) => {
            block.put(key, Value::Null);
            parts::Arguments::None
        }
        Some(input) => parts::Arguments::Json(input),
        None => parts::Arguments::None,
    };
    if kind == "tool_use" {
        block.shift_remove("type");
    }
    with_origin(parts::call(id.as_deref(), &name, arguments), block.into())
}

/// A result. What it holds besides plain text are its children, and `form` in its origin says
/// what its content was: `parts` (a list), `json` (an object), `null` or `absent`.
fn result(mut block: Object, kind: &str) -> Facet {
    let call_id = take::text(&mut block, "tool_use_id");
    let stated = CallOutcome::of_error_mark(block.get("is_error"));
    if stated.is_failure() {
        block.shift_remove("is_error");
    }
    let is_plain = kind == "tool_result";
    if is_plain {
        block.shift_remove("type");
    }
    let mut facet = parts::result(call_id.as_deref(), None, "", stated);
    let form = match block.shift_remove("content") {
        Some(Value::String(text)) => {
            facet.content = text;
            None
        }
        Some(Value::Array(list)) => {
            let child = if is_plain { part } else { provider_part };
            facet.children = list.into_iter().map(child).collect();
            Some("parts")
        }
        Some(Value::Null) => Some("null"),
        None => Some("absent"),
        Some(other) => {
            let shown = provider_item(other);
            (facet.content, facet.children) = (shown.content, shown.children);
            Some("json")
        }
    };
    block.put_some("form", form);
    with_origin(facet, block.into())
}

fn part(part: Value) -> Facet {
    chat::content_part(part, &FacetType::RESULT)
}

/// An element of a result that a provider wrote: a block where it is one, else its JSON.
pub(super) fn provider_part(value: Value) -> Facet {
    match value.str_at("type") {
        Some(kind) if is_block(kind) => part(value),
        _ if value.as_str().is_some() => part(value),
        _ => provider_item(value),
    }
}

fn is_block(kind: &str) -> bool {
    matches!(
        kind,
        "text"
            | "input_text"
            | "output_text"
            | "image"
            | "input_image"
            | "image_url"
            | "computer_screenshot"
    )
}

/// A provider's own item (a search hit, the outcome of a command) as text: its compact JSON. What
/// of it is encrypted or binary stands apart, in an opaque child with these members.
pub(super) fn provider_item(value: Value) -> Facet {
    let (value, hidden) = match value {
        Value::Object(object) => {
            let (hidden, shown): (Object, Object) =
                object.into_iter().partition(|(key, value)| is_hidden(key, value));
            (Value::Object(shown), hidden)
        }
        other => (other, Object::new()),
    };
    let mut origin = Object::new();
    origin.put("form", "json");
    let mut facet = with_origin(parts::text(FacetType::RESULT, value.to_string()), origin.into());
    if !hidden.is_empty() {
        let names: Vec<_> = hidden.keys().map(String::as_str).collect();
        let names = names.join(", ");
        facet.children.push(parts::opaque(&names, hidden.into()));
    }
    facet
}

/// Whether a member of a provider's item cannot be quoted: encrypted text, or a file in base64.
fn is_hidden(key: &str, value: &Value) -> bool {
    let is_base64 = |value: &Value| {
        value.get("source").is_some_and(|source| source.str_at("type") == Some("base64"))
    };
    key.starts_with("encrypted_") && value.as_str().is_some() || is_base64(value)
}

/// An image: `source` of the Messages API, `data` beside its media type, or an address.
pub(super) fn image(block: Object) -> Facet {
    let block = Value::Object(block);
    let text = |pointer: &str| block.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| text(pointer));
    let media_type = first(&["/source/media_type", "/mimeType", "/media_type"]);
    let source = first(&["/source/data", "/source/url", "/data", "/url", "/image_url"]);
    parts::image(media_type.as_deref(), source.as_deref(), block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, transcript::testing::facet_lines};

    /// One line per facet that the block becomes, children indented.
    fn check(input: &str, expected: &str) {
        let Ok(Value::Object(object)) = json::read(input.as_bytes()) else { panic!("{input}") };
        let lines = facet_lines(&[block(object, &FacetType::SPEECH)]);
        assert_eq!(lines.trim_end(), expected.trim(), "{input}");
    }

    #[test]
    fn text_keeps_what_stands_beside_it() {
        check(
            r#"{"type":"text","text":"so","citations":[{"cited_text":"x"}]}"#,
            r#"speech "so" origin {"type":"text","citations":[{"cited_text":"x"}]}"#,
        );
        check(
            r#"{"type":"text","text":null}"#,
            r#"opaque "[text, 27 bytes]" origin {"type":"text","text":null}"#,
        );
    }

    #[test]
    fn reasoning_is_read_or_kept_whole() {
        check(
            r#"{"type":"thinking","thinking":"hm","signature":"Eu=="}"#,
            r#"thought "hm" origin {"type":"thinking","signature":"Eu=="}"#,
        );
        check(
            r#"{"type":"redacted_thinking","data":"Ev"}"#,
            r#"opaque "[redacted thinking, 40 bytes]" origin {"type":"redacted_thinking","data":"Ev"}"#,
        );
    }

    #[test]
    fn calls_keep_their_kind_and_their_input() {
        check(
            r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"b":1,"a":1.0}}"#,
            r#"action "" {"toolName":"Bash","toolCallId":"t1","parameters":{"b":1,"a":1.0}}"#,
        );
        check(
            r#"{"type":"server_tool_use","id":"","name":"web_search","input":"x","caller":{"type":"direct"}}"#,
            r#"action "" {"toolName":"web_search","toolCallId":"","parameters":"x"} origin {"type":"server_tool_use","caller":{"type":"direct"}}"#,
        );
        check(
            r#"{"type":"tool_use","name":"a","input":null}"#,
            r#"action "" {"toolName":"a"} origin {"input":null}"#,
        );
        check(r#"{"type":"tool_use","id":7}"#, r#"action "" {"toolName":""} origin {"id":7}"#);
    }

    #[test]
    fn results_hold_text_or_children() {
        check(
            r#"{"type":"tool_result","tool_use_id":"t1","content":" a\n","is_error":true}"#,
            r#"result " a\n" {"toolCallId":"t1","outcome":"failed"}"#,
        );
        check(
            r#"{"type":"tool_result","tool_use_id":"t1","is_error":false}"#,
            r#"result "" {"toolCallId":"t1","outcome":"done"} origin {"is_error":false,"form":"absent"}"#,
        );
        check(
            r#"{"type":"tool_result","content":[{"type":"text","text":"a"},"b",3,{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}"#,
            r#"
result "" {} origin {"form":"parts"}
  result "a" origin {"type":"text"}
  result "b" origin {"form":"string"}
  opaque "[part, 1 bytes]" origin 3
  image "[image/png, 3 bytes]" origin {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
        );
    }

    #[test]
    fn a_providers_results_are_quoted_without_what_is_encrypted() {
        check(
            r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","title":"T","encrypted_content":"EqwT"}]}"#,
            r#"
result "" {"toolCallId":"s1"} origin {"type":"web_search_tool_result","form":"parts"}
  result "{\"type\":\"web_search_result\",\"title\":\"T\"}" origin {"form":"json"}
    opaque "[encrypted_content, 28 bytes]" origin {"encrypted_content":"EqwT"}"#,
        );
        check(
            r#"{"type":"bash_code_execution_tool_result","tool_use_id":"s1","content":{"stdout":"37170\n","content":[]}}"#,
            r#"result "{\"stdout\":\"37170\\n\",\"content\":[]}" {"toolCallId":"s1"} origin {"type":"bash_code_execution_tool_result","form":"json"}"#,
        );
        check(
            r#"{"type":"web_fetch_tool_result","content":{"url":"u","content":{"type":"document","source":{"type":"base64","data":"JVBE"}}}}"#,
            r#"
result "{\"url\":\"u\"}" {} origin {"type":"web_fetch_tool_result","form":"json"}
  opaque "[content, 72 bytes]" origin {"content":{"type":"document","source":{"type":"base64","data":"JVBE"}}}"#,
        );
    }

    #[test]
    fn a_document_that_is_a_text_is_read_as_the_model_reads_it() {
        let shown = |block: &str, read: &str| {
            let facet = parts::opaque("x", json::read(block.as_bytes()).unwrap());
            let text = facet.content.split_once('\n').map(|(_, text)| text);
            let [begin, end] = crate::text::quote::DOCUMENT_TEXT;
            let expected = (!read.is_empty()).then(|| format!("{begin}\n{read}\n{end}"));
            assert_eq!(text, expected.as_deref(), "{block}");
        };
        shown(
            r#"{"type":"document","title":"Tides","context":"of May","source":{"type":"text","data":"Low at six.\nHigh at noon."}}"#,
            "Tides\nof May\nLow at six.\nHigh at noon.",
        );
        shown(
            r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
            "a\nb",
        );
        shown(
            r#"{"type":"document","source":{"type":"content","content":"Low at six."}}"#,
            "Low at six.",
        );
        shown(
            r#"{"type":"search_result","source":"https://a.example","title":"Tides","content":[{"type":"text","text":"Low"}]}"#,
            "https://a.example\nTides\nLow",
        );
        shown(r#"{"type":"tool_reference","tool_name":"tide_table"}"#, "tide_table");
        shown(r#"{"type":"document","source":{"type":"base64","data":"JVBE"}}"#, "");
    }

    #[test]
    fn images_come_inline_by_address_or_by_file() {
        let shown = |input: &str| {
            let Ok(Value::Object(object)) = json::read(input.as_bytes()) else { panic!("{input}") };
            block(object, &FacetType::EVENT).content
        };
        assert_eq!(
            shown(r#"{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}}"#),
            "[image: https://a.b/c.png]"
        );
        assert_eq!(shown(r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#), "[image]");
        assert_eq!(
            shown(r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#),
            "[image/png, 3 bytes]"
        );
        assert_eq!(shown(r#"{"type":"input_image","image_url":null}"#), "[image]");
    }

    #[test]
    fn what_is_not_known_is_kept_whole() {
        check(
            r#"{"type":"compaction","content":"c"}"#,
            r#"summary "c" origin {"type":"compaction"}"#,
        );
        check(r"{}", r#"opaque "[block, 2 bytes]""#);
    }
}
