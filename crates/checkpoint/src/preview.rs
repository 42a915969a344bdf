//! What applying a delta does, line by line: the one path that `apply` and `lint_against` take.

use super::{
    apply::{apply_exact, expect_little_work, expect_source},
    contents::only,
    declared::{Claim, Declarations},
    delta::{Change, CheckpointDelta, Part},
    document::Document,
    front_matter,
    full_state::Checkpoint,
    instructions::{Instruction, Instructions},
    lint::{Diagnostic, DocumentKind},
    misplaced::MisplacedHeader,
    modified,
    names::{SectionKind, normal},
    perform::Performing,
    presence::{AppliedInstructions, Presence},
    states,
    timestamp::is_timestamp,
};
use crate::{Error, Result};

/// What applying a delta to a checkpoint does, and what of it is refused.
///
/// ```
/// use afterimage_checkpoint::{Checkpoint, CheckpointDelta, preview};
///
/// let base = Checkpoint::parse("## Decisions\n\n- Cache: none\n")?;
/// let delta = "## Changes\n\n### Removed\n\n- Cache: none\n- Queue: none\n";
/// let preview = preview(&base, &CheckpointDelta::parse(delta)?);
/// assert_eq!((preview.effects()[0].line, preview.effects()[0].gone), (5, 1));
/// assert_eq!(preview.refusals()[0].place().line, Some(6));
/// assert!(preview.into_result().is_err());
/// # Ok::<(), afterimage_checkpoint::Error>(())
/// ```
#[derive(Debug)]
pub struct Preview {
    effects: Vec<Effect>,
    refusals: Vec<Error>,
    /// The checkpoint afterwards: the one before, where something is refused.
    after: Checkpoint,
}

/// What one line of a delta does to the checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The line of the delta, from one.
    pub line: usize,
    /// The section that changes; `front matter` for the header.
    pub section: String,
    /// How many lines of the checkpoint go.
    pub gone: usize,
    /// How many lines come.
    pub come: usize,
}

impl Preview {
    /// What the delta does, in the order in which it does it. Where something is refused, nothing
    /// of it happens.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// Why the delta is refused, each with its line; empty where it is not.
    pub fn refusals(&self) -> &[Error] {
        &self.refusals
    }

    /// The checkpoint that the delta makes.
    ///
    /// # Errors
    /// The first of [`Preview::refusals`].
    pub fn into_result(self) -> Result<Checkpoint> {
        match self.refusals.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(self.after),
        }
    }

    fn refused(before: &Checkpoint, error: Error) -> Self {
        Self { effects: Vec::new(), refusals: vec![error], after: before.clone() }
    }
}

