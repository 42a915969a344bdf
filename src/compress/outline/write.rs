//! An outline of a given detail, in words.

use indexmap::IndexMap;

use super::{
    entries::{Entry, Speaker},
    excerpt::{cut, last_line, push_collapsed, push_snippet},
    line::ANSWER,
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

/// How many bytes tell what a call was about, and at most how many where that is one word.
const SUBJECT: usize = 32;
const LONGEST_SUBJECT: usize = 120;

/// What the numbers of lines stand under.
const LINES: &str = "lines";

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
        let mut said = self.said(at, entry);
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
        if said.is_empty() && !answer.is_empty() && matches!(entry.speaker, Speaker::Call(_)) {
            said = subject(entry);
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        if let Speaker::Call(name) = entry.speaker {
            self.out.push_str(name);
            self.out.push('(');
        }
        let label = Speaker::LABELS.into_iter().find(|(_, of)| *of == entry.speaker);
        self.out.push_str(label.map_or("", |(label, _)| label));
        self.out.push_str(&said);
        if matches!(entry.speaker, Speaker::Call(_)) {
            self.out.push(')');
            if !answer.is_empty() {
                self.out.push_str(ANSWER);
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
        if !is_whole && !said.is_empty() && !said.ends_with('…') {
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
            if mention.is_line {
                let lines = groups.entry(LINES).or_default();
                lines.push_str(if lines.is_empty() { "" } else { " " });
                lines.push_str(mention.range.map_or("", |range| range.of(&field.text)));
                continue;
            }
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

/// What a call was about, where nothing else of it is said: the beginning of its first argument.
fn subject(call: &Entry<'_>) -> String {
    let Some(field) = call.fields.iter().find(|field| !field.text.trim().is_empty()) else {
        return String::new();
    };
    let text = field.text.trim_start();
    let word = text.find(char::is_whitespace).unwrap_or(text.len());
    let end = cut(text, SUBJECT).max(if word <= LONGEST_SUBJECT { word } else { 0 });
    let mut said = String::new();
    if let Some(key) = &field.key {
        said.push_str(key);
        said.push_str(": ");
    }
    push_collapsed(&mut said, text.get(..end).unwrap_or_default());
    if end < text.len() || call.fields.len() > 1 {
        said.push('…');
    }
    said
}

/// A beginning of a text that ends after `key:`, with the word that stands there.
fn with_value(text: &str, end: usize) -> usize {
    let (head, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let value = rest.trim_start();
    let word = value.find(char::is_whitespace).unwrap_or(value.len());
    let is_cut = head.ends_with(':') && (1..=LONGEST_SUBJECT).contains(&word);
    if is_cut { end + rest.len() - value.len() + word } else { end }
}

/// What of an entry fits into `bytes`, or several times that for who matters more; the task's into
/// at most `task`.
fn lead_of(entry: &Entry<'_>, bytes: usize, task: usize) -> Lead {
    let mut left = match entry.speaker {
        Speaker::User if entry.is_task => bytes.saturating_mul(6).min(bytes.max(task)),
        Speaker::User | Speaker::Call(_) => bytes.saturating_mul(2),
        Speaker::Agent | Speaker::System | Speaker::Summary => bytes,
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
        let room = room - lead.end.map_or(0, TextRange::len);
        lead.part = with_value(&field.text, cut(&field.text, room));
        lead.end = lead.end.filter(|line| lead.part <= line.start());
        break;
    }
    lead
}
