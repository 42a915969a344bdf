//! `messages` of OpenAI's Chat Completions.

use std::collections::HashSet;

use super::{
    ExportOptions, ExportedRequest, Form,
    ids::{self, IdRules},
    image::Image,
    members::{self, Member},
    owned::{OwnedJson, OwnedText},
    pairing::{self, PairRules, PairedTurns},
    report::ExportReport,
    turns::{Item, Kind, Turn, Voice, form_of},
};
use crate::{
    json::Object,
    veil::{ContentForm, Pairs},
};

/// OpenAI refuses longer ids; two calls of one message must differ, those of two need not.
const RULES: PairRules = PairRules {
    ids: IdRules { longest: 40, plain: false, unique: false, optional: false },
    inline: |_, _| false,
};

/// Members of a message that OpenAI or one of its relatives takes back.
const MEMBERS: [Member; 10] = [
    ("name", members::text),
    ("reasoning_content", members::text),
    ("reasoning", members::text),
    ("refusal", members::text_or_null),
    ("annotations", members::list),
    ("audio", members::object_or_null),
    ("reasoning_details", members::list),
    ("thought_signature", members::text),
    ("extra_content", members::object),
    ("prefix", members::flag),
];
/// Those of messages of others.
const NAME: [Member; 1] = [("name", members::text)];
/// The field in which a call stood before there were several a message.
const LEGACY: &str = "function_call";
/// Fields in which relatives of OpenAI have the reasoning.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

pub(super) fn write<'a>(
    turns: Vec<Turn<'a>>,
    pairs: &Pairs,
    options: &'a ExportOptions,
) -> ExportedRequest {
    let mut report = ExportReport::default();
    let paired = pairing::pair(turns, pairs, &RULES, options, &mut report);
    let mut writer = Writer { paired: &paired, legacy: HashSet::new(), report: &mut report };
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
    ExportedRequest { form: Form::OpenaiChat, root: OwnedJson::List(messages), report }
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
    paired: &'w PairedTurns<'a>,
    /// The calls in the old form, which has one call a message and no ids.
    legacy: HashSet<usize>,
    report: &'w mut ExportReport,
}

