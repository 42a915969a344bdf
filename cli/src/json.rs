//! Putting JSON together.

use afterimage::json::Value;

/// An object with its members in the order in which they are written.
macro_rules! object {
    ($($key:literal: $value:expr),* $(,)?) => {{
        let mut object = afterimage::json::Object::new();
        $(object.insert($key.to_owned(), afterimage::json::Value::from($value));)*
        object
    }};
}
pub(crate) use object;

/// The value, or `null`.
pub(crate) fn or_null(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::Null, Into::into)
}
