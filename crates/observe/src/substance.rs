//! Whether an answer holds anything of the world: of itself, and beside what is known.

use super::{
    IgnoreReason, Policy,
    nested::is_error,
    shape::{WORDS, is_refusal, meant},
    shown::is_scalar,
};
use crate::json::{self, Object, Value};

/// Texts that stand where a value is missing.
const PLACEHOLDERS: [&str; 6] = ["", "n/a", "na", "null", "nil", "undefined"];

/// What an answer leaves of a value that is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// It says something.
    Something,
    /// A text or a boolean stands as it was.
    Same,
    /// Nothing was known that could be lost.
    Unknown,
    /// Lists are empty now, and still lists.
    EmptyLists,
    /// A text is blank now.
    Blank,
    /// An object, a list or a number is gone.
    Nothing,
}

/// Why an answer may not be the first that is known: it is empty, or tells nothing but an error.
pub(super) fn first_refusal(policy: &Policy, new: &Value) -> Option<IgnoreReason> {
    let is_failure = match new {
        Value::Object(object) => tells_only_failure(policy, object),
        _ => false,
    };
    if is_failure {
        return Some(IgnoreReason::Failed);
    }
    holds_nothing(policy, new).then_some(IgnoreReason::Empty)
}

/// Whether nothing of substance is left of what is known: every object, list and number of it is
/// null, empty or gone, and no text or boolean tells anything new. Lists that are empty lists now
/// are news, where nothing but lists was known beside texts and booleans.
///
/// Reads the known text only where the answer does not hold a number below its members.
pub(super) fn is_emptied(policy: &Policy, known: &str, new: &Value) -> bool {
    let says_more = match new {
        Value::Object(object) => object.iter().any(|(member, value)| {
            !is_word(policy, member) && !is_scalar(value) && holds_number(policy, value)
        }),
        other => !holds_nothing(policy, other),
    };
    if says_more {
        return false;
    }
    // What cannot be read is damaged, and nothing is lost with it.
    json::read(known.as_bytes())
        .is_ok_and(|known| left_of(policy, &known, Some(new)) == Left::Nothing)
}

/// Whether a member says something of the answer, and nothing of the world.
fn is_word(policy: &Policy, member: &str) -> bool {
    let ticks = || policy.ticks.iter().filter_map(|tick| tick.segments().last());
    WORDS.contains(&member) || ticks().any(|tick| tick == member)
}

fn holds_number(policy: &Policy, value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::Array(elements) => elements.iter().any(|element| holds_number(policy, element)),
        Value::Object(object) => {
            let mut members = object.iter().filter(|(member, _)| !is_word(policy, member));
            members.any(|(_, value)| holds_number(policy, value))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Whether a value is null, a placeholder, or an object or a list of such values. An empty list
/// says that there is nothing, which is something.
fn holds_nothing(policy: &Policy, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => {
            let text = meant(text);
            PLACEHOLDERS.contains(&text.trim().to_ascii_lowercase().as_str())
        }
        Value::Array(elements) => {
            !elements.is_empty() && elements.iter().all(|element| holds_nothing(policy, element))
        }
        Value::Object(object) => {
            let of_world = |(member, value): &(&String, &Value)| {
                !(is_scalar(value) && is_word(policy, member))
            };
            // Where the server has nothing but words, they may be the answer.
            let has_world = object.iter().any(|member| of_world(&member));
            let mut members = object.iter().filter(|member| !has_world || of_world(member));
            members.all(|(_, value)| holds_nothing(policy, value))
        }
    }
}

/// Whether an object tells an error, and beside it nothing but words and texts.
fn tells_only_failure(policy: &Policy, object: &Object) -> bool {
    let (mut fails, mut has_error, mut has_text) = (false, false, false);
    for (member, value) in object {
        match value {
            Value::Null => {}
            _ if is_error(member, value) => {
                fails = true;
                has_error |= matches!(member.as_str(), "error" | "errors");
            }
            Value::Object(inside) if tells_only_failure(policy, inside) => fails = true,
            Value::Number(number) if matches!(member.as_str(), "code" | "status") => {
                fails |= number.as_u64().is_some_and(|code| (400..600).contains(&code));
            }
            Value::String(text) if matches!(member.as_str(), "code" | "status") => {
                let text = text.to_ascii_lowercase();
                fails |= matches!(text.as_str(), "error" | "failed" | "failure" | "fail");
            }
            Value::String(_) if matches!(member.as_str(), "message" | "detail" | "reason") => {
                fails |= is_refusal(value);
            }
            _ if is_scalar(value) && is_word(policy, member) => {}
            Value::String(_) | Value::Bool(_) => has_text = true,
            Value::Number(_) | Value::Array(_) | Value::Object(_) => return false,
        }
    }
    fails && (has_error || !has_text)
}

/// What is left of a known value where `new` takes its place.
fn left_of(policy: &Policy, known: &Value, new: Option<&Value>) -> Left {
    if holds_nothing(policy, known) {
        return Left::Unknown;
    }
    let new = new.unwrap_or(&Value::Null);
    let says_nothing = holds_nothing(policy, new);
    match (known, new) {
        (Value::Null, _) => Left::Unknown,
        (Value::Array(known), _) if known.is_empty() => Left::Unknown,
        (Value::Array(_), Value::Array(new)) if new.is_empty() => Left::EmptyLists,
        (Value::Object(known), Value::Object(new)) => left_of_members(policy, known, new),
        (Value::Object(_), Value::Array(new)) if new.is_empty() => Left::Nothing,
        (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_))
        | (Value::Number(_), _)
            if !says_nothing =>
        {
            Left::Something
        }
        (Value::Number(_) | Value::Array(_) | Value::Object(_), _) => Left::Nothing,
        (Value::String(_) | Value::Bool(_), _) if known == new => Left::Same,
        (Value::String(_) | Value::Bool(_), _) if says_nothing => Left::Blank,
        (Value::String(_) | Value::Bool(_), _) => Left::Something,
    }
}

fn left_of_members(policy: &Policy, known: &Object, new: &Object) -> Left {
    // What was not there before may be what took the place of the rest.
    let is_news = |(member, value): (&String, &Value)| {
        !known.contains_key(member)
            && !is_word(policy, member)
            && match value {
                Value::Array(elements) => !elements.is_empty() && !holds_nothing(policy, value),
                Value::Object(_) => !holds_nothing(policy, value),
                _ => false,
            }
    };
    if new.iter().any(is_news) {
        return Left::Something;
    }
    let (mut has_same, mut has_blank) = (false, false);
    let (mut has_empty_lists, mut has_nothing) = (false, false);
    for (member, value) in known {
        if is_scalar(value) && is_word(policy, member) {
            continue;
        }
        match (left_of(policy, value, new.get(member)), value) {
            (Left::Something, _) | (Left::Same, Value::Object(_)) => return Left::Something,
            (Left::Same, _) => has_same = true,
            (Left::Blank, _) => has_blank = true,
            (Left::EmptyLists, _) => has_empty_lists = true,
            (Left::Nothing, _) => has_nothing = true,
            (Left::Unknown, _) => {}
        }
    }
    match (has_nothing, has_empty_lists, has_same, has_blank) {
        (true, ..) => Left::Nothing,
        (_, true, ..) => Left::EmptyLists,
        (_, _, true, _) => Left::Same,
        (.., true) => Left::Nothing,
        _ => Left::Unknown,
    }
}
