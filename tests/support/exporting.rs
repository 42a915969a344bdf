//! What holds of every export.

#![allow(dead_code, reason = "each test takes what it needs")]

use afterimage::export::{Export, ExportOptions, Exported};
use serde_json::Value;

type Validate = fn(&Value) -> crate::validators::Verdict;

pub(crate) fn json(exported: &Exported) -> Value {
    serde_json::from_str(&exported.value().to_string()).unwrap()
}

/// The spans of every string sum to it, in order and without gaps.
pub(crate) fn assert_owned(exported: &Exported, place: &str) {
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
    let forms: [(&str, Exported, Validate); 3] = [
        ("chat", export.openai_chat(options), crate::validators::chat),
        ("responses", export.responses(options), crate::validators::responses),
        ("anthropic", export.anthropic(options), crate::validators::anthropic),
    ];
    for (form, exported, validate) in &forms {
        let place = format!("{place}: {form}");
        let value = json(exported);
        if let Err(error) = validate(&value) {
            panic!("{place}: {error}\n{:?}", exported.report());
        }
        assert_owned(exported, &place);
    }
    assert_owned(&export.plain(options), place);
}
