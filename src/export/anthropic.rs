//! `system` and `messages` of Anthropic's Messages.

use super::{
    ExportOptions, ExportedRequest, Form,
    anthropic_block::{Blocks, is_of_provider, is_thinking},
    breakpoints,
    ids::IdRules,
    owned::OwnedJson,
    pairing::{self, PairRules},
    report::ExportReport,
    turns::{Kind, Turn, Voice, form_of},
};
use crate::{
    id::FrameSeq,
    veil::{ContentForm, Pairs},
};

const RULES: PairRules = PairRules {
    ids: IdRules { longest: 64, plain: true, unique: true, optional: false },
    inline: |_, item| is_of_provider(item),
};

/// What stands first where the context begins with the agent: the first message must be a user's.
const OPENING: &str = "[the conversation before this is not shown]";

/// The role of what stands before the first message, which is no role of a message.
const SYSTEM_PROMPT: &str = "system prompt";

/// A message in the making.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) role: &'static str,
    pub(super) blocks: Vec<Block>,
    /// Whether its content is the text of its only block.
    plain: bool,
}

/// A content block with where it comes from.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) value: OwnedJson,
    /// The frame, or the last one that a block of a compression stands for.
    pub(super) frame: Option<FrameSeq>,
    pub(super) is_block: bool,
    pub(super) in_tail: bool,
}

pub(super) fn write<'a>(
    turns: Vec<Turn<'a>>,
    pairs: &Pairs,
    options: &'a ExportOptions,
) -> ExportedRequest {
    let mut report = ExportReport::default();
    let paired = pairing::pair(turns, pairs, &RULES, options, &mut report);
    let mut system: Option<Message> = None;
    let mut messages: Vec<Message> = Vec::new();
    let mut begun = false;
    for turn in &paired.turns {
        begun |= turn.voice != Voice::System;
        let role = match turn.voice {
            Voice::System if !begun => SYSTEM_PROMPT,
            Voice::System if changes_tools(turn) => "system",
            Voice::System => {
                report.normalise("system_as_user");
                "user"
            }
            Voice::User | Voice::Tool => "user",
            Voice::Agent => "assistant",
        };
        let mut blocks = Blocks { paired: &paired, options, report: &mut report };
        let values = turn.items.iter().filter_map(|item| blocks.block(role, item));
        let Turn { frame, is_block, in_tail, .. } = *turn;
        let block = |value| Block { value, frame, is_block, in_tail };
        let blocks: Vec<Block> = values.map(block).collect();
        if blocks.is_empty() {
            continue;
        }
        let is_text =
            |block: &Block| block.value.get("type").is_some_and(|kind| kind.is_str("text"));
        let plain = form_of(turn) != Some(ContentForm::Parts)
            && blocks.len() == 1
            && blocks.iter().all(is_text);
        let message = Message { role, blocks, plain };
        if begun {
            push(&mut messages, message, &mut report);
        } else {
            match &mut system {
                Some(system) => system.extend(message),
                None => system = Some(message),
            }
        }
    }
    finish(&mut messages, &mut report);
    breakpoints::set(system.as_mut(), &mut messages, &options.breakpoints, &mut report);
    let mut root = OwnedJson::Map(Vec::new());
    if let Some(system) = system {
        root.put("system", system.content());
    }
    root.put("messages", OwnedJson::List(messages.into_iter().map(Message::owned).collect()));
    ExportedRequest { form: Form::Anthropic, root, report }
}

/// Whether a turn of the operator changes the tools in the middle of a conversation: the one kind
/// of message of role `system` that is taken over as it is, since only providers that know it
/// have it.
fn changes_tools(turn: &Turn<'_>) -> bool {
    turn.items.iter().any(|item| {
        item.kind == Kind::Opaque
            && matches!(item.block_type(), Some("tool_addition" | "tool_removal"))
    })
}

/// Adds a message, or its blocks to the last one where that is of the same role.
fn push(messages: &mut Vec<Message>, message: Message, report: &mut ExportReport) {
    if message.role != "assistant" {
        end_of_agent(messages, report);
    }
    match messages.last_mut() {
        Some(last) if last.role == message.role => {
            if message.role != "user" || !message.is_results() || !last.is_results() {
                report.normalise("messages_joined");
            } else {
                report.normalise("results_joined");
            }
            last.extend(message);
        }
        _ => messages.push(message),
    }
}

/// An agent's message must not end in reasoning.
fn end_of_agent(messages: &mut Vec<Message>, report: &mut ExportReport) {
    let Some(last) = messages.last_mut().filter(|last| last.role == "assistant") else { return };
    while last.blocks.last().is_some_and(|block| is_thinking(&block.value)) {
        last.blocks.pop();
        report.drop("reasoning_at_end");
    }
    if last.blocks.is_empty() {
        messages.pop();
    }
}

/// A change of tools stands between the user and the agent; elsewhere it has no place.
fn drop_loose_changes(messages: &mut Vec<Message>, report: &mut ExportReport) {
    let mut rest = std::mem::take(messages).into_iter().peekable();
    while let Some(message) = rest.next() {
        let is_between = messages.last().is_some_and(|last| last.role == "user")
            && rest.peek().is_none_or(|next| next.role == "assistant");
        if message.role == "system" && !is_between {
            report.drop("tool_change");
        } else {
            push(messages, message, report);
        }
    }
}

fn finish(messages: &mut Vec<Message>, report: &mut ExportReport) {
    end_of_agent(messages, report);
    if messages.iter().any(|message| message.role == "system") {
        drop_loose_changes(messages, report);
    }
    if let Some(last) = messages.last_mut().filter(|last| last.role == "assistant")
        && let Some(block) = last.blocks.last_mut()
        && let Some(OwnedJson::Text(mut text)) = block.value.remove("text")
    {
        if text.trim_end() {
            report.normalise("white_space_at_end");
        }
        block.value.put("text", OwnedJson::Text(text));
    }
    if messages.first().is_some_and(|first| first.role == "assistant") {
        report.normalise("opening_added");
        let text = OwnedJson::framing(OPENING, "opening");
        let value = OwnedJson::map([("type", OwnedJson::form("text")), ("text", text)]);
        let block = Block { value, frame: None, is_block: false, in_tail: false };
        messages.insert(0, Message { role: "user", blocks: vec![block], plain: true });
    }
}

impl Message {
    fn extend(&mut self, other: Message) {
        self.blocks.extend(other.blocks);
        self.plain = false;
    }

    fn is_results(&self) -> bool {
        let is_result =
            |block: &Block| block.value.get("type").is_some_and(|kind| kind.is_str("tool_result"));
        self.blocks.iter().all(is_result)
    }

    /// The content: a list of blocks, or a text where the source has one.
    fn content(mut self) -> OwnedJson {
        let is_bare = |block: &Block| block.value.get("cache_control").is_none();
        if self.plain
            && self.blocks.iter().all(is_bare)
            && let Some(text) = self.blocks.last_mut().and_then(|block| block.value.remove("text"))
        {
            return text;
        }
        OwnedJson::List(self.blocks.into_iter().map(|block| block.value).collect())
    }

    fn owned(self) -> OwnedJson {
        let role = OwnedJson::form(self.role);
        OwnedJson::map([("role", role), ("content", self.content())])
    }
}
