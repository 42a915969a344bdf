//! A request, and what came back, as the attributes of a span.

use std::{collections::HashSet, iter};

use super::{
    parts::{message, parts_of, tool},
    span::Attributes,
};
use crate::{
    Result,
    json::{Object, ObjectExt, Value, object},
    request::{Exchange, Provenance, Recording, Request, TOOL_CONFIG, TurnStart, tool_list},
    transcript::{Api, TranscriptFormat, Usage, provider_json},
};

/// The provider, which says in what form the messages were.
pub(super) fn provider(api: Api, format: TranscriptFormat) -> &'static str {
    format.provider().unwrap_or(api.provider())
}

/// The parameters that the conventions name, and what providers call them.
const PARAMETERS: [(&str, &[&str]); 9] = [
    ("gen_ai.request.temperature", &["temperature"]),
    ("gen_ai.request.top_p", &["top_p", "topP"]),
    ("gen_ai.request.top_k", &["top_k", "topK"]),
    (
        "gen_ai.request.max_tokens",
        &[
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "maxTokens",
            "maxOutputTokens",
            "num_predict",
        ],
    ),
    ("gen_ai.request.frequency_penalty", &["frequency_penalty", "frequencyPenalty"]),
    ("gen_ai.request.presence_penalty", &["presence_penalty", "presencePenalty"]),
    ("gen_ai.request.seed", &["seed"]),
    ("gen_ai.request.choice.count", &["n", "candidateCount"]),
    ("gen_ai.request.stream", &["stream"]),
];
/// The members in which Gemini, Bedrock and Ollama have theirs.
const CONFIGS: [&str; 4] = ["generationConfig", "generation_config", "inferenceConfig", "options"];

/// What the last request of a session held.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// The number of the request, from one; 0 before the first.
    number: usize,
    tools: Option<Value>,
    system: Option<Value>,
    /// In the form of the conventions.
    messages: Vec<Value>,
    /// The ids of the calls in them.
    ids: HashSet<String>,
    /// Where the agent's last turn begins, in the request and in `messages`.
    turn: Option<(TurnStart, usize)>,
}

