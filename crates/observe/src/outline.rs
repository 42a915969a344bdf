//! The lines that a summary may show of an observation, worked out when it is stored.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{
    Ages, LineRule, Moment, Pointer, ToolRule,
    shown::{self, VALUE_CHARS},
};
use crate::json::Value;

/// The most lines that are kept of an observation.
const MOST_ENTRIES: usize = 64;
/// The most elements of a list that are shown.
const MOST_ITEMS: usize = 8;
/// How deep into a payload is looked for small values.
const DEPTH: usize = 3;
/// The lines of a text that are kept.
const TEXT_LINES: usize = 12;

/// What a summary may show of an observation. Its wire form is that of a database
/// (`docs/FORMAT.md`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Outline {
    /// The lines, the most useful first.
    pub entries: Vec<OutlineEntry>,
    /// How many values the lines leave out.
    pub omitted: u64,
    /// What stands behind the account's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_note: Option<String>,
    /// The fingerprint of the policy that made it; empty where none did.
    pub made_by: String,
    /// The lines of the policy of which a value is missing, with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A line of an [`Outline`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlineEntry {
    /// The line, without the mark of a list.
    #[serde(default)]
    pub text: String,
    /// The elements of a list below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    /// What it is: the smaller, the more useful.
    pub rank: Rank,
    /// When it was seen, where that is not when the observation was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Moment>,
}

/// How useful a line is. On the wire it is a number from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub enum Rank {
    /// The last response changed it.
    Changed,
    /// The policy marks it.
    Marked,
    /// A small value.
    Scalar,
    /// How many there are of something larger.
    Count,
}

impl From<u64> for Rank {
    fn from(rank: u64) -> Self {
        match rank {
            0 => Self::Changed,
            1 => Self::Marked,
            2 => Self::Scalar,
            _ => Self::Count,
        }
    }
}

impl From<Rank> for u64 {
    fn from(rank: Rank) -> Self {
        rank as u64
    }
}

/// What an outline is made of.
pub(super) struct Subject<'a> {
    pub(super) value: &'a Value,
    pub(super) rule: &'a ToolRule,
    pub(super) changed: &'a [Pointer],
    pub(super) ages: &'a Ages,
    pub(super) seen: Moment,
    /// The places that a summary speaks of elsewhere: whose it is, and the tick.
    pub(super) told: &'a [&'a [Pointer]],
}

impl Outline {
    pub(super) fn of(
        subject: &Subject<'_>,
        account_note: Option<String>,
        made_by: &str,
    ) -> Outline {
        let mut outline = Outline { account_note, made_by: made_by.to_owned(), ..Self::default() };
        let mut shown: Vec<Pointer> = Vec::new();
        for line in &subject.rule.lines {
            let mut filled = filled(line, subject.value);
            let lacks = filled.missing.iter().map(|place| match line.label.as_str() {
                "" => format!("nothing at {place}"),
                label => format!("{label}: nothing at {place}"),
            });
            // A line of which nothing is there is for answers of another form.
            if !filled.is_blank() {
                outline.missing.extend(lacks);
                let (text, places) = (std::mem::take(&mut filled.text), &filled.places);
                outline.add(subject, text, filled.items, Rank::Marked, places);
                shown.extend(filled.places);
            }
        }
        for pointer in &subject.rule.important {
            if let Some(value) = pointer.of_value(subject.value)
                && !shown.contains(pointer)
            {
                let text = line_of(pointer.segments(), value);
                outline.add(subject, text, Vec::new(), Rank::Marked, std::slice::from_ref(pointer));
                shown.push(pointer.clone());
            }
        }
        if !subject.rule.only_marked {
            outline.add_rest(subject, &shown);
        } else if outline.entries.is_empty() {
            let text = "Nothing that the policy marks is in it.".to_owned();
            outline.missing.push("none of the lines finds its place".to_owned());
            outline.add(subject, text, Vec::new(), Rank::Marked, &[]);
        }
        outline.entries.sort_by_key(|entry| entry.rank);
        outline
    }

    fn add(
        &mut self,
        subject: &Subject<'_>,
        text: String,
        items: Vec<String>,
        rank: Rank,
        places: &[Pointer],
    ) {
        if self.entries.len() >= MOST_ENTRIES {
            self.omitted += 1;
            return;
        }
        // That the whole is another says nothing of a line of it.
        let changed = || subject.changed.iter().filter(|path| !path.is_root());
        let changes = |place: &Pointer| changed().any(|path| path.overlaps(place));
        let rank = if places.iter().any(changes) { Rank::Changed } else { rank };
        let keys = |path: &[String]| subject.rule.key_of(path);
        let seen = places
            .iter()
            .map(|place| subject.ages.of(subject.seen, place, subject.value, &keys))
            .reduce(Moment::earliest)
            .filter(|seen| *seen != subject.seen);
        self.entries.push(OutlineEntry { text, items, rank, seen });
    }

