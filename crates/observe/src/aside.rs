use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    IgnoreReason, Moment,
    observation::read_payload,
    shown::{self, short},
};
use crate::{Result, json::Value};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejectedAnswerInfo {
    /// The observation beside which it is kept.
    pub name: String,
    /// The tool.
    #[serde(default)]
    pub tool: String,
    /// When it came, or which tick it is of.
    #[serde(flatten)]
    pub seen: Moment,
    /// Why it did not replace the observation.
    pub reason: IgnoreReason,
    /// How many answers in a row were set aside.
    #[serde(default = "one")]
    pub count: u64,
    /// How it begins.
    #[serde(default)]
    pub excerpt: String,
}

fn one() -> u64 {
    1
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
}

/// How a payload begins, on one line.
pub(super) fn excerpt(payload: &Value) -> String {
    match payload {
        Value::Null => String::new(),
        Value::String(text) => shown::clean(text, EXCERPT_CHARS).into_owned(),
        other => shown::clean(&other.to_string(), EXCERPT_CHARS).into_owned(),
    }
}
