mod absorbed;
mod check;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::{
    algebra::invert, apply::apply, delta::CheckpointDelta, document::Document,
    full_state::Checkpoint, lint::DocumentKind, misplaced::MisplacedHeader,
};
use crate::{Error, ErrorKind, Result};

/// Checkpoints and the deltas between them, in the order that their headers tell.
///
/// ```
/// use afterimage_checkpoint::{Checkpoint, DiffOptions, Document, History, diff};
///
/// let [a, b, c] = ["one", "two", "three"].map(|id| {
///     let text = format!("---\ncheckpoint: {id}\ncreated: 2026-01-05T10:00:00Z\n---\n\n# {id}\n");
///     Checkpoint::parse(text).unwrap()
/// });
/// let ab = diff(&a, &b, &DiffOptions::default())?;
/// let bc = diff(&b, &c, &DiffOptions::default())?;
///
/// // Only the first checkpoint was kept.
/// let files = [("one.md", a.text()), ("ab.md", ab.text()), ("bc.md", bc.text())];
/// let files = files.map(|(name, text)| (name.to_owned(), Document::parse(text).unwrap()));
/// let history = History::new(files);
/// assert_eq!(history.order(), ["one", "two", "three"]);
/// assert!(history.problems().is_empty());
/// assert_eq!(history.rebuild("three")?.text(), c.text());
/// # Ok::<(), afterimage_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct History {
    checkpoints: Vec<(String, Checkpoint)>,
    deltas: Vec<(String, CheckpointDelta)>,
    /// The names of the files that are neither, each with what is wrong.
    unknown: Vec<(String, String)>,
    /// Where the first checkpoint of each id is.
    by_id: HashMap<String, usize>,
    /// For each delta, whether it leads back too.
    is_exact: Vec<bool>,
    /// The ids of the checkpoints that are there and of those that deltas make of them.
    reachable: HashSet<String>,
    order: Vec<String>,
    problems: Vec<Problem>,
}

/// What is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of thing is wrong.
    pub kind: ProblemKind,
    /// The file that shows it, where one does.
    pub file: Option<String>,
    /// A sentence.
    pub message: String,
}

/// What kind of thing is wrong with a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// A checkpoint that is named is not there, and nothing leads to it.
    Gap,
    /// More than one checkpoint follows another.
    Fork,
    /// Checkpoints follow each other in a circle.
    Loop,
    /// Two files hold a checkpoint of one id.
    Duplicate,
    /// A delta does not say what it is from and to.
    Unnamed,
    /// A delta between two checkpoints does not make the second of the first.
    Mismatch,
    /// A file is neither a checkpoint nor a delta.
    Unknown,
}

/// A delta that makes one checkpoint of another.
#[derive(Clone, Copy, Debug)]
struct Step<'h> {
    /// Its index.
    delta: usize,
    from: &'h str,
    to: &'h str,
    /// Whether it is applied as it is, and not its inverse.
    is_forward: bool,
}

impl ProblemKind {
    /// The name in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Fork => "fork",
            Self::Loop => "loop",
            Self::Duplicate => "duplicate",
            Self::Unnamed => "unnamed",
            Self::Mismatch => "mismatch",
            Self::Unknown => "unknown",
        }
    }
}

impl History {
    /// The history of documents, each with the name of its file. A checkpoint without an id is
    /// called after its file. A document without an id and without a section of the format is a
    /// problem, not a checkpoint. Runs in time of one application of each delta that lies between two checkpoints.
    pub fn new(files: impl IntoIterator<Item = (String, Document)>) -> Self {
        let mut history = Self::default();
        for (name, document) in files {
            match DocumentKind::of(&document) {
                DocumentKind::Checkpoint if !is_checkpoint(&document) => {
                    let message = not_read(
                        &document,
                        "expected a checkpoint or a delta, found neither an id nor a section",
                    );
                    history.unknown.push((name, message));
                }
                DocumentKind::Checkpoint => {
                    let checkpoint = Checkpoint::from(document).named(stem(&name));
                    history.checkpoints.push((name, checkpoint));
                }
                DocumentKind::Delta => {
                    history.deltas.push((name, CheckpointDelta::from_document(document)));
                }
            }
        }
        history.check();
        history
    }

    /// The checkpoints with the names of their files, in the order in which they came.
    pub fn checkpoints(&self) -> &[(String, Checkpoint)] {
        &self.checkpoints
    }

    /// The deltas with the names of their files, in the order in which they came.
    pub fn deltas(&self) -> &[(String, CheckpointDelta)] {
        &self.deltas
    }

    /// The ids of all checkpoints, the oldest first: those that are there and those that deltas
    /// lead to. Ids in a circle come last.
    pub fn order(&self) -> &[String] {
        &self.order
    }

    /// Whether the checkpoint of that id is there, or deltas lead to it.
    ///
    /// A delta on the way may still be refused when [`History::rebuild`] applies it.
    pub fn leads_to(&self, id: &str) -> bool {
        self.reachable.contains(id)
    }

    /// What is wrong.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The checkpoint of that id: as it is there, or made of the nearest one by the deltas between
    /// the two, forward, or backward where their instructions are exact. Linear in the history, and
    /// one application for each delta on the way.
    ///
    /// # Errors
    /// [`ErrorKind::Base`] where nothing leads to it, and what [`apply`] refuses, with the file of
    /// the delta.
    pub fn rebuild(&self, id: &str) -> Result<Checkpoint> {
        if let Some(found) = self.rebuild_without(id, None, &self.steps()) {
            return found;
        }
        let message = format!("there is no checkpoint {id:?}, and no delta leads to it");
        Err(Error::new(ErrorKind::Base, message))
    }

