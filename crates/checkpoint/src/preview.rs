//! What applying a delta does, line by line: the one path that `apply` takes.

use super::{
    additions::append,
    apply::{apply_exact, expect_source},
    delta::{Change, CheckpointDelta, Part},
    document::{Document, Section},
    edit::Edit,
    exact::Step,
    full_state::Checkpoint,
    instructions::Instructions,
    lint::DocumentKind,
    lookup::{removed_entry, section},
    misplaced::MisplacedHeader,
    modified::modify,
    names::{SectionKind, normal},
    plan::{Addition, Plan},
    states::transition,
    timestamp::is_timestamp,
    unread::header_faults,
};
use crate::{Error, ErrorKind, Result};

/// How many bytes are read at most to carry out changes by name: each reads both documents.
const MOST_READ: usize = 1 << 30;

/// What applying a delta to a checkpoint does, and what of it is refused.
///
/// ```
/// use afterimage_checkpoint::{Checkpoint, CheckpointDelta, preview};
///
/// let base = Checkpoint::parse("## Decisions\n\n- Cache: none\n")?;
/// let delta = "## Changes\n\n### Removed\n\n- Cache: none\n- Queue: none\n";
/// let preview = preview(&base, &CheckpointDelta::parse(delta)?);
/// assert_eq!((preview.effects()[0].line, preview.effects()[0].gone), (5, 2));
/// assert_eq!(preview.refusals()[0].place().line, Some(6));
/// let (after, left) = preview.into_partial().unwrap();
/// assert_eq!((after.text(), left.len()), ("## Decisions\n", 1));
/// # Ok::<(), afterimage_checkpoint::Error>(())
/// ```
#[derive(Debug)]
pub struct Preview {
    effects: Vec<Effect>,
    refusals: Vec<Error>,
    /// The checkpoint with what is carried out; `None` where nothing can be.
    after: Option<Checkpoint>,
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
    /// What the delta does, in the order in which it does it. Where something is refused,
    /// [`apply`](super::apply) does nothing of it.
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
        match (self.refusals.into_iter().next(), self.after) {
            (None, Some(after)) => Ok(after),
            (error, _) => Err(error.unwrap_or_else(|| Error::missing(1, "a delta"))),
        }
    }

    /// The checkpoint with everything that can be carried out, and why the rest is refused, in the
    /// order of the delta's lines.
    ///
    /// # Errors
    /// All of [`Preview::refusals`] where nothing can be carried out: of an exact delta that does
    /// not fit, of one that is from another checkpoint, of a text that has no place for changes.
    pub fn into_partial(self) -> Result<(Checkpoint, Vec<Error>), Vec<Error>> {
        match self.after {
            Some(after) => Ok((after, self.refusals)),
            None => Err(self.refusals),
        }
    }
}

