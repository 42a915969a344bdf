//! A span as a request to a model and what came back.

use super::{bodies::shorten, message::SpanMessage, span::SpanRecord, vercel};
use crate::transcript::{
    Api, Exchange, Usage, body::Payload, exchange::model_named, interaction::Interaction,
    times::rfc3339,
};

/// What a span is.
pub(super) enum Call {
    /// A call of a model, with the messages of its request.
    WithMessages(Box<Interaction>),
    /// A call of a model that has its usage alone: no messages of it were kept.
    UsageOnly(Box<Exchange>),
    /// Another operation, by its name.
    Other(String),
}

/// Operations that call a model and get messages.
const INFERENCES: [&str; 6] =
    ["chat", "text_completion", "generate_content", "completion", "responses", "llm"];
/// Operations that never are the call itself, though they may hold its messages.
const OTHERS: [&str; 14] = [
    "agent",
    "chain",
    "create_agent",
    "embedding",
    "embeddings",
    "execute_tool",
    "invoke_agent",
    "invoke_workflow",
    "plan",
    "rerank",
    "retrieval",
    "task",
    "tool",
    "workflow",
];

impl SpanRecord {
    /// The first of these attributes that the span holds as a string. The name of the conventions
    /// stands first in each list, behind it what they called it before and what others call it.
    pub(super) fn text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.attributes.get(key)?.as_str())
    }

    /// The conversation that the span names.
    pub(super) fn conversation(&self) -> Option<&str> {
        let keys = [
            "gen_ai.conversation.id",
            "session.id",
            "traceloop.association.properties.session_id",
            "ai.telemetry.metadata.sessionId",
        ];
        self.text(&keys).filter(|id| !id.is_empty())
    }

    /// The name of the operation, in small letters.
    fn operation(&self) -> Option<String> {
        if let Some(is_call) = vercel::is_call(&self.attributes) {
            // What holds a call says it again.
            return Some(if is_call { "chat" } else { "chain" }.to_owned());
        }
        let keys = [
            "gen_ai.operation.name",
            "llm.request.type",
            "openinference.span.kind",
            "traceloop.span.kind",
        ];
        self.text(&keys).map(str::to_ascii_lowercase)
    }

    /// Whether it calls a model: by its operation, or else by the usage that it states.
    pub(super) fn is_call(&self) -> bool {
        match self.operation() {
            Some(operation) => INFERENCES.contains(&&*operation),
            None => self.usage().is_some(),
        }
    }

    pub(super) fn model(&self) -> Option<&str> {
        let keys = [
            "gen_ai.request.model",
            "gen_ai.response.model",
            "llm.request.model",
            "llm.model_name",
            "ai.model.id",
        ];
        self.text(&keys)
    }

    /// The API whose form the request is written in.
    fn api(&self) -> Api {
        let keys = ["gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"];
        let provider = self.text(&keys).unwrap_or_default().to_ascii_lowercase();
        let hosts_several = ["bedrock", "vertex"].iter().any(|host| provider.contains(host));
        let is_claude = self.model().is_some_and(|model| model.contains("claude"));
        let is_messages = provider == "anthropic" || hosts_several && is_claude;
        if is_messages { Api::Messages } else { Api::Chat }
    }

    /// What is wrong with the call.
    fn failure(&self) -> Option<String> {
        let kind = self.text(&["error.type"]);
        if let (true, Some(reason)) = (self.is_own, &self.failure) {
            return Some(reason.clone());
        }
        match (kind, self.failure.as_deref()) {
            (Some(kind), Some("an error") | None) => Some(format!("error {kind}")),
            (Some(kind), Some(message)) => Some(format!("error {kind}: {message}")),
            (None, message) => message.map(str::to_owned),
        }
    }

    /// What the span is. Notes are what was cut, and what has another shape.
    pub(super) fn into_call(self, notes: &mut Vec<String>) -> Call {
        let operation = self.operation();
        let named = operation.as_deref().unwrap_or_default();
        if OTHERS.contains(&named) {
            return Call::Other(named.to_owned());
        }
        let input = self.input(notes).unwrap_or_default();
        if input.iter().any(SpanMessage::says_something) {
            return Call::WithMessages(Box::new(self.into_interaction(input, notes)));
        }
        let is_inference = INFERENCES.contains(&named) || operation.is_none();
        match self.usage().as_ref().and_then(Usage::of) {
            _ if !is_inference => Call::Other(named.to_owned()),
            Some(usage) => Call::UsageOnly(Box::new(self.unlisted(usage))),
            None => Call::Other("call without messages and usage".to_owned()),
        }
    }

    fn unlisted(&self, usage: Usage) -> Exchange {
        Exchange {
            model: self.model().and_then(model_named),
            usage: Some(usage),
            time: self.started(),
            failure: self.failure(),
            is_unlisted: true,
            ..Exchange::default()
        }
    }

    fn into_interaction(self, input: Vec<SpanMessage>, notes: &mut Vec<String>) -> Interaction {
        let (api, usage, failure) = (self.api(), self.usage(), self.failure());
        let mut request = self.request(api, input, notes);
        shorten(&mut request, "request", notes);
        let output = self.output(notes);
        let has_ended = failure.is_none() && (usage.is_some() || self.end.is_some());
        let response = if output.is_empty() && !has_ended {
            Payload::Absent
        } else {
            let mut response = self.response(api, output, usage.as_ref());
            shorten(&mut response, "response", notes);
            Payload::Json(response)
        };
        Interaction {
            uri: if api == Api::Messages { "/messages" } else { "/chat/completions" }.to_owned(),
            request: Payload::Json(request),
            response,
            status: self.text(&["error.type"]).and_then(|kind| kind.parse().ok()),
            started: self.started(),
            duration_ms: self.duration(),
            failure,
            line: self.line,
            usage,
            is_logged: true,
            ..Interaction::default()
        }
    }

    /// Whether afterimage made up the times, since its source had none.
    fn has_made_up_time(&self) -> bool {
        let of = self.text(&["afterimage.time"]).filter(|_| self.is_own);
        of.is_some_and(|time| matches!(time, "neighbour" | "order"))
    }

    /// How long the call took, in milliseconds.
    fn duration(&self) -> Option<u64> {
        let has_end = self.text(&["afterimage.time"]).filter(|_| self.is_own) != Some("start");
        let duration = self.end?.checked_sub(self.start?)?;
        (has_end && !self.has_made_up_time()).then_some(duration / 1_000_000)
    }

    fn started(&self) -> Option<String> {
        self.start.filter(|_| !self.has_made_up_time()).map(rfc3339)
    }
}
