//! A request, and what came back, as the attributes of a span.

use super::{
    parts::{message, parts_of, tool},
    span::Attributes,
};
use crate::{
    Result,
    json::{Object, ObjectExt, Value, object},
    request::{Exchange, ExchangeOutcome, Provenance, Recording, ReportedExchange, Request},
    transcript::{Api, TranscriptFormat, Usage, provider_json},
};

/// The provider, which says in what form the messages were.
pub(super) fn provider(api: Api, format: TranscriptFormat) -> &'static str {
    format.provider().unwrap_or(match api {
        Api::Messages => "anthropic",
        Api::Chat | Api::Responses => "openai",
    })
}

/// The parameters that the conventions name, and what providers call them.
const PARAMETERS: [(&str, &[&str]); 9] = [
    ("gen_ai.request.temperature", &["temperature"]),
    ("gen_ai.request.top_p", &["top_p"]),
    ("gen_ai.request.top_k", &["top_k"]),
    ("gen_ai.request.max_tokens", &["max_tokens", "max_completion_tokens", "max_output_tokens"]),
    ("gen_ai.request.frequency_penalty", &["frequency_penalty"]),
    ("gen_ai.request.presence_penalty", &["presence_penalty"]),
    ("gen_ai.request.seed", &["seed"]),
    ("gen_ai.request.choice.count", &["n"]),
    ("gen_ai.request.stream", &["stream"]),
];

/// What the last request of a session held.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// The number of the request, from one; 0 before the first.
    number: usize,
    tools: Option<Value>,
    system: Option<Value>,
    messages: Vec<Value>,
}

/// The attributes of the span of a request. With `before` of what that request did not have.
///
/// # Errors
/// Those of [`Recording::request`]; a body that is no JSON leaves out what it would say.
pub(super) fn attributes(
    recording: &Recording,
    exchange: &Exchange,
    conversation: &str,
    before: Option<&mut Before>,
) -> Result<Attributes> {
    let request = recording.request(exchange.number)?;
    let mut attributes = Attributes::default();
    let provider = provider(exchange.api, recording.format());
    put_head(&mut attributes, provider, conversation, exchange.model.as_deref());
    put_request(&mut attributes, &request, exchange.number, before);
    put_response(&mut attributes, recording, exchange);
    if let Some(usage) = &exchange.usage {
        put_usage(&mut attributes, usage);
    }
    if let ExchangeOutcome::Failed { reason } = &exchange.outcome {
        let kind = reason.strip_prefix("status ").or_else(|| reason.strip_prefix("error "));
        let kind = kind.unwrap_or(reason);
        attributes.put("error.type", kind.split(": ").next().unwrap_or(kind));
    }
    attributes.put("afterimage.request.number", exchange.number as u64);
    attributes.put("afterimage.request.outcome", exchange.outcome.as_str());
    attributes.put("afterimage.request.provenance", exchange.provenance.as_str());
    if let Provenance::Reconstructed { lacks } = &exchange.provenance {
        let lacks: Value = lacks.iter().map(|lack| lack.as_str()).collect();
        attributes.put("afterimage.request.lacks", lacks);
    }
    Ok(attributes)
}

/// The attributes of the span of an exchange whose usage alone is known.
pub(super) fn of_unlisted(
    reported: &ReportedExchange,
    provider: &str,
    conversation: &str,
) -> Attributes {
    let mut attributes = Attributes::default();
    put_head(&mut attributes, provider, conversation, reported.model.as_deref());
    if let Some(usage) = &reported.usage {
        put_usage(&mut attributes, usage);
    }
    if reported.is_failed {
        attributes.put("error.type", "_OTHER");
    }
    attributes
}

fn put_head(attributes: &mut Attributes, provider: &str, conversation: &str, model: Option<&str>) {
    attributes.put("gen_ai.operation.name", "chat");
    attributes.put("gen_ai.provider.name", provider);
    attributes.put("gen_ai.conversation.id", conversation);
    attributes.put_some("gen_ai.request.model", model);
}

