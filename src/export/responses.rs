//! `input` items of OpenAI's Responses.

use std::collections::HashSet;

use super::{
    ExportOptions, ExportedRequest, Form,
    ids::{self, IdRules},
    image::Image,
    members::{self, Member},
    owned::OwnedJson,
    pairing::{self, PairRules, PairedTurns},
    parsed,
    report::ExportReport,
    turns::{Item, Kind, Turn, Voice, form_of},
};
use crate::{
    hud::Owner,
    veil::{ContentForm, Pairs},
};

const RULES: PairRules = PairRules {
    ids: IdRules { longest: 64, plain: false, unique: true, optional: false },
    inline: |_, _| false,
};

/// Items that are kept whole and given back whole.
const WHOLE: [&str; 2] = ["compaction", "mcp_list_tools"];
/// What OpenAI says of how far an item is.
const STATES: [&str; 3] = ["in_progress", "completed", "incomplete"];
/// What OpenAI says that a message is for.
const PHASES: [&str; 2] = ["commentary", "final_answer"];
/// Calls of OpenAI's own tools whose outcome is no part of the item, or may be missing.
const HOSTED: [&str; 2] = ["web_search_call", "file_search_call"];

/// Whether a turn is a call of one of OpenAI's own tools that has no result of its own.
fn is_hosted(turn: &Turn<'_>) -> bool {
    turn.items.len() <= 1 && turn.item_type().is_some_and(|kind| HOSTED.contains(&kind))
}

pub(super) fn write<'a>(
    mut turns: Vec<Turn<'a>>,
    pairs: &Pairs,
    options: &'a ExportOptions,
) -> ExportedRequest {
    let mut report = ExportReport::default();
    // A hosted call needs no result: it is no pair.
    for turn in turns.iter_mut().filter(|turn| is_hosted(turn)) {
        for item in &mut turn.items {
            item.kind = Kind::Opaque;
        }
    }
    let paired = pairing::pair(turns, pairs, &RULES, options, &mut report);
    let mut writer =
        Writer { paired: &paired, report: &mut report, items: Vec::new(), ids: HashSet::new() };
    for turn in &paired.turns {
        writer.turn(turn);
    }
    let mut items = writer.items;
    drop_loose_reasoning(&mut items, &mut report);
    ExportedRequest { form: Form::Responses, root: OwnedJson::List(items), report }
}

/// Reasoning must be followed by what came of it.
fn drop_loose_reasoning(items: &mut Vec<OwnedJson>, report: &mut ExportReport) {
    let mut follows = false;
    let mut kept = Vec::with_capacity(items.len());
    for item in std::mem::take(items).into_iter().rev() {
        let kind = item.get("type");
        if kind.is_some_and(|kind| kind.is_str("reasoning")) {
            if !follows {
                report.drop("reasoning_at_end");
                continue;
            }
        } else {
            let is_output = kind
                .and_then(OwnedJson::as_text)
                .is_some_and(|kind| kind.as_str().ends_with("_call"));
            follows = is_output || item.get("role").is_some_and(|role| role.is_str("assistant"));
        }
        kept.push(item);
    }
    kept.reverse();
    *items = kept;
}

struct Writer<'w, 'a> {
    paired: &'w PairedTurns<'a>,
    report: &'w mut ExportReport,
    items: Vec<OwnedJson>,
    /// The ids of the agent's messages so far.
    ids: HashSet<String>,
}

