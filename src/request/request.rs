use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    chain::own_frames,
    compare::{TOOL_CONFIG, tool_list, tool_name, without_mark},
    parts::{Frames, PartKind, RequestPart, parts},
};
use crate::{
    Error, ErrorKind, Result,
    export::{ExportedRequest, Form, OwnedJson},
    hud::Owner,
    id::{FacetId, FacetType, FrameSeq},
    json::{self, Object, ObjectExt, Value},
    tokens::TokenCounter,
    transcript::{Api, BodyText, Exchange, Provenance},
    veil::{Facet, FacetPart, PartContent},
};

crate::json::serialize_through_json!(Request);

/// A request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    api: Api,
    provenance: Provenance,
    body: BodyText,
    parsed: ParsedBody,
    frames: Frames,
    /// The host that it was sent to, where that is known.
    host: Option<Arc<str>>,
    /// The model of the exchange: some name it in their address, and not in their body.
    asked_model: Option<Arc<str>>,
    /// Of one that was worked out: the conversation with the owners of its strings.
    owned: Option<Arc<ExportedRequest>>,
}

/// The body as JSON, once somebody asked for it.
#[derive(Clone, Debug, Default)]
struct ParsedBody(OnceLock<Arc<Value>>);

impl PartialEq for ParsedBody {
    /// It follows from the body, which is compared.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// The tokens of a request, by what they are for. Each part is counted by itself, as it is written:
/// an estimate of what a provider makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RequestTokens {
    /// The definitions of the tools.
    pub tools: u64,
    /// The system prompt: what stands apart, and messages of the operator.
    pub system: u64,
    /// The other messages.
    pub messages: u64,
}

impl RequestTokens {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.tools.saturating_add(self.system).saturating_add(self.messages)
    }
}

impl Request {
    pub(super) fn new(api: Api, provenance: Provenance, body: BodyText, frames: Frames) -> Self {
        let (parsed, host, asked_model, owned) = Default::default();
        Self { api, provenance, body, parsed, frames, host, asked_model, owned }
    }

    /// The host that it was sent to, where that is known.
    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// Whether it was sent to Anthropic itself: without a host the model tells.
    fn is_to_anthropic(&self) -> bool {
        let is_own = || self.model().is_some_and(|model| model.contains("claude"));
        self.api == Api::Messages && self.host().map_or_else(is_own, |host| host == ANTHROPIC)
    }

    /// The same request, whose conversation was written from this export.
    pub(super) fn with_owners(self, exported: ExportedRequest) -> Self {
        Self { owned: Some(Arc::new(exported)), ..self }
    }

    /// The request of an exchange that was recorded, as it was sent. O(messages); the body is
    /// shared, and scanned where it goes on from an earlier response.
    pub fn recorded(exchange: &Exchange) -> Self {
        Self::of_exchange(exchange, &exchange.provenance)
    }

    /// As [`Request::recorded`], where it comes from there.
    pub(super) fn of_exchange(exchange: &Exchange, provenance: &Provenance) -> Self {
        let frames = Frames { system: exchange.system_frame, messages: own_frames(exchange) };
        let body = exchange.request.clone();
        Self::new(exchange.api, provenance.clone(), body, frames).of_address(exchange)
    }

    /// The request with this number of a recording of the wire, without the others: reads the bodies of
    /// that exchange, and at most 16 that its request is stored after. Its messages have no frames.
    ///
    /// `None` where the folder has none with this number, and where it takes the others to know the
    /// request: it goes on from an earlier response, its body is not known, or the recording is damaged.
    /// The file is read once, to find its exchanges.
    ///
    /// # Errors
    /// Those of [`record::Recording::open`](crate::record::Recording::open).
    #[cfg(feature = "record")]
    pub fn of_recording(
        folder: impl AsRef<std::path::Path>,
        number: usize,
    ) -> Result<Option<Self>> {
        let exchange = crate::transcript::exchange_at(folder.as_ref(), number)?;
        Ok(exchange.map(|exchange| Self::recorded(&exchange)))
    }

    /// The same request, with what the address of the exchange says.
    pub(super) fn of_address(self, exchange: &Exchange) -> Self {
        let (host, asked_model) = (exchange.host.clone(), exchange.model.clone());
        Self { host, asked_model, ..self }
    }

    /// The frame of the message with this index.
    pub(crate) fn frame_of(&self, index: usize) -> Option<crate::id::FrameSeq> {
        self.frames.messages.get(index).copied().flatten()
    }

    /// The frame of the system prompt that stands apart from the messages.
    pub(super) fn system_of(&self) -> Option<crate::id::FrameSeq> {
        self.frames.system
    }

