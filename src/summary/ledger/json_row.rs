//! JSON answers as short rows: what names things first, and no key without its value.

use crate::{
    json::{Object, Value},
    text::flat,
};

/// A longer text is prose.
const PROSE: usize = 48;

/// A value of more bytes is cut.
const LONGEST: usize = 64;

/// A number of so many digits is known without its key.
const LONG_NUMBER: usize = 6;

/// Texts that say nothing without their key.
const ANSWERS: [&str; 8] = ["yes", "no", "true", "false", "none", "on", "off", "n/a"];

/// So deep is looked into lists of lists.
const DEEPEST: usize = 6;

/// What stands between the elements of a list.
const NEXT: &str = "; ";

/// How much a cell is worth, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// A list of ids, or an id.
    Id,
    /// Records that have ids.
    Records,
    /// A state, a number, a date.
    State,
    Other,
    Prose,
}

/// A part of a row.
#[derive(Debug)]
struct Cell {
    worth: Worth,
    /// The key of a list; then a part of the elements still says something.
    list: Option<String>,
    /// One text, or the elements of a list.
    parts: Vec<String>,
}

impl Cell {
    fn one(worth: Worth, text: String) -> Self {
        Self { worth, list: None, parts: vec![text] }
    }

    /// The text in at most `most` bytes: of a list as many elements as fit, and how many more
    /// there are.
    fn text(&self, most: usize) -> Option<String> {
        let Some(key) = &self.list else {
            return self.parts.first().filter(|text| text.len() <= most).cloned();
        };
        let text = joined(&self.parts, most.checked_sub(key.len() + 4)?)?;
        Some(format!("{key}: [{text}]"))
    }
}

/// As many of the elements as fit, and how many more there are; `None` where none fits.
fn joined(parts: &[String], most: usize) -> Option<String> {
    let whole: usize = parts.iter().map(|part| part.len() + NEXT.len()).sum();
    if whole <= most + NEXT.len() {
        return Some(parts.join(NEXT));
    }
    let room = most.checked_sub(NEXT.len() + "… 999 more".len())?;
    let mut said = String::new();
    let mut count = 0;
    for part in parts {
        if said.len() + part.len() + NEXT.len() > room {
            break;
        }
        said.push_str(if said.is_empty() { "" } else { NEXT });
        said.push_str(part);
        count += 1;
    }
    (count > 0).then(|| format!("{said}{NEXT}… {} more", parts.len() - count))
}

/// A value as a row of at most `most` bytes, without what `said` says already. `None` where nothing
/// of it fits.
pub(super) fn row(value: &Value, said: &str, most: usize) -> Option<String> {
    match value {
        Value::Array(items) if items.is_empty() => Some("[]".to_owned()),
        Value::Array(items) => rows(items, said, most),
        Value::Object(object) if object.is_empty() => Some("{}".to_owned()),
        Value::Object(object) => record(object, said, most),
        _ => None,
    }
}

/// A row for each element, as far as there is room; each of about the same length.
pub(super) fn rows(items: &[Value], said: &str, most: usize) -> Option<String> {
    let each = (most / items.len().max(1)).clamp(most.min(20), most).saturating_sub(NEXT.len());
    let same = same_everywhere(items);
    let parts = |room: usize| -> Vec<String> {
        let element = |value: &Value| element(value, said, &same, room, 0);
        items.iter().filter_map(element).filter(|row| !row.is_empty()).collect()
    };
    let parts = parts(each);
    let count = || format!("{} items", items.len());
    if parts.is_empty() {
        return Some(count()).filter(|text| text.len() <= most);
    }
    joined(&parts, most).or_else(|| Some(count()).filter(|text| text.len() <= most))
}

/// What stands in each record alike: it tells none from another.
fn same_everywhere(items: &[Value]) -> Vec<(&str, &Value)> {
    let [first, others @ ..] = items else { return Vec::new() };
    let Some(first) = first.as_object().filter(|_| !others.is_empty()) else { return Vec::new() };
    let is_same = |(key, value): &(&str, &Value)| {
        let is_scalar = !matches!(value, Value::Array(_) | Value::Object(_));
        is_scalar && others.iter().all(|other| other.get(key) == Some(value))
    };
    first.iter().map(|(key, value)| (key.as_ref(), value)).filter(is_same).collect()
}

fn element(
    value: &Value,
    said: &str,
    same: &[(&str, &Value)],
    most: usize,
    depth: usize,
) -> Option<String> {
    match value {
        Value::Object(object) => {
            let is_own = |(key, value): &(&_, &Value)| {
                !same.iter().any(|(same_key, same)| same_key == key && same == value)
            };
            let cells = if same.is_empty() || !object.iter().any(|member| is_own(&member)) {
                cells(object, said, depth)
            } else {
                let own = object.iter().filter(is_own);
                let own: Object = own.map(|(key, value)| (key.clone(), value.clone())).collect();
                cells(&own, said, depth)
            };
            choose(&cells, most).or_else(|| {
                let first = cells.iter().min_by_key(|cell| cell.worth)?;
                Some(cut(first.parts.first()?, most))
            })
        }
        Value::Array(items) if depth < DEEPEST => {
            let room = (most / items.len().max(1)).max(12);
            let parts: Vec<String> = items
                .iter()
                .filter_map(|value| element(value, said, &[], room, depth + 1))
                .collect();
            Some(parts.join(" + "))
        }
        Value::Null | Value::Array(_) => None,
        Value::String(text) => Some(cut(text, most.min(LONGEST))),
        value => Some(value.to_string()),
    }
}

