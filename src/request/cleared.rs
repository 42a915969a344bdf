//! What a provider took out of a request before the model read it.

use std::collections::HashSet;

use super::{Recording, Request};
use crate::{
    Result,
    id::{FacetId, FrameSeq},
    json::{Path, PathElement, Value},
    transcript::AppliedEdit,
    veil::{Facet, FacetChange, History, PartContent},
};

/// A block of a message that was sent, and that the model did not read: its provider cleared it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClearedBlock {
    /// The index of the message.
    pub message: usize,
    /// The index of the block in the message.
    pub block: usize,
    /// The frame of the message, where the session has one.
    pub frame: Option<FrameSeq>,
    /// The facet that the block is in this frame.
    pub facet: Option<FacetId>,
}

impl ClearedBlock {
    /// Whether the value at this path of the request is in the block, and no word of its form.
    pub fn holds(&self, path: &Path) -> bool {
        let index =
            |at: usize, index: usize| path.elements().get(at) == Some(&PathElement::Index(index));
        let is_word = matches!(path.elements().last(), Some(PathElement::Key(key)) if matches!(key.as_str(), "type" | "tool_use_id" | "id" | "name"));
        index(1, self.message) && index(3, self.block) && !is_word
    }
}

impl Recording {
    /// What the provider cleared of the request with this number, by what its answer says: of tool
    /// uses and of reasoning the oldest, as the provider documents it, but for tools that the request
    /// excludes. Empty where it cleared nothing; else it costs what [`Recording::request`] does, and
    /// parses the body.
    ///
    /// # Errors
    /// As [`Recording::request`] and [`Request::value`].
    pub fn cleared(&self, number: usize) -> Result<Vec<ClearedBlock>> {
        let exchange = number.checked_sub(1).and_then(|at| self.exchanges().get(at));
        let Some(exchange) = exchange.filter(|of| !of.edits.is_empty()) else {
            return Ok(Vec::new());
        };
        self.request(number)?.cleared(&exchange.edits, self.history(&exchange.session))
    }
}

impl Request {
    /// What these edits cleared of the request: as [`Recording::cleared`], with the facets where the
    /// frames of its session are given. Parses the body.
    ///
    /// # Errors
    /// As [`Request::value`].
    pub fn cleared(
        &self,
        edits: &[AppliedEdit],
        history: Option<&History>,
    ) -> Result<Vec<ClearedBlock>> {
        let block = |Place { message, block, what }: Place<'_>| {
            let frame = self.frame_of(message);
            let frame_of = frame.and_then(|frame| history?.get(frame));
            let facets = frame_of.iter().flat_map(|frame| &frame.ops);
            let added = facets.filter_map(|op| match &op.change {
                FacetChange::Add(facet) => Some(&**facet),
                _ => None,
            });
            let facet = added.filter(|facet| what.is(facet)).nth(what.skipped());
            ClearedBlock { message, block, frame, facet: facet.map(|facet| facet.id.clone()) }
        };
        let cleared = Conversation::of(self)?.cleared(edits);
        Ok(cleared.into_iter().map(block).collect())
    }
}

/// A block and where it stands.
#[derive(Clone, Copy)]
struct Place<'v> {
    message: usize,
    block: usize,
    what: What<'v>,
}

#[derive(Clone, Copy)]
enum What<'v> {
    Call {
        id: &'v str,
        name: &'v str,
    },
    Result {
        id: &'v str,
    },
    /// Of the reasoning of a message the one with this index.
    Reasoning(usize),
}

impl What<'_> {
    fn is(&self, facet: &Facet) -> bool {
        let content = facet.part.as_ref().map(|part| &part.content);
        match (self, content) {
            (Self::Call { id, .. }, Some(PartContent::Call { id: own, .. })) => {
                own.as_deref() == Some(*id)
            }
            (Self::Result { id }, Some(PartContent::Result { answers, .. })) => {
                answers.as_deref() == Some(*id)
            }
            (Self::Reasoning(_), Some(PartContent::Reasoning)) => true,
            _ => false,
        }
    }

    fn skipped(&self) -> usize {
        match self {
            Self::Reasoning(index) => *index,
            _ => 0,
        }
    }
}

