use std::{borrow::Cow, collections::HashMap, fmt, ops::Range};

use regex_automata::{Anchored, Input};

use super::{
    bare::BareSecrets,
    log_lists::empty_log_lists,
    report::{Redaction, RedactionReport},
    rules::{QUOTED_GROUPS, RedactionRules, Rule, plain_name},
};
use crate::json::{Object, Value};

/// What every placeholder begins with.
pub(super) const MARK: &str = "[redacted:";

/// Puts placeholders in the place of secrets: `[redacted:RULE:NUMBER]`, where the number counts the
/// secrets in the order in which they were found. The same secret has the same placeholder
/// everywhere, whichever rule finds it; nothing of it is in the placeholder.
///
/// Use one redactor for all that belongs together. Texts that were redacted stay as they are.
#[derive(Debug)]
pub struct Redactor {
    pub(super) rules: RedactionRules,
    /// The secrets, and which of those found each is.
    known: HashMap<Box<str>, usize>,
    report: RedactionReport,
    bare: BareSecrets,
    /// The greatest number of a placeholder that was there before.
    taken: usize,
}

/// A part of a text with what takes its place.
pub(super) type Replacement = (Range<usize>, String);

impl Redactor {
    /// A redactor by rules. Of two rules that find something at the same place, the earlier one is
    /// taken. O(rules).
    pub fn new(rules: &RedactionRules) -> Self {
        let (rules, known, report) = (rules.clone(), HashMap::new(), RedactionReport::default());
        Self { rules, known, report, bare: BareSecrets::default(), taken: 0 }
    }

    /// Gives no secret a placeholder that stands in this text already, nor one with a smaller number:
    /// what was redacted before has secrets that nobody knows. Call it before anything is found.
    /// O(text).
    ///
    /// ```
    /// use afterimage::redact::{RedactionRules, Redactor};
    ///
    /// let mut redactor = Redactor::new(&RedactionRules::embedded()?);
    /// redactor.count_behind("PGPASSWORD=[redacted:environment:4] psql");
    /// assert_eq!(redactor.text("PGPASSWORD=tide-7-calm", ""), "PGPASSWORD=[redacted:environment:5]");
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn count_behind(&mut self, text: &str) {
        for (at, _) in text.match_indices(MARK) {
            let rest = text.get(at + MARK.len()..).unwrap_or_default();
            let placeholder = rest.split(']').next().unwrap_or_default();
            let number = placeholder.rsplit(':').next().and_then(|number| number.parse().ok());
            self.taken = self.taken.max(number.unwrap_or_default());
        }
    }

