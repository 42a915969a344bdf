use std::{borrow::Cow, collections::HashMap, fmt, ops::Range};

use super::{
    bare::BareSecrets,
    log_lists::empty_log_lists,
    matching::is_free,
    report::{Redaction, RedactionReport},
    rules::{RedactionRules, Rule},
    stream::StreamForm,
    values::STEP,
    view::View,
};
use crate::json::Value;

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
            // A secret that goes on behind a sign that is written out.
            matches.retain(|(of, _)| {
                let of = shown.range(of.clone());
                !written_out.iter().any(|(longer, _)| {
                    let longer = view.range(longer.clone());
                    longer.start <= of.start && of.end <= longer.end && longer != of
                })
            });
        }
        let unwrapped = rules.reading.unwrapped(text);
        let mut found = unwrapped.map_or_else(Vec::new, |view| {
            let whole = matches.iter().filter(|(_, number)| !rules.is_near(*number));
            let ranges = whole.map(|(of, _)| shown.range(of.clone())).collect::<Vec<_>>();
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
        let encoded = rules.encoded(text);
        self.add_covering(&View::of(text), encoded, &mut found, place);
        found
    }

    /// Adds what rules found in a view to what was found in parts of it, in order. What covers something
    /// of that takes its place, as a key whose lines are strings.
    pub(super) fn add_covering(
        &mut self,
        view: &View<'_>,
        mut others: Vec<(Range<usize>, usize)>,
        found: &mut Vec<Replacement>,
        place: &dyn fmt::Display,
    ) {
        let covers = |of: &Range<usize>, range: &Range<usize>| {
            of.start <= range.start && range.end <= of.end
        };
        others.retain(|(of, _)| {
            let mut inside =
                found.iter().filter(|(range, _)| range.start < of.end && of.start < range.end);
            inside.all(|(range, _)| covers(of, range))
        });
        found.retain(|(range, _)| !others.iter().any(|(of, _)| covers(of, range)));
        found.extend(self.replacements(view, others, place));
        found.sort_by_key(|(range, _)| range.start);
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