/// Says what [`apply`](super::apply) does with a delta, and everything that it refuses.
///
/// Costs as much as applying it.
pub fn preview(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Preview {
    previewed(checkpoint, delta, true)
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
    let base = checkpoint.document();
    let instructions = delta.instructions();
    let named = |document: Document| Checkpoint::called(document, delta.to());
    let unfit = expect_source(checkpoint, delta).err();
    if instructions.are_exact() {
        let unread = header_faults(delta.document()).into_iter().map(|(_, error)| error);
        let refusals: Vec<Error> = unread.chain(unfit).collect();
        if !refusals.is_empty() {
            return Preview { effects: Vec::new(), refusals, after: None };
        }
        return match apply_exact(base, &instructions) {
            Ok(document) => {
                let effects = effects_of(base, &document, &instructions);
                Preview { effects, refusals, after: Some(named(document)) }
            }
            Err(error) => Preview { effects: Vec::new(), refusals: vec![error], after: None },
        };
    }
    let mut plan = Plan::declared(delta);
    let steps = plan.count() + instructions.orders.len();
    if let Err(error) = expect_little_work(base, delta, steps) {
        return Preview { effects: Vec::new(), refusals: vec![error], after: None };
    }
    let unfit = expect_header(checkpoint, delta).err().or(unfit);
    let unfit = unfit.or_else(|| expect_changes(delta, &instructions).err());
    let mut faults = header_faults(delta.document());
    let is_misplaced = faults.iter().any(|(code, _)| *code == "front-matter-place");
    // Everything else would be said of another document.
    faults.extend(if is_misplaced { Vec::new() } else { delta.unread() });
    let is_unfit = unfit.is_some() || is_misplaced;
    let mut refusals: Vec<Error> = unfit.into_iter().collect();
    refusals.extend(faults.into_iter().map(|(_, error)| error));
    refusals.extend(plan.direct_all(&instructions, base));
    let mut run = Run { base, document: base.clone(), effects: Vec::new(), refusals };
    run.all(&plan);
    run.header(checkpoint, delta, names_parent);
    run.refusals.sort_by_key(|error| error.place().line);
    let after = (!is_unfit).then(|| named(run.document));
    Preview { effects: run.effects, refusals: run.refusals, after }
}

/// Refuses a delta that it would take too long to carry out.
fn expect_little_work(base: &Document, delta: &CheckpointDelta, steps: usize) -> Result<()> {
    let bytes = base.text().len() + delta.text().len();
    if steps.saturating_mul(bytes) <= MOST_READ {
        return Ok(());
    }
    let message = format!(
        "{steps} changes by name to {bytes} bytes take too long: the product is at most {MOST_READ}"
    );
    Err(Error::new(ErrorKind::Limit, message))
}

/// Refuses a checkpoint whose header nothing reads: its id and time would stay what they were.
fn expect_header(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<()> {
    let document = checkpoint.document();
    let found = MisplacedHeader::of(document);
    let is_delta = found.is_some_and(|found| found.kind == DocumentKind::Delta);
    let mut faults = header_faults(document).into_iter().filter(|_| !is_delta);
    let has_none = |code| matches!(code, "front-matter-open" | "front-matter-place");
    let Some((_, error)) = faults.find(|(code, _)| has_none(*code)) else { return Ok(()) };
    let line = delta.document().front_matter().and_then(|front| front.field("from"));
    let at = error.place().line.unwrap_or(1);
    let message = format!("line {at} of the checkpoint: {}", error.message());
    Err(Error::refused(line.map_or(1, |from| from.line + 1), message))
}

/// Refuses a document that has no place for changes.
fn expect_changes(delta: &CheckpointDelta, instructions: &Instructions) -> Result<()> {
    let parts = ["added", "modified", "removed", "status transitions"];
    let is_known = parts.iter().any(|name| delta.part(name).is_some());
    if is_known || !instructions.is_empty() || MisplacedHeader::of(delta.document()).is_some() {
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
    effects: Vec<Effect>,
    refusals: Vec<Error>,
}

impl Run<'_> {
    /// Carries out an edit, or notes why it is refused.
    fn edit(&mut self, line: usize, edit: Result<Edit>) {
        let made = edit.and_then(|edit| self.document.edited(vec![edit]));
        self.take(line, made);
    }

    fn take(&mut self, line: usize, made: Result<Document>) {
        match made {
            Ok(document) => {
                self.effects.extend(effect(line, &self.document, &document));
                self.document = document;
            }
            Err(error) => self.refusals.push(error),
        }
    }

    fn all(&mut self, plan: &Plan) {
        for part in &plan.removed {
            self.removed(part);
        }
        for (change, scope) in &plan.modified {
            self.edit(change.line, modify(&self.document, change, *scope));
        }
        for addition in &plan.added {
            let part = &addition.part;
            let line = part.lines.first().copied().unwrap_or(part.line);
            self.take(line, added(&self.document, addition, line));
        }
        for change in &plan.transitions {
            self.edit(change.line, transition(&self.document, change));
        }
    }

    fn removed(&mut self, part: &Part) {
        let label = part.label.as_deref().unwrap_or_default();
        let named = section_named(&self.document, label).map(|place| place.title.clone());
        if named.is_none() && SectionKind::from_title(label).is_some() {
            let message = format!("there is no section {label:?}");
            self.refusals.push(Error::refused(part.line, message));
            return;
        }
        for (entry, line) in part.entries.iter().zip(&part.lines) {
            let document = &self.document;
            let place = named.as_ref().and_then(|title| document.named(title).next());
            let block = removed_entry(document, part, entry, place, *line);
            let edit = block.map(|block| document.remove_lines(block.lines.clone()));
            self.edit(*line, edit);
        }
        if let Some(title) = named.filter(|_| normal(label).ends_with("(section removed)")) {
            self.edit(part.line, empty_section(&self.document, &title, part.line));
        }
    }

    /// Gives the header the id and the time of where the delta leads to, and the id of where it is
    /// from as the parent.
    fn header(&mut self, checkpoint: &Checkpoint, delta: &CheckpointDelta, names_parent: bool) {
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
            let value_of =
                |document: &Document| Some(document.front_matter()?.get(key)?.to_owned());
            let set = value_of(&self.document).filter(|set| set != value);
            if key == "created" && !is_timestamp(value) {
                let expected = "a time such as `2025-12-14T16:00:00Z`";
                self.refusals.push(Error::unmet(line, expected, format_args!("{value:?}")));
            } else if let Some(set) = set.filter(|set| Some(set) != value_of(self.base).as_ref()) {
                let expected = format!("`{key}` to be {value:?}, as the delta's `{source}` says");
                let found = format!("a row of Modified that makes it {set:?}");
                self.refusals.push(Error::unmet(line, expected, found));
            } else if let Some(edit) = self.document.set_field(key, value) {
                self.edit(line, Ok(edit));
            }
        }
    }
}

/// The document with entries of Added in the section that an instruction or their label names. A
/// table of files goes to Artifact Trail, and a label that no section has becomes one.
fn added(document: &Document, addition: &Addition, line: usize) -> Result<Document> {
    let Addition { part, place, .. } = addition;
    let label = part.label.as_deref().unwrap_or_default().trim();
    let is_of_files = part.columns.iter().flatten().any(|title| normal(title) == "file");
    let title = match (place, section_named(document, label)) {
        (Some(place), _) => place.as_str(),
        (None, Some(named)) => &named.title,
        (None, None) if is_of_files => SectionKind::ArtifactTrail.title(),
        (None, None) => label.rsplit_once(" (").map_or(label, |(name, _)| name),
    };
    if title.is_empty() {
        let expected = "the name of a section over what is added";
        return Err(Error::unmet(line, expected, "entries without a label"));
    }
    let mut document = document.clone();
    if document.named(title).next().is_none() {
        document = document.edited(vec![new_section(&document, title)])?;
    }
    if part.entries.is_empty() {
        return Ok(document);
    }
    if let Some(scope) = addition.clears {
        let nothing = Change { item: title.to_owned(), line, ..Change::default() };
        document = document.edited(vec![modify(&document, &nothing, scope)?])?;
    }
    let place = section(&document, title, line)?;
    let edit = append(&document, place, addition, line)?;
    document.edited(vec![edit])
}

/// A new section at the end of the checkpoint; one that the format names inside of Essential
/// Information goes to the end of that.
fn new_section(document: &Document, title: &str) -> Edit {
    let level = SectionKind::from_title(title).map_or(2, SectionKind::level);
    let around = document.section(SectionKind::EssentialInformation).filter(|_| level == 3);
    let at = around.map_or(document.line_count(), |around| around.end);
    document.insert_section(at, level, title, "")
}

/// Removes a section of which nothing is left but its heading.
fn empty_section(document: &Document, title: &str, line: usize) -> Result<Edit> {
    let section = section(document, title, line)?;
    let mut inside = document.blocks().iter().filter(|block| {
        (section.body..section.end).contains(&block.lines.start) && block.kind.titles().is_none()
    });
    if let Some(rest) = inside.next() {
        let expected = format!("nothing else in {title:?}");
        let found = format!("line {} of the checkpoint, which Removed does not name", rest.line());
        return Err(Error::unmet(line, expected, found));
    }
    Ok(document.remove_lines(section.lines.start..section.end))
}

/// The section that a label names, alone or with a word in brackets behind it.
fn section_named<'d>(document: &'d Document, label: &str) -> Option<&'d Section> {
    let name = label.split(" (").next().filter(|name| !name.trim().is_empty())?;
    document.named(name).next()
}

