//! What of a delta nothing would read: it may declare a change, so the delta is refused.

use std::collections::BTreeSet;

use super::{
    blocks::{Block, BlockKind},
    delta::{CheckpointDelta, is_label, mark_width},
    document::{Document, Section},
    front_matter,
    misplaced::MisplacedHeader,
    names::normal,
};
use crate::Error;

/// Something that nothing reads: the code of the finding, and why it is refused.
pub(super) type Fault = (&'static str, Error);

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
    let name = normal(text);
    text.trim().is_empty()
        || matches!(name.as_str(), "none" | "nothing" | "n/a" | "no changes" | "no change")
}

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

impl Role {
    /// What a section is for, by its name.
    pub(super) fn of(section: &Section) -> Self {
        match normal(&section.title).as_str() {
            "summary" => Self::Summary,
            "changes" => Self::Changes,
            "added" | "removed" => Self::Entries,
            "modified" | "status transitions" => Self::Rows,
            "merge instructions" => Self::Instructions,
            _ if section.level < 2 => Self::Title,
            _ => Self::Other,
        }
    }

    /// Whether the format names the section.
    pub(super) fn is_named(self) -> bool {
        !matches!(self, Self::Title | Self::Other)
    }
}

/// What of a document's header nothing reads.
pub(super) fn header_faults(document: &Document) -> Vec<Fault> {
    let Some(front) = document.front_matter() else {
        if front_matter::opens(&document.lines) {
            let wrong = "the front matter has no end";
            let error = Error::wrong(1, wrong, "a line `---` after its fields");
            return vec![("front-matter-open", error)];
        }
        let misplaced = MisplacedHeader::of(document);
        let fault = misplaced.map(|misplaced| ("front-matter-place", misplaced.error));
        return fault.into_iter().collect();
    };
    let mut seen = BTreeSet::new();
    let twice = front.fields.iter().filter(|field| !seen.insert(field.key.as_str()));
    let twice = twice.map(|field| {
        let expected = format!("one field `{}`", field.key);
        ("duplicate-field", Error::unmet(field.line + 1, expected, "a second one"))
    });
    let malformed = front.malformed.iter().map(|index| {
        let found = format!("{:?}", document.lines.get(*index));
        ("front-matter-field", Error::unmet(index + 1, "`key: value`", found))
    });
    malformed.chain(twice).collect()
}

impl CheckpointDelta {
    /// What nothing would read below the header, in the order of the lines.
    pub(super) fn unread(&self) -> Vec<Fault> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let sections = self.document().sections();
        let mut roles: Vec<Role> = Vec::with_capacity(sections.len());
        for section in sections {
            let own = Role::of(section);
            let around = section.parent.and_then(|at| roles.get(at).copied());
            // Headings below those of the format part what stands there.
            let role = around
                .filter(|around| {
                    own == Role::Other && matches!(around, Role::Entries | Role::Summary)
                })
                .unwrap_or(own);
            roles.push(role);
            let (line, title) = (section.line(), &section.title);
            if own.is_named() && !seen.insert(normal(title)) {
                let second = "a second one, which nothing reads";
                let error = Error::unmet(line, format_args!("one section {title}"), second);
                found.push(("duplicate-section", error));
            } else if role == Role::Other {
                let expected = meant(&normal(title), section.level);
                let error = Error::unmet(line, expected, format_args!("{title:?}"));
                found.push(("unknown-section", error));
            } else {
                let blocks = self.document().blocks_of(section).iter();
                let unread = blocks.filter_map(|block| self.unread_block(role, block));
                found.extend(unread.map(|error| ("unread", error)));
            }
        }
        found.extend(self.labels_alone().into_iter().map(|error| ("unread", error)));
        found.sort_by_key(|(_, error)| error.place().line);
        found
    }

    /// Why a block has no place in a section.
    fn unread_block(&self, role: Role, block: &Block) -> Option<Error> {
        let document = self.document();
        let text = document.text_of(block);
        let first = text.trim().lines().next().unwrap_or_default();
        let is_text = matches!(block.kind, BlockKind::Paragraph);
        let expected = match (role, &block.kind) {
            // Instructions say themselves what is wrong with them.
            (Role::Summary | Role::Instructions, _) | (_, BlockKind::Rule) => return None,
            (_, BlockKind::Html) if is_comment(&text) => return None,
            (Role::Entries, _) => return hidden_label(block, &text),
            (Role::Rows, BlockKind::TableHead { cells }) => {
                let behind: Vec<String> = cells.iter().skip(1).map(|cell| normal(cell)).collect();
                if behind == ["before", "after"] {
                    return None;
                }
                "the columns Section/Field (or Item), Before and After"
            }
            (Role::Rows, BlockKind::TableRow { cells, .. }) => match cells.as_slice() {
                [item, _, _] if !item.is_empty() => return None,
                _ => "three cells and a name in the first",
            },
            _ if is_text && is_nothing(&text) => return None,
            (Role::Rows, _) => "a row of a table with Before and After",
            (Role::Changes, _) => {
                "`### Added`, `### Modified`, `### Removed` or `### Status Transitions` over what \
                 changes"
            }
            // They are the fields of a header without an end, which is refused as such.
            _ if document.front_matter().is_none() && front_matter::opens(&document.lines) => {
                return None;
            }
            _ => "`## Summary` over what is for people",
        };
        Some(Error::unmet(block.line(), expected, format_args!("{first:?}")))
    }

    /// Labels over nothing, but for sentences that only lead to others.
    fn labels_alone(&self) -> Vec<Error> {
        let mut found = Vec::new();
        for parts in [self.added(), self.removed()] {
            for (part, next) in parts.iter().zip(1..) {
                let is_bold = self.document().line(part.line).trim().starts_with("**");
                let leads = !is_bold && next < parts.len() || part.columns.is_some();
                let label = part.label.as_deref().unwrap_or_default();
                if part.entries.is_empty() && !leads && !label.ends_with(')') {
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
