//! `afterimage checkpoint history`: the order of a folder's checkpoints.

use std::{
    collections::{HashMap, HashSet},
    io::Write,
};

use afterimage::checkpoint::{History, Problem};

use super::{args, json, read};
use crate::{
    failure::Outcome,
    output::{Output, note},
    style,
    table::{Column, Table, plain},
};

pub(super) fn run(args: &args::History) -> Outcome {
    let read::Folder { documents, special } = read::folder(&args.folder)?;
    let history = History::new(documents);
    let mut out = Output::new(args.common.coloring.color);
    if let Some(id) = &args.at {
        let rebuilt = history.rebuild(id).map_err(|error| {
            let file = error.place().file.as_ref().map(|file| args.folder.join(file));
            match file {
                Some(file) => error.in_file(file),
                None => error.in_file(&args.folder),
            }
        })?;
        if args.common.json {
            out.answer(&json::checkpoint(&rebuilt))?;
        } else {
            out.write_all(rebuilt.text().as_bytes())?;
        }
        return Ok(out.flush()?);
    }
    if args.common.json {
        out.answer(&all(&history, &special))?;
    } else {
        page(&history, &mut out)?;
        notes(special.iter().chain(history.problems()));
    }
    Ok(out.flush()?)
}

/// The files and the times of the checkpoints that are there, by id.
fn stored(history: &History) -> HashMap<&str, (&str, Option<&str>)> {
    let mut stored = HashMap::new();
    for (name, checkpoint) in history.checkpoints() {
        if let Some(id) = checkpoint.id() {
            stored.entry(id).or_insert((name.as_str(), checkpoint.created()));
        }
    }
    stored
}

fn all(history: &History, special: &[Problem]) -> json::HistoryAnswer {
    let stored = stored(history);
    let owned = |text: &str| text.to_owned();
    let checkpoint = |id: &String| {
        let found = stored.get(id.as_str());
        json::StoredCheckpoint {
            checkpoint: id.clone(),
            file: found.map(|found| owned(found.0)),
            created: found.and_then(|found| found.1).map(owned),
        }
    };
    let absorbed: HashSet<&str> = history.absorbed().into_iter().collect();
    let deltas = history.deltas().iter().map(|(name, delta)| json::StoredDelta {
        file: name.clone(),
        from: delta.from().map(owned),
        to: delta.to().map(owned),
        absorbed: absorbed.contains(name.as_str()),
    });
    json::HistoryAnswer {
        checkpoints: history.order().iter().map(checkpoint).collect(),
        deltas: deltas.collect(),
        problems: special.iter().chain(history.problems()).map(json::problem).collect(),
    }
}

fn page(history: &History, out: &mut Output) -> Outcome {
    let table = Table::new([
        Column::text("CHECKPOINT", 24),
        Column::text("CREATED", 20),
        Column::text("FILE", 0),
    ]);
    table.head(out)?;
    let stored = stored(history);
    for id in history.order() {
        let found = stored.get(id.as_str());
        let created = found.and_then(|(_, created)| *created);
        let file = match found {
            Some((file, _)) => plain(*file),
            None if history.leads_to(id) => ("(made by deltas)".to_owned(), style::DIM),
            None => ("(not there)".to_owned(), style::DIM),
        };
        table.row(out, vec![plain(id.as_str()), plain(created.unwrap_or("–")), file])?;
    }
    if !history.deltas().is_empty() {
        writeln!(out)?;
        let table = Table::new([
            Column::text("FROM", 24),
            Column::text("TO", 24),
            Column::text("ABSORBED", 8),
            Column::text("DELTA", 0),
        ]);
        table.head(out)?;
        let absorbed: HashSet<&str> = history.absorbed().into_iter().collect();
        for (name, delta) in history.deltas() {
            let is_absorbed = if absorbed.contains(name.as_str()) { "yes" } else { "no" };
            let ends = [delta.from(), delta.to()].map(|id| plain(id.unwrap_or("–")));
            let [from, to] = ends;
            table.row(out, vec![from, to, plain(is_absorbed), plain(name.as_str())])?;
        }
    }
    Ok(out.flush()?)
}

/// Notes what is wrong with a history.
pub(super) fn notes<'p>(problems: impl IntoIterator<Item = &'p Problem>) {
    for problem in problems {
        let file = problem.file.as_ref().map(|file| format!("{file}: ")).unwrap_or_default();
        note(&format!("{}: {file}{}", problem.kind.as_str(), problem.message));
    }
}
