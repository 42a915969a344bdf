use super::Data;
use crate::{
    Error, Result,
    json::{Object, ObjectExt, Value},
};

crate::json::serde_through_json!(Event);

/// Something that happened in a turn: an object with a `type`, an `eventId`, and what the type asks
/// for in `data`. Nothing of it is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event(Object);

impl Event {
    /// An event of a type. Its id is given when its turn is pushed, unless it is given before.
    /// O(size).
    pub fn new(event_type: &str, data: impl Into<Data>) -> Self {
        let mut object = Object::new();
        object.put("type", event_type);
        object.put("data", &data.into());
        Self(object)
    }

    /// The event with an id.
    pub fn with_id(mut self, id: &str) -> Self {
        self.0.put("eventId", id);
        self
    }

    /// Reads the wire form.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for what is no object.
    pub fn from_json(value: Value) -> Result<Self> {
        match value {
            Value::Object(object) => Ok(Self(object)),
            other => Err(Error::expected("an event (an object)", other.kind())),
        }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Its id; empty where it has none.
    pub fn event_id(&self) -> &str {
        self.0.str_at("eventId").unwrap_or_default()
    }

    /// Its type; empty where it has none.
    pub fn event_type(&self) -> &str {
        self.0.str_at("type").unwrap_or_default()
    }

    /// A member of its `data`.
    pub fn data(&self, key: &str) -> Option<&Value> {
        self.0.get("data")?.get(key)
    }

    /// A member of the event itself.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A string that the event's type asks for.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape), naming the member, where it is not one.
    pub fn text(&self, key: &str) -> Result<&str> {
        let found = self.data(key);
        found.and_then(Value::as_str).ok_or_else(|| {
            Error::expected("a string", found.map_or("nothing", Value::kind))
                .under(key)
                .under("data")
        })
    }

    /// A value that the event's type asks for. A look-up by name. Copies the value: O(its size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape), naming the member, where it is not there.
    pub fn value(&self, key: &str) -> Result<Data> {
        let found = self.data(key).cloned().map(Data::from);
        found.ok_or_else(|| Error::expected("a value", "nothing").under(key).under("data"))
    }

    pub(super) fn complete(&mut self, id: impl FnOnce() -> String) {
        if self.event_id().is_empty() {
            self.0.put("eventId", id());
        }
    }
}
