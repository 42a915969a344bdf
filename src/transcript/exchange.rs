//! One recorded request and its response, taken apart.

use super::{responses, sse};
use crate::json::{self, Object, ObjectExt, Value};

/// The APIs whose traffic is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Api {
    /// Chat Completions.
    Chat,
    /// The Messages API.
    Messages,
    /// The Responses API.
    Responses,
}

/// A request and what came back.
pub(super) struct Exchange {
    pub(super) api: Api,
    /// Where it stands among the interactions, from one.
    pub(super) line: u64,
    /// The system prompt in a field of its own.
    pub(super) system: Option<Value>,
    /// Messages or items of the request.
    pub(super) messages: Vec<Value>,
    /// Messages or items of the response; `None` if it failed.
    pub(super) reply: Option<Vec<Value>>,
    pub(super) reply_id: Option<String>,
    /// The response that the request builds on.
    pub(super) previous: Option<String>,
}

/// Takes an interaction apart, or says why it is none that is known.
pub(super) fn read(interaction: Value, line: u64) -> Result<Exchange, (&'static str, Value)> {
    let Some(api) = Api::of(&interaction) else {
        return Err(("an interaction with an API that is not known", interaction));
    };
    let Value::Object(mut interaction) = interaction else {
        return Err(("an interaction that is no object", interaction));
    };
    let status = interaction.get("status");
    let code = status.and_then(|status| status.as_u64().or_else(|| status.get("code")?.as_u64()));
    let response = interaction.shift_remove("response").unwrap_or_default();
    let response = api.response(response).filter(|_| matches!(code.unwrap_or(200), 200..300));
    let reply_id = response.as_ref().and_then(|response| response.str_at("id")).map(str::to_owned);
    let mut request = match interaction.shift_remove("request") {
        Some(Value::Object(request)) => request,
        _ => Object::new(),
    };
    let (system_key, list_key) = match api {
        Api::Responses => ("instructions", "input"),
        Api::Chat | Api::Messages => ("system", "messages"),
    };
    let messages = match request.shift_remove(list_key) {
        Some(Value::Array(list)) => list,
        Some(Value::String(text)) => vec![responses::user_message(text).into()],
        Some(other) => vec![other],
        None => Vec::new(),
    };
    Ok(Exchange {
        api,
        line,
        system: request.shift_remove(system_key).filter(|system| !system.is_null()),
        messages,
        reply: response.map(|response| api.reply(response)),
        reply_id,
        previous: request.get("previous_response_id").and_then(Value::as_str).map(str::to_owned),
    })
}

impl Api {
    /// The API that an interaction speaks, by the shape of its request.
    fn of(interaction: &Value) -> Option<Self> {
        let uri = interaction.str_at("uri")?;
        let request = interaction.get("request")?;
        let has_messages = request.get("messages").and_then(Value::as_array).is_some();
        let has_input = request.get("input").is_some_and(|input| !input.is_null());
        match () {
            () if has_messages && uri.contains("/chat/completions") => Some(Self::Chat),
            () if has_messages && uri.contains("/messages") => Some(Self::Messages),
            () if has_input && uri.contains("/responses") => Some(Self::Responses),
            () => None,
        }
    }

    /// The response as one object, if it is no error.
    fn response(self, response: Value) -> Option<Value> {
        let response = match response {
            Value::String(text) => match (json::read_mended(text.as_bytes()), self) {
                (Ok((response, _)), _) => Some(response),
                (Err(_), Self::Chat) => sse::chat_message(&text).map(completion),
                (Err(_), Self::Messages) => sse::anthropic_message(&text),
                (Err(_), Self::Responses) => sse::response(&text),
            },
            response => Some(response),
        }?;
        let failed = response.get("error").is_some_and(|error| !error.is_null());
        (response.as_object().is_some() && !failed).then_some(response)
    }

    /// The messages or items of a response.
    fn reply(self, response: Value) -> Vec<Value> {
        let Value::Object(mut response) = response else { return Vec::new() };
        let message = match self {
            Self::Responses => {
                return match response.shift_remove("output") {
                    Some(Value::Array(output)) => output,
                    _ => Vec::new(),
                };
            }
            Self::Messages => Some(Value::Object(response)),
            Self::Chat => match response.shift_remove("choices") {
                Some(Value::Array(choices)) => {
                    choices.into_iter().next().and_then(|choice| match choice {
                        Value::Object(mut choice) => choice.shift_remove("message"),
                        _ => None,
                    })
                }
                _ => None,
            },
        };
        match message {
            Some(Value::Object(mut message)) => {
                if message.get("role").and_then(Value::as_str).is_none() {
                    message.put("role", "assistant");
                }
                vec![message.into()]
            }
            _ => Vec::new(),
        }
    }
}

fn completion(message: Value) -> Value {
    let mut choice = Object::new();
    choice.put("message", message);
    let mut completion = Object::new();
    completion.put("choices", Value::Array(vec![choice.into()]));
    completion.into()
}
