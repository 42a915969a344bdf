//! One branch of a session.

use std::collections::VecDeque;

use afterimage::{
    json::Value,
    transcript::Record,
    veil::{Branch, Frame},
};

/// Whether a frame is that of the record with this id, or of several records and one of them has it.
pub(super) fn is_of(frame: &Frame, id: &str) -> bool {
    let has_id =
        |value: &Value| ["uuid", "id"].into_iter().any(|key| value.str_at(key) == Some(id));
    let member = |key: &str| frame.imported.as_ref()?.get(key);
    let parts = member("parts").and_then(Value::as_array).unwrap_or_default();
    frame.uuid.as_deref() == Some(id)
        || member("record").is_some_and(has_id)
        || parts.iter().any(has_id)
}

/// The frames on the path to the last of these, which are all up to it. They tell of no branch.
pub(super) fn path(mut records: Vec<Record>) -> VecDeque<Record> {
    let session = records.last().map(|record| record.session.clone());
    records.retain(|record| Some(&record.session) == session.as_ref());
    let told = records.iter().rev().find_map(|record| Branch::of(&record.frame).ok().flatten());
    let outside = told.map(|branch| branch.outside).unwrap_or_default();
    let is_inside = |record: &Record| {
        let at = outside.partition_point(|range| *range.end() < record.frame.sequence);
        outside.get(at).is_none_or(|range| !range.contains(&record.frame.sequence))
    };
    records.retain(is_inside);
    for record in &mut records {
        record.frame.events.retain(|event| !Branch::is_event(event));
    }
    records.into()
}
