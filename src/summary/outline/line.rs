//! Lines of outlines, read back.

use super::entries::Speaker;
use crate::summary::ledger::{LeftOut, Section};

/// A line of an outline, or any line of a summary that somebody else wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    pub(super) speaker: Speaker<'t>,
    pub(super) text: &'t str,
    /// What a call was answered with.
    pub(super) answer: Option<&'t str>,
}

/// What stands between a call and what it was answered with.
pub(super) const ANSWER: &str = " → ";

impl<'t> Line<'t> {
    /// Reads a line; `None` where it says nothing: blank lines, headings.
    pub(super) fn of(line: &'t str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || Section::of_title(line).is_some() {
            return None;
        }
        let names = line.strip_prefix(Section::Names.title(true));
        // How many are left out is no name.
        let names = names.map(|names| names.split(" … ").next().unwrap_or_default());
        let item = line.strip_prefix("- ").unwrap_or(line);
        if LeftOut::of_text(item).is_some() {
            return None;
        }
        let line = names.or(line.strip_prefix("- ")).unwrap_or(line).trim();
        let said = Speaker::LABELS.into_iter().find_map(|(label, speaker)| {
            line.strip_prefix(label).map(|text| Self { speaker, text, answer: None })
        });
        let told = Self { speaker: Speaker::Summary, text: line, answer: None };
        Some(said.or_else(|| Self::of_call(line)).unwrap_or(told))
    }

    /// `name(arguments)`, and what came of it.
    fn of_call(line: &'t str) -> Option<Self> {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let (name, rest) = line.split_once('(')?;
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let speaker = Speaker::Call(name);
        if let Some((text, answer)) = rest.split_once(&*format!("){ANSWER}")) {
            return Some(Self { speaker, text, answer: Some(answer) });
        }
        rest.strip_suffix(')').map(|text| Self { speaker, text, answer: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let line = |speaker, text, answer| Some(Line { speaker, text, answer });
        let check = |text, expected| assert_eq!(Line::of(text), expected, "{text}");
        check("User: stop (now)", line(Speaker::User, "stop (now)", None));
        check("Result: 5 found", line(Speaker::Result, "5 found", None));
        check("get(id: 7) → gone", line(Speaker::Call("get"), "id: 7", Some("gone")));
        check("ls()", line(Speaker::Call("ls"), "", None));
        check("They (both) left.", line(Speaker::Summary, "They (both) left.", None));
        check("open(and never closed", line(Speaker::Summary, "open(and never closed", None));
        check("  ", None);
        check("Done, newest first:", None);
        check("Names: a-1 b-2", line(Speaker::Summary, "a-1 b-2", None));
    }
}
