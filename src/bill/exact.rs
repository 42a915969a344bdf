//! Requests whose input can be counted as the provider counts it.

use std::{fmt, sync::Arc};

use crate::{
    json::{self, Object, Value},
    request::{Exchange, Recording, Request, RequestHead},
    tokens::{Certainty, Slope, TokenCounter, by_name},
    transcript::Api,
};

/// What each message costs besides its role and its text, and what primes the reply: OpenAI's
/// Cookbook, "How to count tokens with tiktoken" (as of 2024-10), which gives it for these models.
/// That GPT-4.1 costs the same is measured on recorded requests.
const PER_MESSAGE: u64 = 3;
const PER_REPLY: u64 = 3;

/// The models whose overhead is known, and their tokenizers. A date may stand behind a name.
const MODELS: [(&str, &str); 5] = [
    ("gpt-4o", "o200k_base"),
    ("gpt-4o-mini", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5-turbo", "cl100k_base"),
];
/// Versions with dates of four digits.
const VERSIONS: [(&str, &str); 4] = [
    ("gpt-4-0314", "cl100k_base"),
    ("gpt-4-0613", "cl100k_base"),
    ("gpt-4-32k-0613", "cl100k_base"),
    ("gpt-3.5-turbo-0125", "cl100k_base"),
];

/// Families of models whose texts these tokenizers split: OpenAI's `tiktoken/model.py` of version
/// 0.12, without what has its own. The longest name that a model begins with decides.
const FAMILIES: [(&str, &str); 11] = [
    ("gpt-5", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4o", "o200k_base"),
    ("chatgpt-4o", "o200k_base"),
    ("gpt-oss-", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4-mini", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5-turbo", "cl100k_base"),
];

/// Whether counts by a tokenizer are those of a model: exact for the texts of OpenAI's, and an
/// estimate for everybody else's. A router's name may stand before the model's.
///
/// ```
/// use afterimage::{bill::certainty_for, tokens::{Certainty, TokenCounter, Chars4}};
///
/// assert_eq!(certainty_for("gpt-4o-2024-08-06", &Chars4), Certainty::Estimated);
/// # #[cfg(feature = "bpe")] {
/// use afterimage::tokens::Bpe;
/// assert_eq!(certainty_for("openai/gpt-5.1", &Bpe::o200k()), Certainty::Exact);
/// assert_eq!(certainty_for("gpt-4-turbo", &Bpe::o200k()), Certainty::Estimated);
/// assert_eq!(certainty_for("claude-opus-4-5", &Bpe::o200k()), Certainty::Estimated);
/// # }
/// ```
pub fn certainty_for(model: &str, counter: &dyn TokenCounter) -> Certainty {
    if counter.certainty() != Certainty::Exact {
        return counter.certainty();
    }
    let model = model.strip_prefix("openai/").unwrap_or(model);
    let families = FAMILIES.iter().filter(|(name, _)| model.starts_with(name));
    match families.max_by_key(|(name, _)| name.len()) {
        Some((_, tokenizer)) if *tokenizer == counter.id() => Certainty::Exact,
        _ => Certainty::Estimated,
    }
}

/// How many millionths of a token a token of a counter is to the models with a word in their names, at
/// the most that recorded sessions showed (`docs/counts.md`). Nobody published their tokenizers.
const SLOPES: [(&str, &str, u32); 2] =
    [("o200k_base", "claude", 1_205_000), ("o200k_base", "gemini", 1_228_000)];

/// The factor from counts by a tokenizer to those of a model that reported nothing yet: 1 where
/// nothing else was measured.
pub(crate) fn usual_slope(model: &str, counter: &dyn TokenCounter) -> Slope {
    let mut measured = SLOPES.iter().filter(|(of, ..)| counter.id() == *of);
    let found = measured.find(|(_, family, _)| model.contains(family));
    found.and_then(|(.., slope)| Slope::from_millionths(*slope)).unwrap_or(Slope::ONE)
}

/// The parameters that add nothing to the input.
const SILENT: [&str; 28] = [
    "model",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "stop",
    "seed",
    "user",
    "metadata",
    "store",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "service_tier",
    "truncation",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "background",
    // It says when the provider compacts, and holds nothing of what was.
    "context_management",
    // The conversation, by the names of both APIs.
    "messages",
    "input",
];

/// Why the input of a request cannot be counted as its provider does.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExactnessGap {
    /// It was not recorded whole.
    Reconstructed,
    /// It names no model, or one whose tokenizer or overhead is not published.
    Model,
    /// It defines or calls tools.
    Tools,
    /// It holds images, sounds or documents.
    Media,
    /// It holds a compaction of the provider's.
    Compaction,
    /// It goes on from a response, a conversation or a prompt that the provider keeps.
    Stored,
    /// It has something else that the provider turns into tokens, with its name.
    Other(String),
    /// This build lacks the tokenizer.
    Tokenizer,
}

impl fmt::Display for ExactnessGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reconstructed => "the request was not recorded",
            Self::Model => "the overhead of the model is not known",
            Self::Tools => "tools",
            Self::Media => "images, sounds or documents",
            Self::Compaction => "a compaction",
            Self::Stored => "a stored response",
            Self::Other(name) => return write!(f, "`{name}`"),
            Self::Tokenizer => "this build has no such tokenizer",
        })
    }
}