    /// The same request with another body, which has no messages.
    pub(super) fn without_messages(&self, head: &str) -> Self {
        let frames = Frames { system: self.frames.system, messages: Vec::new() };
        let (host, asked_model) = (self.host.clone(), self.asked_model.clone());
        let head = Self::new(self.api, self.provenance.clone(), head.into(), frames);
        Self { host, asked_model, ..head }
    }

    /// The body, in the pieces that it shares with others.
    pub(crate) fn text(&self) -> &BodyText {
        &self.body
    }

    /// The first frame that each of its messages holds.
    pub(crate) fn frames(&self) -> &[Option<FrameSeq>] {
        &self.frames.messages
    }

    /// Whether it was worked out, and knows the owners of its strings.
    pub(super) fn is_owned(&self) -> bool {
        self.owned.is_some()
    }

    /// The API that it speaks.
    pub fn api(&self) -> Api {
        self.api
    }

    /// Where it comes from.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The body: byte for byte what was sent where the provenance is [`Provenance::Sent`]. One of a
    /// recording is put together when it is first asked for.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The body as JSON. The first call of this, or of a method that needs it, parses the body; later
    /// ones use the same value.
    ///
    /// # Errors
    /// Those of [`json::read_mended`], for a body that is no JSON.
    pub fn value(&self) -> Result<&Value> {
        if let Some(parsed) = self.parsed.0.get() {
            return Ok(parsed);
        }
        let value = json::read_mended(self.body.as_bytes())?.0;
        Ok(self.parsed.0.get_or_init(|| Arc::new(value)))
    }

    /// The members of the body.
    fn members(&self) -> Result<&Object> {
        let is_none = || Error::new(ErrorKind::Shape, "expected a request that is an object");
        self.value()?.as_object().ok_or_else(is_none)
    }

    /// The parts of the body, in order: each byte belongs to one. Scans the body.
    pub fn parts(&self) -> Vec<RequestPart> {
        parts(&self.body, self.api, &self.frames)
    }

    /// The tools that the request offers, in order, each as a facet `tool:NAME` whose content is its
    /// JSON as it is written. Tools of one name have one id. Scans the body.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use afterimage::{
    /// #     id::Millis, request::Recording, tokens::Chars4, transcript::Transcript, veil::PartContent,
    /// # };
    /// # let document = br#"{"model": "m", "tools": [{"name": "tide"}], "messages": []}"#;
    /// # let transcript = Transcript::new(&document[..])?;
    /// # let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0))?;
    /// let tools = recording.request(1)?.tools();
    /// assert_eq!((tools[0].id.as_str(), tools[0].content.as_str()), ("tool:tide", r#"{"name":"tide"}"#));
    /// let part = tools[0].part.as_ref().unwrap();
    /// assert_eq!(part.content, PartContent::ToolDefinition { name: "tide".into() });
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    ///
    /// Cost: O(the body), which is scanned; copies the definitions.
    pub fn tools(&self) -> Vec<Facet> {
        let tool = |part: RequestPart| {
            let id = part.facet_id();
            let PartKind::Tool { name, .. } = part.kind else { return None };
            let written = self.body.get(part.range).unwrap_or_default();
            let mut facet = Facet::new(id, FacetType::TOOL, written);
            let content = PartContent::ToolDefinition { name: name.into() };
            facet.part = Some(Box::new(FacetPart::new(content)));
            Some(facet)
        };
        self.parts().into_iter().filter_map(tool).collect()
    }

    /// The tokens of the parts. Counts each: O(text).
    pub fn tokens(&self, counter: &dyn TokenCounter) -> RequestTokens {
        self.tokens_by(|part| self.tokens_of(part, counter))
    }

    /// The tokens of the parts, which `count` counts.
    pub(crate) fn tokens_by(&self, mut count: impl FnMut(&RequestPart) -> u64) -> RequestTokens {
        let mut tokens = RequestTokens::default();
        for part in self.parts() {
            let count = count(&part);
            match &part.kind {
                PartKind::Tool { .. } => tokens.tools += count,
                PartKind::System { .. } => tokens.system += count,
                PartKind::Message { role, .. }
                    if matches!(role.as_str(), "system" | "developer") =>
                {
                    tokens.system += count;
                }
                PartKind::Message { .. } => tokens.messages += count,
                PartKind::Parameter { .. } | PartKind::Form => {}
            }
        }
        tokens
    }

