//! The places of a request at which a cache may begin to serve, in the cache's order.

use std::collections::HashMap;

use super::rules::Section;
use crate::{
    Result,
    export::CountedLeaf,
    json::{PathElement, Value},
    request::Request,
    transcript::Api,
};

/// A request as a cache reads it.
pub(super) struct Layout {
    pub(super) positions: Vec<Position>,
    /// The tokens of the whole request, as they are counted here.
    pub(super) tokens: u64,
    /// The end of each section of the order.
    pub(super) section_ends: [End; 3],
    /// Whether the request asks for its own breakpoints alone (`prompt_cache_options`).
    pub(super) is_explicit: bool,
}

/// The end of a tool, of a block of the system prompt, or of a block of a message.
pub(super) struct Position {
    pub(super) end: End,
    pub(super) kind: BlockKind,
    pub(super) mark: Option<Mark>,
    pub(super) message: MessageEnd,
}

/// Where something ends: how many values of the request stand before that, and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    pub(super) leaves: usize,
    pub(super) tokens: u64,
}

/// A block that a request asks the cache to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Whether it asks for the longer lifetime.
    pub(super) is_long: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Call,
    Result,
    /// No mark may stand on it.
    Reasoning,
    Other,
}

/// What ends at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageEnd {
    /// No message.
    None,
    /// A message after which a provider sets no breakpoint of its own.
    Other,
    /// A message after which it may.
    Eligible,
    /// The last of the operator's messages at the beginning.
    Opening,
}

type Ends = HashMap<(Section, usize, Option<usize>), End>;

impl Layout {
    /// The layout of a request whose values are these, in this order of sections.
    pub(super) fn of(
        request: &Request,
        leaves: &[CountedLeaf],
        order: [Section; 3],
    ) -> Result<Self> {
        let (body, api) = (request.value()?, request.api());
        let (mut ends, mut section_ends) = (Ends::new(), [End::default(); 3]);
        let mut running = End::default();
        for leaf in leaves {
            running = End { leaves: running.leaves + 1, tokens: running.tokens + leaf.tokens };
            let Some((section, index, part)) = place(&leaf.path, api) else { continue };
            ends.insert((section, index, None), running);
            if part.is_some() {
                ends.insert((section, index, part), running);
            }
            for (end, of) in section_ends.iter_mut().zip(order) {
                if of == section {
                    *end = running;
                }
            }
        }
        // A section that is not there ends where the one before it does.
        let mut last = End::default();
        for end in &mut section_ends {
            last = if end.leaves < last.leaves { last } else { *end };
            *end = last;
        }
        let mut positions = Vec::new();
        for section in order {
            match section {
                Section::Tools => add_blocks(body, "tools", section, &ends, &mut positions),
                Section::System => {
                    add_blocks(body, api.system_key(), section, &ends, &mut positions);
                }
                Section::Messages => add_messages(body, api, &ends, &mut positions),
            }
        }
        if let (Api::Messages, Some(mark)) = (api, mark_of(body)) {
            let last = positions.iter_mut().rev().find(|of| of.kind != BlockKind::Reasoning);
            last.into_iter().for_each(|position| position.mark = Some(mark));
        }
        let options = body.get("prompt_cache_options");
        let mode = options.and_then(|options| options.str_at("mode"));
        let is_explicit = mode == Some("explicit");
        Ok(Self { positions, tokens: running.tokens, section_ends, is_explicit })
    }

    /// The positions that are marked, in order.
    pub(super) fn marked(&self) -> impl DoubleEndedIterator<Item = (usize, &Position, Mark)> {
        let positions = self.positions.iter().enumerate();
        positions.filter_map(|(at, position)| Some((at, position, position.mark?)))
    }

    /// The ends of messages after which a provider sets breakpoints of its own.
    pub(super) fn eligible(&self) -> impl DoubleEndedIterator<Item = &Position> {
        let is_eligible =
            |of: &&Position| matches!(of.message, MessageEnd::Eligible | MessageEnd::Opening);
        self.positions.iter().filter(is_eligible)
    }
}

