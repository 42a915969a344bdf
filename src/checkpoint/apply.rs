use super::{
    delta::CheckpointDelta,
    document::Document,
    exact::{End, Ends, Step, patch_of},
    full_state::Checkpoint,
    grammar::{Instruction, Instructions},
    names::normal,
    patch::Patch,
    perform::Performing,
};
use crate::{Error, ErrorKind, Result};

/// The checkpoint that a delta makes of another.
///
/// Instructions that name lines, as [`diff`](super::diff) writes them, are exact: what they take
/// away must stand there, and the result is checked. Instructions that people write are carried
/// out in their order by the grammar of `docs/checkpoints.md`, and a delta without instructions is
/// applied from its tables; the header of the result then gets the id and the time of the delta's
/// target. What does not change keeps its bytes.
///
/// Linear in the documents for exact instructions, and in their length times the number of
/// instructions, or of entries in the tables, for others: at most 1 GiB by that product.
///
/// # Errors
/// [`ErrorKind::Instruction`] with the line of the delta for what cannot be carried out; nothing
/// is applied then. [`ErrorKind::Limit`] for more work than that. Another error as of
/// [`Document::parse`] where the result would be too large.
pub fn apply(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<Checkpoint> {
    let instructions = delta.instructions();
    let exact = match &instructions {
        Some(instructions) => exact(delta, instructions)?,
        None => None,
    };
    let document = if let Some((patch, ends)) = exact {
        apply_exact(checkpoint, delta, &patch, ends.as_ref())?
    } else {
        expect_source(checkpoint, delta)?;
        let document = checkpoint.document();
        expect_little_work(document, delta, instructions.as_ref())?;
        let document = match &instructions {
            Some(instructions) => written(document, delta, instructions)?,
            None => from_tables(document, delta)?,
        };
        arrived(document, checkpoint, delta)?
    };
    let result = Checkpoint::from(document);
    Ok(match delta.to() {
        Some(to) => result.named(to),
        None => result,
    })
}

/// How many bytes are read at most to carry out instructions by name and tables: each reads both
/// documents.
const MOST_READ: usize = 1 << 30;

/// Refuses a delta that it would take too long to carry out.
fn expect_little_work(
    document: &Document,
    delta: &CheckpointDelta,
    instructions: Option<&Instructions>,
) -> Result<()> {
    let entries = || -> usize {
        let (removed, added) = (delta.removed(), delta.added());
        removed.iter().chain(&added).map(|part| part.entries.len()).sum::<usize>()
            + delta.modified().len()
    };
    let steps = instructions.map_or_else(entries, |instructions| instructions.given.len());
    let steps = steps + delta.transitions().len();
    let bytes = document.text().len() + delta.text().len();
    if steps.saturating_mul(bytes) <= MOST_READ {
        return Ok(());
    }
    let message = format!(
        "{steps} changes by name to {bytes} bytes take too long: the product is at most {MOST_READ}"
    );
    Err(Error::new(ErrorKind::Limit, message))
}

/// The patch of a delta whose instructions are exact, with what it is from and to.
///
/// # Errors
/// [`ErrorKind::Instruction`] where an instruction is wrong, or where exact ones and others are
/// mixed.
pub(super) fn exact(
    delta: &CheckpointDelta,
    instructions: &Instructions,
) -> Result<Option<(Patch, Option<Ends>)>> {
    let mut steps: Vec<(usize, Step)> = Vec::new();
    let (mut written, mut wrong) = (None, None);
    for given in &instructions.given {
        match &given.read {
            Ok(Instruction::Exact(step)) => steps.push((given.line, step.clone())),
            Ok(Instruction::Written(_)) => written = written.or(Some(given.line)),
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    let is_exact = instructions.ends.is_some() || !steps.is_empty();
    if let Some(error) = wrong.filter(|_| is_exact) {
        return Err(again(error));
    }
    match written {
        _ if !is_exact => Ok(None),
        Some(line) => {
            let message = "expected an instruction that names lines, as the others do";
            Err(Error::new(ErrorKind::Instruction, message).at_line(line as u64))
        }
        None => {
            let ends = instructions.ends.as_ref().map(|(_, ends)| ends.clone());
            let highest = steps.iter().map(|(_, step)| match step {
                Step::Replace { at, .. } | Step::Remove { at, .. } => at.end,
                Step::Add { at, .. } => *at,
                Step::Move { from, to } => from.end.max(*to),
            });
            let base = match &ends {
                Some(ends) => ends.before.lines,
                None => highest.max().unwrap_or(0),
            };
            // Nothing is set aside for lines that no document could have.
            if base > super::MAX_BYTES {
                let message = format!("no checkpoint has {base} lines");
                let line = delta.part("merge instructions").map_or(1, |(_, part)| part.line());
                return Err(Error::new(ErrorKind::Instruction, message).at_line(line as u64));
            }
            Ok(Some((patch_of(&steps, base)?, ends)))
        }
    }
}

/// An error once more, with its place.
fn again(error: &Error) -> Error {
    let place = error.place().clone();
    Error::new(error.kind(), error.message()).at(|at| *at = place)
}

fn apply_exact(
    checkpoint: &Checkpoint,
    delta: &CheckpointDelta,
    patch: &Patch,
    ends: Option<&Ends>,
) -> Result<Document> {
    let base = checkpoint.document();
    let instructions = delta.instructions().unwrap_or_default();
    let at_ends = instructions.ends.as_ref().map(|(line, _)| *line);
    if let Some(wrong) = patch.mismatch(&base.lines) {
        let found = if wrong.line < base.line_count() {
            format!("found {:?}", base.lines.get(wrong.line))
        } else {
            format!("the checkpoint has {} lines", base.line_count())
        };
        let message = format!(
            "expected line {} of the checkpoint to be {:?}, {found}",
            wrong.line + 1,
            wrong.expected
        );
        let line = instruction_of(&instructions, wrong.line).or(at_ends).unwrap_or(1);
        return Err(Error::new(ErrorKind::Instruction, message).at_line(line as u64));
    }
    let check = |which: &str, expected: &End, found: &Document| {
        let found = End::of(found);
        if *expected == found {
            return Ok(());
        }
        let message = format!(
            "expected {which} of {} lines with the fingerprint {}, found {} lines with {}",
            expected.lines, expected.fingerprint, found.lines, found.fingerprint
        );
        Err(Error::new(ErrorKind::Instruction, message).at_line(at_ends.unwrap_or(1) as u64))
    };
    let patch = if let Some(ends) = ends {
        check("a checkpoint", &ends.before, base)?;
        patch.clone()
    } else {
        // Without a fingerprint nothing says how long the checkpoint is but itself.
        let steps = instructions.given.iter().filter_map(|given| match &given.read {
            Ok(Instruction::Exact(step)) => Some((given.line, step.clone())),
            _ => None,
        });
        patch_of(&steps.collect::<Vec<_>>(), base.line_count())?
    };
    let result = base.rewritten(&patch.edited())?;
    if let Some(ends) = ends {
        check("a result", &ends.after, &result)?;
    }
    Ok(result)
}

/// The line of the instruction that takes a line of the checkpoint away.
fn instruction_of(instructions: &Instructions, index: usize) -> Option<usize> {
    let takes = |step: &Step| match step {
        Step::Replace { at, .. } | Step::Remove { at, .. } => at.contains(&index),
        _ => false,
    };
    let mut given = instructions.given.iter();
    let found =
        given.find(|given| matches!(&given.read, Ok(Instruction::Exact(step)) if takes(step)));
    found.map(|given| given.line)
}

/// Refuses a delta that says it is from another checkpoint.
fn expect_source(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<()> {
    let front = delta.document().front_matter();
    let Some(from) = front.and_then(|front| front.field("from")) else { return Ok(()) };
    match checkpoint.header("checkpoint") {
        Some(id) if normal(id) != normal(&from.value) && !from.value.is_empty() => {
            let message = format!("the delta is from {:?}, the checkpoint is {id:?}", from.value);
            Err(Error::new(ErrorKind::Instruction, message).at_line(from.line as u64 + 1))
        }
        _ => Ok(()),
    }
}

/// Gives the header of a result the id and the time of where the delta leads to.
fn arrived(
    document: Document,
    checkpoint: &Checkpoint,
    delta: &CheckpointDelta,
) -> Result<Document> {
    let mut document = document;
    let fields = [("checkpoint", delta.to()), ("created", delta.created())];
    for (key, value) in fields {
        if let (Some(_), Some(value)) = (checkpoint.header(key), value)
            && let Some(edit) = document.set_field(key, value)
        {
            document = document.edited(vec![edit])?;
        }
    }
    Ok(document)
}

fn written(
    document: &Document,
    delta: &CheckpointDelta,
    instructions: &Instructions,
) -> Result<Document> {
    let mut document = document.clone();
    for given in &instructions.given {
        match &given.read {
            Ok(Instruction::Written(order)) => {
                document = Performing { delta, line: given.line }.perform(&document, order)?;
            }
            Ok(Instruction::Exact(_)) => {}
            Err(error) => return Err(again(error)),
        }
    }
    Ok(document)
}

/// Applies what the tables and lists of a delta say: what is removed, modified, added, and which
/// states change.
fn from_tables(document: &Document, delta: &CheckpointDelta) -> Result<Document> {
    let mut document = document.clone();
    let (removed, added) = (delta.removed(), delta.added());
    let (modified, transitions) = (delta.modified(), delta.transitions());
    let is_known = ["added", "modified", "removed", "status transitions"]
        .iter()
        .any(|name| delta.part(name).is_some());
    if !is_known {
        let message = "expected Merge Instructions, or Added, Modified, Removed or Status \
                       Transitions under Changes";
        return Err(Error::new(ErrorKind::Instruction, message).at_line(1));
    }
    for name in ["modified", "status transitions"] {
        if let Some(line) = delta.broken_table(name) {
            let message = "expected a table: titles, a line `|---|` for each, and rows";
            return Err(Error::new(ErrorKind::Instruction, message).at_line(line as u64));
        }
    }
    for part in &removed {
        for entry in &part.entries {
            let performing = Performing { delta, line: part.line };
            let text = entry.first().map(String::as_str).unwrap_or_default();
            let label = part.label.as_deref().and_then(|label| section_of(&document, label));
            let block = performing.wanted(&document, text, label.as_deref())?;
            let edit = document.remove_lines(block.lines.clone());
            document = document.edited(vec![edit])?;
        }
    }
    for change in &modified {
        document = Performing { delta, line: change.line }.modify(&document, change)?;
    }
    for part in added.iter().filter(|part| !part.entries.is_empty()) {
        let performing = Performing { delta, line: part.line };
        let label = part.label.as_deref().unwrap_or_default();
        let place = section_of(&document, label).or_else(|| files_go_to(&document, part));
        let Some(place) = place else {
            let message =
                format!("expected the name of a section over what is added, found {label:?}");
            return Err(Error::new(ErrorKind::Instruction, message).at_line(part.line as u64));
        };
        let Some(section) = document.named(&place).next() else { continue };
        let edit = performing.append_part(&document, section, part)?;
        document = document.edited(vec![edit])?;
    }
    for change in &transitions {
        let performing = Performing { delta, line: change.line };
        let edit = performing.transition(&document, change, None)?;
        document = document.edited(vec![edit])?;
    }
    Ok(document)
}

/// The section that a label names, alone or with a word behind it.
fn section_of(document: &Document, label: &str) -> Option<String> {
    let label = normal(label);
    let name = label.split(" (").next().unwrap_or_default();
    document.named(name).next().map(|section| section.title.clone())
}

/// Where a table of files goes.
fn files_go_to(document: &Document, part: &super::delta::Part) -> Option<String> {
    let is_of_files = part.columns.iter().flatten().any(|title| normal(title) == "file");
    is_of_files.then(|| section_of(document, "Artifact Trail")).flatten()
}
