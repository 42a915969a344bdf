//! Summarises an output of many lines in a few names: the files of a search, the sections of a
//! document, what a file of code defines, the files of a listing.

use crate::text::words::contents::{DEFINING, MODIFIERS};
use indexmap::IndexMap;

/// More lines are not looked at.
const MOST_LINES: usize = 4_000;

/// A longer word is no name.
const LONGEST: usize = 120;

/// What lines of one output are, where at least so many of them are alike: one in so many.
const PART: usize = 2;

/// The names in the lines, in at most `most` bytes; `None` where they are neither a search, a
/// document, code nor a listing.
pub(crate) fn summarise_lines(lines: &[&str], most: usize) -> Option<String> {
    let lines = lines.get(..lines.len().min(MOST_LINES)).unwrap_or_default();
    let hits = lines.iter().filter_map(|line| searched_file(line));
    let paths = || lines.iter().filter_map(|line| listed_path(line));
    count_names(hits, lines.len() / PART)
        .or_else(|| sections(lines))
        .or_else(|| count_names(lines.iter().filter_map(|line| defined_name(line)), 1))
        .or_else(|| count_names(paths(), lines.len() / PART))
        .and_then(|names| join_names(&names, most))
}

/// Counts each name; `None` where there are at most `least` in all.
fn count_names<'l>(
    names: impl Iterator<Item = &'l str>,
    least: usize,
) -> Option<IndexMap<&'l str, usize>> {
    let (mut found, mut all) = (IndexMap::new(), 0);
    for name in names {
        *found.entry(name).or_default() += 1;
        all += 1;
    }
    (all > least).then_some(found)
}

/// Joins as many of the names as fit in `most` bytes, and says how many more there are. `None`
/// where no name fits.
fn join_names(names: &IndexMap<&str, usize>, most: usize) -> Option<String> {
    let mut said = String::new();
    for (at, (name, count)) in names.iter().enumerate() {
        let count = if *count > 1 { format!(" ×{count}") } else { String::new() };
        let comma = if said.is_empty() { "" } else { ", " };
        let rest = names.len() - at - 1;
        let more = if rest > 0 { ", … 9999 more".len() } else { 0 };
        if said.len() + comma.len() + name.len() + count.len() + more > most {
            return (!said.is_empty()).then(|| format!("{said}, … {} more", rest + 1));
        }
        said.extend([comma, name, &count]);
    }
    (!said.is_empty()).then_some(said)
}

/// The file in a line of a search: `src/a.rs:12:text`, `src/a.rs:text`.
fn searched_file(line: &str) -> Option<&str> {
    let (file, rest) = line.split_once(':')?;
    let is_numbered = rest.split_once(':').is_some_and(|(number, _)| is_number(number));
    let has_ending = file.rsplit('/').next().is_some_and(|name| name.contains('.'));
    (is_path(file) && (is_numbered || has_ending && !rest.starts_with("//"))).then_some(file)
}

/// The headings of a document in at most `most` bytes.
pub(crate) fn sections_in(lines: &[&str], most: usize) -> Option<String> {
    sections(lines).and_then(|titles| join_names(&titles, most))
}

/// The headings of a document; comments in code have one `#` each.
fn sections<'l>(lines: &[&'l str]) -> Option<IndexMap<&'l str, usize>> {
    let headings = || lines.iter().filter_map(|line| heading(line));
    let has_levels = headings().any(|(depth, _)| depth > 1);
    count_names(headings().map(|(_, title)| title), 1).filter(|_| has_levels)
}

/// A heading of a document in Markdown, with its depth.
fn heading(line: &str) -> Option<(usize, &str)> {
    let line = unnumbered(line);
    let title = line.trim_start_matches('#');
    let depth = line.len() - title.len();
    let title = title.strip_prefix(' ')?.trim();
    ((1..=4).contains(&depth)
        && title.len() <= LONGEST / 2
        && title.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
        && !title.ends_with(['.', ';', ':', ',']))
    .then_some((depth, title))
}

/// The name that a line of code defines.
fn defined_name(line: &str) -> Option<&str> {
    let mut words = unnumbered(line).split_whitespace();
    let word = words.by_ref().find(|word| !MODIFIERS.contains(word))?;
    if !DEFINING.contains(&word) {
        return None;
    }
    let name = words.next()?;
    let end = name
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '?' | '!')))
        .unwrap_or(name.len());
    let name = name.get(..end)?.trim_end_matches('.');
    let is_name = name.len() > 1
        && name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_name.then_some(name)
}

/// A line that is a path, as listings have it.
fn listed_path(line: &str) -> Option<&str> {
    is_path(line).then_some(line)
}

fn is_path(text: &str) -> bool {
    (2..=LONGEST).contains(&text.len())
        && text.contains(['/', '.'])
        && text.contains(char::is_alphabetic)
        && !text.contains(|c: char| {
            c.is_whitespace()
                || matches!(c, '"' | '\'' | '(' | ')' | '{' | '}' | '<' | '=' | ';' | ',')
        })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A line without the number that a listing puts before it.
fn unnumbered(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() {
        return line;
    }
    let rest = rest.strip_prefix(['→', '\t', ':', '|', '-']).unwrap_or(rest);
    rest.trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, most: usize, expected: Option<&str>) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(summarise_lines(&lines, most).as_deref(), expected, "{text}");
    }

    #[test]
    fn an_output_says_what_it_holds() {
        check(
            "src/lock.rs:12:let gate\nsrc/lock.rs:90:gate\nsrc/tide.rs:3:gate\n\nREADME.md:1:x",
            80,
            Some("src/lock.rs ×2, src/tide.rs, README.md"),
        );
        check("# Tides\ntext\n## The lower lock\nmore", 80, Some("Tides, The lower lock"));
        check(
            "    1→use std::fs;\n    2→pub(crate) fn raise(gate: u8) {\n    3→}\n    4→struct Gate {",
            80,
            Some("raise, Gate"),
        );
        check("12  class Lock(Base):\n13      def raise_gate(self):", 80, Some("Lock, raise_gate"));
        check("docs/a.md\ndocs/b.md\nsrc", 80, Some("docs/a.md, docs/b.md"));
        check("docs/a.md\ndocs/b.md\ndocs/c.md", 24, Some("docs/a.md, … 2 more"));
        check("the tide\nis low: 3\nand the gate", 80, None);
        check("# a comment of code.\nx = 1\n# another one,\ny = 2", 80, None);
    }
}
