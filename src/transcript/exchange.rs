use std::sync::Arc;

use super::{
    Api, AppliedEdit, BodyText, Provenance, TranscriptFormat, Usage, body::Payload,
    interaction::Interaction, kept::Kept, read_exchange::broke_off,
};
use crate::{
    id::FrameSeq,
    json::{self, Object, ObjectExt, Value},
};

/// An exchange with a model: a request, what came back, and what that used. Readers, archives and
/// recordings say the same of it, so there is one type.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// Its number in the recording, from one; 0 where it is in no list of requests.
    pub number: usize,
    /// The number of the one before it in its session.
    pub previous: Option<usize>,
    /// The session that it belongs to.
    pub session: Arc<str>,
    /// Of recorded traffic, where it stands in the source: its line, or the number of the element,
    /// from one.
    pub line: Option<u64>,
    /// The API that it speaks.
    pub api: Api,
    /// The host that the request was sent to, where the source has an address.
    pub host: Option<Arc<str>>,
    /// Where the request comes from.
    pub provenance: Provenance,
    /// When the request went out, or else the answer came, as the source has it.
    pub time: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The model, where the source names it.
    pub model: Option<Arc<str>>,
    /// The usage as reported.
    pub usage: Option<Usage>,
    /// Where the answer is a copy of one of another session, what it reports, which counts there.
    pub copied: Option<CopiedUsage>,
    /// What tells the answer from others, in whatever file it stands; `None` where nothing does.
    pub print: Option<u64>,
    /// The status of HTTP.
    pub status: Option<u64>,
    /// What is wrong with the response: a status, an error, that none came, or that its stream broke
    /// off. Of the last one there is an answer all the same: what had come of it. Empty where the
    /// source does not say what is wrong.
    pub failure: Option<String>,
    /// Why `response` is not all of what came, or was to come. It is a failure of the exchange where
    /// `failure` says so; else all of it came, and is not stored.
    pub cut: Option<String>,
    /// Why the body of the request is not known: it is stored in part, cannot be unpacked, or is no
    /// JSON. An empty object then stands for it.
    pub unread: Option<String>,
    /// Whether it is in no list of requests, and is paid for: its answer shows nothing, or its request
    /// is nowhere. So are the sums of a session, where a source states nothing else.
    pub is_unlisted: bool,
    /// Whether the model answered and the session went on without the answer: another request took
    /// the place of this one.
    pub is_superseded: bool,
    /// Whether the request is the same as the one before it in the session, which failed.
    pub is_retry: bool,
    /// What the provider took out of the request before the model read it.
    pub edits: Vec<AppliedEdit>,
    /// The last frame that the request holds; of one that failed and is known by its log alone, the last
    /// before it.
    pub last_frame: Option<FrameSeq>,
    /// The frame of the system prompt that stands apart.
    pub system_frame: Option<FrameSeq>,
    /// The frame of each message, or item, of the request; `None` where the session has none that
    /// is the same, as in a request that another one took the place of.
    pub frames: Vec<Option<FrameSeq>>,
    /// The frames of the session that hold the answer, in order; of readers and archives the first.
    pub answer_frames: Vec<FrameSeq>,
    /// The body of the request: the bytes of the wire where they were kept, else its JSON. Empty
    /// where the source holds none. [`Exchange::replace_request`] sets another.
    pub request: BodyText,
    /// The body of the response: the bytes of the wire, or the JSON that was logged; of a stream all
    /// of its events, of a document that holds request and response its `output`. `None` where the
    /// source holds no bodies, or no response came.
    pub response: Option<Arc<str>>,
    pub(crate) asked: Asked,
    /// What the provider held before the request, where calls of the source say so that no model
    /// answered.
    pub(crate) kept: Option<Arc<Kept>>,
}

/// What a copy of an answer reports: a session that was forked, or resumed into another file, holds
/// the answers of the first one again.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CopiedUsage {
    /// The session that it was copied from, where the source names it.
    pub from: Option<Arc<str>>,
    /// The usage as reported.
    pub usage: Option<Usage>,
}

/// Whether a model answered a request.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// The model answered.
    Answered,
    /// The model answered, and the session went on without the answer: another request took the
    /// place of this one.
    Superseded,
    /// The model answered, and the recording has the beginning of the answer alone:
    /// [`Exchange::cut`] says why.
    Cut,
    /// It did not: a status, an error, no response, or one that broke off. [`Exchange::failure`] says
    /// which.
    Failed,
}

impl ExchangeOutcome {
    /// The name on the wire: `answered`, `superseded`, `cut`, `failed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Superseded => "superseded",
            Self::Cut => "cut",
            Self::Failed => "failed",
        }
    }
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
            previous: members.str_at(PREVIOUS).map(Arc::from),
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

impl Exchange {
    /// The exchanges of a source in the order of their requests, which are numbered; those that are in
    /// no list come last. O(n log n).
    pub fn numbered(mut exchanges: Vec<Self>) -> Vec<Self> {
        exchanges.sort_by_key(|exchange| (exchange.is_unlisted, exchange.line));
        let listed = exchanges.iter_mut().take_while(|exchange| !exchange.is_unlisted);
        (1..).zip(listed).for_each(|(number, exchange)| exchange.number = number);
        exchanges
    }

