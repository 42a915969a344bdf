//! Putting JSON together.

use afterimage::json::Value;
pub(crate) use afterimage::json::object;

/// The value, or `null`.
pub(crate) fn or_null(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::Null, Into::into)
}