    /// The checkpoint of an id, made without that of another one; `None` where nothing leads to it.
    fn rebuild_without<'h>(
        &'h self,
        id: &'h str,
        without: Option<&str>,
        steps: &HashMap<&'h str, Vec<Step<'h>>>,
    ) -> Option<Result<Checkpoint>> {
        let mut came: HashMap<&str, Option<Step<'_>>> = HashMap::from([(id, None)]);
        let mut next = VecDeque::from([id]);
        while let Some(at) = next.pop_front() {
            if let Some(checkpoint) = self.stored(at) {
                return Some(self.walk(checkpoint.clone(), at, &came));
            }
            for step in steps.get(at).into_iter().flatten() {
                if Some(step.from) != without && !came.contains_key(step.from) {
                    came.insert(step.from, Some(*step));
                    next.push_back(step.from);
                }
            }
        }
        None
    }

    /// What makes each checkpoint of another one: a delta to it, or the inverse of one from it.
    fn steps(&self) -> HashMap<&str, Vec<Step<'_>>> {
        let mut steps: HashMap<&str, Vec<Step<'_>>> = HashMap::new();
        for (delta, (_, document)) in self.deltas.iter().enumerate() {
            let Some((from, to)) = ends(document) else { continue };
            steps.entry(to).or_default().push(Step { delta, from, to, is_forward: true });
            if self.is_exact.get(delta) == Some(&true) {
                let back = Step { delta, from: to, to: from, is_forward: false };
                steps.entry(from).or_default().push(back);
            }
        }
        steps
    }

    /// Goes from a checkpoint that is there to the one that is wanted.
    fn walk<'h>(
        &self,
        mut checkpoint: Checkpoint,
        mut at: &'h str,
        came: &HashMap<&str, Option<Step<'h>>>,
    ) -> Result<Checkpoint> {
        while let Some(step) = came.get(at).copied().flatten() {
            let Some((name, delta)) = self.deltas.get(step.delta) else { break };
            let made = if step.is_forward {
                apply(&checkpoint, delta)
            } else {
                invert(delta).and_then(|back| apply(&checkpoint, &back))
            };
            checkpoint = made.map_err(|error| error.in_file(name))?.named(step.to);
            at = step.to;
        }
        Ok(checkpoint)
    }

    /// The history without the deltas that a later checkpoint has absorbed.
    ///
    /// Cost: as `absorbed`.
    pub fn without_absorbed(self) -> Self {
        let absorbed: HashSet<String> = self.absorbed().into_iter().map(str::to_owned).collect();
        let mut kept = Self {
            checkpoints: self.checkpoints,
            deltas: self.deltas,
            unknown: self.unknown,
            ..Self::default()
        };
        kept.deltas.retain(|(name, _)| !absorbed.contains(name));
        kept.check();
        kept
    }

    fn stored(&self, id: &str) -> Option<&Checkpoint> {
        let index = self.by_id.get(id)?;
        self.checkpoints.get(*index).map(|(_, checkpoint)| checkpoint)
    }

    /// The parents that checkpoints name, each with the checkpoint.
    fn parents(&self) -> impl Iterator<Item = (&str, &str)> {
        let checkpoints = self.checkpoints.iter();
        checkpoints.filter_map(|(_, checkpoint)| Some((checkpoint.parent()?, checkpoint.id()?)))
    }

    /// Which checkpoints follow each, by deltas and by `parent`.
    fn links(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut links: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for id in self.by_id.keys() {
            links.entry(id).or_default();
        }
        let deltas = self.deltas.iter().filter_map(|(_, delta)| ends(delta));
        for (from, to) in self.parents().chain(deltas) {
            links.entry(from).or_default().insert(to);
            links.entry(to).or_default();
        }
        links
    }
}

/// Some ids, and those that others lead to.
fn reached<'h, I: IntoIterator<Item = &'h str>>(
    from: impl Iterator<Item = &'h str>,
    next: impl Fn(&'h str) -> I,
) -> HashSet<&'h str> {
    let mut open: Vec<&str> = from.collect();
    let mut reached: HashSet<&str> = open.iter().copied().collect();
    while let Some(at) = open.pop() {
        open.extend(next(at).into_iter().filter(|id| reached.insert(id)));
    }
    reached
}

/// Why a document is neither a checkpoint nor a delta with ends.
fn not_read(document: &Document, otherwise: &str) -> String {
    let misplaced = MisplacedHeader::of(document);
    misplaced.map_or_else(|| otherwise.to_owned(), |found| found.error.message().to_owned())
}

/// Whether a document says that it is a checkpoint, or has a section of one.
fn is_checkpoint(document: &Document) -> bool {
    let id = document.front_matter().and_then(|front| front.get("checkpoint"));
    id.is_some_and(|id| !id.trim().is_empty())
        || document.sections().iter().any(|section| section.kind().is_some())
}

fn ends(delta: &CheckpointDelta) -> Option<(&str, &str)> {
    Some((delta.from()?, delta.to()?))
}

/// The name of a file without its folder and its ending.
fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
