//! YAML documents as JSON values: cassettes of recorded traffic are written in it.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::{body::BINARY, joining};
use crate::{
    Error, ErrorKind, Result,
    json::{self, MAX_BYTES, MAX_DEPTH, Object, ObjectExt, Value},
};

/// How much of a document may be what aliases repeat: a few lines of them can stand for any amount.
const REPEATED: usize = 64 << 20;

/// Whether a text begins as a cassette does: with a key of one, maybe after a mark of YAML or
/// comments.
pub(super) fn is_cassette(text: &str) -> bool {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#') && *line != "---");
    let keys = ["interactions:", "http_interactions:", "version:", "recorded_with:"];
    first.is_some_and(|line| keys.iter().any(|key| line.starts_with(key)))
}

/// The first document of a text. Binary text becomes `{"!!binary": base64}`.
///
/// # Errors
/// [`ErrorKind::Json`] where it is no YAML, or where its aliases stand for more than 64 MiB or it
/// nests too deep.
pub(super) fn read(text: &str) -> Result<Value> {
    if text.len() > MAX_BYTES {
        let message = "a YAML document of more than 256 MiB; the limit is 256 MiB";
        return Err(Error::new(ErrorKind::Limit, message));
    }
    let mut builder = Builder { open: Vec::new(), anchors: HashMap::new(), repeated: REPEATED };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let line = error.marker().line() as u64;
            Error::new(ErrorKind::Json, format!("expected YAML: {error}")).on_line(line)
        })?;
        let root = builder.take(event).map_err(|reason| {
            Error::new(ErrorKind::Limit, reason).on_line(span.start.line() as u64)
        })?;
        if let Some(root) = root {
            return Ok(root);
        }
    }
    Err(Error::new(ErrorKind::Json, "expected YAML, found no document"))
}

struct Builder {
    open: Vec<Node>,
    anchors: HashMap<usize, Value>,
    repeated: usize,
}

/// A list or a mapping whose end has not come, with its anchor.
enum Node {
    List(Vec<Value>, usize),
    Map(Object, Option<String>, usize),
}

impl Builder {
    /// The document, once it ends.
    fn take(&mut self, event: Event<'_>) -> Result<Option<Value>, &'static str> {
        match event {
            Event::SequenceStart(anchor, _) => self.open(Node::List(Vec::new(), anchor)),
            Event::MappingStart(anchor, _) => self.open(Node::Map(Object::new(), None, anchor)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Node::List(list, anchor)) => self.close(Value::Array(list), anchor),
                Some(Node::Map(map, _, anchor)) => self.close(map.into(), anchor),
                None => Ok(None),
            },
            Event::Scalar(text, style, anchor, tag) => {
                self.close(scalar(&text, style, tag.as_deref()), anchor)
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().unwrap_or_default();
                self.repeat(&value)?;
                self.close(value, 0)
            }
            _ => Ok(None),
        }
    }

    fn open(&mut self, node: Node) -> Result<Option<Value>, &'static str> {
        self.open.push(node);
        if self.open.len() > MAX_DEPTH { Err("a document that nests too deep") } else { Ok(None) }
    }

    /// Counts a copy of a value.
    fn repeat(&mut self, value: &Value) -> Result<(), &'static str> {
        self.repeated = self
            .repeated
            .checked_sub(joining::size(value) + 1)
            .ok_or("anchors and aliases that stand for more than 64 MiB; the limit is 64 MiB")?;
        Ok(())
    }

    /// Puts a value that is complete where it belongs; it is the document where that is nowhere.
    fn close(&mut self, value: Value, anchor: usize) -> Result<Option<Value>, &'static str> {
        if anchor > 0 {
            self.repeat(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => return Ok(Some(value)),
            Some(Node::List(list, _)) => list.push(value),
            Some(Node::Map(map, key, _)) => match key.take() {
                Some(key) => map.put(&key, value),
                None => {
                    *key = Some(match value {
                        Value::String(text) => text,
                        other => other.to_string(),
                    });
                }
            },
        }
        Ok(None)
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    if tag.is_some_and(|tag| tag.suffix == "binary" || tag.suffix == "!binary") {
        let mut binary = Object::new();
        binary.put(BINARY, text);
        return binary.into();
    }
    if style != ScalarStyle::Plain || tag.is_some() {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => match json::read(text.as_bytes()) {
            Ok(number @ Value::Number(_)) => number,
            _ => text.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(yaml: &str, expected: &str) {
        assert_eq!(read(yaml).unwrap().to_string(), expected);
    }

    #[test]
    fn documents_become_values() {
        check(
            "a: 1\nb: [x, 'y', ~, true, 1.50, 007]\n",
            r#"{"a":1,"b":["x","y",null,true,1.50,"007"]}"#,
        );
        check("- |\n  two\n  lines\n- >-\n  one\n  line\n", r#"["two\nlines\n","one line"]"#);
        check("body: '{\"a\": \"b''c\"}'\n", r#"{"body":"{\"a\": \"b'c\"}"}"#);
        check("a: &x {b: [1]}\nc: *x\n", r#"{"a":{"b":[1]},"c":{"b":[1]}}"#);
        check("s: !!binary |\n  H4sI\n", r#"{"s":{"!!binary":"H4sI\n"}}"#);
        check("n: !!str 12\n? [k]\n: v\n", r#"{"n":"12","[\"k\"]":"v"}"#);
    }

    #[test]
    fn what_is_no_document_or_stands_for_too_much_is_refused() {
        assert_eq!(read("a: [1").unwrap_err().kind(), ErrorKind::Json);
        assert_eq!(read("").unwrap_err().kind(), ErrorKind::Json);
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            bomb.push_str(
                &["a", &level.to_string(), ": &a", &level.to_string(), " [", &before, "]\n"]
                    .concat(),
            );
        }
        assert_eq!(read(&bomb).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(read(&"- ".repeat(10_000)).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn a_cassette_is_known_by_its_first_key() {
        assert!(is_cassette("---\n# made by hand\ninteractions:\n- request: {}\n"));
        assert!(is_cassette("version: 1\ninteractions: []\n"));
        assert!(!is_cassette("Hello: world\n") && !is_cassette("") && !is_cassette("{}"));
    }
}
