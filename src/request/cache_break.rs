use super::{ParameterChange, Request};
use crate::{
    Result,
    json::{Object, Value},
    transcript::Api,
};

crate::json::name_enum! {
    /// From where on a provider's cache does not serve a request, whatever text is the same.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CacheFrom {
        /// Nothing is served.
        Start = "start",
        /// The tools are.
        System = "system",
        /// The tools and the system prompt are.
        Messages = "messages",
    }
}

/// Something that differs between two requests and takes the cache from the second.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CacheBreak {
    /// What it is: the name of a parameter, or `images`, or `citations`.
    pub cause: String,
    /// From where on the cache is lost.
    pub from: CacheFrom,
}

impl CacheFrom {
    /// What is billed again, for people.
    pub const fn billed(self) -> &'static str {
        match self {
            Self::Start => "everything is billed again",
            Self::System => "the system prompt and the messages are billed again",
            Self::Messages => "the messages are billed again",
        }
    }
}

impl ParameterChange {
    /// From where on a request to this API loses the cache by the change, as the providers document
    /// it (`docs/compression.md`); `None` where the cache does not look at it. O(the values).
    pub fn breaks(&self, api: Api) -> Option<CacheFrom> {
        let differs = |member: &str| {
            let of = |value: &Option<Value>| value.as_ref().and_then(|of| of.get(member).cloned());
            of(&self.previous) != of(&self.next)
        };
        match (api, self.name.as_str()) {
            (_, "model")
            | (Api::Messages, "output_format")
            | (Api::Chat, "response_format" | "reasoning_effort" | "verbosity")
            | (
                Api::Chat | Api::Responses,
                "prompt_cache_key" | "parallel_tool_calls" | "service_tier",
            ) => Some(CacheFrom::Start),
            (Api::Messages, "output_config") | (Api::Responses, "text") if differs("format") => {
                Some(CacheFrom::Start)
            }
            (Api::Responses, "text") if differs("verbosity") => Some(CacheFrom::Start),
            (Api::Responses, "reasoning") if differs("effort") => Some(CacheFrom::Start),
            (Api::Messages, "speed") => Some(CacheFrom::System),
            (Api::Messages, "tool_choice" | "thinking") => Some(CacheFrom::Messages),
            (Api::Messages, "output_config") if differs("effort") => Some(CacheFrom::Messages),
            _ => None,
        }
    }
}

/// What takes the cache from `next`, the parameters first.
pub(super) fn breaks(
    previous: &Request,
    next: &Request,
    parameters: &[ParameterChange],
) -> Result<Vec<CacheBreak>> {
    let api = next.api();
    let of = |change: &ParameterChange| {
        Some(CacheBreak { cause: change.name.clone(), from: change.breaks(api)? })
    };
    let mut breaks: Vec<CacheBreak> = parameters.iter().filter_map(of).collect();
    if api == Api::Messages {
        let (was, is) = (Features::of(previous.value()?), Features::of(next.value()?));
        breaks.extend(was.breaks(is, api));
    }
    Ok(breaks)
}

/// What of a conversation acts on the cache of more than its own place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Features {
    images: bool,
    citations: bool,
}

impl Features {
    /// Those of a message.
    pub(super) fn of_message(message: &Value) -> Self {
        let mut features = Self::default();
        features.look(message);
        features
    }

    /// Those of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { images: self.images | other.images, citations: self.citations | other.citations }
    }

    /// What takes the cache from a request with these `next` features.
    pub(super) fn breaks(self, next: Self, api: Api) -> impl Iterator<Item = CacheBreak> {
        let is_known = api == Api::Messages;
        let all = [
            ("citations", self.citations != next.citations, CacheFrom::System),
            ("images", self.images != next.images, CacheFrom::Messages),
        ];
        let differs = all.into_iter().filter(move |(_, differs, _)| is_known && *differs);
        differs.map(|(cause, _, from)| CacheBreak { cause: cause.to_owned(), from })
    }

    fn of(request: &Value) -> Self {
        let mut features = Self::default();
        if let Some(messages) = request.get("messages") {
            features.look(messages);
        }
        features
    }

    fn look(&mut self, value: &Value) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| self.look(value)),
            Value::Object(block) => {
                self.images |= block.str_at("type") == Some("image");
                self.citations |= cites(block);
                // Results hold blocks of their own; arguments of calls hold none.
                block.get("content").into_iter().for_each(|content| self.look(content));
            }
            _ => {}
        }
    }
}

fn cites(block: &Object) -> bool {
    let enabled = block.get("citations").and_then(|of| of.get("enabled"));
    enabled.and_then(Value::as_bool).unwrap_or_default()
}
