//! The APIs of providers.

use std::fmt;

use super::bytes;
use crate::json::{Object, Value};

/// The paths of the APIs that are read. Where an address holds several, the first whose member for the
/// conversation the request has counts.
const PATHS: [(&str, Api); 9] = [
    ("/chat/completions", Api::Chat),
    ("/messages", Api::Messages),
    ("/responses", Api::Responses),
    (":generateContent", Api::Gemini),
    (":streamGenerateContent", Api::Gemini),
    ("/converse", Api::Converse),
    ("/converse-stream", Api::Converse),
    ("/api/chat", Api::Ollama),
    ("/api/generate", Api::Generate),
];

/// Where Google's coding assistants ask: the request stands in another one.
const CODE_ASSIST: &str = "/v1internal:";

/// Requests for a count, for later, or to answer no more, by the ends of their paths.
const HELPERS: [&str; 8] = [
    "count_tokens",
    "input_tokens",
    "batches",
    ":countTokens",
    ":batchGenerateContent",
    "count-tokens",
    "count-tokens:rawPredict",
    "/cancel",
];

/// APIs of models that are not read: the end of a path, what the address holds besides, the name. The
/// first that matches counts, so an end that is two providers' stands first where it needs more.
const UNREAD: [(&str, &str, &str); 22] = [
    (":generateContent", CODE_ASSIST, "Gemini Code Assist"),
    (":streamGenerateContent", CODE_ASSIST, "Gemini Code Assist"),
    (":rawPredict", "", "Vertex AI"),
    (":streamRawPredict", "", "Vertex AI"),
    (":predict", "aiplatform", "Vertex AI"),
    (":serverStreamingPredict", "aiplatform", "Vertex AI"),
    (".BidiGenerateContent", "", "Gemini Live"),
    ("/interactions", "/v1beta", "Gemini Interactions"),
    ("/interactions", "googleapis", "Gemini Interactions"),
    ("/invoke", "/model/", "Amazon Bedrock"),
    ("/invoke-with-response-stream", "/model/", "Amazon Bedrock"),
    ("/invoke-with-bidirectional-stream", "/model/", "Amazon Bedrock"),
    ("/chat", "cohere", "Cohere"),
    ("/realtime", "/v1/", "OpenAI Realtime"),
    ("/realtime", "openai", "OpenAI Realtime"),
    ("/runs", "/threads/", "OpenAI Assistants"),
    ("/v1/completions", "", "OpenAI Completions"),
    ("/v1/complete", "", "Anthropic Text Completions"),
    ("/generate_stream", "", "Text Generation Inference"),
    ("/conversations", "mistral", "Mistral Agents"),
    ("/predictions", "replicate", "Replicate"),
    ("/completion", "", "llama.cpp"),
];

/// Where others serve models of Anthropic's: the end of a path, and what stands before the model. A
/// request in Anthropic's form is read there; any other one is of [`UNREAD`].
const HOSTED: [(&str, &str); 4] = [
    (":rawPredict", "/models/"),
    (":streamRawPredict", "/models/"),
    ("/invoke", "/model/"),
    ("/invoke-with-response-stream", "/model/"),
];

/// An address without its parameters.
pub(super) fn path_of(uri: &str) -> &str {
    uri.split(['?', '#']).next().unwrap_or_default()
}

/// What stands before the model in an address of Bedrock.
const MODEL: &str = "/model/";

/// Whether an address leads to an API by this path.
fn leads(uri: &str, (path, api): &(&str, Api)) -> bool {
    match api {
        Api::Converse => path_of(uri).ends_with(path) && uri.contains(MODEL),
        Api::Ollama | Api::Generate => path_of(uri).ends_with(path),
        Api::Gemini => uri.contains(path) && !uri.contains(CODE_ASSIST),
        _ => uri.contains(path),
    }
}

/// Whether an address may be one of Ollama's: other programs have such paths too, and the body tells.
pub(super) fn may_be_ollamas(uri: &str) -> bool {
    PATHS.iter().any(|of| matches!(of.1, Api::Ollama | Api::Generate) && leads(uri, of))
}

/// Whether a request is one of Ollama's that says nothing: it loads a model, or lets one go.
pub(super) fn loads_model(uri: &str, request: &Object) -> bool {
    let says = |key: &str| match request.get(key) {
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        of => of.is_some_and(|of| !of.is_null()),
    };
    let path = PATHS.iter().find(|of| leads(uri, of)).filter(|_| request.str_at("model").is_some());
    path.is_some_and(|(_, api)| match api {
        Api::Ollama => !says("messages"),
        Api::Generate => !["prompt", "suffix", "images"].into_iter().any(says),
        _ => false,
    })
}

