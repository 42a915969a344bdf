//! Searching a request: its tools, its system prompt, its messages, its parameters.

use std::{io::Write, sync::Arc};

use afterimage::{
    hud::Owner,
    id::{FacetId, FrameSeq},
    json::{Path, PathElement, Value},
    text::TextRange,
};

use super::Phrase;
use crate::{
    args,
    failure::{Failure, Outcome, Stop},
    input,
    json::{object, or_null},
    lens::{Counting, Lens},
    output::{Json, Output, note},
    requests, style,
    table::{Column, Table, plain},
    text::{grouped, head, line_from, line_to},
};

/// How many columns of the text before a hit are shown.
const BEFORE: usize = 24;

pub(super) fn run(
    args: &args::Trace,
    number: usize,
    phrase: Option<&Phrase>,
    out: &mut Output,
) -> Outcome {
    requests::of_one_file(&args.input)?;
    let Some(phrase) = phrase else {
        return Err(Failure::new("a request is searched for --text").into());
    };
    let lens = Lens::new(&args.rendering, Counting::OnDemand)?;
    let mut hits = Vec::new();
    input::each(&args.input.of_all_sessions(), true, |source| {
        let (recording, request) =
            requests::one(source, number, args.input.session.as_deref(), &lens.counter)?;
        if let Some(note) = requests::provenance_note(request.provenance()) {
            source.note(&format!("request {number} is {note}"));
        }
        let exchange = recording.exchanges().get(number.saturating_sub(1));
        let session = exchange.map(|exchange| Arc::clone(&exchange.session));
        let owned = request.in_cache_order().map_err(|error| source.refuse(error))?;
        for (path, text) in owned.root().texts() {
            for range in phrase.places(text.as_str()) {
                let owner = text.owner_of(range.start());
                let first = |ids: &[FacetId]| ids.first().map(ToString::to_string);
                let (facet, frame) = match owner {
                    Some(Owner::Recorded { facet, frame }) => {
                        // Of a message the facet that says it, where the frame tells which that is.
                        let said = frame.zip(session.as_deref());
                        let said = said.and_then(|(frame, session)| {
                            recording.facet_of(session, frame, text.as_str())
                        });
                        (said.unwrap_or_else(|| facet.clone()).to_string(), *frame)
                    }
                    Some(Owner::Chunk { frame, facet_ids, .. }) => {
                        (first(facet_ids).unwrap_or_else(|| "form".to_owned()), Some(*frame))
                    }
                    Some(Owner::Tail { facet_ids, .. }) => {
                        (first(facet_ids).unwrap_or_else(|| "form".to_owned()), None)
                    }
                    Some(Owner::Block { block, facet_ids, .. }) => {
                        (first(facet_ids).unwrap_or_else(|| format!("block {block}")), None)
                    }
                    _ => ("form".to_owned(), None),
                };
                hits.push(RequestHit {
                    facet,
                    frame,
                    path: path.to_string(),
                    bytes: (range.start(), range.end()),
                    before: text.as_str().get(..range.start()).unwrap_or_default().to_owned(),
                    text: text.as_str().get(range.start()..).unwrap_or_default().to_owned(),
                });
            }
        }
        let parameters = request.parameters().map_err(|error| source.refuse(error))?;
        // The request in cache order holds the model already.
        for (name, value) in parameters.iter().filter(|(name, _)| *name != "model") {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let hit = |range: TextRange| RequestHit {
                facet: format!("parameter:{name}"),
                frame: None,
                path: Path::from_iter([PathElement::Key(name.clone())]).to_string(),
                bytes: (range.start(), range.end()),
                before: text.get(..range.start()).unwrap_or_default().to_owned(),
                text: text.get(range.start()..).unwrap_or_default().to_owned(),
            };
            hits.extend(phrase.places(&text).into_iter().map(hit));
        }
        Ok(())
    })?;
    print(&hits, args.json, out)?;
    out.flush()?;
    if hits.is_empty() {
        note("no hit");
        return Err(Stop::Negative);
    }
    Ok(())
}

/// Where a text stands in a request.
struct RequestHit {
    facet: String,
    frame: Option<FrameSeq>,
    path: String,
    bytes: (usize, usize),
    /// What stands before it in the same string, and it with what follows.
    before: String,
    text: String,
}

fn print(hits: &[RequestHit], as_json: bool, out: &mut Output) -> Outcome {
    if as_json {
        let list = hits.iter().map(|hit| {
            Value::from(object! {
                "facet": hit.facet.as_str(),
                "frame": or_null(hit.frame.map(FrameSeq::get)),
                "path": hit.path.as_str(),
                "start": hit.bytes.0 as u64,
                "end": hit.bytes.1 as u64,
            })
        });
        return Ok(writeln!(out, "{}", Json(&list.collect::<Value>()))?);
    }
    if hits.is_empty() {
        return Ok(());
    }
    let table = Table::new([
        Column::number("FRAME", 5),
        Column::text("OWNER", 22),
        Column::text("PATH", 22),
        Column::number("BYTE", 7),
        Column::text("TEXT", 0),
    ]);
    table.head(out)?;
    let rest = table.rest(out);
    for hit in hits {
        let before = line_to(&hit.before, BEFORE.min(rest / 3));
        let text = format!("{before}{}", line_from(head(&hit.text, 4 * rest), rest));
        table.row(
            out,
            vec![
                plain(hit.frame.map_or_else(|| "–".to_owned(), |frame| frame.to_string())),
                (hit.facet.clone(), style::HEADING),
                plain(hit.path.clone()),
                plain(grouped(hit.bytes.0 as u64)),
                plain(text),
            ],
        )?;
    }
    Ok(())
}