fn put_request(
    attributes: &mut Attributes,
    request: &Request,
    number: usize,
    mut before: Option<&mut Before>,
) {
    let api = request.api();
    let Ok(Value::Object(mut body)) = request.value().cloned() else { return };
    let (mut tools, mut system) = (body.shift_remove("tools"), body.shift_remove(api.system_key()));
    if let Some(before) = before.as_deref_mut() {
        attributes.put("afterimage.request.goes_on_from", before.number as u64);
        before.number = number;
        attributes.put("afterimage.request.same_tools", before.tools == tools);
        attributes.put("afterimage.request.same_system", before.system == system);
        for (known, now) in [(&mut before.tools, &mut tools), (&mut before.system, &mut system)] {
            if known == now {
                *now = None;
            } else {
                known.clone_from(now);
            }
        }
    }
    if let Some(Value::Array(tools)) = tools
        && !tools.is_empty()
    {
        let tools: Value = tools.into_iter().map(tool).collect();
        attributes.put_json("gen_ai.tool.definitions", &tools);
    }
    if let Some(system) = system.filter(|system| !system.is_null()) {
        let frames = provider_json::system_frames(system);
        let parts: Value = frames.iter().flat_map(parts_of).collect();
        attributes.put_json("gen_ai.system_instructions", &parts);
    }
    let messages = match body.shift_remove(api.conversation_key()) {
        Some(Value::Array(list)) => list,
        Some(Value::String(text)) => vec![object! { "role": "user", "content": text }.into()],
        _ => Vec::new(),
    };
    put_parameters(attributes, body);
    let frames = provider_json::frames_of(api, messages);
    let mut messages: Vec<Value> = frames.iter().map(message).collect();
    if let Some(before) = before {
        let same = messages.iter().zip(&before.messages).take_while(|(now, known)| now == known);
        let same = same.count();
        attributes.put("afterimage.request.messages_before", same as u64);
        before.messages.truncate(same);
        before.messages.extend(messages.split_off(same));
        messages = before.messages.iter().skip(same).cloned().collect();
    }
    let messages = Value::Array(messages);
    attributes.put_json("gen_ai.input.messages", &messages);
}

fn put_parameters(attributes: &mut Attributes, mut body: Object) {
    body.shift_remove("model");
    for (name, keys) in PARAMETERS {
        let is_plain = |value: &Value| matches!(value, Value::Number(_) | Value::Bool(_));
        let key = keys.iter().find(|key| body.get(key).is_some_and(is_plain));
        attributes.put_some(name, key.and_then(|key| body.shift_remove(key)));
    }
    for key in ["stop_sequences", "stop"] {
        let is_text = |list: &[Value]| list.iter().all(|stop| stop.as_str().is_some());
        match body.get(key) {
            Some(Value::Array(list)) if is_text(list) => {
                attributes.put_some("gen_ai.request.stop_sequences", body.shift_remove(key));
            }
            Some(Value::String(stop)) => {
                attributes.put("gen_ai.request.stop_sequences", vec![stop.as_str().into()]);
                body.shift_remove(key);
            }
            _ => {}
        }
    }
    if !body.is_empty() {
        attributes.put_json("afterimage.request.parameters", &body.into());
    }
}

fn put_response(attributes: &mut Attributes, recording: &Recording, exchange: &Exchange) {
    let body = exchange.response.body.as_deref();
    let read = body.and_then(|body| provider_json::response_of(exchange.api, body));
    let is_failed = matches!(exchange.outcome, ExchangeOutcome::Failed { .. });
    let (mut parts, mut reason) = (Vec::new(), None);
    if let Some(read) = read.filter(|_| !is_failed) {
        attributes.put_some("gen_ai.response.id", read.id);
        attributes.put_some("gen_ai.response.model", read.model);
        parts = read.frames.iter().flat_map(parts_of).collect();
        reason = read.finish_reason;
    } else if let Some(history) = recording.history(&exchange.session) {
        let frames = exchange.response.frames.iter().filter_map(|frame| history.get(*frame));
        for frame in frames {
            parts.extend(parts_of(&frame));
            let answer = frame.imported.as_ref().and_then(|imported| imported.answer.as_ref());
            let told = answer.and_then(|answer| answer.stop.as_deref().map(str::to_owned));
            reason = told.or(reason);
        }
    }
    if let Some(reason) = &reason {
        attributes.put("gen_ai.response.finish_reasons", vec![reason.as_str().into()]);
    }
    if !parts.is_empty() {
        let reason = reason.as_deref().unwrap_or("unknown");
        let mut message = object! { "role": "assistant", "parts": parts };
        message.put("finish_reason", reason);
        attributes.put_json("gen_ai.output.messages", &Value::Array(vec![message.into()]));
    }
}

fn put_usage(attributes: &mut Attributes, usage: &Usage) {
    for (name, figure) in [
        ("gen_ai.usage.input_tokens", usage.input),
        ("gen_ai.usage.output_tokens", usage.output),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
        ("afterimage.usage.cache_creation_5m", usage.cache_write_5m),
        ("afterimage.usage.cache_creation_1h", usage.cache_write_1h),
    ] {
        attributes.put_some(name, figure);
    }
    if let Some(cost) = usage.cost.map(Value::from) {
        attributes.put_some("afterimage.usage.cost", cost.str_at("amount"));
        attributes.put_some("afterimage.usage.cost_currency", cost.str_at("currency"));
    }
    if !usage.terms.is_empty() {
        let terms = usage.terms.iter().map(|(name, count)| (name.clone(), (*count).into()));
        attributes.put_json("afterimage.usage.terms", &terms.collect::<Object>().into());
    }
    if !usage.unreadable.is_empty() {
        let names: Value = usage.unreadable.names().collect();
        attributes.put("afterimage.usage.unreadable", names);
    }
}
