//! An outline of a given detail, in words.

use indexmap::IndexMap;

use super::{
    entries::{Entry, Field, Speaker},
    select::{Mention, Names},
};
use crate::text::TextRange;

/// How much an outline says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    /// The heading.
    pub(super) heading: &'static str,
    /// The bytes that an entry's beginning may have.
    pub(super) lead: usize,
    /// The bytes that the beginning of the task may have, where that is more.
    pub(super) task: usize,
    /// How many entries have a beginning, spread over all.
    pub(super) leads: usize,
    /// The words before an identifier.
    pub(super) context: usize,
    /// The names below this rank are kept.
    pub(super) names: usize,
}

type Fold = foldhash::fast::FixedState;

/// Writes the outline. Runs in time linear in the mentions and in what is written.
pub(super) fn write(entries: &[Entry<'_>], names: &Names, detail: Detail) -> String {
    let mut writer = Writer {
        entries,
        names,
        detail,
        shown: vec![false; names.names.len()],
        leads: Vec::new(),
        out: detail.heading.to_owned(),
    };
    writer.lead_all();
    for at in 0..entries.len() {
        writer.line(at);
    }
    writer.out
}

struct Writer<'a> {
    entries: &'a [Entry<'a>],
    names: &'a Names,
    detail: Detail,
    /// The names that a lead shows or that are written already.
    shown: Vec<bool>,
    leads: Vec<Lead>,
    out: String,
}

/// How much of an entry its lead shows: whole fields, and a part of the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Lead {
    is_there: bool,
    fields: usize,
    /// Bytes of the field after the whole ones.
    part: usize,
    /// The last line of that field, where outcomes stand.
    end: Option<TextRange>,
}

impl Lead {
    fn holds(self, mention: &Mention) -> bool {
        mention.field < self.fields
            || mention.field == self.fields
                && (self.part > 0 && mention.range.is_none_or(|range| range.end() <= self.part)
                    || self.end.zip(mention.range).is_some_and(|(end, range)| {
                        end.start() <= range.start() && range.end() <= end.end()
                    }))
    }
}

