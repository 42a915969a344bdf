//! One recorded request and its response, taken apart.

use std::sync::Arc;

use super::{
    Api, Exchange, Provenance, Usage, api,
    body::Payload,
    choices,
    context_edit::{AppliedEdit, ClearedPart},
    converse,
    exchange::{Asked, CONVERSATION, kept_conversation, model_named},
    generate_content::{self, CANDIDATES},
    interaction::Interaction,
    ollama,
    request_body::{ReadBodies, ReadBody},
    responses,
    sse::{self, ErrorEvent, StreamedResponse},
    take,
    threads::says_nothing,
};
use crate::{
    json::{self, Object, ObjectExt, Value},
    usage::REGIONAL,
};

/// What is said of a request of Ollama's that says nothing.
const LOADS: &str = "a request to load a model or to let it go: none answers it";

/// What is wrong with a response whose stream has no end; why follows. What had come of it is kept.
const BROKEN_OFF: &str = "broken off: ";
/// Why, where nobody recorded it.
const NO_END: &str = "the stream has no end";
/// Why, where the provider sent an error in the place of the rest; its words follow.
const ERROR_EVENT: &str = "the stream ended with an error event";

/// Whether a failure means that a part of the response came.
pub(super) fn broke_off(failure: &str) -> bool {
    failure.starts_with(BROKEN_OFF)
}

/// An exchange, with what it says of its conversation.
pub(super) struct ReadExchange {
    /// What is known of it, without its bodies.
    pub(super) exchange: Exchange,
    /// The system prompt in a field of its own.
    pub(super) system: Option<Value>,
    /// Messages or items of the request.
    pub(super) messages: Vec<Arc<Value>>,
    /// Messages or items of the response; `None` if it failed.
    pub(super) reply: Option<Vec<Value>>,
    pub(super) reply_id: Option<String>,
    /// The conversation that the provider keeps it in, as the request says, or the response.
    pub(super) kept_in: Option<Arc<str>>,
    /// What the provider cleared of the request before the model read it.
    pub(super) cleared: Vec<ClearedPart>,
    /// Whether the provider goes on with the response in the background: a later call fetches the rest.
    pub(super) is_pending: bool,
}

/// The request of an exchange.
struct ReadRequest {
    api: Api,
    /// Its members without the conversation.
    head: Arc<Object>,
    messages: Vec<Arc<Value>>,
    unread: Option<String>,
}

impl ReadRequest {
    fn of(interaction: &Interaction, bodies: &mut ReadBodies) -> Result<Self, &'static str> {
        let body = match &interaction.request {
            Payload::Text(text) => bodies.read(&interaction.uri, text),
            _ => None,
        };
        if let (Some(ReadBody { head, items, .. }), Some(api)) =
            (body, Api::of_uri(&interaction.uri))
        {
            if items.is_empty() && api::loads_model(&interaction.uri, &head) {
                return Err(LOADS);
            }
            return Ok(Self { api, head, messages: items, unread: None });
        }
        let request = match &interaction.request {
            Payload::Unreadable(_) => {
                return Self::unread(interaction).ok_or("a request whose body cannot be read");
            }
            request => request.value().unwrap_or_default(),
        };
        if request.as_object().is_some_and(|of| api::loads_model(&interaction.uri, of)) {
            return Err(LOADS);
        }
        // What passed a recorder of ours went where its path says, whatever it holds.
        let sent = Api::of_uri(&interaction.uri);
        let is_known = interaction.is_recorded || interaction.left_out.is_some();
        let sent = sent.filter(|_| is_known && request.as_object().is_some());
        let Some(api) = Api::of(&interaction.uri, &request).or(sent) else {
            let is_damaged = request.is_null() && interaction.may_be_of_a_model();
            return Self::unread(interaction).ok_or(if is_damaged {
                "a request to a model whose body is no object of JSON"
            } else if !api::reaches_model(&interaction.uri) {
                "a request for a count, for later, or about an answer that is kept: no model answers it now"
            } else {
                "an interaction with an API that is not known"
            });
        };
        let Value::Object(mut request) = request else {
            return Err("a request that is no object");
        };
        if let Some(reason) = interaction.left_out {
            let (unread, messages) = (Some(reason.to_owned()), Vec::new());
            return Ok(Self { api, head: Arc::new(request), messages, unread });
        }
        let messages = match request.shift_remove(api.conversation_key()) {
            Some(Value::Array(list)) => list,
            Some(prompt) if api == Api::Generate => vec![ollama::prompt(prompt, &request)],
            Some(Value::String(text)) => vec![responses::user_message(text).into()],
            Some(other) => vec![other],
            None => Vec::new(),
        };
        let messages = messages.into_iter().map(Arc::new).collect();
        Ok(Self { api, head: Arc::new(request), messages, unread: None })
    }

    /// A request that is only known to have been sent to a model: recorders have such rows.
    fn unread(interaction: &Interaction) -> Option<Self> {
        let is_row = interaction.is_recorded || interaction.is_posted;
        let api = Api::of_uri(&interaction.uri).filter(|_| is_row)?;
        let is_object = matches!(interaction.request.value(), Some(Value::Object(_)));
        let reason = if is_object {
            format!("the request has no `{}`", api.conversation_key())
        } else {
            interaction.request.why_no_object("the request")
        };
        let (head, messages) = Default::default();
        Some(Self { api, head, messages, unread: Some(reason) })
    }
}

