use super::{
    declared::Declarations,
    delta::CheckpointDelta,
    diff::header_value,
    document::Document,
    exact::{End, PatchEnds, Step, patch_of},
    full_state::Checkpoint,
    instructions::{Instruction, Instructions},
    lines::EditedLine,
    names::normal,
    patch::Patch,
    preview::preview,
};
use crate::{Error, ErrorKind, Result};

/// The checkpoint that a delta makes of another.
///
/// Instructions that name lines, as [`diff`](super::diff) writes them, are exact: what they take
/// away must stand there, and the result is checked. Instructions that people write are carried
/// out in their order by the grammar of `docs/checkpoints.md`, and then whatever the tables and
/// lists declare and no instruction has done; the header of the result gets the id and the time of
/// the delta's target, and its source as `parent`. What does not change keeps its bytes.
///
/// Every declared change is carried out, or the delta is refused: [`preview`] says beforehand what
/// happens.
///
/// Linear in the documents for exact instructions, and in their length times the number of
/// instructions and of entries in the tables for others: at most 1 GiB by that product.
///
/// # Errors
/// [`ErrorKind::Instruction`] with the line of the delta for what cannot be carried out, or what
/// nothing reads; nothing is applied then. [`ErrorKind::Limit`] for more work than that. Another error as of
/// [`Document::parse`] where the result would be too large.
pub fn apply(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<Checkpoint> {
    preview(checkpoint, delta).into_result()
}

/// How many bytes are read at most to carry out instructions by name and tables: each reads both
/// documents.
const MOST_READ: usize = 1 << 30;

/// Refuses a delta that it would take too long to carry out.
pub(super) fn expect_little_work(
    document: &Document,
    delta: &CheckpointDelta,
    declared: &Declarations,
    instructions: Option<&Instructions>,
) -> Result<()> {
    let given = instructions.map_or(0, |instructions| instructions.given.len());
    // Beside instructions each change is looked for in both checkpoints before it is made.
    let steps = given + declared.count() * if given > 0 { 4 } else { 1 };
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
) -> Result<Option<(Patch, Option<PatchEnds>)>> {
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
        return Err(error.copy_error());
    }
    match written {
        _ if !is_exact => Ok(None),
        Some(line) => {
            Err(Error::missing(line, "an instruction that names lines, as the others do"))
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
                return Err(Error::refused(line, message));
            }
            Ok(Some((patch_of(&steps, base)?, ends)))
        }
    }
}

/// What exact instructions make of a checkpoint.
///
/// # Errors
/// [`ErrorKind::Instruction`] where they are wrong, or do not fit the checkpoint.
pub(super) fn apply_exact(
    checkpoint: &Checkpoint,
    delta: &CheckpointDelta,
    instructions: &Instructions,
) -> Result<Document> {
    let base = checkpoint.document();
    if let (Some(lines), Some((line, ends))) = (&instructions.whole, &instructions.ends) {
        return whole(base, instructions, lines, *line, ends);
    }
    let Some((patch, ends)) = exact(delta, instructions)? else { return Ok(base.clone()) };
    let ends = ends.as_ref();
    let at_ends = instructions.ends.as_ref().map(|(line, _)| *line);
    if let Some(wrong) = patch.mismatch(&base.lines) {
        let expected =
            format!("line {} of the checkpoint to be {:?}", wrong.line + 1, wrong.expected);
        let line = instruction_of(instructions, wrong.line).or(at_ends).unwrap_or(1);
        let count = base.line_count();
        return Err(if wrong.line < count {
            Error::unmet(line, expected, format_args!("{:?}", base.lines.get(wrong.line)))
        } else {
            Error::wrong(line, format_args!("the checkpoint has {count} lines"), expected)
        });
    }
    let check = |which: &str, expected: &End, found: &Document| {
        expect_end(which, expected, found, at_ends.unwrap_or(1))
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
    match ends {
        Some(ends) => ended(result, &ends.after, at_ends.unwrap_or(1)),
        None => Ok(result),
    }
}

/// The result of a delta with its lines ended as the delta says, where it does.
fn ended(result: Document, expected: &End, line: usize) -> Result<Document> {
    let result = match &expected.line_ends {
        None => result,
        Some(words) => {
            let text = result.lines.ended(words).ok_or_else(|| {
                Error::unmet(line, "how lines end, as in `CRLF, 9 none`", format_args!("{words:?}"))
            })?;
            Document::parse(text)?
        }
    };
    expect_end("a result", expected, &result, line)?;
    Ok(result)
}

/// Refuses a checkpoint that is not the one that a delta is from, or leads to.
fn expect_end(which: &str, expected: &End, found: &Document, line: usize) -> Result<()> {
    let found = End::of(found);
    if *expected == found {
        return Ok(());
    }
    let End { lines, fingerprint, .. } = expected;
    let expected = format!("{which} of {lines} lines with the fingerprint {fingerprint}");
    let found = format!("{} lines with {}", found.lines, found.fingerprint);
    Err(Error::unmet(line, expected, found))
}

/// The checkpoint that a delta has all the lines of.
fn whole(
    base: &Document,
    instructions: &Instructions,
    lines: &[String],
    line: usize,
    ends: &PatchEnds,
) -> Result<Document> {
    if let Some(given) = instructions.given.first() {
        let expected = "nothing beside the whole checkpoint";
        return Err(Error::unmet(given.line, expected, "an instruction"));
    }
    expect_end("a checkpoint", &ends.before, base, line)?;
    let lines: Vec<EditedLine> = lines.iter().cloned().map(EditedLine::New).collect();
    ended(base.rewritten(&lines)?, &ends.after, line)
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
pub(super) fn expect_source(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<()> {
    let front = delta.document().front_matter();
    let Some(from) = front.and_then(|front| front.field("from")) else { return Ok(()) };
    match checkpoint.header("checkpoint") {
        Some(id) if normal(&header_value(id)) != normal(&from.value) && !from.value.is_empty() => {
            let expected = format!("the checkpoint {:?}", from.value);
            Err(Error::unmet(from.line + 1, expected, format_args!("{id:?}")))
        }
        _ => Ok(()),
    }
}
