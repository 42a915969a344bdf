use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use super::{
    changes::{Changes, Group, Row, changes_between},
    delta::CheckpointDelta,
    document::Document,
    exact::{self, PatchEnds, Step},
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

/// What stands in the place of a table where only states change.
pub(super) const STATES_BELOW: &str = "The states below.";

/// What stands in the place of a table where the instructions have the whole checkpoint.
pub(super) const LINES_BELOW: &str = "The lines below.";

/// What a delta cannot know from the two checkpoints.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DiffOptions {
    /// The delta's `created`, in ISO 8601. Without it the time of the second checkpoint, where that
    /// is one.
    pub created: Option<String>,
    /// What the delta holds of both checkpoints. [`DiffForm::Exact`] by default.
    pub form: DiffForm,
}

/// What a computed delta holds of the checkpoints that it lies between.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum DiffForm {
    /// What goes and what comes: the delta can be inverted and composed, and is larger than its
    /// target where most of it changes.
    #[default]
    Exact,
    /// The same where little changes. Where that would take more than three quarters of what the
    /// target takes, the target as a whole: the delta is never larger than its target, a header,
    /// a sentence and two fences, and has no way back. A fence is one sign longer than the longest
    /// run of backticks in the target, or of tildes where that is shorter.
    Bounded,
}

impl DiffOptions {
    /// Options with the time at which the delta is made, in ISO 8601.
    pub fn created(time: impl Into<String>) -> Self {
        Self { created: Some(time.into()), ..Self::default() }
    }

    /// Sets what the delta holds of both checkpoints.
    pub fn with_form(mut self, form: DiffForm) -> Self {
        self.form = form;
        self
    }
}

/// The delta from `a` to `b`: what changed for people to read, and instructions that are exact.
///
/// Applied to `a` it gives `b`, byte for byte. It is small where little changed, and names the lines
/// of entries that moved instead of writing them out. Of equal documents it is empty, but for what
/// says so.
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
    let ends = PatchEnds::between(a.document(), b.document());
    let mut changes = changes_between(a.document(), b.document());
    changes.modified.extend(line_ends(&ends));
    let exact = written(&header, &changes, &patch, &ends, |line| name_at(a.document(), line));
    let text = match options.form {
        DiffForm::Exact => exact,
        DiffForm::Bounded => {
            let summary = summary(&changes, &exact::steps_of(&patch));
            let whole = with_target(&header, &summary, &ends, b.document());
            if exact.len() / 3 <= whole.len() / 4 { exact } else { whole }
        }
    };
    CheckpointDelta::parse(text).map_err(|error| {
        Error::new(error.kind(), format!("no delta can be written: {}", error.message()))
    })
}

/// Refuses a time that nobody could read from a header. O(text).
///
/// # Errors
/// `Markdown` where [`is_timestamp`] says no.
pub fn expect_time(text: &str) -> Result<()> {
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
    ends: &PatchEnds,
    name_at: impl Fn(usize) -> String,
) -> String {
    let steps = exact::steps_of(patch);
    let mut text = begun(header, &summary(changes, &steps));
    let (added, removed) = entries_apart(changes);
    groups(&mut text, "Added", (&changes.added, &added), "new section");
    modified(&mut text, changes, &steps);
    groups(&mut text, "Removed", (&changes.removed, &removed), "section removed");
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

/// That lines end otherwise than before.
pub(super) fn line_ends(PatchEnds { before, after }: &PatchEnds) -> Option<Row> {
    let (before, after) = (before.line_ends.clone()?, after.line_ends.clone()?);
    (before != after).then(|| Row { path: vec!["Line ends".to_owned()], before, after })
}

/// The text of a delta up to its changes.
fn begun(Header { from, to, created }: &Header, summary: &str) -> String {
    format!(
        "---\ndelta: {}\ncreated: {}\nfrom: {}\nto: {}\n---\n\n## Summary\n\n{summary}\n\n## Changes\n",
        quoted(&format!("{from}-to-{to}")),
        quoted(created),
        quoted(from),
        quoted(to),
    )
}

/// The text of a delta that has the checkpoint that it leads to as a whole.
fn with_target(header: &Header, summary: &str, ends: &PatchEnds, target: &Document) -> String {
    let mut text = begun(header, summary);
    let ends = ends.write();
    let ends = ends.trim_end_matches('.');
    let _ = write!(text, "\n### Modified\n\n{LINES_BELOW}\n\n## Merge Instructions\n\n{ends}:\n\n");
    let fence = |sign: char| {
        let longest = target.lines.iter().map(|line| exact::longest_run(line, sign)).max();
        sign.to_string().repeat((longest.unwrap_or(0) + 1).max(3))
    };
    let (ticks, tildes) = (fence('`'), fence('~'));
    let fence = if tildes.len() < ticks.len() { tildes } else { ticks };
    let _ = writeln!(text, "{fence}markdown\n{}{fence}", target.canonical());
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
        text.push_str(STATES_BELOW);
        text.push('\n');
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
        let (before, after) = shown_apart(before, after);
        text.push_str(&table::row([path.join(" / "), before, after]));
        text.push('\n');
    }
}

