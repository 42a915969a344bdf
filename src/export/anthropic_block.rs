//! The content blocks of Anthropic's Messages.

use super::{
    Breakpoints, ExportOptions, ids,
    image::Image,
    members::{self, Member},
    owned::OwnedJson,
    pairing::PairedTurns,
    parsed,
    report::ExportReport,
    turns::{Item, Kind, is_void},
};
use crate::{
    json::Value,
    veil::{CacheMark, ContentForm},
};

/// Blocks that are kept whole and given back whole, by who may say them.
const OF_USER: [&str; 4] = ["document", "search_result", "container_upload", "tool_reference"];
const OF_AGENT: [&str; 3] = ["redacted_thinking", "compaction", "container_upload"];
const OF_SYSTEM: [&str; 2] = ["tool_addition", "tool_removal"];

/// Under this name stand arguments that are no JSON object.
const WRAPPED: &str = "arguments";

/// Whether an item is a call of a provider's own tool, or its result.
pub(super) fn is_of_provider(item: &Item<'_>) -> bool {
    match (item.kind, item.block_type()) {
        (Kind::Call { .. }, Some(kind)) => matches!(kind, "server_tool_use" | "mcp_tool_use"),
        (Kind::Result { .. }, Some(kind)) => kind.ends_with("_tool_result"),
        _ => false,
    }
}

pub(super) fn is_thinking(block: &OwnedJson) -> bool {
    let kind = block.get("type");
    kind.is_some_and(|kind| kind.is_str("thinking") || kind.is_str("redacted_thinking"))
}

pub(super) struct Blocks<'w, 'a> {
    pub(super) paired: &'w PairedTurns<'a>,
    pub(super) options: &'w ExportOptions,
    pub(super) report: &'w mut ExportReport,
}

