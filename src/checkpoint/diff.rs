use std::{collections::HashSet, fmt::Write as _};

use super::{
    changes::{Changes, Group, Row, changes_between},
    delta::CheckpointDelta,
    document::Document,
    exact::{self, End, Ends, Step},
    front_matter::quoted,
    full_state::Checkpoint,
    matching::patch_between,
    patch::Patch,
    table,
    timestamp::is_timestamp,
};
use crate::{Error, ErrorKind, Result};

/// How many characters of a text the tables of a delta show; the instructions have all of it.
const SHOWN: usize = 40;

/// How many sections the summary names for each kind of change.
const NAMED: usize = 3;

/// What a delta cannot know from the two checkpoints.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// The delta's `created`, in ISO 8601. Without it the time of the second checkpoint, where that
    /// is one.
    pub created: Option<String>,
}

impl DiffOptions {
    /// Options with the time at which the delta is made, in ISO 8601.
    pub fn created(time: impl Into<String>) -> Self {
        Self { created: Some(time.into()) }
    }
}

/// The delta from `a` to `b`: what changed for people to read, and instructions that are exact.
///
/// Applied to `a` it gives `b`: byte for byte where both are in canonical form, else equal as
/// documents. It is small where little changed, and names the lines of entries that moved instead
/// of writing them out. Of equal documents it is empty, but for what says so.
///
/// Runs in O(n log n) of the lines, but for what lies between lines that both have, of which at most
/// 4 million pairs are compared.
///
/// # Errors
/// [`ErrorKind::Markdown`] where a checkpoint has no id, where nothing says when the delta was made,
/// and where the options say it in another form than ISO 8601. [`ErrorKind::Limit`] where the delta
/// would be larger than a document may be, as between documents of many megabytes that have little
/// in common.
pub fn diff(a: &Checkpoint, b: &Checkpoint, options: &DiffOptions) -> Result<CheckpointDelta> {
    let id = |checkpoint: &Checkpoint, which: &str| {
        let message = || format!("the {which} checkpoint has no id: expected `checkpoint: ID`");
        let id = checkpoint.id().map(header_value).filter(|id| !id.is_empty());
        id.ok_or_else(|| Error::new(ErrorKind::Markdown, message()))
    };
    let of_b = || b.created().filter(|time| is_timestamp(time));
    let created = options.created.as_deref().or_else(of_b).ok_or_else(|| {
        Error::new(ErrorKind::Markdown, "expected the time at which the delta is made, found none")
    })?;
    expect_time(created)?;
    let header =
        Header { from: id(a, "first")?, to: id(b, "second")?, created: header_value(created) };
    let patch = patch_between(&a.document().lines, &b.document().lines);
    let changes = changes_between(a.document(), b.document());
    let ends = Ends { before: End::of(a.document()), after: End::of(b.document()) };
    let text = written(&header, &changes, &patch, &ends, |line| name_at(a.document(), line));
    CheckpointDelta::parse(text).map_err(|error| {
        Error::new(error.kind(), format!("no delta can be written: {}", error.message()))
    })
}

/// Refuses a time that nobody could read from a header.
pub(super) fn expect_time(text: &str) -> Result<()> {
    if is_timestamp(text) {
        return Ok(());
    }
    let message = format!("expected a time such as 2025-12-14T16:00:00Z, found {text:?}");
    Err(Error::new(ErrorKind::Markdown, message))
}

/// The header of a delta.
pub(super) struct Header {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) created: String,
}