fn record(object: &Object, said: &str, most: usize) -> Option<String> {
    let cells = cells(object, said, 0);
    if cells.is_empty() {
        return Some(format!("{} fields", object.len())).filter(|text| text.len() <= most);
    }
    choose(&cells, most)
}

/// The cells that are worth most, in the order of the record.
fn choose(cells: &[Cell], most: usize) -> Option<String> {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|at| cells.get(*at).map(|cell| cell.worth));
    let mut left = most;
    let mut chosen: Vec<(usize, String)> = Vec::new();
    for at in order {
        let Some(cell) = cells.get(at) else { continue };
        let around = if chosen.is_empty() { 0 } else { 2 };
        let Some(text) = left.checked_sub(around).and_then(|left| cell.text(left)) else {
            continue;
        };
        left -= text.len() + around;
        chosen.push((at, text));
    }
    chosen.sort_by_key(|(at, _)| *at);
    let texts: Vec<String> = chosen.into_iter().map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn cells(object: &Object, said: &str, depth: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut in_table: Vec<&str> = Vec::new();
    for (key, value) in object {
        let key: &str = key.as_ref();
        if in_table.contains(&key) {
            continue;
        }
        match value {
            Value::Object(inner) if depth < DEEPEST => {
                let siblings = siblings(object, inner);
                if siblings.len() > 1 {
                    cells.push(Cell::one(Worth::State, table(&siblings)));
                    in_table.extend(siblings.iter().map(|(key, _)| *key));
                } else {
                    cells.extend(nested(key, inner, said, depth));
                }
            }
            Value::Array(items) if depth < DEEPEST => cells.extend(list(key, items, said, depth)),
            value => cells.extend(scalar(key, value, said, depth)),
        }
    }
    cells
}

/// The members that are objects of plain values under the same keys as this one.
fn siblings<'o>(object: &'o Object, one: &Object) -> Vec<(&'o str, &'o Object)> {
    let is_plain = |of: &Object| {
        !of.is_empty()
            && of.iter().all(|(_, value)| matches!(value, Value::Number(_) | Value::Bool(_)))
    };
    let is_like = |of: &Object| {
        is_plain(of) && of.len() == one.len() && of.iter().all(|(key, _)| one.get(key).is_some())
    };
    let members = object.iter().filter_map(|(key, value)| Some((key.as_ref(), value.as_object()?)));
    members.filter(|(_, of)| is_like(of)).collect()
}

/// Objects with the same keys, side by side: `seats/prices: economy 0/151, business 5/323`.
fn table(columns: &[(&str, &Object)]) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let keys = columns.first().into_iter().flat_map(|(_, first)| first.iter());
    let lines: Vec<String> = keys
        .map(|(key, _)| {
            let values = columns.iter().filter_map(|(_, of)| of.get(key));
            let values: Vec<String> = values.map(ToString::to_string).collect();
            format!("{key} {}", values.join("/"))
        })
        .collect();
    format!("{}: {}", names.join("/"), lines.join(", "))
}

/// An object in an object: records under their names, or a record.
fn nested(key: &str, inner: &Object, said: &str, depth: usize) -> Option<Cell> {
    let are_records = inner.iter().all(|(_, value)| value.as_object().is_some());
    if are_records && !inner.is_empty() {
        let parts: Vec<String> = inner
            .iter()
            .map(|(name, value)| {
                let row = element(value, said, &[], LONGEST, depth + 1).unwrap_or_default();
                let name: &str = name.as_ref();
                if row.contains(name) { row } else { format!("{name} {row}") }
            })
            .map(|text| text.trim_end().to_owned())
            .collect();
        let has_ids = inner.iter().any(|(name, _)| is_id(name.as_ref()));
        let worth = if has_ids { Worth::Records } else { Worth::State };
        return Some(Cell { worth, list: Some(key.to_owned()), parts });
    }
    let cells = cells(inner, said, depth + 1);
    let worth = cells.iter().map(|cell| cell.worth).min()?;
    let text = choose(&cells, LONGEST * 2)?;
    let worth = worth.max(Worth::State);
    Some(Cell::one(worth, format!("{key}: {text}")))
}

