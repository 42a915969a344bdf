//! JSON as people write it: with comments, and with commas before a bracket that closes.

use afterimage::json::{self, Error, Value};

/// Reads JSON, or JSON with comments.
///
/// # Errors
/// That of the text without comments.
pub(super) fn read(text: &[u8]) -> Result<Value, Error> {
    json::read(text).or_else(|_| json::read(&without_comments(text)))
}

/// JSON without comments, and without commas before a bracket that closes.
fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut is_string = false;
    while let Some((byte, after)) = rest.split_first() {
        if !is_string && rest.starts_with(b"//") {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            rest = rest.get(end..).unwrap_or_default();
            continue;
        }
        if !is_string && rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|two| two == b"*/");
            rest = end.and_then(|end| rest.get(end + 4..)).unwrap_or_default();
            continue;
        }
        rest = after;
        match byte {
            b'"' => is_string = !is_string,
            b'\\' if is_string => {
                kept.push(*byte);
                let Some((escaped, after)) = rest.split_first() else { break };
                kept.push(*escaped);
                rest = after;
                continue;
            }
            b'}' | b']' if !is_string => {
                let end = kept.trim_ascii_end().len();
                if kept.get(..end).is_some_and(|kept| kept.ends_with(b",")) {
                    kept.truncate(end - 1);
                }
            }
            _ => {}
        }
        kept.push(*byte);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_are_passed_over() {
        let text = br#"{ // a "comment"
            "a": "http://x/*y*/", /* and
            another */ "b": [1, 2, ], "c\"//": {},
        }"#;
        let value = json::read(&without_comments(text)).unwrap();
        assert_eq!(value.to_string(), r#"{"a":"http://x/*y*/","b":[1,2],"c\"//":{}}"#);
        for text in ["", "/*", "//", "\"\\", "\"a", "/* *", ",}"] {
            let _ = without_comments(text.as_bytes());
        }
    }
}
