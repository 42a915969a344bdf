//! `afterimage checkpoint`: checkpoints in Markdown, and the deltas between them.

pub(crate) mod args;
mod diagnostic;
mod draft;
mod history;
pub(crate) mod json;
mod lint;
mod prune;
mod read;

use std::io::Write;

use afterimage::{
    checkpoint::{
        Checkpoint, CheckpointDelta, Diagnostic, DiffForm, DiffOptions, Occasion, RemovedText,
        Trigger, TriggerPolicy, compose, diff, invert, is_timestamp, preview, shrink, validate,
    },
    tokens,
};

use self::args::Command;
use serde::Serialize;

use crate::{
    failure::{Failure, Outcome, Stop},
    output::{self, Output, note},
    text::{counted, printable},
};

pub(crate) fn run(args: &args::Checkpoint) -> Outcome {
    match &args.command {
        Command::Lint(args) => lint::run(args),
        Command::Diff(args) => run_diff(args),
        Command::Apply(args) => run_apply(args),
        Command::Validate(args) => run_validate(args),
        Command::Invert(args) => run_invert(args),
        Command::Compose(args) => run_compose(args),
        Command::Prune(args) => prune::run(args),
        Command::Due(args) => run_due(args),
        Command::History(args) => history::run(args),
        Command::Draft(args) => draft::run(args),
        Command::Shrink(args) => run_shrink(args),
    }
}

