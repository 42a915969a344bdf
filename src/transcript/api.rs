//! The APIs of providers, and what their traffic reports.

use std::fmt;

use crate::json::{Object, ObjectExt, Value};

/// An API that a request speaks.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI's Chat Completions, and everyone who speaks like them.
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
}

impl Api {
    /// The name on the wire: `chat`, `messages`, `responses`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }

    /// The API with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Chat, Self::Messages, Self::Responses].into_iter().find(|api| api.as_str() == name)
    }

    /// The member of a request that holds the conversation.
    pub const fn conversation_key(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => "messages",
            Self::Responses => "input",
        }
    }

    /// The member of a request that holds a system prompt apart from the conversation. Chat
    /// Completions have none of their own.
    pub const fn system_key(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => "system",
            Self::Responses => "instructions",
        }
    }

    /// The API of a request to `uri` with this body.
    pub(super) fn of(uri: &str, request: &Value) -> Option<Self> {
        let has_messages = request.get("messages").and_then(Value::as_array).is_some();
        let has_input = request.get("input").is_some_and(|input| !input.is_null());
        match () {
            () if has_messages && uri.contains("/chat/completions") => Some(Self::Chat),
            () if has_messages && uri.contains("/messages") => Some(Self::Messages),
            () if has_input && uri.contains("/responses") => Some(Self::Responses),
            () => None,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The tokens that a provider reports for one exchange; `None` where it reports none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The tokens of the whole request, those that the cache served or took among them.
    pub input: Option<u64>,
    /// Those of them that the cache served.
    pub cache_read: Option<u64>,
    /// Those of them that were written to the cache.
    pub cache_write: Option<u64>,
    /// The tokens of the response, reasoning among them.
    pub output: Option<u64>,
    /// Those of them that were reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// The usage that an object of one of the providers, or of a client, reports; `None` where it
    /// names neither input nor output.
    ///
    /// OpenAI's `input_tokens` and `prompt_tokens` hold what the cache served, Anthropic's
    /// `input_tokens` do not: which one it is shows in the names beside it.
    pub fn of(usage: &Value) -> Option<Self> {
        let number = |key: &str| usage.get(key).and_then(Value::as_u64);
        let inner = |outer: &str, key: &str| usage.get(outer)?.get(key)?.as_u64();
        let anthropic_read = number("cache_read_input_tokens");
        let anthropic_write = number("cache_creation_input_tokens");
        let is_apart = anthropic_read.is_some() || anthropic_write.is_some();
        let sum = |tokens: u64| {
            let beside = anthropic_read.unwrap_or(0).saturating_add(anthropic_write.unwrap_or(0));
            if is_apart { tokens.saturating_add(beside) } else { tokens }
        };
        let usage = Self {
            input: number("input_tokens").or_else(|| number("prompt_tokens")).map(sum),
            cache_read: anthropic_read
                .or_else(|| number("cached_input_tokens"))
                .or_else(|| inner("input_tokens_details", "cached_tokens"))
                .or_else(|| inner("prompt_tokens_details", "cached_tokens")),
            cache_write: anthropic_write.or_else(|| number("cache_write_input_tokens")),
            output: number("output_tokens").or_else(|| number("completion_tokens")),
            reasoning: number("reasoning_output_tokens")
                .or_else(|| inner("output_tokens_details", "reasoning_tokens"))
                .or_else(|| inner("completion_tokens_details", "reasoning_tokens")),
        };
        (usage.input.is_some() || usage.output.is_some()).then_some(usage)
    }

    /// The wire form: the members that are known.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put_some("input", self.input);
        object.put_some("cacheRead", self.cache_read);
        object.put_some("cacheWrite", self.cache_write);
        object.put_some("output", self.output);
        object.put_some("reasoning", self.reasoning);
        object.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[track_caller]
    fn check(usage: &str, expected: &str) {
        let usage = Usage::of(&json::read(usage.as_bytes()).unwrap());
        let found = usage.map_or_else(|| "nothing".to_owned(), |usage| usage.to_json().to_string());
        assert_eq!(found, expected);
    }

    #[test]
    fn the_input_holds_what_the_cache_served_whoever_reports_it() {
        check(
            r#"{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":200,"output_tokens":5}"#,
            r#"{"input":243,"cacheRead":40,"cacheWrite":200,"output":5}"#,
        );
        check(
            r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":2}}"#,
            r#"{"input":100,"cacheRead":64,"output":7,"reasoning":2}"#,
        );
        check(
            r#"{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":0}}"#,
            r#"{"input":100,"cacheRead":0,"output":7}"#,
        );
        check(
            r#"{"input_tokens":100,"cached_input_tokens":64,"cache_write_input_tokens":0,"output_tokens":7,"reasoning_output_tokens":0}"#,
            r#"{"input":100,"cacheRead":64,"cacheWrite":0,"output":7,"reasoning":0}"#,
        );
        check(r#"{"total_tokens":-3}"#, "nothing");
        check("null", "nothing");
    }
}
