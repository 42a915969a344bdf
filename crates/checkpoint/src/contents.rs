//! What an instruction's words mean: an entry or a part of what the delta declares, or themselves.

use super::{
    declared::Claim,
    delta::{Change, Part},
    document::{Document, Section},
    grammar::Content,
    names::normal,
    perform::{Performing, key_of},
};
use crate::Result;

/// What an instruction's content means, and the declared entries that it takes.
pub(super) struct Meaning {
    pub(super) content: ResolvedContent,
    pub(super) claims: Vec<Claim>,
}

/// What an instruction adds, or puts in the place of something.
pub(super) enum ResolvedContent {
    /// Entries that the delta declares under one label.
    Parts(Vec<Part>),
    /// A text that means itself.
    Text(String),
    /// Lines that stand below the instruction.
    Lines(String),
}

impl Performing<'_> {
    /// What a content means, for the section that it goes to. The declared entries that it means
    /// are taken.
    ///
    /// # Errors
    /// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) for words that name nothing, or
    /// more than one thing.
    pub(super) fn meant(
        &self,
        document: &Document,
        content: &Content,
        place: &str,
    ) -> Result<Meaning> {
        let Content { text, is_literal, block } = content;
        let meaning = |content, claims| Ok(Meaning { content, claims });
        if !block.is_empty() {
            if *is_literal {
                let found = format!("{text:?} and lines below it");
                return Err(self.unmet("one content", found));
            }
            let claims = self.take_said(block, document, place)?;
            return meaning(ResolvedContent::Lines(block.clone()), claims);
        }
        if *is_literal {
            let claims = self.take_said(text, document, place)?;
            // A quote of an entry's name means that entry, where it may stand in this place.
            if let ([], [entry]) = (claims.as_slice(), self.entries_called(text).as_slice())
                && let Some(part) = self.declared.added.get(entry.0)
                && elsewhere(part, document, place).is_none()
            {
                let (claims, parts) = self.taken(vec![*entry]);
                return meaning(ResolvedContent::Parts(parts), claims);
            }
            return meaning(ResolvedContent::Text(text.clone()), claims);
        }
        if let Some((claims, parts)) = self.parts_about(text)? {
            let other =
                parts.iter().find_map(|part| Some((part, elsewhere(part, document, place)?)));
            if let Some((part, title)) = other {
                let line = part.lines.first().unwrap_or(&part.line);
                let expected = format!("{title:?}, which is the label over line {line}");
                return Err(self.unmet(expected, format_args!("{place:?}")));
            }
            return meaning(ResolvedContent::Parts(parts), claims);
        }
        let names =
            |item: &str| normal(item) == normal(text) || normal(key_of(item)) == normal(text);
        if self.declared.transitions.iter().any(|change| names(&change.item)) {
            return meaning(ResolvedContent::Text(text.clone()), Vec::new());
        }
        let expected = "words in quotation marks, or the label or an entry of Added";
        Err(self.unmet(expected, format_args!("{text:?}")))
    }

    /// Takes the entries of Added that a text says.
    ///
    /// # Errors
    /// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where it says only the first line
    /// of one, which would be added a second time.
    pub(super) fn take_said(
        &self,
        text: &str,
        document: &Document,
        place: &str,
    ) -> Result<Vec<Claim>> {
        let (claims, begun) = self.declared.take_said(text, document, place);
        match begun {
            None => Ok(claims),
            Some((line, first)) => Err(self.unmet(
                format_args!("all of the entry of Added at line {line}"),
                format_args!("only its first line {first:?}"),
            )),
        }
    }

    /// Refuses to add a second time what an instruction before has added to the same section.
    pub(super) fn expect_first(&self, claims: &[Claim], place: &str) -> Result<()> {
        for claim in claims {
            if !self.declared.add_to(*claim, place) {
                let line = self.declared.line_of(*claim);
                let found =
                    format!("the one at line {line}, which an instruction before has added");
                return Err(self.unmet("another entry of Added", found));
            }
        }
        Ok(())
    }

    /// The entries of Added that say these words, or are about them: for a row, those with a cell
    /// that says them.
    fn entries_called(&self, words: &str) -> Vec<(usize, usize)> {
        let wanted = normal(words);
        let mut found = Vec::new();
        for (index, part) in self.declared.added.iter().enumerate() {
            for (at, entry) in part.entries.iter().enumerate() {
                let key = entry.first().map_or("", |first| key_of(first));
                let mut names = entry.iter().map(String::as_str).chain([key]);
                if normal(&entry.join(" ")) == wanted || names.any(|name| normal(name) == wanted) {
                    found.push((index, at));
                }
            }
        }
        found.retain(|_| !wanted.is_empty());
        found
    }

    /// Takes entries of Added, and gives a part for each.
    fn taken(&self, entries: Vec<(usize, usize)>) -> (Vec<Claim>, Vec<Part>) {
        let parts = entries.iter().filter_map(|(index, at)| {
            self.declared.added.get(*index).map(|part| only(part, &[*at]))
        });
        let parts = parts.collect();
        let claims: Vec<Claim> =
            entries.into_iter().map(|(index, at)| Claim::Added(index, at)).collect();
        claims.iter().for_each(|claim| self.declared.take(*claim));
        (claims, parts)
    }

    /// The parts of Added that words mean: an entry by what it says or is about, else those whose
    /// label has all the words.
    fn parts_about(&self, words: &str) -> Result<Option<(Vec<Claim>, Vec<Part>)>> {
        let entries = self.entries_called(words);
        if entries.len() > 1 {
            return Err(self.refused(format!("more than one entry of Added is {words:?}")));
        }
        if !entries.is_empty() {
            return Ok(Some(self.taken(entries)));
        }
        let all: Vec<String> = normal(words).split(' ').map(stem).collect();
        let few: Vec<String> = all.iter().filter(|word| !is_filler(word)).cloned().collect();
        for wanted in [all, few] {
            if wanted.is_empty() {
                continue;
            }
            let found = self.labelled(&wanted);
            let labels: std::collections::BTreeSet<String> =
                found.iter().filter_map(|(_, part)| part.label.as_deref()).map(normal).collect();
            if labels.len() > 1 {
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                let found = format!("{words:?}, which fits {}", labels.join(" and "));
                return Err(self.unmet("the label of one part of Added", found));
            }
            if !found.is_empty() {
                let all = found
                    .iter()
                    .flat_map(|(index, part)| (0..part.entries.len()).map(|at| (*index, at)));
                let (claims, _) = self.taken(all.collect());
                let parts = found.into_iter().map(|(_, part)| part.clone()).collect();
                return Ok(Some((claims, parts)));
            }
        }
        Ok(None)
    }

    /// The parts of Added whose label has all the words.
    fn labelled(&self, wanted: &[String]) -> Vec<(usize, &Part)> {
        let is_about = |part: &Part| {
            let label = normal(part.label.as_deref().unwrap_or_default());
            let label: Vec<String> = label.split(' ').map(stem).collect();
            wanted.iter().all(|word| label.contains(word))
        };
        let parts = self.declared.added.iter().enumerate();
        parts.filter(|(_, part)| !part.entries.is_empty() && is_about(part)).collect()
    }

    /// The row of Modified about a section as a whole, with its index.
    pub(super) fn row_about(&self, section: &Section) -> Result<Option<(usize, &Change)>> {
        let rows = self.declared.modified.iter().enumerate();
        let mut rows = rows.filter(|(_, change)| normal(&change.item) == normal(&section.title));
        match (rows.next(), rows.next()) {
            (Some((_, first)), Some((_, second))) => Err(self.refused(format!(
                "Modified has more than one row for {:?}: at line {} and at line {}",
                section.title, first.line, second.line
            ))),
            (row, _) => Ok(row),
        }
    }
}

