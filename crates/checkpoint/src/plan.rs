//! What a delta by names is to do: the changes that it declares, and where its instructions direct
//! them.

use std::collections::BTreeSet;

use super::{
    delta::{Change, CheckpointDelta, Part},
    document::{Document, Section},
    grammar::{Order, Words},
    instructions::Instructions,
    lookup::{key_of, section},
    names::{MergeRule, SectionKind, normal},
    states::state_at,
    unread::is_nothing,
};
use crate::{Error, Result};

/// The changes of a delta, each with its line.
pub(super) struct Plan {
    pub(super) removed: Vec<Part>,
    pub(super) modified: Vec<Modification>,
    pub(super) added: Vec<Addition>,
    pub(super) transitions: Vec<Change>,
    /// Why instructions direct nothing.
    pub(super) refusals: Vec<Error>,
}

/// A row of Modified, or an instruction that replaces a section.
pub(super) struct Modification {
    pub(super) change: Change,
    pub(super) scope: Scope,
}

/// What a modification puts its text in the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The text before, which stands there once.
    Text,
    /// A section, which says the text before and nothing else.
    WholeSection,
    /// A section, whatever it says.
    AnySection,
}

/// Entries that come.
pub(super) struct Addition {
    pub(super) part: Part,
    /// The section that an instruction names.
    pub(super) place: Option<String>,
    /// The state that an instruction names.
    pub(super) state: Option<String>,
}

impl Plan {
    pub(super) fn of(
        delta: &CheckpointDelta,
        instructions: &Instructions,
        base: &Document,
    ) -> Self {
        let added = declared(delta.added()).into_iter();
        let modified = changed(delta.modified()).into_iter();
        let mut plan = Self {
            removed: declared(delta.removed()),
            modified: modified.map(|change| Modification { change, scope: Scope::Text }).collect(),
            added: added.map(|part| Addition { part, place: None, state: None }).collect(),
            transitions: changed(delta.transitions()),
            refusals: instructions.wrong.iter().map(|wrong| wrong.error.copy_error()).collect(),
        };
        let mut placed = Vec::new();
        for (line, order) in &instructions.orders {
            if let Err(error) = plan.direct(base, *line, order, &mut placed) {
                plan.refusals.push(error);
            }
        }
        placed.append(&mut plan.added);
        plan.added = placed;
        plan
    }

    /// How many changes there are.
    pub(super) fn count(&self) -> usize {
        let entries = self.removed.iter().map(|part| part.entries.len());
        let added = self.added.iter().map(|addition| addition.part.entries.len());
        entries.chain(added).sum::<usize>() + self.modified.len() + self.transitions.len()
    }

    fn direct(
        &mut self,
        base: &Document,
        line: usize,
        order: &Order,
        placed: &mut Vec<Addition>,
    ) -> Result<()> {
        match order {
            Order::Append { what, section: name, state } => {
                let parts = self.take(what, line)?;
                let place = section(base, name, line)?;
                placed.extend(directed(base, line, place, parts, state.as_ref())?);
                Ok(())
            }
            Order::Replace { section: name, what } => {
                let place = section(base, name, line)?;
                self.replace(base, line, place, what, placed)
            }
            Order::Update { what } => self.expect_about(base, line, what),
        }
    }

    /// Directs the row of Modified about a section to the whole of it, or puts a text or entries of
    /// Added there.
    fn replace(
        &mut self,
        base: &Document,
        line: usize,
        place: &Section,
        what: &Words,
        placed: &mut Vec<Addition>,
    ) -> Result<()> {
        let title = normal(&place.title);
        let mut about = self.modified.iter_mut().filter(|row| normal(&row.change.item) == title);
        let change = |after: &str| Change {
            item: place.title.clone(),
            before: String::new(),
            after: after.to_owned(),
            line,
        };
        match (about.next(), about.next()) {
            (Some(row), None) if what.is_quoted && row.change.after != what.text => {
                let row = format!("{:?}, as line {} says", row.change.after, row.change.line);
                return Err(Error::unmet(line, row, format_args!("{:?}", what.text)));
            }
            (Some(row), None) => {
                row.scope = Scope::WholeSection;
                return Ok(());
            }
            (Some(first), Some(second)) => {
                let lines = (first.change.line, second.change.line);
                let message = format!(
                    "Modified has more than one row for {:?}: at line {} and at line {}",
                    place.title, lines.0, lines.1
                );
                return Err(Error::refused(line, message));
            }
            (None, _) if what.is_quoted => {
                let change = change(&what.text);
                self.modified.push(Modification { change, scope: Scope::AnySection });
                return Ok(());
            }
            (None, _) => {}
        }
        let parts = self.take(what, line)?;
        // What is not replaced by its nature must say in Removed all that goes.
        let is_replaced = place.kind().map(SectionKind::merge_rule) == Some(MergeRule::Replace);
        let scope = if is_replaced { Scope::AnySection } else { Scope::WholeSection };
        self.modified.push(Modification { change: change(""), scope });
        placed.extend(directed(base, line, place, parts, None)?);
        Ok(())
    }