/// Takes an interaction apart, or says why it is none that is known.
pub(super) fn read(
    interaction: &Interaction,
    bodies: &mut ReadBodies,
) -> Result<ReadExchange, &'static str> {
    let ReadRequest { api, head: request, messages, unread } =
        ReadRequest::of(interaction, bodies)?;
    let came = api.streamed(&interaction.response);
    let is_answered = interaction.status.is_none_or(|status| matches!(status, 200..300));
    let is_whole = !interaction.is_recorded && !matches!(interaction.response, Payload::Absent);
    let is_foreign = || {
        let is_hosted = api::hosted_model(&interaction.uri).is_some();
        is_hosted && error_event(interaction).is_none()
    };
    if came.is_none() && is_answered && is_whole && is_foreign() {
        return Err("an answer in a form of the host's own");
    }
    let is_cut = interaction.cut.is_some();
    // A client that has the last event may close the connection before the provider does.
    let is_broken_off =
        came.as_ref().is_some_and(|came| !came.is_whole || is_cut && !came.is_ended);
    let is_stream = came.is_some();
    let is_background = request.get("background") == Some(&Value::Bool(true));
    let has_events = matches!(&interaction.response, Payload::Text(text) if sse::has_data(text));
    let is_pending = api == Api::Responses
        && is_background
        && came.as_ref().map_or(has_events, |came| !came.is_over());
    let came = came.map(|came| came.response);
    let reported = interaction.usage.as_ref().and_then(Usage::of);
    let mut usage = reported.or_else(|| usage_of(came.as_ref()?));
    let failure = interaction.failure.clone().or_else(|| failure(interaction, came.as_ref()));
    let response = came.filter(|_| failure.is_none());
    let is_kept = interaction.is_cut_in_store && interaction.cut.is_some();
    let is_broken_here = is_broken_off && !is_kept;
    let failure = failure.or_else(|| {
        let broken_off = || match error_event(interaction).filter(|error| error.is_last) {
            Some(error) => format!("{BROKEN_OFF}{ERROR_EVENT}: {}", error.summary),
            None => format!("{BROKEN_OFF}{}", interaction.cut.as_deref().unwrap_or(NO_END)),
        };
        is_broken_here.then(broken_off)
    });
    let cut = interaction.cut.clone().filter(|_| is_broken_off || is_cut && !is_stream);
    if let Some(usage) = usage.as_mut().filter(|_| is_broken_off) {
        // The beginning of a stream tells what was read, and of the output the first token at most.
        (usage.output, usage.reasoning) = (None, None);
    }
    if let Some(usage) = usage.as_mut().filter(|_| api::is_regional(&interaction.uri)) {
        usage.terms.insert(REGIONAL.to_owned(), 1);
    }
    let reply_id = response.as_ref().and_then(id_of).map(str::to_owned);
    let reply_id = reply_id.or_else(|| match &interaction.response {
        Payload::Text(events) if is_pending => sse::begun_response(events),
        _ => None,
    });
    if response.as_ref().is_some_and(|response| api.says_something(response)) {
        usage = usage.and_then(Usage::beside_answer);
    }
    let edits = response.as_ref().filter(|_| api == Api::Messages).map(AppliedEdit::of_answer);
    let edits = edits.filter(|edits| !edits.is_empty());
    let management = request.get("context_management");
    let messages_of = || messages.iter().map(|message| &**message);
    let cleared = edits.map(|edits| ClearedPart::of(&edits, management, messages_of()));
    let asked_several = request.get("n").and_then(Value::as_u64).is_some_and(|n| n > 1);
    let asked = Asked::of_members(api, &request);
    let stated = response.as_ref().filter(|_| api == Api::Responses);
    let stated = stated.and_then(|response| kept_conversation(response.get(CONVERSATION)));
    let model = request.str_at("model").map(str::to_owned);
    let model = model.or_else(|| {
        let of_address = api::model_in(&interaction.uri);
        // A number is that of an endpoint.
        let is_name = |model: &String| model.bytes().any(|byte| !byte.is_ascii_digit());
        if let Some(model) = of_address.clone().filter(is_name) {
            return Some(model);
        }
        // Of a request that is not known, or whose address is not, the answer tells.
        let of_response = response.as_ref().and_then(model_of).map(str::to_owned);
        // A prompt that the provider keeps may name it for the request.
        let is_asked = unread.is_some() || matches!(api, Api::Gemini | Api::Responses);
        of_response.filter(|_| is_asked).or(of_address)
    });
    let is_as_sent = interaction.request.is_as_sent() && !interaction.is_logged && unread.is_none();
    let exchange = Exchange {
        line: Some(interaction.line),
        api,
        host: interaction.host(),
        provenance: if is_as_sent { Provenance::Sent } else { Provenance::Logged },
        time: interaction.started.clone(),
        duration_ms: interaction.duration_ms,
        model: model.as_deref().and_then(model_named),
        usage,
        status: interaction.status,
        failure,
        cut,
        unread,
        asked,
        ..Exchange::default()
    };
    Ok(ReadExchange {
        cleared: cleared.unwrap_or_default(),
        kept_in: exchange.asked.conversation.clone().or(stated),
        exchange,
        system: api.system_of(&request).cloned(),
        messages,
        reply: response.map(|response| api.reply(response, asked_several)),
        reply_id,
        is_pending,
    })
}