/// The section that the label of a part names, where it is another one than the place that an
/// instruction names.
fn elsewhere(part: &Part, document: &Document, place: &str) -> Option<String> {
    let label = part.label.as_deref().unwrap_or_default();
    let section = document.named(label).next()?;
    (normal(&section.title) != normal(place)).then(|| section.title.clone())
}

/// A part with some of its entries.
pub(super) fn only(part: &Part, entries: &[usize]) -> Part {
    let mut part = part.clone();
    let of = |at: &usize| part.entries.get(*at).cloned();
    let line_of = |at: &usize| part.lines.get(*at).copied();
    let (entries, lines) =
        (entries.iter().filter_map(of).collect(), entries.iter().filter_map(line_of).collect());
    (part.entries, part.lines) = (entries, lines);
    part
}

/// A word that says nothing of which part is meant: all of Added is new.
fn is_filler(word: &str) -> bool {
    matches!(word, "the" | "a" | "an" | "all" | "its" | "these" | "those" | "new" | "added")
}

/// A word without its plural.
fn stem(word: &str) -> String {
    word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word).to_owned()
}

/// Whether a name is in another one, word by word without plurals.
pub(super) fn has_words(name: &str, wanted: &str) -> bool {
    let words: Vec<String> = words_of(name);
    words_of(wanted).iter().all(|word| words.contains(word))
}

fn words_of(name: &str) -> Vec<String> {
    let name = normal(name);
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(stem).collect()
}