impl<'a> Blocks<'_, 'a> {
    /// An item as a block in a message of `role`; `None` where Anthropic has no place for it.
    pub(super) fn block(&mut self, role: &str, item: &Item<'a>) -> Option<OwnedJson> {
        let mut block = match item.kind {
            Kind::Text => self.text(item),
            Kind::Call { number, .. } => self.call(item, number),
            Kind::Result { number, .. } => self.result(item, number),
            Kind::Reasoning => self.thinking(role, item),
            Kind::Image => self.image(role, item),
            Kind::Compaction => self.compaction(role, item),
            Kind::Opaque => self.opaque(role, item),
        }?;
        let mark = item.source().and_then(|source| source.cache.as_ref()).map(CacheMark::to_json);
        let mark = mark.filter(|mark| mark.str_at("type") == Some("ephemeral"));
        let mark = mark.filter(|_| self.options.breakpoints == Breakpoints::Recorded);
        if let Some(mark) = mark.filter(|_| !is_thinking(&block)) {
            block.put("cache_control", OwnedJson::of_value(&mark, &item.owner));
        } else {
            block.remove("cache_control");
        }
        Some(block)
    }

    fn text(&mut self, item: &Item<'a>) -> Option<OwnedJson> {
        if item.text.is_blank() {
            self.report.drop("blank_text");
            return None;
        }
        let mut block = OwnedJson::map([("type", OwnedJson::form("text")), ("text", item.text())]);
        let taken: [Member; 1] = [("citations", members::list)];
        members::take_over_block(&mut block, item, &taken, self.report);
        Some(block)
    }

    /// Reasoning that is signed: Anthropic takes no other.
    fn thinking(&mut self, role: &str, item: &Item<'a>) -> Option<OwnedJson> {
        let signature = item.source().and_then(|source| source.signature.as_deref());
        let signature = signature.filter(|signature| !signature.is_empty());
        let signature = signature.filter(|_| role == "assistant");
        let Some(signature) = signature else {
            self.report.drop("reasoning");
            return None;
        };
        Some(OwnedJson::map([
            ("type", OwnedJson::form("thinking")),
            ("thinking", item.text()),
            ("signature", OwnedJson::of_text(signature, &item.owner)),
        ]))
    }

    fn call(&mut self, item: &Item<'a>, number: usize) -> Option<OwnedJson> {
        let call = self.paired.call(number)?;
        let kind = match item.block_type() {
            Some(kind) if is_of_provider(item) => kind,
            _ => "tool_use",
        };
        let mut block = OwnedJson::map([
            ("type", OwnedJson::form(kind)),
            ("id", call.id.owned(&item.owner)),
            ("name", ids::tool_name(call.name, &item.owner, self.report)),
            ("input", self.input(item)),
        ]);
        let taken: [Member; 2] = [("caller", members::caller), ("server_name", members::text)];
        members::take_over_block(&mut block, item, &taken, self.report);
        Some(block)
    }

    /// The arguments as an object.
    fn input(&mut self, item: &Item<'a>) -> OwnedJson {
        if item.text.is_blank() {
            return OwnedJson::Map(Vec::new());
        }
        if let Some(input @ OwnedJson::Map(_)) = parsed::parse(&item.text, &item.owner) {
            return input;
        }
        self.report.normalise("arguments_wrapped");
        OwnedJson::map([(WRAPPED, item.text())])
    }

    fn result(&mut self, item: &Item<'a>, number: usize) -> Option<OwnedJson> {
        let call = self.paired.call(number)?;
        let of_provider = is_of_provider(item) && call.inline;
        let kind = match item.block_type() {
            Some(kind) if of_provider => kind,
            _ => "tool_result",
        };
        let mut block = OwnedJson::map([
            ("type", OwnedJson::form(kind)),
            ("tool_use_id", call.id.owned(&call.owner)),
        ]);
        let content = if of_provider { Some(provider_content(item)) } else { self.content(item) };
        if let Some(content) = content {
            block.put("content", content);
        }
        if item.is_failed {
            block.put("is_error", OwnedJson::Bool(true));
        }
        let taken: &[Member] = if of_provider {
            &[("caller", members::caller), ("is_error", members::flag)]
        } else {
            &[("is_error", members::flag)]
        };
        members::take_over_block(&mut block, item, taken, self.report);
        Some(block)
    }

    /// The content of a result: a text, or blocks; none where the source has none.
    fn content(&mut self, item: &Item<'a>) -> Option<OwnedJson> {
        if item.inside.is_empty() {
            let is_empty = item.text.as_str().is_empty();
            return match item.form() {
                Some(ContentForm::Parts) if is_empty => Some(OwnedJson::List(Vec::new())),
                Some(ContentForm::Absent | ContentForm::Null) if is_empty => None,
                _ => Some(item.text()),
            };
        }
        let mut blocks = Vec::new();
        if !item.text.as_str().is_empty() {
            let text = item.text();
            blocks.extend(
                (!item.text.is_blank())
                    .then(|| OwnedJson::map([("type", OwnedJson::form("text")), ("text", text)])),
            );
        }
        self.inside(item, &mut blocks);
        Some(OwnedJson::List(blocks))
    }

    fn inside(&mut self, item: &Item<'a>, blocks: &mut Vec<OwnedJson>) {
        for inside in &item.inside {
            blocks.extend(self.block("user", inside));
            self.inside(inside, blocks);
        }
    }

    fn image(&mut self, role: &str, item: &Item<'a>) -> Option<OwnedJson> {
        let source = item.native("source");
        let is_file = |source: &&Value| {
            source.str_at("type") == Some("file") && source.str_at("file_id").is_some()
        };
        let source = match source.filter(is_file) {
            Some(file) => Some(OwnedJson::of_value(file, &item.owner)),
            None => Image::of(item).map(|image| image.source(&item.owner)),
        };
        match source.filter(|_| role == "user") {
            Some(source) => {
                Some(OwnedJson::map([("type", OwnedJson::form("image")), ("source", source)]))
            }
            None => self.stand_in(item),
        }
    }

    fn opaque(&mut self, role: &str, item: &Item<'a>) -> Option<OwnedJson> {
        let kind = item.block_type().unwrap_or_default();
        let known: &[&str] = match role {
            "user" => &OF_USER,
            "assistant" => &OF_AGENT,
            "system" => &OF_SYSTEM,
            // The system prompt is text alone.
            _ => &[],
        };
        // A compaction of another provider is encrypted for that one alone.
        let is_foreign = kind == "compaction" && item.source()?.encrypted.is_some();
        let is_empty = kind == "redacted_thinking"
            && item.native("data").and_then(Value::as_str).is_none_or(str::is_empty);
        if known.contains(&kind) && !is_foreign && !is_empty {
            return item.block().map(|block| OwnedJson::of_value(&block, &item.owner));
        }
        if item.is_hidden_reasoning() || is_foreign {
            self.report.drop("reasoning");
            return None;
        }
        self.stand_in(item)
    }

    /// The summary of a compaction, as the block that it was.
    fn compaction(&mut self, role: &str, item: &Item<'a>) -> Option<OwnedJson> {
        if role != "assistant" || item.block_type() != Some("compaction") {
            return self.stand_in(item);
        }
        let content = item.text();
        Some(OwnedJson::map([("type", OwnedJson::form("compaction")), ("content", content)]))
    }

    /// The text that was captured for what has no block.
    fn stand_in(&mut self, item: &Item<'a>) -> Option<OwnedJson> {
        if item.text.is_blank() {
            self.report.drop("blank_text");
            return None;
        }
        self.report.normalise("part_as_its_text");
        Some(OwnedJson::map([("type", OwnedJson::form("text")), ("text", item.text())]))
    }
}

/// What a provider's own tool gave, as it was: what was quoted as JSON is JSON again, with what
/// was kept apart.
fn provider_content(item: &Item<'_>) -> OwnedJson {
    if item.form() == Some(ContentForm::Json) {
        return unquoted(item);
    }
    if item.inside.is_empty() && !item.text.as_str().is_empty() {
        return item.text();
    }
    let part = |inside: &Item<'_>| {
        if inside.form() == Some(ContentForm::Json) {
            return unquoted(inside);
        }
        let mut block =
            OwnedJson::map([("type", OwnedJson::form("text")), ("text", inside.text())]);
        put_members(&mut block, inside);
        block
    };
    OwnedJson::List(item.inside.iter().map(part).collect())
}

fn unquoted(item: &Item<'_>) -> OwnedJson {
    let mut value = parsed::parse(&item.text, &item.owner).unwrap_or_else(|| item.text());
    for hidden in &item.inside {
        put_members(&mut value, hidden);
    }
    value
}

/// Gives a part of a result the members that its source had. Some kinds stand in a message alone (a
/// call, a result, reasoning): a part of such a kind stays a text.
fn put_members(block: &mut OwnedJson, item: &Item<'_>) {
    let is_of_message = |kind: &str| {
        ["tool_use", "tool_result", "thinking"].iter().any(|end| kind.ends_with(end))
            || OF_AGENT.contains(&kind)
            || OF_SYSTEM.contains(&kind)
    };
    if item.block_type().is_some_and(is_of_message) {
        return;
    }
    if let Some(Value::Object(source)) = item.block() {
        for (key, value) in source.iter().filter(|(key, value)| !is_void(key, value)) {
            block.put(key, OwnedJson::of_value(value, &item.owner));
        }
    }
}
