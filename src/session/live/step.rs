use serde::{Deserialize, Serialize};

use super::{Model, PaidAnswer, kept_window::WindowPart};
use crate::{
    Error, ErrorKind, Result,
    id::Millis,
    json::{self, Value},
    text::common_prefix,
    transcript::{Api, ReplyFrames},
    usage::Usage,
    veil::Frame,
};

/// The version of the steps that are written, and the only one that is read.
const VERSION: u64 = 1;

/// What a session keeps of one thing that happened: what was said, a request, or an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) version: u64,
    pub(super) at: Millis,
    /// What was said. Of what is said while an answer is awaited the frames come behind that answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) frames: Vec<Frame>,
    /// The tools from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<RequestStep>,
    /// The answer, whose frames are those of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<AnswerStep>,
    /// An answer that came too late: another process was faster. It is in no context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) paid: Option<PaidStep>,
    /// How what tools answer is observed from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) policy: Option<Value>,
    /// The state with which the world begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) world: Option<Value>,
    /// A turn of the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<Value>,
    /// A part of what stood for frames after an earlier request: with all of it the requests up to there
    /// need not be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) window: Option<WindowPart>,
}

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RequestStep {
    pub(super) model: Model,
    /// Blake3 of its body, in hexadecimal digits.
    pub(super) hash: String,
    pub(super) body: BodyChange,
    /// The tokens that were set aside for what a request has besides its texts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) aside: u64,
    /// The tokens of its texts and tools, as they are counted here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) counted: u64,
    /// The tokens of its media, by the provider's rules.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) media: u64,
    /// The engine that writes summaries.
    pub(super) engine: String,
    /// What it answered when it was asked, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) summaries: Vec<AskedSummary>,
}

/// What an engine answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) enum AskedSummary {
    Text(String),
    Failure(String),
    /// It had not answered yet, and its answer was not waited for.
    Later,
}

/// An answer as it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AnswerStep {
    pub(super) body: String,
    /// Why it is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cut: Option<String>,
}

/// An answer that is in no context, since another process was faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PaidStep {
    pub(super) turn: u64,
    pub(super) api: Api,
    pub(super) body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cut: Option<String>,
}

/// What differs between the body of a request and that of the one before it: so many bytes at the
/// beginning and at the end are the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BodyChange {
    start: usize,
    text: String,
    end: usize,
}

impl Step {
    pub(super) fn at(now: Millis) -> Self {
        Self { version: VERSION, at: now, ..Self::default() }
    }

    /// The part of a window that these bytes of a step have. Most are told from such by a look.
    pub(super) fn window_in(bytes: &[u8]) -> Option<WindowPart> {
        memchr::memmem::find(bytes, br#""window":{"turn""#)?;
        Self::from_bytes(bytes).ok()?.window
    }

    /// The step, with a part of a window that was written down behind its members.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] where it could not be read again: values that are nested too deep.
    pub(super) fn to_bytes(&self, window: Option<&str>) -> Result<Vec<u8>> {
        let mut bytes = json::to_value(self)?.to_string().into_bytes();
        Self::from_bytes(&bytes)?;
        if let Some(window) = window {
            bytes.pop();
            bytes.push(b',');
            bytes.extend_from_slice(window.get(1..).unwrap_or_default().as_bytes());
        }
        Ok(bytes)
    }

    /// # Errors
    /// [`ErrorKind::Version`] for another version, [`ErrorKind::Shape`] for what is no step.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let value = json::read(bytes)?;
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) => Ok(json::from_value(value)?),
            Some(other) => {
                let message = format!("expected version {VERSION} of a step, found {other}");
                Err(Error::new(ErrorKind::Version, message))
            }
            None => Err(Error::expected("a step of a session", "no `version`").under("version")),
        }
    }
}

impl PaidStep {
    /// The usage that it reports.
    ///
    /// # Errors
    /// Those of [`ReplyFrames::of`].
    pub(super) fn usage(&self) -> Result<Option<Usage>> {
        let read = ReplyFrames::of(self.api, &self.body, <_>::default(), 0, self.cut.clone());
        Ok(read?.answer.usage)
    }

    /// The answer, whether or not it can be read: no context has it.
    pub(super) fn into_answer(self) -> PaidAnswer {
        let usage = self.usage().unwrap_or_default();
        let Self { turn, api, body, cut } = self;
        PaidAnswer { turn, api, body, cut, usage }
    }
}

impl BodyChange {
    pub(super) fn between(before: &str, after: &str) -> Self {
        let start = common_prefix(before, after);
        let (was, is) = (before.get(start..), after.get(start..));
        let (was, is) = (was.unwrap_or_default(), is.unwrap_or_default());
        let pairs = was.chars().rev().zip(is.chars().rev());
        let end = pairs.take_while(|(was, is)| was == is).map(|(was, _)| was.len_utf8()).sum();
        let text = is.get(..is.len().saturating_sub(end)).unwrap_or_default().to_owned();
        Self { start, text, end }
    }

    /// The body after it.
    ///
    /// # Errors
    /// [`ErrorKind::Base`] where it is a change of another body.
    pub(super) fn apply(&self, before: &str) -> Result<String> {
        let end = before.len().checked_sub(self.end).and_then(|at| before.get(at..));
        let (Some(start), Some(end)) = (before.get(..self.start), end) else {
            let message = format!(
                "a request shares {} bytes with the one before it, which has {}",
                self.start.saturating_add(self.end),
                before.len()
            );
            return Err(Error::new(ErrorKind::Base, message));
        };
        Ok([start, &self.text, end].concat())
    }
}

impl RequestStep {
    /// The body, after that of the request before it.
    ///
    /// # Errors
    /// Those of [`BodyChange::apply`]; [`ErrorKind::Damaged`] where it has another hash.
    pub(super) fn body_after(&self, before: &str) -> Result<String> {
        let body = self.body.apply(before)?;
        let found = hash_of(&body);
        if found != self.hash {
            let message =
                format!("expected a request with the hash {}, found one with {found}", self.hash);
            return Err(Error::new(ErrorKind::Damaged, message));
        }
        Ok(body)
    }
}

/// What tells a body from others.
pub(super) fn hash_of(body: &str) -> String {
    blake3::hash(body.as_bytes()).to_hex().to_string()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}