/// What a message is put together from.
#[derive(Default)]
struct Pieces {
    parts: Vec<OwnedJson>,
    calls: Vec<OwnedJson>,
    /// Members beside content and calls.
    beside: Vec<(&'static str, OwnedJson)>,
}

impl<'a> Writer<'_, 'a> {
    fn message(&mut self, voice: Voice, turns: &[Turn<'a>]) -> Option<OwnedJson> {
        let first = turns.first()?;
        let Pieces { parts, calls, beside } = self.pieces(voice, turns);
        // Reasoning alone is no message.
        let says = |(field, _): &(&str, OwnedJson)| !REASONING.contains(field);
        if parts.is_empty() && calls.is_empty() && !beside.iter().any(says) {
            beside.iter().for_each(|_| self.report.drop("reasoning"));
            return None;
        }
        let mut message = OwnedJson::map([("role", OwnedJson::form(role(voice, first)))]);
        let form = if turns.len() == 1 { form_of(first) } else { None };
        let has_calls = !calls.is_empty() || beside.iter().any(|(key, _)| *key == LEGACY);
        if let Some(content) = content(parts, form, has_calls) {
            message.put("content", content);
        }
        for (key, value) in beside {
            if message.get(key).is_some() {
                self.report.drop("second_of_a_field");
            } else {
                message.put(key, value);
            }
        }
        if !calls.is_empty() {
            message.put("tool_calls", OwnedJson::List(calls));
        }
        for turn in turns {
            let taken: &[Member] = if voice == Voice::Agent { &MEMBERS } else { &NAME };
            members::take_over(&mut message, turn, taken, self.report);
        }
        Some(message)
    }

    fn pieces(&mut self, voice: Voice, turns: &[Turn<'a>]) -> Pieces {
        let mut pieces = Pieces::default();
        let items = || turns.iter().flat_map(|turn| &turn.items);
        let mut numbers = items().filter_map(|item| match item.kind {
            Kind::Call { number, .. } => Some(number),
            _ => None,
        });
        if let (Some(only), None) = (numbers.next(), numbers.next())
            && self.paired.call(only).is_some_and(|call| call.field == Some(LEGACY))
        {
            self.legacy.insert(only);
        }
        for item in items() {
            let field = item.field().filter(|_| voice == Voice::Agent);
            match item.kind {
                Kind::Call { number, .. } => match self.call(item, number) {
                    Some(call) if self.legacy.contains(&number) => {
                        pieces.beside.push((LEGACY, call));
                    }
                    call => pieces.calls.extend(call),
                },
                Kind::Reasoning => {
                    match REASONING.into_iter().find(|known| field == Some(*known)) {
                        Some(field) => pieces.beside.push((field, item.text())),
                        None => self.report.drop("reasoning"),
                    }
                }
                Kind::Text if field == Some("refusal") => {
                    pieces.beside.push(("refusal", item.text()));
                }
                _ => pieces.parts.extend(self.part(voice, item)),
            }
        }
        pieces
    }

    fn call(&mut self, item: &Item<'a>, number: usize) -> Option<OwnedJson> {
        let call = self.paired.call(number)?;
        let name = ids::tool_name(call.name, &item.owner, self.report);
        if self.legacy.contains(&number) {
            return Some(OwnedJson::map([("name", name), ("arguments", item.text())]));
        }
        let id = call.id.owned(&item.owner);
        let is_custom = item.block_type() == Some("custom");
        let (kind, input) = if is_custom { ("custom", "input") } else { ("function", "arguments") };
        let inner = OwnedJson::map([("name", name), (input, item.text())]);
        let mut call = OwnedJson::map([("id", id), ("type", OwnedJson::form(kind)), (kind, inner)]);
        let taken: [Member; 2] =
            [("extra_content", members::object), ("thought_signature", members::text)];
        members::take_over_block(&mut call, item, &taken, self.report);
        Some(call)
    }

    fn part(&mut self, voice: Voice, item: &Item<'a>) -> Option<OwnedJson> {
        let image = Image::of(item).filter(|_| voice == Voice::User);
        match (item.kind, image) {
            (Kind::Image, Some(image)) => {
                let mut inner = OwnedJson::map([("url", image.url(&item.owner))]);
                if let Some(detail) = Image::detail(item) {
                    inner.put("detail", OwnedJson::of_text(detail, &item.owner));
                }
                Some(OwnedJson::map([("type", OwnedJson::form("image_url")), ("image_url", inner)]))
            }
            (Kind::Opaque, _) if voice == Voice::User && file(item).is_some() => {
                let (kind, file) = file(item)?;
                let file = OwnedJson::of_object(file, &item.owner);
                Some(OwnedJson::map([("type", OwnedJson::form(kind)), (kind, file)]))
            }
            (Kind::Opaque, _) if item.is_hidden_reasoning() => {
                self.report.drop("reasoning");
                None
            }
            (Kind::Text, _) if voice == Voice::Agent && item.block_type() == Some("refusal") => {
                Some(OwnedJson::map([
                    ("type", OwnedJson::form("refusal")),
                    ("refusal", item.text()),
                ]))
            }
            _ => {
                if item.kind != Kind::Text {
                    self.report.normalise("part_as_its_text");
                }
                if item.text.as_str().is_empty() {
                    return None;
                }
                let mut part =
                    OwnedJson::map([("type", OwnedJson::form("text")), ("text", item.text())]);
                if item.kind == Kind::Text {
                    members::take_over_block(&mut part, item, &[], self.report);
                }
                Some(part)
            }
        }
    }

    /// A message that is the result of a call. It holds text alone.
    fn result(&mut self, turn: &Turn<'a>) -> Option<OwnedJson> {
        let item = turn.items.first()?;
        let Kind::Result { number, .. } = item.kind else { return None };
        let call = self.paired.call(number)?;
        let is_legacy = self.legacy.contains(&number);
        let mut message = if is_legacy {
            let name = ids::tool_name(call.name, &call.owner, &mut ExportReport::default());
            OwnedJson::map([("role", OwnedJson::form("function")), ("name", name)])
        } else {
            let id = call.id.owned(&call.owner);
            OwnedJson::map([("role", OwnedJson::form("tool")), ("tool_call_id", id)])
        };
        let form = form_of(turn).or_else(|| item.form());
        let content = if item.inside.is_empty() {
            item.text()
        } else {
            let mut parts = Vec::new();
            self.texts(item, &mut parts);
            let part = |text| OwnedJson::map([("type", OwnedJson::form("text")), ("text", text)]);
            match (parts.len(), form) {
                (0, _) => item.text(),
                _ if is_legacy => {
                    let mut whole = OwnedText::default();
                    parts.iter().filter_map(OwnedJson::as_text).for_each(|text| whole.append(text));
                    OwnedJson::Text(whole)
                }
                (1, form) if form != Some(ContentForm::Parts) => parts.pop()?,
                _ => OwnedJson::List(parts.into_iter().map(part).collect()),
            }
        };
        message.put("content", content);
        members::take_over(&mut message, turn, &NAME, self.report);
        Some(message)
    }

    /// The texts of a result and of what is inside of it, in order.
    fn texts(&mut self, item: &Item<'a>, texts: &mut Vec<OwnedJson>) {
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
        Voice::System if turn.is_developers() => "developer",
        Voice::System => "system",
        Voice::User => "user",
        Voice::Agent => "assistant",
        Voice::Tool => "tool",
    }
}

/// A block that OpenAI takes from a user besides text and images: its type and its member of that
/// name.
fn file<'a>(item: &Item<'a>) -> Option<(&'a str, &'a Object)> {
    let kind = item.block_type().filter(|kind| matches!(*kind, "input_audio" | "file"))?;
    Some((kind, item.native(kind)?.as_object()?))
}

/// The content of a message, in the form of the source: a text where it is one.
fn content(
    mut parts: Vec<OwnedJson>,
    form: Option<ContentForm>,
    has_calls: bool,
) -> Option<OwnedJson> {
    if parts.is_empty() {
        return match form {
            Some(ContentForm::Absent) => None,
            Some(ContentForm::Empty) if has_calls => Some(OwnedJson::form("")),
            _ => Some(OwnedJson::Null),
        };
    }
    let is_text = |part: &OwnedJson| part.get("type").is_some_and(|kind| kind.is_str("text"));
    if form != Some(ContentForm::Parts) && parts.len() == 1 && parts.iter().all(is_text) {
        return parts.last_mut().and_then(|part| part.remove("text"));
    }
    Some(OwnedJson::List(parts))
}
