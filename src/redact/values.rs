//! JSON values without their secrets: members by their names, and what stands beside a string.

use std::{borrow::Cow, fmt};

use super::{
    Redactor,
    redactor::{Replacement, replaced},
    view::View,
};
use crate::json::{self, Object, Value};

impl Redactor {
    pub(super) fn value_at(&mut self, value: Value, place: &dyn fmt::Display) -> Value {
        let value = self.inner_value_at(value, place);
        if !is_of_neighbours(&value) {
            return value;
        }
        // What stands beside a string tells what it is.
        let text = value.to_string();
        let mut found = Vec::new();
        self.add_written(&text, &mut found, place);
        let redacted = json::read(replaced(&text, &found).as_bytes());
        if found.is_empty() { value } else { redacted.unwrap_or(value) }
    }

    /// Adds what rules find in JSON as it is written to what was found in its strings, in order.
    pub(super) fn add_written(
        &mut self,
        text: &str,
        found: &mut Vec<Replacement>,
        place: &dyn fmt::Display,
    ) {
        let written = self.rules.written_matches(text);
        self.add_covering(&View::of(text), written, found, place);
    }

    fn inner_value_at(&mut self, value: Value, place: &dyn fmt::Display) -> Value {
        match value {
            Value::String(text) => match self.at(&text, place) {
                Cow::Owned(redacted) => Value::String(redacted),
                Cow::Borrowed(_) => Value::String(text),
            },
            Value::Array(list) => {
                let items = list.into_iter().enumerate();
                let redacted =
                    items.map(|(at, item)| self.value_at(item, &Step { place, name: &at }));
                Value::Array(redacted.collect())
            }
            Value::Object(members) => {
                let mut redacted = Object::new();
                for (name, value) in members {
                    let step = Step { place, name: &short_name(&name) };
                    let value = match value {
                        Value::String(text) => {
                            Value::String(self.member(&name, &text, &step).into_owned())
                        }
                        Value::Number(number) => {
                            let written = number.to_string();
                            let redacted = self.named(&name, &written, &step);
                            redacted.map_or(Value::Number(number), Value::String)
                        }
                        value => self.value_at(value, &step),
                    };
                    let name = self.at(&name, place).into_owned();
                    redacted.insert(name, value);
                }
                Value::Object(redacted)
            }
            value => value,
        }
    }
}

/// Whether a value is a list with options, a name and its value, a key, or has a member that holds a
/// few values.
fn is_of_neighbours(value: &Value) -> bool {
    match value {
        Value::Array(items) => {
            items.iter().all(|item| item.as_str().is_some())
                && items.iter().any(|item| item.as_str().is_some_and(|item| !item.contains(' ')))
                && items.len() > 1
        }
        Value::Object(members) => {
            let has_value = members.contains_key("value") && members.len() <= 8;
            has_value
                || members.contains_key("kty")
                || members.iter().any(|(_, held)| is_small(held))
        }
        _ => false,
    }
}

/// Whether a value is a list or an object of a few texts and numbers.
fn is_small(value: &Value) -> bool {
    let is_flat = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_));
    match value {
        Value::Array(items) => (1..=4).contains(&items.len()) && items.iter().all(is_flat),
        Value::Object(members) => {
            (1..=4).contains(&members.len()) && members.iter().all(|(_, held)| is_flat(held))
        }
        _ => false,
    }
}

/// What stands between the steps of a place until it is told.
pub(super) const STEP: char = '\u{1f}';
/// A name has no more characters in a place.
const NAME_CHARS: usize = 64;

/// A name as a place has it. A longer one is left out: of a secret its beginning would be left.
pub(super) fn short_name(name: &str) -> &str {
    if name.char_indices().nth(NAME_CHARS).is_some() { "…" } else { name }
}

/// A member or an element of what stands at a place.
pub(super) struct Step<'s> {
    pub(super) place: &'s dyn fmt::Display,
    pub(super) name: &'s dyn fmt::Display,
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{STEP}{}", self.place, self.name)
    }
}