/// Now, to the second.
fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Prints Markdown, or an object that has it.
fn print<A: Serialize>(common: args::Common, text: &str, answer: impl FnOnce() -> A) -> Outcome {
    let mut out = Output::new(common.coloring.color);
    if common.json {
        out.answer(&answer())?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    Ok(out.flush()?)
}

fn run_diff(args: &args::Diff) -> Outcome {
    read::one_is_standard_input([&args.before, &args.after])?;
    let (before, after) = (read::checkpoint(&args.before)?, read::checkpoint(&args.after)?);
    let of_after = || after.created().filter(|time| is_timestamp(time)).map(str::to_owned);
    let created = args.created.clone().or_else(of_after);
    let form = if args.bounded { DiffForm::Bounded } else { DiffForm::Exact };
    let options = DiffOptions::created(created.unwrap_or_else(now)).with_form(form);
    let delta = between(&before, &after, &options)?;
    print(args.common, delta.text(), || json::delta(&delta))
}

/// The delta from a checkpoint to another one.
fn between(
    before: &Checkpoint,
    after: &Checkpoint,
    options: &DiffOptions,
) -> Outcome<CheckpointDelta> {
    if before.id() == after.id() && before.text() == after.text() {
        let id = before.id().unwrap_or_default();
        let failure = Failure::new(format!("both are the checkpoint {id:?}: nothing changed"));
        let failure = failure.hint("a delta leads from a checkpoint to a later one");
        return Err(failure.into());
    }
    Ok(diff(before, after, options)?)
}

fn run_apply(args: &args::Apply) -> Outcome {
    read::one_is_standard_input([&args.before, &args.delta])?;
    let (before, file) = (read::checkpoint(&args.before)?, read::delta(&args.delta)?);
    let said = preview(&before, &file.delta);
    if args.lenient {
        let (result, left) = said.into_partial().map_err(|errors| file.refuse_all(&errors))?;
        print(args.common, result.text(), || {
            let left = left.iter().map(|error| Diagnostic::refused(error, file.delta.document()));
            let left = left.map(|left| json::finding(&left)).collect();
            json::LenientAnswer { checkpoint: json::checkpoint(&result), left }
        })?;
        if left.is_empty() {
            return Ok(());
        }
        file.report(&left);
        return Err(Stop::Negative);
    }
    // Each line that is refused is worth knowing at once.
    if said.refusals().len() > 1 {
        return Err(file.refuse_all(said.refusals()));
    }
    let result = said.into_result().map_err(|error| file.refuse(error))?;
    print(args.common, result.text(), || json::checkpoint(&result))
}

fn run_invert(args: &args::Invert) -> Outcome {
    let file = read::delta(&args.delta)?;
    let back = invert(&file.delta).map_err(|error| file.refuse(error))?;
    print(args.common, back.text(), || json::delta(&back))
}

fn run_compose(args: &args::Compose) -> Outcome {
    read::one_is_standard_input(&args.deltas)?;
    let mut whole: Option<CheckpointDelta> = None;
    for path in &args.deltas {
        let next = read::delta(path)?;
        whole = Some(
            match whole {
                // What cannot be composed is said of the file that shows it.
                None => invert(&next.delta).map(|_| next.delta.clone()),
                Some(first) => compose(&first, &next.delta),
            }
            .map_err(|error| next.refuse(error))?,
        );
    }
    let whole = whole.ok_or_else(|| Failure::new("expected two deltas"))?;
    print(args.common, whole.text(), || json::delta(&whole))
}

fn run_due(args: &args::Due) -> Outcome {
    read::one_is_standard_input([&args.last, &args.now])?;
    let counter = tokens::by_name(args.tokenizer.name())
        .ok_or_else(|| Failure::new("this build has no such tokenizer"))?;
    let (last, now) = (read::checkpoint(&args.last)?, read::checkpoint(&args.now)?);
    let occasion = match args.occasion {
        args::Occasion::Work => Occasion::Work,
        args::Occasion::Checkpoint => Occasion::Checkpoint,
        args::Occasion::Audit => Occasion::Audit,
    };
    let policy = TriggerPolicy::default().with_shares(args.token_share, args.section_share);
    let found = policy.due(&last, &now, occasion, &counter);
    let (name, sentence) = match found {
        Some(Trigger::CheckpointMade) => (Some("checkpoint-made"), "a checkpoint was made"),
        Some(Trigger::DirectionChanged) => {
            (Some("direction-changed"), "Problem, Session Intent or Decisions changed")
        }
        Some(Trigger::SignificantChange) => {
            (Some("significant-change"), "more of the tokens or sections changed than may")
        }
        Some(Trigger::AuditRequired) => (Some("audit-required"), "someone asks what happened"),
        None => (None, "too little changed"),
    };
    let mut out = Output::new(args.common.coloring.color);
    if args.common.json {
        out.answer(&json::Due { due: found.is_some(), trigger: name })?;
    } else {
        writeln!(out, "{}: {sentence}", if found.is_some() { "due" } else { "not due" })?;
    }
    out.flush()?;
    if found.is_some() { Ok(()) } else { Err(Stop::Negative) }
}

fn run_validate(args: &args::Validate) -> Outcome {
    read::one_is_standard_input([&args.before, &args.delta, &args.after])?;
    let (before, file) = (read::checkpoint(&args.before)?, read::delta(&args.delta)?);
    let after = read::checkpoint(&args.after)?;
    let differences = validate(&before, &file.delta, &after).map_err(|error| file.refuse(error))?;
    let mut out = Output::new(args.common.coloring.color);
    if args.common.json {
        out.answer(&json::Validated {
            valid: differences.is_empty(),
            differences: differences.iter().map(json::difference).collect(),
        })?;
    } else if differences.is_empty() {
        writeln!(out, "{}", valid(&before, &file.delta, &after))?;
    }
    for found in differences.iter().filter(|_| !args.common.json) {
        writeln!(out, "{}:{}", args.after.display(), found.line)?;
        for (sign, line) in [('-', &found.expected), ('+', &found.found)] {
            if let Some(line) = line {
                writeln!(out, "  {sign} {}", crate::text::printable(line))?;
            }
        }
    }
    out.flush()?;
    if differences.is_empty() {
        return Ok(());
    }
    let count = counted(differences.len() as u64, "line");
    let failure =
        Failure::new(format!("the delta gives another checkpoint: it differs in {count}"));
    output::report(&failure.file(&args.after).hint("`-` is expected, `+` is what the delta gives"));
    Err(Stop::Negative)
}

fn valid(before: &Checkpoint, delta: &CheckpointDelta, after: &Checkpoint) -> String {
    let id = |id: Option<&str>| id.unwrap_or("–").to_owned();
    let (before, delta, after) = (id(before.id()), id(delta.id()), id(after.id()));
    format!("{delta} makes {after} of {before}")
}

/// The first line of what went, and how many there were.
fn gone_in_short(gone: &RemovedText) -> String {
    let mut lines = gone.text.trim().lines();
    let first = lines.next().unwrap_or_default();
    match lines.count() as u64 {
        0 => printable(first).into_owned(),
        more => format!("{} (and {})", printable(first), counted(more, "more line")),
    }
}

fn run_shrink(args: &args::Shrink) -> Outcome {
    let counter = tokens::by_name(args.tokenizer.name())
        .ok_or_else(|| Failure::new("this build has no such tokenizer"))?;
    let checkpoint = read::checkpoint(&args.file)?;
    let shrunk =
        shrink(&checkpoint, args.tokens, &counter).map_err(|error| error.in_file(&args.file))?;
    for gone in shrunk.gone.iter().filter(|_| !args.common.json) {
        let how = if gone.is_summarised { "summarised" } else { "left out" };
        let text = gone_in_short(gone);
        note(&format!("{how}, {} (line {}): {text}", printable(&gone.section), gone.line));
    }
    print(args.common, shrunk.checkpoint.text(), || json::shrunk(&shrunk))
}
