//! Contexts message by message, and which of them changed.

use afterimage::{
    export::{ExportedRequest, OwnedJson, OwnedText},
    hud::Owner,
    id::{FrameSeq, Role},
    json::{self, Value},
    transcript::Api,
};
use similar::{Algorithm, DiffTag, TextDiff, capture_diff_slices};

use crate::answer::answer;

/// A message as people read it.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Its index; `None` where it is no message: a system prompt that stands apart, or a text.
    pub(super) index: Option<usize>,
    pub(super) role: String,
    pub(super) text: String,
    /// Where it comes from, in a few words.
    pub(super) from: String,
    /// The first and the last of its frames.
    pub(super) frames: Option<(FrameSeq, FrameSeq)>,
}

/// A message that is not the same in both contexts: of one of them, or of both.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Removed(Unit),
    Added(Unit),
    Replaced(Unit, Unit),
}

impl Unit {
    fn title(&self) -> String {
        match self.index {
            Some(index) => format!("{index} {}", self.role),
            None => self.role.clone(),
        }
    }

    pub(super) fn role(&self) -> Option<Role> {
        match self.role.as_str() {
            "system" | "developer" => Some(Role::System),
            "assistant" | "model" => Some(Role::Assistant),
            "user" | "tool" | "function" => Some(Role::User),
            _ => None,
        }
    }
}

impl Change {
    /// The message of the next context, or the one that it no longer has.
    pub(super) fn shown(&self) -> &Unit {
        match self {
            Self::Removed(unit) | Self::Added(unit) | Self::Replaced(_, unit) => unit,
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Self::Removed(unit) => format!("{} is gone", unit.title()),
            Self::Added(unit) => format!("{} is new", unit.title()),
            Self::Replaced(was, is) if was.title() == is.title() => is.title(),
            Self::Replaced(was, is) => format!("{} → {}", was.title(), is.title()),
        }
    }

    pub(super) fn answer(&self) -> MessageChange {
        let (name, was, is) = match self {
            Self::Removed(unit) => ("removed", Some(unit), None),
            Self::Added(unit) => ("added", None, Some(unit)),
            Self::Replaced(was, is) => ("replaced", Some(was), Some(is)),
        };
        let text = |unit: Option<&Unit>| unit.map(|unit| unit.text.clone());
        let (previous_text, text, diff) = match was.zip(is) {
            None => (text(was), text(is), None),
            Some((was, is)) => {
                let diff = TextDiff::from_lines(was.text.as_str(), is.text.as_str());
                (None, None, Some(diff.unified_diff().missing_newline_hint(false).to_string()))
            }
        };
        MessageChange {
            change: name,
            previous_message: was.map(|unit| unit.index),
            message: is.map(|unit| unit.index),
            previous_role: was.map(|unit| unit.role.clone()),
            role: is.map(|unit| unit.role.clone()),
            previous_text,
            text,
            diff,
        }
    }
}

answer! {
    /// What changed of a message.
    pub(crate) struct MessageChange {
        /// `removed`, `added` or `replaced`
        change: &'static str,
        /// the index in the first context, unless it is added; null of what is no message, as a
        /// system prompt that stands apart
        previous_message?: Option<usize>,
        /// the index in the second one, unless it is removed; null likewise
        message?: Option<usize>,
        /// its role in the first context, unless it is added
        previous_role?: String,
        /// its role in the second one, unless it is removed
        role?: String,
        /// of a message that is removed, what it said
        previous_text?: String,
        /// of a message that is added, what it says
        text?: String,
        /// of a message that is replaced, a unified diff of what both say
        diff?: String,
    }
}

/// The messages that are not the same, in order.
pub(super) fn changes(previous: &ExportedRequest, next: &ExportedRequest) -> Vec<Change> {
    let (was, is) = (units(previous.root()), units(next.root()));
    let mut changes = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &keys(&was), &keys(&is)) {
        let (tag, before, after) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            continue;
        }
        let mut before = was.get(before).unwrap_or_default().iter().cloned();
        let mut after = is.get(after).unwrap_or_default().iter().cloned();
        loop {
            changes.push(match (before.next(), after.next()) {
                (Some(was), Some(is)) => Change::Replaced(was, is),
                (Some(was), None) => Change::Removed(was),
                (None, Some(is)) => Change::Added(is),
                (None, None) => break,
            });
        }
    }
    changes
}

/// What tells messages apart.
fn keys(units: &[Unit]) -> Vec<(&str, &str)> {
    units.iter().map(|unit| (unit.role.as_str(), unit.text.as_str())).collect()
}

