//! Values from and to other forms.

use super::{Data, List, Map, Member, Text};
use crate::json::{FromJson, Number, Object, Value};

impl From<Value> for Data {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::String(Text(text.into())),
            Value::Array(array) => array.into_iter().map(Self::from).collect(),
            Value::Object(object) => Self::from(object),
        }
    }
}

impl From<Object> for Data {
    fn from(object: Object) -> Self {
        object.into_iter().collect()
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<bool> for Data {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<u64> for Data {
    fn from(value: u64) -> Self {
        Self::Number(value.into())
    }
}

impl From<i64> for Data {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<List> for Data {
    fn from(list: List) -> Self {
        Self::Array(list)
    }
}

impl From<Map> for Data {
    fn from(map: Map) -> Self {
        Self::Object(map)
    }
}

impl From<&Data> for Value {
    fn from(data: &Data) -> Self {
        data.to_json()
    }
}

impl FromIterator<Data> for List {
    fn from_iter<I: IntoIterator<Item = Data>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl FromIterator<Data> for Data {
    fn from_iter<I: IntoIterator<Item = Data>>(values: I) -> Self {
        Self::Array(values.into_iter().collect())
    }
}

/// Of members with the same key the last counts.
impl<K: AsRef<str>, V: Into<Data>> FromIterator<(K, V)> for Data {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let members = members.into_iter();
        sorted(members.map(|(key, value)| (key.as_ref().into(), value.into())).collect())
    }
}

/// The object with these members. Runs in O(n) time where they are in order.
fn sorted(mut members: Vec<Member>) -> Data {
    if !members.is_sorted_by(|(a, _), (b, _)| a < b) {
        members.reverse();
        // The sort is stable, so that the last of a key comes first, and stays.
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        members.dedup_by(|(b, _), (a, _)| a == b);
    }
    Data::Object(Map(members.into_iter().collect()))
}

impl FromJson for Data {
    type Members = Vec<Member>;

    fn null() -> Self {
        Self::Null
    }

    fn bool(flag: bool) -> Self {
        Self::Bool(flag)
    }

    fn number(number: Number) -> Self {
        Self::Number(number)
    }

    fn string(text: &str) -> Self {
        Self::from(text)
    }

    fn array(elements: Vec<Self>) -> Self {
        elements.into_iter().collect()
    }

    fn object(members: Vec<Member>) -> Self {
        sorted(members)
    }

    fn put(members: &mut Vec<Member>, key: String, value: Self) {
        members.push((Text(key.into()), value));
    }
}

impl serde::Serialize for Data {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Data {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