    /// The tokens of a part of this request: of a tool those of its JSON, of what is said those of
    /// its strings, of everything else none. Counts them: O(text).
    pub fn tokens_of(&self, part: &RequestPart, counter: &dyn TokenCounter) -> u64 {
        let written = self.body.get(part.range.clone()).unwrap_or_default();
        match &part.kind {
            PartKind::Tool { .. } => counter.count(written) as u64,
            PartKind::System { .. } | PartKind::Message { .. } => spoken(written, counter),
            PartKind::Parameter { .. } | PartKind::Form => 0,
        }
    }

    /// The request with an owner for each string, in the order in which providers' caches take it:
    /// the model, the tools (each as the text of its JSON), the system prompt, the messages. Other
    /// parameters are left out: caches do not look at them. The strings of a request that was
    /// recorded belong to the part that they stand in, those of one that was worked out to the
    /// facets of its frames. Cost: O(the body), which is parsed as by [`Request::value`] and copied.
    ///
    /// # Errors
    /// As [`Request::value`]; [`ErrorKind::Shape`] for a body that is no object.
    pub fn in_cache_order(&self) -> Result<ExportedRequest> {
        self.laid_out(false)
    }

    /// As [`Request::in_cache_order`], as the cache takes it: tools lack their marks, since one that
    /// moves changes nothing that the model reads, and what the provider's cache passes over is empty.
    pub(crate) fn as_cached(&self) -> Result<ExportedRequest> {
        self.laid_out(true)
    }

    fn laid_out(&self, is_as_cached: bool) -> Result<ExportedRequest> {
        let body = self.members()?;
        let mut members = Vec::new();
        let mut add = |key: &str, value: OwnedJson| members.push((key.to_owned(), value));
        if let Some(model) = body.get("model") {
            add("model", OwnedJson::of_value(model, &owner("parameter:model", None)));
        }
        let tools = tool_list(body);
        if matches!(body.get("tools"), Some(Value::Array(_))) || !tools.is_empty() {
            let tool = |tool: &Value| {
                let owner = owner(format!("tool:{}", tool_name(tool)), None);
                let written = if is_as_cached { without_mark(tool) } else { Cow::Borrowed(tool) };
                OwnedJson::of_text(&written.to_string(), &owner)
            };
            add("tools", OwnedJson::List(tools.into_iter().map(tool).collect()));
        }
        let form = self.form();
        let (system_key, key) = (self.api.system_key(), self.api.conversation_key());
        if let Some(exported) = &self.owned {
            match exported.root() {
                list @ OwnedJson::List(_) => add(key, list.clone()),
                root => [system_key, key].into_iter().for_each(|key| {
                    root.get(key).into_iter().for_each(|value| add(key, value.clone()));
                }),
            }
            return Ok(ExportedRequest::recorded(form, OwnedJson::Map(members)));
        }
        if let Some(system) = self.api.system_of(body) {
            let owner = owner("system", self.frames.system);
            let is_read = !is_as_cached || !self.is_to_anthropic();
            let read = if is_read { Cow::Borrowed(system) } else { without_billing(system) };
            add(system_key, OwnedJson::of_message(&read, &owner));
        }
        let messages = match body.get(key) {
            Some(Value::Array(list)) => list.as_slice(),
            Some(other) => std::slice::from_ref(other),
            None => &[],
        };
        let message =
            |(index, message): (usize, &Value)| self.message(index, &as_message(self.api, message));
        add(key, OwnedJson::List(messages.iter().enumerate().map(message).collect()));
        Ok(ExportedRequest::recorded(form, OwnedJson::Map(members)))
    }

    /// The form of its messages.
    pub(super) fn form(&self) -> Form {
        form_of(self.api)
    }

    /// A message of a recorded request, which stands at this index.
    pub(super) fn message(&self, index: usize, message: &Value) -> OwnedJson {
        OwnedJson::of_message(message, &owner(format!("message:{index}"), self.frame_of(index)))
    }

    /// The members of the body that are neither tools nor system prompt nor conversation. Cost: O(their
    /// size), and that of [`Request::value`].
    ///
    /// # Errors
    /// As [`Request::in_cache_order`].
    pub fn parameters(&self) -> Result<Object> {
        let apart = ["tools", self.api.conversation_key()];
        let is_apart = |key: &String| apart.contains(&key.as_str()) || self.api.is_system(key);
        let members = self.members()?.iter().filter(|(key, _)| !is_apart(key));
        let members = members.map(|(key, value)| (key.clone(), value.clone()));
        let mut members: Object = members.collect();
        if let Some(Value::Object(config)) = members.get_mut(TOOL_CONFIG)
            && config.shift_remove("tools").is_some()
        {
            let rest = std::mem::take(config);
            members.shift_remove(TOOL_CONFIG);
            members.put_unknown(&rest);
        }
        Ok(members)
    }