impl<'a> Writer<'_, 'a> {
    fn turn(&mut self, turn: &Turn<'a>) {
        let is_reasoning = |item: &Item<'_>| matches!(item.kind, Kind::Reasoning | Kind::Opaque);
        if turn.item_type() == Some("reasoning") && turn.items.iter().all(is_reasoning) {
            let reasoning = self.reasoning(turn);
            return self.items.extend(reasoning);
        }
        let mut parts = Vec::new();
        for item in &turn.items {
            match item.kind {
                Kind::Call { number, .. } => {
                    self.message(turn, std::mem::take(&mut parts));
                    let call = self.call(item, number);
                    self.items.extend(call);
                }
                Kind::Result { number, .. } => {
                    let result = self.result(item, number);
                    self.items.extend(result);
                }
                Kind::Opaque if is_hosted(turn) => match hosted(turn, item, self.report) {
                    Some(call) => self.items.push(call),
                    None => self.report.drop("hosted_call"),
                },
                Kind::Opaque if is_whole(item) => {
                    self.message(turn, std::mem::take(&mut parts));
                    let whole = item.block().map(|block| OwnedJson::of_value(&block, &item.owner));
                    self.items.extend(whole);
                }
                _ => parts.extend(self.part(turn.voice, item)),
            }
        }
        self.message(turn, parts);
    }

    /// A message of these parts, if there are any.
    fn message(&mut self, turn: &Turn<'a>, mut parts: Vec<OwnedJson>) {
        if parts.is_empty() {
            return;
        }
        if turn.voice == Voice::Agent {
            return self.agents_message(turn, parts);
        }
        let role = match turn.voice {
            Voice::System if turn.is_developers() => "developer",
            Voice::System => "system",
            Voice::User | Voice::Tool | Voice::Agent => "user",
        };
        let is_plain = parts.len() == 1 && form_of(turn) != Some(ContentForm::Parts);
        let text =
            if is_plain { parts.last_mut().and_then(|part| part.remove("text")) } else { None };
        let content = text.unwrap_or(OwnedJson::List(parts));
        self.items.push(OwnedJson::map([
            ("type", OwnedJson::form("message")),
            ("role", OwnedJson::form(role)),
            ("content", content),
        ]));
    }

    /// What the agent said: as the item that it was, where the source has the id and the status that
    /// OpenAI asks for, else in the plain form, which holds one text.
    fn agents_message(&mut self, turn: &Turn<'a>, parts: Vec<OwnedJson>) {
        let member = |key: &str| turn.imported.and_then(|imported| imported.get(key)?.as_str());
        let phase = member("phase").filter(|phase| PHASES.contains(phase));
        let id = member("id").filter(|id| turn.item_type() == Some("message") && !id.is_empty());
        let status = member("status").filter(|status| STATES.contains(status));
        // The second part of a message that a call parts has no id of its own.
        let own = id.zip(status).filter(|(id, _)| self.ids.insert((*id).to_owned()));
        let contents = if own.is_some() {
            vec![OwnedJson::List(parts)]
        } else {
            parts.into_iter().filter_map(|part| self.plain(part)).collect()
        };
        for content in contents {
            let mut said = OwnedJson::map([("type", OwnedJson::form("message"))]);
            if let Some((id, status)) = own {
                said.put("id", OwnedJson::framing(id, "member"));
                said.put("status", OwnedJson::framing(status, "member"));
            }
            said.put("role", OwnedJson::form("assistant"));
            said.put("content", content);
            if let Some(phase) = phase {
                said.put("phase", OwnedJson::framing(phase, "member"));
            }
            self.items.push(said);
        }
    }

    /// The text of a part of the agent's, which the plain form has without what was cited.
    fn plain(&mut self, mut part: OwnedJson) -> Option<OwnedJson> {
        let cited = part.remove("annotations");
        if matches!(cited, Some(OwnedJson::List(cited)) if !cited.is_empty()) {
            self.report.leave_out("annotations");
        }
        part.remove("text")
    }

    fn part(&mut self, voice: Voice, item: &Item<'a>) -> Option<OwnedJson> {
        let kind = if voice == Voice::Agent { "output_text" } else { "input_text" };
        match item.kind {
            Kind::Reasoning => {
                self.report.drop("reasoning");
                return None;
            }
            Kind::Opaque if item.is_hidden_reasoning() => {
                self.report.drop("reasoning");
                return None;
            }
            Kind::Image if voice == Voice::User => {
                if let Some(image) = image(item) {
                    return Some(image);
                }
            }
            _ => {}
        }
        if item.text.as_str().is_empty() {
            return None;
        }
        if item.kind != Kind::Text {
            self.report.normalise("part_as_its_text");
        }
        let mut part = OwnedJson::map([("type", OwnedJson::form(kind)), ("text", item.text())]);
        if voice == Voice::Agent {
            part.put("annotations", OwnedJson::List(Vec::new()));
            if item.kind == Kind::Text {
                let taken: [Member; 1] = [("annotations", members::list)];
                members::take_over_block(&mut part, item, &taken, self.report);
            }
        }
        Some(part)
    }

    /// Reasoning that the provider can read again. What it only showed is left out: without the
    /// rest it would be looked up among what the provider stores. So is what lost its id, which
    /// OpenAI asks for.
    fn reasoning(&mut self, turn: &Turn<'a>) -> Option<OwnedJson> {
        let hidden = turn.items.iter().find_map(|item| {
            let content = item.encrypted()?;
            (item.kind == Kind::Opaque).then(|| OwnedJson::of_text(content, &item.owner))
        });
        let id = turn.imported.and_then(|imported| imported.get("id")?.as_str());
        let id = id.filter(|id| !id.is_empty());
        let Some((hidden, id)) = hidden.zip(id) else {
            self.report.drop("reasoning");
            return None;
        };
        let mut reasoning = OwnedJson::map([
            ("type", OwnedJson::form("reasoning")),
            ("id", OwnedJson::framing(id, "member")),
        ]);
        let parts = |field: &str, usual: &str| -> Vec<OwnedJson> {
            let of_field = turn.items.iter().filter(|item| item.field() == Some(field));
            of_field
                .filter(|item| item.kind == Kind::Reasoning)
                .map(|item| {
                    let kind = item.block_type().unwrap_or(usual);
                    OwnedJson::map([("type", OwnedJson::form(kind)), ("text", item.text())])
                })
                .collect()
        };
        reasoning.put("summary", OwnedJson::List(parts("summary", "summary_text")));
        let content = parts("content", "reasoning_text");
        if !content.is_empty() {
            reasoning.put("content", OwnedJson::List(content));
        }
        reasoning.put("encrypted_content", hidden);
        Some(reasoning)
    }

    fn call(&mut self, item: &Item<'a>, number: usize) -> Option<OwnedJson> {
        let call = self.paired.call(number)?;
        let (kind, input) = if call.custom {
            ("custom_tool_call", "input")
        } else {
            ("function_call", "arguments")
        };
        Some(OwnedJson::map([
            ("type", OwnedJson::form(kind)),
            ("call_id", call.id.owned(&item.owner)),
            ("name", ids::tool_name(call.name, &item.owner, self.report)),
            (input, item.text()),
        ]))
    }

    fn result(&mut self, item: &Item<'a>, number: usize) -> Option<OwnedJson> {
        let call = self.paired.call(number)?;
        let kind = if call.custom { "custom_tool_call_output" } else { "function_call_output" };
        let mut parts = Vec::new();
        self.inside(item, &mut parts);
        let has_image = parts
            .iter()
            .any(|part| part.get("type").is_some_and(|kind| kind.is_str("input_image")));
        let output = match parts.len() {
            0 => item.text(),
            1 if !has_image => parts.pop()?.remove("text")?,
            _ => OwnedJson::List(parts),
        };
        Some(OwnedJson::map([
            ("type", OwnedJson::form(kind)),
            ("call_id", call.id.owned(&call.owner)),
            ("output", output),
        ]))
    }

    fn inside(&mut self, item: &Item<'a>, parts: &mut Vec<OwnedJson>) {
        if !item.text.as_str().is_empty() && item.kind != Kind::Image {
            parts.push(OwnedJson::map([
                ("type", OwnedJson::form("input_text")),
                ("text", item.text()),
            ]));
        }
        for inside in &item.inside {
            if inside.kind == Kind::Image {
                parts.extend(self.part(Voice::User, inside));
            } else {
                self.inside(inside, parts);
            }
        }
    }
}

