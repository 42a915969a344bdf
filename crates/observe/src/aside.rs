use std::sync::Arc;

use super::{
    IgnoreReason, Moment,
    observation::read_payload,
    shown::{self, short},
};
use crate::{
    Result,
    json::{Fields, Object, ObjectExt, Value},
};

crate::json::serde_through_json!(RejectedAnswerInfo);

/// The most characters that are shown of an answer that was set aside.
const EXCERPT_CHARS: usize = 80;

/// An answer that did not replace an observation, and is kept beside it: an error, an empty one,
/// one of another shape, or one that is older. The latest of each observation is kept until an
/// answer replaces the observation again.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedAnswer {
    /// What is known of it besides the payload.
    pub info: RejectedAnswerInfo,
    /// The payload as JSON. A response that was a text is a JSON string.
    pub content: Arc<str>,
}

/// What is known of an [`RejectedAnswer`] besides its payload.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedAnswerInfo {
    /// The observation beside which it is kept.
    pub name: String,
    /// The tool.
    pub tool: String,
    /// When it came, or which tick it is of.
    pub seen: Moment,
    /// Why it did not replace the observation.
    pub reason: IgnoreReason,
    /// How many answers in a row were set aside.
    pub count: u64,
    /// How it begins.
    pub excerpt: String,
}

impl RejectedAnswer {
    /// The payload. Runs in O(its length).
    ///
    /// # Errors
    /// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) where it is no JSON: somebody else wrote
    /// it.
    pub fn value(&self) -> Result<Value> {
        read_payload(&self.content, &format!("the answer beside {:?}", short(&self.info.name)))
    }
}

impl RejectedAnswerInfo {
    /// What happened, as the end of a sentence: `the call failed: Rate limited`.
    pub fn what(&self) -> String {
        let what = match self.reason {
            IgnoreReason::Failed => "the call failed",
            IgnoreReason::Older => return "the answer was older than this".to_owned(),
            IgnoreReason::Empty => "the answer was empty",
            IgnoreReason::Damaged => {
                return "the answer that was kept beside it is damaged".to_owned();
            }
            _ => "the answer had another shape",
        };
        match self.excerpt.as_str() {
            "" => what.to_owned(),
            excerpt => format!("{what}: {excerpt}"),
        }
    }

    /// The wire form: `name`, `tool`, `at`, `tick`, `reason`, `count`, `excerpt`. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("name", self.name.as_str());
        object.put("tool", self.tool.as_str());
        object.put("at", self.seen.at.get());
        object.put_some("tick", self.seen.tick);
        object.put("reason", self.reason.as_str());
        object.put("count", self.count);
        object.put("excerpt", self.excerpt.as_str());
        object.into()
    }

    /// Loads the wire form. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) where it is not one.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "an answer that was set aside")?;
        let at = Fields::required(fields.i64("at")?, "at", "an integer")?;
        let reason = fields.string("reason")?.as_deref().and_then(IgnoreReason::named);
        Ok(Self {
            name: Fields::required(fields.string("name")?, "name", "a name")?,
            tool: fields.string("tool")?.unwrap_or_default(),
            seen: Moment { at: crate::Millis::new(at), tick: fields.u64("tick")? },
            reason: Fields::required(reason, "reason", "failed, older, empty or other_shape")?,
            count: fields.u64("count")?.unwrap_or(1),
            excerpt: fields.string("excerpt")?.unwrap_or_default(),
        })
    }
}

/// How a payload begins, on one line.
pub(super) fn excerpt(payload: &Value) -> String {
    match payload {
        Value::Null => String::new(),
        Value::String(text) => shown::clean(text, EXCERPT_CHARS).into_owned(),
        other => shown::clean(&other.to_string(), EXCERPT_CHARS).into_owned(),
    }
}
