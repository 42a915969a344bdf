//! `systemInstruction` and `contents` of Gemini.

use super::{
    ExportOptions, ExportedRequest, Form,
    ids::{self, IdRules},
    image::Image,
    members::{self, Member},
    owned::{OwnedJson, OwnedText},
    pairing::{self, PairRules, PairedTurns},
    parsed,
    report::ExportReport,
    turns::{Item, Kind, Turn, Voice},
};
use crate::{
    hud::Owner,
    json::Value,
    veil::{MediaBlock, Pairs},
};

/// Ids are not asked for. Where there are some, two calls of one content must differ.
const RULES: PairRules = PairRules {
    ids: IdRules { longest: 256, plain: false, unique: false, optional: true },
    inline: |_, item| item.field().is_some_and(|field| [CODE, CODE_RESULT].contains(&field)),
};

/// The parts that are code which the provider runs, and what it gave.
const CODE: &str = "executableCode";
const CODE_RESULT: &str = "codeExecutionResult";
const DATA: &str = "inlineData";
const FILE: &str = "fileData";
/// What else a part of the source has that the model needs again.
const TAKEN: [Member; 1] = [("thoughtSignature", members::text)];
/// What stands first where the context begins with the agent: a call must come after a user's content.
const OPENING: &str = "[the conversation before this is not shown]";

/// A content in the making.
struct Content {
    role: &'static str,
    parts: Vec<OwnedJson>,
    /// Whether it is results alone, which stand apart.
    is_results: bool,
}

pub(super) fn write<'a>(
    turns: Vec<Turn<'a>>,
    pairs: &Pairs,
    options: &'a ExportOptions,
) -> ExportedRequest {
    let mut report = ExportReport::default();
    let paired = pairing::pair(turns, pairs, &RULES, options, &mut report);
    let mut system: Vec<OwnedJson> = Vec::new();
    let mut contents: Vec<Content> = Vec::new();
    let mut begun = false;
    for turn in &paired.turns {
        begun |= turn.voice != Voice::System;
        let mut writer = Parts { paired: &paired, report: &mut report };
        let parts: Vec<OwnedJson> =
            turn.items.iter().filter_map(|item| writer.part(turn.voice, item)).collect();
        members::take_over(&mut OwnedJson::Map(Vec::new()), turn, &[], &mut report);
        if parts.is_empty() {
            continue;
        }
        if !begun {
            system.extend(parts);
            continue;
        }
        if turn.voice == Voice::System {
            report.normalise("system_as_user");
        }
        let role = if turn.voice == Voice::Agent { "model" } else { "user" };
        let is_results = turn.voice == Voice::Tool;
        match contents.last_mut() {
            Some(last)
                if last.role == role && (role == "model" || is_results && last.is_results) =>
            {
                report.normalise(if is_results { "results_joined" } else { "messages_joined" });
                last.parts.extend(parts);
            }
            _ => contents.push(Content { role, parts, is_results }),
        }
    }
    if contents.first().is_some_and(|first| first.role == "model") {
        report.normalise("opening_added");
        let parts = vec![OwnedJson::map([("text", OwnedJson::framing(OPENING, "opening"))])];
        contents.insert(0, Content { role: "user", parts, is_results: false });
    }
    let mut root = OwnedJson::Map(Vec::new());
    if !system.is_empty() {
        root.put("systemInstruction", OwnedJson::map([("parts", OwnedJson::List(system))]));
    }
    let content = |Content { role, parts, .. }| {
        OwnedJson::map([("role", OwnedJson::form(role)), ("parts", OwnedJson::List(parts))])
    };
    root.put("contents", OwnedJson::List(contents.into_iter().map(content).collect()));
    ExportedRequest { form: Form::Gemini, root, report }
}

struct Parts<'w, 'a> {
    paired: &'w PairedTurns<'a>,
    report: &'w mut ExportReport,
}

