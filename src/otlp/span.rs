//! Spans and attributes as OTLP writes them in JSON.

use crate::json::{Object, ObjectExt, Value, object};

/// `INTERNAL` and `CLIENT`: the kinds of spans within a program and of calls of another.
pub(super) const INTERNAL: u64 = 1;
pub(super) const CLIENT: u64 = 3;

/// The ids of a trace: 16 bytes, and of a span: 8, in hexadecimal digits.
pub(super) fn trace_id(of: &[&[u8]]) -> String {
    digest(of, 16)
}

pub(super) fn span_id(of: &[&[u8]]) -> String {
    digest(of, 8)
}

/// The beginning of a hash of these parts, with their lengths, so that none runs into the next.
fn digest(parts: &[&[u8]], bytes: usize) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("afterimage OTLP ids 1");
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut id: String =
        digest.as_bytes().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect();
    // An id of zeros is none.
    if id.bytes().all(|byte| byte == b'0') {
        id.replace_range(.., &format!("{:0>1$}", 1, bytes * 2));
    }
    id
}

/// The times of a span in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanTimes {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Attributes in the making.
#[derive(Debug, Default)]
pub(super) struct Attributes(Vec<Value>);

impl Attributes {
    pub(super) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.push(object! { "key": key, "value": any(value.into()) }.into());
    }

    pub(super) fn put_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// A value as JSON text.
    pub(super) fn put_json(&mut self, key: &str, value: &Value) {
        self.put(key, value.to_string());
    }

    pub(super) fn into_value(self) -> Value {
        self.0.into()
    }
}

/// A value as an `AnyValue`. An integer that 64 bits do not hold is a fraction, as JSON readers take
/// it.
fn any(value: Value) -> Value {
    let any = match value {
        Value::Null => Object::new(),
        Value::Bool(value) => object! { "boolValue": value },
        Value::String(text) => object! { "stringValue": text },
        Value::Number(number) => {
            let integer =
                number.as_i64().map(|integer| object! { "intValue": integer.to_string() });
            integer.unwrap_or_else(|| object! { "doubleValue": number.as_f64() })
        }
        Value::Array(list) => {
            let values: Value = list.into_iter().map(any).collect();
            object! { "arrayValue": object! { "values": values } }
        }
        Value::Object(object) => {
            let pair = |(key, value)| object! { "key": Value::String(key), "value": any(value) };
            let values: Value = object.into_iter().map(pair).collect();
            object! { "kvlistValue": object! { "values": values } }
        }
    };
    any.into()
}

/// A span in the making.
pub(super) struct Span<'s> {
    pub(super) trace: &'s str,
    pub(super) id: &'s str,
    pub(super) parent: Option<&'s str>,
    pub(super) name: String,
    pub(super) kind: u64,
    pub(super) times: SpanTimes,
    pub(super) attributes: Attributes,
    /// What went wrong.
    pub(super) failure: Option<&'s str>,
}

impl Span<'_> {
    pub(super) fn into_value(self) -> Value {
        let mut span = object! { "traceId": self.trace, "spanId": self.id };
        span.put_some("parentSpanId", self.parent);
        span.put("name", self.name);
        span.put("kind", self.kind);
        span.put("startTimeUnixNano", self.times.start.to_string());
        span.put("endTimeUnixNano", self.times.end.max(self.times.start).to_string());
        span.put("attributes", self.attributes.into_value());
        span.put(
            "status",
            match self.failure {
                Some(message) => object! { "code": 2_u64, "message": message },
                None => Object::new(),
            },
        );
        span.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_length_that_the_protocol_asks_for_and_depend_on_every_part() {
        assert_eq!(trace_id(&[b"a"]).len(), 32);
        assert_eq!(span_id(&[b"a"]).len(), 16);
        assert_ne!(span_id(&[b"ab", b"c"]), span_id(&[b"a", b"bc"]));
        assert_eq!(span_id(&[b"ab", b"c"]), span_id(&[b"ab", b"c"]));
    }

    #[test]
    fn integers_are_text_and_fractions_are_not() {
        let value = object! { "a": 1_u64, "b": vec![Value::from(0.5), Value::Null] };
        assert_eq!(
            any(value.into()).to_string(),
            r#"{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"1"}},{"key":"b","value":{"arrayValue":{"values":[{"doubleValue":0.5},{}]}}}]}}"#
        );
        assert!(any(Value::from(u64::MAX)).get("doubleValue").is_some());
    }
}
