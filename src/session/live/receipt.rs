use std::{collections::BTreeMap, sync::Arc};

#[cfg(feature = "rules")]
use crate::guard::{CacheForecast, NoForecast};
use crate::{
    Error,
    bill::MediaCount,
    compress::Epoch,
    export::ExportReport,
    hud::RenderedContext,
    id::{ChunkType, FrameSeq},
    json::Value,
    request::{RequestDiff, RequestTokens},
    transcript::Api,
    usage::Usage,
    window::{DroppedFrames, ShortenedFrame},
};

/// The body of a request that fits, with what there is to say of it.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// The body, as it is to be sent.
    pub body: String,
    /// What it holds.
    pub receipt: Receipt,
}

/// What a request holds, what it shares with the one before, and what it no longer says.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The number of the request in its session, from one.
    pub turn: u64,
    /// Blake3 of the body, in hexadecimal digits.
    pub hash: String,
    /// Its tokens as they are counted here, with what the provider adds around messages, and its media.
    pub total: u64,
    /// The tokens that the provider is expected to count: as it counted earlier requests to this model,
    /// else as it is known to count. With what it adds to tools, and never more than the room.
    pub expected: u64,
    /// Its images, sounds and documents, by the rule of the model.
    pub media: MediaCount,
    /// The tokens of its texts, by part.
    pub tokens: RequestTokens,
    /// The tokens of its messages by what wrote them: the type of the facets, `formatting` around them,
    /// `block` for what stands for frames. They are of the texts as frames have them, so that they add up
    /// to a little more or less than `tokens`.
    pub owners: BTreeMap<String, u64>,
    /// The tokens that it may have: those of the model without those that are left for the answer.
    pub room: u64,
    /// What differs from the request before it, and the most that a cache can serve of it; `None` for
    /// the first. With the feature `rules` that is no more than `cache` expects.
    pub change: Option<RequestDiff>,
    /// What a cache will serve of it and take, and what that costs; an error where the rules of its
    /// model do not say it.
    #[cfg(feature = "rules")]
    pub cache: Result<CacheForecast, NoForecast>,
    /// What changed of what the request before it said. `None` where it only grew.
    pub epoch: Option<Epoch>,
    /// How many summaries stand for frames.
    pub blocks: usize,
    /// The frames that are left out.
    pub dropped: Arc<Vec<DroppedFrames>>,
    /// The frames that are shortened.
    pub shortened: Arc<Vec<ShortenedFrame>>,
    /// What the export repaired for the provider to accept it.
    pub repairs: ExportReport,
    /// The errors of the engine that writes summaries; the context fits by other means.
    pub failures: Arc<[Error]>,
}

/// The tokens of a context by what wrote them. O(its chunks).
pub(super) fn owners_in(context: &RenderedContext) -> BTreeMap<String, u64> {
    let mut owners = BTreeMap::new();
    let mut add = |owner: &str, tokens: u64| {
        *owners.entry(owner.to_owned()).or_default() += tokens;
    };
    for message in context.messages() {
        if message.is_block() {
            add("block", message.tokens());
            continue;
        }
        for (_, chunk) in message.chunks() {
            add(chunk.chunk_type().unwrap_or(ChunkType::FORMATTING.as_str()), chunk.tokens());
        }
    }
    owners
}

/// A call of a tool that waits for its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's id of it.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments; a string where the model wrote no JSON.
    pub arguments: Value,
}

/// What the model answered.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct SessionAnswer {
    /// Its text.
    pub text: String,
    /// The calls that wait for results.
    pub calls: Vec<ToolCall>,
    /// The usage as reported.
    pub usage: Option<Usage>,
    /// Why the model stopped, in the provider's words.
    pub stop: Option<String>,
    /// Why it is not whole: its stream broke off. What came of it is kept.
    pub cut: Option<String>,
    /// Its frames in the history.
    pub frames: Vec<FrameSeq>,
}

/// An answer that is in no context, since another process was faster. It was paid all the same.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct PaidAnswer {
    /// The number of the request that it answers, which [`Session::sent`](super::Session::sent) gives.
    pub turn: u64,
    /// The API of its model.
    pub api: Api,
    /// The response or all events of its stream, as it came.
    pub body: String,
    /// Why it is not whole: its stream broke off.
    pub cut: Option<String>,
    /// The usage as reported; `None` where the answer says none, or cannot be read.
    pub usage: Option<Usage>,
}

/// What a session waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Awaits {
    /// The user's words: the model has said what it had to say, or broke off.
    User,
    /// The results of these calls.
    Results(Vec<ToolCall>),
    /// An answer of the model: [`Session::request`](super::Session::request) says what to send.
    Answer,
}
