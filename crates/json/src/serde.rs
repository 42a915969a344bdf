//! The bridge to serde, so that every wire type can be a field of a caller's own types.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
    ser::SerializeSeq,
};

use super::{Number, Object, Value};

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(value) = self.as_u64() {
            return serializer.serialize_u64(value);
        }
        if let Some(value) = self.as_i64() {
            return serializer.serialize_i64(value);
        }
        let text = self.to_string();
        let value = self.as_f64();
        if Number::from_f64(value).is_some_and(|number| number == *self) {
            return serializer.serialize_f64(value);
        }
        // serde_json writes the text itself; other formats see it as a newtype of that text.
        serde_json::value::RawValue::from_string(text)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => number.serialize(serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(array) => {
                let mut seq = serializer.serialize_seq(Some(array.len()))?;
                array.iter().try_for_each(|value| seq.serialize_element(value))?;
                seq.end()
            }
            Value::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(object) => Ok(object),
            other => {
                Err(D::Error::custom(format_args!("expected an object, found {}", other.kind())))
            }
        }
    }
}

/// The key under which `serde_json` hands over a number when some crate of the build turns its
/// `arbitrary_precision` on.
pub(crate) const EXACT_NUMBER: &str = "$serde_json::private::Number";

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("JSON has no infinity and no NaN"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(value) = seq.next_element()? {
            array.push(value);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Object::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.is_empty() && key == EXACT_NUMBER {
                let text = map.next_value::<String>()?;
                return match super::read(text.as_bytes()) {
                    Ok(value @ Value::Number(_)) => Ok(value),
                    _ => Err(A::Error::custom(format_args!("not a number: {text}"))),
                };
            }
            object.insert(key, map.next_value()?);
        }
        Ok(Value::Object(object))
    }
}

/// Writes a value as its text: for `#[serde(serialize_with = "json::as_text")]`.
///
/// # Errors
/// Those of the serializer.
pub fn as_text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Implements serde's two traits through a type's own `to_json` and `from_json`.
#[macro_export]
macro_rules! serde_through_json {
    ($($name:ty),+) => {
        $crate::serialize_through_json!($($name),+);
        $crate::deserialize_through_json!($($name),+);
    };
}

/// Implements `Deserialize` through a type's own `from_json`, which takes the value.
#[macro_export]
macro_rules! deserialize_through_json {
    ($($name:ty),+) => {
        $(
            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D>(deserializer: D) -> Result<Self, D::Error>
                where
                    D: serde::Deserializer<'de>,
                {
                    let value = <$crate::Value as serde::Deserialize>::deserialize(deserializer)?;
                    Self::from_json(value).map_err(serde::de::Error::custom)
                }
            }
        )+
    };
}

/// Implements `Serialize` through a type's own `to_json`, for what is only written.
#[macro_export]
macro_rules! serialize_through_json {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.to_json(), serializer)
            }
        }
    )+};
}

/// Implements serde's two traits through a type's `Display` and `parse`.
#[macro_export]
macro_rules! serde_through_text {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(flag) => Value::Bool(flag),
            // Its text is that of a JSON number, whatever serde_json keeps of it.
            serde_json::Value::Number(number) => {
                Value::Number(Number::from_json_text(&number.to_string()))
            }
            serde_json::Value::String(text) => Value::String(text),
            serde_json::Value::Array(array) => array.into_iter().map(Value::from).collect(),
            serde_json::Value::Object(object) => {
                let members = object.into_iter().map(|(key, value)| (key, Value::from(value)));
                Value::Object(members.collect())
            }
        }
    }
}

/// Fails for a number that `serde_json` does not hold, `1e400` for example. Without `serde_json`'s
/// feature `arbitrary_precision` a fraction becomes the nearest `f64`, and without `preserve_order`
/// the members of an object are sorted.
impl TryFrom<&Value> for serde_json::Value {
    type Error = crate::Error;

    fn try_from(value: &Value) -> Result<Self, Self::Error> {
        Ok(match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Number(number) => {
                let text = number.to_string();
                let read = serde_json::from_str(&text).map(serde_json::Value::Number);
                read.map_err(|error| {
                    crate::Error::expected("a number that serde_json holds", text)
                        .with_source(error)
                })?
            }
            Value::String(text) => text.as_str().into(),
            Value::Array(array) => {
                array.iter().map(serde_json::Value::try_from).collect::<Result<_, _>>()?
            }
            Value::Object(object) => {
                let member = |(key, value): (&String, &Value)| {
                    Ok::<_, crate::Error>((key.clone(), value.try_into()?))
                };
                let members = object.iter().map(member);
                serde_json::Value::Object(members.collect::<Result<_, _>>()?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_json_writes_every_digit() {
        let text = r#"{"b":[1,-1,1.50,1e400,123456789012345678901234567890],"a":null}"#;
        let value = crate::read(text.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
    }

    #[test]
    fn serde_json_reads_what_read_reads() {
        let text = r#"{"b":[1,-1,1.5,"x",true,null,{}]}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value, crate::read(text.as_bytes()).unwrap());
    }

    #[test]
    fn values_of_serde_json_come_and_go() {
        let text = r#"{"a":[1,-1,1.5,"x",true,null,{}],"b":18446744073709551615}"#;
        let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
        let ours = Value::from(theirs.clone());
        assert_eq!(ours, crate::read(text.as_bytes()).unwrap());
        assert_eq!(serde_json::Value::try_from(&ours).unwrap(), theirs);
    }

    #[test]
    fn a_number_that_serde_json_does_not_hold_is_an_error_or_whole() {
        let huge = crate::read(b"[1e400]").unwrap();
        match serde_json::Value::try_from(&huge) {
            Ok(theirs) => assert_eq!(Value::from(theirs).to_string(), "[1e+400]"),
            Err(error) => assert!(error.to_string().contains("1e400"), "{error}"),
        }
    }
}
