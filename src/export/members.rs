//! Which members of the source a form takes over.

use super::{owned::Owned, report::ExportReport, turns::Turn};
use crate::{hud::Owner, json::Value};

/// What importers write into a payload for themselves, and what exports write anew.
const OWN: [&str; 4] = ["role", "form", "record", "parts"];

/// Puts the members of a message's payload that are among `taken` into `message`; what is `null`
/// there is left out, unless it is among `nullable`. The rest is reported.
pub(super) fn take_over(
    message: &mut Owned,
    turn: &Turn<'_>,
    taken: &[&str],
    nullable: &[&str],
    report: &mut ExportReport,
) {
    for (key, value) in turn.payload.iter().flat_map(|payload| payload.iter()) {
        if OWN.contains(&key.as_str()) {
            continue;
        }
        if taken.contains(&key.as_str()) && (!value.is_null() || nullable.contains(&key.as_str())) {
            message.put(key, Owned::of_value(value, &Owner::Framing("member")));
        } else {
            report.leave_out(key);
        }
    }
}

/// The same for a part: the members of its origin.
pub(super) fn take_over_origin(
    part: &mut Owned,
    origin: Option<&Value>,
    taken: &[&str],
    owner: &Owner,
    report: &mut ExportReport,
) {
    let Some(Value::Object(origin)) = origin else { return };
    for (key, value) in origin {
        if taken.contains(&key.as_str()) {
            part.put(key, Owned::of_value(value, owner));
        } else if !["type", "form", "field", "idFrom"].contains(&key.as_str()) {
            report.leave_out(key);
        }
    }
}
