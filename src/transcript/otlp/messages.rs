//! Where the messages of a call stand in its span.

use super::{any_value::structured, message::SpanMessage, older, span::SpanRecord, vercel};
use crate::json::Value;

impl SpanRecord {
    /// The messages of the request; `None` where they were cut, or are no list. The attribute of the
    /// conventions comes first, then the places of [`first_of`].
    pub(super) fn input(&self, notes: &mut Vec<String>) -> Option<Vec<SpanMessage>> {
        const INPUT: &str = "gen_ai.input.messages";
        if let Some(value) = self.attributes.get(INPUT) {
            let list = list(INPUT, value, notes)?;
            return Some(messages(INPUT, list, notes));
        }
        Some(first_of([
            &|| older::numbered(&self.attributes, "gen_ai.prompt", "user"),
            &|| older::numbered(&self.attributes, "llm.input_messages", "user"),
            &|| vercel::input(&self.attributes),
            &|| older::events_in(&self.events),
            &|| older::listed(&self.attributes, "gen_ai.prompt", "user"),
        ]))
    }

    /// The messages of the response: one for each choice. They are looked for as those of the request.
    pub(super) fn output(&self, notes: &mut Vec<String>) -> Vec<SpanMessage> {
        const OUTPUT: &str = "gen_ai.output.messages";
        if let Some(value) = self.attributes.get(OUTPUT) {
            let list = list(OUTPUT, value, notes).unwrap_or_default();
            return messages(OUTPUT, list, notes);
        }
        first_of([
            &|| older::numbered(&self.attributes, "gen_ai.completion", "assistant"),
            &|| older::numbered(&self.attributes, "llm.output_messages", "assistant"),
            &|| vercel::output(&self.attributes),
            &|| older::events_out(&self.events),
            &|| older::listed(&self.attributes, "gen_ai.completion", "assistant"),
        ])
    }
}

/// The messages of the first place that holds any.
fn first_of(places: [&dyn Fn() -> Vec<SpanMessage>; 5]) -> Vec<SpanMessage> {
    places.iter().map(|read| read()).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The list that an attribute holds. What was cut, or is something else, is noted.
pub(super) fn list(key: &str, value: &Value, notes: &mut Vec<String>) -> Option<Vec<Value>> {
    match structured(value) {
        Ok(Value::Array(list)) => return Some(list),
        Ok(Value::Null) => {}
        Ok(other) => notes.push(format!("{key} is {}, not an array: left out", other.kind())),
        Err(text) => notes.push(cut(key, text)),
    }
    None
}

/// The messages in a list. What is none is kept as it is, and noted.
fn messages(key: &str, list: Vec<Value>, notes: &mut Vec<String>) -> Vec<SpanMessage> {
    let message = |value: Value| {
        SpanMessage::of_message(value.clone()).unwrap_or_else(|| {
            notes.push(format!("{key} holds {} without a role or parts", value.kind()));
            SpanMessage::of_other(value)
        })
    };
    list.into_iter().map(message).collect()
}

/// What is noted of a text that is no whole JSON.
pub(super) fn cut(key: &str, text: &str) -> String {
    format!(
        "{key} is no whole JSON: it ends after {} characters, as where a limit cut it",
        text.chars().count()
    )
}