    /// Begins a second pass over the same texts: the report begins anew, and what is known stays. So
    /// what the first pass found is found everywhere, also where it stands bare before the place
    /// that tells it. O(findings).
    ///
    /// ```
    /// use afterimage::redact::{RedactionRules, Redactor};
    ///
    /// let texts = ["Use tide-7-calm.", "PGPASSWORD=tide-7-calm psql"];
    /// let mut redactor = Redactor::new(&RedactionRules::embedded()?);
    /// texts.iter().for_each(|text| drop(redactor.text(text, "")));
    /// redactor.start_second_pass();
    /// assert_eq!(redactor.text(texts[0], "line 1"), "Use [redacted:environment:1].");
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn start_second_pass(&mut self) {
        for redaction in &mut self.report.found {
            (redaction.times, redaction.first) = (0, String::new());
        }
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
    /// a whole; names are texts too. Where a placeholder stands in it, lists of log probabilities are
    /// emptied, which repeat the text token by token. O(size).
    pub fn value(&mut self, value: Value, place: &str) -> Value {
        let mut redacted = self.value_at(value, &place);
        empty_log_lists(&mut redacted);
        redacted
    }

    pub(super) fn at<'t>(&mut self, text: &'t str, place: &dyn fmt::Display) -> Cow<'t, str> {
        let found = self.find_any(text, place);
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, &found)) }
    }

    /// What of a text, which may be JSON, is to be replaced, in order.
    pub(super) fn find_any(&mut self, text: &str, place: &dyn fmt::Display) -> Vec<Replacement> {
        self.find_in_json(text, place).unwrap_or_else(|| self.find(text, place))
    }

    /// What of a text is to be replaced, in order: what a rule finds, and what was found before and
    /// stands bare here.
    pub(super) fn find(&mut self, text: &str, place: &dyn fmt::Display) -> Vec<Replacement> {
        let mut found = self.find_by_rules(text, place);
        let bare = self.bare.find(text, &found);
        if !bare.is_empty() {
            for range in bare {
                let secret = text.get(range.clone()).unwrap_or_default();
                let placeholder = self.placeholder("", secret, place);
                found.push((range, placeholder));
            }
            found.sort_by_key(|(range, _)| range.start);
        }
        found
    }

    fn find_by_rules(&mut self, text: &str, place: &dyn fmt::Display) -> Vec<Replacement> {
        let rules = self.rules.clone();
        let mut found = Vec::new();
        for (range, rule) in rules.matches(text) {
            let secret = text.get(range.clone()).unwrap_or_default();
            let rule = rules.rules.get(rule).map_or("", |rule| rule.id.as_str());
            let placeholder = self.placeholder(rule, secret, place);
            found.push((range, placeholder));
        }
        found
    }

    /// The placeholder of a secret that a rule found, which is then found bare too.
    fn placeholder(&mut self, rule: &str, secret: &str, place: &dyn fmt::Display) -> String {
        let is_known = self.known.contains_key(secret);
        let placeholder = self.unlearnt(rule, secret, place);
        if !is_known {
            self.bare.learn(rule, secret);
        }
        placeholder
    }

    /// The placeholder of what is to be found nowhere else: half of a secret may be a word.
    pub(super) fn unlearnt(
        &mut self,
        rule: &str,
        secret: &str,
        place: &dyn fmt::Display,
    ) -> String {
        let known = self.known.get(secret).copied();
        let is_first =
            known.and_then(|at| self.report.found.get(at)).is_none_or(|of| of.times == 0);
        let first = is_first.then(|| self.told(place));
        if let Some(redaction) = known.and_then(|at| self.report.found.get_mut(at)) {
            if let Some(first) = first {
                redaction.first = first;
            }
            redaction.times += 1;
            return redaction.placeholder.clone();
        }
        let number = self.report.found.len();
        let placeholder = format!("{MARK}{rule}:{}]", self.taken.saturating_add(number + 1));
        self.known.insert(secret.into(), number);
        self.report.found.push(Redaction {
            rule: rule.to_owned(),
            placeholder: placeholder.clone(),
            times: 1,
            first: first.unwrap_or_default(),
        });
        placeholder
    }

    /// A place as the report tells it, with `…` for each secret in it: a member that holds a secret
    /// may be called by one.
    fn told(&self, place: &dyn fmt::Display) -> String {
        let mut rules = Self::new(&self.rules);
        let place = place.to_string();
        let steps = place.split(STEP).map(|step| {
            let mut found = match step {
                // Nothing is told of where these secrets stand.
                "" => Vec::new(),
                step => rules.find_by_rules(step, &""),
            };
            let bare = self.bare.find(step, &found);
            found.extend(bare.into_iter().map(|range| (range, String::new())));
            found.sort_by_key(|(range, _)| range.start);
            for (_, hidden) in &mut found {
                "…".clone_into(hidden);
            }
            replaced(step, &found)
        });
        steps.collect::<Vec<_>>().join("/")
    }

    /// The text of a member with this name.
    pub(super) fn member<'t>(
        &mut self,
        name: &str,
        text: &'t str,
        place: &dyn fmt::Display,
    ) -> Cow<'t, str> {
        match self.named(name, text, place) {
            Some(placeholder) => Cow::Owned(placeholder),
            None => self.at(text, place),
        }
    }

    /// What takes the place of all that a member with this name holds, a text or a number, if its
    /// name says that it is a secret.
    pub(super) fn named(
        &mut self,
        name: &str,
        held: &str,
        place: &dyn fmt::Display,
    ) -> Option<String> {
        let plain = plain_name(name);
        let is_secret = |rule: &Rule| rule.is_named(name, &plain) && rule.is_value(held, true);
        let rule = self.rules.rules.iter().find(|rule| is_secret(rule))?;
        let rule = (!held.contains(MARK)).then(|| rule.id.clone())?;
        Some(self.placeholder(&rule, held, place))
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

impl RedactionRules {
    /// The secrets that rules find in a text, in order, each with its rule. They do not overlap.
    pub(super) fn matches(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        let (all, numbers) = self.for_text(text);
        // What stands behind a secret is looked at as if it began there: a placeholder will.
        let (mut begin, mut from) = (0, 0);
        while let Some(rest) = text.get(begin..).filter(|rest| from <= rest.len()) {
            let Some(whole) = all.search(&Input::new(rest).range(from..)) else { break };
            let number = whole.pattern().as_usize();
            let number = numbers.map_or(Some(number), |numbers| numbers.get(number).copied());
            let Some(number) = number else { break };
            let Some(rule) = self.rules.get(number) else { break };
            let regex = &rule.expression.regex;
            let mut captures = regex.create_captures();
            let input = Input::new(rest).range(whole.range()).anchored(Anchored::Yes);
            regex.search_captures(&input, &mut captures);
            let group = match rule.group {
                Some(group) => captures.get_group(group),
                None => (1..captures.group_len()).find_map(|group| captures.get_group(group)),
            };
            let span = group.unwrap_or_else(|| whole.span());
            let is_quoted = (1..=QUOTED_GROUPS).any(|group| captures.get_group(group).is_some());
            let secret = rest.get(span.start..span.end).unwrap_or_default();
            let around = rest.get(whole.range()).unwrap_or_default();
            let is_called =
                !is_quoted && rest.get(span.end..).is_some_and(|rest| rest.starts_with('('));
            let is_new = !secret.is_empty() && !around.contains(MARK) && !is_called;
            if is_new && rule.takes(rest, around, secret, is_quoted) {
                found.push((begin + span.start..begin + span.end, number));
                (begin, from) = (begin + span.end, 0);
            } else {
                from = span.start.max(next_char(rest, whole.start()));
            }
        }
        found
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
