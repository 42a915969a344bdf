//! `messages` of OpenAI's Chat Completions.

use super::{
    ExportOptions, Exported,
    ids::{self, IdRules},
    image::Image,
    members,
    owned::Owned,
    pairing::{self, PairRules, Paired},
    report::ExportReport,
    turns::{Item, Kind, Turn, Voice, form_of},
};
use crate::json::Value;

/// OpenAI refuses longer ids; two calls of one message must differ, those of two need not.
const RULES: PairRules =
    PairRules { ids: IdRules { longest: 40, plain: false, unique: false }, inline: |_, _| false };

/// Members of a message that OpenAI or one of its relatives takes back.
const MEMBERS: [&str; 10] = [
    "name",
    "reasoning_content",
    "reasoning",
    "refusal",
    "annotations",
    "audio",
    "reasoning_details",
    "thought_signature",
    "extra_content",
    "prefix",
];
/// Those of them that may be `null`.
const NULLABLE: [&str; 2] = ["refusal", "audio"];
/// Fields in which relatives of OpenAI have the reasoning.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

pub(super) fn write<'a>(turns: Vec<Turn<'a>>, options: &'a ExportOptions) -> Exported {
    let mut report = ExportReport::default();
    let paired = pairing::pair(turns, &RULES, options, &mut report);
    let mut writer = Writer { paired: &paired, report: &mut report };
    let mut messages = Vec::new();
    let mut rest = paired.turns.as_slice();
    while let Some((turn, _)) = rest.split_first() {
        let len = joined(rest);
        let (group, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        rest = after;
        if len > 1 {
            writer.report.normalise("messages_joined");
        }
        messages.extend(match turn.voice {
            Voice::Tool => writer.result(turn),
            voice => writer.message(voice, group),
        });
    }
    Exported { root: Owned::List(messages), report }
}