/// The entries of one side as they are shown, by their groups.
type Entries = Vec<Vec<String>>;

/// The entries of Added and those of Removed: where two would read the same, they are cut where
/// they part.
fn entries_apart(changes: &Changes) -> (Entries, Entries) {
    let names = |groups: &[Group]| -> Vec<Vec<(String, String)>> {
        groups.iter().map(|group| group.entries().collect()).collect()
    };
    let (added, removed) = (names(&changes.added), names(&changes.removed));
    let by_look = |entries: &[Vec<(String, String)>]| {
        let mut found: HashMap<String, Vec<(String, String)>> = HashMap::new();
        for entry in entries.iter().flatten() {
            found.entry(without_hidden(&shown(&entry.0))).or_default().push(entry.clone());
        }
        found
    };
    let apart = |these: &[Vec<(String, String)>], others: &[Vec<(String, String)>]| -> Entries {
        let others = by_look(others);
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut text = |(name, whole): &(String, String)| {
            let look = without_hidden(&shown(name));
            let Some(like) = others.get(&look) else { return shown(name) };
            let count = seen.entry(look).or_default();
            let other = like.get(*count).or(like.last());
            *count += 1;
            match other {
                Some((other, _)) if other != name => shown_apart(name, other).0,
                Some((_, other)) if other != whole => shown_apart(whole, other).0,
                _ => shown(name),
            }
        };
        let groups = these.iter().map(|group| group.iter().map(&mut text).collect());
        groups.collect()
    };
    (apart(&added, &removed), apart(&removed, &added))
}

fn groups(
    text: &mut String,
    title: &str,
    (groups, entries): (&[Group], &[Vec<String>]),
    whole: &str,
) {
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n### {title}");
    for (group, entries) in groups.iter().zip(entries) {
        let mark = if group.is_whole { format!(" ({whole})") } else { String::new() };
        let title = group.title.replace('*', "");
        let title = if title.trim().is_empty() { "Entries" } else { title.trim() };
        let _ = writeln!(text, "\n**{}{mark}:**", shown(title));
        // Without an empty line a mark alone would make a heading of the label.
        text.push_str(if entries.is_empty() { "" } else { "\n" });
        for entry in entries {
            let _ = writeln!(text, "- {}", if entry.is_empty() { "(empty)" } else { entry });
        }
    }
}

/// How many characters stand before the first that differs, where a text is cut there.
const BEFORE: usize = 8;

/// Two texts that differ, each on one line and cut so that they do not read the same: at their
/// beginning, or where they part.
fn shown_apart(before: &str, after: &str) -> (String, String) {
    let (mut old, mut new) = (flat(before), flat(after));
    if before != after && without_hidden(&old) == without_hidden(&new) {
        (old, new) = (with_blanks(before), with_blanks(after));
    }
    let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    let longest = old.chars().count().max(new.chars().count());
    if longest <= SHOWN || same + BEFORE < SHOWN / 2 {
        return (cut(&old), cut(&new));
    }
    let from = |text: &str| {
        let rest: String = text.chars().skip(same.saturating_sub(BEFORE)).collect();
        cut(&format!("…{}", rest.trim_start()))
    };
    (from(&old), from(&new))
}

/// A text whose white space and invisible characters can be seen.
fn with_blanks(text: &str) -> String {
    let seen = |c: char| match c {
        ' ' => "·".to_owned(),
        '\n' => "↵".to_owned(),
        c if c.is_whitespace() => c.escape_unicode().to_string(),
        c if is_hidden(c) => format!("<U+{:04X}>", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(seen).collect()
}

/// A text as it looks: without the characters that nobody sees.
fn without_hidden(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// Whether a character that is no white space shows nothing by itself.
fn is_hidden(c: char) -> bool {
    c.is_control() && !c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text on one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a text on one line, with `…` where something is missing.
fn shown(text: &str) -> String {
    cut(&flat(text))
}

fn cut(flat: &str) -> String {
    if flat.chars().count() <= SHOWN {
        return flat.to_owned();
    }
    let cut: String = flat.chars().take(SHOWN - 1).collect();
    let is_late = |end: &usize| cut.get(..*end).is_some_and(|cut| cut.chars().count() > SHOWN / 2);
    let end = cut.rfind(' ').filter(is_late).unwrap_or(cut.len());
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
