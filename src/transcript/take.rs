//! Members of an object, taken out where they are of the type that a format gives them. What is
//! not stays where it is, so that it is kept with the rest.

use super::sink::Sink;
use crate::json::{Object, ObjectExt, Value};

pub(super) fn list(object: &mut Object, key: &str) -> Option<Vec<Value>> {
    let Value::Array(list) = object.get_mut(key)? else { return None };
    let list = std::mem::take(list);
    object.shift_remove(key);
    Some(list)
}

/// A document without its messages, which stand in the member `key`, and these. Its other members
/// are metadata.
pub(super) fn document(
    value: Value,
    key: &str,
    line: u64,
    sink: &mut Sink,
) -> Option<(Object, Vec<Value>)> {
    let Value::Object(mut document) = value else {
        sink.unknown(line, format!("{} holds no messages", value.kind()), value);
        return None;
    };
    let Some(messages) = list(&mut document, key) else {
        sink.unknown(line, format!("no list `{key}`"), document.into());
        return None;
    };
    document.keys().for_each(|key| sink.skip(key));
    Some((document, messages))
}

pub(super) fn object(object: &mut Object, key: &str) -> Option<Object> {
    let Value::Object(inner) = object.get_mut(key)? else { return None };
    let inner = std::mem::take(inner);
    object.shift_remove(key);
    Some(inner)
}

pub(super) fn text(object: &mut Object, key: &str) -> Option<String> {
    let Value::String(text) = object.get_mut(key)? else { return None };
    let text = std::mem::take(text);
    object.shift_remove(key);
    Some(text)
}

/// As [`text`]; a null is taken out for none.
pub(super) fn text_or_null(object: &mut Object, key: &str) -> Option<String> {
    if object.get(key).is_some_and(Value::is_null) {
        object.shift_remove(key);
    }
    text(object, key)
}

/// Gives a message this role where it states none; what it states that is no text stays beside it.
pub(super) fn default_role(message: &mut Object, role: &str) {
    let stated = message.get("role");
    if stated.is_none_or(|stated| stated.as_str().is_none()) {
        let stated = stated.filter(|stated| !stated.is_null()).cloned();
        message.put("role", role);
        message.put_some("statedRole", stated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_another_type_stays() {
        let value = crate::json::read(br#"{"a":[1],"b":{"x":2},"c":"t","d":5}"#).unwrap();
        let Value::Object(mut all) = value else { panic!("no object") };
        assert_eq!(
            (list(&mut all, "d"), object(&mut all, "a"), text(&mut all, "e")),
            (None, None, None)
        );
        assert_eq!(list(&mut all, "a"), Some(vec![Value::from(1_u64)]));
        assert_eq!(object(&mut all, "b").map(|inner| inner.len()), Some(1));
        assert_eq!(text(&mut all, "c").as_deref(), Some("t"));
        assert_eq!(Value::Object(all).to_string(), r#"{"d":5}"#);
    }
}
