//! Secrets that were found once, where they stand without what told them.

use std::ops::Range;

use regex_automata::{Input, meta::Regex};

use super::{redactor::Replacement, rules::entropy};

/// Rules that tell who somebody is, and no secret: a name is a word like others.
const NAMES: [&str; 2] = ["email", "home"];

/// Below these a secret may be a common word, and is one only where something tells it.
const LEAST: usize = 8;
const ENTROPY: f64 = 2.5;

/// The secrets to be found wherever they stand.
#[derive(Debug, Default)]
pub(super) struct BareSecrets {
    patterns: Vec<String>,
    /// All of `patterns`, once they are looked for.
    regex: Option<Regex>,
}

impl BareSecrets {
    /// Takes a secret that a rule found, unless it could be a word.
    pub(super) fn learn(&mut self, rule: &str, secret: &str) {
        let has = |is: fn(&char) -> bool| secret.chars().any(|c| is(&c));
        let is_word = !has(char::is_ascii_digit) || !has(char::is_ascii_alphabetic);
        if NAMES.contains(&rule)
            || is_word
            || secret.chars().count() < LEAST
            || entropy(secret) < ENTROPY
        {
            return;
        }
        self.patterns.push(escaped(secret));
        self.regex = None;
    }

    /// Where they stand in a text, outside of what was found already, which is in order.
    pub(super) fn find(&mut self, text: &str, found: &[Replacement]) -> Vec<Range<usize>> {
        if self.patterns.is_empty() {
            return Vec::new();
        }
        if self.regex.is_none() {
            // Letters alone can be of any number.
            let config = Regex::config().nfa_size_limit(None).onepass_size_limit(Some(0));
            self.regex = Regex::builder().configure(config).build_many(&self.patterns).ok();
        }
        let Some(regex) = &self.regex else { return Vec::new() };
        let ends = found.iter().map(|(range, _)| range.start).chain([text.len()]);
        let mut start = 0;
        let mut bare = Vec::new();
        for (at, end) in ends.enumerate() {
            let gap = Input::new(text).range(start..end.max(start));
            bare.extend(regex.find_iter(gap).map(|secret| secret.range()));
            start = found.get(at).map_or(end, |(range, _)| range.end);
        }
        bare
    }
}

/// An expression that matches a text and nothing else.
fn escaped(text: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\x{{{:x}}}", c as u32) }
    };
    text.chars().map(letter).collect()
}
