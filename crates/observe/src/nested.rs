//! What an answer lost below its members: an error in place of what was known, another kind of
//! value where the policy reads.

use jiter::{Jiter, Peek};

use super::{Pointer, Policy, ToolRule, shape::WORDS, shown::is_scalar};
use crate::json::{Object, Value};

/// The members of an answer that hold nothing of what they held before.
#[derive(Debug, Default)]
pub(super) struct Nested {
    gone: Vec<String>,
}

/// The kinds of values that are told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Scalar,
    Elements,
    Members,
}

impl Kind {
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Self::Scalar,
            Value::Array(_) => Self::Elements,
            Value::Object(_) => Self::Members,
        }
    }

    /// Whether a part of this kind is lost where one of the other kind takes its place.
    fn is_lost_with(self, new: Self) -> bool {
        matches!(self, Self::Elements | Self::Members) && new != Self::Null && new != self
    }
}

/// The two answers while they are compared.
struct Walk<'a> {
    policy: &'a Policy,
    rule: &'a ToolRule,
    path: Vec<String>,
}

impl Nested {
    /// Compares a known object, as text, with the one that is to take its place. `None` where a
    /// value of another kind stands in a place that the policy reads.
    ///
    /// Runs in O(length of the known text). No more of it is read than the places ask for.
    pub(super) fn between(
        policy: &Policy,
        rule: &ToolRule,
        known: &str,
        new: &Value,
    ) -> Option<Self> {
        let mut nested = Self::default();
        let Some(new) = new.as_object() else { return Some(nested) };
        let mut walk = Walk { policy, rule, path: Vec::new() };
        let mut reader = Jiter::new(known.trim_start().as_bytes());
        // What cannot be read is damaged, and nothing is lost with it.
        match walk.members(&mut reader, new, &mut nested.gone) {
            Some(true) => None,
            Some(false) | None => Some(nested),
        }
    }

    /// Whether the member holds an error, or nothing beside one.
    pub(super) fn is_gone(&self, member: &str) -> bool {
        self.gone.iter().any(|gone| gone == member)
    }
}

impl Walk<'_> {
    /// Walks through an object that is known. Says whether a part of it is lost that the policy
    /// reads, and names in `gone` the members that are lost. `None` where the text is no JSON.
    fn members(
        &mut self,
        known: &mut Jiter<'_>,
        new: &Object,
        gone: &mut Vec<String>,
    ) -> Option<bool> {
        let has_error = new.iter().any(|(member, value)| is_error(member, value));
        let mut is_lost = false;
        let mut key = known.next_object().ok()?.map(str::to_owned);
        while let Some(member) = key {
            let kind = match known.peek().ok()? {
                Peek::Null => Kind::Null,
                Peek::Array => Kind::Elements,
                Peek::Object => Kind::Members,
                _ => Kind::Scalar,
            };
            self.path.push(member);
            let member = self.path.last().map(String::as_str).unwrap_or_default();
            let found = new.get(member);
            let is_read = self.is_read();
            let is_gone = match found {
                None => false,
                Some(Value::Null) => has_error && kind != Kind::Null,
                Some(found) => is_read && kind.is_lost_with(Kind::of(found)),
            };
            is_lost |= is_gone && found.is_some_and(|found| !found.is_null());
            let mut says_nothing = is_gone;
            match found.and_then(Value::as_object) {
                Some(found) if kind == Kind::Members && self.tells_only_error(found) => {
                    // What was an error before is none the worse.
                    if self.says_something(known)? {
                        says_nothing = true;
                        is_lost |= is_read;
                    }
                }
                Some(found) if kind == Kind::Members && is_read => {
                    is_lost |= self.members(known, found, &mut Vec::new())?;
                }
                _ => known.next_skip().ok()?,
            }
            let member = self.path.pop()?;
            if says_nothing {
                gone.push(member);
            }
            key = known.next_key().ok()?.map(str::to_owned);
        }
        Some(is_lost)
    }

    /// Whether the policy's sections read something at the path, or below it.
    fn is_read(&self) -> bool {
        self.rule.places().any(|place| place.segments().starts_with(&self.path))
    }

    /// Whether this member of the object at the path says nothing of the world.
    fn is_word(&self, member: &str, is_scalar: bool) -> bool {
        let is_tick = || {
            self.policy.ticks.iter().any(|tick| {
                tick.segments()
                    .split_last()
                    .is_some_and(|(last, above)| last == member && above == self.path.as_slice())
            })
        };
        is_scalar && (WORDS.contains(&member) || is_tick())
    }

    /// Whether an object at the path holds an error, and nothing of the world.
    fn tells_only_error(&mut self, object: &Object) -> bool {
        let mut has_error = false;
        for (member, value) in object {
            let is_told = match value {
                Value::Null => false,
                _ if is_error(member, value) => true,
                Value::Object(inside) => {
                    self.path.push(member.clone());
                    let is_told = self.tells_only_error(inside);
                    self.path.pop();
                    if !is_told {
                        return false;
                    }
                    true
                }
                Value::Array(_) => return false,
                _ if self.is_word(member, true) => member == "message",
                _ => return false,
            };
            has_error |= is_told;
        }
        has_error
    }

    /// Whether the known object at the path holds something of the world. Reads it to its end.
    fn says_something(&self, known: &mut Jiter<'_>) -> Option<bool> {
        let mut says_something = false;
        let mut key = known.next_object().ok()?.map(str::to_owned);
        while let Some(member) = key {
            let is_scalar = !matches!(known.peek().ok()?, Peek::Array | Peek::Object);
            says_something |= member != "errors" && !self.is_word(&member, is_scalar);
            known.next_skip().ok()?;
            key = known.next_key().ok()?.map(str::to_owned);
        }
        Some(says_something)
    }
}

/// Whether a member tells an error: `error` or `errors` that is not blank, `ok` or `success` that
/// is false.
pub(super) fn is_error(member: &str, value: &Value) -> bool {
    match member {
        "error" | "errors" => is_said(value),
        "ok" | "success" => matches!(value, Value::Bool(false)),
        _ => false,
    }
}

/// Whether a value is neither null, false, zero nor empty.
pub(super) fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Whether a part may not go to a place where `known` stands: it is an error, no object where one
/// is known, or no list where the policy reads one.
pub(super) fn is_other_part(
    (policy, rule): (&Policy, &ToolRule),
    to: &Pointer,
    known: &Value,
    part: &Value,
) -> bool {
    let mut walk = Walk { policy, rule, path: to.segments().to_vec() };
    match (known, part) {
        (Value::Object(known), Value::Object(part)) => {
            let says = |(member, value): (&String, &Value)| !walk.is_word(member, is_scalar(value));
            known.iter().any(says) && walk.tells_only_error(part)
        }
        (Value::Array(_), part) => walk.is_read() && !matches!(part, Value::Array(_)),
        (Value::Object(_), _) => true,
        _ => false,
    }
}
