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
    /// The names of columns that SQL puts rows into.
    Insert,
    /// A word that speaks of a secret on its line.
    Near,
}

/// So much may stand between two lines of a key: line numbers, quotes, the name of a file.
const BETWEEN: usize = 120;
/// So much stands behind the last of them.
const LAST: usize = 24;
/// So much may stand before the first of them: lines that say how it is encrypted.
const HEAD: usize = 300;
/// What is longer is no key.
const LONGEST_KEY: usize = 32 << 10;
/// A line of a key without its other end is as long.
const KEY_LINE: usize = 40;

/// So much of a statement is read.
const LONGEST_INSERT: usize = 256 << 10;

/// What stands in commands of a shell, and in no argument alone.
const OF_SHELL: [&str; 6] = ["\\\"", "$(", "`", " | ", " && ", "; "];
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
            Structure::Insert => return self.inserted(&view.text, found.end),
            Structure::Near => return self.near(&view.text, &found, number),
            Structure::KeyBegin => self.key_after(view, found.end).map(|end| found.start..end),
            // The lines of a key may be printed from its end on.
            Structure::KeyEnd => self
                .key_before(&view.text, &found)
                .or_else(|| self.key_after(view, found.end).map(|end| found.start..end)),
        };
        key.map(|key| (key, number)).into_iter().collect()
    }

    /// The values below the head of a column, unless it stands in a row.
    fn column(&self, text: &str, head: (&Range<usize>, Range<usize>), number: usize) -> Held {
        let (around, name) = head;
        let mut held = Vec::new();
        let start = text.get(..name.start).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
        let is_sign = |c: &char| matches!(c, '|' | '│' | ',' | ';' | '\t');
        let behind = text.get(name.end..around.end).unwrap_or_default().chars().find(is_sign);
        let before = || text.get(start..name.start)?.chars().rev().find(is_sign);
        let sign = behind.or_else(before);
        let mut lines = text.get(start..).unwrap_or_default().split_inclusive('\n').peekable();
        let (Some(first), Some(rule)) = (lines.next(), self.rules.get(number)) else { return held };
        let row = |line: &str| cells(line, sign, '\n').0;
        let (head, width) = (row(first), row(first).len());
        let above = text.get(..start).unwrap_or_default().lines().next_back().unwrap_or_default();
        let below = lines.peek().copied().unwrap_or_default();
        let is_row = sign.is_some() && row(above).len() == width && !is_line(above);
        let is_head = |cell: &Range<usize>| first.get(cell.clone()).is_some_and(is_heading);
        if is_row || is_line(above) && !is_line(below) || !head.iter().all(is_head) {
            return held;
        }
        let inside = name.start - start;
        let Some(cell) = head.iter().position(|cell| cell.end > inside) else { return held };
        let mut at = start + first.len();
        for line in lines {
            let cells = row(line);
            if cells.len() != width && !is_line(line) {
                break;
            }
            let of = match sign {
                Some(_) => cells.get(cell).cloned(),
                None => word_below(first, inside, line),
            };
            let is_around = |c: char| c.is_whitespace() || c == '"' || c == '\'';
            let of = of.map(|of| trimmed(line, of, is_around)).unwrap_or_default();
            let value = line.get(of.clone()).unwrap_or_default();
            if !value.contains(MARK) && rule.takes(text, value, value, true) {
                held.push((at + of.start..at + of.end, number));
            }
            at += line.len();
        }
        held
    }

    /// The secrets of rows that SQL puts into columns, whose names begin at `start`.
    fn inserted(&self, text: &str, start: usize) -> Held {
        let end = (start + LONGEST_INSERT).min(text.len());
        let end = (start..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
        let text = text.get(..end).unwrap_or_default();
        let (names, length) = cells(text.get(start..).unwrap_or_default(), Some(','), ')');
        let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '`' | '[' | ']' | '\\');
        let name = |of: &Range<usize>| text.get(start + of.start..start + of.end);
        let names: Vec<&str> =
            names.iter().filter_map(name).map(|of| of.trim_matches(quotes)).collect();
        let mut held = Vec::new();
        let mut take = |cells: &[Range<usize>], at: usize, is_literal: bool| {
            for (name, cell) in names.iter().zip(cells) {
                let of = at + cell.start..at + cell.end;
                let of = if is_literal {
                    literal(text, of)
                } else {
                    trimmed(text, of, char::is_whitespace)
                };
                let value = text.get(of.clone()).filter(|value| !value.contains(MARK));
                let rule = value.and_then(|value| self.named(name, value));
                held.extend(rule.map(|rule| (of, rule)));
            }
        };
        let mut at = start + length;
        let rest = text.get(at..).unwrap_or_default();
        let Some(opened) = rest.find(['(', '\n']) else { return held };
        if rest.get(..opened).is_some_and(|from| from.to_ascii_lowercase().contains("from stdin")) {
            for line in rest.get(opened + 1..).unwrap_or_default().split_inclusive('\n') {
                take(&cells(line, Some('\t'), '\n').0, at + opened + 1, false);
                at += line.len();
            }
            return held;
        }
        let is_between = |c: char| c.is_whitespace() || c == ',' || c.is_ascii_alphabetic();
        while let Some(rest) = text.get(at..) {
            let inside = rest.trim_start_matches(is_between).strip_prefix('(');
            let Some(inside) = inside else { break };
            let begin = text.len() - inside.len();
            let (values, length) = cells(inside, Some(','), ')');
            take(&values, begin, true);
            at = begin + length;
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
                    parts.push((command.len(), open + at + 1..text.len()));
                }
                None if c == ',' || c.is_whitespace() => {}
                None => break,
                Some(end) if c == end && !is_escaped => {
                    quote = None;
                    command.push(' ');
                    parts.iter_mut().rev().take(1).for_each(|(_, of)| of.end = open + at);
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
            // What has arguments of its own is read by itself: `["sh", "-c", "run \"$KEY\" x"]`.
            let argument = text.get(there.clone())?;
            let has_sign = || OF_SHELL.iter().any(|sign| argument.contains(sign));
            let is_command = argument.contains(' ') && has_sign();
            let at = |place: usize| there.start + (place - start);
            (is_in_one && !is_command).then(|| (at(of.start)..at(of.end), number))
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
            .regex()?
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
            let is_last = start == line.start && line.start - run.end < LAST;
            if run.len() >= KEY_LINE || is_last {
                start = run.start;
            }
        }
        (start < line.start).then_some(start..line.end)
    }
}

