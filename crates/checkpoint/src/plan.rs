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
    /// Rows of Modified, and what instructions put in the place of a section.
    pub(super) modified: Vec<(Change, Scope)>,
    pub(super) added: Vec<Addition>,
    pub(super) transitions: Vec<Change>,
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

/// Entries in the place of what a section says.
type Replacement = (Vec<Part>, Scope);

/// Entries that come.
pub(super) struct Addition {
    pub(super) part: Part,
    /// The section that an instruction names.
    pub(super) place: Option<String>,
    /// The state that an instruction names.
    pub(super) state: Option<String>,
    /// What of its section they take the place of, where an instruction replaces it.
    pub(super) clears: Option<Scope>,
}

impl Plan {
    /// The changes that a delta declares.
    pub(super) fn declared(delta: &CheckpointDelta) -> Self {
        let modified = changed(delta.modified()).into_iter();
        let addition = |part| Addition { part, place: None, state: None, clears: None };
        Self {
            removed: declared(delta.removed()),
            modified: modified.map(|change| (change, Scope::Text)).collect(),
            added: declared(delta.added()).into_iter().map(addition).collect(),
            transitions: changed(delta.transitions()),
        }
    }

    /// Directs the changes as the instructions say; gives the reasons of those that are refused.
    pub(super) fn direct_all(
        &mut self,
        instructions: &Instructions,
        base: &Document,
    ) -> Vec<Error> {
        let mut refusals: Vec<Error> = instructions.wrong.iter().map(Error::copy_error).collect();
        let mut placed = Vec::new();
        for (line, order) in &instructions.orders {
            match self.direct(base, *line, order) {
                Ok(additions) => placed.extend(additions),
                Err(error) => refusals.push(error),
            }
        }
        placed.append(&mut self.added);
        self.added = placed;
        refusals
    }

    /// How many changes there are.
    pub(super) fn count(&self) -> usize {
        let entries = self.removed.iter().map(|part| part.entries.len());
        let added = self.added.iter().map(|addition| addition.part.entries.len());
        entries.chain(added).sum::<usize>() + self.modified.len() + self.transitions.len()
    }

    /// Carries out what an instruction says of the plan. Gives the entries that it puts somewhere.
    fn direct(&mut self, base: &Document, line: usize, order: &Order) -> Result<Vec<Addition>> {
        let (parts, name, state, mut clears) = match order {
            Order::Append { what, section: name, state } => {
                (self.take(what, line)?, name, state.as_ref(), None)
            }
            Order::Replace { section: name, what } => {
                let (parts, scope) = self.replace(line, section(base, name, line)?, what)?;
                (parts, name, None, Some(scope))
            }
            Order::Update { what } => {
                self.expect_about(base, line, what)?;
                return Ok(Vec::new());
            }
        };
        let place = section(base, name, line)?;
        for part in &parts {
            let named = base.named(part.label.as_deref().unwrap_or_default()).next();
            if let Some(other) = named.filter(|other| other.title != place.title) {
                let line_of = part.lines.first().unwrap_or(&part.line);
                let expected = format!("{:?}, the label over line {line_of}", other.title);
                return Err(Error::unmet(line, expected, format_args!("{:?}", place.title)));
            }
        }
        let place = || Some(place.title.clone());
        let of =
            |part| Addition { part, place: place(), state: state.cloned(), clears: clears.take() };
        Ok(parts.into_iter().map(of).collect())
    }

    /// Directs the row of Modified about a section to the whole of it, or a text into its place; else
    /// gives the entries of Added that take it, and what they take the place of.
    fn replace(&mut self, line: usize, place: &Section, what: &Words) -> Result<Replacement> {
        let title = normal(&place.title);
        let about = |row: &&mut (Change, Scope)| normal(&row.0.item) == title;
        let mut rows: Vec<&mut (Change, Scope)> = self.modified.iter_mut().filter(about).collect();
        match rows.as_mut_slice() {
            [] => {}
            [(row, scope)] if !what.is_quoted || row.after == what.text => {
                *scope = Scope::WholeSection;
                return Ok((Vec::new(), *scope));
            }
            [(row, _), ..] => {
                let expected = format!("one row of Modified about {:?}, as the words", place.title);
                let found = format!("{:?} at line {}", row.after, row.line);
                return Err(Error::unmet(line, expected, found));
            }
        }
        if what.is_quoted {
            let (item, after) = (place.title.clone(), what.text.clone());
            let change = Change { item, after, line, ..Change::default() };
            self.modified.push((change, Scope::AnySection));
            return Ok((Vec::new(), Scope::AnySection));
        }
        // What is not replaced by its nature must say in Removed all that goes.
        let is_replaced = place.kind().map(SectionKind::merge_rule) == Some(MergeRule::Replace);
        let scope = if is_replaced { Scope::AnySection } else { Scope::WholeSection };
        Ok((self.take(what, line)?, scope))
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
        if let Some((index, at)) = entries.pop() {
            let addition = self.added.get_mut(index).filter(|_| entries.is_empty());
            let entry = addition.map(|addition| vec![addition.part.split_entry(at)]);
            let message = format!("more than one entry of Added is {text:?}");
            return entry.ok_or_else(|| Error::refused(line, message));
        }
        let is_item = |change: &Change| {
            normal(&change.item) == wanted || normal(key_of(&change.item)) == wanted
        };
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
        match (labels.len(), self.transitions.iter().any(is_item)) {
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

    /// Refuses the name of a section about which Modified and Status Transitions say nothing, and
    /// `status` where there are no transitions. What they say is carried out in any case.
    fn expect_about(&self, base: &Document, line: usize, what: &str) -> Result<()> {
        let first = |row: &(Change, Scope)| row.0.item.split(" / ").next().map(normal);
        let has_rows = self.modified.iter().any(|row| first(row).as_deref() == Some(what));
        let blocks = base.named(what).next().map_or(&[][..], |section| base.blocks_of(section));
        let is_state = ["status", "states", "transitions"].iter().any(|end| what.ends_with(end));
        let is_here = |change: &Change| {
            is_state || blocks.iter().any(|block| state_at(base, block, &change.item).is_some())
        };
        if has_rows || self.transitions.iter().any(is_here) {
            return Ok(());
        }
        let expected = format!("a row of Modified or Status Transitions about {what:?}");
        Err(Error::unmet(line, expected, "none"))
    }
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
