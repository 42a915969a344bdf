//! A state of which nothing is known: its newest snapshot, and the events after it.

use afterimage::{
    journal::{Replay, Result},
    json::Value,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::object;

#[derive(Debug, Default)]
pub(super) struct Anything {
    pub(super) snapshot: Option<Value>,
    pub(super) events: Vec<Value>,
}

impl Serialize for Anything {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.snapshot.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let snapshot = Some(Value::deserialize(deserializer)?);
        Ok(Self { snapshot, events: Vec::new() })
    }
}

impl Replay for Anything {
    type Event = Value;
    const SCHEMA: u32 = 0;

    fn reads(_: u32) -> bool {
        true
    }

    fn kind(_: &Value) -> &'static str {
        "event"
    }

    fn knows(_: &str) -> bool {
        true
    }

    fn apply(&mut self, sequence: u64, event: &Value) -> Result<()> {
        self.events.push(object! { "sequence": sequence, "event": event.clone() }.into());
        Ok(())
    }
}
