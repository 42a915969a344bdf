//! `afterimage checkpoint`: checkpoints in Markdown, and the deltas between them.

pub(crate) mod args;
mod diagnostic;
mod draft;
mod history;
mod json;
mod read;

use std::io::Write;

use afterimage::{
    checkpoint::{
        Checkpoint, CheckpointDelta, Diagnostic, DiffOptions, DocumentKind, Gone, Severity, apply,
        diff, is_timestamp, lint, shrink, validate,
    },
    json::{Object, Value},
    tokens,
};

use self::args::{Command, Kind};
use crate::{
    failure::{Failure, Outcome, Stop},
    json::object,
    output::{Output, note},
    text::{counted, printable},
};

pub(crate) fn run(args: &args::Checkpoint) -> Outcome {
    match &args.command {
        Command::Lint(args) => run_lint(args),
        Command::Diff(args) => run_diff(args),
        Command::Apply(args) => run_apply(args),
        Command::Validate(args) => run_validate(args),
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
fn print(common: args::Common, text: &str, object: impl FnOnce() -> Object) -> Outcome {
    let mut out = Output::new(common.coloring.color);
    if common.json {
        out.json(object())?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    Ok(out.flush()?)
}

fn run_lint(args: &args::Lint) -> Outcome {
    read::one_is_standard_input(&args.files)?;
    let mut out = Output::new(args.coloring.color);
    let mut outcome = Ok(());
    for path in &args.files {
        let document = match read::document(path) {
            Ok(document) => document,
            Err(Stop::Failure(failure)) => {
                out.flush()?;
                failure.report();
                outcome = Err(Stop::Reported);
                continue;
            }
            Err(stop) => return Err(stop),
        };
        let kind = match args.kind {
            Some(Kind::Checkpoint) => DocumentKind::Checkpoint,
            Some(Kind::Delta) => DocumentKind::Delta,
            None => DocumentKind::of(&document),
        };
        let found = lint(&document, kind);
        let count = |severity: Severity| found.iter().filter(|f| f.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error) as u64, count(Severity::Warning) as u64);
        if errors > 0 {
            outcome = Err(Stop::Reported);
        }
        let name = match kind {
            DocumentKind::Checkpoint => "checkpoint",
            DocumentKind::Delta => "delta",
        };
        if args.json {
            out.json(object! {
                "file": path.display().to_string(),
                "kind": name,
                "errors": errors,
                "warnings": warnings,
                "findings": found.iter().map(json::finding).collect::<Value>(),
            })?;
            continue;
        }
        let columns = out.width;
        let shown = diagnostic::Shown { path, document: &document, paint: out.paint, columns };
        found.iter().try_for_each(|found: &Diagnostic| shown.write(&mut out, found))?;
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        writeln!(out, "{}: {name}, {errors}, {warnings}", path.display())?;
    }
    out.flush()?;
    outcome
}

fn run_diff(args: &args::Diff) -> Outcome {
    read::one_is_standard_input([&args.before, &args.after])?;
    let (before, after) = (read::checkpoint(&args.before)?, read::checkpoint(&args.after)?);
    let of_after = || after.created().filter(|time| is_timestamp(time)).map(str::to_owned);
    let created = args.created.clone().or_else(of_after);
    let options = DiffOptions::created(created.unwrap_or_else(now));
    let delta = diff(&before, &after, &options)?;
    print(args.common, delta.text(), || json::delta(&delta))
}

fn run_apply(args: &args::Apply) -> Outcome {
    read::one_is_standard_input([&args.before, &args.delta])?;
    let (before, file) = (read::checkpoint(&args.before)?, read::delta(&args.delta)?);
    let result = apply(&before, &file.delta).map_err(|error| file.refuse(error))?;
    print(args.common, result.text(), || json::checkpoint(&result))
}

fn run_validate(args: &args::Validate) -> Outcome {
    read::one_is_standard_input([&args.before, &args.delta, &args.after])?;
    let (before, file) = (read::checkpoint(&args.before)?, read::delta(&args.delta)?);
    let after = read::checkpoint(&args.after)?;
    let differences = validate(&before, &file.delta, &after).map_err(|error| file.refuse(error))?;
    let mut out = Output::new(args.common.coloring.color);
    if args.common.json {
        out.json(object! {
            "valid": differences.is_empty(),
            "differences": differences.iter().map(json::difference).collect::<Value>(),
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
    let failure = Failure::new(format!("the delta gives another checkpoint: {count} differ"));
    Err(failure.file(&args.after).hint("`-` is expected, `+` is what the delta gives").into())
}

fn valid(before: &Checkpoint, delta: &CheckpointDelta, after: &Checkpoint) -> String {
    let id = |id: Option<&str>| id.unwrap_or("–").to_owned();
    let (before, delta, after) = (id(before.id()), id(delta.id()), id(after.id()));
    format!("{delta} makes {after} of {before}")
}

/// The first line of what went, and how many there were.
fn gone_in_short(gone: &Gone) -> String {
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
    print(args.common, shrunk.checkpoint.text(), || {
        let mut object = json::checkpoint(&shrunk.checkpoint);
        object.extend(object! {
            "tokens": shrunk.tokens as u64,
            "gone": shrunk.gone.iter().map(json::gone).collect::<Value>(),
        });
        object
    })
}
