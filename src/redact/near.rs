//! Words that look made at random, near to what speaks of a secret.

use std::ops::Range;

use super::{
    RedactionRules,
    matching::is_in_arn,
    redactor::MARK,
    rules::{Rule, is_of_name, plain_name},
    structure::{Held, Structure},
};

/// So far from what tells it a secret may stand.
const REACH: usize = 120;

/// A line that says less behind what tells a secret has it on the next one.
const LEAST_BEHIND: usize = 8;

/// Names whose value is whatever the line speaks of.
const VALUES: [&str; 19] = [
    "value",
    "val",
    "body",
    "text",
    "content",
    "data",
    "default",
    "result",
    "string",
    "literal",
    "plain",
    "now",
    "new",
    "newstring",
    "to",
    "p",
    "pw",
    "pass",
    "key",
];

impl RedactionRules {
    /// Whether a rule tells what stands near to its matches.
    pub(super) fn is_near(&self, number: usize) -> bool {
        self.rules.get(number).is_some_and(|rule| rule.structure == Some(Structure::Near))
    }

    /// The words on the line of a match that look made, as far as no placeholder stands between. A
    /// word with a name of its own is one by what its name says. O(reach).
    pub(super) fn near(&self, text: &str, found: &Range<usize>, number: usize) -> Held {
        let (before, behind) = around(text, found);
        let is_in_placeholder = before.rfind('[').and_then(|at| before.get(at..));
        let Some(rule) = self.rules.get(number) else { return Vec::new() };
        if is_in_placeholder.is_some_and(|of| of.starts_with(MARK) && !of.contains(']')) {
            return Vec::new();
        }
        let line = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let line = line.max(before.rfind(MARK).map_or(0, |at| at + MARK.len()));
        let before = before.get(line..).unwrap_or_default();
        let behind = behind.split(MARK).next().unwrap_or_default();
        let behind = behind.get(..lines_end(behind)).unwrap_or_default();
        let mut held = Vec::new();
        for (mut at, part) in [(found.start - before.len(), before), (found.end, behind)] {
            for word in part.split_inclusive(|c: char| !is_of_word(c)) {
                let secret = secret_in(text, at, word, found.end);
                at += word.len();
                let secret = secret.filter(|of| rule.is_made(text, of, found.end));
                held.extend(secret.map(|of| (of, number)));
            }
        }
        held
    }
}

impl Rule {
    fn is_made(&self, text: &str, of: &Range<usize>, told: usize) -> bool {
        let word = text.get(of.clone()).unwrap_or_default();
        let before = text.get(..of.start).unwrap_or_default();
        looks_made(word)
            && !is_digest(text.get(..of.end).unwrap_or_default())
            && !is_in_arn(before)
            && (of.start == told || !self.is_named_otherwise(before))
            && self.takes(text, word, word, true)
    }

    /// Whether a value that stands behind this has a name, and that says nothing of a secret.
    fn is_named_otherwise(&self, before: &str) -> bool {
        let is_around = |c: char| matches!(c, '"' | '\'' | '`' | '\\' | ' ');
        let sign = before.trim_end_matches(is_around);
        let Some(name) = sign.strip_suffix(['=', ':']) else { return false };
        let name = name.trim_end_matches([':', '=', ' ']);
        let inside = name.trim_end_matches(is_around);
        // What stood there before had a name as well.
        let placeholder = inside.rfind('[').and_then(|at| inside.get(at..));
        if inside.ends_with(']') && placeholder.is_some_and(|of| of.starts_with(MARK)) {
            return true;
        }
        let start = inside.trim_end_matches(is_of_name);
        let is_text = inside.len() < name.len() && !start.ends_with(is_around);
        let name = inside.get(start.len()..).unwrap_or_default();
        let plain = plain_name(name);
        let is_value = VALUES.contains(&plain.as_str()) || plain.is_empty();
        !is_text && !is_value && !self.expression.is_match(name)
    }
}

/// What stands before a match and behind it, as far as it reaches.
pub(super) fn around<'t>(text: &'t str, found: &Range<usize>) -> (&'t str, &'t str) {
    let from = found.start.saturating_sub(REACH);
    let from = (from..=found.start).find_map(|at| text.get(at..found.start));
    let to = (found.end + REACH).min(text.len());
    let to = (found.end..=to).rev().find_map(|at| text.get(found.end..at));
    (from.unwrap_or_default(), to.unwrap_or_default())
}

