//! A text as rules read it: colour codes, controls and characters without width cut no secret in
//! two, and what is written out (`%3D`, `\u0022`, `&quot;`) is what it stands for.

use std::{borrow::Cow, ops::Range};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use regex_automata::{Input, meta::Regex};

use super::expression::{Compiler, Expression, compile_all};
use crate::Result;

/// What is shown nowhere, also written out, and an escape that broke off at the end of a text.
const HIDDEN: &str = concat!(
    r"(?:[\x1b\x{241b}]|\^\[|\\+(?:x1[bB]|u001[bB]|u\{1[bB]\}|033|e))",
    r"(?:\[[0-9;:?]*(?:[A-Za-z]|$)|\][^\x07\x1b\\\n]*(?:\x07|\x1b\\|\\+(?:a|x07|u0007)|$)|[()][A-Z0-9])",
    r"|\x{9b}[0-9;:?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]",
    r"|[\x{ad}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2069}\x{feff}]",
    r"|<U\+[0-9A-F]{4}>|\\+u(?:001[bB]|200[b-fB-F]|20[26][0-9a-eA-E]|[fF][eE][fF][fF]|00[aA][dD])",
    r"|\\+(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?$"
);

/// Signs that separate or quote, written out in any way, all signs and letters as numbers, and those
/// that Markdown and TeX escape.
const SPELT: &str = concat!(
    r"(?:%(?:25)*|\\+(?:u00|x))(?:0[9AaDd]|2[0-9A-Fa-f]|3[A-Fa-f]|40|5[B-Db-d]|7[B-Db-d])",
    r"|\\+(?:u00|x)[3-7][0-9A-Fa-f]",
    r"|&(?:quot|apos|lt|gt|amp|#[0-9]{2,3}|#x[0-9A-Fa-f]{2});|\\+[/_-]|=3[Dd]"
);

/// What is written out in any way, at the end of what stands before a token, a colour code that lost
/// its first byte, and an option of one letter: `-pghp_…`.
const ESCAPE: &str = concat!(
    r"(?:(?:%(?:25)*|=|\\+x)[0-9A-Fa-f]{2}|\\+(?:[abefnrtv0]|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]+\}",
    r"|U[0-9A-Fa-f]{8}|[0-7]{3})|\[[0-9;]{0,12}[mK]|[ \t,]-[A-Za-z])$"
);

/// Where a line may have been wrapped within a word, with what frames, numbers or quotes the lines, and
/// where code joins two parts of a word.
const WRAP: &str = concat!(
    r"[ \t]*[│┃]?[ \t]*(?:\\|=|-)?\r?\n",
    r"(?:-|[ \t]*(?:[0-9]{1,6}(?:→|\t))?[ \t]*(?:[>|+#*│┃]|//)?[ \t]*)",
    r#"|\\*["'`][ \t]*[+.&]?[ \t]*(?:\\?\r?\n[ \t]*(?:[0-9]{1,6}(?:→|\t)[ \t]*)?[+.&]?[ \t]*)?\\*["'`]"#
);

/// So much of a word stands before such a place, and behind it.
const WRAPPED: (usize, usize) = (6, 1);

/// Letters of base64 in a row.
const RUN: &str = r"[A-Za-z0-9+/=]{16,}";

/// What may be base64, in lines or in one.
const BASE64: &str = concat!(
    r"(?:[A-Za-z0-9+/]{60,76}(?:\r?\n|\\+n)[ \t]*)+[A-Za-z0-9+/]{2,}={0,2}",
    r"|[A-Za-z0-9+/]{24,}={0,2}"
);

/// What is written as hexadecimal numbers: in a row, or as programs dump it, with where each line begins.
const HEX: &str = concat!(
    r"(?m:^[0-9a-f]{6,8}:?[ \t]+[0-9a-f]{2}(?:[0-9a-f]{2})?[ \t][^\r\n]*(?:\r?\n|$))+",
    r"|(?:[0-9a-f]{2}){24,}|(?:[0-9A-F]{2}){24,}"
);

/// A line of a dump has no more digits.
const DUMPED: usize = 32;

/// So many letters of base64 tell whether they stand for text.
const BEGINNING: usize = 24;

/// An escape is not longer.
const LONGEST_ESCAPE: usize = 16;

/// The expressions by which texts are read.
#[derive(Debug)]
pub(super) struct Reading {
    odd: Regex,
    escape: Expression,
    run: Expression,
    wrap: Expression,
    base64: Expression,
    hex: Expression,
}

