//! The requests that Kimi writes down, and what it tells the model of results.

use sha2::{Digest, Sha256};

use super::{parts, take};
use crate::{
    id::FacetType,
    json::{Object, ObjectExt, Value},
    veil::{Facet, ModelAnswer, PartContent},
};

/// What stands before the output of a call that failed, and in the place of an empty output.
const FAILED: &str = "<system>ERROR: Tool execution failed.</system>";
const EMPTY: &str = "<system>Tool output is empty.</system>";
const FAILED_EMPTY: &str = "<system>ERROR: Tool execution failed. Tool output is empty.</system>";

/// What the records before a request say of it.
pub(super) struct Known<'k> {
    pub(super) messages: u64,
    /// Whether one is a summary, which the model is told with words that no record has.
    pub(super) has_summary: bool,
    pub(super) system: Option<&'k str>,
    /// The hash of the tools.
    pub(super) tools: Option<&'k str>,
}

/// A request, which names its system prompt and its tools by their hashes, and counts its messages.
pub(super) struct KimiRequest {
    model: Option<Box<str>>,
    /// `None` of one that is another one than the records show, or of an unknown form.
    parameters: Option<Box<Object>>,
}

impl KimiRequest {
    /// The request of a record, and what is wrong with it.
    pub(super) fn of(record: &mut Object, known: &Known<'_>) -> (Self, Option<String>) {
        let model = take::text(record, "model").map(String::into_boxed_str);
        let count = record.get("messageCount").and_then(Value::as_u64);
        let system = known.system.map(|text| {
            Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        let wrong = if known.has_summary {
            None
        } else if count != Some(known.messages) {
            let count = count.map_or("?".to_owned(), |count| count.to_string());
            Some(format!("a request of {count} messages, where the file shows {}", known.messages))
        } else if record.str_at("systemPromptHash") != system.as_deref() {
            Some("a request with another system prompt than the file shows".to_owned())
        } else if record.str_at("toolsHash") != known.tools {
            Some("a request with other tools than the file shows".to_owned())
        } else {
            None
        };
        // What it names beside these changes the messages.
        let is_plain = ["projection", "droppedCount"].iter().all(|key| !record.contains_key(key));
        let is_chat = matches!(record.str_at("provider"), Some("openai" | "kimi"));
        let parameters =
            (wrong.is_none() && !known.has_summary && is_plain && is_chat).then(|| {
                let mut parameters = Object::new();
                let effort = record.str_at("thinkingEffort").filter(|effort| *effort != "off");
                parameters.put_some("reasoning_effort", effort);
                parameters.put_some("temperature", record.shift_remove("temperature"));
                parameters.put_some("top_p", record.shift_remove("topP"));
                Box::new(parameters)
            });
        (Self { model, parameters }, wrong)
    }

    pub(super) fn into_answer(self) -> ModelAnswer {
        let Self { model, parameters } = self;
        ModelAnswer { model, parameters, ..ModelAnswer::default() }
    }
}

/// Says in a result that the call failed, that there is no output, and what the tool notes.
pub(super) fn tell(result: &mut Facet, is_failed: bool, note: Option<String>) {
    let is_blank = |facet: &Facet| facet.content.trim().is_empty();
    let is_empty = is_blank(result) && result.children.iter().all(is_blank);
    match (is_failed, is_empty) {
        (true, true) => FAILED_EMPTY.clone_into(&mut result.content),
        (false, true) => EMPTY.clone_into(&mut result.content),
        (true, false) => put_before(result, FAILED),
        (false, false) => {}
    }
    if is_empty {
        result.children.clear();
    }
    let Some(note) = note.filter(|note| !note.is_empty()) else { return };
    if result.children.is_empty() {
        result.content.push('\n');
        result.content.push_str(&note);
    } else {
        result.children.push(parts::text(FacetType::RESULT, note));
    }
}

/// Says in a result how long the call took.
pub(super) fn tell_time(result: &mut Facet, milliseconds: u64) {
    let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    let line = format!("Wall time: {seconds}.{rest:03} seconds");
    match result.children.first_mut() {
        Some(first) if first.part.as_ref().is_none_or(|part| part.content == PartContent::Text) => {
            put_before(first, &line);
        }
        _ => put_before(result, &line),
    }
}

fn put_before(result: &mut Facet, line: &str) {
    if result.children.is_empty() {
        result.content = format!("{line}\n{}", result.content);
    } else {
        result.children.insert(0, parts::text(FacetType::RESULT, line));
    }
}