/// Whether an item is one that OpenAI takes back as it is.
fn is_whole(item: &Item<'_>) -> bool {
    match item.block_type() {
        // Other providers write compactions that they alone can read.
        Some("compaction") => item.encrypted().is_some(),
        Some(kind) => WHOLE.contains(&kind),
        None => false,
    }
}

/// What OpenAI takes of a search of the web, by what it was.
const ACTIONS: [(&str, &[&str]); 3] = [
    ("search", &["type", "query", "queries", "sources"]),
    ("open_page", &["type", "url"]),
    ("find_in_page", &["type", "pattern", "url"]),
];

/// A call of one of OpenAI's own tools, as it was; `None` where it lacks what OpenAI asks for.
fn hosted(turn: &Turn<'_>, item: &Item<'_>, report: &mut ExportReport) -> Option<OwnedJson> {
    let kind = turn.item_type()?;
    let is_search = kind == "file_search_call";
    let mut call = OwnedJson::map([("type", OwnedJson::framing(kind, "member"))]);
    let members = turn.imported.iter().flat_map(|imported| &imported.members);
    for (key, value) in members {
        let is_taken = match key.as_str() {
            "id" | "status" => !value.as_str().is_none_or(str::is_empty),
            "results" => is_search && value.as_array().is_some(),
            _ => false,
        };
        if is_taken {
            call.put(key, OwnedJson::of_value(value, &Owner::Framing("member")));
        } else {
            report.leave_out(key);
        }
    }
    call.get("id").and(call.get("status"))?;
    let is_json = item.form() == Some(ContentForm::Json);
    let asked = is_json.then(|| parsed::parse(&item.text, &item.owner)).flatten()?;
    if is_search {
        call.put("queries", Some(asked).filter(|asked| matches!(asked, OwnedJson::List(_)))?);
    } else {
        call.put("action", action(asked)?);
    }
    Some(call)
}

/// What a search of the web did, without what OpenAI does not take of it.
fn action(asked: OwnedJson) -> Option<OwnedJson> {
    let OwnedJson::Map(members) = asked else { return None };
    let asked = OwnedJson::Map(members.clone());
    let kind = asked.get("type")?;
    let (_, taken) = ACTIONS.iter().find(|(name, _)| kind.is_str(name))?;
    let is_taken = |(key, value): &(String, OwnedJson)| {
        taken.contains(&key.as_str()) && !matches!(value, OwnedJson::Null)
    };
    let action = OwnedJson::Map(members.into_iter().filter(is_taken).collect());
    let is_find = kind.is_str("find_in_page");
    (!is_find || action.get("pattern").and(action.get("url")).is_some()).then_some(action)
}

fn image(item: &Item<'_>) -> Option<OwnedJson> {
    let image = Image::of(item)?;
    let mut part = OwnedJson::map([
        ("type", OwnedJson::form("input_image")),
        ("image_url", image.url(&item.owner)),
    ]);
    let detail = Image::detail(item);
    part.put(
        "detail",
        detail.map_or(OwnedJson::form("auto"), |detail| OwnedJson::of_text(detail, &item.owner)),
    );
    Some(part)
}
