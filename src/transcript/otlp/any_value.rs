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

/// A time in nanoseconds since 1970 as RFC 3339 writes it, in UTC.
pub(in crate::transcript) fn rfc3339(nanoseconds: u64) -> String {
    let (seconds, fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // Years that begin in March, in eras of 400 of them, from the year 0 on (Howard Hinnant,
    // "chrono-Compatible Low-Level Date Algorithms").
    let days = day + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let fraction = format!("{fraction:09}");
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!(
        "{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}{point}{fraction}Z"
    )
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
    fn times_are_written_as_everyone_reads_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400_000_000_000), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_412_078_442_916_680), "2026-11-23T05:34:38.44291668Z");
        assert_eq!(rfc3339(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn a_text_that_was_cut_is_no_value() {
        assert_eq!(structured(&Value::from("[1]")).unwrap().to_string(), "[1]");
        assert_eq!(structured(&Value::from("[1")), Err("[1"));
        assert_eq!(nanoseconds(Some(&Value::from("0"))), None);
        assert_eq!(nanoseconds(Some(&Value::from("7"))), Some(7));
    }
}
