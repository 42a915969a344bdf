//! Texts that broke off: what they end with may be the beginning of a secret, too short for its rule.

use std::{borrow::Cow, fmt, ops::Range, sync::OnceLock};

use regex_automata::{
    Anchored, Input,
    hybrid::dfa::{Cache, DFA},
    meta::Regex,
};

use super::{
    RedactionRules, Redactor,
    redactor::{Replacement, replaced},
    stream::StreamForm,
    view::View,
};

/// So many bytes at the end of a text are looked at.
const TAIL: usize = 4096;

/// What is shorter is no beginning that tells a rule.
const LEAST: usize = 5;

/// So many characters of a beginning are those of one rule: `sk-`, `hf_`.
const FIXED: usize = 3;

/// They stand among the first ones.
const FIRST: usize = 32;

/// What a secret may go on with, and what may end it: quotes, and a host behind a password. The
/// last one ends an address.
const REST: [&str; 7] = [
    concat!("q7Xr2Kd9Wm4Tz8Lp5Vb3Nc6Hy1Js0Gf8", "A5Ub9Eo3Pi7Ya2Ql6Zw0Mt4Fx1Rk8Dh"),
    concat!("q7Xr2Kd9Wm4Tz8Lp5Vb3Nc6Hy1Js0Gf8", "A5Ub9Eo3Pi7Ya2Ql6Zw0Mt4Fx1Rk8Dh\""),
    concat!("q7Xr2Kd9Wm4Tz8Lp5Vb3Nc6Hy1Js0Gf8", "A5Ub9Eo3Pi7Ya2Ql6Zw0Mt4Fx1Rk8Dh\\\""),
    concat!("q7Xr2Kd9Wm4Tz8Lp5Vb3Nc6Hy1Js0Gf8", "A5Ub9Eo3Pi7Ya2Ql6Zw0Mt4Fx1Rk8Dh'"),
    concat!("q7Xr2Kd9Wm4Tz8Lp5Vb3Nc6Hy1Js0Gf8", "A5Ub9Eo3Pi7Ya2Ql6Zw0Mt4Fx1Rk8Dh`"),
    concat!("q7Xr2Kd9Wm4Tz8Lp5Vb3Nc6Hy1Js0Gf8", "A5Ub9Eo3Pi7Ya2Ql6Zw0Mt4Fx1Rk8Dh@a"),
    "a.com",
];

/// The rules whose whole match is the secret, each with what reads its beginning. They are made when
/// the first text that broke off is read.
#[derive(Debug, Default)]
pub(super) struct Forms(OnceLock<Vec<(usize, DFA)>>);

impl Forms {
    fn of(&self, rules: &RedactionRules) -> &[(usize, DFA)] {
        self.0.get_or_init(|| {
            let forms = rules.rules.iter().enumerate().filter(|(_, rule)| {
                let groups = rule.expression.regex().map(Regex::captures_len);
                rule.names.is_empty()
                    && rule.structure.is_none()
                    && rule.group.is_none()
                    && groups == Some(1)
            });
            let config = DFA::config().skip_cache_capacity_check(true);
            let built = forms.filter_map(|(at, rule)| {
                let built = DFA::builder().configure(config.clone()).build(&rule.expression.text);
                Some((at, built.ok()?))
            });
            built.collect()
        })
    }
}

/// Whether a match may begin at `start` and go on behind the end of the text.
fn goes_on(form: &DFA, cache: &mut Cache, text: &[u8], start: usize) -> bool {
    let input = Input::new(text).range(start..).anchored(Anchored::Yes);
    let Ok(mut state) = form.start_state_forward(cache, &input) else { return false };
    for byte in text.get(start..).unwrap_or_default() {
        match form.next_state(cache, state, *byte) {
            Ok(next) if !next.is_dead() && !next.is_quit() => state = next,
            _ => return false,
        }
    }
    true
}

/// Whether what begins at `start` is told by its characters: with another one in the place of any of
/// a few, it would not begin a match.
fn is_told(form: &DFA, cache: &mut Cache, text: &[u8], start: usize) -> bool {
    let mut other = text.to_vec();
    let mut fixed = 0;
    for at in (start..text.len()).take(FIRST) {
        let Some(byte) = text.get(at).copied() else { break };
        other.get_mut(at).into_iter().for_each(|place| *place = another(byte));
        fixed += usize::from(!goes_on(form, cache, &other, start));
        if fixed >= FIXED {
            return true;
        }
        other.get_mut(at).into_iter().for_each(|place| *place = byte);
    }
    false
}

