//! The answer of a provider as frames, as it came: a response, or the events of a stream.

use std::{collections::HashSet, sync::Arc};

use super::{Api, answer, body::Payload, generate_content::CANDIDATES, responses, sink::Sink, sse};
use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    json::Value,
    veil::{FacetChange, Frame, ModelAnswer, PartContent, Source},
};

/// The answer of a model as frames.
pub(crate) struct ReplyFrames {
    /// Its frames, from the sequence on that was asked for.
    pub(crate) frames: Vec<Frame>,
    /// What it says of itself.
    pub(crate) answer: ModelAnswer,
}

impl ReplyFrames {
    /// Reads the body of a response of `api`: its JSON, or the events of its stream. Its frames
    /// begin with the sequence `first`, and `record` is its number in its source. `cut` says why it
    /// is not whole, where that is known. O(the body).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where it is no response, [`ErrorKind::Provider`] where it is an error
    /// of the provider, with its words.
    pub(crate) fn of(
        api: Api,
        text: &str,
        first: FrameSeq,
        record: u64,
        cut: Option<String>,
    ) -> Result<Self> {
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
        let key = match api {
            Api::Chat => "choices",
            Api::Messages => "content",
            Api::Responses | Api::Converse => "output",
            Api::Gemini => CANDIDATES,
            Api::Ollama => "message",
            Api::Generate => "response",
        };
        let error = response.get("error").filter(|error| !error.is_null());
        let error = error.map(|error| sse::error_words(error).unwrap_or_else(|| error.to_string()));
        let says = response.get(key).and_then(Value::as_array).is_some_and(|said| !said.is_empty());
        if let Some(error) = error.as_ref().filter(|_| !says) {
            return Err(refused(error));
        }
        if response.get(key).is_none() {
            let expected = format_args!("a response of the API `{api}`, which has `{key}`");
            return Err(Error::expected(expected, what_it_is(text)));
        }
        let mut said = response.as_object().map(answer::of_response).unwrap_or_default();
        said.stop = said.stop.or_else(|| api.stop_of(&response).map(Box::from));
        let no_end = || match sse::error(text) {
            Some(error) if error.is_last => format!("the stream ended with {}", error.summary),
            _ => "the stream has no end".to_owned(),
        };
        let cut = cut.or_else(|| error.map(|error| format!("the answer ended with {error}")));
        said.cut = cut.or_else(|| (!streamed.is_whole).then(no_end)).map(Box::from);
        let mut sink = Sink::starting_at(first);
        for item in api.reply(response, false) {
            api.push_message(item, record, &mut sink);
        }
        sink.finish();
        let mut frames: Vec<Frame> = sink.ready.into_iter().map(|record| record.frame).collect();
        // Nobody but the model speaks in its answer; what its provider's tools answered comes with it.
        if frames.iter().any(|frame| matches!(frame.source, Source::User | Source::System)) {
            return Err(Error::expected("an answer of the model", "a message of another role"));
        }
        if frames.is_empty() {
            return Err(Error::expected(
                format_args!("an answer of the API `{api}`"),
                "a response without a message",
            ));
        }
        number_repeated_ids(&mut frames);
        let agents = frames.iter_mut().find(|frame| frame.source == Source::Agent);
        let imported = agents.and_then(|frame| frame.imported.as_mut());
        imported.into_iter().for_each(|imported| imported.answer = Some(Box::new(said.clone())));
        Ok(Self { frames, answer: said })
    }
}

/// Gives a call an id of its own where an earlier call of the answer has the same: a result is of one
/// call.
fn number_repeated_ids(frames: &mut [Frame]) {
    let mut ids = HashSet::new();
    for op in frames.iter_mut().flat_map(|frame| &mut frame.ops) {
        let FacetChange::Add(facet) = &mut op.change else { continue };
        let Some(PartContent::Call { id: Some(id), .. }) = facet.typed() else { continue };
        if id.is_empty() || ids.insert(id.clone()) {
            continue;
        }
        let mut numbered = (2_u64..).map(|number| Box::from(format!("{id}-{number}")));
        let own = numbered.find(|own| ids.insert(Box::clone(own)));
        if let Some(part) = &mut Arc::make_mut(facet).part
            && let PartContent::Call { id, .. } = &mut part.content
        {
            *id = own;
        }
    }
}

impl Api {
    /// Why the model stopped, in the provider's words; `None` where the response does not say it, or
    /// goes on.
    pub(super) fn stop_of(self, response: &Value) -> Option<&str> {
        let text = |pointer: &str| response.pointer(pointer)?.as_str();
        match self {
            Self::Chat => text("/choices/0/finish_reason"),
            Self::Messages => text("/stop_reason"),
            Self::Responses => text("/incomplete_details/reason")
                .or_else(|| text("/status").filter(|status| responses::is_over(status))),
            Self::Gemini => text("/candidates/0/finishReason"),
            Self::Ollama | Self::Generate => text("/done_reason"),
            Self::Converse => text("/stopReason"),
        }
    }
}

fn what_it_is(text: &str) -> &'static str {
    match text.trim_start().chars().next() {
        None => "an empty body",
        Some('<') => "a page of HTML",
        Some('{' | '[') => "JSON of another shape",
        Some(_) => "another text",
    }
}