    /// What neither a line nor a mark names: small values, the shallow ones first, then counts.
    fn add_rest(&mut self, subject: &Subject<'_>, shown: &[Pointer]) {
        match subject.value {
            Value::Object(_) => {}
            Value::Array(array) => {
                let text = format!("{} entries", shown::grouped(&array.len().to_string()));
                self.add(subject, text, Vec::new(), Rank::Count, &[Pointer::default()]);
                return;
            }
            Value::String(text) => return self.add_text(subject, text),
            scalar => {
                let text = line_of(&[], scalar);
                return self.add(subject, text, Vec::new(), Rank::Scalar, &[Pointer::default()]);
            }
        }
        let mut waiting: VecDeque<(Vec<String>, &Value)> =
            VecDeque::from([(Vec::new(), subject.value)]);
        while let Some((path, value)) = waiting.pop_front() {
            let place = Pointer::of(&path);
            if shown.contains(&place) || subject.told.iter().any(|told| told.contains(&place)) {
                continue;
            }
            match value {
                Value::Object(object) if path.len() < DEPTH => {
                    for (key, value) in object {
                        let inside = path.iter().cloned().chain([key.clone()]).collect();
                        waiting.push_back((inside, value));
                    }
                }
                Value::Object(object) => {
                    if !shown.iter().any(|shown| shown.overlaps(&place)) && !object.is_empty() {
                        let text = line_of(&path, value);
                        self.add(subject, text, Vec::new(), Rank::Count, &[place]);
                    }
                }
                Value::Array(array) => {
                    if shown.iter().any(|shown| shown.overlaps(&place)) {
                        continue;
                    }
                    let rank =
                        if shown::inline(array).is_some() { Rank::Scalar } else { Rank::Count };
                    self.add(subject, line_of(&path, value), Vec::new(), rank, &[place]);
                }
                _ => {
                    let text = line_of(&path, value);
                    self.add(subject, text, Vec::new(), Rank::Scalar, &[place]);
                }
            }
        }
    }

    fn add_text(&mut self, subject: &Subject<'_>, text: &str) {
        let place = [Pointer::default()];
        let mut lines = text.lines().map(|line| shown::clean(line, VALUE_CHARS));
        let mut left = 0;
        for line in lines.by_ref().filter(|line| !line.is_empty()).take(TEXT_LINES) {
            let line = shown::first_on_line(line).into_owned();
            self.add(subject, line, Vec::new(), Rank::Scalar, &place);
        }
        left += lines.filter(|line| !line.is_empty()).count() as u64;
        if left > 0 {
            self.omitted += left;
            let text = format!("{} more lines of text", shown::grouped(&left.to_string()));
            self.add(subject, text, Vec::new(), Rank::Count, &place);
        }
    }
}

/// What a rule makes of a value.
#[derive(Default)]
struct Line {
    text: String,
    items: Vec<String>,
    places: Vec<Pointer>,
    /// The places of the values that are missing.
    missing: Vec<String>,
    /// Whether the value, or the list, is there.
    has_value: bool,
    has_list: bool,
}

impl Line {
    fn is_blank(&self) -> bool {
        !self.has_value && !self.has_list
    }
}

/// The line that a rule makes of a value.
fn filled(line: &LineRule, value: &Value) -> Line {
    let mut made = Line::default();
    if let Some(template) = &line.value {
        let filled = template.fill(value);
        made.has_value = !filled.is_blank();
        made.text = if !made.has_value {
            String::new()
        } else if line.label.is_empty() && !template.begins_with_text() {
            shown::first_on_line(filled.text.into()).into_owned()
        } else {
            filled.text
        };
        made.missing = filled.missing;
        made.places = filled.places;
    }
    if let (Some(each), Some(item)) = (&line.each, &line.item) {
        let elements = each.of_value(value).and_then(Value::as_array);
        made.has_list = elements.is_some();
        let elements = elements.unwrap_or_default();
        for (at, element) in elements.iter().take(MOST_ITEMS).enumerate() {
            let filled = item.fill(element);
            made.missing.extend(filled.missing.iter().map(|place| format!("{each}/{at}{place}")));
            made.items.push(filled.text);
        }
        let left = elements.len().saturating_sub(MOST_ITEMS);
        if left > 0 {
            made.items.push(format!("{} more", shown::grouped(&left.to_string())));
        }
        if !elements.is_empty() || line.value.is_none() {
            made.places.push(each.clone());
        }
        if line.is_inline {
            let list = std::mem::take(&mut made.items).join(", ");
            let list = if list.is_empty() { "none".to_owned() } else { list };
            made.text = match made.text.is_empty() {
                true => list,
                false if elements.is_empty() => made.text,
                false => format!("{} ({list})", made.text),
            };
        } else if item.begins_with_text() {
            // The policy's own words are no danger.
        } else {
            for item in &mut made.items {
                *item = shown::first_on_line(std::mem::take(item).into()).into_owned();
            }
        }
    }
    made.text = match line.label.as_str() {
        "" => made.text,
        label if made.text.is_empty() => format!("{label}:"),
        label => format!("{label}: {}", made.text),
    };
    made
}

/// The line for a value that no rule names.
fn line_of(path: &[String], value: &Value) -> String {
    let shown = match value {
        Value::Object(object) => {
            format!("{} fields", shown::grouped(&object.len().to_string()))
        }
        Value::Array(array) => shown::inline(array)
            .unwrap_or_else(|| format!("{} entries", shown::grouped(&array.len().to_string()))),
        scalar => shown::value(scalar).unwrap_or_default().into_owned(),
    };
    match path {
        [] => shown::first_on_line(shown.into()).into_owned(),
        path => {
            let label = shown::label(path);
            let label = shown::first_on_line(label.into());
            format!("{label}: {shown}")
        }
    }
}
