//! The values and attributes of OTLP as plain JSON.

use crate::json::{self, Object, Value};

/// The attributes of a span, a record or an event as one object; of a key that stands twice the
/// last value.
pub(super) fn attributes(list: Option<Value>) -> Object {
    let Some(Value::Array(list)) = list else { return Object::new() };
    let mut object = Object::new();
    for pair in list {
        let Value::Object(mut pair) = pair else { continue };
        if let Some(Value::String(key)) = pair.shift_remove("key") {
            object.insert(key, pair.shift_remove("value").map_or(Value::Null, plain));
        }
    }
    object
}

/// An `AnyValue` as the JSON that it stands for. Integers come as text, and are numbers again; bytes
/// stay base64, and what is no `AnyValue` stays as it is.
pub(super) fn plain(any: Value) -> Value {
    let mut object = match any {
        Value::Object(object) => object,
        other => return other,
    };
    let Some(kind) = object.keys().next().cloned() else { return Value::Null };
    let value = object.shift_remove(&kind).unwrap_or_default();
    match (kind.as_str(), value) {
        ("arrayValue", Value::Object(mut list)) => match list.shift_remove("values") {
            Some(Value::Array(values)) => values.into_iter().map(plain).collect(),
            _ => Value::Array(Vec::new()),
        },
        ("kvlistValue", Value::Object(mut list)) => attributes(list.shift_remove("values")).into(),
        ("intValue", Value::String(text)) => match json::read(text.as_bytes()) {
            Ok(number @ Value::Number(_)) => number,
            _ => text.into(),
        },
        (_, value) => value,
    }
}

/// A value that an attribute holds as JSON text, or in structured form.
///
/// # Errors
/// The text, where it is no whole JSON: a limit on the length of attributes may have cut it.
pub(super) fn structured(value: &Value) -> Result<Value, &str> {
    match value {
        Value::String(text) => {
            json::read_mended(text.as_bytes()).map(|(value, _)| value).map_err(|_| text.as_str())
        }
        other => Ok(other.clone()),
    }
}

/// A time in nanoseconds since 1970, as text or as a number; zero is none.
pub(super) fn nanoseconds(value: Option<&Value>) -> Option<u64> {
    let nanoseconds = match value? {
        Value::String(text) => text.parse().ok()?,
        other => other.as_u64()?,
    };
    (nanoseconds > 0).then_some(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_read() {
        let any = |text: &str| plain(json::read(text.as_bytes()).unwrap()).to_string();
        assert_eq!(any(r#"{"stringValue":"a"}"#), r#""a""#);
        assert_eq!(any(r#"{"intValue":"-12"}"#), "-12");
        assert_eq!(any(r#"{"intValue":12}"#), "12");
        assert_eq!(any(r#"{"intValue":"twelve"}"#), r#""twelve""#);
        assert_eq!(any(r#"{"doubleValue":0.5}"#), "0.5");
        assert_eq!(any(r#"{"boolValue":true}"#), "true");
        assert_eq!(any("{}"), "null");
        assert_eq!(any(r#"{"arrayValue":{}}"#), "[]");
        assert_eq!(
            any(
                r#"{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[{"intValue":"1"}]}}}]}}"#
            ),
            r#"{"a":[1]}"#
        );
    }

    #[test]
    fn a_text_that_was_cut_is_no_value() {
        assert_eq!(structured(&Value::from("[1]")).unwrap().to_string(), "[1]");
        assert_eq!(structured(&Value::from("[1")), Err("[1"));
        assert_eq!(nanoseconds(Some(&Value::from("0"))), None);
        assert_eq!(nanoseconds(Some(&Value::from("7"))), Some(7));
    }
}
