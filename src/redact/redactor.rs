use std::{borrow::Cow, collections::HashMap, fmt, ops::Range};

use regex_automata::{Anchored, Input};

use super::{
    bare::BareSecrets,
    log_lists::empty_log_lists,
    report::{Redaction, RedactionReport},
    rules::{RedactionRules, Rule, Subset, is_of_name, plain_name},
    stream::StreamForm,
    structure::Structure,
    view::View,
};
use crate::json::{self, Object, Value};

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
        let mut found = Vec::new();
        let mut end = 0;
        for (range, form) in StreamForm::within(text) {
            let (before, stream) = (text.get(end..range.start), text.get(range.clone()));
            let before = self.find(before.unwrap_or_default(), place);
            found.extend(before.into_iter().map(|(of, to)| (end + of.start..end + of.end, to)));
            let stream = self.find_in_stream(stream.unwrap_or_default(), form, false, place);
            let start = range.start;
            found.extend(stream.into_iter().map(|(of, to)| (start + of.start..start + of.end, to)));
            end = range.end;
        }
        let rest = text.get(end..).unwrap_or_default();
        let behind = self.find_in_json(rest, place).unwrap_or_else(|| self.find(rest, place));
        found.extend(behind.into_iter().map(|(of, to)| (end + of.start..end + of.end, to)));
        found
    }

    /// What of a text is to be replaced, in order: what a rule finds, and what was found before and
    /// stands bare here.
    pub(super) fn find(&mut self, text: &str, place: &dyn fmt::Display) -> Vec<Replacement> {
        self.find_in(text, false, place)
    }

    pub(super) fn find_in(
        &mut self,
        text: &str,
        is_cut: bool,
        place: &dyn fmt::Display,
    ) -> Vec<Replacement> {
        let rules = self.rules.clone();
        let (mut shown, spelt) = rules.reading.views(text);
        shown.is_cut = is_cut;
        let mut matches = rules.matches(&shown);
        let written_out = spelt.as_ref().map_or_else(Vec::new, |view| rules.matches(view));
        if let Some(view) = &spelt {
            // A token that goes on behind a sign that is written out.
            matches.retain(|(of, _)| {
                let of = shown.range(of.clone());
                !written_out.iter().any(|(longer, rule)| {
                    let longer = view.range(longer.clone());
                    rules.rules.get(*rule).is_some_and(|rule| rule.is_token)
                        && longer.start == of.start
                        && longer.end > of.end
                })
            });
        }
        let unwrapped = rules.reading.unwrapped(text);
        let mut found = unwrapped.map_or_else(Vec::new, |view| {
            let ranges = matches.iter().map(|(of, _)| shown.range(of.clone())).collect::<Vec<_>>();
            self.replacements(&view, rules.wrapped(&view, &ranges), place)
        });
        matches.retain(|(of, _)| is_free(&found, &shown.range(of.clone())));
        let ranges: Vec<Range<usize>> = matches.iter().map(|(range, _)| range.clone()).collect();
        found.extend(self.replacements(&shown, matches, place));
        found.sort_by_key(|(range, _)| range.start);
        if let Some(view) = &spelt {
            let others = written_out.into_iter();
            let others =
                others.filter(|(of, _)| is_free(&found, &view.range(of.clone()))).collect();
            found.extend(self.replacements(view, others, place));
            found.sort_by_key(|(range, _)| range.start);
        }
        let free = found.len();
        for range in self.bare.find(&shown.text, &ranges) {
            let of = shown.range(range.clone());
            if is_free(found.get(..free).unwrap_or_default(), &of) {
                let secret = shown.text.get(range).unwrap_or_default();
                found.push((of, self.unlearnt("", secret, place)));
            }
        }
        found.sort_by_key(|(range, _)| range.start);
        let mut encoded = rules.encoded(text);
        encoded.retain(|(of, _)| is_free(&found, of));
        found.extend(self.replacements(&View::of(text), encoded, place));
        found.sort_by_key(|(range, _)| range.start);
        found
    }

    /// What takes the place of what rules found in a view.
    pub(super) fn replacements(
        &mut self,
        view: &View<'_>,
        matches: Vec<(Range<usize>, usize)>,
        place: &dyn fmt::Display,
    ) -> Vec<Replacement> {
        let rules = self.rules.clone();
        let replaced = matches.into_iter().filter_map(|(range, rule)| {
            let secret = view.text.get(range.clone())?;
            Some((view.range(range), self.placeholder(rules.rules.get(rule)?, secret, place)))
        });
        replaced.collect()
    }

    /// The placeholder of a secret that a rule found, which is then found bare too, unless the rule
    /// may find a word.
    fn placeholder(&mut self, rule: &Rule, secret: &str, place: &dyn fmt::Display) -> String {
        if rule.spreads {
            self.bare.learn(secret);
        }
        self.unlearnt(&rule.id, secret, place)
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
                step => rules.find(step, &""),
            };
            let ranges: Vec<Range<usize>> = found.iter().map(|(range, _)| range.clone()).collect();
            let bare = self.bare.find(step, &ranges);
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
        let rules = self.rules.clone();
        let rule = rules.named(name, held).filter(|_| !held.contains(MARK))?;
        Some(self.placeholder(rules.rules.get(rule)?, held, place))
    }

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

    /// Adds what rules find in JSON as it is written to what was found in its strings, in order. What
    /// covers something of that takes its place, as a key whose lines are strings.
    pub(super) fn add_written(
        &mut self,
        text: &str,
        found: &mut Vec<Replacement>,
        place: &dyn fmt::Display,
    ) {
        let mut others = self.rules.written_matches(text);
        let covers = |of: &Range<usize>, range: &Range<usize>| {
            of.start <= range.start && range.end <= of.end
        };
        others.retain(|(of, _)| {
            let mut inside =
                found.iter().filter(|(range, _)| range.start < of.end && of.start < range.end);
            inside.all(|(range, _)| covers(of, range))
        });
        found.retain(|(range, _)| !others.iter().any(|(of, _)| covers(of, range)));
        found.extend(self.replacements(&View::of(text), others, place));
        found.sort_by_key(|(range, _)| range.start);
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

impl RedactionRules {
    /// The first rule by which what a member or a column of this name holds is a secret.
    pub(super) fn named(&self, name: &str, held: &str) -> Option<usize> {
        let plain = plain_name(name);
        let is_secret = |rule: &Rule| rule.is_named(name, &plain) && rule.is_value(held, true);
        self.rules.iter().position(is_secret)
    }

    /// The secrets that rules find in a text, in order, each with its rule. They do not overlap.
    pub(super) fn matches(&self, view: &View<'_>) -> Vec<(Range<usize>, usize)> {
        let is_asked = |set: &&Subset| {
            set.keywords.as_ref().is_none_or(|keywords| keywords.is_match(&*view.text))
        };
        let sets = self.sets.iter().filter(is_asked);
        apart(sets.flat_map(|set| self.matches_of(view, set)).collect())
    }

    /// The runs of base64 that stand for a text with a token or a private key, each with its rule.
    fn encoded(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        let held = self.reading.encoded(text).into_iter().filter_map(|(range, held)| {
            let view = View::of(&held);
            let mut found = self.sets.iter().flat_map(|set| self.matches_of(&view, set));
            let is_of_issuer =
                |rule: &Rule| rule.is_token || matches!(rule.structure, Some(Structure::KeyBegin));
            let first = found.find(|(_, rule)| self.rules.get(*rule).is_some_and(is_of_issuer));
            Some((range, first?.1))
        });
        held.collect()
    }

    /// The tokens that the end of a line cuts in two; `whole` was found in the lines by themselves.
    fn wrapped(&self, view: &View<'_>, whole: &[Range<usize>]) -> Vec<(Range<usize>, usize)> {
        let sets = self.sets.iter().filter(|set| set.is_of_tokens);
        let mut found = apart(sets.flat_map(|set| self.matches_of(view, set)).collect());
        found.retain(|(of, _)| {
            let there = view.range(of.clone());
            let mut inside = whole.iter().filter(|of| of.start < there.end && there.start < of.end);
            let goes_on = |first: &Range<usize>| {
                // What follows a whole token is a part of it where it is no word.
                let tail = view.text.get(of.start + first.len()..of.end).unwrap_or_default();
                first.start == there.start && first.end < there.end && is_mixed(tail)
            };
            let is_first = inside.next().is_none_or(goes_on);
            there.len() > of.len() && is_first && inside.next().is_none()
        });
        found
    }

    /// Those of rules that look at how strings of JSON stand beside each other.
    pub(super) fn written_matches(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        apart(self.matches_of(&View::of(text), &self.written))
    }

    fn matches_of(&self, view: &View<'_>, set: &Subset) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        // What stands behind a secret is looked at as if it began there: a placeholder will.
        let (mut begin, mut from) = (0, 0);
        while let Some(rest) = view.text.get(begin..).filter(|rest| from <= rest.len()) {
            let Some(whole) = set.regex.search(&Input::new(rest).range(from..)) else { break };
            // What is no secret by one rule may be one by another.
            let numbers = set.numbers.get(whole.pattern().as_usize()..).unwrap_or_default();
            let mut matches = numbers.iter().filter_map(|number| {
                let rule = self.rules.get(*number)?;
                let regex = &rule.expression.regex;
                let input = Input::new(rest).range(whole.start()..).anchored(Anchored::Yes);
                let whole = regex.search(&input)?;
                let mut captures = regex.create_captures();
                regex.search_captures(&input.range(whole.range()), &mut captures);
                let group = match rule.group {
                    Some(group) => captures.get_group(group),
                    None => (1..captures.group_len()).find_map(|group| captures.get_group(group)),
                };
                let span = group.unwrap_or_else(|| whole.span());
                Some((*number, rule, whole.range(), span.range()))
            });
            let mut first = None;
            let here = |of: &Range<usize>| begin + of.start..begin + of.end;
            let secret = matches.find(|(number, rule, whole, span)| {
                let skips = rule.names.is_empty() && rule.structure.is_none();
                first.get_or_insert((skips, span.start));
                let Some(structure) = rule.structure else {
                    return self.is_secret(view, rule, begin, (whole, span));
                };
                let held = self.held(structure, view, (here(whole), here(span)), *number);
                let holds = !held.is_empty();
                found.extend(held);
                holds
            });
            from = next_char(rest, whole.start());
            let secret = secret.filter(|(_, rule, ..)| rule.structure.is_none());
            if let Some((number, .., span)) = secret {
                found.push((here(&span), number));
                (begin, from) = (begin + span.end, 0);
            } else {
                let inside = first.filter(|(skips, _)| *skips);
                from = from.max(inside.map_or(0, |(_, start)| start));
            }
        }
        found
    }

    /// Whether what a rule matched and the part that it means, in what stands from `begin` on, is a
    /// secret.
    fn is_secret(
        &self,
        view: &View<'_>,
        rule: &Rule,
        begin: usize,
        (whole, span): (&Range<usize>, &Range<usize>),
    ) -> bool {
        let rest = view.after(begin);
        let secret = rest.get(span.clone()).unwrap_or_default();
        let is_quoted = rest.get(..span.start).is_some_and(is_in_quotes);
        // A name may be the end of a longer one.
        let name = rest.get(..whole.start).filter(|_| !rule.names.is_empty());
        let name =
            name.map_or(0, |before| before.len() - before.trim_end_matches(is_of_name).len());
        let around = rest.get(whole.start - name..whole.end).unwrap_or_default();
        // What Helm writes down to see a change is none.
        let before = rest.get(..whole.start - name).unwrap_or_default();
        let is_checksum = before.ends_with("checksum/");
        let of = begin + span.start..begin + span.end;
        let is_called = !is_quoted && !rule.is_token && view.after(of.end).starts_with('(');
        let is_new = !secret.is_empty() && !around.contains(MARK) && !is_called && !is_checksum;
        let is_apart = !rule.is_token || self.reading.is_apart(view, &of, begin);
        is_new && is_apart && rule.takes(rest, around, secret, is_quoted)
    }
}

/// What was found, in order, and one where several overlap: nothing is left of what reaches behind
/// another secret.
fn apart(mut found: Vec<(Range<usize>, usize)>) -> Vec<(Range<usize>, usize)> {
    found.sort_by_key(|(range, rule)| (range.start, usize::MAX - range.end, *rule));
    found.dedup_by(|(next, _), (range, _)| {
        let overlaps = next.start < range.end;
        range.end = if overlaps { range.end.max(next.end) } else { range.end };
        overlaps
    });
    found
}

/// Whether letters are those of a token: with digits, or with capitals behind small ones.
fn is_mixed(tail: &str) -> bool {
    let has = |is: fn(&u8) -> bool| tail.bytes().any(|byte| is(&byte));
    let has_capital = tail.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let has_capital = has_capital.contains(|c: char| c.is_ascii_uppercase());
    tail.len() >= 4 && has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || has_capital)
}

/// Whether a range shares nothing with replacements, which are in order.
fn is_free(found: &[Replacement], of: &Range<usize>) -> bool {
    let next = found.partition_point(|(range, _)| range.end <= of.start);
    found.get(next).is_none_or(|(range, _)| of.end <= range.start)
}

/// Whether a value stands in quotes behind this, or is that of an element, or a block of YAML.
fn is_in_quotes(before: &str) -> bool {
    let line = before.trim_end_matches([' ', '\t']);
    let is_block = || line.trim_end().trim_end_matches(['-', '+']).ends_with(['|', '>']);
    line.ends_with('\n') && is_block()
        || before.ends_with(['"', '\'', '`', '\u{201c}', '\u{2018}'])
        || before.ends_with('>') && !before.ends_with("=>") && !before.ends_with("->")
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