/// Whether what was fetched of a response in the background is the end of it, or a part of its stream.
pub(super) fn tells_more(fetched: &Payload) -> bool {
    match (Api::Responses.streamed(fetched), fetched) {
        (Some(came), _) => !came.is_whole || came.is_over(),
        (None, Payload::Text(events)) => sse::has_data(events),
        (None, _) => false,
    }
}

/// The id of a response, and the model that answered, by the names of each API.
pub(super) fn id_of(response: &Value) -> Option<&str> {
    response.str_at("id").or_else(|| response.str_at("responseId"))
}

pub(super) fn model_of(response: &Value) -> Option<&str> {
    response.str_at("model").or_else(|| response.str_at("modelVersion"))
}

/// The usage that a response reports, with the tier that it names beside it.
fn usage_of(response: &Value) -> Option<Usage> {
    let mut stated = sse::stated_usage(response)?.clone();
    let tier = response.get("service_tier").filter(|_| stated.get("service_tier").is_none());
    if let (Value::Object(stated), Some(tier)) = (&mut stated, tier) {
        stated.put("service_tier", tier.clone());
    }
    Usage::of(&stated)
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
        let is_stored = !matches!(interaction.response, Payload::Absent);
        if interaction.is_cut_in_store && interaction.cut.is_some() && is_stored {
            return None;
        }
        return Some(nothing_of(interaction));
    };
    if let Some(reason) = response.as_object().and_then(generate_content::block_reason) {
        return Some(format!("the prompt was blocked: {reason}"));
    }
    let error = response.get("error").filter(|error| !error.is_null())?;
    if let Some(error) = error_event(interaction) {
        return Some(format!("error {}", error.summary));
    }
    let kind = error.str_at("type").or_else(|| error.str_at("code")).or_else(|| error.as_str());
    Some(kind.map_or_else(|| "an error".to_owned(), |kind| format!("error {kind}")))
}