impl std::error::Error for ExactnessGap {}

/// The input of a recorded request to OpenAI, as the provider counts it: the texts and roles of its
/// messages, three tokens for each message, and three for the reply.
///
/// A request is refused rather than counted where anything in it is not known to be counted so.
/// Costs one count of the texts.
///
/// # Errors
/// [`ExactnessGap`]: what stands against it. The input of such a request is calibrated or estimated.
pub fn exact_input(request: &Request) -> Result<u64, ExactnessGap> {
    let (body, counter) = countable(request)?;
    let mut tokens = PER_REPLY;
    for (role, text) in messages(&body, request.api().conversation_key())? {
        tokens += PER_MESSAGE + counter.count(role) as u64 + counter.count(text) as u64;
    }
    Ok(tokens)
}

/// As [`exact_input`], of each request of a recording, in the order of its exchanges.
///
/// Tools and parameters are looked at first, and once where requests share them. Only a request that
/// these allow costs what [`exact_input`] costs.
///
/// # Errors
/// Those of [`Recording::request`].
pub fn exact_inputs(recording: &Recording) -> crate::Result<Vec<Result<u64, ExactnessGap>>> {
    // The head of the request before, and the first gap in it.
    let mut known: Option<(RequestHead, Option<ExactnessGap>)> = None;
    let mut exact = |exchange: &Exchange| {
        if !exchange.provenance.lacks().is_empty() {
            return Ok(Err(ExactnessGap::Reconstructed));
        }
        let outlined = recording.outlined(exchange.number)?;
        known = known.take().filter(|(head, _)| outlined.has_head(head)).or_else(|| {
            let head = outlined.head()?;
            let gap = countable(head.request()).err();
            Some((head, gap))
        });
        if let Some((_, Some(gap))) = &known {
            return Ok(Err(gap.clone()));
        }
        Ok(exact_input(outlined.request()))
    };
    recording.exchanges().iter().map(&mut exact).collect()
}

/// The body of a request, and what its texts are counted by.
///
/// # Errors
/// The first gap outside of the messages.
fn countable(request: &Request) -> Result<(Object, Arc<dyn TokenCounter>), ExactnessGap> {
    if !request.provenance().lacks().is_empty() {
        return Err(ExactnessGap::Reconstructed);
    }
    if request.api() == Api::Messages {
        return Err(ExactnessGap::Model);
    }
    let body =
        json::read(request.body().as_bytes()).map_err(|_| ExactnessGap::Other("body".into()))?;
    let Value::Object(body) = body else { return Err(ExactnessGap::Other("body".into())) };
    let tokenizer = body.str_at("model").and_then(tokenizer_of);
    let tokenizer = tokenizer.ok_or(ExactnessGap::Model)?;
    look_at_parameters(&body)?;
    let counter = by_name(tokenizer).ok_or(ExactnessGap::Tokenizer)?;
    Ok((body, counter))
}

/// The tokenizer of a model whose overhead is known.
fn tokenizer_of(model: &str) -> Option<&'static str> {
    let of = |(name, tokenizer): &(&str, &'static str)| {
        let rest = model.strip_prefix(name)?;
        (rest.is_empty() || is_date(rest)).then_some(*tokenizer)
    };
    let versions = VERSIONS.iter().filter(|(name, _)| *name == model);
    MODELS.iter().find_map(of).or(versions.map(|(_, tokenizer)| *tokenizer).next())
}