/// What a step changed: the lines between those that both documents begin and end with.
fn effect(line: usize, before: &Document, after: &Document) -> Option<Effect> {
    let (old, new) = (&before.lines, &after.lines);
    let least = old.len().min(new.len());
    let head = (0..least).take_while(|at| old.get(*at) == new.get(*at)).count();
    let is_same = |at: &usize| old.get(old.len() - 1 - at) == new.get(new.len() - 1 - at);
    let tail = (0..least - head).take_while(is_same).count();
    let (gone, come) = (old.len() - head - tail, new.len() - head - tail);
    let section = match come {
        0 => before.title_at((head + gone).saturating_sub(1)),
        _ => after.title_at(head + come - 1),
    };
    (gone + come > 0).then(|| Effect { line, section: section.to_owned(), gone, come })
}

/// What exact instructions did: each step, or the whole checkpoint at once.
fn effects_of(before: &Document, after: &Document, instructions: &Instructions) -> Vec<Effect> {
    if let (Some(_), Some((line, _))) = (&instructions.whole, &instructions.ends) {
        return effect(*line, before, after).into_iter().collect();
    }
    let of = |(line, step): &(usize, Step)| {
        let (gone, come) = match step.taken.len() {
            moved if step.is_move() => (moved, moved),
            _ => (step.old.len(), step.new.len()),
        };
        let is_added = step.taken.is_empty();
        let at = if is_added { step.place.saturating_sub(1) } else { step.taken.start };
        Effect { line: *line, section: before.title_at(at).to_owned(), gone, come }
    };
    instructions.steps.iter().map(of).collect()
}
