use std::{borrow::Cow, collections::HashMap, fmt, ops::Range};

use regex_automata::{Input, util::captures::Captures};

use super::{
    report::{Redaction, RedactionReport},
    rules::{RedactionRules, Rule, plain_name},
};
use crate::json::{Object, Value};

/// What every placeholder begins with.
const MARK: &str = "[redacted:";

/// Puts placeholders in the place of secrets: `[redacted:RULE:NUMBER]`, where the number counts the
/// secrets in the order in which they were found. The same secret has the same placeholder
/// everywhere, whichever rule finds it; nothing of it is in the placeholder.
///
/// Use one redactor for all that belongs together. Texts that were redacted stay as they are.
#[derive(Debug)]
pub struct Redactor {
    rules: RedactionRules,
    captures: Captures,
    /// The secrets, and which of those found each is.
    known: HashMap<Box<str>, usize>,
    report: RedactionReport,
}

/// A part of a text with what takes its place.
pub(super) type Replacement = (Range<usize>, String);

impl Redactor {
    /// A redactor by rules. Of two rules that find something at the same place, the earlier one is
    /// taken.
    pub fn new(rules: &RedactionRules) -> Self {
        let captures = rules.regex.create_captures();
        let (rules, known, report) = (rules.clone(), HashMap::new(), RedactionReport::default());
        Self { rules, captures, known, report }
    }

    /// What was found so far.
    pub fn report(&self) -> &RedactionReport {
        &self.report
    }

    /// A text without its secrets. `place` says in the report where it stands. Runs in time linear
    /// in the text.
    pub fn text<'t>(&mut self, text: &'t str, place: &str) -> Cow<'t, str> {
        self.at(text, &place)
    }

    /// A JSON value without its secrets. Members whose names say that they hold one are redacted as
    /// a whole; names are texts too.
    pub fn value(&mut self, value: Value, place: &str) -> Value {
        self.value_at(value, &place)
    }

    pub(super) fn at<'t>(&mut self, text: &'t str, place: &dyn fmt::Display) -> Cow<'t, str> {
        let found = self.find(text, place);
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, &found)) }
    }

    /// What of a text is to be replaced, in order.
    pub(super) fn find(&mut self, text: &str, place: &dyn fmt::Display) -> Vec<Replacement> {
        let mut found = Vec::new();
        let rules = self.rules.clone();
        // What stands behind a secret is looked at as if it began there: a placeholder will.
        let (mut begin, mut from) = (0, 0);
        while let Some(rest) = text.get(begin..).filter(|rest| from <= rest.len()) {
            let captures = &mut self.captures;
            rules.regex.search_captures(&Input::new(rest).range(from..), captures);
            let (Some(whole), Some(pattern)) = (captures.get_match(), captures.pattern()) else {
                break;
            };
            let Some(rule) = rules.rules.get(pattern.as_usize()) else { break };
            let group = match rule.group {
                Some(group) => captures.get_group(group),
                None => (1..captures.group_len()).find_map(|group| captures.get_group(group)),
            };
            let span = group.unwrap_or_else(|| whole.span());
            let is_quoted = (1..=3).any(|group| captures.get_group(group).is_some());
            let secret = rest.get(span.start..span.end).unwrap_or_default();
            let around = rest.get(whole.range()).unwrap_or_default();
            let is_called =
                !is_quoted && rest.get(span.end..).is_some_and(|rest| rest.starts_with('('));
            let is_new = !secret.is_empty() && !around.contains(MARK) && !is_called;
            if is_new && rule.takes(rest, around, secret, is_quoted) {
                let placeholder = self.placeholder(&rule.id, secret, place);
                found.push((begin + span.start..begin + span.end, placeholder));
                (begin, from) = (begin + span.end, 0);
            } else {
                from = span.start.max(next_char(rest, whole.start()));
            }
        }
        found
    }

    /// The placeholder of a secret that a rule found.
    fn placeholder(&mut self, rule: &str, secret: &str, place: &dyn fmt::Display) -> String {
        if let Some(redaction) =
            self.known.get(secret).and_then(|at| self.report.found.get_mut(*at))
        {
            redaction.times += 1;
            return redaction.placeholder.clone();
        }
        let number = self.report.found.len();
        let placeholder = format!("{MARK}{rule}:{}]", number + 1);
        self.known.insert(secret.into(), number);
        let (times, first) = (1, place.to_string());
        self.report.found.push(Redaction {
            rule: rule.to_owned(),
            placeholder: placeholder.clone(),
            times,
            first,
        });
        placeholder
    }

    /// The text of a member with this name.
    pub(super) fn member<'t>(
        &mut self,
        name: &str,
        text: &'t str,
        place: &dyn fmt::Display,
    ) -> Cow<'t, str> {
        let plain = plain_name(name);
        let is_secret = |rule: &Rule| rule.is_named(&plain) && rule.is_value(text, true);
        let rule = self.rules.rules.iter().find(|rule| is_secret(rule));
        match rule.filter(|_| !text.contains(MARK)).map(|rule| rule.id.clone()) {
            Some(rule) => Cow::Owned(self.placeholder(&rule, text, place)),
            None => self.at(text, place),
        }
    }

    pub(super) fn value_at(&mut self, value: Value, place: &dyn fmt::Display) -> Value {
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
                    let step = Step { place, name: &name };
                    let value = match value {
                        Value::String(text) => {
                            Value::String(self.member(&name, &text, &step).into_owned())
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

/// A member or an element of what stands at a place.
pub(super) struct Step<'s> {
    pub(super) place: &'s dyn fmt::Display,
    pub(super) name: &'s dyn fmt::Display,
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.place, self.name)
    }
}

/// A text with its replacements, which are in order and do not overlap.
pub(super) fn replaced(text: &str, found: &[Replacement]) -> String {
    let mut all = String::with_capacity(text.len());
    let mut end = 0;
    for (range, placeholder) in found {
        all.push_str(text.get(end..range.start).unwrap_or_default());
        all.push_str(placeholder);
        end = range.end;
    }
    all.push_str(text.get(end..).unwrap_or_default());
    all
}

fn next_char(text: &str, at: usize) -> usize {
    (at + 1..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len() + 1)
}