/// Whether a model may read what is sent to `uri` now: some ask for a count, for later, or about an
/// answer that is kept.
pub(super) fn reaches_model(uri: &str) -> bool {
    !is_stored_completion(uri) && !HELPERS.iter().any(|end| path_of(uri).ends_with(end))
}

/// Whether a request looks at a completion that the provider keeps, or changes what is noted of it.
pub(super) fn is_stored_completion(uri: &str) -> bool {
    let id = path_of(uri).rsplit_once('/');
    id.is_some_and(|(before, id)| before.ends_with("/chat/completions") && !id.is_empty())
}

/// The model in an address at which others serve models of Anthropic's.
pub(super) fn hosted_model(uri: &str) -> Option<&str> {
    let path = path_of(uri);
    HOSTED.iter().filter(|_| reaches_model(uri)).find_map(|(end, before)| {
        let (_, model) = path.strip_suffix(end)?.rsplit_once(before)?;
        Some(model)
    })
}

/// Whether an address of Vertex AI has a model of Anthropic's run in a region.
pub(super) fn is_regional(uri: &str) -> bool {
    let place = || uri.split_once("/locations/")?.1.split('/').next();
    uri.contains("/publishers/anthropic/")
        && place().is_some_and(|of| !matches!(of, "global" | "*"))
}

/// The model that an address names: Gemini's do, and those of hosts. A recorder that writes no unknown
/// words has a star there.
pub(super) fn model_in(uri: &str) -> Option<String> {
    let path = path_of(uri);
    let in_address = || match Api::of_uri(uri)? {
        Api::Gemini => path.rsplit('/').next()?.split(':').next(),
        Api::Converse => path.rsplit_once('/')?.0.rsplit_once(MODEL).map(|(_, model)| model),
        _ => None,
    };
    let model = hosted_model(uri).or_else(in_address).filter(|model| *model != "*")?;
    // Of an ARN a recorder keeps the end.
    let model = model.strip_prefix("*%2F").unwrap_or(model);
    // What separates the parts of a name would separate those of an address.
    Some(bytes::of_percent(model))
}

/// The name of an API of models that is not read, by an address, or where that does not tell by the
/// shape of a request: `Gemini`.
pub(super) fn unread_api(uri: &str, request: Option<&Value>) -> Option<String> {
    let path = path_of(uri);
    if !reaches_model(uri) || Api::of_uri(uri).is_some() {
        return None;
    }
    let is_one = |(end, holds, _): &&(&str, &str, &str)| path.ends_with(end) && uri.contains(holds);
    if let Some((_, _, name)) = UNREAD.iter().find(is_one) {
        return Some((*name).to_owned());
    }
    let request = request?;
    let has_list = |key: &str, member: &str| {
        let first = request.get(key).and_then(|list| list.at(0));
        first.is_some_and(|first| first.get(member).is_some())
    };
    let has_model = request.str_at("model").is_some();
    let is_chat = has_list("messages", "role");
    let has_prompt = has_model && request.get("prompt").is_some();
    if !is_chat && !has_list("contents", "parts") && !has_prompt {
        return None;
    }
    Some(unknown_api(uri))
}

/// The name of an API that is known by what was sent to it alone.
pub(super) fn unknown_api(uri: &str) -> String {
    let path = path_of(uri);
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let path = path.find('/').and_then(|at| path.get(at..)).unwrap_or(path);
    format!("an unknown API at {path}")
}

/// An API that a request speaks.
#[non_exhaustive]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// OpenAI's Chat Completions, and everyone who speaks like them.
    #[default]
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// Google's `generateContent`, of Gemini and of Vertex AI.
    Gemini,
    /// Ollama's chat.
    Ollama,
    /// Ollama's answers to a prompt alone.
    Generate,
    /// Amazon Bedrock's Converse.
    Converse,
}

impl Api {
    const ALL: [Self; 7] = [
        Self::Chat,
        Self::Messages,
        Self::Responses,
        Self::Gemini,
        Self::Ollama,
        Self::Generate,
        Self::Converse,
    ];

