//! `afterimage checkpoint lint`: what documents lack, and what a delta would do.

use std::io::Write;

use afterimage::checkpoint::{
    Checkpoint, CheckpointDelta, Diagnostic, DocumentKind, Effect, Preview, Severity, lint, preview,
};

use super::{
    args::{self, Kind},
    diagnostic, json, read,
};
use crate::{
    failure::{Failure, Outcome, Stop},
    output::Output,
    text::{counted, printable},
};

pub(super) fn run(args: &args::Lint) -> Outcome {
    read::one_is_standard_input(args.files.iter().chain(&args.against))?;
    let base = args.against.as_deref().map(read::checkpoint).transpose()?;
    let mut out = Output::new(args.coloring.color);
    let mut outcome = Ok(());
    for path in &args.files {
        let document = match read::document(path) {
            Ok(document) => document,
            Err(Stop::Failure(failure)) => {
                out.flush()?;
                crate::output::report(&failure);
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
        let mut found = lint(&document, kind);
        let said = match &base {
            Some(base) if kind == DocumentKind::Delta => {
                let delta = CheckpointDelta::parse(document.text());
                Some(preview(base, &delta.map_err(|error| error.in_file(path))?))
            }
            Some(_) => {
                let failure = Failure::new("only a delta is applied to a checkpoint").file(path);
                return Err(failure.hint("leave out --against, or say --kind delta").into());
            }
            None => None,
        };
        let refusals = said.as_ref().map_or(&[][..], Preview::refusals);
        found.extend(refusals.iter().map(|error| Diagnostic::refused(error, &document)));
        found.sort_by_key(|found| (found.line, found.column, found.severity));
        let count = |severity: Severity| found.iter().filter(|f| f.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error) as u64, count(Severity::Warning) as u64);
        if errors > 0 && outcome.is_ok() {
            outcome = Err(Stop::Negative);
        }
        let name = match kind {
            DocumentKind::Checkpoint => "checkpoint",
            DocumentKind::Delta => "delta",
        };
        if args.json {
            out.answer(&json::Linted {
                file: path.display().to_string(),
                kind: name,
                errors,
                warnings,
                findings: found.iter().map(json::finding).collect(),
                applies: said.as_ref().map(|said| said.refusals().is_empty()),
                effects: said.as_ref().map(json::effects),
            })?;
            continue;
        }
        let columns = out.width;
        let shown =
            diagnostic::DiagnosticView { path, document: &document, paint: out.paint, columns };
        found.iter().try_for_each(|found: &Diagnostic| shown.write(&mut out, found))?;
        if let (Some(said), Some(base)) = (&said, &base) {
            effects(said, base, &mut out)?;
        }
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        writeln!(out, "{}: {name}, {errors}, {warnings}", path.display())?;
    }
    out.flush()?;
    outcome
}

/// What `apply` would do, one line for each line of the delta that does something.
fn effects(said: &Preview, base: &Checkpoint, out: &mut Output) -> Outcome {
    let refused = said.refusals().len() as u64;
    let id = base.id().unwrap_or("the checkpoint");
    let id = printable(id);
    if refused > 0 {
        let refusals = counted(refused, "refusal");
        writeln!(out, "apply would leave {id} as it is: {refusals}; without them it would change")?;
    } else {
        writeln!(out, "apply would change {id}")?;
    }
    for Effect { line, section, gone, come } in said.effects() {
        let section = printable(section);
        writeln!(out, "  line {line}: {section}, -{gone} +{come}")?;
    }
    if said.effects().is_empty() {
        writeln!(out, "  nothing")?;
    }
    writeln!(out)?;
    Ok(())
}
