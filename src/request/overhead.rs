//! What a request holds besides its messages.

use super::{Request, compare::tool_list};
use crate::{json::Value, tokens::TokenCounter, transcript::Api};

/// What Anthropic adds to a request with tools: the most that the reported inputs of recorded
/// requests show (465 with Claude Sonnet 4.6, 606 with Claude Opus 4.8). Its documentation says 346
/// for earlier models.
const ANTHROPIC_TOOLS: u64 = 606;

/// What OpenAI's chat models add to a list of functions (OpenAI's Cookbook, "How to count tokens
/// with tiktoken").
const OPENAI_TOOLS: u64 = 12;

/// What a request adds to its messages, in tokens: [`Budget::taking`](crate::window::Budget::taking)
/// takes it off the room of contexts.
///
/// Definitions and schemas count as their JSON is written, which is an estimate: providers put them
/// in words of their own. What a provider's own tools add (web search, the execution of code) is
/// published by none, and is not in it.
///
/// ```
/// use afterimage::{json, request::RequestOverhead, tokens::Chars4, transcript::Api, window::Budget};
///
/// let tools = json::read(br#"[{"name": "tide", "input_schema": {"type": "object"}}]"#)?;
/// let overhead = RequestOverhead::of(Api::Chat, tools.as_array().unwrap(), None, &Chars4);
/// assert_eq!((overhead.tools, overhead.around, overhead.schemas), (12, 12, 0));
/// assert_eq!(Budget::new(8_000).taking(overhead.total()).room(), 8_000 - 24);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestOverhead {
    /// The definitions of the tools.
    pub tools: u64,
    /// What the provider adds to a list of tools.
    pub around: u64,
    /// The schemas of structured output.
    pub schemas: u64,
}

impl RequestOverhead {
    /// Of these definitions of tools, and of the schema that answers are to have. Counts each.
    /// O(their JSON).
    pub fn of(
        api: Api,
        tools: &[Value],
        schema: Option<&Value>,
        counter: &dyn TokenCounter,
    ) -> Self {
        let count = |value: &Value| counter.count(&value.to_string()) as u64;
        let around = match api {
            _ if tools.is_empty() => 0,
            Api::Messages => ANTHROPIC_TOOLS,
            Api::Chat | Api::Responses => OPENAI_TOOLS,
            // Nobody says it.
            Api::Gemini | Api::Ollama | Api::Generate | Api::Converse => 0,
        };
        let tools = tools.iter().map(count).fold(0, u64::saturating_add);
        Self { tools, around, schemas: schema.map_or(0, count) }
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.tools.saturating_add(self.around).saturating_add(self.schemas)
    }

    /// The larger of two, for requests of one session that offer different tools.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if self.total() >= other.total() { self } else { other }
    }
}

impl Request {
    /// What it adds to its messages. Reads and counts it; a body that is no JSON adds nothing.
    /// O(the body).
    pub fn overhead(&self, counter: &dyn TokenCounter) -> RequestOverhead {
        let Ok(body) = self.value() else { return RequestOverhead::default() };
        let listed = |key: &str| body.get(key).and_then(Value::as_array).unwrap_or_default();
        // Older requests to Chat Completions have `functions`.
        let own = body.as_object().map(tool_list).unwrap_or_default().into_iter();
        let tools: Vec<Value> = own.chain(listed("functions")).cloned().collect();
        let [alone, within, format] = match self.api() {
            Api::Chat => ["response_format", "", ""],
            Api::Responses => ["", "text", "format"],
            Api::Messages => ["output_format", "output_config", "format"],
            Api::Gemini => ["", "generationConfig", "responseJsonSchema"],
            Api::Ollama | Api::Generate | Api::Converse => ["", "", ""],
        };
        let schema = body.get(alone).or_else(|| body.get(within)?.get(format));
        let is_schema = |schema: &&Value| {
            self.api() == Api::Gemini || schema.str_at("type") == Some("json_schema")
        };
        let schema = schema.filter(is_schema);
        RequestOverhead::of(self.api(), &tools, schema, counter)
    }
}