    /// Takes what words mean out of Added: an entry by what it says or is about, else the parts
    /// whose label has all the words. Words in quotation marks, and those of an item of Status
    /// Transitions, are an entry themselves.
    fn take(&mut self, words: &Words, line: usize) -> Result<Vec<Part>> {
        let Words { text, is_quoted } = words;
        let wanted = normal(text);
        let mut entries = Vec::new();
        for (index, addition) in self.added.iter().enumerate() {
            let named = addition.part.entries.iter().enumerate();
            let named = named.filter(|(_, entry)| !wanted.is_empty() && is_about(entry, &wanted));
            entries.extend(named.map(|(at, _)| (index, at)));
        }
        if let [(index, at)] = entries.as_slice()
            && let Some(addition) = self.added.get_mut(*index)
        {
            return Ok(vec![addition.part.split_entry(*at)]);
        }
        if !entries.is_empty() {
            return Err(Error::refused(line, format!("more than one entry of Added is {text:?}")));
        }
        let is_item = |item: &str| normal(item) == wanted || normal(key_of(item)) == wanted;
        let itself = || Part {
            entries: vec![vec![text.clone()]],
            line,
            lines: vec![line],
            ..Part::default()
        };
        if *is_quoted && !wanted.is_empty() {
            return Ok(vec![itself()]);
        }
        // All of Added is new.
        let is_word =
            |word: &&str| !matches!(*word, "" | "the" | "a" | "an" | "all" | "new" | "added");
        let all: Vec<&str> = wanted.split(' ').filter(is_word).collect();
        let is_labelled = |addition: &Addition| {
            let label = addition.part.label.as_deref().map(normal).unwrap_or_default();
            let label: Vec<&str> = label.split(' ').collect();
            let is_meant = !all.is_empty() && all.iter().all(|word| label.contains(word));
            is_meant && !addition.part.entries.is_empty()
        };
        let (taken, left): (Vec<Addition>, Vec<Addition>) =
            std::mem::take(&mut self.added).into_iter().partition(is_labelled);
        self.added = left;
        let labels: BTreeSet<String> =
            taken.iter().filter_map(|one| one.part.label.as_deref()).map(normal).collect();
        match (labels.len(), self.transitions.iter().any(|change| is_item(&change.item))) {
            (0, true) => Ok(vec![itself()]),
            (0, false) => {
                let expected = "words in quotation marks, or the label or an entry of Added";
                Err(Error::unmet(line, expected, format_args!("{text:?}")))
            }
            (1, _) => Ok(taken.into_iter().map(|addition| addition.part).collect()),
            _ => {
                let labels: Vec<String> = labels.into_iter().collect();
                let found = format!("{text:?}, which fits {}", labels.join(" and "));
                Err(Error::unmet(line, "the label of one part of Added", found))
            }
        }
    }

    /// Refuses words about which Modified and Status Transitions say nothing: a section, or
    /// `status` behind a word of an item or of a title of the checkpoint. What they say is carried
    /// out in any case.
    fn expect_about(&self, base: &Document, line: usize, what: &str) -> Result<()> {
        let ends = ["status transitions", "status", "states"];
        if let Some(words) = ends.iter().find_map(|end| what.strip_suffix(end)) {
            let has = |text: &str| normal(text).contains(words.trim());
            let mut items = self.transitions.iter();
            let titles = base.blocks().iter().filter_map(|block| block.kind.titles());
            if items.any(|change| has(&change.item))
                || !self.transitions.is_empty() && titles.flatten().any(|title| has(title))
            {
                return Ok(());
            }
        }
        let found = base.named(what).next();
        let is_about = found.is_some_and(|section| {
            let title = normal(&section.title);
            let first = |change: &Change| {
                normal(change.item.split(" / ").next().unwrap_or_default()) == title
            };
            let inside = |change: &Change| {
                let mut blocks = base.blocks_of(section).iter();
                blocks.any(|block| state_at(base, block, &change.item).is_some())
            };
            self.modified.iter().any(|row| first(&row.change))
                || self.transitions.iter().any(inside)
        });
        if is_about {
            return Ok(());
        }
        let expected = format!("a row of Modified or Status Transitions about {what:?}");
        Err(Error::unmet(line, expected, "none"))
    }
}

/// Entries for the section that an instruction names, unless their label names another one.
fn directed(
    base: &Document,
    line: usize,
    place: &Section,
    parts: Vec<Part>,
    state: Option<&String>,
) -> Result<Vec<Addition>> {
    for part in &parts {
        let named = base.named(part.label.as_deref().unwrap_or_default()).next();
        if let Some(other) = named.filter(|other| other.title != place.title) {
            let line_of = part.lines.first().unwrap_or(&part.line);
            let expected = format!("{:?}, the label over line {line_of}", other.title);
            return Err(Error::unmet(line, expected, format_args!("{:?}", place.title)));
        }
    }
    let place = || Some(place.title.clone());
    let of = |part| Addition { part, place: place(), state: state.cloned() };
    Ok(parts.into_iter().map(of).collect())
}

/// Whether an entry says these words, or is about them: for a row, has a cell that says them.
fn is_about(entry: &[String], wanted: &str) -> bool {
    let key = entry.first().map_or("", |first| key_of(first));
    let whole = entry.join(" ");
    let mut names = entry.iter().map(String::as_str).chain([key, &whole]);
    names.any(|name| normal(name) == wanted)
}

/// The parts that declare something. What comes or goes with its section is told by the label.
fn declared(mut parts: Vec<Part>) -> Vec<Part> {
    parts.retain(|part| {
        part.label.as_deref().is_some_and(|label| label.ends_with(')'))
            || !matches!(part.entries.as_slice(), [entry] if is_nothing(&entry.join(" ")))
    });
    parts
}

/// The rows that do not say in each of their cells that there is nothing.
fn changed(mut rows: Vec<Change>) -> Vec<Change> {
    let is_empty = |text: &String| is_absent(text);
    rows.retain(|row| ![&row.item, &row.before, &row.after].into_iter().all(is_empty));
    rows
}

/// Whether a cell says that there is nothing.
pub(super) fn is_absent(text: &str) -> bool {
    is_nothing(text) || matches!(text.trim(), "-" | "–" | "—")
}
