//! What a delta declares: every change with its line, and what nothing would read.

use std::{cell::RefCell, collections::BTreeSet};

use super::{
    blocks::{Block, BlockKind},
    delta::{Change, CheckpointDelta, Part, is_label, item_text, mark_width},
    document::{Document, Section},
    front_matter,
    misplaced::MisplacedHeader,
    names::normal,
};
use crate::Error;

/// The changes that a delta declares in its tables and lists.
pub(super) struct Declarations {
    pub(super) removed: Vec<Part>,
    pub(super) modified: Vec<Change>,
    pub(super) added: Vec<Part>,
    pub(super) transitions: Vec<Change>,
    /// Those that were carried out.
    taken: RefCell<BTreeSet<Claim>>,
    /// The entries of Added that instructions have added, each with its section.
    placed: RefCell<BTreeSet<(Claim, String)>>,
}

/// A declared change, by its index; an entry also by that of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    Modified(usize),
    Added(usize, usize),
    Transition(usize),
}

impl Declarations {
    pub(super) fn of(delta: &CheckpointDelta) -> Self {
        let says_something = |parts: Vec<Part>| {
            let parts = parts.into_iter().filter(|part| !is_nothing_declared(part));
            parts.collect::<Vec<_>>()
        };
        Self {
            removed: says_something(delta.removed()),
            modified: delta.modified().into_iter().filter(|row| !is_nothing_changed(row)).collect(),
            added: says_something(delta.added()),
            transitions: delta
                .transitions()
                .into_iter()
                .filter(|row| !is_nothing_changed(row))
                .collect(),
            taken: RefCell::default(),
            placed: RefCell::default(),
        }
    }

    /// How many changes there are.
    pub(super) fn count(&self) -> usize {
        let entries = self.removed.iter().chain(&self.added).map(|part| part.entries.len());
        entries.sum::<usize>() + self.modified.len() + self.transitions.len()
    }

    /// Notes that a change was carried out.
    pub(super) fn take(&self, claim: Claim) {
        self.taken.borrow_mut().insert(claim);
    }

    /// Notes that an instruction adds an entry to a section; `false` where one has done so before.
    pub(super) fn add_to(&self, claim: Claim, place: &str) -> bool {
        self.placed.borrow_mut().insert((claim, normal(place)))
    }

    /// The line of a change, from one.
    pub(super) fn line_of(&self, claim: Claim) -> usize {
        let line = match claim {
            Claim::Modified(index) => self.modified.get(index).map(|change| change.line),
            Claim::Transition(index) => self.transitions.get(index).map(|change| change.line),
            Claim::Added(index, at) => {
                self.added.get(index).and_then(|part| part.lines.get(at).copied())
            }
        };
        line.unwrap_or(1)
    }

    pub(super) fn is_taken(&self, claim: Claim) -> bool {
        self.taken.borrow().contains(&claim)
    }

    /// Notes the entries of Added that a text says, which an instruction quotes or has below it,
    /// but for those whose label names another section than the one that it goes to.
    ///
    /// Gives them, and the line and the text of an entry of several lines of which the text says
    /// only the first.
    pub(super) fn take_said(
        &self,
        text: &str,
        document: &Document,
        place: &str,
    ) -> (Vec<Claim>, Option<(usize, String)>) {
        let (mut claims, mut begun) = (Vec::new(), None);
        let Ok(read) = Document::parse(text) else { return (claims, begun) };
        for (index, part) in self.added.iter().enumerate() {
            let label = part.label.as_deref().unwrap_or_default();
            if normal(label) != normal(place) && document.named(label).next().is_some() {
                continue;
            }
            for (at, entry) in part.entries.iter().enumerate() {
                let whole = normal(text) == normal(&entry.join(" "));
                if whole || read.blocks().iter().any(|block| says(&read, block, entry)) {
                    self.take(Claim::Added(index, at));
                    claims.push(Claim::Added(index, at));
                    continue;
                }
                let [only] = entry.as_slice() else { continue };
                let Some((first, _)) = only.split_once('\n') else { continue };
                let alone = [first.to_owned()];
                let is_begun = normal(text) == normal(first)
                    || read.blocks().iter().any(|block| says(&read, block, &alone));
                let mut others = self.added.iter().flat_map(|part| &part.entries);
                let is_first = |other: &Vec<String>| normal(&other.join(" ")) == normal(first);
                if is_begun && begun.is_none() && !others.any(is_first) {
                    let line = part.lines.get(at).copied().unwrap_or(part.line);
                    begun = Some((line, first.to_owned()));
                }
            }
        }
        (claims, begun)
    }
}

