//! The APIs of providers.

use std::fmt;

use crate::json::Value;

/// The paths of the APIs.
const PATHS: [(&str, Api); 3] = [
    ("/chat/completions", Api::Chat),
    ("/messages", Api::Messages),
    ("/responses", Api::Responses),
];

/// Whether a model may read what is sent to `uri` now: some ask for a count, or for later.
fn reaches_model(uri: &str) -> bool {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    !["count_tokens", "input_tokens", "batches"].iter().any(|end| path.ends_with(end))
}

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
        if !reaches_model(uri) {
            return None;
        }
        match () {
            () if has_messages && uri.contains("/chat/completions") => Some(Self::Chat),
            () if has_messages && uri.contains("/messages") => Some(Self::Messages),
            () if has_input && uri.contains("/responses") => Some(Self::Responses),
            () => None,
        }
    }

    /// Whether a request to `uri` may be for several APIs.
    #[cfg(feature = "record")]
    pub(super) fn is_in_doubt(uri: &str) -> bool {
        let found = PATHS.iter().filter(|(path, _)| uri.contains(path)).count();
        found > 1 && reaches_model(uri)
    }

    /// The API of a request to `uri`, a path or an address, where that alone tells it. Requests that
    /// count tokens or are put off have none. O(length of the address).
    ///
    /// ```
    /// use afterimage::transcript::Api;
    ///
    /// assert_eq!(Api::of_uri("/v1/messages"), Some(Api::Messages));
    /// assert_eq!(Api::of_uri("/v1/messages/count_tokens"), None);
    /// assert_eq!(Api::of_uri("/v1/embeddings"), None);
    /// ```
    pub fn of_uri(uri: &str) -> Option<Self> {
        let is_at = |path: &&(&str, Self)| uri.contains(path.0);
        let mut found = PATHS.iter().filter(is_at).map(|(_, api)| *api);
        match (found.next(), found.next()) {
            (Some(api), None) if reaches_model(uri) => Some(api),
            _ => None,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