/// The blocks of a request that a provider may clear, in order.
struct Conversation<'v> {
    body: &'v Value,
    blocks: Vec<Place<'v>>,
    /// The messages with which the user begins to speak again.
    turns: Vec<usize>,
}

impl<'v> Conversation<'v> {
    fn of(request: &'v Request) -> Result<Self> {
        let body = request.value()?;
        let (mut blocks, mut turns) = (Vec::new(), Vec::new());
        let messages = body.get("messages").and_then(Value::as_array).unwrap_or_default();
        for (message, value) in messages.iter().enumerate() {
            let parts = value.get("content").and_then(Value::as_array).unwrap_or_default();
            let mut reasoning = 0;
            let mut has_result = false;
            for (block, part) in parts.iter().enumerate() {
                let id = |key| part.str_at(key).unwrap_or_default();
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
                blocks.push(Place { message, block, what });
            }
            turns.extend((value.str_at("role") == Some("user") && !has_result).then_some(message));
        }
        Ok(Self { body, blocks, turns })
    }

    fn cleared(&self, edits: &[AppliedEdit]) -> Vec<Place<'v>> {
        let mut cleared: Vec<Place<'_>> =
            edits.iter().flat_map(|edit| self.cleared_by(edit)).collect();
        cleared.sort_by_key(|place| (place.message, place.block));
        cleared
    }

    fn cleared_by(&self, edit: &AppliedEdit) -> Vec<Place<'v>> {
        let count = usize::try_from(edit.cleared).unwrap_or(usize::MAX);
        let blocks = self.blocks.iter().copied();
        if edit.is_of_reasoning() {
            let turn =
                |place: &Place<'_>| self.turns.partition_point(|turn| *turn <= place.message);
            let mut reasoning: Vec<_> =
                blocks.filter(|place| matches!(place.what, What::Reasoning(_))).collect();
            let mut turns: Vec<usize> = reasoning.iter().map(turn).collect();
            turns.dedup();
            let last = count.checked_sub(1).and_then(|at| turns.get(at).or(turns.last()));
            reasoning.retain(|place| last.is_some_and(|last| turn(place) <= *last));
            return reasoning;
        }
        if !edit.is_of_tools() {
            return Vec::new();
        }
        let asked = self.body.get("context_management").and_then(|of| of.get("edits")?.as_array());
        let asked = asked.unwrap_or_default();
        let asked = asked.iter().find(|of| of.str_at("type") == Some(&edit.kind));
        let names = |key: &str| {
            let listed = asked.and_then(|of| of.get(key)?.as_array()).unwrap_or_default();
            listed.iter().filter_map(Value::as_str).collect::<HashSet<_>>()
        };
        let (excluded, inputs) = (names("exclude_tools"), names("clear_tool_inputs"));
        let all_inputs = asked.and_then(|of| of.get("clear_tool_inputs")?.as_bool()) == Some(true);
        let results = self.blocks.iter().filter_map(|place| match place.what {
            What::Result { id } => Some(id),
            _ => None,
        });
        let results: HashSet<&str> = results.collect();
        let calls = self.blocks.iter().filter_map(|place| match place.what {
            What::Call { id, name } if !excluded.contains(name) && results.contains(id) => {
                Some((id, name))
            }
            _ => None,
        });
        let ids: HashSet<&str> = calls.take(count).map(|(id, _)| id).collect();
        let is_cleared = |place: &Place<'_>| match place.what {
            What::Result { id } => ids.contains(id),
            What::Call { id, name } => ids.contains(id) && (all_inputs || inputs.contains(name)),
            What::Reasoning(_) => false,
        };
        blocks.filter(is_cleared).collect()
    }
}