/// Where the line ends, or the next one where it says little.
fn lines_end(behind: &str) -> usize {
    let end = behind.find(['\n', '\r']).unwrap_or(behind.len());
    let (line, rest) = behind.split_at_checked(end).unwrap_or((behind, ""));
    if line.bytes().filter(u8::is_ascii_alphanumeric).count() >= LEAST_BEHIND {
        return end;
    }
    let next = rest.trim_start();
    let start = behind.len() - next.len();
    start + next.find(['\n', '\r']).unwrap_or(next.len())
}

/// Where the secret stands that a word may be, which begins at a place: all of it, or what stands
/// behind the name of a user. `None` where it goes on at either end.
fn secret_in(text: &str, at: usize, word: &str, told: usize) -> Option<Range<usize>> {
    let word = word.trim_end_matches(|c: char| !is_of_word(c));
    let behind = text.get(at + word.len()..)?;
    // The next parameter is none of it: `tides&lang=de`.
    let value = word.rsplit_once('&').filter(|_| behind.starts_with('='));
    let word = value.map_or(word, |(value, _)| value);
    let (mut start, end) = (at, at + word.len());
    let before = text.get(..at)?;
    let is_begun = before.ends_with(is_of_word) && !(at == told && before.ends_with(['/', '@']));
    // What a placeholder stands beside was longer before.
    if is_begun
        || before.ends_with(']')
        || behind.starts_with(is_of_word)
        || behind.starts_with(MARK)
    {
        return None;
    }
    if before.ends_with('\\') {
        start += word.chars().next()?.len_utf8();
    }
    if let Some((user, secret)) = word.split_once('/').filter(|(user, _)| !user.is_empty()) {
        start = end - secret.len();
        return (!secret.contains('/') && !user.contains('.')).then_some(start..end);
    }
    Some(start..end)
}

/// Whether it is in words that somebody or something made up.
fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%^&*_~+@-./".contains(c)
}

/// Whether a word looks made by a machine, or by somebody who was asked for signs, digits and
/// capitals: `xK9mQ2vL7pR4`, `LanternMoss24#`. Names of code, versions, paths and hashes do not.
fn looks_made(word: &str) -> bool {
    let word = word.trim_start_matches(|c| "-+*=#&@$%~_./".contains(c));
    let word = word.trim_end_matches(|c| "-*=_./~+".contains(c));
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let has_letters = has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    let has_capital = has(u8::is_ascii_uppercase);
    let parts: Vec<&str> = word.split(['_', '-']).collect();
    // An id says what it is of before its sign.
    let is_low = |part: &&str| part.len() > 1 && part.bytes().all(|of| of.is_ascii_lowercase());
    let is_id = parts.len() > 1 && parts.first().is_some_and(is_low);
    if !(8..=64).contains(&word.len())
        || word.contains(['.', '/'])
        || is_hex
        || !has_letters
        || is_id
    {
        return false;
    }
    let inside = word.get(1..).unwrap_or_default();
    if inside.contains(|c| "!#$%^&*@~+".contains(c)) {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        return has_capital || digits > 1 && word.ends_with(['!', '#', '$', '*']);
    }
    // Names change from small letters to digits or capitals with their words, which are longer.
    let odd = parts.iter().filter(|part| !is_plain(part));
    let is_odd = odd.clone().count() > 1 || odd.into_iter().any(|part| part.len() >= 10);
    let joined = parts.concat();
    let most = if joined.len() < 12 { 21 } else { 26 };
    has_capital && is_odd && joined.len() >= 10 && joined.len() * 10 < kinds(&joined) * most
}

/// Whether letters of a name are one word, with a number behind it.
fn is_plain(part: &str) -> bool {
    let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let rest = word.get(1..).unwrap_or_default();
    [u8::is_ascii_lowercase, u8::is_ascii_uppercase]
        .iter()
        .any(|is| rest.bytes().all(|byte| is(&byte)))
}

/// Whether a text ends within a digest in base64 that says what it is: `h1:…`, `sha256-…`.
fn is_digest(text: &str) -> bool {
    let before = text.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+/=-:".contains(c));
    let run = text.get(before.len()..).unwrap_or_default();
    let kinds = ["h1:", "sha1-", "sha256-", "sha384-", "sha512-", "SHA256:", "sha256:", "sha512:"];
    kinds.iter().any(|kind| run.starts_with(kind) && run.len() > kind.len() + 20)
}

/// How many words, rows of capitals and numbers a name has.
fn kinds(name: &str) -> usize {
    let kind = |byte: u8| (byte.is_ascii_uppercase(), byte.is_ascii_digit());
    let (mut count, mut before) = (1, kind(b'-'));
    for (one, two) in name.bytes().zip(name.bytes().skip(1)) {
        let (one, two) = (kind(one), kind(two));
        let is_capital = one.0 && two == (false, false) && !before.0;
        count += usize::from(one != two && !is_capital);
        before = one;
    }
    count
}
