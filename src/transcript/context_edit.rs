use std::collections::HashSet;

use super::Api;
use crate::{
    json::{Object, ObjectExt, Value},
    veil::{Facet, PartContent},
};

/// What is read in the place of a result that the provider cleared.
const CLEARED: &str = "[tool result cleared by the provider]";

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
        let response = api.joined(response);
        response.as_ref().map(Self::of_answer).unwrap_or_default()
    }

    /// The same of an answer that was parsed.
    pub(super) fn of_answer(answer: &Value) -> Vec<Self> {
        let edits = answer.get("context_management").and_then(|of| of.get("applied_edits"));
        let edits = edits.and_then(Value::as_array).unwrap_or_default();
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
        let mut object = Object::new();
        object.put("type", self.kind.as_str());
        object.put("cleared", self.cleared);
        object.put("tokens", self.tokens);
        object.into()
    }
}

crate::json::serialize_through_json!(AppliedEdit);

/// A block of a request that its provider cleared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClearedPart {
    /// The index of the message.
    pub(crate) message: usize,
    /// The index of the block in the message.
    pub(crate) block: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Call {
        id: String,
        name: String,
    },
    Result {
        id: String,
    },
    /// Of the reasoning of a message the one with this index.
    Reasoning(usize),
}

impl ClearedPart {
    /// What edits cleared of a request, in order: of tool uses and of reasoning the oldest, as the
    /// provider documents it, but for tools that the request excludes. `management` is what the
    /// request says of its edits.
    pub(crate) fn of<'v>(
        edits: &[AppliedEdit],
        management: Option<&Value>,
        messages: impl IntoIterator<Item = &'v Value>,
    ) -> Vec<Self> {
        let conversation = Conversation::of(messages);
        let mut cleared: Vec<Self> =
            edits.iter().flat_map(|edit| conversation.cleared_by(edit, management)).collect();
        cleared.sort_by_key(|part| (part.message, part.block));
        cleared
    }

    /// The index of the facet that it is among those of its message.
    pub(crate) fn facet_in<'f>(&self, facets: impl Iterator<Item = &'f Facet>) -> Option<usize> {
        let skipped = if let What::Reasoning(index) = self.what { index } else { 0 };
        let is_it = |facet: &Facet| match (&self.what, facet.part.as_ref().map(|of| &of.content)) {
            (What::Call { id, .. }, Some(PartContent::Call { id: own, .. })) => {
                own.as_deref() == Some(id)
            }
            (What::Result { id }, Some(PartContent::Result { answers, .. })) => {
                answers.as_deref() == Some(id)
            }
            (What::Reasoning(_), Some(PartContent::Reasoning)) => true,
            _ => false,
        };
        let mut those = facets.enumerate().filter(|(_, facet)| is_it(facet));
        those.nth(skipped).map(|(at, _)| at)
    }

    /// Leaves what the model read of its facet, among those of its message.
    pub(super) fn clear(&self, facets: &mut Vec<Facet>) {
        let Some(at) = self.facet_in(facets.iter()) else { return };
        let Some(facet) = facets.get_mut(at) else { return };
        match &self.what {
            What::Call { .. } => {
                if let PartContent::Call { parameters, arguments, .. } =
                    &mut facet.part_mut().content
                {
                    (*parameters, *arguments) = (Some(Object::new().into()), None);
                }
            }
            What::Result { .. } => {
                CLEARED.clone_into(&mut facet.content);
                facet.children.clear();
            }
            What::Reasoning(_) => drop(facets.remove(at)),
        }
    }
}

/// The blocks of a request that a provider may clear, in order.
struct Conversation {
    blocks: Vec<ClearedPart>,
    /// The messages with which the user begins to speak again.
    turns: Vec<usize>,
}

impl Conversation {
    fn of<'v>(messages: impl IntoIterator<Item = &'v Value>) -> Self {
        let (mut blocks, mut turns) = (Vec::new(), Vec::new());
        for (message, value) in messages.into_iter().enumerate() {
            let parts = value.get("content").and_then(Value::as_array).unwrap_or_default();
            let mut reasoning = 0;
            let mut has_result = false;
            for (block, part) in parts.iter().enumerate() {
                let id = |key| part.str_at(key).unwrap_or_default().to_owned();
                let what = match part.str_at("type").unwrap_or_default() {
                    "thinking" | "redacted_thinking" => {
                        reasoning += 1;
                        What::Reasoning(reasoning - 1)
                    }
                    kind if kind.ends_with("tool_use") => {
                        What::Call { id: id("id"), name: id("name") }
                    }
                    kind if kind.ends_with("tool_result") => {
                        has_result = true;
                        What::Result { id: id("tool_use_id") }
                    }
                    _ => continue,
                };
                blocks.push(ClearedPart { message, block, what });
            }
            turns.extend((value.str_at("role") == Some("user") && !has_result).then_some(message));
        }
        Self { blocks, turns }
    }

    fn cleared_by(&self, edit: &AppliedEdit, management: Option<&Value>) -> Vec<ClearedPart> {
        let count = usize::try_from(edit.cleared).unwrap_or(usize::MAX);
        let blocks = self.blocks.iter().cloned();
        if edit.is_of_reasoning() {
            let turn =
                |part: &ClearedPart| self.turns.partition_point(|turn| *turn <= part.message);
            let mut reasoning: Vec<_> =
                blocks.filter(|part| matches!(part.what, What::Reasoning(_))).collect();
            let mut turns: Vec<usize> = reasoning.iter().map(turn).collect();
            turns.dedup();
            let last = count.checked_sub(1).and_then(|at| turns.get(at).or(turns.last()));
            reasoning.retain(|part| last.is_some_and(|last| turn(part) <= *last));
            return reasoning;
        }
        if !edit.is_of_tools() {
            return Vec::new();
        }
        let asked = management.and_then(|of| of.get("edits")?.as_array());
        let asked = asked.unwrap_or_default();
        let asked = asked.iter().find(|of| of.str_at("type") == Some(&edit.kind));
        let names = |key: &str| {
            let listed = asked.and_then(|of| of.get(key)?.as_array()).unwrap_or_default();
            listed.iter().filter_map(Value::as_str).collect::<HashSet<_>>()
        };
        let (excluded, inputs) = (names("exclude_tools"), names("clear_tool_inputs"));
        let all_inputs = asked.and_then(|of| of.get("clear_tool_inputs")?.as_bool()) == Some(true);
        let results = self.blocks.iter().filter_map(|part| match &part.what {
            What::Result { id } => Some(id.as_str()),
            _ => None,
        });
        let results: HashSet<&str> = results.collect();
        let calls = self.blocks.iter().filter_map(|part| match &part.what {
            What::Call { id, name }
                if !excluded.contains(name.as_str()) && results.contains(id.as_str()) =>
            {
                Some(id.as_str())
            }
            _ => None,
        });
        let ids: HashSet<&str> = calls.take(count).collect();
        let is_cleared = |part: &ClearedPart| match &part.what {
            What::Result { id } => ids.contains(id.as_str()),
            What::Call { id, name } => {
                ids.contains(id.as_str()) && (all_inputs || inputs.contains(name.as_str()))
            }
            What::Reasoning(_) => false,
        };
        blocks.filter(is_cleared).collect()
    }
}