/// Says what [`apply`](super::apply) does with a delta, and everything that it refuses.
///
/// Costs as much as applying it.
pub fn preview(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Preview {
    previewed(checkpoint, delta, true)
}

/// Every reason why a delta cannot be applied to a checkpoint, as findings of the code `refused`,
/// in the order of the text.
///
/// Costs as much as applying it.
pub fn lint_against(delta: &CheckpointDelta, base: &Checkpoint) -> Vec<Diagnostic> {
    let refusals = preview(base, delta).refusals;
    let found = refusals.iter().map(|error| Diagnostic::refused(error, delta.document()));
    found.collect()
}

/// The checkpoint that a delta makes, beside one that it is compared with: without a `parent` that
/// the other does not have.
pub(super) fn made_beside(
    checkpoint: &Checkpoint,
    delta: &CheckpointDelta,
    other: &Checkpoint,
) -> Result<Checkpoint> {
    previewed(checkpoint, delta, other.parent().is_some()).into_result()
}

fn previewed(checkpoint: &Checkpoint, delta: &CheckpointDelta, names_parent: bool) -> Preview {
    let instructions = delta.instructions();
    let named = |document: Document| {
        let result = Checkpoint::from(document);
        match delta.to() {
            Some(to) => result.named(to),
            None => result,
        }
    };
    if let Some(instructions) = instructions.as_ref().filter(|found| found.are_exact()) {
        let refusals = unread_header(checkpoint, delta);
        if !refusals.is_empty() {
            return Preview { effects: Vec::new(), refusals, after: checkpoint.clone() };
        }
        return match apply_exact(checkpoint, delta, instructions) {
            Ok(document) => {
                let effects = effects_of(checkpoint.document(), &document, instructions);
                Preview { effects, refusals: Vec::new(), after: named(document) }
            }
            Err(error) => Preview::refused(checkpoint, error),
        };
    }
    let declared = Declarations::of(delta);
    let document = checkpoint.document();
    let ready = expect_header(checkpoint, delta)
        .and_then(|()| expect_source(checkpoint, delta))
        .and_then(|()| expect_changes(delta, instructions.as_ref()));
    let bounded = expect_little_work(document, delta, &declared, instructions.as_ref());
    if let Err(error) = bounded {
        return Preview::refused(checkpoint, error);
    }
    let mut run = Run {
        base: document,
        document: document.clone(),
        told: None,
        declared: &declared,
        effects: Vec::new(),
        refusals: ready.err().into_iter().chain(delta.unread()).collect(),
    };
    run.instructions(instructions.as_ref());
    run.removed();
    run.modified();
    run.added();
    run.transitions();
    run.arrived(checkpoint, delta, names_parent);
    let Run { document, effects, mut refusals, .. } = run;
    refusals.sort_by_key(|error| error.place().line);
    let after = if refusals.is_empty() { named(document) } else { checkpoint.clone() };
    Preview { effects, refusals, after }
}

/// What is wrong with the header of an exact delta: it says which checkpoint the delta is from.
fn unread_header(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Vec<Error> {
    let misplaced = MisplacedHeader::of(delta.document()).map(|found| found.refusal());
    let other = expect_source(checkpoint, delta).err();
    misplaced.into_iter().chain(delta.unread_header()).chain(other).collect()
}

/// Refuses a checkpoint whose header nothing reads: its id and time would stay what they were.
fn expect_header(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<()> {
    let document = checkpoint.document();
    let misplaced = MisplacedHeader::of(document);
    let misplaced = misplaced.filter(|found| found.kind == DocumentKind::Checkpoint);
    let is_open = document.front_matter().is_none() && front_matter::opens(&document.lines);
    let (wrong, expected) = match misplaced {
        Some(found) => {
            let wrong = format!("line {} of the checkpoint: {}", found.line, found.message());
            (wrong, found.expected())
        }
        None if is_open => {
            let wrong = "the front matter of the checkpoint has no end";
            (wrong.to_owned(), "a line `---` after its fields".to_owned())
        }
        None => return Ok(()),
    };
    let line = delta.document().front_matter().and_then(|front| front.field("from"));
    let line = line.map_or(1, |from| from.line + 1);
    Err(Error::wrong(line, wrong, expected))
}

/// Refuses a document that has no place for changes.
fn expect_changes(delta: &CheckpointDelta, instructions: Option<&Instructions>) -> Result<()> {
    let parts = ["added", "modified", "removed", "status transitions"];
    let is_known = parts.iter().any(|name| delta.part(name).is_some());
    if is_known || instructions.is_some() || MisplacedHeader::of(delta.document()).is_some() {
        return Ok(());
    }
    let expected = "Merge Instructions, or Added, Modified, Removed or Status Transitions under \
                    Changes";
    Err(Error::missing(1, expected))
}

/// A delta by names that is being carried out.
struct Run<'a> {
    base: &'a Document,
    document: Document,
    /// What the instructions made of it, where there are some.
    told: Option<Document>,
    declared: &'a Declarations,
    effects: Vec<Effect>,
    refusals: Vec<Error>,
}

impl<'a> Run<'a> {
    fn at(&self, line: usize) -> Performing<'a> {
        Performing { declared: self.declared, line }
    }

    /// Takes over what a step makes, or why it is refused.
    fn step(&mut self, line: usize, made: Result<Document>) {
        match made {
            Ok(document) => {
                self.effects.extend(effect(line, &self.document, &document));
                self.document = document;
            }
            Err(error) => self.refusals.push(error),
        }
    }

    fn instructions(&mut self, instructions: Option<&Instructions>) {
        for given in instructions.into_iter().flat_map(|instructions| &instructions.given) {
            let made = match &given.read {
                Ok(Instruction::Written(order)) => {
                    self.at(given.line).perform(&self.document, order)
                }
                Ok(Instruction::Exact(_)) => continue,
                Err(error) => Err(error.copy_error()),
            };
            self.step(given.line, made);
        }
        self.told = instructions.map(|_| self.document.clone());
    }

    fn told(&self) -> Option<AppliedInstructions<'_>> {
        self.told.as_ref().map(|told| AppliedInstructions { base: self.base, told })
    }

    /// Entries of Removed that no instruction took away.
    fn removed(&mut self) {
        let declared = self.declared;
        for part in &declared.removed {
            let label = part.label.as_deref().unwrap_or_default();
            let section = section_of(&self.document, label);
            let of_base = self.told.as_ref().and_then(|_| section_of(self.base, label));
            let is_known = SectionKind::from_title(label).is_some();
            if section.is_none() && of_base.is_none() && is_known {
                let error = self.at(part.line).refused(format!("there is no section {label:?}"));
                self.refusals.push(error);
                continue;
            }
            for (entry, line) in part.entries.iter().zip(&part.lines) {
                let at = self.at(*line);
                let places = (of_base.as_deref(), section.as_deref());
                let is_gone = self
                    .told()
                    .map_or(Ok(false), |told| told.has_removal(&at, part, entry, places));
                let made = match is_gone {
                    Ok(true) => continue,
                    Ok(false) => {
                        let block = at.wanted_row(&self.document, part, entry, places.1);
                        block.and_then(|block| {
                            let edit = self.document.remove_lines(block.lines.clone());
                            self.document.edited(vec![edit])
                        })
                    }
                    Err(error) => Err(error),
                };
                self.step(*line, made);
            }
            if normal(label).ends_with("(section removed)") && section.is_some() {
                let made = self.at(part.line).remove_emptied(&self.document, section.as_deref());
                self.step(part.line, made);
            }
        }
    }

    fn modified(&mut self) {
        for (index, change) in self.declared.modified.iter().enumerate() {
            if !self.declared.is_taken(Claim::Modified(index)) {
                let presence = |document: &Document| modified::presence(document, change);
                self.change(change, presence, |at, document| at.modify(document, change));
            }
        }
    }

    fn transitions(&mut self) {
        for (index, change) in self.declared.transitions.iter().enumerate() {
            if !self.declared.is_taken(Claim::Transition(index)) {
                let presence = |document: &Document| states::presence(document, change);
                self.change(change, presence, |at, document| {
                    let edit = at.transition(document, change, None)?;
                    document.edited(vec![edit])
                });
            }
        }
    }

    /// Makes a change, unless an instruction has made it already.
    fn change(
        &mut self,
        change: &Change,
        presence: impl Fn(&Document) -> Presence,
        make: impl Fn(&Performing<'a>, &Document) -> Result<Document>,
    ) {
        let at = self.at(change.line);
        let is_made = self.told().map_or(Ok(false), |told| {
            // Only what fitted the checkpoint can have been made.
            Ok(told.has_change(&at, change, presence)? && make(&at, self.base).is_ok())
        });
        let made = match is_made {
            Ok(true) => return,
            Ok(false) => make(&at, &self.document),
            Err(error) => Err(error),
        };
        self.step(change.line, made);
    }

    /// Entries of Added that no instruction put anywhere.
    fn added(&mut self) {
        let declared = self.declared;
        for (index, part) in declared.added.iter().enumerate() {
            let open: Vec<usize> = (0..part.entries.len())
                .filter(|at| !declared.is_taken(Claim::Added(index, *at)))
                .collect();
            let label = part.label.as_deref().unwrap_or_default();
            let is_new_section = normal(label).ends_with("(new section)");
            if open.is_empty() && !(is_new_section && part.entries.is_empty()) {
                continue;
            }
            let rest = only(part, &open);
            let line = rest.lines.first().copied().unwrap_or(part.line);
            let made = self.placed(&rest, line, is_new_section);
            self.step(line, made);
        }
    }

    fn placed(&self, part: &Part, line: usize, is_new_section: bool) -> Result<Document> {
        let performing = self.at(line);
        let label = part.label.as_deref().unwrap_or_default();
        let mut document = self.document.clone();
        if is_new_section {
            let name = label.rsplit_once(" (").map_or(label, |(name, _)| name);
            let edit = performing.add_section(&document, name, None, "")?;
            document = document.edited(vec![edit])?;
            if part.entries.is_empty() {
                return Ok(document);
            }
        }
        let place = section_of(&document, label).or_else(|| files_go_to(&document, part));
        let Some(place) = place else {
            return Err(nowhere(part, line));
        };
        let section = performing.section(&document, &place)?;
        performing.expect_new(&document, section, part)?;
        let edit = performing.append_part(&document, section, part, None)?;
        document.edited(vec![edit])
    }

    /// Gives the header the id and the time of where the delta leads to, and the id of where it is
    /// from as the parent.
    fn arrived(&mut self, checkpoint: &Checkpoint, delta: &CheckpointDelta, names_parent: bool) {
        let front = delta.document().front_matter();
        let is_named = checkpoint.header("checkpoint").is_some();
        let leads_on = is_named && delta.to().is_some() && delta.to() != checkpoint.id();
        let parent = checkpoint.id().filter(|_| leads_on && names_parent);
        let fields = [
            ("checkpoint", "to", delta.to().filter(|_| is_named)),
            ("created", "created", delta.created().filter(|_| checkpoint.created().is_some())),
            ("parent", "from", parent),
        ];
        for (key, source, value) in fields {
            let Some(value) = value else { continue };
            let line = front.and_then(|front| front.field(source)).map_or(1, |from| from.line + 1);
            if key == "created" && !is_timestamp(value) {
                let expected = "a time such as `2025-12-14T16:00:00Z`";
                self.refusals.push(Error::unmet(line, expected, format_args!("{value:?}")));
                continue;
            }
            let value_of = |document: &Document| {
                document.front_matter().and_then(|front| front.get(key)).map(str::to_owned)
            };
            let set = value_of(&self.document);
            if set != value_of(self.base) && set.as_deref() != Some(value) {
                let set = set.unwrap_or_default();
                let expected = format!("`{key}` to be {value:?}, as the delta's `{source}` says");
                let found = format!("an instruction that makes it {set:?}");
                self.refusals.push(Error::unmet(line, expected, found));
            } else if let Some(edit) = self.document.set_field(key, value) {
                let made = self.document.edited(vec![edit]);
                self.step(line, made);
            }
        }
    }
}

/// Why entries go nowhere, and what would say where.
fn nowhere(part: &Part, line: usize) -> Error {
    let count = part.entries.len();
    let entries = if count == 1 { "entry" } else { "entries" };
    let section = "the name of a section over what is added";
    match part.label.as_deref().filter(|label| !label.is_empty()) {
        Some(label) => {
            let name = label.to_lowercase();
            let expected =
                format!("an instruction such as `Append {name} to SECTION`, or {section}");
            Error::unmet(line, expected, format_args!("{count} {entries} under {label:?}"))
        }
        None => Error::unmet(line, section, format_args!("{count} {entries} without a label")),
    }
}

/// The section that a label names, alone or with a word behind it.
fn section_of(document: &Document, label: &str) -> Option<String> {
    let label = normal(label);
    let name = label.split(" (").next().filter(|name| !name.is_empty())?;
    document.named(name).next().map(|section| section.title.clone())
}

/// Where a table of files goes.
fn files_go_to(document: &Document, part: &Part) -> Option<String> {
    let is_of_files = part.columns.iter().flatten().any(|title| normal(title) == "file");
    is_of_files.then(|| section_of(document, "Artifact Trail")).flatten()
}

/// What a step changed: the lines between those that both documents begin and end with.
fn effect(line: usize, before: &Document, after: &Document) -> Option<Effect> {
    let (old, new) = (&before.lines, &after.lines);
    let least = old.len().min(new.len());
    let head = (0..least).take_while(|at| old.get(*at) == new.get(*at)).count();
    let is_same = |at: &usize| old.get(old.len() - 1 - at) == new.get(new.len() - 1 - at);
    let tail = (0..least - head).take_while(is_same).count();
    let filled = |text: &str| !text.trim().is_empty();
    let gone = (head..old.len() - tail).filter(|at| filled(old.get(*at))).count();
    let come = (head..new.len() - tail).filter(|at| filled(new.get(*at))).count();
    if head + tail == old.len() && old.len() == new.len() {
        return None;
    }
    let is_in = |document: &Document, at: usize| {
        let index = document.section_at(at)?;
        document.sections().get(index).map(|section| section.title.clone())
    };
    let section = if old.len() - tail > head { is_in(before, head) } else { is_in(after, head) };
    let section = section.unwrap_or_else(|| "front matter".to_owned());
    Some(Effect { line, section, gone, come })
}

/// What exact instructions did: each step, or the whole checkpoint at once.
fn effects_of(before: &Document, after: &Document, instructions: &Instructions) -> Vec<Effect> {
    use super::exact::Step;
    if let (Some(_), Some((line, _))) = (&instructions.whole, &instructions.ends) {
        return effect(*line, before, after).into_iter().collect();
    }
    let steps = instructions.given.iter().filter_map(|given| match &given.read {
        Ok(Instruction::Exact(step)) => Some((given.line, step)),
        _ => None,
    });
    let of = |(line, step): (usize, &Step)| {
        let (at, gone, come) = match step {
            Step::Replace { at, old, new } => (at.start, old.len(), new.len()),
            Step::Remove { at, old } => (at.start, old.len(), 0),
            Step::Add { at, new } => (at.saturating_sub(1), 0, new.len()),
            Step::Move { from, .. } => (from.start, from.len(), from.len()),
        };
        let index = before.section_at(at);
        let section = index.and_then(|index| before.sections().get(index));
        let section = section.map_or("front matter", |section| section.title.as_str()).to_owned();
        Effect { line, section, gone, come }
    };
    steps.map(of).collect()
}
