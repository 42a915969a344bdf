//! The answer of a provider as frames, as it came: a response, or the events of a stream.

use super::{Api, answer, body::Payload, chat, responses, sink::Sink, sse};
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    json::Value,
    veil::{Frame, ModelAnswer, Source},
};

/// An answer of a model, read.
pub(crate) struct ReadReply {
    /// Its frames, from the sequence on that was asked for.
    pub(crate) frames: Vec<Frame>,
    /// What it says of itself.
    pub(crate) answer: ModelAnswer,
    /// Why it is not whole: its stream broke off.
    pub(crate) cut: Option<String>,
}

impl ReadReply {
    /// Reads the body of a response of `api`: its JSON, or the events of its stream. `number` is where it
    /// stands in its source. O(the body).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where it is no response, [`ErrorKind::Provider`] where it is an error of the
    /// provider, with its words.
    pub(crate) fn of(api: Api, text: &str, first: FrameSeq, number: u64) -> Result<Self> {
        let refused = |words: &str| {
            Error::new(ErrorKind::Provider, format!("the provider answered with an error: {words}"))
        };
        let Some(streamed) = api.streamed(&Payload::Text(text.into())) else {
            return Err(match sse::error(text) {
                Some(error) => refused(&error.summary),
                None => Error::expected(
                    format_args!("a response of the API `{api}`, or the events of one"),
                    what_it_is(text),
                ),
            });
        };
        let response = streamed.response;
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            return Err(refused(&words_of(error)));
        }
        let key = match api {
            Api::Chat => "choices",
            Api::Messages => "content",
            Api::Responses => "output",
        };
        if response.get(key).is_none() {
            let expected = format_args!("a response of the API `{api}`, which has `{key}`");
            return Err(Error::expected(expected, what_it_is(text)));
        }
        let said = response.as_object().map(answer::of_response).unwrap_or_default();
        let cut = (!streamed.is_whole).then(|| match sse::error(text) {
            Some(error) if error.is_last => format!("the stream ended with {}", error.summary),
            _ => "the stream has no end".to_owned(),
        });
        let mut sink = Sink::starting_at(first);
        for item in api.reply(response, false) {
            match api {
                Api::Chat | Api::Messages => chat::message_or_unknown(item, number, &mut sink),
                Api::Responses => responses::push(item, number, None, &mut sink),
            }
        }
        sink.finish();
        let mut frames: Vec<Frame> = sink.ready.into_iter().map(|record| record.frame).collect();
        if frames.is_empty() {
            return Err(Error::expected(
                format_args!("an answer of the API `{api}`"),
                "a response without one",
            ));
        }
        let agents = frames.iter_mut().find(|frame| frame.source == Source::Agent);
        let imported = agents.and_then(|frame| frame.imported.as_mut());
        imported.into_iter().for_each(|imported| imported.answer = Some(Box::new(said.clone())));
        Ok(Self { frames, answer: said, cut })
    }
}

/// What an error of a provider says.
fn words_of(error: &Value) -> String {
    let kind = error.str_at("type").or_else(|| error.str_at("code"));
    let message = error.str_at("message").or_else(|| error.as_str());
    let said: Vec<&str> = kind.into_iter().chain(message).collect();
    if said.is_empty() { error.to_string() } else { said.join(": ") }
}

fn what_it_is(text: &str) -> &'static str {
    match text.trim_start().chars().next() {
        None => "an empty body",
        Some('<') => "a page of HTML",
        Some('{' | '[') => "JSON of another shape",
        Some(_) => "another text",
    }
}
