//! Where the values of a JSON text stand in it.

use std::ops::Range;

use crate::{Value, read_mended};

/// A member of an object, or an element of an array, with where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedValue {
    /// The key of a member.
    pub key: Option<String>,
    /// From the key of a member, or the beginning of an element, to the end of the value.
    pub whole: Range<usize>,
    /// The value by itself.
    pub value: Range<usize>,
}

/// The members of the object, or the elements of the array, that stands at `within` in `text`; none
/// where it is neither. Runs in linear time in what stands there.
///
/// The text is taken for JSON; of one that is none, what can be told apart is told.
///
/// ```
/// let text = r#"{"a": [1, "x]"], "b": {}}"#;
/// let members = afterimage_json::children(text, 0..text.len());
/// assert_eq!(members[0].key.as_deref(), Some("a"));
/// assert_eq!(&text[members[0].value.clone()], r#"[1, "x]"]"#);
/// let elements = afterimage_json::children(text, members[0].value.clone());
/// assert_eq!(&text[elements[1].value.clone()], r#""x]""#);
/// ```
pub fn children(text: &str, within: Range<usize>) -> Vec<PlacedValue> {
    let bytes = text.as_bytes().get(..within.end.min(text.len())).unwrap_or_default();
    let mut at = blank(bytes, within.start);
    let is_object = match bytes.get(at) {
        Some(b'{') => true,
        Some(b'[') => false,
        _ => return Vec::new(),
    };
    at = blank(bytes, at + 1);
    listed(text, bytes, at, is_object)
}

/// As [`children`], those after one that ends at `after`, which stands in the text `within`; the
/// same as the last of [`children`] without what comes before. Runs in linear time in what it gives.
///
/// ```
/// let text = r#"[{"a": 1}, 2, "x"]"#;
/// let after = afterimage_json::children_after(text, 0..text.len(), 9);
/// assert_eq!(&text[after[0].value.clone()], "2");
/// assert_eq!(after.len(), 2);
/// ```
pub fn children_after(text: &str, within: Range<usize>, after: usize) -> Vec<PlacedValue> {
    let bytes = text.as_bytes().get(..within.end.min(text.len())).unwrap_or_default();
    let is_object = bytes.get(blank(bytes, within.start)) == Some(&b'{');
    let mut at = blank(bytes, after);
    if bytes.get(at) == Some(&b',') {
        at = blank(bytes, at + 1);
    }
    listed(text, bytes, at, is_object)
}

/// The members or elements from `at` on, up to the bracket that ends them.
fn listed(text: &str, bytes: &[u8], mut at: usize, is_object: bool) -> Vec<PlacedValue> {
    let mut children = Vec::new();
    while !matches!(bytes.get(at), None | Some(b'}' | b']')) {
        let start = at;
        let mut key = None;
        if is_object {
            let end = end(bytes, at);
            key = text.get(at..end).map(key_of);
            at = blank(bytes, end);
            if bytes.get(at) != Some(&b':') {
                break;
            }
            at = blank(bytes, at + 1);
        }
        let value = at..end(bytes, at);
        if value.is_empty() {
            break;
        }
        at = value.end;
        children.push(PlacedValue { key, whole: start..value.end, value });
        at = blank(bytes, at);
        if bytes.get(at) == Some(&b',') {
            at = blank(bytes, at + 1);
        }
    }
    children
}

fn key_of(written: &str) -> String {
    match read_mended(written.as_bytes()) {
        Ok((Value::String(key), _)) => key,
        _ => written.to_owned(),
    }
}

/// The first byte from `at` on that is no white space.
fn blank(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// Where the value ends that begins at `start`.
fn end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0_usize;
    loop {
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => {
                if depth <= 1 {
                    // What ends at depth 0 belongs to what the value stands in.
                    return at + depth;
                }
                depth -= 1;
            }
            Some(b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') if depth == 0 => return at,
            Some(_) => {}
        }
        at += 1;
    }
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            None => return bytes.len(),
            Some(end) if rest.get(end) == Some(&b'"') => return at + end + 1,
            Some(escape) => at += escape + 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Object, ObjectExt, read};

    fn whole(text: &str) -> Vec<PlacedValue> {
        children(text, 0..text.len())
    }

    #[test]
    fn values_stand_where_they_are_written() {
        let text = " { \"k\\\"\" : \"a\\\\\" ,\n\"n\":-1.5e3,\"o\":{\"x\":[{}]} } ";
        let found: Vec<_> =
            whole(text).into_iter().map(|child| (child.key.unwrap(), &text[child.value])).collect();
        let expected = [("k\"", "\"a\\\\\""), ("n", "-1.5e3"), ("o", "{\"x\":[{}]}")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
        for text in ["", "7", "\"{\"", "{}", "[]", " [ ] "] {
            assert_eq!(whole(text), [], "{text}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[\\[\\]{},:\"\\\\a é]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec(("[\"\\\\a:]{0,3}", inner), 0..4).prop_map(|members| {
                    let mut object = Object::new();
                    members.into_iter().for_each(|(key, value)| object.put(&key, value));
                    object.into()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn children_are_those_of_the_value(value in value()) {
            let text = value.to_string();
            let found: Vec<(Option<String>, Value)> = whole(&text)
                .into_iter()
                .map(|child| (child.key, read(text[child.value].as_bytes()).unwrap()))
                .collect();
            let expected: Vec<(Option<String>, Value)> = match value {
                Value::Array(list) => list.into_iter().map(|value| (None, value)).collect(),
                Value::Object(object) => {
                    object.iter().map(|(key, value)| (Some(key.clone()), value.clone())).collect()
                }
                _ => Vec::new(),
            };
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn what_comes_after_a_child_is_the_rest(value in value()) {
            let text = value.to_string();
            let all = whole(&text);
            for (index, child) in all.iter().enumerate() {
                let after = children_after(&text, 0..text.len(), child.value.end);
                prop_assert_eq!(&after, &all[index + 1..]);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{},:\"\\\\a ]{0,40}", after in 0_usize..50) {
            for child in whole(&text).into_iter().chain(children_after(&text, 0..text.len(), after)) {
                prop_assert!(text.get(child.value).is_some());
            }
        }
    }
}
