use super::{
    apply::exact,
    changes::{Changes, changes_between},
    delta::CheckpointDelta,
    diff::{Header, header_value, line_ends, written},
    document::Document,
    exact::PatchEnds,
    full_state::Checkpoint,
    lines::Lines,
    patch::Patch,
    preview::made_beside,
};
use crate::{Error, ErrorKind, Result};

/// A line in which the result of a delta is not the checkpoint that was expected. Where the lines are
/// the same and end otherwise, each stands with its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line of the expected checkpoint, from one; past the last where the result has more.
    pub line: usize,
    /// What it says; `None` where the expected checkpoint has no such line.
    pub expected: Option<String>,
    /// What the result says there; `None` where it has no such line.
    pub found: Option<String>,
}

/// Applies the delta to `a`, and answers with how the result differs from `b`: with nothing where
/// the delta is right. A `parent` that `b` does not have is not asked for. Costs what
/// [`apply`](super::apply) does, and a comparison of both.
///
/// # Errors
/// As [`apply`](super::apply).
pub fn validate(
    a: &Checkpoint,
    delta: &CheckpointDelta,
    b: &Checkpoint,
) -> Result<Vec<Difference>> {
    let result = made_beside(a, delta, b)?;
    Ok(differences(&result.document().lines, &b.document().lines))
}

fn differences(found: &Lines, expected: &Lines) -> Vec<Difference> {
    if found == expected {
        // The same lines, which may end otherwise.
        let text = |line: Option<&str>| line.map(str::to_owned);
        let of = |at| Difference {
            line: at + 1,
            expected: text(expected.whole(at)),
            found: text(found.whole(at)),
        };
        return (0..found.len()).map(of).filter(|line| line.expected != line.found).collect();
    }
    let back = super::matching::patch_between(found, expected).inverted();
    let mut differences = Vec::new();
    for step in super::exact::steps_of(&back) {
        let super::exact::Step { taken, old, place, new } = &step;
        if step.is_move() {
            let said = Some(expected.get(taken.start).to_owned());
            differences.push(Difference { line: taken.start + 1, expected: said, found: None });
            continue;
        }
        differences.extend((0..old.len().max(new.len())).map(|at| Difference {
            line: place + at.min(old.len()) + 1,
            expected: old.get(at).cloned(),
            found: new.get(at).cloned(),
        }));
    }
    differences
}

/// A delta whose instructions are exact, as its parts.
struct Exact {
    header: Header,
    patch: Patch,
    ends: PatchEnds,
}

impl Exact {
    fn of(delta: &CheckpointDelta) -> Result<Self> {
        let header = |key: &str, value: Option<&str>| {
            let message = || format!("expected `{key}` in the front matter");
            let value = value.map(header_value);
            value.ok_or_else(|| Error::new(ErrorKind::Markdown, message()).on_line(1))
        };
        let header = Header {
            from: header("from", delta.from())?,
            to: header("to", delta.to())?,
            created: header("created", delta.created())?,
        };
        let line = delta.part("merge instructions").map_or(1, |(_, part)| part.line());
        let instructions = delta.instructions();
        if instructions.whole.is_some() {
            let found = "only the one after: this delta has no way back";
            return Err(Error::unmet(line, "what the checkpoint before says", found));
        }
        if let Some((patch, Some(ends))) = exact(&instructions)? {
            return Ok(Self { header, patch, ends });
        }
        let wrong = "the delta can be neither inverted nor composed";
        Err(Error::wrong(line, wrong, "exact instructions, as `diff` writes them"))
    }
}

/// Whether a delta has an inverse.
pub(super) fn leads_back(delta: &CheckpointDelta) -> bool {
    Exact::of(delta).is_ok()
}

/// The delta that leads back: applied to what `delta` makes of a checkpoint, it gives that
/// checkpoint again. O(n log n) in the lines of the checkpoint.
///
/// # Errors
/// [`ErrorKind::Instruction`] where the delta's instructions are not exact, [`ErrorKind::Markdown`]
/// where its header lacks `from`, `to` or `created`.
pub fn invert(delta: &CheckpointDelta) -> Result<CheckpointDelta> {
    let Exact { header: Header { from, to, created }, patch, ends } = Exact::of(delta)?;
    let header = Header { from: to, to: from, created };
    let patch = patch.inverted();
    let ends = PatchEnds { before: ends.after, after: ends.before };
    rewritten(&header, &patch, &ends)
}

/// The delta that does what `first` and then `second` do. O(n log n) in the lines of the
/// checkpoints.
///
/// # Errors
/// [`ErrorKind::Base`] where the second does not begin where the first ends,
/// [`ErrorKind::Instruction`] where the instructions of one are not exact,
/// [`ErrorKind::Markdown`] where a header lacks `from`, `to` or `created`.
pub fn compose(first: &CheckpointDelta, second: &CheckpointDelta) -> Result<CheckpointDelta> {
    if first.to() != second.from() {
        let message = format!(
            "the first delta leads to {:?}, the second is from {:?}",
            first.to().unwrap_or_default(),
            second.from().unwrap_or_default()
        );
        return Err(Error::new(ErrorKind::Base, message));
    }
    let (first, second) = (Exact::of(first)?, Exact::of(second)?);
    if first.ends.after != second.ends.before {
        let (to, from) = (&first.ends.after, &second.ends.before);
        let message = format!("the first delta leads to {to}, the second is from {from}");
        return Err(Error::new(ErrorKind::Base, message));
    }
    let patch = first.patch.then(&second.patch);
    let header =
        Header { from: first.header.from, to: second.header.to, created: second.header.created };
    let mut ends = PatchEnds { before: first.ends.before, after: second.ends.after };
    // A delta between two in canonical form says nothing of line ends.
    if ends.before.line_ends.is_some() || ends.after.line_ends.is_some() {
        for end in [&mut ends.before, &mut ends.after] {
            end.line_ends.get_or_insert_with(|| "LF".to_owned());
        }
    }
    rewritten(&header, &patch, &ends)
}

/// A delta of a patch alone: what it says to people is made of the lines that it knows.
fn rewritten(header: &Header, patch: &Patch, ends: &PatchEnds) -> Result<CheckpointDelta> {
    let mut changes = changes_of(patch)?;
    changes.modified.extend(line_ends(ends));
    CheckpointDelta::parse(written(header, &changes, patch, ends, |_| String::new()))
}

/// What the lines that come and go say, as a document of each.
fn changes_of(patch: &Patch) -> Result<Changes> {
    let document = |patch: &Patch| -> Result<Document> {
        let lines = patch.removed.values();
        Document::parse(lines.flat_map(|line| [line.as_str(), "\n"]).collect::<String>())
    };
    Ok(changes_between(&document(patch)?, &document(&patch.inverted())?))
}
