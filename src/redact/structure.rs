//! Secrets that are told by the shape of what they stand in: blocks of a private key, however their
//! lines begin and end, columns of a table, and arguments in a list.

use std::ops::Range;

use regex_automata::Input;
use serde::Deserialize;

use super::{RedactionRules, redactor::MARK, view::View};

/// What a match of a rule is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Structure {
    /// The line that begins a private key.
    KeyBegin,
    /// The line that ends one, whose beginning is not there.
    KeyEnd,
    /// The head of a column.
    Column,
    /// Two arguments in a list.
    List,
}

/// So much may stand between two lines of a key: line numbers, quotes, the name of a file.
const BETWEEN: usize = 120;
/// So much may stand before the first of them: lines that say how it is encrypted.
const HEAD: usize = 300;
/// What is longer is no key.
const LONGEST_KEY: usize = 32 << 10;
/// A line of a key without its other end is as long.
const KEY_LINE: usize = 40;

/// A list of arguments is no longer.
const LONGEST_LIST: usize = 4 << 10;
/// Stands in an argument in the place of signs that would end it.
const SIGN: char = '\u{1}';

/// Where each secret of a structure stands, and its rule.
pub(super) type Held = Vec<(Range<usize>, usize)>;

impl RedactionRules {
    /// The secrets of the structure that a match of rule `number` is a part of. Linear in what it
    /// looks at, which is bounded but for a column.
    pub(super) fn held(
        &self,
        structure: Structure,
        view: &View<'_>,
        (found, group): (Range<usize>, Range<usize>),
        number: usize,
    ) -> Held {
        let key = match structure {
            Structure::Column => return self.column(&view.text, (&found, group), number),
            Structure::List => return self.arguments(&view.text, found.start),
            Structure::KeyBegin => self.key_after(view, found.end).map(|end| found.start..end),
            Structure::KeyEnd => self.key_before(&view.text, &found),
        };
        key.map(|key| (key, number)).into_iter().collect()
    }

    /// The values below the head of a column, unless a row stands above it.
    fn column(&self, text: &str, head: (&Range<usize>, Range<usize>), number: usize) -> Held {
        let (around, name) = head;
        let mut held = Vec::new();
        let start = text.get(..name.start).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
        let is_sign = |c: &char| matches!(c, '|' | ',' | ';' | '\t');
        let behind = text.get(name.end..around.end).unwrap_or_default().chars().find(is_sign);
        let before = || text.get(start..name.start)?.chars().rev().find(is_sign);
        let sign = behind.or_else(before);
        let mut lines = text.get(start..).unwrap_or_default().split_inclusive('\n');
        let (Some(sign), Some(first), Some(rule)) = (sign, lines.next(), self.rules.get(number))
        else {
            return held;
        };
        let cells = |line: &str| line.matches(sign).count();
        let above = text.get(..start).unwrap_or_default().lines().next_back().unwrap_or_default();
        let is_of_head = |c: char| c == sign || c.is_alphanumeric() || "_-. \"'\r\n".contains(c);
        if !first.chars().all(is_of_head) || cells(above) == cells(first) {
            return held;
        }
        let cell = cells(text.get(start..name.start).unwrap_or_default());
        let mut at = start + first.len();
        for line in lines {
            let is_rule = !line.trim().is_empty() && !line.contains(char::is_alphanumeric);
            if cells(line) != cells(first) && !is_rule {
                break;
            }
            let from: usize = line.split(sign).take(cell).map(|cell| cell.len() + 1).sum();
            let value = line.split(sign).nth(cell).unwrap_or_default();
            let is_around = |c: char| c.is_whitespace() || c == '"' || c == '\'';
            let from = at + from + value.len() - value.trim_start_matches(is_around).len();
            let value = value.trim_matches(is_around);
            if !value.contains(MARK) && rule.takes(text, value, value, true) {
                held.push((from..from + value.len(), number));
            }
            at += line.len();
        }
        held
    }

