//! `afterimage checkpoint prune`: deltas that a later checkpoint has absorbed.

use std::{fs, io::Write};

use afterimage::checkpoint::{History, Problem, ProblemKind};

use super::{args, history::notes, json::Pruned, read};
use crate::{
    failure::{Failure, Outcome},
    output::Output,
    text::{counted, printable},
};

pub(super) fn run(args: &args::Prune) -> Outcome {
    let read::Folder { documents, special } = read::folder(&args.folder)?;
    let history = History::new(documents);
    // What a damaged file keeps from being absorbed.
    let keeps = |problem: &&Problem| {
        matches!(problem.kind, ProblemKind::Mismatch | ProblemKind::Unknown | ProblemKind::Unnamed)
    };
    notes(special.iter().chain(history.problems()).filter(keeps));
    let absorbed: Vec<String> = history.absorbed().into_iter().map(str::to_owned).collect();
    let before: Vec<String> =
        history.order().iter().filter(|id| history.leads_to(id)).cloned().collect();
    let after = history.without_absorbed();
    // What only the deltas led to.
    let lost: Vec<&String> = before.iter().filter(|id| !after.leads_to(id)).collect();
    if args.remove {
        for name in &absorbed {
            let path = args.folder.join(name);
            fs::remove_file(&path).map_err(|error| {
                Failure::new(format!("cannot remove the delta: {error}")).file(&path)
            })?;
        }
    }
    let mut out = Output::new(args.common.coloring.color);
    if args.common.json {
        let lost = lost.into_iter().cloned().collect();
        out.answer(&Pruned { absorbed, lost, removed: args.remove })?;
        return Ok(out.flush()?);
    }
    for name in &absorbed {
        let did = if args.remove { "removed" } else { "absorbed" };
        writeln!(out, "{did} {}", printable(name))?;
    }
    for id in &lost {
        let id = printable(id);
        let how = if args.remove { "can" } else { "could" };
        writeln!(out, "{id} {how} no longer be made anew: only these deltas lead to it")?;
    }
    let count = counted(absorbed.len() as u64, "delta");
    let hint = match (absorbed.is_empty(), args.remove) {
        (false, false) => "; --remove removes them",
        _ => "",
    };
    writeln!(out, "{count} absorbed by a later checkpoint{hint}")?;
    Ok(out.flush()?)
}
