use std::sync::Arc;

use super::{Ages, Moment, Outline, Pointer};
use crate::{
    Error, ErrorKind, Result,
    json::{self, Fields, Object, ObjectExt, Value},
};

/// The latest response of one tool for one account.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What is known of it besides the payload.
    pub info: ObservationInfo,
    /// The payload as JSON. A response that was a text is a JSON string.
    pub content: Arc<str>,
    /// When each path was last seen.
    pub ages: Ages,
}

/// What is known of an observation besides its payload: a few kilobytes, whatever its size.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservationInfo {
    /// What it is called: the tool, with the arguments behind it where the policy keeps one
    /// observation for each.
    pub name: String,
    /// The tool.
    pub tool: String,
    /// When the last full response came.
    pub seen: Moment,
    /// When the last response came that named any of it.
    pub updated: Moment,
    /// Whether only parts of it were ever seen.
    pub is_partial: bool,
    /// The length of the payload in bytes.
    pub bytes: u64,
    /// What the last response changed, up to 64 paths.
    pub changed: Vec<Pointer>,
    /// What is out of date, and since when.
    pub stale: Vec<StaleMark>,
    /// The lines that a summary may show; made by the policy with this fingerprint.
    pub outline: Outline,
}

/// Why a part of an observation is out of date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleMark {
    /// Which part; the whole where it is the root.
    pub path: Pointer,
    /// The tool that made it so.
    pub by: String,
    /// When.
    pub since: Moment,
}

impl Observation {
    /// The payload. Runs in O(its length).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where it is no JSON: somebody else wrote it.
    pub fn value(&self) -> Result<Value> {
        json::read(self.content.as_bytes()).map_err(|error| {
            let name: String = self.info.name.chars().take(64).collect();
            let message = format!("the payload of {name:?} is damaged: {}", error.message());
            Error::new(ErrorKind::Damaged, message)
        })
    }
}

impl ObservationInfo {
    /// What is known of an observation, for programs: `name`, `tool`, `at`, `tick`, `updatedAt`,
    /// `updatedTick`, `partial`, `bytes`, `changed`, `stale`.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("name", self.name.as_str());
        object.put("tool", self.tool.as_str());
        object.put("at", self.seen.at.get());
        object.put("tick", self.seen.tick.map_or(Value::Null, Value::from));
        object.put("updatedAt", self.updated.at.get());
        object.put("updatedTick", self.updated.tick.map_or(Value::Null, Value::from));
        object.put("partial", self.is_partial);
        object.put("bytes", self.bytes);
        object.put("changed", self.changed.iter().map(Pointer::to_string).collect::<Value>());
        object.put("stale", self.stale.iter().map(StaleMark::to_json).collect::<Value>());
        object.into()
    }
}

impl StaleMark {
    /// The wire form: `path`, `by`, `at`, `tick`.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("path", self.path.to_string());
        object.put("by", self.by.as_str());
        object.put("at", self.since.at.get());
        object.put_some("tick", self.since.tick);
        object.into()
    }

    /// Loads the wire form.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it is not one.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a stale mark")?;
        let path = Fields::required(fields.string("path")?, "path", "a pointer")?;
        let at = Fields::required(fields.i64("at")?, "at", "an integer")?;
        Ok(Self {
            path: Pointer::parse(&path).map_err(|error| error.under("path"))?,
            by: fields.string("by")?.unwrap_or_default(),
            since: Moment { at: crate::id::Millis::new(at), tick: fields.u64("tick")? },
        })
    }
}