/// A value that is read back as it is written.
pub(super) fn header_value(value: &str) -> String {
    let plain: String = value.chars().filter(|c| *c != '"' && *c != '\'').collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The section of a line, in brackets.
fn name_at(document: &Document, line: usize) -> String {
    let title = match document.section_at(line) {
        Some(index) => document.sections().get(index).map_or("", |section| section.title.as_str()),
        None => "front matter",
    };
    // A backtick would be taken for the beginning of a line that is quoted.
    let title = title.replace('`', "");
    let name = format!(" ({})", shown(&title));
    // So would what names a place for the place of a move.
    if title.trim().is_empty() || exact::place_in(&name).is_some() { String::new() } else { name }
}

/// The text of a delta.
pub(super) fn written(
    header: &Header,
    changes: &Changes,
    patch: &Patch,
    ends: &Ends,
    name_at: impl Fn(usize) -> String,
) -> String {
    let Header { from, to, created } = header;
    let steps = exact::steps_of(patch);
    let mut text = format!(
        "---\ndelta: {}\ncreated: {}\nfrom: {}\nto: {}\n---\n\n## Summary\n\n{}\n\n## Changes\n",
        quoted(&format!("{from}-to-{to}")),
        quoted(created),
        quoted(from),
        quoted(to),
        summary(changes, &steps)
    );
    groups(&mut text, "Added", &changes.added, "new section");
    modified(&mut text, changes, &steps);
    groups(&mut text, "Removed", &changes.removed, "section removed");
    if !changes.transitions.is_empty() {
        text.push_str("\n### Status Transitions\n\n");
        rows(&mut text, "Item", &changes.transitions);
    }
    text.push_str("\n## Merge Instructions\n\n");
    text.push_str(&ends.write());
    text.push('\n');
    if !steps.is_empty() {
        text.push('\n');
        text.push_str(&exact::write(&steps, name_at));
    }
    text
}

fn modified(text: &mut String, changes: &Changes, steps: &[Step]) {
    let has_others = !changes.added.is_empty() || !changes.removed.is_empty();
    let moves = steps.iter().filter(|step| matches!(step, Step::Move { .. })).count();
    if changes.modified.is_empty() && moves == 0 && has_others {
        return;
    }
    text.push_str("\n### Modified\n\n");
    if !changes.modified.is_empty() || moves > 0 {
        rows(text, "Section/Field", &changes.modified);
        for step in steps {
            if let Step::Move { from, to } = step {
                let before = match from.len() {
                    1 => format!("line {}", from.end),
                    _ => format!("lines {}-{}", from.start + 1, from.end),
                };
                text.push_str(&table::row(["Order", &before, &format!("after line {to}")]));
                text.push('\n');
            }
        }
    } else if !changes.transitions.is_empty() {
        text.push_str("The states below.\n");
    } else if steps.is_empty() {
        text.push_str("Nothing.\n");
    } else {
        let before = vec![Row { path: vec!["Layout".to_owned()], ..layout(steps) }];
        rows(text, "Section/Field", &before);
    }
}

/// How many lines change where no entry does: headings, empty lines, the ids.
fn layout(steps: &[Step]) -> Row {
    let (mut before, mut after) = (0, 0);
    for step in steps {
        match step {
            Step::Replace { old, new, .. } => {
                before += old.len();
                after += new.len();
            }
            Step::Remove { old, .. } => before += old.len(),
            Step::Add { new, .. } => after += new.len(),
            Step::Move { .. } => {}
        }
    }
    let lines = |count: usize| format!("{count} {}", if count == 1 { "line" } else { "lines" });
    Row { path: Vec::new(), before: lines(before), after: lines(after) }
}

fn rows(text: &mut String, title: &str, rows: &[Row]) {
    for line in table::head(&[title, "Before", "After"]) {
        text.push_str(&line);
        text.push('\n');
    }
    for Row { path, before, after } in rows {
        let path: Vec<String> = path.iter().map(|part| shown(part)).collect();
        text.push_str(&table::row([path.join(" / "), shown(before), shown(after)]));
        text.push('\n');
    }
}

fn groups(text: &mut String, title: &str, groups: &[Group], whole: &str) {
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n### {title}");
    for group in groups {
        let mark = if group.is_whole { format!(" ({whole})") } else { String::new() };
        let title = group.title.replace('*', "");
        let title = if title.trim().is_empty() { "Entries" } else { title.trim() };
        let _ = writeln!(text, "\n**{}{mark}:**", shown(title));
        let rows = group.rows.iter().map(|(at, cells)| {
            let name = cells.get(*at).filter(|name| !name.is_empty()).or(cells.first());
            name.map_or("", String::as_str)
        });
        let entries: Vec<&str> = rows.chain(group.items.iter().map(String::as_str)).collect();
        // Without an empty line a mark alone would make a heading of the label.
        text.push_str(if entries.is_empty() { "" } else { "\n" });
        for entry in entries {
            let entry = shown(entry);
            let _ = writeln!(text, "- {}", if entry.is_empty() { "(empty)" } else { &entry });
        }
    }
}

/// The beginning of a text on one line, with `…` where something is missing.
fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let flat = words.join(" ");
    if flat.chars().count() <= SHOWN {
        return flat;
    }
    let cut: String = flat.chars().take(SHOWN - 1).collect();
    let end = cut.rfind(' ').filter(|end| *end > cut.len() / 2).unwrap_or(cut.len());
    format!("{}…", cut.get(..end).unwrap_or_default().trim_end())
}

/// One sentence, which begins with a verb: Markdown could take a name for the beginning of a block.
fn summary(changes: &Changes, steps: &[Step]) -> String {
    let named = |titles: Vec<&str>| {
        let name = |title: &str| shown(if title.trim().is_empty() { "Entries" } else { title });
        let mut seen = HashSet::new();
        let names = titles.into_iter().map(name);
        let mut names: Vec<String> = names.filter(|name| seen.insert(name.clone())).collect();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        match (names.split_last(), more) {
            (None, _) => String::new(),
            (Some(_), 1..) => format!("{} and {more} more", names.join(", ")),
            (Some((last, [])), _) => last.clone(),
            (Some((last, rest)), _) => format!("{} and {last}", rest.join(", ")),
        }
    };
    let titles =
        |groups: &[Group]| named(groups.iter().map(|group| group.title.as_str()).collect());
    let firsts = changes.modified.iter().filter_map(|row| row.path.first().map(String::as_str));
    let moved = match changes.moved.as_slice() {
        [] if steps.iter().any(|step| matches!(step, Step::Move { .. })) => "entries".to_owned(),
        moved => named(moved.iter().map(String::as_str).collect()),
    };
    let states = changes.transitions.len();
    let states = match changes.transitions.as_slice() {
        [] => String::new(),
        [Row { path, after, .. }] => {
            format!("marks {} as {}", shown(&path.join(" ")), shown(after))
        }
        _ => format!("changes {states} states"),
    };
    let parts = [
        ("adds to ", titles(&changes.added)),
        ("changes ", named(firsts.collect())),
        ("removes from ", titles(&changes.removed)),
        ("moves ", moved),
        ("", states),
    ];
    let parts = parts.into_iter().filter(|(_, what)| !what.is_empty());
    let parts: Vec<String> = parts.map(|(verb, what)| format!("{verb}{what}")).collect();
    let sentence = match parts.as_slice() {
        [] if steps.is_empty() => "nothing changes".to_owned(),
        [] => "changes the layout".to_owned(),
        parts => parts.join("; "),
    };
    let mut chars = sentence.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    let sentence: String = first.chain(chars).collect();
    format!("{}.", sentence.trim_end_matches('.'))
}
