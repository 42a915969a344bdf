//! `afterimage frames`: the frames, as JSONL or as a table.

pub(crate) mod args;

use std::{io::Write, sync::Arc};

use afterimage::{
    json::{Object, Value},
    session::{ViewedFrame, Viewer},
    snapshot::PartRef,
    transcript::{Record, SourceContent},
};

use crate::{
    failure::Outcome,
    input::{self, Source},
    labels::{FrameLabels, Label, Labels},
    lens::{Counting, Lens, Lenses},
    output::Output,
    style,
    table::{Cell, Column, Table, plain},
    text::{first_words, grouped},
    view,
};

pub(crate) fn run(args: &args::Frames) -> Outcome {
    let mut out = Output::new(args.coloring.color);
    let as_table = args.table || (out.is_terminal && !args.json && !args.capture);
    let mut lenses = Lenses::new(&args.rendering, Counting::Always);
    input::each(&args.input, !out.is_terminal, |source| {
        let lens = lenses.of(source)?;
        let mut viewer = Viewer::new(&lens.hud, source.format());
        if as_table {
            table(source, &lens, &mut viewer, &mut out)?;
        } else {
            while let Some(record) = source.next() {
                let record = record?;
                let record =
                    if args.capture { sealed(source, &mut viewer, record)? } else { record };
                out.json(line(&record, source))?;
            }
            // A recording's requests and what is reported of them are in no frame.
            let holds = source.format().holds();
            if matches!(holds, SourceContent::Recording | SourceContent::Requests) {
                source.note(
                    "frames hold what was said: the requests and their usage are in the file",
                );
            }
        }
        Ok(out.flush()?)
    })
}

fn sealed(source: &Source, viewer: &mut Viewer<'_>, record: Record) -> Outcome<Record> {
    let ViewedFrame { session, mut frame, snapshot, .. } = source.see(viewer, record)?;
    frame.rendered_snapshot = Some(snapshot);
    Ok(Record { session, frame })
}

/// A frame in wire form, with its session.
fn line(record: &Record, source: &Source) -> Object {
    let mut line = Object::new();
    if source.is_one_of_several {
        // The files' sessions must stay apart for whoever reads the lines of all of them.
        line.insert("file".to_owned(), source.name().into());
        line.insert("session".to_owned(), format!("{}#{}", source.name(), record.session).into());
    } else {
        line.insert("session".to_owned(), (*record.session).into());
    }
    if let Value::Object(frame) = record.frame.to_json() {
        for (key, value) in frame {
            // Members that are not the wire form's own come last, and do not hide the session.
            if !line.contains_key(&key) {
                line.insert(key, value);
            }
        }
    }
    line
}

fn table(source: &mut Source, lens: &Lens, viewer: &mut Viewer<'_>, out: &mut Output) -> Outcome {
    if source.is_one_of_several {
        view::rule(out, &source.name(), style::HEADING, source.format().name())?;
    }
    let table = frame_table(out);
    table.head(out)?;
    let mut labels = Labels::default();
    let mut session: Option<Arc<str>> = None;
    while let Some(record) = source.next() {
        let seen = source.see(viewer, record?)?;
        if session.as_ref().is_some_and(|session| *session != seen.session) {
            view::rule(out, &format!("session {}", seen.session), style::HEADING, "")?;
        }
        row(&table, lens, (&seen, &labels.of_seen(&seen)), out)?;
        session = Some(seen.session);
    }
    let dim = out.paint.style(style::DIM);
    Ok(writeln!(out, "{dim}Counted by {}{dim:#}", lens.own_counts())?)
}

/// The table of frames.
pub(crate) fn frame_table(out: &Output) -> Table {
    let mut columns = vec![Column::number("FRAME", 5)];
    columns.extend(Label::columns());
    columns.push(Column::text("SOURCE", 11));
    if out.width >= WIDE {
        columns.extend([Column::text("ROLE", 9), Column::number("CHUNKS", 6)]);
    }
    columns.extend([Column::number("TOKENS", 6), Column::text("BEGINS", 0)]);
    Table::new(columns)
}

/// A row of it.
pub(crate) fn row(
    table: &Table,
    lens: &Lens,
    (seen, labels): (&ViewedFrame, &FrameLabels),
    out: &mut Output,
) -> Outcome {
    let role = seen.snapshot.chunks().find_map(|chunk| chunk.role());
    let mut cells = vec![plain(seen.frame.sequence.to_string())];
    cells.extend(labels.frame().cells());
    cells.push(plain(seen.frame.source.as_str()));
    if out.width >= WIDE {
        let name = role.map_or("–", afterimage::id::Role::as_str);
        cells.push((name.to_owned(), style::of_role(role)));
        cells.push(plain(seen.snapshot.len().to_string()));
    }
    cells.push(plain(grouped(lens.total_tokens(&seen.snapshot))));
    cells.push(begins(seen, labels, table.rest(out)));
    table.row(out, cells)
}

/// From how many columns on a table has room for everything.
const WIDE: usize = 110;

/// What a frame begins with, and its style: its first text, or the calls that it makes.
fn begins(seen: &ViewedFrame, labels: &FrameLabels, columns: usize) -> Cell {
    let own = |chunk: &afterimage::snapshot::ChunkRef<'_>| {
        let is_blank = chunk.part() == PartRef::Text && chunk.content().trim().is_empty();
        !is_blank
            && chunk.is_attributed()
            && chunk.chunk_type().is_some_and(|kind| kind != "formatting")
    };
    let Some(first) = seen.snapshot.chunks().find(own) else {
        return ("(shows nothing)".to_owned(), style::DIM);
    };
    let kind = first.chunk_type().map_or(anstyle::Style::new(), style::of_type);
    let text = match first.part() {
        PartRef::Call { .. } => {
            let calls = seen.snapshot.chunks().filter(own).filter_map(|chunk| match chunk.part() {
                PartRef::Call { name, .. } => Some((name, chunk.facet_ids().next()?)),
                _ => None,
            });
            match calls.collect::<Vec<_>>().as_slice() {
                [(_, facet)] => format!("→ {}", labels.of(facet).call(columns.saturating_sub(2))),
                calls => {
                    let names: Vec<_> = calls.iter().map(|(name, _)| *name).collect();
                    format!("→ {}", names.join(", "))
                }
            }
        }
        PartRef::Result { .. } => {
            let tool = first.facet_ids().next().and_then(|facet| labels.of(facet).tool());
            let tool = tool.map_or_else(String::new, |tool| format!("{tool}: "));
            format!("← {tool}{}", first_words(first.content(), columns))
        }
        _ => first_words(first.content(), columns),
    };
    (text, kind)
}