impl<'a> Parts<'_, 'a> {
    /// An item as a part; `None` where Gemini has no place for it.
    fn part(&mut self, voice: Voice, item: &Item<'a>) -> Option<OwnedJson> {
        let mut part = match item.kind {
            Kind::Call { number, .. } => self.call(item, number)?,
            Kind::Result { number, .. } => return self.result(item, number),
            Kind::Reasoning => self.thought(voice, item)?,
            // A system prompt is text alone.
            Kind::Image | Kind::Opaque => match media(item).filter(|_| voice != Voice::System) {
                Some(media) => media,
                None => return self.stand_in(item),
            },
            Kind::Text | Kind::Compaction => self.text(item)?,
        };
        if voice == Voice::Agent {
            members::take_over_block(&mut part, item, &TAKEN, &mut ExportReport::default());
        }
        Some(part)
    }

    fn text(&mut self, item: &Item<'a>) -> Option<OwnedJson> {
        let is_signed = item.native("thoughtSignature").is_some();
        if item.text.as_str().is_empty() && !is_signed {
            self.report.drop("blank_text");
            return None;
        }
        Some(OwnedJson::map([("text", item.text())]))
    }

    /// A thought of Gemini's; it takes no other.
    fn thought(&mut self, voice: Voice, item: &Item<'a>) -> Option<OwnedJson> {
        let is_own = item.native("thought").and_then(Value::as_bool) == Some(true);
        if !is_own || voice != Voice::Agent {
            self.report.drop("reasoning");
            return None;
        }
        Some(OwnedJson::map([("text", item.text()), ("thought", OwnedJson::Bool(true))]))
    }

    fn call(&mut self, item: &Item<'a>, number: usize) -> Option<OwnedJson> {
        let call = self.paired.call(number)?;
        let mut arguments = OwnedJson::Map(Vec::new());
        if !item.text.is_blank() {
            arguments = if let Some(arguments @ OwnedJson::Map(_)) =
                parsed::parse(&item.text, &item.owner)
            {
                arguments
            } else {
                self.report.normalise("arguments_wrapped");
                OwnedJson::map([("arguments", item.text())])
            };
        }
        if item.field() == Some(CODE) {
            return Some(OwnedJson::map([(CODE, arguments)]));
        }
        let mut function = OwnedJson::map([]);
        if !call.id.text.is_empty() {
            function.put("id", call.id.owned(&item.owner));
        }
        function.put("name", ids::tool_name(call.name, &item.owner, self.report));
        function.put("args", arguments);
        Some(OwnedJson::map([("functionCall", function)]))
    }

    fn result(&mut self, item: &Item<'a>, number: usize) -> Option<OwnedJson> {
        let call = self.paired.call(number)?;
        if item.field() == Some(CODE_RESULT) {
            let outcome = if item.is_failed { "OUTCOME_FAILED" } else { "OUTCOME_OK" };
            let outcome = item.native("outcome").and_then(Value::as_str).unwrap_or(outcome);
            let outcome = OwnedJson::of_text(outcome, &item.owner);
            let result = OwnedJson::map([("outcome", outcome), ("output", item.text())]);
            return Some(OwnedJson::map([(CODE_RESULT, result)]));
        }
        let mut function = OwnedJson::map([]);
        if !call.id.text.is_empty() {
            function.put("id", call.id.owned(&call.owner));
        }
        let name = ids::tool_name(call.name, &call.owner, &mut ExportReport::default());
        function.put("name", name);
        let (mut said, mut parts) = (item.text.clone(), Vec::new());
        self.inside(item, &mut said, &mut parts);
        function.put("response", response(item, said));
        if !parts.is_empty() {
            function.put("parts", OwnedJson::List(parts));
        }
        Some(OwnedJson::map([("functionResponse", function)]))
    }

    /// What is inside of a result: its texts go on with it, each on a line; files stand beside it.
    fn inside(&mut self, item: &Item<'a>, said: &mut OwnedText, parts: &mut Vec<OwnedJson>) {
        for inside in &item.inside {
            if let (Kind::Image | Kind::Opaque, Some(media)) = (inside.kind, media(inside)) {
                parts.push(media);
            } else {
                if inside.kind != Kind::Text {
                    self.report.normalise("part_as_its_text");
                }
                if !said.as_str().is_empty() {
                    said.push("\n", &Owner::Framing("separator"));
                }
                said.append(&inside.text);
            }
            self.inside(inside, said, parts);
        }
    }

    /// The text that was captured for what has no part.
    fn stand_in(&mut self, item: &Item<'a>) -> Option<OwnedJson> {
        if item.is_hidden_reasoning() {
            self.report.drop("reasoning");
            return None;
        }
        self.report.normalise("part_as_its_text");
        self.text(item)
    }
}

/// The response of a function: an object, which is written as JSON where the source has one of its own.
fn response(item: &Item<'_>, said: OwnedText) -> OwnedJson {
    let stated = item.native("functionResponse").and_then(|function| function.get("response"));
    let is_own = stated.is_some_and(|stated| {
        ["output", "error"].iter().all(|key| stated.get(key).is_none_or(|of| of.as_str().is_none()))
    });
    let own = parsed::parse(&said, &item.owner).filter(|_| is_own);
    if let Some(object @ OwnedJson::Map(_)) = own {
        return object;
    }
    let key = if item.is_failed { "error" } else { "output" };
    OwnedJson::map([(key, OwnedJson::Text(said))])
}

/// An image or a file, where its data or its address is known.
fn media(item: &Item<'_>) -> Option<OwnedJson> {
    for member in [DATA, FILE] {
        if let Some(own) = item.native(member) {
            return Some(OwnedJson::map([(member, OwnedJson::of_value(own, &item.owner))]));
        }
    }
    let owned = |text: &str| OwnedJson::of_text(text, &item.owner);
    let inline = |kind: &str, data: &str| {
        let data = OwnedJson::map([("mimeType", owned(kind)), ("data", owned(data))]);
        OwnedJson::map([(DATA, data)])
    };
    match Image::of(item) {
        Some(Image::Data { media_type, base64 }) => Some(inline(media_type, base64)),
        Some(Image::Url(url)) => {
            Some(OwnedJson::map([(FILE, OwnedJson::map([("fileUri", owned(url))]))]))
        }
        None => {
            let block = item.source()?.native.as_ref()?;
            let MediaBlock { media_type, data, .. } = MediaBlock::of(block);
            Some(inline(media_type?, data?))
        }
    }
}
