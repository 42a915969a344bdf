//! Requests and responses in the form of a provider, as frames.

use super::{
    Api, chat, converse, generate_content, ollama,
    read_exchange::{id_of, model_of},
    responses,
    sink::Sink,
};
use crate::{
    json::{Value, object},
    veil::Frame,
};

/// What a response says.
pub(crate) struct ReadResponse {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    /// Why the model stopped, in the words of the provider.
    pub(crate) finish_reason: Option<String>,
    /// What it said.
    pub(crate) frames: Vec<Frame>,
}

impl Api {
    /// Gives a message, or an item, of a request or an answer to the sink.
    pub(super) fn push_message(self, message: Value, line: u64, sink: &mut Sink) {
        match self {
            Self::Chat | Self::Messages => chat::message_or_unknown(message, line, sink),
            Self::Responses => responses::push(message, line, None, sink),
            Self::Gemini => generate_content::push(message, line, sink),
            Self::Ollama | Self::Generate => ollama::push(message, line, sink),
            Self::Converse => converse::push(message, line, sink),
        }
    }

    /// Gives a system prompt that stands apart to the sink.
    pub(super) fn push_system(self, system: Value, line: u64, sink: &mut Sink) {
        match self {
            Self::Gemini => generate_content::push_system(system, line, sink),
            Self::Converse => converse::push_system(system, line, sink),
            _ => chat::system_prompt(system, line, sink),
        }
    }
}

/// The frames that messages, or items, of a request become, by the rules of the readers.
pub(crate) fn frames_of(api: Api, messages: Vec<Value>) -> Vec<Frame> {
    let mut sink = Sink::default();
    for message in messages {
        api.push_message(message, 1, &mut sink);
    }
    frames_in(sink)
}

/// The frame of a system prompt that stands apart.
pub(crate) fn system_frames(api: Api, system: Value) -> Vec<Frame> {
    let mut sink = Sink::default();
    api.push_system(system, 1, &mut sink);
    frames_in(sink)
}

fn frames_in(mut sink: Sink) -> Vec<Frame> {
    sink.finish();
    sink.ready.into_iter().map(|record| record.frame).collect()
}

/// Reads the body of a response, a stream as what it would have been in one; `None` where it is
/// none.
pub(crate) fn response_of(api: Api, body: &str) -> Option<ReadResponse> {
    let response = api.joined(body)?;
    let finish_reason = api.stop_of(&response).map(str::to_owned);
    let (id, model) = (id_of(&response), model_of(&response));
    let (id, model) = (id.map(str::to_owned), model.map(str::to_owned));
    let mut reply = api.reply(response, false);
    if api == Api::Messages {
        // The members of the response around the message are none of what it says.
        for message in &mut reply {
            let Value::Object(whole) = message else { continue };
            let content = whole.shift_remove("content").unwrap_or_default();
            *message = object! { "role": "assistant", "content": content }.into();
        }
    }
    Some(ReadResponse { id, model, finish_reason, frames: frames_of(api, reply) })
}
