//! Exact instructions: what they make of a checkpoint.

use super::{
    delta::CheckpointDelta,
    diff::header_value,
    document::Document,
    exact::{End, PatchEnds, patch_of},
    full_state::Checkpoint,
    instructions::Instructions,
    lines::EditedLine,
    names::normal,
    patch::Patch,
    preview::preview,
};
use crate::{Error, Result};

/// The checkpoint that a delta makes of another.
///
/// Instructions that name lines, as [`diff`](super::diff) writes them, are exact: what they take
/// away must stand there, and the result is checked. In a delta that people write, instructions say
/// where declared changes go, by the sentences of `docs/checkpoints.md`, and all that the tables
/// and lists declare is carried out; the header of the result gets the id and the time of the
/// delta's target, and its source as `parent`. What does not change keeps its bytes.
///
/// Every declared change is carried out, or the delta is refused: [`preview`] says beforehand what
/// happens, and has what can be carried out where a part is refused.
///
/// Linear in the documents for exact instructions, and in their length times the number of
/// instructions and of entries in the tables for others: at most 1 GiB by that product.
///
/// # Errors
/// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) with the line of the delta for what
/// cannot be carried out, or what nothing reads; nothing is applied then.
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more work than that. Another error as of
/// [`Document::parse`] where the result would be too large.
pub fn apply(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<Checkpoint> {
    preview(checkpoint, delta).into_result()
}

/// The patch of a delta whose instructions are exact, with what it is from and to; `None` for
/// others.
///
/// # Errors
/// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where an instruction is wrong, or
/// where exact ones and others are mixed.
pub(super) fn exact(instructions: &Instructions) -> Result<Option<(Patch, Option<PatchEnds>)>> {
    let Instructions { ends, steps, orders, wrong, .. } = instructions;
    if !instructions.are_exact() {
        return Ok(None);
    }
    if let Some(error) = wrong.first() {
        return Err(error.copy_error());
    }
    if let Some((line, _)) = orders.first() {
        return Err(Error::missing(*line, "an instruction that names lines, as the others do"));
    }
    let highest = steps.iter().map(|(_, step)| step.taken.end.max(step.place));
    let base = match ends {
        Some((_, ends)) => ends.before.lines,
        None => highest.max().unwrap_or(0),
    };
    // Nothing is set aside for lines that no document could have.
    if base > super::MAX_BYTES {
        let line = ends.as_ref().map(|(line, _)| *line).or(instructions.first_line());
        return Err(Error::refused(line.unwrap_or(1), format!("no checkpoint has {base} lines")));
    }
    Ok(Some((patch_of(steps, base)?, ends.as_ref().map(|(_, ends)| ends.clone()))))
}

/// What exact instructions make of a checkpoint.
///
/// # Errors
/// [`ErrorKind::Instruction`](crate::ErrorKind::Instruction) where they are wrong, or do not fit
/// the checkpoint.
pub(super) fn apply_exact(base: &Document, instructions: &Instructions) -> Result<Document> {
    let line_of_ends = instructions.ends.as_ref().map_or(1, |(line, _)| *line);
    let edited: Vec<EditedLine> = if let Some(lines) = &instructions.whole {
        if let Some(line) = instructions.first_line() {
            let expected = "nothing beside the whole checkpoint";
            return Err(Error::unmet(line, expected, "an instruction"));
        }
        lines.iter().cloned().map(EditedLine::New).collect()
    } else {
        let Some((patch, ends)) = exact(instructions)? else { return Ok(base.clone()) };
        if let Some((index, wanted)) = patch.mismatch(&base.lines) {
            let expected = format!("line {} of the checkpoint to be {wanted:?}", index + 1);
            let line = instruction_of(instructions, index).unwrap_or(line_of_ends);
            let count = base.line_count();
            return Err(if index < count {
                Error::unmet(line, expected, format_args!("{:?}", base.lines.get(index)))
            } else {
                Error::wrong(line, format_args!("the checkpoint has {count} lines"), expected)
            });
        }
        match ends {
            Some(_) => patch.edited(),
            // Without a fingerprint nothing says how long the checkpoint is but itself.
            None => patch_of(&instructions.steps, base.line_count())?.edited(),
        }
    };
    let Some((line, ends)) = &instructions.ends else { return base.rewritten(&edited) };
    expect_end("a checkpoint", &ends.before, base, *line)?;
    ended(base.rewritten(&edited)?, &ends.after, *line)
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
    Err(Error::unmet(line, format_args!("{which} of {expected}"), found))
}

/// The line of the instruction that takes a line of the checkpoint away.
fn instruction_of(instructions: &Instructions, index: usize) -> Option<usize> {
    let mut steps = instructions.steps.iter().filter(|(_, step)| !step.is_move());
    let found = steps.find(|(_, step)| step.taken.contains(&index));
    found.map(|(line, _)| *line)
}

/// Refuses a delta that says it is from another checkpoint.
pub(super) fn expect_source(checkpoint: &Checkpoint, delta: &CheckpointDelta) -> Result<()> {
    let front = delta.document().front_matter();
    let from = front.and_then(|front| front.field("from")).filter(|from| !from.value.is_empty());
    match (from, checkpoint.header("checkpoint")) {
        (Some(from), Some(id)) if normal(&header_value(id)) != normal(&from.value) => {
            let expected = format!("the checkpoint {:?}", from.value);
            Err(Error::unmet(from.line + 1, expected, format_args!("{id:?}")))
        }
        _ => Ok(()),
    }
}