    /// The same without what grows with the request: its bodies, what was kept before it, and the frames
    /// of its messages. A list of requests holds these.
    pub(crate) fn into_head(self) -> Self {
        let (frames, request, response, kept) = Default::default();
        Self { frames, request, response, kept, ..self }
    }

    /// Takes what is known of its answer from an exchange that has no request.
    pub(crate) fn take_answer(&mut self, known: Self) {
        let Self { usage, copied, print, answer_frames, last_frame, model, failure, .. } = known;
        (self.usage, self.print) = (usage.or(self.usage.take()), print);
        self.copied = copied.or(self.copied.take());
        self.model = model.or(self.model.take());
        self.failure = failure.or(self.failure.take());
        self.last_frame = self.last_frame.or(last_frame);
        if !answer_frames.is_empty() {
            self.answer_frames = answer_frames;
        }
    }

    /// Where it stands among those of a transcript: before its answer, or else behind its last frame.
    pub(crate) fn place(&self) -> (Option<FrameSeq>, Option<u64>) {
        let last = self.frames.iter().rev().copied().flatten().next();
        (self.answer().or(self.last_frame.max(last)), self.line)
    }

    /// Keeps the bodies of the interaction that it is.
    pub(super) fn keep_bodies(&mut self, interaction: &Interaction) {
        self.request = match self.unread {
            Some(_) => "{}".into(),
            None => interaction.request.text().unwrap_or_default(),
        };
        self.response = interaction.response.text().map(|text| text.to_shared());
    }

    /// Whether the model answered.
    pub fn outcome(&self) -> ExchangeOutcome {
        match (&self.failure, &self.cut) {
            (Some(_), _) => ExchangeOutcome::Failed,
            (None, Some(_)) => ExchangeOutcome::Cut,
            (None, None) if self.is_superseded => ExchangeOutcome::Superseded,
            (None, None) => ExchangeOutcome::Answered,
        }
    }

    /// Whether its whole request was recorded: as it was sent, logged, or joined with what it names.
    pub fn has_whole_request(&self) -> bool {
        self.unread.is_none() && self.provenance.lacks().is_empty()
    }

    /// The model; none is what a client puts in for itself, as `<synthetic>`.
    pub fn answering_model(&self) -> Option<&Arc<str>> {
        self.model.as_ref().filter(|model| !model.starts_with('<'))
    }

    /// The first frame of the answer; `None` where the session holds none.
    pub fn answer(&self) -> Option<FrameSeq> {
        self.answer_frames.first().copied()
    }

    /// The usage as reported, wherever it counts.
    pub fn figures(&self) -> Option<&Usage> {
        self.copied.as_ref().map_or(self.usage.as_ref(), |copied| copied.usage.as_ref())
    }

    pub(crate) fn figures_mut(&mut self) -> &mut Option<Usage> {
        self.copied.as_mut().map_or(&mut self.usage, |copied| &mut copied.usage)
    }

    /// Says that it is a copy of an answer of this session, unless it is known to be one.
    pub fn count_in(&mut self, session: Option<Arc<str>>) {
        if self.copied.is_none() {
            self.copied = Some(CopiedUsage { from: session, usage: self.usage.take() });
        }
    }

    /// Puts another body in the place of the request. O(the body).
    pub fn replace_request(&mut self, body: impl Into<BodyText>) {
        self.request = body.into();
        self.asked = Asked::of_body(self.api, &self.request);
    }

    /// Puts another list of items in the place of those that the provider kept before the request, where
    /// the source has such. O(the list).
    pub fn replace_kept(&mut self, edit: impl FnOnce(&str) -> String) {
        if let Some(kept) = self.kept.take() {
            let items = edit(&kept.items).into();
            self.kept = Some(Arc::new(Kept { items, ..Arc::unwrap_or_clone(kept) }));
        }
    }

    /// Whether the request names a response, or a conversation, that it goes on from: the provider reads
    /// more than it holds.
    pub fn goes_on(&self) -> bool {
        self.asked.goes_on()
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
    pub(crate) fn applied_edits(&self) -> Vec<AppliedEdit> {
        let response = self.response.as_deref().unwrap_or_default();
        AppliedEdit::of_response(self.api, response)
    }

    /// Whether anything was answered.
    pub(super) fn has_answer(&self) -> bool {
        self.failure.as_deref().is_none_or(broke_off)
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
        let model = request.str_at("model").and_then(model_named);
        let response = output.map(|output| {
            let mut response = Object::new();
            response.put("output", output);
            Value::from(response).to_string().into()
        });
        let asked = Asked::of_members(api, &request);
        Some(Self {
            line: Some(line),
            request: Value::from(request).to_string().into(),
            response,
            model,
            usage,
            asked,
            api,
            ..Self::default()
        })
    }

    /// Says which frames the document became, one for each message.
    pub(super) fn place_frames(&mut self, frames: Vec<FrameSeq>) {
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
        self.answer_frames = frames.next().into_iter().collect();
    }
}

/// The name of a model; `None` where it is empty.
pub(super) fn model_named(model: &str) -> Option<Arc<str>> {
    (!model.is_empty()).then(|| model.into())
}