/// The attributes of the span of an exchange: of one that is in no list its usage alone. With `before`
/// of what that request did not have.
///
/// # Errors
/// Those of [`Recording::request`]; a body that is no JSON leaves out what it would say.
pub(super) fn attributes(
    recording: &Recording,
    exchange: &Exchange,
    (of_session, conversation): (&'static str, &str),
    before: Option<&mut Before>,
) -> Result<Attributes> {
    let mut attributes = Attributes::default();
    let own = || provider(exchange.api, recording.format());
    let provider = if exchange.is_unlisted { of_session } else { own() };
    attributes.put("gen_ai.operation.name", "chat");
    attributes.put("gen_ai.provider.name", provider);
    attributes.put("gen_ai.conversation.id", conversation);
    attributes.put_some("gen_ai.request.model", exchange.model.as_deref());
    if !exchange.is_unlisted {
        let asked = asked(recording, exchange.number, before.as_deref())?;
        put_request(&mut attributes, asked, exchange.number, before);
        put_response(&mut attributes, recording, exchange);
    }
    if let Some(usage) = &exchange.usage {
        put_usage(&mut attributes, usage);
    }
    if let Some(reason) = &exchange.failure {
        let kind = reason.strip_prefix("status ").or_else(|| reason.strip_prefix("error "));
        let kind = kind.unwrap_or(reason);
        attributes.put("error.type", kind.split(": ").next().unwrap_or(kind));
    }
    if exchange.is_unlisted {
        return Ok(attributes);
    }
    attributes.put("afterimage.request.number", exchange.number as u64);
    attributes.put("afterimage.request.outcome", exchange.outcome().as_str());
    attributes.put("afterimage.request.provenance", exchange.provenance.as_str());
    let lacks = exchange.provenance.lacks();
    if !lacks.is_empty() {
        let lacks: Value = lacks.iter().map(|lack| lack.as_str()).collect();
        attributes.put("afterimage.request.lacks", lacks);
    }
    Ok(attributes)
}

/// What is asked: a whole request, or what one has from a turn of the one before it on.
struct Asked {
    request: Request,
    /// The members of its body without the messages.
    members: Object,
    /// The messages in the form of the conventions, from a place of [`Before::messages`] on.
    messages: Vec<Value>,
    at: usize,
    /// Where its last turn begins, as in [`Before`].
    turn: Option<(TurnStart, usize)>,
}

impl Asked {
    /// Reads the messages of a request but the first ones; those that are missing before them end at
    /// `turn`.
    fn of(request: Request, skip: usize, turn: Option<(TurnStart, usize)>) -> Self {
        let api = request.api();
        let body = request.value().ok().and_then(Value::as_object).cloned();
        let mut members = body.unwrap_or_default();
        let mut list = match members.shift_remove(api.conversation_key()) {
            Some(Value::Array(list)) => list,
            Some(Value::String(text)) => vec![object! { "role": "user", "content": text }.into()],
            _ => Vec::new(),
        };
        list.drain(..skip.min(list.len()));
        let said = |list: Vec<Value>| -> Vec<Value> {
            provider_json::frames_of(api, list).iter().map(message).collect()
        };
        let messages = said(list.clone());
        let (start, at) = turn.map_or((0, 0), |(turn, at)| (turn.index, at));
        let (mut last, mut end) = (None, messages.len());
        for (index, item) in list.into_iter().enumerate().rev() {
            let own = said(vec![item]);
            let is_agents = |message: &Value| message.str_at("role") == Some("assistant");
            let is_agents = !own.is_empty() && own.iter().all(is_agents);
            let begins = end.checked_sub(own.len());
            // What says something else beside others has no place of its own.
            let is_there = begins.is_some_and(|begins| messages.get(begins..end) == Some(&*own));
            if !is_there || last.is_some() && !is_agents {
                break;
            }
            end = begins.unwrap_or_default();
            if is_agents {
                let frame = request.frames().get(skip + index).copied().flatten();
                last = Some((TurnStart { index: start + index, frame }, at + end));
            }
        }
        Self { request, members, messages, at, turn: last }
    }

    /// Whether the messages go on from those that were before, as far as what is missing can tell.
    fn goes_on(&self, before: &Before) -> bool {
        let is_worked_out = matches!(self.request.provenance(), Provenance::Reconstructed { .. });
        let known = before.messages.get(self.at..).unwrap_or_default();
        let same = self.messages.iter().zip(known).take_while(|(now, known)| now == known).count();
        // Calls of one id, and marks of a cache, are told apart by all that came before.
        let mut new = self.messages.iter().skip(same).flat_map(ids_in);
        let is_alone = !new.any(|id| before.ids.contains(id))
            && !self.request.body().contains("cache_control");
        same > 0 && (is_alone || !is_worked_out)
    }
}

/// The ids of the calls in a message.
fn ids_in(message: &Value) -> impl Iterator<Item = &str> {
    let parts = message.get("parts").and_then(Value::as_array).unwrap_or_default();
    let calls = parts.iter().filter(|part| part.str_at("type") == Some("tool_call"));
    calls.filter_map(|part| part.str_at("id"))
}

/// What is asked, from the last turn of the request before it on where the rest is known.
fn asked(recording: &Recording, number: usize, before: Option<&Before>) -> Result<Asked> {
    let turn = before.and_then(|before| Some((before, before.turn?)));
    if let Some((before, turn)) = turn
        && let Some((request, skip)) = recording.grown(number, before.number, turn.0)?
    {
        let asked = Asked::of(request, skip, Some(turn));
        if asked.goes_on(before) {
            return Ok(asked);
        }
    }
    Ok(Asked::of(recording.request(number)?, 0, None))
}

fn put_request(
    attributes: &mut Attributes,
    asked: Asked,
    number: usize,
    mut before: Option<&mut Before>,
) {
    let Asked { request, members: mut body, mut messages, at, turn } = asked;
    if !matches!(request.value(), Ok(Value::Object(_))) {
        return;
    }
    let api = request.api();
    let system_key = body.keys().find(|key| api.is_system(key)).cloned();
    let mut system = system_key.and_then(|key| body.shift_remove(&key));
    let listed: Vec<Value> = tool_list(&body).into_iter().cloned().collect();
    let mut tools = (!listed.is_empty()).then(|| Value::Array(listed));
    body.shift_remove("tools");
    if let Some(Value::Object(config)) = body.get_mut(TOOL_CONFIG) {
        config.shift_remove("tools");
    }
    if let Some(before) = before.as_deref_mut() {
        // The end of a request that was worked out has none.
        if at > 0 && matches!(request.provenance(), Provenance::Reconstructed { .. }) {
            system.clone_from(&before.system);
        }
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
    if let Some(Value::Array(tools)) = tools {
        let tools: Value = tools.into_iter().map(tool).collect();
        attributes.put_json("gen_ai.tool.definitions", &tools);
    }
    if let Some(system) = system.filter(|system| !system.is_null()) {
        let frames = provider_json::system_frames(api, system);
        let parts: Value = frames.iter().flat_map(parts_of).collect();
        attributes.put_json("gen_ai.system_instructions", &parts);
    }
    put_parameters(attributes, body);
    if let Some(before) = before {
        let known = before.messages.iter().skip(at);
        let same = messages.iter().zip(known).take_while(|(now, known)| now == known).count();
        attributes.put("afterimage.request.messages_before", (at + same) as u64);
        before.messages.truncate(at + same);
        messages.drain(..same);
        before.ids.extend(messages.iter().flat_map(ids_in).map(str::to_owned));
        before.messages.extend_from_slice(&messages);
        before.turn = turn;
    }
    let messages = Value::Array(messages);
    attributes.put_json("gen_ai.input.messages", &messages);
}

fn put_parameters(attributes: &mut Attributes, mut body: Object) {
    body.shift_remove("model");
    let mut configs: Vec<(&str, Object)> = Vec::new();
    for key in CONFIGS {
        if let Some(Value::Object(config)) = body.get_mut(key) {
            configs.push((key, std::mem::take(config)));
        }
    }
    let mut take = |keys: &[&str], is_one: &dyn Fn(&Value) -> bool| {
        let mut holders = iter::once(&mut body).chain(configs.iter_mut().map(|(_, of)| of));
        holders.find_map(|of| {
            let key = keys.iter().find(|key| of.get(key).is_some_and(is_one))?;
            of.shift_remove(key)
        })
    };
    for (name, keys) in PARAMETERS {
        let is_plain = |value: &Value| matches!(value, Value::Number(_) | Value::Bool(_));
        attributes.put_some(name, take(keys, &is_plain));
    }
    let is_text = |value: &Value| match value {
        Value::Array(list) => list.iter().all(|stop| stop.as_str().is_some()),
        other => other.as_str().is_some(),
    };
    let stops = take(&["stop_sequences", "stop", "stopSequences"], &is_text);
    let stops = stops.map(|of| if of.as_array().is_some() { of } else { vec![of].into() });
    attributes.put_some("gen_ai.request.stop_sequences", stops);
    for (key, config) in configs {
        body.put(key, config);
    }
    body.retain(|key, value| {
        let is_config = key == TOOL_CONFIG || CONFIGS.contains(&key.as_str());
        !is_config || value.as_object().is_none_or(|of| !of.is_empty())
    });
    if !body.is_empty() {
        attributes.put_json("afterimage.request.parameters", &body.into());
    }
}

fn put_response(attributes: &mut Attributes, recording: &Recording, exchange: &Exchange) {
    let body = exchange.response.as_deref();
    let read = body.and_then(|body| provider_json::response_of(exchange.api, body));
    let is_failed = exchange.failure.is_some();
    let (mut parts, mut reason) = (Vec::new(), None);
    if let Some(read) = read.filter(|_| !is_failed) {
        attributes.put_some("gen_ai.response.id", read.id);
        attributes.put_some("gen_ai.response.model", read.model);
        parts = read.frames.iter().flat_map(parts_of).collect();
        reason = read.finish_reason;
    } else if let Some(history) = recording.history(&exchange.session) {
        let frames = exchange.answer_frames.iter().filter_map(|frame| history.get(*frame));
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