/// Whether it is a date behind a name, as `-2024-08-06`.
fn is_date(text: &str) -> bool {
    let shape = "-####-##-##";
    let fits = |(byte, of): (u8, u8)| if of == b'#' { byte.is_ascii_digit() } else { byte == of };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

/// Refuses parameters that may add to the input.
fn look_at_parameters(body: &Object) -> Result<(), ExactnessGap> {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    for (key, _) in body.iter().filter(|(_, value)| !is_empty(value)) {
        match key.as_str() {
            "tools" | "functions" | "tool_choice" | "function_call" | "parallel_tool_calls" => {
                return Err(ExactnessGap::Tools);
            }
            "previous_response_id" | "conversation" | "prompt" => return Err(ExactnessGap::Stored),
            name if SILENT.contains(&name) => {}
            name => return Err(ExactnessGap::Other(name.to_owned())),
        }
    }
    Ok(())
}

/// The roles and texts of the conversation.
fn messages<'b>(body: &'b Object, key: &str) -> Result<Vec<(&'b str, &'b str)>, ExactnessGap> {
    match body.get(key) {
        Some(Value::String(text)) if key == "input" => Ok(vec![("user", text)]),
        Some(Value::Array(list)) => list.iter().map(message).collect(),
        _ => Err(ExactnessGap::Other(key.to_owned())),
    }
}

fn message(value: &Value) -> Result<(&str, &str), ExactnessGap> {
    let Value::Object(message) = value else { return Err(ExactnessGap::Other("message".into())) };
    match value.str_at("type") {
        None | Some("message") => {}
        Some("compaction" | "compaction_summary") => return Err(ExactnessGap::Compaction),
        Some("item_reference") => return Err(ExactnessGap::Stored),
        Some(kind) if kind.contains("call") => return Err(ExactnessGap::Tools),
        Some(kind) => return Err(ExactnessGap::Other(kind.to_owned())),
    }
    for (key, value) in message.iter().filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            "role" | "content" | "type" => {}
            "tool_calls" | "tool_call_id" | "function_call" => return Err(ExactnessGap::Tools),
            "audio" => return Err(ExactnessGap::Media),
            _ if matches!(value, Value::Array(list) if list.is_empty()) => {}
            // What a name costs is published as one token, and measured to be one or two.
            name => return Err(ExactnessGap::Other(name.to_owned())),
        }
    }
    let role = value.str_at("role").ok_or_else(|| ExactnessGap::Other("role".into()))?;
    match role {
        "system" | "user" | "assistant" => {}
        "tool" | "function" => return Err(ExactnessGap::Tools),
        _ => return Err(ExactnessGap::Other("role".into())),
    }
    let text = match message.get("content") {
        Some(Value::String(text)) => text,
        // How several texts of a message are joined is not published.
        Some(Value::Array(parts)) => match parts.as_slice() {
            [part] => text_of(part)?,
            parts => {
                parts.iter().try_for_each(|part| text_of(part).map(drop))?;
                return Err(ExactnessGap::Other("content".into()));
            }
        },
        _ => return Err(ExactnessGap::Other("content".into())),
    };
    Ok((role, text))
}

fn text_of(part: &Value) -> Result<&str, ExactnessGap> {
    match part.str_at("type") {
        Some("text" | "input_text" | "output_text") => {
            part.str_at("text").ok_or_else(|| ExactnessGap::Other("content".into()))
        }
        _ => Err(ExactnessGap::Media),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_match_whole() {
        for (model, expected) in [
            ("gpt-4o", Some("o200k_base")),
            ("gpt-4o-2024-08-06", Some("o200k_base")),
            ("gpt-4.1-2025-04-14", Some("o200k_base")),
            ("gpt-4-0613", Some("cl100k_base")),
            ("gpt-4-turbo", None),
            ("gpt-4o-audio-preview", None),
            ("gpt-4.1-mini", None),
            ("gpt-5", None),
            ("o4-mini", None),
            ("openai/gpt-4o", None),
            ("gpt-4o-2024-08-0x", None),
            ("", None),
        ] {
            assert_eq!(tokenizer_of(model), expected, "{model}");
        }
    }
}