impl Writer<'_> {
    /// Decides what the leads show, and which names need no other place for it.
    fn lead_all(&mut self) {
        let of_order = |order| self.entries.iter().filter(|entry| entry.order() == order).count();
        let counts = [of_order(0), of_order(1), of_order(2)];
        // Half for the user's words, the rest for what the agent did; what either leaves is the
        // other's, and then the results'.
        let leads = self.detail.leads;
        let words = counts[0].min(leads.div_ceil(2).max(leads.saturating_sub(counts[1])));
        let acts = counts[1].min(leads - words);
        let rooms = [words, acts, leads - words - acts];
        let mut seen = [0_usize; 3];
        for (entry, mentions) in self.entries.iter().zip(&self.names.mentions) {
            let order = entry.order();
            let at = |of: &[usize; 3]| of.get(order).copied().unwrap_or_default();
            let (seen_before, room, count) = (at(&seen), at(&rooms), at(&counts));
            seen.get_mut(order).into_iter().for_each(|seen| *seen += 1);
            // Of `count` entries, `room` have a lead, at even distances.
            let even = |seen: usize| (seen * room).div_ceil(count);
            let has_lead = even(seen_before + 1) > even(seen_before);
            let lead = if has_lead {
                lead_of(entry, self.detail.lead, self.detail.task)
            } else {
                Lead::default()
            };
            for mention in mentions.iter().filter(|mention| lead.holds(mention)) {
                if let Some(shown) = self.shown.get_mut(mention.name) {
                    *shown = true;
                }
            }
            self.leads.push(lead);
        }
    }

    /// Writes an entry with what answers it, where there is something to say.
    fn line(&mut self, at: usize) {
        let entries = self.entries;
        let Some(entry) = entries.get(at).filter(|entry| !entry.is_answer) else { return };
        let said = self.said(at, entry);
        let mut answers: Vec<String> = Vec::new();
        for at in &entry.answers {
            answers.extend(entries.get(*at).map(|answer| self.said(*at, answer)));
        }
        answers.retain(|said| !said.is_empty());
        let answer = answers.join(", ");
        let has_lead = self.leads.get(at).is_some_and(|lead| lead.is_there);
        if said.is_empty() && answer.is_empty() && !has_lead {
            return;
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        match entry.speaker {
            Speaker::User => self.out.push_str("User: "),
            Speaker::Agent => self.out.push_str("Agent: "),
            Speaker::System => self.out.push_str("System: "),
            Speaker::Result => self.out.push_str("Result: "),
            Speaker::Call(name) => {
                self.out.push_str(name);
                self.out.push('(');
            }
        }
        self.out.push_str(&said);
        if matches!(entry.speaker, Speaker::Call(_)) {
            self.out.push(')');
            if !answer.is_empty() {
                self.out.push_str(" → ");
                self.out.push_str(&answer);
            }
        }
    }

    /// The lead of an entry, and the identifiers that are kept at it.
    fn said(&mut self, at: usize, entry: &Entry<'_>) -> String {
        let lead = self.leads.get(at).copied().unwrap_or_default();
        let mut said = String::new();
        for (index, field) in entry.fields.iter().enumerate().take(lead.fields + 1) {
            let part = if index < lead.fields { field.text.len() } else { lead.part };
            if index == lead.fields && part == 0 {
                break;
            }
            if index > 0 {
                said.push_str(", ");
            }
            // The items of a list share their key.
            let key = field.key.as_deref();
            let last =
                index.checked_sub(1).and_then(|index| entry.fields.get(index)?.key.as_deref());
            if let Some(key) = key.filter(|_| key != last) {
                said.push_str(key);
                said.push_str(": ");
            }
            push_collapsed(&mut said, field.text.get(..part).unwrap_or_default());
        }
        let is_whole = lead.fields >= entry.fields.len();
        let kept = self.kept(at, entry);
        if !is_whole && !said.is_empty() {
            said.push('…');
        }
        if let Some((end, field)) = lead.end.zip(entry.fields.get(lead.fields)) {
            if !said.is_empty() {
                said.push(' ');
            }
            push_collapsed(&mut said, end.of(&field.text));
            said.push_str(if kept.is_empty() { "" } else { ";" });
        }
        if !kept.is_empty() {
            if !said.is_empty() {
                said.push(' ');
            }
            said.push_str(&kept);
        }
        said
    }

    /// The identifiers that are kept at an entry, each beside its key or the words around it.
    fn kept(&mut self, at: usize, entry: &Entry<'_>) -> String {
        let names = self.names;
        let wanted = names.mentions.get(at).map(Vec::as_slice).unwrap_or_default();
        let mut groups: IndexMap<&str, String, Fold> = IndexMap::default();
        // Where the last snippet ended, and in which field.
        let mut last: Option<(usize, usize)> = None;
        for mention in wanted {
            let Some(name) = names.names.get(mention.name) else { continue };
            let Some(shown) = self.shown.get_mut(mention.name) else { continue };
            if *shown || name.home != at || name.rank >= self.detail.names {
                continue;
            }
            let Some(field) = entry.fields.get(mention.field) else { continue };
            *shown = true;
            let group = groups.entry(field.key.as_deref().unwrap_or_default()).or_default();
            if let Some(range) = mention.range {
                let before = last.filter(|(field, _)| *field == mention.field).map(|(_, end)| end);
                let end = push_snippet(group, field, range, before, self.detail.context);
                last = Some((mention.field, end));
            }
        }
        let mut kept = String::new();
        let (keys, groups): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(_, values)| values.is_empty());
        let keys: Vec<&str> = keys.into_iter().map(|(key, _)| key).collect();
        let keys =
            if keys.len() > 1 { format!("fields {}", keys.join(" ")) } else { keys.concat() };
        let keys = (!keys.is_empty()).then_some(("", keys));
        for (key, values) in groups.into_iter().chain(keys) {
            if !kept.is_empty() {
                kept.push_str("; ");
            }
            kept.push_str(key);
            if !key.is_empty() && !values.is_empty() {
                kept.push_str(": ");
            }
            kept.push_str(&values);
        }
        kept
    }
}

/// What of an entry fits into `bytes`, or several times that for who matters more; the task's into
/// at most `task`.
fn lead_of(entry: &Entry<'_>, bytes: usize, task: usize) -> Lead {
    let mut left = match entry.speaker {
        Speaker::User if entry.is_task => bytes.saturating_mul(6).min(bytes.max(task)),
        Speaker::User | Speaker::Call(_) => bytes.saturating_mul(2),
        Speaker::Agent | Speaker::System => bytes,
        Speaker::Result => bytes / 2,
    };
    let mut lead = Lead { is_there: true, ..Lead::default() };
    for field in &entry.fields {
        let size = field.text.len() + field.key.as_ref().map_or(0, |key| key.len() + 2);
        if size <= left {
            left -= size;
            lead.fields += 1;
            continue;
        }
        let room = left.saturating_sub(size - field.text.len());
        // What programs say ends with what came of it.
        if entry.order() == 2 && field.key.is_none() {
            lead.end = last_line(&field.text).filter(|line| line.len() <= room);
        }
        lead.part = cut(&field.text, room - lead.end.map_or(0, TextRange::len));
        lead.end = lead.end.filter(|line| lead.part <= line.start());
        break;
    }
    lead
}