impl Reading {
    pub(super) fn new() -> Result<Self> {
        let mut compiler = Compiler::lazy();
        let [hidden, spelt] = [HIDDEN, SPELT].map(|of| compiler.compile("signs", of));
        let odd = compile_all(&[&hidden?.text, &spelt?.text])?;
        let escape = compiler.compile("escapes", ESCAPE)?;
        let [run, wrap, base64, hex] =
            [("runs", RUN), ("wraps", WRAP), ("base64", BASE64), ("hex", HEX)]
                .map(|(of, text)| compiler.compile(of, text));
        Ok(Self { odd, escape, run: run?, wrap: wrap?, base64: base64?, hex: hex? })
    }

    /// Letters of base64 in a row that are no word: capitals, small ones and digits.
    pub(super) fn runs(&self, text: &str, range: Range<usize>) -> Vec<Range<usize>> {
        let runs = self.run.find_iter(Input::new(text).range(range)).map(|run| run.range());
        let is_mixed = |run: &Range<usize>| {
            let has = |is: fn(&u8) -> bool| {
                text.as_bytes().get(run.clone()).is_some_and(|run| run.iter().any(is))
            };
            has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
        };
        runs.filter(is_mixed).collect()
    }

    /// The runs of base64 and of hexadecimal numbers that stand for a text, and that text. O(text).
    pub(super) fn encoded(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let held = self.base64.find_iter(text).filter_map(|run| {
            let written = text.get(run.range())?;
            let begins = written.get(..BEGINNING).and_then(base64_text).is_some();
            let whole = || {
                // The last line may be a word that follows.
                let lines = written.rsplit_once('\n').map(|(lines, _)| lines);
                [Some(written), lines].into_iter().flatten().find_map(|written| {
                    Some((run.start()..run.start() + written.len(), base64_text(written)?))
                })
            };
            begins.then(whole).flatten()
        });
        let dumped = self
            .hex
            .find_iter(text)
            .filter_map(|run| Some((run.range(), hex_text(text.get(run.range())?)?)));
        held.chain(dumped).collect()
    }

    /// A text without what is hidden, and as that with what is written out in its place, where
    /// anything is. O(text).
    pub(super) fn views<'t>(&self, text: &'t str) -> (View<'t>, Option<View<'t>>) {
        let (mut shown, mut spelt) = (View::of(text), None);
        for odd in self.odd.find_iter(text) {
            let sign = match odd.pattern().as_usize() {
                0 => None,
                _ => text.get(odd.range()).map(sign),
            };
            if sign.is_some() {
                spelt.get_or_insert_with(|| shown.clone());
            }
            spelt.iter_mut().for_each(|view| view.replace(text, odd.range(), sign));
            if sign.is_none() {
                shown.replace(text, odd.range(), None);
            }
        }
        shown.finish(text);
        spelt.iter_mut().for_each(|view| view.finish(text));
        (shown, spelt)
    }

    /// A text whose words are whole where a line may have been wrapped within one; `None` where none
    /// may. O(text).
    pub(super) fn unwrapped<'t>(&self, text: &'t str) -> Option<View<'t>> {
        let mut view = View::of(text);
        let is_of_word = |c: &char| c.is_ascii_alphanumeric() || "_-.+/=".contains(*c);
        for wrap in self.wrap.find_iter(text) {
            let before = text.get(..wrap.start())?.chars().rev().take_while(is_of_word);
            let behind = text.get(wrap.end()..)?.chars().take_while(is_of_word);
            let (least_before, least_behind) = WRAPPED;
            if before.take(least_before).count() == least_before
                && behind.take(least_behind).count() == least_behind
            {
                view.replace(text, wrap.range(), None);
            }
        }
        view.finish(text);
        (!view.parts.is_empty()).then_some(view)
    }

    /// Whether what stands in a range of a view is not a part of a longer word. Escapes and what is
    /// hidden part words; `from` is where the text begins as rules see it.
    pub(super) fn is_apart(&self, view: &View<'_>, range: &Range<usize>, from: usize) -> bool {
        self.begins(view, range.start, from)
            && (view.is_seam(range.end)
                || !view.after(range.end).starts_with(|c: char| c.is_ascii_alphanumeric()))
    }

    pub(super) fn begins(&self, view: &View<'_>, start: usize, from: usize) -> bool {
        let before = view.text.get(from..start).unwrap_or_default();
        if view.is_seam(start) || !before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            return true;
        }
        let last = before.len().saturating_sub(LONGEST_ESCAPE);
        let last = (last..before.len()).find_map(|at| before.get(at..));
        last.is_some_and(|last| self.escape.is_match(last))
    }
}

