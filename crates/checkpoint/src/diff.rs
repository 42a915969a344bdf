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

/// What a delta cannot know from the two checkpoints.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// The delta's `created`, in ISO 8601. Without it the time of the second checkpoint, where that
    /// is one.
    pub created: Option<String>,
    /// What the delta holds of both checkpoints. [`DiffForm::Exact`] by default.
    pub form: DiffForm,
}

/// What a computed delta holds of the checkpoints that it lies between.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    // A backtick would be taken for the beginning of a line that is quoted.
    let title = document.title_at(line).replace('`', "");
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
    let (added, removed) = (&changes.added, &changes.removed);
    groups(&mut text, "Added", added, removed, "new section");
    modified(&mut text, changes, &steps);
    groups(&mut text, "Removed", removed, added, "section removed");
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
    let _ =
        write!(text, "\n### Modified\n\nThe lines below.\n\n## Merge Instructions\n\n{ends}:\n\n");
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
    let moves = steps.iter().filter(|step| step.is_move());
    let order = |step: &Step| {
        table::row(["Order", &exact::span(&step.taken), &format!("after line {}", step.place)])
    };
    let moves: Vec<String> = moves.map(order).collect();
    let is_empty = changes.modified.is_empty() && moves.is_empty();
    if is_empty && has_others {
        return;
    }
    text.push_str("\n### Modified\n\n");
    let note = match steps {
        _ if !is_empty => None,
        _ if !changes.transitions.is_empty() => Some("The states below."),
        [] => Some("Nothing."),
        _ => None,
    };
    if let Some(note) = note {
        let _ = writeln!(text, "{note}");
    } else if is_empty {
        rows(text, "Section/Field", &[layout(steps)]);
    } else {
        rows(text, "Section/Field", &changes.modified);
        moves.iter().for_each(|row| text.extend([row, "\n"]));
    }
}

/// How many lines change where no entry does: headings, empty lines, the ids.
fn layout(steps: &[Step]) -> Row {
    let before: usize = steps.iter().map(|step| step.old.len()).sum();
    let after: usize = steps.iter().map(|step| step.new.len()).sum();
    let lines = |count: usize| format!("{count} {}", if count == 1 { "line" } else { "lines" });
    Row { path: vec!["Layout".to_owned()], before: lines(before), after: lines(after) }
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

/// The entries of one side as they are shown, by their groups: where one of the other side would
/// read the same, both are cut where they part.
fn entries_apart(these: &[Group], others: &[Group]) -> Vec<Vec<String>> {
    let look = |name: &str| without_hidden(&shown(name));
    let mut like: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for entry in others.iter().flat_map(|group| &group.entries) {
        like.entry(look(&entry.0)).or_default().push(entry.clone());
    }
    like.values_mut().for_each(|alike| alike.reverse());
    let mut text = |(name, whole): &(String, String)| {
        let Some(alike) = like.get_mut(&look(name)) else { return shown(name) };
        let other = if alike.len() > 1 { alike.pop() } else { alike.first().cloned() };
        match other {
            Some((other, _)) if other != *name => shown_apart(name, &other).0,
            Some((_, other)) if other != *whole => shown_apart(whole, &other).0,
            _ => shown(name),
        }
    };
    these.iter().map(|group| group.entries.iter().map(&mut text).collect()).collect()
}

fn groups(text: &mut String, title: &str, groups: &[Group], others: &[Group], whole: &str) {
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n### {title}");
    for (group, entries) in groups.iter().zip(entries_apart(groups, others)) {
        let mark = if group.is_whole { format!(" ({whole})") } else { String::new() };
        let title = group.title.replace('*', "");
        let title = if title.trim().is_empty() { "Entries" } else { title.trim() };
        let _ = writeln!(text, "\n**{}{mark}:**", shown(title));
        // Without an empty line a mark alone would make a heading of the label.
        text.push_str(if entries.is_empty() { "" } else { "\n" });
        for entry in entries {
            let _ = writeln!(text, "- {}", if entry.is_empty() { "(empty)" } else { &entry });
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

/// Some names, each once, and how many more there are.
fn named<'t>(titles: impl Iterator<Item = &'t str>) -> String {
    let name = |title: &str| shown(if title.trim().is_empty() { "Entries" } else { title });
    let mut seen = HashSet::new();
    let mut names: Vec<String> =
        titles.map(name).filter(|name| seen.insert(name.clone())).collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    names.extend((more > 0).then(|| format!("{more} more")));
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// One sentence, which begins with a verb: Markdown could take a name for the beginning of a block.
fn summary(changes: &Changes, steps: &[Step]) -> String {
    let titles = |groups: &[Group]| named(groups.iter().map(|group| group.title.as_str()));
    let firsts = changes.modified.iter().filter_map(|row| row.path.first().map(String::as_str));
    let moved = match changes.moved.as_slice() {
        [] if steps.iter().any(Step::is_move) => "entries".to_owned(),
        moved => named(moved.iter().map(String::as_str)),
    };
    let states = match changes.transitions.as_slice() {
        [] => String::new(),
        [Row { path, after, .. }] => {
            format!("marks {} as {}", shown(&path.join(" ")), shown(after))
        }
        states => format!("changes {} states", states.len()),
    };
    let parts = [
        ("adds to ", titles(&changes.added)),
        ("changes ", named(firsts)),
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
    format!("{}.", first.chain(chars).collect::<String>().trim_end_matches('.'))
}