fn units(root: &OwnedJson) -> Vec<Unit> {
    let all = |list: &[OwnedJson]| -> Vec<Unit> {
        list.iter().enumerate().map(|(index, message)| unit(Some(index), message)).collect()
    };
    match root {
        OwnedJson::List(list) => all(list),
        OwnedJson::Map(members) => {
            let units = members.iter().flat_map(|(key, value)| match value {
                OwnedJson::List(list) if Api::is_conversation(key) => all(list),
                OwnedJson::List(list) if key == "tools" => list.iter().map(tool).collect(),
                value => vec![Unit { role: key.clone(), ..unit(None, value) }],
            });
            units.collect()
        }
        text => vec![Unit { role: "text".to_owned(), ..unit(None, text) }],
    }
}

/// The definition of a tool, laid out over lines.
fn tool(tool: &OwnedJson) -> Unit {
    let written = tool.as_text().map(OwnedText::as_str).unwrap_or_default();
    let name = tool.spans().first().and_then(|span| match &span.owner {
        Owner::Recorded { facet, .. } => facet.as_str().strip_prefix("tool:"),
        _ => None,
    });
    let mut lines = Vec::new();
    if let Ok(value) = json::read(written.as_bytes()) {
        laid_out(&value, "", &mut lines);
    }
    let role = format!("tool {}", name.unwrap_or("unnamed"));
    Unit { index: None, role, text: lines.join("\n"), from: String::new(), frames: None }
}

/// A value as lines, each with the path to what it says.
fn laid_out(value: &Value, path: &str, lines: &mut Vec<String>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(object) if !object.is_empty() => {
            object.iter().for_each(|(key, value)| laid_out(value, &join(key), lines));
        }
        Value::Array(list) if list.iter().any(|value| value.as_object().is_some()) => {
            for (index, value) in list.iter().enumerate() {
                laid_out(value, &join(&index.to_string()), lines);
            }
        }
        Value::String(text) => lines.push(format!("{path}: {text}")),
        other => lines.push(format!("{path}: {other}")),
    }
}

fn unit(index: Option<usize>, message: &OwnedJson) -> Unit {
    let word = |key: &str| Some(message.get(key)?.as_text()?.as_str().to_owned());
    let role = word("role").or_else(|| word("type")).unwrap_or_else(|| "message".to_owned());
    let mut lines = Vec::new();
    write(message, None, &mut lines);
    let mut owners = Owners::default();
    for (_, text) in message.texts() {
        text.spans().iter().for_each(|span| owners.add(&span.owner));
    }
    let frames = owners.frames;
    Unit { index, role, text: lines.join("\n"), from: owners.name(), frames }
}

/// The members whose text needs no name before it.
const CONTENT: [&str; 5] = ["content", "text", "output", "thinking", "system"];

/// What a message says as lines: texts as they are, other values after the name of their member.
fn write(value: &OwnedJson, key: Option<&str>, lines: &mut Vec<String>) {
    let named = |value: &str| match key {
        None => value.to_owned(),
        Some(key) if CONTENT.contains(&key) => value.to_owned(),
        Some(key) => format!("{key}: {value}"),
    };
    match value {
        OwnedJson::Text(text) if matches!((key, text.as_str()), (Some("role"), _)) => {}
        OwnedJson::Text(text)
            if matches!((key, text.as_str()), (Some("type"), "text" | "message" | "function")) => {}
        OwnedJson::Text(text) => lines.push(named(text.as_str())),
        OwnedJson::Null => {}
        OwnedJson::Bool(flag) => lines.push(named(&flag.to_string())),
        OwnedJson::Number(number) => lines.push(named(&number.to_string())),
        OwnedJson::List(list) => list.iter().for_each(|value| write(value, key, lines)),
        OwnedJson::Map(members) => {
            let members = members.iter().filter(|(key, _)| key != "cache_control");
            members.for_each(|(key, value)| write(value, Some(key), lines));
        }
    }
}

/// The owners of a message in a few words.
#[derive(Default)]
struct Owners {
    frames: Option<(FrameSeq, FrameSeq)>,
    block: Option<String>,
    is_tail: bool,
}

impl Owners {
    fn add(&mut self, owner: &Owner) {
        match owner {
            Owner::Chunk { frame, .. } | Owner::Recorded { frame: Some(frame), .. } => {
                self.frame(*frame);
            }
            Owner::Block { block, .. } => self.block = Some(block.to_string()),
            Owner::Tail { .. } => self.is_tail = true,
            _ => {}
        }
    }

    fn frame(&mut self, frame: FrameSeq) {
        let (first, last) = self.frames.unwrap_or((frame, frame));
        self.frames = Some((first.min(frame), last.max(frame)));
    }

    fn name(&self) -> String {
        let frames = self.frames.map(|(first, last)| {
            if first == last {
                format!("frame {first}")
            } else {
                format!("frames {first} to {last}")
            }
        });
        let tail = self.is_tail.then(|| "tail".to_owned());
        let names: Vec<String> = [frames, self.block.clone(), tail].into_iter().flatten().collect();
        names.join(", ")
    }
}
