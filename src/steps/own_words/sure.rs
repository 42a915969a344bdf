//! What of a message is surely the user's, where nothing marks what is pasted into it.

use std::ops::Range;

use super::lead::is_source;
use crate::steps::sentence::{lower, rule};
use crate::text::{is_among, mentions, words::material::LISTS};

/// So many lines with labels are a form: `Priority: high`.
const LABELS: usize = 2;

/// A label has so many words at most.
const LABEL_WORDS: usize = 3;

/// A line of fewer bytes that ends in a comma opens a letter.
const LONGEST_GREETING: usize = 40;

/// Where the sentences end that are surely the user's, in these parts of a message: with the message,
/// or, where it is made like a document, with its first paragraph and the list that this leads to.
/// O(n).
pub(super) fn sure_end(text: &str, parts: impl Iterator<Item = Range<usize>>) -> usize {
    let mut form = Form::default();
    for part in parts {
        form.is_blank = true;
        let mut at = part.start;
        for line in text.get(part).unwrap_or_default().split_inclusive('\n') {
            form.take(at, line);
            at += line.len();
        }
    }
    if form.is_document || form.labels >= LABELS {
        form.first.unwrap_or(text.len())
    } else {
        text.len()
    }
}

/// How a message is made.
#[derive(Default)]
struct Form<'t> {
    is_blank: bool,
    labels: usize,
    is_document: bool,
    /// Where the first paragraph ends, with a list that it leads to.
    first: Option<usize>,
    last: &'t str,
}

impl<'t> Form<'t> {
    fn take(&mut self, at: usize, line: &'t str) {
        let plain = line.trim();
        if plain.is_empty() {
            self.is_blank = true;
            return;
        }
        let is_label = is_label(plain);
        let is_of_document = is_heading(plain)
            || is_section(plain)
            || self.last.is_empty() && is_greeting(plain)
            || is_item(plain) && may_show(self.last);
        let is_next =
            self.is_blank && !self.last.is_empty() && !(is_item(plain) && leads(self.last));
        if is_of_document || is_label || is_next {
            self.first.get_or_insert(at);
        }
        self.labels += usize::from(is_label);
        self.is_document |= is_of_document;
        self.is_blank = false;
        self.last = if is_item(plain) { self.last } else { plain };
    }
}

/// Whether a line leads to a list that somebody else may have written.
fn may_show(line: &str) -> bool {
    let small = lower(line);
    line.ends_with([':', '：']) && is_source(&small) && !mentions(&small, &LISTS)
}

/// Whether a line has the number of a part of a section: `4.1 Errors`.
fn is_section(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let part =
        number.strip_prefix('.').map(|of| of.trim_start_matches(|c: char| c.is_ascii_digit()));
    number.len() < line.len()
        && part.is_some_and(|of| of.len() + 1 < number.len() && of.starts_with([' ', '.']))
}

/// Whether a line leads to a list of the user's: `Follow these rules:`.
fn leads(line: &str) -> bool {
    line.ends_with([':', '：']) && mentions(&lower(line), &LISTS)
}

fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '•', '+'])
        || number.len() < line.len() && number.starts_with(['.', ')'])
}

/// Whether a line is a heading of a document: `## Usage`, `**Usage**`, `BREAKING CHANGES`, `=====`. What
/// the user lists is the user's: `# Rules`, and not `# Coding rules of Example Inc.`.
fn is_heading(line: &str) -> bool {
    let is_ruled = line.len() > 2 && line.chars().all(|c| "-=_*~—–".contains(c));
    let is_bold = line.len() > 4 && line.starts_with("**") && line.ends_with("**");
    let marks = line.len() - line.trim_start_matches('#').len();
    let is_marked =
        (1..7).contains(&marks) && line.get(marks..).is_some_and(|of| of.starts_with(' '));
    let is_loud = !line.contains(char::is_lowercase)
        && line.chars().filter(|c| c.is_uppercase()).count() > 3
        && line.ends_with(char::is_alphanumeric)
        && line.split_whitespace().count() <= LABEL_WORDS
        && !rule::is_rule(line);
    let name = line.trim_matches(|c: char| !c.is_alphanumeric());
    is_ruled || (is_bold || is_marked || is_loud) && !is_among(&LISTS, &lower(name))
}

/// Whether a line has a label: `Priority: high`.
fn is_label(line: &str) -> bool {
    let label = line.split_once(": ").or_else(|| line.split_once('：'));
    label.is_some_and(|(label, said)| {
        let label = label.trim_matches('*');
        label.starts_with(char::is_alphabetic)
            && label.split_whitespace().count() <= LABEL_WORDS
            && label.chars().all(|c| c.is_alphanumeric() || " -_/'".contains(c))
            && !said.trim().is_empty()
    })
}

/// Whether a line opens a letter: `Hi all,`.
fn is_greeting(line: &str) -> bool {
    line.len() < LONGEST_GREETING && line.ends_with([',', '，'])
}