/// The text that base64 stands for; `None` where it is no text. Line ends may be written out.
fn base64_text(written: &str) -> Option<String> {
    let lines = written.replace("\\n", "\n").replace('\\', "");
    let digits: String = lines.split_ascii_whitespace().collect();
    let bytes = STANDARD_NO_PAD.decode(digits.trim_end_matches('=')).ok()?;
    let is_text = |c: char| !c.is_control() || "\0\n\r\t\x1b".contains(c);
    // A beginning may end within a character.
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if written.len() == BEGINNING && error.utf8_error().error_len().is_none() => {
            String::new()
        }
        Err(_) => return None,
    };
    text.chars().all(is_text).then_some(text)
}

/// The text that hexadecimal numbers stand for: of a dump, and of a row where it begins as one.
fn hex_text(written: &str) -> Option<String> {
    let mut text = String::new();
    let mut is_dump = false;
    for line in written.lines() {
        let dumped = line.split_once([':', ' ', '\t']).map_or(line, |(_, dumped)| dumped);
        is_dump |= dumped.len() < line.len();
        let most = if dumped.len() < line.len() { DUMPED } else { line.len() };
        let digits = dumped.bytes().filter(|byte| !matches!(byte, b' ' | b'\t'));
        let digits: Vec<u8> = digits.take_while(u8::is_ascii_hexdigit).take(most).collect();
        for pair in digits.chunks_exact(2) {
            let byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
            text.push(char::from(byte));
        }
    }
    let is_text = |c: char| c.is_ascii() && (!c.is_control() || "\0\n\r\t\x1b".contains(c));
    (is_dump || text.chars().take(BEGINNING / 2).all(is_text)).then_some(text)
}

/// The sign that is written out.
fn sign(written: &str) -> char {
    let number = |digits: &str, base| u8::from_str_radix(digits, base).map_or(' ', char::from);
    match written.trim_start_matches('&').trim_end_matches(';') {
        "quot" => '"',
        "apos" => '\'',
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        escaped if escaped.starts_with('\\') && escaped.ends_with(['/', '_', '-']) => {
            escaped.chars().next_back().unwrap_or(' ')
        }
        decimal if decimal.starts_with('#') && !decimal.starts_with("#x") => {
            number(decimal.trim_start_matches('#'), 10)
        }
        hex => number(hex.get(hex.len().saturating_sub(2)..).unwrap_or_default(), 16),
    }
}

/// A text as it is read, and where each part of it stands in the text.
#[derive(Clone, Debug)]
pub(super) struct View<'t> {
    pub(super) text: Cow<'t, str>,
    /// Where each part begins here, and where it stands in the text. None where both are one.
    parts: Vec<(usize, Range<usize>)>,
    /// How much of the text is here.
    taken: usize,
    /// Whether the text broke off.
    pub(super) is_cut: bool,
}

impl<'t> View<'t> {
    /// A text as it is.
    pub(super) fn of(text: &'t str) -> Self {
        Self { text: Cow::Borrowed(text), parts: Vec::new(), taken: 0, is_cut: false }
    }

    fn replace(&mut self, text: &str, range: Range<usize>, sign: Option<char>) {
        if self.parts.is_empty() {
            self.text = Cow::Owned(String::with_capacity(text.len()));
        }
        self.take(text, range.start);
        let here = self.text.to_mut();
        if let Some(sign) = sign {
            self.parts.push((here.len(), range.clone()));
            here.push(sign);
        }
        self.taken = range.end;
    }

    fn take(&mut self, text: &str, end: usize) {
        let here = self.text.to_mut();
        self.parts.push((here.len(), self.taken..end));
        here.push_str(text.get(self.taken..end).unwrap_or_default());
    }

    fn finish(&mut self, text: &str) {
        if !self.parts.is_empty() {
            self.take(text, text.len());
        }
    }

    /// What stands from a place on.
    pub(super) fn after(&self, start: usize) -> &str {
        self.text.get(start..).unwrap_or_default()
    }

    /// Whether the text has something else at a place.
    fn is_seam(&self, at: usize) -> bool {
        self.parts.binary_search_by_key(&at, |(start, _)| *start).is_ok()
    }

    /// Where in the text a range stands, with what is hidden in it. O(log parts).
    pub(super) fn range(&self, range: Range<usize>) -> Range<usize> {
        let part = |count: usize| count.checked_sub(1).and_then(|at| self.parts.get(at));
        let first = part(self.parts.partition_point(|(start, _)| *start <= range.start));
        let next = self.parts.partition_point(|(start, _)| *start < range.end);
        let (Some((first, of_first)), Some((last, of_last))) = (first, part(next)) else {
            return range;
        };
        let start = of_first.start + (range.start - first);
        let length = self.parts.get(next).map_or(self.text.len(), |(start, _)| *start) - last;
        // A sign is shorter than what it is written as.
        let is_sign = length != of_last.len();
        let end = if is_sign { of_last.end } else { of_last.start + (range.end - last) };
        start..end.max(start)
    }
}
