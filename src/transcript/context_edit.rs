use super::{Api, BodyText, body::Payload};
use crate::json::{ObjectExt, Value};

/// Something that a provider took out of a request before the model read it: what Anthropic's
/// `context_management` applied.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEdit {
    /// The provider's name for it, as `clear_tool_uses_20250919`.
    pub kind: String,
    /// How many tool uses, or turns with reasoning, were cleared: the oldest ones.
    pub cleared: u64,
    /// The tokens that they had, as the provider says.
    pub tokens: u64,
}

impl AppliedEdit {
    /// The edits that an answer says were applied, and that cleared something. Parses the answer
    /// where it may name one.
    pub(super) fn of_response(api: Api, response: &str) -> Vec<Self> {
        let is_named = memchr::memmem::find(response.as_bytes(), b"\"cleared_").is_some();
        if api != Api::Messages || !is_named {
            return Vec::new();
        }
        let response = api.response(&Payload::Text(BodyText::from(response)));
        let edits = response.as_ref().and_then(|of| of.get("context_management"));
        let edits = edits.and_then(|of| of.get("applied_edits")?.as_array()).unwrap_or_default();
        edits.iter().filter_map(Self::of).collect()
    }

    fn of(edit: &Value) -> Option<Self> {
        let number = |key: &str| edit.get(key).and_then(Value::as_u64);
        let cleared = number("cleared_tool_uses").or_else(|| number("cleared_thinking_turns"));
        let (cleared, tokens) = (cleared?, number("cleared_input_tokens").unwrap_or(0));
        let kind = edit.str_at("type")?.to_owned();
        (cleared > 0).then_some(Self { kind, cleared, tokens })
    }

    /// Whether it cleared results of tools.
    pub fn is_of_tools(&self) -> bool {
        self.kind.starts_with("clear_tool_uses")
    }

    /// Whether it cleared reasoning.
    pub fn is_of_reasoning(&self) -> bool {
        self.kind.starts_with("clear_thinking")
    }

    /// What was cleared, for people. O(length of the words).
    pub fn words(&self) -> String {
        let Self { kind, cleared, tokens } = self;
        let plural = if *cleared == 1 { "" } else { "s" };
        let what = match () {
            () if self.is_of_tools() => format!("{cleared} tool result{plural}"),
            () if self.is_of_reasoning() => format!("the reasoning of {cleared} turn{plural}"),
            () => format!("{cleared} of `{kind}`"),
        };
        format!("{what}, {tokens} tokens")
    }

    /// The wire form: `type`, `cleared`, `tokens`. O(1).
    pub fn to_json(&self) -> Value {
        let mut object = crate::json::Object::new();
        object.put("type", self.kind.as_str());
        object.put("cleared", self.cleared);
        object.put("tokens", self.tokens);
        object.into()
    }
}