    /// The model that was asked, where the request names one, in its body or in its address.
    ///
    /// Cost: O(the body), which is parsed as by [`Request::value`].
    pub fn model(&self) -> Option<&str> {
        let named = self.members().ok().and_then(|members| members.get("model")?.as_str());
        named.or(self.asked_model.as_deref())
    }

    /// The wire form: `api`, `provenance`, `lacks`, and the `body` as JSON.
    ///
    /// Cost: O(the body), which is parsed as by [`Request::value`] and copied.
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("api", self.api.as_str());
        object.put("provenance", self.provenance.as_str());
        let lacks = self.provenance.lacks().iter().map(|lack| lack.as_str());
        object.put("lacks", lacks.collect::<Value>());
        object.put_some("resolved", self.provenance.resolved_json());
        object.put("body", self.value().map_or_else(|_| self.body.as_str().into(), Value::clone));
        object.into()
    }
}

/// The form of the messages of an API.
pub(crate) const fn form_of(api: Api) -> Form {
    match api {
        // Ollama and Converse have messages with the roles of Chat Completions; no request is written
        // for these.
        Api::Chat | Api::Ollama | Api::Generate | Api::Converse => Form::OpenaiChat,
        Api::Messages => Form::Anthropic,
        Api::Responses => Form::Responses,
        Api::Gemini => Form::Gemini,
    }
}

/// Counts the parts of requests that repeat each other, each once.
#[derive(Debug, Default)]
pub(crate) struct CountedParts(HashMap<[u8; 32], u64>);

impl CountedParts {
    /// As [`Request::tokens_of`]. Counts a part that was not counted before; hashes others.
    pub(crate) fn of(
        &mut self,
        request: &Request,
        part: &RequestPart,
        counter: &dyn TokenCounter,
    ) -> u64 {
        let is_counted = !matches!(part.kind, PartKind::Parameter { .. } | PartKind::Form);
        let written = request.body.get(part.range.clone()).filter(|_| is_counted);
        let Some(written) = written else { return 0 };
        let is_tool = matches!(part.kind, PartKind::Tool { .. });
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[u8::from(is_tool)]).update(written.as_bytes());
        let hash = *hasher.finalize().as_bytes();
        *self.0.entry(hash).or_insert_with(|| request.tokens_of(part, counter))
    }
}

/// Anthropic's own host.
const ANTHROPIC: &str = "api.anthropic.com";
/// What Claude Code bills by: a block of the system prompt that is another one in each request. The
/// cache of Anthropic's own host passes over it, and every other one takes it for text.
const BILLING: &str = "x-anthropic-billing-header:";

/// A system prompt without the text of the blocks that bill.
fn without_billing(system: &Value) -> Cow<'_, Value> {
    let is_billing = |block: &Value| {
        let text = block.str_at("text").map(str::trim).unwrap_or_default();
        text.starts_with(BILLING) && !text.contains('\n')
    };
    let Value::Array(blocks) = system else { return Cow::Borrowed(system) };
    if !blocks.iter().any(is_billing) {
        return Cow::Borrowed(system);
    }
    let emptied = blocks.iter().cloned().map(|mut block| {
        let is_billing = is_billing(&block);
        if let Value::Object(members) = &mut block
            && is_billing
        {
            members.put("text", "");
        }
        block
    });
    Cow::Owned(emptied.collect())
}

/// A message as the model reads it: the Responses API takes a text alone for what the user says.
fn as_message(api: Api, message: &Value) -> Cow<'_, Value> {
    match message {
        Value::String(text) if matches!(api, Api::Responses | Api::Generate) => {
            let mut object = Object::new();
            object.put("role", "user");
            object.put("content", text.as_str());
            Cow::Owned(object.into())
        }
        message => Cow::Borrowed(message),
    }
}

fn owner(facet: impl Into<FacetId>, frame: Option<crate::id::FrameSeq>) -> Owner {
    Owner::Recorded { frame, facet: facet.into() }
}

/// The tokens of what a message says: its strings, but for words of the form and data that no
/// tokenizer reads.
fn spoken(written: &str, counter: &dyn TokenCounter) -> u64 {
    let Ok((value, _)) = json::read_mended(written.as_bytes()) else { return 0 };
    let nobody = Owner::Framing(Owner::UNRECORDED);
    OwnedJson::of_message(&value, &nobody).tokens(counter)
}
