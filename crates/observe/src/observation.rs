use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Ages, Moment, Outline, Pointer, shown::short};
use crate::{
    Error, ErrorKind, Result,
    json::{self, ObjectExt, Value, object},
};

crate::json::serialize_through_json!(ObservationInfo);

/// The name of a row that was lost with its name. It has damage.
pub(super) const LOST: &str = "?";

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
    /// Since when the payload is what it is: the first of the responses that said the same.
    pub since: Moment,
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
    /// Why it cannot be read, where the store is damaged. Nothing but the name is sure then.
    pub damage: Option<String>,
}

/// Why a part of an observation is out of date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleMark {
    /// Which part; the whole where it is the root.
    pub path: Pointer,
    /// The tool that made it so.
    #[serde(default)]
    pub by: String,
    /// When.
    #[serde(flatten)]
    pub since: Moment,
}

impl Observation {
    /// The payload. Runs in O(its length).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`] where it is no JSON: somebody else wrote it.
    pub fn value(&self) -> Result<Value> {
        read_payload(&self.content, &format!("the payload of {:?}", short(&self.info.name)))
    }
}

/// A payload that was kept as JSON; `what` says whose it is where it is damaged.
pub(super) fn read_payload(content: &str, what: &str) -> Result<Value> {
    json::read(content.as_bytes()).map_err(|error| {
        Error::new(ErrorKind::Damaged, format!("{what} is damaged: {}", error.message()))
    })
}

impl ObservationInfo {
    /// An observation of which nothing but the name is known.
    pub(super) fn new(name: &str, tool: &str, seen: Moment) -> Self {
        Self {
            name: name.to_owned(),
            tool: tool.to_owned(),
            seen,
            updated: seen,
            since: seen,
            is_partial: false,
            bytes: 0,
            changed: Vec::new(),
            stale: Vec::new(),
            outline: Outline::default(),
            damage: None,
        }
    }

    /// One that is damaged. The name is the tool, with its arguments where there are some.
    #[cfg(feature = "sqlite")]
    pub(super) fn damaged(name: &str, damage: String) -> Self {
        let tool = name.split(' ').next().unwrap_or(name);
        Self { damage: Some(damage), ..Self::new(name, tool, Moment::default()) }
    }

    /// What is known of an observation, for programs: `name`, `tool`, `at`, `tick`, `updatedAt`,
    /// `updatedTick`, `sinceAt`, `sinceTick`, `partial`, `bytes`, `changed`, `stale`, and
    /// `damage` where it cannot be read. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = object! {
            "name": self.name.as_str(),
            "tool": self.tool.as_str(),
            "at": self.seen.at.get(),
            "tick": self.seen.tick,
            "updatedAt": self.updated.at.get(),
            "updatedTick": self.updated.tick,
            "sinceAt": self.since.at.get(),
            "sinceTick": self.since.tick,
            "partial": self.is_partial,
            "bytes": self.bytes,
            "changed": json::to_value(&self.changed).unwrap_or_default(),
            "stale": json::to_value(&self.stale).unwrap_or_default(),
        };
        object.put_some("damage", self.damage.as_deref());
        object.into()
    }
}
