//! What holds of every export.

#![allow(dead_code, reason = "each test takes what it needs")]

use afterimage::export::{Export, ExportOptions, ExportedRequest};
use serde_json::Value;

type Validate = fn(&Value) -> afterimage_testkit::validators::Verdict;

pub(crate) fn json(exported: &ExportedRequest) -> Value {
    serde_json::from_str(&exported.value().to_string()).unwrap()
}

/// The spans of every string sum to it, in order and without gaps.
pub(crate) fn assert_owned(exported: &ExportedRequest, place: &str) {
    for (path, text) in exported.root().texts() {
        let mut end = 0;
        for span in text.spans() {
            assert_eq!(span.range.start(), end, "{place}: {path}");
            assert!(!span.range.is_empty(), "{place}: {path}");
            assert!(text.as_str().is_char_boundary(span.range.end()), "{place}: {path}");
            assert_eq!(text.owner_of(end), Some(&span.owner), "{place}: {path}");
            end = span.range.end();
        }
        assert_eq!(end, text.as_str().len(), "{place}: {path}");
        assert_eq!(text.owner_of(end), None, "{place}: {path}");
    }
}

pub(crate) fn check(export: &Export<'_>, options: &ExportOptions, place: &str) {
    let forms: [(&str, ExportedRequest, Validate); 4] = [
        ("chat", export.openai_chat(options), afterimage_testkit::validators::chat),
        ("responses", export.responses(options), afterimage_testkit::validators::responses),
        ("anthropic", export.anthropic(options), afterimage_testkit::validators::anthropic),
        ("gemini", export.gemini(options), afterimage_testkit::validators::gemini),
    ];
    for (form, exported, validate) in &forms {
        let place = format!("{place}: {form}");
        let value = json(exported);
        if let Err(error) = validate(&value) {
            panic!("{place}: {error}\n{:?}", exported.report());
        }
        if !options.keep_open {
            assert_eq!(waiting(&value), 0, "{place}: calls wait for their results");
        }
        assert_owned(exported, &place);
        assert_loads(exported, &place);
    }
    let plain = export.plain(options);
    assert_owned(&plain, place);
    assert_loads(&plain, place);
}

/// How many more calls there are than results, wherever they stand. Calls of a provider's own tools
/// have other names.
fn waiting(value: &Value) -> i64 {
    let own = match (value["type"].as_str(), value["role"].as_str()) {
        (Some("function_call" | "custom_tool_call" | "tool_use"), _) => 1,
        (Some("function_call_output" | "custom_tool_call_output" | "tool_result"), _)
        | (_, Some("tool" | "function")) => -1,
        (_, Some("assistant")) => {
            let calls = value["tool_calls"].as_array().map_or(0, Vec::len);
            i64::try_from(calls).unwrap() + i64::from(value["function_call"].is_object())
        }
        _ if value["functionCall"].is_object() => 1,
        _ if value["functionResponse"].is_object() => -1,
        _ => 0,
    };
    // Arguments may look like anything.
    let inside = match value {
        Value::Array(list) => list.iter().map(waiting).sum(),
        Value::Object(members) => {
            let holds = |key: &&String| {
                matches!(key.as_str(), "messages" | "content" | "contents" | "parts")
            };
            members.iter().filter(|(key, _)| holds(key)).map(|(_, member)| waiting(member)).sum()
        }
        _ => 0,
    };
    own + inside
}

/// What was written is read back with its owners, and without them says the same.
pub(crate) fn assert_loads(exported: &ExportedRequest, place: &str) {
    let (value, owners) = (exported.value(), exported.owners());
    let loaded = ExportedRequest::from_json(value.clone(), Some(owners)).unwrap();
    assert_eq!(loaded.root(), exported.root(), "{place}");
    let holds = |key: &str| exported.root().get(key).is_some();
    let is_empty = exported.root().at(0).is_none() && !holds("messages") && !holds("contents");
    if !is_empty {
        assert_eq!(loaded.form(), exported.form(), "{place}");
    }
    let bare = ExportedRequest::from_json(value.clone(), None).unwrap();
    assert_eq!(bare.value(), value, "{place}");
    assert_owned(&bare, place);
}
