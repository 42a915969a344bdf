use std::sync::Arc;

use super::{
    Api, AppliedEdit, BodyText, TranscriptFormat, Usage,
    body::Payload,
    exchange::{Exchange, broke_off},
    interaction::Interaction,
};
use crate::{
    id::FrameSeq,
    json::{self, Object, ObjectExt, Value},
};

/// A request that a recording holds whole, and what came back.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedExchange {
    /// The session that it belongs to.
    pub session: Arc<str>,
    /// Where it stands in the recording, from one: an entry, or a line.
    pub line: u64,
    /// The API that it speaks.
    pub api: Api,
    /// The host that the request was sent to, where the recording has an address.
    pub host: Option<Arc<str>>,
    /// The body of the request: the bytes of the wire where they were kept, else its JSON.
    /// [`RecordedExchange::replace_request`] sets another.
    pub request: BodyText,
    /// Whether `request` is what went over the wire, byte for byte.
    pub is_as_sent: bool,
    /// The body of the response, in the same way; of a stream all of its events.
    pub response: Option<Arc<str>>,
    /// The status of the response.
    pub status: Option<u64>,
    /// What is wrong with the response: a status, an error, that none came, or that its stream broke
    /// off. Of the last one there is an answer all the same: what had come of it.
    pub failure: Option<String>,
    /// Why `response` is not all of what came, or was to come. It is a failure of the exchange where
    /// `failure` says so; else all of it came, and is not stored.
    pub cut: Option<String>,
    /// Why `request` is not known, where it is not: then it is an empty object.
    pub unread: Option<String>,
    /// When the request went out, as the recording has it.
    pub started: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The model that was asked.
    pub model: Option<String>,
    /// The usage as reported.
    pub usage: Option<Usage>,
    /// The frame of the system prompt that stands apart.
    pub system_frame: Option<FrameSeq>,
    /// The frame of each message, or item, of the request; `None` where the session has none that
    /// is the same, as in a request that another one took the place of.
    pub frames: Vec<Option<FrameSeq>>,
    /// The first frame of the answer.
    pub answer: Option<FrameSeq>,
    /// Whether it holds its request. What is known of others is their usage: no list has them, and
    /// they are paid for.
    pub is_listed: bool,
    pub(crate) asked: Asked,
}

/// What a request says of how it is to be answered, besides what the model reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The response that it goes on from.
    pub(crate) previous: Option<Arc<str>>,
    /// The conversation that the provider keeps, and that it goes on with.
    pub(crate) conversation: Option<Arc<str>>,
    /// Whether the provider is told to read it and to generate nothing.
    pub(crate) is_warm_up: bool,
}

/// What a provider answered, by the id that a later request may name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedReply {
    pub(crate) id: String,
    pub(crate) items: Vec<Value>,
    /// Whether it came to its end.
    pub(crate) is_whole: bool,
}

/// The members of a request that say whether anything is to be generated, which response is before
/// it, and which conversation.
const GENERATE: &str = "generate";
pub(crate) const PREVIOUS: &str = "previous_response_id";
pub(crate) const CONVERSATION: &str = "conversation";

/// The id of a conversation that the provider keeps, as requests and answers state it.
pub(super) fn kept_conversation(stated: Option<&Value>) -> Option<Arc<str>> {
    stated.and_then(|of| of.as_str().or_else(|| of.str_at("id"))).map(Arc::from)
}

impl Asked {
    /// Whether the provider reads more than the request holds.
    pub(crate) fn goes_on(&self) -> bool {
        self.previous.is_some() || self.conversation.is_some()
    }

    /// What the members of a request say, with the conversation or without.
    pub(super) fn of_members(api: Api, members: &Object) -> Self {
        if api != Api::Responses {
            return Self::default();
        }
        Self {
            previous: members.get(PREVIOUS).and_then(Value::as_str).map(Arc::from),
            conversation: kept_conversation(members.get(CONVERSATION)),
            is_warm_up: members.get(GENERATE) == Some(&Value::Bool(false)),
        }
    }

    /// What a body says. Parses it where it may say something.
    pub(crate) fn of_body(api: Api, body: &str) -> Self {
        let names = |name: &str| {
            let quoted = ["\"", name, "\""].concat();
            memchr::memmem::find(body.as_bytes(), quoted.as_bytes()).is_some()
        };
        if api != Api::Responses || ![PREVIOUS, CONVERSATION, GENERATE].into_iter().any(names) {
            return Self::default();
        }
        let members = json::children(body, 0..body.len()).into_iter();
        let own = members.filter_map(|member| {
            let is_asking = |key: &str| matches!(key, PREVIOUS | CONVERSATION | GENERATE);
            let key = member.key.filter(|key| is_asking(key))?;
            Some((key, json::read(body.get(member.value)?.as_bytes()).ok()?))
        });
        Self::of_members(api, &own.collect())
    }
}

impl RecordedExchange {
    pub(super) fn of(interaction: Interaction, exchange: &Exchange) -> Self {
        let is_known = exchange.unread.is_none();
        let is_as_sent = interaction.request.is_as_sent() && !interaction.is_logged && is_known;
        Self {
            session: Arc::default(),
            line: interaction.line,
            api: exchange.api,
            host: interaction.host(),
            request: match exchange.unread {
                Some(_) => "{}".into(),
                None => interaction.request.text().unwrap_or_default(),
            },
            is_as_sent,
            response: interaction.response.text().map(|text| text.to_shared()),
            status: interaction.status,
            failure: exchange.failure.clone(),
            cut: exchange.cut.clone(),
            unread: exchange.unread.clone(),
            started: interaction.started,
            duration_ms: interaction.duration_ms,
            model: exchange.model.clone(),
            usage: exchange.usage.clone(),
            system_frame: None,
            frames: Vec::new(),
            answer: None,
            is_listed: true,
            asked: exchange.asked.clone(),
        }
    }