/// How many turns make the next message: a turn of the agent with calls goes on until the results
/// come, which must follow directly.
fn joined(turns: &[Turn<'_>]) -> usize {
    let is_call = |item: &Item<'_>| matches!(item.kind, Kind::Call { .. });
    let of_agent = turns.iter().take_while(|turn| turn.voice == Voice::Agent).count();
    match turns.iter().take(of_agent).position(|turn| turn.items.iter().any(is_call)) {
        Some(0) => of_agent,
        _ => 1,
    }
}

struct Writer<'w, 'a> {
    paired: &'w Paired<'a>,
    report: &'w mut ExportReport,
}

impl<'a> Writer<'_, 'a> {
    fn message(&mut self, voice: Voice, turns: &[Turn<'a>]) -> Option<Owned> {
        let first = turns.first()?;
        let mut message = Owned::map([("role", Owned::form(role(voice, first)))]);
        let mut texts: Vec<Owned> = Vec::new();
        let mut parts: Vec<Owned> = Vec::new();
        let mut calls: Vec<Owned> = Vec::new();
        let mut beside: Vec<(&str, Owned)> = Vec::new();
        for item in turns.iter().flat_map(|turn| &turn.items) {
            match item.kind {
                Kind::Call { number, .. } if voice == Voice::Agent => {
                    match self.call(item, number) {
                        Some((call, true)) => beside.push(("function_call", call)),
                        Some((call, false)) => calls.push(call),
                        None => {}
                    }
                }
                Kind::Reasoning => match item.origin_str("field") {
                    Some(field) if voice == Voice::Agent && REASONING.contains(&field) => {
                        beside.push((field, item.text()));
                    }
                    _ => self.report.drop("reasoning"),
                },
                Kind::Text if item.origin_str("field") == Some("refusal") => {
                    beside.push(("refusal", item.text()));
                }
                _ => {
                    if let Some(part) = self.part(voice, item) {
                        if part.get("type").is_some_and(|kind| kind.is_str("text")) {
                            texts.push(item.text());
                        }
                        parts.push(part);
                    }
                }
            }
        }
        if parts.is_empty() && calls.is_empty() && beside.is_empty() {
            return None;
        }
        let form = if turns.len() == 1 { form_of(first) } else { None };
        let has_text = !parts.is_empty();
        let is_list = form == Some("parts") || parts.len() > 1 || parts.len() != texts.len();
        let content = if !has_text {
            match form {
                Some("absent") => None,
                Some("empty") => Some(Owned::form("")),
                _ => Some(Owned::Null),
            }
        } else if is_list {
            Some(Owned::List(parts))
        } else {
            texts.pop()
        };
        if let Some(content) = content {
            message.put("content", content);
        }
        for (key, value) in beside {
            // The legacy form has one call a message.
            if message.get(key).is_some() {
                self.report.drop("second_of_a_field");
            } else {
                message.put(key, value);
            }
        }
        if !calls.is_empty() {
            message.put("tool_calls", Owned::List(calls));
        }
        for turn in turns {
            members::take_over(&mut message, turn, &MEMBERS, &NULLABLE, self.report);
        }
        Some(message)
    }

    /// A call, and whether it is in the legacy form.
    fn call(&mut self, item: &Item<'a>, number: usize) -> Option<(Owned, bool)> {
        let call = self.paired.call(number)?;
        let name = ids::tool_name(call.name, &item.owner, self.report);
        if call.field == Some("function_call") {
            let call = Owned::map([("name", name), ("arguments", item.text())]);
            return Some((call, true));
        }
        let id = call.id.owned(&item.owner);
        let is_custom = item.origin_str("type") == Some("custom");
        let (kind, input) = if is_custom { ("custom", "input") } else { ("function", "arguments") };
        let inner = Owned::map([("name", name), (input, item.text())]);
        let mut call = Owned::map([("id", id), ("type", Owned::form(kind)), (kind, inner)]);
        let taken = ["extra_content", "thought_signature"];
        members::take_over_origin(&mut call, item.origin(), &taken, &item.owner, self.report);
        Some((call, false))
    }

    fn part(&mut self, voice: Voice, item: &Item<'a>) -> Option<Owned> {
        let image = Image::of(item).filter(|_| voice == Voice::User);
        let origin = item.origin();
        match (item.kind, image) {
            (Kind::Image, Some(image)) => {
                let mut inner = Owned::map([("url", image.url(&item.owner))]);
                let detail = origin.and_then(|origin| {
                    origin.pointer("/image_url/detail").or_else(|| origin.get("detail"))
                });
                if let Some(detail) = detail.and_then(Value::as_str) {
                    inner.put("detail", Owned::of_text(detail, &item.owner));
                }
                Some(Owned::map([("type", Owned::form("image_url")), ("image_url", inner)]))
            }
            (Kind::Opaque, _) if voice == Voice::User && is_part(origin) => {
                origin.map(|origin| Owned::of_value(origin, &item.owner))
            }
            (Kind::Opaque, _) if is_hidden_reasoning(origin) => {
                self.report.drop("reasoning");
                None
            }
            (Kind::Text, _) if item.origin_str("type") == Some("refusal") => {
                Some(Owned::map([("type", Owned::form("refusal")), ("refusal", item.text())]))
            }
            _ => {
                if item.kind != Kind::Text {
                    self.report.normalise("part_as_its_text");
                }
                if item.text.as_str().is_empty() {
                    return None;
                }
                let mut part = Owned::map([("type", Owned::form("text")), ("text", item.text())]);
                if item.kind == Kind::Text {
                    members::take_over_origin(&mut part, origin, &[], &item.owner, self.report);
                }
                Some(part)
            }
        }
    }

    /// A message that is the result of a call. It holds text alone.
    fn result(&mut self, turn: &Turn<'a>) -> Option<Owned> {
        let item = turn.items.first()?;
        let Kind::Result { number, .. } = item.kind else { return None };
        let call = self.paired.call(number)?;
        let mut message = if call.field == Some("function_call") {
            let name = ids::tool_name(call.name, &call.owner, &mut ExportReport::default());
            Owned::map([("role", Owned::form("function")), ("name", name)])
        } else {
            let id = call.id.owned(&call.owner);
            Owned::map([("role", Owned::form("tool")), ("tool_call_id", id)])
        };
        let form = form_of(turn).or_else(|| item.origin_str("form"));
        let content = if item.inside.is_empty() {
            item.text()
        } else {
            let mut parts = Vec::new();
            self.texts(item, &mut parts);
            let part = |text| Owned::map([("type", Owned::form("text")), ("text", text)]);
            match (parts.len(), form) {
                (0, _) => item.text(),
                (1, form) if form != Some("parts") => parts.pop()?,
                _ => Owned::List(parts.into_iter().map(part).collect()),
            }
        };
        message.put("content", content);
        members::take_over(&mut message, turn, &["name"], &[], self.report);
        Some(message)
    }

    /// The texts of a result and of what is inside of it, in order.
    fn texts(&mut self, item: &Item<'a>, texts: &mut Vec<Owned>) {
        if !item.text.as_str().is_empty() {
            texts.push(item.text());
        }
        for inside in &item.inside {
            if inside.kind != Kind::Text {
                self.report.normalise("part_as_its_text");
            }
            self.texts(inside, texts);
        }
    }
}

fn role(voice: Voice, turn: &Turn<'_>) -> &'static str {
    match voice {
        Voice::System if turn.payload_str("role") == Some("developer") => "developer",
        Voice::System => "system",
        Voice::User => "user",
        Voice::Agent => "assistant",
        Voice::Tool => "tool",
    }
}

/// Whether a block is a part that OpenAI takes from a user.
fn is_part(origin: Option<&Value>) -> bool {
    let kind = origin.and_then(|origin| origin.str_at("type"));
    kind.is_some_and(|kind| origin.is_some_and(|origin| origin.get(kind).is_some()))
        && matches!(kind, Some("input_audio" | "file"))
}

/// Whether a block is reasoning that its provider alone can read.
pub(super) fn is_hidden_reasoning(origin: Option<&Value>) -> bool {
    origin.is_some_and(|origin| {
        origin.str_at("type") == Some("redacted_thinking")
            || origin.get("encrypted_content").is_some() && origin.str_at("type").is_none()
    })
}