    /// The secrets of the list of arguments around a place: those of the command that it is.
    fn arguments(&self, text: &str, inside: usize) -> Held {
        let from = inside.saturating_sub(LONGEST_LIST);
        let from = (from..inside).find(|at| text.is_char_boundary(*at)).unwrap_or(inside);
        let mut opened = text.get(from..inside).unwrap_or_default().rmatch_indices('[');
        let is_list = |open: usize| {
            text.get(open..).is_some_and(|list| list.trim_start().starts_with(['"', '\'', '`']))
        };
        let opened = opened.find_map(|(at, _)| Some(from + at + 1).filter(|open| is_list(*open)));
        let Some(open) = opened else { return Vec::new() };
        let mut command = String::from(" ");
        let (mut parts, mut quote, mut is_escaped) = (Vec::new(), None, false);
        for (at, c) in text.get(open..).unwrap_or_default().char_indices().take(LONGEST_LIST) {
            match quote {
                None if matches!(c, '"' | '\'' | '`') => {
                    quote = Some(c);
                    parts.push((command.len(), open + at + 1));
                }
                None if c == ',' || c.is_whitespace() => {}
                None => break,
                Some(end) if c == end && !is_escaped => {
                    quote = None;
                    command.push(' ');
                }
                Some(_) => {
                    is_escaped = c == '\\' && !is_escaped;
                    let is_sign = c.is_whitespace() || "\"'<>`\\|;&)(".contains(c);
                    let signs = if is_sign { c.len_utf8() } else { 0 };
                    command.extend((0..signs).map(|_| SIGN));
                    command.extend((!is_sign).then_some(c));
                }
            }
        }
        let found = self.matches(&View::of(&command)).into_iter();
        let held = found.filter_map(|(of, number)| {
            let (start, there) = parts.iter().rev().find(|(start, _)| *start <= of.start)?;
            let is_in_one = !command.get(of.clone())?.contains(' ');
            is_in_one.then(|| (there + (of.start - start)..there + (of.end - start), number))
        });
        held.collect()
    }

    /// Where a key ends that begins before `start`.
    fn key_after(&self, view: &View<'_>, start: usize) -> Option<usize> {
        let (mut end, mut longest) = (start, 0);
        let most = (start + LONGEST_KEY).min(view.text.len());
        for run in self.reading.runs(&view.text, start..most) {
            let room = if longest == 0 { HEAD } else { BETWEEN };
            if !is_between(&view.text, end..run.start, room) {
                break;
            }
            (longest, end) = (longest.max(run.len()), run.end);
        }
        let is_end = |of: &&super::rules::Rule| of.structure == Some(Structure::KeyEnd);
        let close = self
            .rules
            .iter()
            .find(is_end)?
            .expression
            .regex
            .find(Input::new(&*view.text).range(end..most));
        let rest = end..view.text.len();
        match close
            .filter(|close| longest > 0 && is_between(&view.text, end..close.start(), BETWEEN))
        {
            Some(close) => Some(close.end()),
            // What broke off is a key whatever there is of it.
            None if view.is_cut && is_between(&view.text, rest.clone(), BETWEEN) => Some(rest.end),
            None => (longest >= KEY_LINE).then_some(end),
        }
    }

    /// The key that ends with a line: the last line before that may be short, no other is.
    fn key_before(&self, text: &str, line: &Range<usize>) -> Option<Range<usize>> {
        let from = line.start.saturating_sub(LONGEST_KEY);
        let from = (from..=line.start).find(|at| text.is_char_boundary(*at))?;
        let mut start = line.start;
        for run in self.reading.runs(text, from..line.start).into_iter().rev() {
            if !is_between(text, run.end..start, BETWEEN) {
                break;
            }
            if run.len() >= KEY_LINE {
                start = run.start;
            }
        }
        (start < line.start).then_some(start..line.end)
    }
}

/// Whether no more stands there than may between two lines of a key.
fn is_between(text: &str, range: Range<usize>, room: usize) -> bool {
    range.len() <= room && text.get(range).is_some_and(|between| !between.contains("----"))
}
