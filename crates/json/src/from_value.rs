//! JSON as a type that serde describes, with the path of what is wrong.

use ::serde::{
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess,
        SeqAccess, Unexpected, VariantAccess, Visitor,
    },
    forward_to_deserialize_any,
};

use crate::{Error, ErrorKind, Number, Result, Value, serde::EXACT_NUMBER};

/// A value of a type that serde describes, of JSON: the inverse of [`to_value`](crate::to_value).
/// O(size).
///
/// ```
/// #[derive(Debug, serde::Deserialize)]
/// struct Berth { number: u64 }
///
/// let value = afterimage_json::read(br#"[{"number": 7}, {"number": "x"}]"#)?;
/// let error = afterimage_json::from_value::<Vec<Berth>>(value).unwrap_err();
/// assert_eq!(error.to_string(), "expected an integer from zero, found a string (at /1/number)");
/// # Ok::<(), afterimage_json::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] with the path, what was expected and what was found.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T> {
    T::deserialize(value)
}

impl serde::de::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(ErrorKind::Shape, message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::expected(name_of(expected), shown(found))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::expected(expected, format_args!("{length}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let names = expected.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>();
        Self::expected(names.join(" or "), format_args!("{variant:?}"))
    }

    fn unknown_field(field: &str, _expected: &'static [&'static str]) -> Self {
        Self::expected("no other member", format_args!("{field:?}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::expected("a value", "nothing").under(field)
    }
}

/// What was expected, in the words of JSON and not of Rust.
fn name_of(expected: &dyn Expected) -> String {
    let name = expected.to_string();
    let named = match &*name {
        "u64" | "usize" => "an integer from zero",
        "u32" => "an integer from 0 to 2^32 - 1",
        "u16" => "an integer from 0 to 65,535",
        "u8" => "an integer from 0 to 255",
        "i64" | "isize" => "an integer of 64 bits",
        "f64" | "f32" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        _ if name.starts_with("struct ") => "an object",
        _ if name.starts_with("enum ") => "a name",
        _ => return name,
    };
    named.to_owned()
}

/// What was found: a number by its digits, anything else by its type.
fn shown(found: Unexpected<'_>) -> String {
    let kind = match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(number) => return number.to_string(),
        Unexpected::Signed(number) => return number.to_string(),
        Unexpected::Float(number) => return number.to_string(),
        Unexpected::Str(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "an array",
        Unexpected::Map => "an object",
        other => return other.to_string(),
    };
    kind.to_owned()
}

/// Integers: a fraction, and what 64 bits do not hold, is none.
macro_rules! integers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self {
                Self::Number(number) if number.as_u64().is_none() && number.as_i64().is_none() => {
                    Err(Error::expected(name_of(&visitor), number))
                }
                other => other.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Value {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                // Whoever takes any value gets every digit.
                (None, None) => visitor.visit_map(Digits(Some(number))),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(array) => {
                let mut elements = Elements { rest: array.into_iter(), next: 0 };
                let value = visitor.visit_seq(&mut elements)?;
                match elements.rest.len() {
                    0 => Ok(value),
                    more => {
                        let found = format_args!("{} elements", elements.next + more);
                        Err(Error::expected(format_args!("{} elements", elements.next), found))
                    }
                }
            }
            Value::Object(object) => {
                visitor.visit_map(Members { rest: object.into_iter(), value: None })
            }
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Value::Number(number) => visitor.visit_f64(number.as_f64()),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self {
            Value::String(variant) => visitor.visit_enum(Variant(variant, None)),
            Value::Object(object) if object.len() == 1 => {
                let member = object.into_iter().next();
                let (variant, value) =
                    member.ok_or_else(|| Error::expected("a name", "nothing"))?;
                visitor.visit_enum(Variant(variant, Some(value)))
            }
            other => Err(Error::expected("a name, or an object of one member", other.kind())),
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    forward_to_deserialize_any! {
        bool i128 u128 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Elements {
    rest: std::vec::IntoIter<Value>,
    next: usize,
}

impl<'de> SeqAccess<'de> for &mut Elements {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(value) = self.rest.next() else { return Ok(None) };
        let at = self.next;
        self.next += 1;
        seed.deserialize(value).map(Some).map_err(|error| error.under(at))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members {
    rest: <crate::Object as IntoIterator>::IntoIter,
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some((key.clone(), value));
        seed.deserialize(Value::String(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let member = self.value.take();
        let (key, value) = member.ok_or_else(|| Error::expected("a member", "nothing"))?;
        seed.deserialize(value).map_err(|error| error.under(key))
    }
}

/// A number that 64 bits do not hold, as `serde_json` hands it over.
struct Digits(Option<Number>);

impl<'de> MapAccess<'de> for Digits {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let key = self.0.is_some().then(|| Value::from(EXACT_NUMBER));
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let digits = self.0.take().map(|number| number.to_string()).unwrap_or_default();
        seed.deserialize(Value::String(digits))
    }
}

/// A variant, and what it holds.
struct Variant(String, Option<Value>);

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Held;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Held)> {
        let Self(name, value) = self;
        let variant = seed.deserialize(Value::String(name.clone()))?;
        Ok((variant, Held(name, value)))
    }
}

struct Held(String, Option<Value>);

impl Held {
    fn value<T>(self, read: impl FnOnce(Value) -> Result<T>) -> Result<T> {
        let Self(name, value) = self;
        read(value.unwrap_or(Value::Null)).map_err(|error| error.under(name))
    }
}

impl<'de> VariantAccess<'de> for Held {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        match self.1 {
            None => Ok(()),
            Some(other) => Err(Error::expected("a name alone", other.kind()).under(self.0)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        self.value(|value| seed.deserialize(value))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value> {
        self.value(|value| value.deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.value(|value| value.deserialize_any(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{read, to_value};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Ship {
        name: String,
        berth: Option<u8>,
        draught: f64,
        state: State,
        notes: BTreeMap<String, Value>,
        pair: (i64, bool),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum State {
        AtSea,
        Moored(u64),
        Towed { by: String },
    }

    const TEXT: &str = r#"{"name":"Kea","berth":null,"draught":2.5,"state":"atSea","notes":{"a":123456789012345678901234567890,"b":[1.50,null]},"pair":[-3,true]}"#;

    #[test]
    fn what_was_written_is_read_again() {
        let ship: Ship = from_value(read(TEXT.as_bytes()).unwrap()).unwrap();
        assert_eq!(to_value(&ship).unwrap().to_string(), TEXT);
        for text in [r#"{"moored":7}"#, r#"{"towed":{"by":"Tui"}}"#] {
            let state: State = from_value(read(text.as_bytes()).unwrap()).unwrap();
            assert_eq!(to_value(&state).unwrap().to_string(), text);
        }
        assert!(to_value(&f64::NAN).is_err());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (from, to, says) in [
            ("null,", "300,", "expected an integer from 0 to 255, found 300 (at /berth)"),
            ("null,", "\"x\",", "expected an integer from 0 to 255, found a string (at /berth)"),
            (
                "\"atSea\"",
                "{\"moored\":-1}",
                "expected an integer from zero, found -1 (at /state/moored)",
            ),
            (
                "\"atSea\"",
                "\"sunk\"",
                "expected \"atSea\" or \"moored\" or \"towed\", found \"sunk\" (at /state)",
            ),
            ("\"draught\":2.5,", "", "expected a value, found nothing (at /draught)"),
            ("null,", "1.5,", "expected an integer from 0 to 255, found 1.5 (at /berth)"),
            ("\"pair\"", "\"more\":1,\"pair\"", "expected no other member, found \"more\""),
            ("true]", "true,1]", "expected 2 elements, found 3 elements (at /pair)"),
            ("-3,true", "-3", "expected a tuple of size 2, found 1 (at /pair)"),
        ] {
            let value = read(TEXT.replace(from, to).as_bytes()).unwrap();
            assert_eq!(from_value::<Ship>(value).unwrap_err().to_string(), says);
        }
    }
}
