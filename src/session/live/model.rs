use serde::{Deserialize, Serialize};

use super::scale::counted_within;
use crate::{
    Error, Result,
    json::{Object, ObjectExt, Value},
    request::RequestOverhead,
    tokens::{Slope, TokenCounter},
    transcript::Api,
    window::Budget,
};

/// What is left for an answer, where nothing else is said: the part of a model's tokens, and the most.
const OUTPUT_SHARE: u64 = 4;
const MOST_OUTPUT: u64 = 8_192;

/// The model that a session asks: how it is spoken to, and how much it takes.
///
/// ```
/// use afterimage::session::Model;
///
/// let model = Model::anthropic("claude-sonnet-4-6", 200_000)
///     .output(16_000)
///     .with("service_tier", "auto");
/// assert_eq!(model.budget().room(), 184_000);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Model {
    /// The API that it speaks.
    pub api: Api,
    /// Its name at the provider.
    pub name: String,
    /// The most tokens that a request and its answer may have.
    pub max_tokens: u64,
    /// How many of them are left for the answer; the most that it may have.
    pub output: u64,
    /// Further members of the request, by the provider's names.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub parameters: Object,
}

impl Model {
    /// A model that takes so many tokens, its answer included. A quarter of them, and at most 8,192,
    /// is left for the answer.
    pub fn new(api: Api, name: impl Into<String>, max_tokens: u64) -> Self {
        let output = (max_tokens / OUTPUT_SHARE).min(MOST_OUTPUT);
        Self { api, name: name.into(), max_tokens, output, parameters: Object::new() }
    }

    /// A model of Anthropic's Messages.
    pub fn anthropic(name: impl Into<String>, max_tokens: u64) -> Self {
        Self::new(Api::Messages, name, max_tokens)
    }

    /// A model of OpenAI's Chat Completions, and of everyone who speaks like them.
    pub fn chat(name: impl Into<String>, max_tokens: u64) -> Self {
        Self::new(Api::Chat, name, max_tokens)
    }

    /// A model of OpenAI's Responses.
    pub fn responses(name: impl Into<String>, max_tokens: u64) -> Self {
        Self::new(Api::Responses, name, max_tokens)
    }

    /// Leaves so many tokens for the answer.
    #[must_use]
    pub fn output(self, tokens: u64) -> Self {
        Self { output: tokens, ..self }
    }

    /// Adds a member to its requests, by the provider's name: `service_tier`, `stream`. What the session
    /// writes itself (`messages`, `tools`, the most tokens of the answer) is refused when it asks. Servers
    /// that know Chat's older `max_tokens` take it so; [`Model::output`] says it for the budget.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.put(name, value);
        self
    }

    /// The budget of its requests, definitions of tools aside.
    pub fn budget(&self) -> Budget {
        Budget::with_reserve(self.max_tokens, self.output)
    }

    /// The budget of a context beside these tools, in tokens of `counter`; each is `slope` tokens of the
    /// model.
    pub(super) fn budget_beside(
        &self,
        tools: &[Value],
        counter: &dyn TokenCounter,
        slope: Slope,
    ) -> Budget {
        let schema = ["response_format", "text", "output_config", "output_format"];
        let schema = schema.into_iter().find_map(|key| self.parameters.get(key));
        let tools = RequestOverhead::of(self.api, tools, schema, counter);
        let room = counted_within(self.budget().room(), slope);
        let most = room.saturating_add(self.output);
        Budget::with_reserve(most, self.output).taking(tools.total())
    }

    /// # Errors
    /// [`ErrorKind::Shape`] where a parameter is a member that the session writes itself, and for an API
    /// whose requests it does not write.
    pub(super) fn expect_own(&self) -> Result<()> {
        if !matches!(self.api, Api::Chat | Api::Messages | Api::Responses) {
            let expected = "the API `chat`, `messages` or `responses`, which sessions write";
            return Err(Error::expected(expected, self.api).under("api"));
        }
        let written =
            ["model", "messages", "input", "system", "instructions", "tools", self.limit_key()];
        match written.into_iter().find(|key| self.parameters.contains_key(key)) {
            None => Ok(()),
            Some(key) => {
                let expected = "parameters that the session does not write itself";
                Err(Error::expected(expected, format_args!("`{key}`")).under("parameters"))
            }
        }
    }

    /// What says the most tokens of an answer.
    fn limit_key(&self) -> &'static str {
        match self.api {
            Api::Messages => "max_tokens",
            Api::Responses => "max_output_tokens",
            _ => "max_completion_tokens",
        }
    }

    /// Whether an exported conversation says nothing.
    pub(super) fn is_empty(&self, conversation: &Value) -> bool {
        let list = conversation.get(self.api.conversation_key()).unwrap_or(conversation);
        list.as_array().is_none_or(<[Value]>::is_empty)
    }

    /// The body of a request: what does not change from turn to turn comes first.
    pub(super) fn body(&self, tools: &[Value], conversation: Value) -> String {
        let mut body = Object::new();
        body.put("model", self.name.as_str());
        // Servers that speak as OpenAI did know the older name.
        if !(self.api == Api::Chat && self.parameters.contains_key("max_tokens")) {
            body.put(self.limit_key(), self.output);
        }
        for (name, value) in &self.parameters {
            body.put(name, value.clone());
        }
        if !tools.is_empty() {
            body.put("tools", Value::Array(tools.to_vec()));
        }
        match conversation {
            Value::Object(conversation) => body.extend(conversation),
            list => body.put(self.api.conversation_key(), list),
        }
        Value::from(body).to_string()
    }
}
