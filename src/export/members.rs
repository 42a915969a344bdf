//! The members of the source that a form takes over, and their shapes.

use super::{
    owned::OwnedJson,
    report::ExportReport,
    turns::{Item, Turn},
};
use crate::{hud::Owner, json::Value};

/// What importers keep for themselves, and what exports write anew.
const OWN: [&str; 5] = ["role", "type", "form", "record", "parts"];
/// The same of a part.
const OWN_OF_PARTS: [&str; 2] = ["type", "cache_control"];

/// A member by name, and what it must be.
pub(super) type Member = (&'static str, fn(&Value) -> bool);

pub(super) fn text(value: &Value) -> bool {
    value.as_str().is_some()
}

pub(super) fn text_or_null(value: &Value) -> bool {
    value.is_null() || text(value)
}

pub(super) fn list(value: &Value) -> bool {
    value.as_array().is_some()
}

pub(super) fn object(value: &Value) -> bool {
    value.as_object().is_some()
}

/// Who called a tool, as Anthropic has it: the model, or code that it ran.
pub(super) fn caller(value: &Value) -> bool {
    match value.str_at("type") {
        Some("direct") => true,
        Some(kind) => kind.starts_with("code_execution_") && value.str_at("tool_id").is_some(),
        None => false,
    }
}

pub(super) fn object_or_null(value: &Value) -> bool {
    value.is_null() || object(value)
}

pub(super) fn flag(value: &Value) -> bool {
    value.as_bool().is_some()
}

/// Puts the members of the source's message that are among `taken` into `message`, unless the
/// export has written them already. The rest is reported.
pub(super) fn take_over(
    message: &mut OwnedJson,
    turn: &Turn<'_>,
    taken: &[Member],
    report: &mut ExportReport,
) {
    for (key, value) in turn.imported.iter().flat_map(|imported| &imported.members) {
        if OWN.contains(&key.as_str()) {
            continue;
        }
        if fits(taken, key, value) && message.get(key).is_none() {
            message.put(key, OwnedJson::of_value(value, &Owner::Framing("member")));
        } else {
            report.leave_out(key);
        }
    }
}

/// The same for a part: the members of its block.
pub(super) fn take_over_block(
    part: &mut OwnedJson,
    item: &Item<'_>,
    taken: &[Member],
    report: &mut ExportReport,
) {
    let Some(Value::Object(block)) = item.block() else { return };
    for (key, value) in &block {
        if fits(taken, key, value) {
            part.put(key, OwnedJson::of_value(value, &item.owner));
        } else if !OWN_OF_PARTS.contains(&key.as_str()) {
            report.leave_out(key);
        }
    }
}

fn fits(taken: &[Member], key: &str, value: &Value) -> bool {
    taken.iter().any(|(name, fits)| *name == key && fits(value))
}
