//! `afterimage archive`: transcripts and what they rendered to, in a directory.

use std::{io::Write, path::Path};

use afterimage::{
    json::{Object, Value},
    snapshot::Totals,
};

use crate::{
    args,
    failure::{Failure, Outcome},
    input::{self, Refused},
    json::object,
    lens::{Counting, Lenses},
    output::Output,
    store::{Builder, Summary},
    style,
    table::{Cell, Column, Table, plain},
    text::{counted, grouped, last_columns, percent, printable},
};

pub(crate) fn run(args: &args::Archive) -> Outcome {
    let Some(directory) = &args.output else {
        return Err(Failure::new("no directory to write to was given").into());
    };
    let mut out = Output::new(args.coloring.color);
    let mut builder = Builder::create(directory)?;
    let mut lenses = Lenses::new(&args.rendering, Counting::Always);
    // An archive of a part of what was named would be taken for one of all.
    input::read(&args.input, true, Refused::Ends, |source| {
        let lens = lenses.of(source)?;
        builder.add(source, &lens)
    })?;
    let summary = builder.finish()?;
    if args.json {
        out.json(json(directory, &summary))?;
    } else {
        page(directory, &summary, &mut out)?;
    }
    Ok(out.flush()?)
}

fn json(directory: &Path, summary: &Summary) -> Object {
    let files = summary.files.iter().map(|file| {
        let mut object = object! {
            "file": file.file.as_str(),
            "format": file.input_format.name(),
            "tokenizer": file.tokenizer.as_str(),
            "sessions": file.sessions.len() as u64,
        };
        object.extend(sums(file.totals()));
        object
    });
    let mut object = object! {
        "directory": directory.display().to_string(),
        "files": files.collect::<Value>(),
    };
    object.extend(sums(summary.totals()));
    object.insert("storedBytes".to_owned(), summary.stored_bytes.into());
    object
}

fn sums(totals: Totals) -> Object {
    let Totals { frames, chunks, bytes, tokens } = totals;
    object! { "frames": frames, "chunks": chunks, "bytes": bytes, "tokens": tokens }
}

fn page(directory: &Path, summary: &Summary, out: &mut Output) -> Outcome {
    let table = Table::new([
        Column::number("SESSIONS", 8),
        Column::number("FRAMES", 7),
        Column::number("CHUNKS", 8),
        Column::number("BYTES", 11),
        Column::number("TOKENS", 10),
        Column::text("FILE", 0),
    ]);
    table.head(out)?;
    let sessions = summary.files.iter().map(|file| file.sessions.len()).sum();
    for file in &summary.files {
        // Of a long path the end tells more than the beginning.
        let name = plain(last_columns(&printable(&file.file), table.rest(out)));
        table.row(out, cells(file.sessions.len(), file.totals(), name))?;
    }
    if summary.files.len() > 1 {
        let all = (format!("{} files", grouped(summary.files.len() as u64)), style::HEADING);
        table.row(out, cells(sessions, summary.totals(), all))?;
    }
    let stored = summary.stored_bytes;
    let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
    let name = directory.display().to_string();
    let (name, text) = (printable(&name), summary.totals().bytes);
    let part = if stored < text {
        format!("{dim}, {} of the text{dim:#}", percent(stored, text))
    } else {
        String::new()
    };
    writeln!(out, "\n{bold}{name}{bold:#}  {} on disk{part}", counted(stored, "byte"))?;
    Ok(())
}

fn cells(sessions: usize, totals: Totals, name: Cell) -> Vec<Cell> {
    let Totals { frames, chunks, bytes, tokens } = totals;
    let numbers = [sessions as u64, frames, chunks, bytes, tokens].map(grouped);
    numbers.into_iter().map(plain).chain([name]).collect()
}