/// Another character of the same kind: digits of hexadecimal numbers stay such.
fn another(byte: u8) -> u8 {
    match byte {
        b'f' => b'a',
        b'F' => b'A',
        b'z' => b'g',
        b'Z' => b'G',
        b'7'..=b'9' => byte - 5,
        b'0'..=b'6' | b'a'..=b'y' | b'A'..=b'Y' => byte + 1,
        b'_' => b'-',
        _ => b'_',
    }
}

impl RedactionRules {
    /// Where a secret begins that goes on behind the end of a text, and its rule.
    fn unfinished(&self, view: &View<'_>) -> Option<(usize, usize)> {
        let text = &*view.text;
        let start = text.len().saturating_sub(TAIL);
        let start = (start..=text.len()).find(|at| text.is_char_boundary(*at))?;
        let tail = text.get(start..)?;
        let before = text.len() - tail.len();
        let by_form = self.unfinished_form(view, before, tail);
        let by_rest = REST.iter().filter_map(|rest| {
            let whole = [tail, rest].concat();
            // What goes on looks made at random.
            let found = self.matches(&View::of(&whole)).into_iter();
            let found = found.filter(|(_, number)| !self.is_near(*number));
            let mut cut = found.filter(|(secret, _)| secret.contains(&tail.len()));
            cut.next().filter(|(secret, _)| secret.start < tail.len())
        });
        let by_rest = by_rest.map(|(secret, rule)| (secret.start, rule));
        let first = by_form.into_iter().chain(by_rest).min_by_key(|(start, _)| *start);
        first.map(|(start, rule)| (before + start, rule))
    }

    fn unfinished_form(
        &self,
        view: &View<'_>,
        before: usize,
        tail: &str,
    ) -> Option<(usize, usize)> {
        let bytes = tail.as_bytes();
        let forms = self.forms.of(self);
        let mut caches: Vec<Cache> = forms.iter().map(|(_, form)| form.create_cache()).collect();
        let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let starts = (0..bytes.len().saturating_sub(LEAST - 1)).filter(|start| {
            tail.is_char_boundary(*start)
                && bytes.get(*start..).is_some_and(|rest| rest.iter().any(is_of_word))
                && self.reading.begins(view, before + start, 0)
        });
        for start in starts {
            for ((rule, form), cache) in forms.iter().zip(&mut caches) {
                if goes_on(form, cache, bytes, start) && is_told(form, cache, bytes, start) {
                    return Some((start, *rule));
                }
            }
        }
        None
    }
}

impl Redactor {
    /// As [`Redactor::body`], of a body that broke off. What it ends with is taken out too where it
    /// may be the beginning of a secret: of a key its first characters, of a password all behind its
    /// opening quote. Of a stream an event that did not come to its end is left out, since it goes on
    /// from events before it. Linear in the text, as that is.
    ///
    /// ```
    /// use afterimage::redact::{RedactionRules, Redactor};
    ///
    /// let mut redactor = Redactor::new(&RedactionRules::embedded()?);
    /// let body = r#"{"content":[{"type":"text","text":"The key is sk-ant-ap"#;
    /// assert_eq!(redactor.body(body, "response 1"), body);
    /// assert_eq!(
    ///     redactor.cut_body(body, "response 1"),
    ///     r#"{"content":[{"type":"text","text":"The key is [redacted:anthropic-key:1]"#
    /// );
    /// # Ok::<(), afterimage::Error>(())
    /// ```
    pub fn cut_body<'t>(&mut self, text: &'t str, place: &str) -> Cow<'t, str> {
        let found = match StreamForm::of(text) {
            Some(form) => self.find_in_stream(text, form, true, &place),
            None => self.find_any_cut(text, &place),
        };
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, &found)) }
    }

    /// As [`Redactor::find_any`], of a text that broke off, unless it is JSON to its end.
    pub(super) fn find_any_cut(
        &mut self,
        text: &str,
        place: &dyn fmt::Display,
    ) -> Vec<Replacement> {
        if let Some(found) = self.find_in_json(text, place) {
            return found;
        }
        let mut found = self.find_in(text, true, place);
        let rules = self.rules.clone();
        let (view, _) = rules.reading.views(text);
        let Some((start, rule)) = rules.unfinished(&view) else { return found };
        let end = view.text.len();
        let secret = view.after(start);
        let start = view.range(start..end).start;
        let is_found =
            |of: &Range<usize>| of.start <= start && (of.end > start || of.end == text.len());
        if found.iter().any(|(of, _)| is_found(of)) {
            return found;
        }
        let Some(rule) = rules.rules.get(rule) else { return found };
        found.retain(|(of, _)| of.end <= start);
        let placeholder = self.unlearnt(&rule.id, secret, place);
        found.push((start..text.len(), placeholder));
        found
    }
}
