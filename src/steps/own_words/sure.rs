//! What of a message is surely the user's, where nothing marks what is pasted into it.

use std::ops::Range;

use super::{
    lead::is_source,
    line_kind::{has_sentence, is_item, is_rule_off},
};
use crate::steps::sentence::{lower, rule};
use crate::text::{
    is_among, mentions,
    words::material::{FAR, LISTS, NEAR, POINTERS},
};

/// So many lines with labels are a form: `Priority: high`.
const LABELS: usize = 2;

/// A label has so many words at most.
const LABEL_WORDS: usize = 3;

/// A title of what is below it has so many words at most.
const TITLE_WORDS: usize = 8;

/// A line of fewer bytes that ends in a comma opens a letter.
const LONGEST_GREETING: usize = 40;

/// What closes a message has fewer bytes: `Thanks!`
const LONGEST_CLOSING: usize = 40;

/// Where the sentences stand that are surely the user's, in these parts of a message. O(n).
///
/// That is the whole message, but for two cases. A message whose last paragraph asks, or points at what
/// is above it, may quote that: the last paragraph is the user's, and the few words that close it. Of a message that is made like a
/// document, or whose first paragraph points at what is below it, the first paragraph is the user's, and
/// the list that this leads to.
pub(super) fn sure(text: &str, parts: impl Iterator<Item = Range<usize>>) -> Range<usize> {
    let mut form = Form::default();
    for part in parts {
        (form.is_blank, form.is_shown) = (true, true);
        let mut at = part.start;
        for line in text.get(part).unwrap_or_default().split_inclusive('\n') {
            form.take(at, line);
            at += line.len();
        }
    }
    let is_document = form.is_document || form.labels >= LABELS;
    let Some(first) = form.first else { return 0..text.len() };
    let owner = form.owner.filter(|_| form.behind < LONGEST_CLOSING && !form.first_points);
    if let Some(owner) = owner {
        owner..text.len()
    } else if is_document || form.first_points && !form.asks {
        0..first
    } else {
        0..text.len()
    }
}

/// How a message is made.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a sign that a line may give")]
struct Form<'t> {
    is_blank: bool,
    /// Whether what the last line leads to is marked, and stands before.
    is_shown: bool,
    labels: usize,
    is_document: bool,
    /// Where the first paragraph ends, with a list that it leads to.
    first: Option<usize>,
    /// Whether the first paragraph asks something.
    asks: bool,
    /// Its lines.
    of_first: Vec<&'t str>,
    /// Whether the first paragraph asks, or points at a text beside it.
    first_points: bool,
    /// Where the last paragraph begins, and the last below the first that asks, or points at a text.
    paragraph: usize,
    owner: Option<usize>,
    /// The bytes of what stands below that one.
    behind: usize,
    /// The last line that is no item, and how many lines its paragraph has up to the last.
    last: &'t str,
    lines: usize,
}

impl<'t> Form<'t> {
    fn take(&mut self, at: usize, line: &'t str) {
        let plain = line.trim();
        if plain.is_empty() {
            self.is_blank = true;
            return;
        }
        let is_item = is_item(plain);
        let is_label = is_label(plain);
        let is_next = self.is_blank && !self.last.is_empty() && !(is_item && leads(self.last));
        let is_later = self.first.is_some();
        let is_led = (is_item || is_next) && !self.is_shown && may_show(self.last);
        self.first_points |= is_led && !is_later;
        let is_of_document = is_heading(plain)
            || is_section(plain)
            || self.last.is_empty() && is_greeting(plain)
            || is_led
            || is_next && !is_later && self.asks && self.is_of_text()
            || is_later && self.lines == 1 && self.is_title(is_item);
        if is_of_document || is_label || is_next {
            self.first.get_or_insert(at);
        }
        let asks = plain.contains(['?', '？', '؟']);
        self.paragraph = if is_next { at } else { self.paragraph };
        let points = asks || self.is_begin() && points(plain);
        if self.first.is_none() {
            self.asks |= asks;
            self.first_points |= points;
            self.of_first.push(plain);
        } else if points {
            (self.owner, self.behind) = (Some(self.paragraph), 0);
        } else if self.owner.is_some_and(|owner| owner < self.paragraph) {
            self.behind += plain.len();
        }
        self.labels += usize::from(is_label);
        self.is_document |= is_of_document;
        self.lines = if self.is_blank { 1 } else { self.lines + 1 };
        (self.is_blank, self.is_shown) = (false, false);
        self.last = if is_item { self.last } else { plain };
    }

    /// Whether the first paragraph speaks of somebody's text.
    fn is_of_text(&self) -> bool {
        self.of_first.iter().any(|line| is_source(&lower(line)))
    }

    /// Whether the next line begins a paragraph.
    fn is_begin(&self) -> bool {
        self.is_blank || self.last.is_empty()
    }

    /// Whether the last line is the title of what stands below it: `Features` right above a list, or,
    /// below a question, who says something and when: `Bob answered on May 4`.
    fn is_title(&self, is_list: bool) -> bool {
        let is_above = if self.is_blank {
            self.asks && self.last.contains(|c: char| c.is_ascii_digit())
        } else {
            is_list
        };
        is_above
            && self.last.split_whitespace().count() <= TITLE_WORDS
            && !has_sentence(self.last)
            && !rule::is_rule(self.last)
            && !mentions(&lower(self.last), &LISTS)
    }
}

/// Whether a paragraph that begins so speaks of a text beside it: `That came from Bob`, `^ so Bob said`.
fn points(line: &str) -> bool {
    let small = lower(line);
    let word = small.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_unspaced = |start: &str| !start.is_ascii() && small.starts_with(start);
    let is_pointer = || {
        let mut lists = [&NEAR[..], &FAR, &POINTERS].into_iter();
        lists.any(|list| is_among(list, word) || list.iter().any(|of| is_unspaced(of)))
    };
    line.starts_with('^') || is_pointer() && is_source(&small)
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

/// Whether a line is a heading of a document: `## Usage`, `**Usage**`, `BREAKING CHANGES`, `=====`. What
/// the user lists is the user's: `# Rules`, and not `# Coding rules of Example Inc.`.
fn is_heading(line: &str) -> bool {
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
    is_rule_off(line) || (is_bold || is_marked || is_loud) && !is_among(&LISTS, &lower(name))
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