/// A list in an object.
fn list(key: &str, items: &[Value], said: &str, depth: usize) -> Option<Cell> {
    if items.is_empty() {
        return None;
    }
    let is_flat = |value: &Value| !matches!(value, Value::Object(_) | Value::Array(_));
    if items.iter().all(is_flat) {
        let has_ids = items.iter().any(|value| value.as_str().is_some_and(is_id));
        let parts: Vec<String> =
            items.iter().filter_map(|value| element(value, "", &[], LONGEST, depth + 1)).collect();
        let text = format!("{key}: [{}]", parts.join(", "));
        let worth = if has_ids { Worth::Id } else { Worth::Other };
        let is_short = has_ids || text.len() <= LONGEST * 2;
        let text = if is_short { text } else { format!("{key}: {} items", items.len()) };
        return Some(Cell::one(worth, text));
    }
    let parts: Vec<String> = items
        .iter()
        .filter_map(|value| element(value, said, &[], LONGEST, depth + 1))
        .filter(|row| !row.is_empty())
        .collect();
    let names = |(key, value): (&String, &Value)| {
        scalar(key, value, "", 0).is_some_and(|cell| cell.worth == Worth::Id)
    };
    let has_ids = items.iter().filter_map(Value::as_object).any(|of| of.iter().any(names));
    let worth = if has_ids { Worth::Records } else { Worth::Other };
    (!parts.is_empty()).then(|| Cell { worth, list: Some(key.to_owned()), parts })
}

/// A value with its key, but for what says by itself what it is.
fn scalar(key: &str, value: &Value, said: &str, depth: usize) -> Option<Cell> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => flat(text),
        value => value.to_string(),
    };
    // In a list of records a row without its id is of nothing.
    let is_known = text.len() > 2
        && crate::text::has_word(said, &text)
        && !(depth > 0 && value.as_str().is_some_and(is_id));
    if text.is_empty() || is_known {
        return None;
    }
    let is_text = value.as_str().is_some();
    if is_text && ANSWERS.iter().any(|answer| text.eq_ignore_ascii_case(answer)) {
        return Some(Cell::one(Worth::State, format!("{key} {text}")));
    }
    let is_word = is_text && !text.contains(' ') && text.contains(|c: char| c.is_alphabetic());
    let is_key_of_id = ["id", "Id", "ID"].iter().any(|end| key.ends_with(end));
    let cell = if is_text && is_id(&text) || is_key_of_id && !text.contains(' ') {
        let says_itself = is_word || text.len() >= LONG_NUMBER;
        let plain = if says_itself { text } else { format!("{key} {text}") };
        Cell::one(Worth::Id, plain)
    } else if let Some(time) = time_of(&text).filter(|_| is_text) {
        Cell::one(Worth::State, time.to_owned())
    } else if !is_text {
        Cell::one(Worth::State, format!("{key} {text}"))
    } else if is_word && text.len() <= 24 || is_date(&text) {
        Cell::one(Worth::State, text)
    } else if text.len() <= PROSE {
        let worth = if text.contains('@') { Worth::Prose } else { Worth::Other };
        Cell::one(worth, format!("{key}: {text}"))
    } else {
        Cell::one(Worth::Prose, format!("{key}: {}", cut(&text, LONGEST)))
    };
    Some(cell)
}

/// Whether a word names a thing: letters and digits, without a blank, and no date.
fn is_id(word: &str) -> bool {
    (3..=LONGEST).contains(&word.len())
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_alphabetic())
        && !word.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '@' | '['))
        && !is_date(word)
}

/// `2024-05-27`, with or without a time.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let is_number = |part: Option<&str>, len: usize| {
        part.is_some_and(|part| part.len() == len && part.chars().all(|c| c.is_ascii_digit()))
    };
    is_number(parts.next(), 4)
        && is_number(parts.next(), 2)
        && parts.next().is_some_and(|day| day.starts_with(|c: char| c.is_ascii_digit()))
}

/// `13:00` of `13:00:00`.
fn time_of(text: &str) -> Option<&str> {
    let is_time = (4..=8).contains(&text.len())
        && text.contains(':')
        && text.chars().all(|c| c.is_ascii_digit() || c == ':');
    is_time.then(|| text.strip_suffix(":00").filter(|rest| rest.contains(':')).unwrap_or(text))
}

fn cut(text: &str, most: usize) -> String {
    crate::text::shortened(text, most.max(8))
}

/// The records of a text that is a part of a JSON list: those that stand in it whole.
pub(super) fn records_in(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ',';
    while let Some(at) = rest.find('{') {
        let lead = rest.get(..at).unwrap_or_default();
        before = lead.trim_end().chars().next_back().unwrap_or(before);
        let from = rest.get(at..).unwrap_or_default();
        // What stands under a key is a part of a record.
        let end = if matches!(before, ',' | '[') { end_of_object(from) } else { None };
        let value = end.and_then(|end| crate::json::read(from.get(..end)?.as_bytes()).ok());
        let step = match (&value, end) {
            (Some(_), Some(end)) => end,
            _ => 1,
        };
        before = if value.is_some() { '}' } else { '{' };
        found.extend(value);
        rest = from.get(step..).unwrap_or_default();
    }
    found
}

/// Where the object ends that a text begins with.
fn end_of_object(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
