//! One recorded request and its response, taken apart.

use super::{
    Api, Usage,
    body::Payload,
    interaction::Interaction,
    responses,
    sse::{self, StreamedResponse},
};
use crate::json::{self, ObjectExt, Value};

/// What is wrong with a response whose stream has no end. What had come of it is kept.
pub(super) const BROKEN_OFF: &str = "broken off: the stream has no end";

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
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    /// What is wrong with the response, where something is. One that broke off has a reply all the
    /// same.
    pub(super) failure: Option<String>,
}

/// Takes an interaction apart, or says why it is none that is known.
pub(super) fn read(interaction: &Interaction) -> Result<Exchange, &'static str> {
    let request = match &interaction.request {
        Payload::Unreadable(_) => return Err("a request whose body cannot be read"),
        request => request.value().unwrap_or_default(),
    };
    let Some(api) = Api::of(&interaction.uri, &request) else {
        let is_damaged = request.is_null() && interaction.may_be_of_a_model();
        return Err(if is_damaged {
            "a request to a model whose body is no JSON"
        } else {
            "an interaction with an API that is not known"
        });
    };
    let Value::Object(mut request) = request else {
        return Err("a request that is no object");
    };
    let came = api.streamed(&interaction.response);
    let is_cut = interaction.cut.is_some();
    // A client that has the last event may close the connection before the provider does.
    let is_broken_off =
        came.as_ref().is_some_and(|came| !came.is_whole || is_cut && !came.is_ended);
    let came = came.map(|came| came.response);
    let mut usage = interaction
        .usage
        .as_ref()
        .or_else(|| came.as_ref().and_then(|response| response.get("usage")))
        .and_then(Usage::of);
    let failure = interaction.failure.clone().or_else(|| failure(interaction, came.as_ref()));
    let response = came.filter(|_| failure.is_none());
    let failure = failure.or_else(|| is_broken_off.then(|| BROKEN_OFF.to_owned()));
    if let Some(usage) = usage.as_mut().filter(|_| is_broken_off) {
        // The beginning of a stream tells what was read, and of the output the first token at most.
        (usage.output, usage.reasoning) = (None, None);
    }
    let reply_id = response.as_ref().and_then(|response| response.str_at("id")).map(str::to_owned);
    let messages = match request.shift_remove(api.conversation_key()) {
        Some(Value::Array(list)) => list,
        Some(Value::String(text)) => vec![responses::user_message(text).into()],
        Some(other) => vec![other],
        None => Vec::new(),
    };
    let text = |key: &str| request.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(Exchange {
        api,
        line: interaction.line,
        previous: text("previous_response_id"),
        model: text("model"),
        system: request.shift_remove(api.system_key()).filter(|system| !system.is_null()),
        messages,
        reply: response.map(|response| api.reply(response)),
        reply_id,
        usage,
        failure,
    })
}

/// What is wrong with a response: its status, an error in it, or that there is none.
fn failure(interaction: &Interaction, response: Option<&Value>) -> Option<String> {
    if let Some(status) = interaction.status.filter(|status| !matches!(status, 200..300)) {
        return Some(format!("status {status}"));
    }
    if let Payload::Unreadable(reason) = &interaction.response {
        return Some(reason.clone());
    }
    let Some(response) = response else {
        let cut = interaction.cut.as_deref();
        return Some(
            cut.map_or_else(|| "no response".to_owned(), |cut| format!("no response: {cut}")),
        );
    };
    let error = response.get("error").filter(|error| !error.is_null())?;
    let kind = error.str_at("type").or_else(|| error.str_at("code")).or_else(|| error.as_str());
    Some(kind.map_or_else(|| "an error".to_owned(), |kind| format!("error {kind}")))
}

impl Api {
    /// The response as one object; of a stream what it would have been in one.
    pub(super) fn response(self, response: &Payload) -> Option<Value> {
        self.streamed(response).map(|streamed| streamed.response)
    }

    /// The same, and whether a stream came to its end.
    fn streamed(self, response: &Payload) -> Option<StreamedResponse> {
        let whole = |response| StreamedResponse { response, is_whole: true, is_ended: false };
        let streamed = match response {
            Payload::Text(text) => match (json::read_mended(text.as_bytes()), self) {
                (Ok((response, _)), _) => Some(whole(response)),
                (Err(_), Self::Chat) => sse::chat_completion(text),
                (Err(_), Self::Messages) => sse::anthropic_message(text),
                (Err(_), Self::Responses) => sse::response(text),
            },
            response => response.value().map(whole),
        }?;
        streamed.response.as_object().is_some().then_some(streamed)
    }

    /// The messages or items of a response.
    pub(super) fn reply(self, response: Value) -> Vec<Value> {
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