    /// Puts another body in the place of the request. O(the body).
    pub fn replace_request(&mut self, body: impl Into<BodyText>) {
        self.request = body.into();
        self.asked = Asked::of_body(self.api, &self.request);
    }

    /// The response that the request goes on from, where it names one.
    pub fn previous_response(&self) -> Option<&str> {
        self.asked.previous.as_deref()
    }

    /// What was answered, where that has an id of the provider's. Parses the response.
    pub(crate) fn reply(&self) -> Option<RecordedReply> {
        let response = self.response.as_ref().filter(|_| self.has_answer())?;
        let response = self.api.response(&Payload::Text(Arc::clone(response).into()))?;
        let id = response.str_at("id")?.to_owned();
        let is_whole = self.failure.is_none() && self.cut.is_none();
        Some(RecordedReply { id, items: self.api.reply(response, false), is_whole })
    }

    /// The conversation that the provider keeps it in: the request names it, or the answer does.
    /// Parses an answer that may name one.
    pub(crate) fn kept_in(&self) -> Option<Arc<str>> {
        let names = |response: &&Arc<str>| {
            let is_named = memchr::memmem::find(response.as_bytes(), b"\"conversation\"").is_some();
            self.api == Api::Responses && is_named
        };
        let stated = || {
            let response = self.api.joined(self.response.as_ref().filter(names)?)?;
            kept_conversation(response.get(CONVERSATION))
        };
        self.asked.conversation.clone().or_else(stated)
    }

    /// Whether the provider was told to read the request and to generate nothing.
    pub fn is_warm_up(&self) -> bool {
        self.asked.is_warm_up
    }

    /// What the provider took out of the request before the model read it, as its answer says.
    /// Parses the answer where it may say that.
    pub fn applied_edits(&self) -> Vec<AppliedEdit> {
        let response = self.response.as_deref().unwrap_or_default();
        AppliedEdit::of_response(self.api, response)
    }

    /// Whether anything was answered.
    pub(super) fn has_answer(&self) -> bool {
        self.failure.as_deref().is_none_or(broke_off)
    }

    /// An exchange of which the usage alone is known; `line` is its place in the recording.
    pub(super) fn unlisted(line: u64, model: Option<String>, usage: Option<Usage>) -> Self {
        Self {
            session: Arc::default(),
            line,
            api: Api::Chat,
            host: None,
            request: BodyText::default(),
            is_as_sent: false,
            response: None,
            status: None,
            failure: None,
            cut: None,
            unread: None,
            started: None,
            duration_ms: None,
            model,
            usage,
            system_frame: None,
            frames: Vec::new(),
            answer: None,
            is_listed: false,
            asked: Asked::default(),
        }
    }

    /// The request that a document, or a line, of a provider's form is; `None` where it is none,
    /// as a bare list of messages.
    pub(super) fn of_document(format: TranscriptFormat, value: &Value, line: u64) -> Option<Self> {
        let api = match format {
            TranscriptFormat::Chat => Api::Chat,
            TranscriptFormat::Anthropic => Api::Messages,
            TranscriptFormat::Responses => Api::Responses,
            _ => return None,
        };
        let request = value.as_object()?;
        request.get(api.conversation_key())?;
        if !request.contains_key("model") && !request.contains_key("tools") {
            return None;
        }
        let mut request = request.clone();
        // A log of OpenAI's has request and response in one object.
        let output = request.shift_remove("output").filter(|_| api == Api::Responses);
        let usage = request.get("usage").and_then(Usage::of);
        if output.is_some() {
            ["usage", "id", "object", "status", "created_at", "error"].iter().for_each(|key| {
                request.shift_remove(key);
            });
        }
        let model = request.get("model").and_then(Value::as_str).map(str::to_owned);
        let response = output.map(|output| {
            let mut response = Object::new();
            response.put("output", output);
            Value::from(response).to_string().into()
        });
        let asked = Asked::of_members(api, &request);
        Some(Self {
            session: Arc::default(),
            line,
            api,
            host: None,
            request: Value::from(request).to_string().into(),
            is_as_sent: false,
            response,
            status: None,
            failure: None,
            cut: None,
            unread: None,
            started: None,
            duration_ms: None,
            model,
            usage,
            system_frame: None,
            frames: Vec::new(),
            answer: None,
            is_listed: true,
            asked,
        })
    }

    /// Says which frames the document became, one for each message.
    pub(super) fn place(&mut self, frames: Vec<FrameSeq>) {
        let Ok(value) = crate::json::read(self.request.as_bytes()) else { return };
        let count = match value.get(self.api.conversation_key()) {
            Some(Value::Array(list)) => list.len(),
            _ => 1,
        };
        let system = value.get(self.api.system_key()).filter(|system| !system.is_null());
        let has_system = system.is_some_and(|system| system.as_str() != Some(""));
        // Records that were not understood may share a frame. Where the answer is in the document, its
        // items have frames too.
        let needed = count + usize::from(has_system);
        let has_answer = self.api == Api::Responses;
        if frames.len() < needed || frames.len() > needed && !has_answer {
            return;
        }
        let mut frames = frames.into_iter();
        self.system_frame = if has_system { frames.next() } else { None };
        self.frames = frames.by_ref().take(count).map(Some).collect();
        self.answer = frames.next();
    }
}