/// The last line that is not blank and holds a letter or a digit.
fn last_line(text: &str) -> Option<TextRange> {
    let mut end = text.len();
    for _ in 0..4 {
        let head = text.get(..end)?.trim_end();
        let from = head.rfind('\n').map(|at| at + 1)?;
        let line = head.get(from..)?;
        // A closing bracket or tag is not what came of it.
        let is_tag = line.trim_start().starts_with("</");
        if line.contains(char::is_alphanumeric) && !is_tag {
            return TextRange::new(from, head.len());
        }
        end = from;
    }
    None
}

/// The end of the last whole word within `room` bytes, or of the last character in a text without
/// words.
fn cut(text: &str, room: usize) -> usize {
    let end = boundary(text, room);
    let head = text.get(..end).unwrap_or_default();
    let trimmed = head.trim_end();
    let ends_word = text.get(end..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    if trimmed.len() < head.len() || ends_word {
        return trimmed.len();
    }
    let word = head.rfind(char::is_whitespace).unwrap_or(0);
    let at_word = head.get(..word).unwrap_or_default().trim_end().len();
    // Text without spaces is cut anywhere.
    if end - at_word <= 40 || end < 40 { at_word } else { end }
}

/// The last border between characters at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Adds an identifier with up to `words` words before it, or else after it, on its line. Returns
/// where in the field the snippet ends.
fn push_snippet(
    out: &mut String,
    field: &Field<'_>,
    range: TextRange,
    before: Option<usize>,
    words: usize,
) -> usize {
    let text = field.text.as_ref();
    let floor = before.unwrap_or(0);
    let (mut from, mut to) = (range.start(), range.end());
    let is_short = field.key.is_some() && text.len() <= 80;
    if !is_short {
        from = back(text, floor, range.start(), words);
        if from == range.start() && before.is_none_or(|end| gap(text, end, from).contains('\n')) {
            to = ahead(text, range.end(), words.min(1));
        }
    } else if text.len() <= 40 {
        // A short value stands whole.
        (from, to) = (floor, text.len());
    }
    let joins = before.is_some_and(|end| {
        let gap = gap(text, end, from);
        gap.len() <= 3 && !gap.contains('\n')
    });
    if joins {
        from = floor;
    } else if !out.is_empty() {
        out.push_str(if is_short { " " } else { ", " });
    }
    push_collapsed(out, text.get(from..to).unwrap_or_default());
    to
}

fn gap(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

/// The start of the `words` words before `at`, on its line and not before `floor`.
fn back(text: &str, floor: usize, at: usize, words: usize) -> usize {
    let mut from = at;
    for _ in 0..words {
        let window = floor.max(boundary(text, from.saturating_sub(32)));
        let head = text.get(window..from).unwrap_or_default();
        let line = head.rfind('\n').map_or(0, |at| at + 1);
        let line = head.get(line..).unwrap_or_default();
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        let Some(end) = line.rfind(is_letter) else { break };
        let word = line.get(..end).unwrap_or_default();
        let start = word.rfind(|c: char| !is_letter(c)).map_or(0, |at| {
            at + word.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        if start == 0 && line.len() == head.len() && window > floor {
            break;
        }
        from -= line.len() - start;
    }
    from
}

/// The end of the word after `at` on its line.
fn ahead(text: &str, at: usize, words: usize) -> usize {
    if words == 0 {
        return at;
    }
    let rest = text.get(at..).unwrap_or_default();
    let window = rest.get(..boundary(rest, 32)).unwrap_or_default();
    let line = window.split('\n').next().unwrap_or_default();
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let Some(start) = line.find(is_letter) else { return at };
    let word = line.get(start..).unwrap_or_default();
    match word.find(|c: char| !is_letter(c)) {
        Some(end) => at + start + end,
        None if line.len() < window.len() || window.len() == rest.len() => at + line.len(),
        None => at,
    }
}

/// Adds a text with each run of white space as one space.
fn push_collapsed(out: &mut String, text: &str) {
    let mut was_space = out.is_empty() || out.ends_with(char::is_whitespace);
    for c in text.chars() {
        let is_space = c.is_whitespace();
        if !is_space {
            out.push(c);
        } else if !was_space {
            out.push(' ');
        }
        was_space = is_space;
    }
}