/// Where a value stands: its section, the index in it, and the index of the block of a message.
pub(super) fn place(path: &[PathElement], api: Api) -> Option<(Section, usize, Option<usize>)> {
    let index = |at: usize| match path.get(at) {
        Some(PathElement::Index(index)) => Some(*index),
        _ => None,
    };
    let Some(PathElement::Key(key)) = path.first() else { return None };
    let section = match key.as_str() {
        "tools" => Section::Tools,
        key if key == api.system_key() => Section::System,
        key if key == api.conversation_key() => Section::Messages,
        _ => return None,
    };
    let is_content = match path.get(2) {
        Some(PathElement::Key(key)) => matches!(key.as_str(), "content" | "output"),
        _ => false,
    };
    let part = index(3).filter(|_| is_content && section == Section::Messages);
    Some((section, index(1).unwrap_or(0), part))
}

fn add_blocks(
    body: &Value,
    key: &str,
    section: Section,
    ends: &Ends,
    positions: &mut Vec<Position>,
) {
    let blocks = match body.get(key) {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        Some(other) => std::slice::from_ref(other),
        None => &[],
    };
    for (index, block) in blocks.iter().enumerate() {
        let Some(end) = ends.get(&(section, index, None)) else { continue };
        let (kind, message) = (BlockKind::Other, MessageEnd::None);
        positions.push(Position { end: *end, kind, mark: mark_of(block), message });
    }
}

fn add_messages(body: &Value, api: Api, ends: &Ends, positions: &mut Vec<Position>) {
    let messages = match body.get(api.conversation_key()) {
        Some(Value::Array(messages)) => messages.as_slice(),
        Some(other) => std::slice::from_ref(other),
        None => &[],
    };
    let opening = messages.iter().take_while(|of| Speaker::of(of) == Speaker::Operator).count();
    for (index, message) in messages.iter().enumerate() {
        let Some(whole) = ends.get(&(Section::Messages, index, None)) else { continue };
        let listed = |key: &str| message.get(key).and_then(Value::as_array);
        let parts = listed("content").or_else(|| listed("output")).unwrap_or_default();
        let next = messages.get(index + 1).map(Speaker::of);
        let message_end = match Speaker::of(message) {
            Speaker::Operator if index + 1 == opening => MessageEnd::Opening,
            Speaker::User => MessageEnd::Eligible,
            Speaker::Tool if next != Some(Speaker::Tool) => MessageEnd::Eligible,
            _ => MessageEnd::Other,
        };
        let last = parts.len().saturating_sub(1);
        for (part, block) in parts.iter().enumerate() {
            let (end, message) = if part == last {
                (Some(whole), message_end)
            } else {
                (ends.get(&(Section::Messages, index, Some(part))), MessageEnd::None)
            };
            let Some(end) = end else { continue };
            let kind = BlockKind::of(block);
            positions.push(Position { end: *end, kind, mark: mark_of(block), message });
        }
        if parts.is_empty() {
            let kind = BlockKind::of(message);
            positions.push(Position { end: *whole, kind, mark: None, message: message_end });
        }
    }
}

impl BlockKind {
    fn of(block: &Value) -> Self {
        match block.str_at("type").unwrap_or_default() {
            "tool_use" => Self::Call,
            "tool_result" => Self::Result,
            "thinking" | "redacted_thinking" => Self::Reasoning,
            _ => Self::Other,
        }
    }
}

/// Who speaks in a message, as far as a provider's own breakpoints depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Operator,
    User,
    Tool,
    Other,
}

impl Speaker {
    fn of(message: &Value) -> Self {
        match message.str_at("role") {
            Some("developer" | "system") => Self::Operator,
            Some("user") => Self::User,
            Some("tool" | "function") => Self::Tool,
            Some(_) => Self::Other,
            // An item of Responses, or an input that is a text.
            None => match message.str_at("type") {
                Some(kind) if kind.ends_with("_output") => Self::Tool,
                Some(_) => Self::Other,
                None => Self::User,
            },
        }
    }
}

/// The mark of a block, a tool or a request.
fn mark_of(value: &Value) -> Option<Mark> {
    let there = |key: &str| value.get(key).filter(|mark| **mark != Value::Null);
    let mark = there("cache_control").or_else(|| there("prompt_cache_breakpoint"))?;
    Some(Mark { is_long: mark.str_at("ttl") == Some("1h") })
}
