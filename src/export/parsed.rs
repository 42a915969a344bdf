//! JSON that was captured as text, with the owners of that text.

use super::owned::{OwnedJson, OwnedText};
use crate::{
    hud::Owner,
    json::{self, Value},
};

/// The value that `text` is the JSON of; `None` where it is none. Each string belongs to the
/// chunks in which it is written. Where an object names a key twice, the strings cannot be told
/// apart, and belong to `owner`.
pub(super) fn parse(text: &OwnedText, owner: &Owner) -> Option<OwnedJson> {
    let value = json::read(text.as_str().as_bytes()).ok()?;
    if text.spans().len() < 2 {
        return Some(OwnedJson::of_value(&value, owner));
    }
    let mut strings = Strings { text, at: 0 };
    let owned = strings.own(&value);
    let whole = owned.filter(|_| strings.next().is_none());
    Some(whole.unwrap_or_else(|| OwnedJson::of_value(&value, owner)))
}

/// The strings of a JSON text, one after the other.
struct Strings<'a> {
    text: &'a OwnedText,
    at: usize,
}

impl Strings<'_> {
    /// Where the next string begins, quotes aside.
    fn next(&mut self) -> Option<usize> {
        let rest = self.text.as_str().get(self.at..)?;
        let start = self.at + rest.find('"')? + 1;
        let bytes = self.text.as_str().as_bytes().get(start..)?;
        let mut escaped = false;
        let end = bytes.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        })?;
        self.at = start + end + 1;
        Some(start)
    }

    fn own(&mut self, value: &Value) -> Option<OwnedJson> {
        Some(match value {
            Value::String(text) => {
                let start = self.next()?;
                OwnedJson::Text(self.own_text(text, start)?)
            }
            Value::Array(list) => {
                OwnedJson::List(list.iter().map(|value| self.own(value)).collect::<Option<_>>()?)
            }
            Value::Object(object) => {
                let mut members = Vec::with_capacity(object.len());
                for (key, value) in object {
                    self.next()?;
                    members.push((key.clone(), self.own(value)?));
                }
                OwnedJson::Map(members)
            }
            // The rest holds no string.
            other => OwnedJson::of_value(other, &Owner::Framing("form")),
        })
    }

    /// The string that is written from `start` on: each character is written as itself or as one
    /// escape, which for those beyond sixteen bits is a pair.
    fn own_text(&self, string: &str, start: usize) -> Option<OwnedText> {
        let mut owned = OwnedText::default();
        let mut at = start;
        for (offset, c) in string.char_indices() {
            let written = self.text.as_str().get(at..)?;
            let owner = self.text.owner_of(at)?;
            owned.push(string.get(offset..offset + c.len_utf8())?, owner);
            at += match (written.starts_with("\\u"), written.starts_with('\\')) {
                (true, _) if u32::from(c) > 0xFFFF => 12,
                (true, _) => 6,
                (_, true) => 2,
                _ => c.len_utf8(),
            };
        }
        Some(owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text in chunks of so many bytes, each with an owner of its own.
    fn split(text: &str, bytes: usize) -> OwnedText {
        let mut owned = OwnedText::default();
        let mut chunk = 0;
        let mut filled = 0;
        for c in text.chars() {
            if filled >= bytes {
                (chunk, filled) = (chunk + 1, 0);
            }
            filled += c.len_utf8();
            let owner = Owner::Chunk { frame: 0.into(), chunk, facet_ids: Vec::new() };
            owned.push(&c.to_string(), &owner);
        }
        owned
    }

    #[test]
    fn strings_belong_to_the_chunks_in_which_they_are_written() {
        let text = r#"{"a\"b": ["x\u00e9\ud83d\ude00\n", 1, {"c": "漢字"}], "d": "\\"}"#;
        let first = Owner::Framing("first");
        for bytes in 1..text.len() {
            let text = split(text, bytes);
            let parsed = parse(&text, &first).unwrap();
            assert_eq!(Ok(parsed.to_value()), json::read(text.as_str().as_bytes()).map_err(drop));
            for (written, pointer) in [("x", "/a\"b/0"), ("漢", "/a\"b/2/c"), ("\\\\\"}", "/d")] {
                let at = text.as_str().find(written).unwrap();
                let found = parsed.pointer(pointer).unwrap().as_text().unwrap().owner_of(0);
                assert_eq!(found, text.owner_of(at), "{bytes}: {pointer}");
            }
            // The emoji is written in twelve bytes, from the eighth after the x on.
            let at = text.as_str().find("\\ud83d").unwrap();
            let string = parsed.pointer("/a\"b/0").unwrap().as_text().unwrap();
            assert_eq!(string.owner_of("xé".len()), text.owner_of(at));
        }
    }

    #[test]
    fn a_key_that_is_named_twice_leaves_one_owner() {
        let first = Owner::Framing("first");
        let parsed = parse(&split(r#"{"a": "long text", "a": "b"}"#, 4), &first).unwrap();
        assert_eq!(parsed.get("a").unwrap().as_text().unwrap().owner_of(0), Some(&first));
    }
}