/// The cells of a row, and where it ends: at `close`, or with the text. In quotes and in brackets no
/// sign parts two cells.
fn cells(text: &str, sign: Option<char>, close: char) -> (Vec<Range<usize>>, usize) {
    let (mut cells, mut start, mut depth) = (Vec::new(), 0, 0usize);
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in text.char_indices() {
        match quote {
            Some(end) if c == end && before != '\\' => quote = None,
            None if matches!(c, '"' | '\'') && !before.is_alphanumeric() => quote = Some(c),
            None if c == close && depth == 0 => {
                cells.push(start..at);
                return (cells, at + c.len_utf8());
            }
            None if Some(c) == sign && depth == 0 => {
                cells.push(start..at);
                start = at + c.len_utf8();
            }
            None if close == ')' => {
                depth = (depth + usize::from(c == '(')).saturating_sub(usize::from(c == ')'));
            }
            Some(_) | None => {}
        }
        before = c;
    }
    cells.push(start..text.len());
    (cells, text.len())
}

/// Whether a line parts rows of a table.
fn is_line(line: &str) -> bool {
    !line.trim().is_empty() && !line.contains(char::is_alphanumeric)
}

/// Whether a cell may be the head of a column: words, with a short number at most.
fn is_heading(cell: &str) -> bool {
    let digits = cell.chars().filter(char::is_ascii_digit).count();
    let is_of_head = |c: char| c.is_alphanumeric() || "_-. \"'`*()#/\r".contains(c);
    let has_number = digits == cell.trim().len() || cell.contains("-1") || digits > 2;
    cell.chars().all(is_of_head) && (digits == 0 || !has_number)
}

/// The word of a line that begins where a head does, in a table whose columns are parted by spaces.
fn word_below(head: &str, at: usize, line: &str) -> Option<Range<usize>> {
    // What a line of code is indented by parts no columns.
    let is_aligned = head.trim().contains("  ");
    let column = head.get(..at)?.chars().count();
    let start = line.char_indices().nth(column).filter(|_| is_aligned)?.0;
    let is_first = line.get(..start)?.chars().next_back().is_none_or(char::is_whitespace);
    let length = line.get(start..)?.find(char::is_whitespace).unwrap_or(line.len() - start);
    is_first.then_some(start..start + length)
}

fn trimmed(text: &str, of: Range<usize>, is_around: impl Fn(char) -> bool) -> Range<usize> {
    let cell = text.get(of.clone()).unwrap_or_default();
    let start = of.start + cell.len() - cell.trim_start_matches(&is_around).len();
    let value = cell.trim_matches(&is_around);
    start..start + value.len()
}

/// What stands in the first quotes of an expression of SQL.
fn literal(text: &str, of: Range<usize>) -> Range<usize> {
    let cell = text.get(of.clone()).unwrap_or_default();
    let Some((start, quote)) = cell.char_indices().find(|(_, c)| matches!(c, '"' | '\'')) else {
        return of.start..of.start;
    };
    let inside = cell.get(start + 1..).unwrap_or_default();
    let length = inside.trim_end_matches('\\').find(quote).unwrap_or_default();
    of.start + start + 1..of.start + start + 1 + length
}

/// Whether no more stands there than may between two lines of a key.
fn is_between(text: &str, range: Range<usize>, room: usize) -> bool {
    range.len() <= room && text.get(range).is_some_and(|between| !between.contains("----"))
}
