//! What serde describes, as JSON.

use ::serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::{Error, ErrorKind, Number, Object, Result, Value};

/// A value of any type that serde describes, as JSON: members in the order of the fields, every
/// digit of a number. O(size).
///
/// ```
/// #[derive(serde::Serialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Berth { number: u64, held_by: Option<String> }
///
/// let berth = Berth { number: 7, held_by: None };
/// let value = afterimage_json::to_value(&berth)?;
/// assert_eq!(value.to_string(), r#"{"number":7,"heldBy":null}"#);
/// # Ok::<(), afterimage_json::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for what JSON has not: NaN, the infinities, integers over 64 bits, keys that
/// are no text; and what a type's own `Serialize` refuses.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value> {
    value.serialize(ToValue)
}

impl serde::ser::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(ErrorKind::Shape, message.to_string())
    }
}

struct ToValue;

/// The elements or members so far, and the name of the variant that they belong to.
struct Elements(Vec<Value>, Option<&'static str>);
struct Members(Object, Option<&'static str>, Option<String>);

/// The name under which `serde_json` hands over a number by its digits.
const RAW: &str = "$serde_json::private::RawValue";

fn within(variant: Option<&'static str>, value: Value) -> Value {
    let Some(variant) = variant else { return value };
    Value::Object([(variant.to_owned(), value)].into_iter().collect())
}

fn elements(length: Option<usize>, variant: Option<&'static str>) -> Elements {
    // A caller may state any length.
    Elements(Vec::with_capacity(length.unwrap_or_default().min(1_000)), variant)
}

macro_rules! integers {
    ($($method:ident($from:ty) as $to:ty),+) => {$(
        fn $method(self, value: $from) -> Result<Value> {
            Ok(<$to>::from(value).into())
        }
    )+};
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Elements;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    fn serialize_bool(self, flag: bool) -> Result<Value> {
        Ok(flag.into())
    }

    integers! {
        serialize_i8(i8) as i64, serialize_i16(i16) as i64, serialize_i32(i32) as i64,
        serialize_i64(i64) as i64, serialize_u8(u8) as u64, serialize_u16(u16) as u64,
        serialize_u32(u32) as u64, serialize_u64(u64) as u64
    }

    fn serialize_f32(self, value: f32) -> Result<Value> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<Value> {
        let number = Number::from_f64(value).map(Value::Number);
        number.ok_or_else(|| Error::custom("JSON has no infinity and no NaN"))
    }

    fn serialize_char(self, value: char) -> Result<Value> {
        Ok(value.to_string().into())
    }

    fn serialize_str(self, text: &str) -> Result<Value> {
        Ok(text.into())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value> {
        Ok(bytes.iter().map(|byte| Value::from(u64::from(*byte))).collect())
    }

    fn serialize_none(self) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Value> {
        Ok(name.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Value> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value> {
        Ok(within(Some(variant), value.serialize(self)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements> {
        Ok(elements(length, None))
    }

    fn serialize_tuple(self, length: usize) -> Result<Elements> {
        Ok(elements(Some(length), None))
    }

    fn serialize_tuple_struct(self, _name: &'static str, length: usize) -> Result<Elements> {
        Ok(elements(Some(length), None))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Elements> {
        Ok(elements(Some(length), Some(variant)))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Members> {
        Ok(Members(Object::new(), None, None))
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Members> {
        Ok(Members(Object::new(), None, None))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Members> {
        Ok(Members(Object::new(), Some(variant), None))
    }
}

macro_rules! elements {
    ($($kind:ident: $method:ident),+) => {$(
        impl $kind for Elements {
            type Ok = Value;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.0.push(value.serialize(ToValue)?);
                Ok(())
            }

            fn end(self) -> Result<Value> {
                Ok(within(self.1, Value::Array(self.0)))
            }
        }
    )+};
}

elements!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

impl SerializeMap for Members {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.2 = Some(match key.serialize(ToValue)? {
            Value::String(key) => key,
            Value::Number(key) => key.to_string(),
            other => return Err(Error::expected("a name of a member", other.kind())),
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let key = self.2.take().ok_or_else(|| Error::custom("a value without its name"))?;
        self.0.insert(key, value.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value> {
        Ok(within(self.1, Value::Object(self.0)))
    }
}

impl SerializeStruct for Members {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        self.0.insert(key.to_owned(), value.serialize(ToValue)?);
        Ok(())
    }

    fn end(self) -> Result<Value> {
        if let Some(Value::String(text)) = self.0.get(RAW) {
            return crate::read(text.as_bytes());
        }
        SerializeMap::end(self)
    }
}

impl SerializeStructVariant for Members {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        SerializeStruct::serialize_field(self, key, value)
    }

    fn end(self) -> Result<Value> {
        SerializeMap::end(self)
    }
}