/// Whether a block says an entry: all cells of a row, or the text.
pub(super) fn says(document: &Document, block: &Block, entry: &[String]) -> bool {
    match &block.kind {
        BlockKind::TableRow { cells, .. } => {
            let has = |wanted: &String| cells.iter().any(|cell| normal(cell) == normal(wanted));
            entry.iter().all(has)
        }
        // A row without the head of its table is a paragraph.
        BlockKind::Paragraph if document.text_of(block).trim_start().starts_with('|') => {
            document.text_of(block).lines().any(|line| {
                let cells = super::table::cells(line);
                entry.iter().all(|wanted| cells.iter().any(|cell| normal(cell) == normal(wanted)))
            })
        }
        BlockKind::ListItem { .. } => {
            let text = item_text(&document.text_of(block));
            matches!(entry, [only] if normal(only) == normal(&text))
        }
        _ => matches!(entry, [only] if normal(only) == normal(&document.text_of(block))),
    }
}

/// Whether a text is HTML that nobody sees.
pub(super) fn is_comment(text: &str) -> bool {
    let mut rest = text.trim();
    while let Some((_, after)) = rest.strip_prefix("<!--").and_then(|rest| rest.split_once("-->")) {
        rest = after.trim();
        if rest.is_empty() {
            return true;
        }
    }
    false
}

/// Whether a text says that there is nothing.
pub(super) fn is_nothing(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    let is_empty = text.trim().is_empty();
    is_empty
        || matches!(normal(text).as_str(), "none" | "nothing" | "n/a" | "no changes" | "no change")
}

fn is_nothing_declared(part: &Part) -> bool {
    // What comes or goes with its section is told by the label.
    part.label.as_deref().is_none_or(|label| !label.ends_with(')'))
        && matches!(part.entries.as_slice(), [entry] if is_nothing(&entry.join(" ")))
}

/// Whether a row says that there is nothing, in each of its cells.
fn is_nothing_changed(row: &Change) -> bool {
    let says_nothing = |text: &String| is_nothing(text) || matches!(text.trim(), "-" | "–" | "—");
    [&row.item, &row.before, &row.after].into_iter().all(says_nothing)
}

/// What `diff` writes in the place of a table.
const NOTES: [&str; 2] = ["The states below.", super::diff::LINES_BELOW];

/// What a section of a delta is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Summary,
    Changes,
    /// Added and Removed: entries under labels.
    Entries,
    /// Modified and Status Transitions: rows of three cells.
    Rows,
    Instructions,
    /// A title, or what stands before the first heading.
    Title,
    /// What the format does not name.
    Other,
}

/// What a section is for, by its name.
pub(super) fn role_of(section: &Section) -> Role {
    match normal(&section.title).as_str() {
        "summary" => Role::Summary,
        "changes" => Role::Changes,
        "added" | "removed" => Role::Entries,
        "modified" | "status transitions" => Role::Rows,
        "merge instructions" => Role::Instructions,
        _ if section.level < 2 => Role::Title,
        _ => Role::Other,
    }
}

impl CheckpointDelta {
    /// What nothing would read: each is a reason to refuse the delta, since it may declare a change.
    /// In the order of the lines.
    pub(super) fn unread(&self) -> Vec<Error> {
        if let Some(misplaced) = MisplacedHeader::of(self.document()) {
            return vec![misplaced.refusal()];
        }
        let mut found = self.unread_header();
        let mut seen = BTreeSet::new();
        let sections = self.document().sections();
        let mut roles: Vec<Role> = Vec::with_capacity(sections.len());
        for section in sections {
            let around = section.parent.and_then(|at| roles.get(at).copied());
            let role = match (role_of(section), around) {
                // Headings below those of the format part what stands there.
                (Role::Other, Some(Role::Entries | Role::Summary)) => around.unwrap_or(Role::Other),
                (role, _) => role,
            };
            roles.push(role);
            let name = normal(&section.title);
            let is_named = !matches!(role_of(section), Role::Title | Role::Other);
            if is_named && !seen.insert(name) {
                let title = &section.title;
                let expected = format!("one section {title}");
                let second = "a second one, which nothing reads";
                found.push(Error::unmet(section.line(), expected, second));
                continue;
            }
            self.unread_in(section, role, &mut found);
            if role == Role::Other && self.document().blocks_of(section).is_empty() {
                let expected = meant(&normal(&section.title), section.level);
                let title = &section.title;
                found.push(Error::unmet(section.line(), expected, format_args!("{title:?}")));
            }
        }
        found.extend(self.labels_alone());
        found.sort_by_key(|error| error.place().line);
        found
    }

    /// What of the header nothing reads.
    pub(super) fn unread_header(&self) -> Vec<Error> {
        let Some(front) = self.document().front_matter() else {
            let is_open = front_matter::opens(&self.document().lines);
            let expected = "a line `---` after the fields of the front matter";
            return is_open.then(|| Error::missing(1, expected)).into_iter().collect();
        };
        let mut seen = BTreeSet::new();
        let twice = front.fields().iter().filter(|field| !seen.insert(field.key.as_str()));
        let twice = twice.map(|field| {
            let expected = format!("one field `{}`", field.key);
            Error::unmet(field.line + 1, expected, "a second one")
        });
        let malformed = front.malformed.iter().map(|index| {
            let line = self.document().lines.get(*index);
            Error::unmet(index + 1, "`key: value`", format_args!("{line:?}"))
        });
        malformed.chain(twice).collect()
    }