    /// The name on the wire: `chat`, `messages`, `responses`, `gemini`, `ollama`, `generate`,
    /// `converse`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Generate => "generate",
            Self::Converse => "converse",
        }
    }

    /// The API with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.as_str() == name)
    }

    /// The member of a request that holds the conversation.
    pub const fn conversation_key(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages | Self::Ollama | Self::Converse => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
            Self::Generate => "prompt",
        }
    }

    /// Whether a member of a request holds the conversation in one of the APIs. O(1).
    pub fn is_conversation(key: &str) -> bool {
        Self::ALL.into_iter().any(|api| api.conversation_key() == key)
    }

    /// The member of a request that holds a system prompt apart from the conversation. Chat
    /// Completions have none of their own.
    pub const fn system_key(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages | Self::Ollama | Self::Generate | Self::Converse => {
                "system"
            }
            Self::Responses => "instructions",
            Self::Gemini => "systemInstruction",
        }
    }

    /// Whether a member of a request holds the system prompt apart: Gemini takes two spellings.
    pub(crate) fn is_system(self, key: &str) -> bool {
        key == self.system_key() || self == Self::Gemini && key == "system_instruction"
    }

    /// The system prompt that stands apart in a request, if it has one.
    pub(crate) fn system_of(self, members: &Object) -> Option<&Value> {
        let (_, system) = members.iter().find(|(key, _)| self.is_system(key))?;
        (!system.is_null()).then_some(system)
    }

    /// The provider who made it, by its name in the conventions of OpenTelemetry.
    pub(crate) const fn provider(self) -> &'static str {
        match self {
            Self::Messages => "anthropic",
            Self::Chat | Self::Responses => "openai",
            Self::Gemini => "gcp.gemini",
            Self::Ollama | Self::Generate => "ollama",
            Self::Converse => "aws.bedrock",
        }
    }

    /// The API of a request to `uri` with this body.
    pub(super) fn of(uri: &str, request: &Value) -> Option<Self> {
        if !reaches_model(uri) {
            return None;
        }
        let has_messages = request.get("messages").and_then(Value::as_array).is_some();
        // What the provider keeps may be all of it.
        let inputs = ["input", "conversation", "prompt"].into_iter();
        let has_input = inputs.filter_map(|key| request.get(key)).any(|input| !input.is_null());
        let has_conversation = |api: Self| match api {
            Self::Chat | Self::Messages => has_messages,
            // A prompt that the provider keeps has messages of its own.
            Self::Converse => has_messages || request.get("promptVariables").is_some(),
            Self::Responses => has_input,
            Self::Gemini => request.get("contents").is_some(),
            Self::Ollama => has_messages && request.str_at("model").is_some(),
            Self::Generate => request.str_at("prompt").and(request.str_at("model")).is_some(),
        };
        let at_path = PATHS.iter().find(|of| leads(uri, of) && has_conversation(of.1));
        let hosted = || {
            hosted_model(uri).filter(|_| has_messages)?;
            if request.str_at("anthropic_version").is_some() {
                return Some(Self::Messages);
            }
            // Amazon's own models have the messages of Converse.
            let of_amazon = ["inferenceConfig", "schemaVersion", "toolConfig"];
            let is_amazons = of_amazon.iter().any(|key| request.get(key).is_some())
                || model_in(uri).is_some_and(|model| model.contains("amazon.nova"));
            is_amazons.then_some(Self::Converse)
        };
        at_path.map(|(_, api)| *api).or_else(hosted)
    }

    /// Whether a request to `uri` may be for several APIs.
    #[cfg(feature = "record")]
    pub(super) fn is_in_doubt(uri: &str) -> bool {
        let found = PATHS.iter().filter(|of| leads(uri, of)).count();
        let is_doubtful = found > 1 || hosted_model(uri).is_some() || may_be_ollamas(uri);
        is_doubtful && reaches_model(uri)
    }

    /// Whether requests to `uri` may be read, as far as the address tells: where several APIs are, or
    /// models of several, the body decides. O(length of the address).
    ///
    /// ```
    /// use afterimage::transcript::Api;
    ///
    /// assert!(Api::may_be_at("/model/us.anthropic.claude-opus-4-6-v1/invoke"));
    /// assert!(!Api::may_be_at("/v1/embeddings"));
    /// ```
    pub fn may_be_at(uri: &str) -> bool {
        Self::of_uri(uri).is_some() || hosted_model(uri).is_some()
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
        let is_at = |of: &&(&str, Self)| leads(uri, of);
        let mut found = PATHS.iter().filter(is_at).map(|(_, api)| *api);
        let is_known = |api| match api {
            // A path without a host is that of a recorder, which was led there.
            Self::Ollama | Self::Generate => {
                [":11434", "ollama"].iter().any(|word| uri.contains(word)) || !uri.contains("://")
            }
            _ => true,
        };
        match (found.next(), found.next()) {
            (Some(api), None) if reaches_model(uri) && is_known(api) => Some(api),
            _ => None,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