/// Why nothing is known of a response.
fn nothing_of(interaction: &Interaction) -> String {
    if let Some(error) = error_event(interaction) {
        let ErrorEvent { summary, is_alone, .. } = error;
        return if is_alone {
            format!("the stream is nothing but an error event: {summary}")
        } else {
            format!("a stream of events without an answer, with an error event: {summary}")
        };
    }
    match (&interaction.cut, &interaction.response) {
        (Some(cut), _) => format!("no response: {cut}"),
        (None, Payload::Absent) if interaction.status.is_some() => {
            "an answer without a body".to_owned()
        }
        (None, Payload::Absent) => "no response".to_owned(),
        (None, Payload::Text(text)) if sse::has_data(text) => {
            "a stream of events without an answer".to_owned()
        }
        (None, response) => response.why_no_object("the response"),
    }
}

/// The error that a streamed response tells of.
fn error_event(interaction: &Interaction) -> Option<ErrorEvent> {
    match &interaction.response {
        Payload::Text(text) => sse::error(text),
        _ => None,
    }
}

impl Api {
    /// The response as one object; of a stream what it would have been in one.
    pub(super) fn response(self, response: &Payload) -> Option<Value> {
        self.streamed(response).map(|streamed| streamed.response)
    }

    /// Whether a response holds anything that the model wrote.
    pub(super) fn says_something(self, response: &Value) -> bool {
        let says = |value: Option<&Value>| value.is_some_and(|value| !says_nothing(value));
        match self {
            Self::Responses => says(response.get("output")),
            Self::Messages => says(response.get("content")),
            Self::Gemini => says(response.pointer("/candidates/0/content/parts")),
            Self::Ollama => says(response.get("message")),
            Self::Generate => says(response.get("response")),
            Self::Converse => says(response.pointer("/output/message/content")),
            Self::Chat => {
                let choices =
                    response.get("choices").and_then(Value::as_array).into_iter().flatten();
                let messages = choices.filter_map(|choice| choice.get("message")?.as_object());
                let mut members = messages.flatten().filter(|(key, _)| *key != "role");
                members.any(|(_, value)| says(Some(value)))
            }
        }
    }

    /// As [`Api::response`], of a body.
    pub(crate) fn joined(self, response: &str) -> Option<Value> {
        self.response(&Payload::Text(response.into()))
    }

    /// The same, and whether a stream came to its end.
    pub(super) fn streamed(self, response: &Payload) -> Option<StreamedResponse> {
        let whole = |response| StreamedResponse { response, is_whole: true, is_ended: false };
        let streamed = match response {
            Payload::Text(text) => match (json::read_mended(text.as_bytes()), self) {
                (Ok((Value::Array(pieces), _)), Self::Gemini) => generate_content::joined(pieces),
                (Ok((response, _)), Self::Ollama | Self::Generate) => {
                    ollama::joined(vec![response])
                }
                (Ok((response, _)), _) => Some(whole(response)),
                (Err(_), Self::Ollama | Self::Generate) => ollama::joined(sse::events(text)),
                (Err(_), Self::Converse) => converse::of_stream(text),
                (Err(_), Self::Gemini) => generate_content::of_stream(text),
                (Err(_), Self::Chat) => sse::chat_completion(text),
                (Err(_), Self::Messages) => sse::anthropic_message(text),
                (Err(_), Self::Responses) => sse::response(text),
            },
            response => match (response.value()?, self) {
                (Value::Array(pieces), Self::Gemini) => generate_content::joined(pieces),
                (response, _) => Some(whole(response)),
            },
        }?;
        streamed.response.as_object().is_some().then_some(streamed)
    }

    /// The messages or items of a response; `asked_several` is whether alternatives were asked for.
    pub(super) fn reply(self, response: Value, asked_several: bool) -> Vec<Value> {
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
                    choices::message_of(choices, asked_several).map(Value::from)
                }
                _ => None,
            },
            Self::Gemini => match response.shift_remove(CANDIDATES) {
                Some(Value::Array(all)) => generate_content::message_of(all).map(Value::from),
                _ => None,
            },
            Self::Ollama | Self::Generate => Some(ollama::message_of(response).into()),
            Self::Converse => converse::message_of(response).map(Value::from),
        };
        match message {
            Some(Value::Object(mut message)) => {
                take::default_role(&mut message, "assistant");
                vec![message.into()]
            }
            _ => Vec::new(),
        }
    }
}