    fn unread_in(&self, section: &Section, role: Role, found: &mut Vec<Error>) {
        let document = self.document();
        let rows = ["Before", "After"];
        let is_open = document.front_matter().is_none() && front_matter::opens(&document.lines);
        for block in document.blocks_of(section) {
            let text = document.text_of(block);
            let is_text = matches!(block.kind, BlockKind::Paragraph);
            let first = text.trim().lines().next().unwrap_or_default();
            let expected = match (role, &block.kind) {
                // Instructions say themselves what is wrong with them.
                (_, BlockKind::Html) if is_comment(&text) => continue,
                (Role::Entries, _) => {
                    found.extend(hidden_label(block, &text));
                    continue;
                }
                (_, BlockKind::Rule) | (Role::Summary | Role::Instructions, _) => continue,
                (Role::Rows, BlockKind::TableHead { cells }) => {
                    let behind: Vec<&str> = cells.iter().skip(1).map(String::as_str).collect();
                    let is_right = behind.len() == 2
                        && behind.iter().zip(rows).all(|(a, b)| normal(a) == normal(b));
                    if is_right {
                        continue;
                    }
                    "the columns Section/Field (or Item), Before and After"
                }
                (Role::Rows, BlockKind::TableRow { cells, .. }) => match cells.as_slice() {
                    [item, _, _] if !item.is_empty() => continue,
                    _ => "three cells and a name in the first",
                },
                _ if is_text && (is_nothing(&text) || NOTES.contains(&text.trim())) => continue,
                (Role::Rows, BlockKind::Paragraph) if first.starts_with('|') => {
                    "a table: titles, a line `|---|` for each, and rows"
                }
                (Role::Rows, _) => "a row of a table with Before and After",
                (Role::Changes, _) => {
                    "`### Added`, `### Modified`, `### Removed` or `### Status Transitions` over \
                     what changes"
                }
                // They are the fields of a header without an end, which is refused as such.
                (Role::Title, BlockKind::Paragraph) if is_open => continue,
                (Role::Title, BlockKind::Paragraph) => "`## Summary` over what is for people",
                _ => {
                    let expected = meant(&normal(&section.title), section.level);
                    let line = if role == Role::Other { section.line() } else { block.line() };
                    let title = &section.title;
                    found.push(Error::unmet(line, expected, format_args!("{title:?}")));
                    if role == Role::Other {
                        break;
                    }
                    continue;
                }
            };
            found.push(Error::unmet(block.line(), expected, format_args!("{first:?}")));
        }
    }

    /// Labels over nothing, but for sentences that only lead to others.
    fn labels_alone(&self) -> Vec<Error> {
        let parts = [self.added(), self.removed()];
        let mut found = Vec::new();
        for parts in &parts {
            for (index, part) in
                parts.iter().enumerate().filter(|(_, part)| part.entries.is_empty())
            {
                let text = self.document().line(part.line).trim();
                let leads = !text.starts_with("**") && index + 1 < parts.len();
                let label = part.label.as_deref().unwrap_or_default();
                if !leads && part.columns.is_none() && !label.ends_with(')') {
                    let expected = format!("entries below {label:?}");
                    found.push(Error::unmet(part.line, expected, "none"));
                }
            }
        }
        found
    }
}

/// Refuses a label that Markdown reads as more of the text above it. What follows the label would
/// go to the section above.
fn hidden_label(block: &Block, text: &str) -> Option<Error> {
    let (skipped, indent) = match block.kind {
        BlockKind::Paragraph => (1, usize::MAX),
        BlockKind::ListItem { .. } => {
            let first = text.lines().next().unwrap_or_default();
            let mark = first.trim_start();
            (1, first.len() - mark.len() + mark_width(mark))
        }
        BlockKind::TableRow { .. } => (0, usize::MAX),
        _ => return None,
    };
    let mut lines = text.lines().enumerate().skip(skipped);
    lines.find_map(|(at, line)| {
        // What is set in as far as its item belongs to the item.
        let is_outside = line.len() - line.trim_start().len() < indent;
        (is_outside && is_label(line)).then(|| {
            let found = format!("{:?} right below other text", line.trim());
            Error::unmet(block.line() + at, "an empty line before the label", found)
        })
    })
}

/// Where the content of a section with another name belongs.
pub(super) fn meant(name: &str, level: u8) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if level == 1 => "no title: the front matter names the delta",
        () if has(&["status", "state", "transition"]) => {
            "`### Status Transitions` inside of `## Changes`, with Item, Before and After"
        }
        () if has(&["remov", "delet", "dropped"]) => "`### Removed` inside of `## Changes`",
        () if has(&["new", "add", "created"]) => "`### Added` inside of `## Changes`",
        () if has(&["update", "change", "modif", "version"]) => {
            "`### Modified` inside of `## Changes`, with Section/Field, Before and After"
        }
        () => "Summary, Changes (Added, Modified, Removed, Status Transitions), Merge Instructions",
    }
}
