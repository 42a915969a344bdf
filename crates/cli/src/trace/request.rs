//! Searching a request: its tools, its system prompt, its messages, its parameters.

use std::{io::Write, sync::Arc};

use afterimage::{
    hud::Owner,
    id::{FacetId, FrameSeq},
    json::{ObjectExt, Path, PathElement, Value},
    text::TextRange,
};

use super::Phrase;
use crate::{
    args,
    failure::{Failure, Outcome, Stop},
    input,
    json::{object, or_null},
    labels::{Label, RecordingLabels},
    lens::{Counting, Lens},
    output::{Json, Output, note},
    requests, style,
    table::{Column, Table, plain},
    text::{grouped, head, line_from, line_to},
};

/// The columns of the owner.
const OWNER: usize = 20;
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
        let labels = RecordingLabels::new(&recording);
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
                let label = frame
                    .zip(session.as_deref())
                    .map(|(frame, session)| labels.of(session, frame, Some(&facet)));
                hits.push(RequestHit {
                    facet,
                    frame,
                    label: label.unwrap_or_default(),
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
                label: Label::default(),
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
    label: Label,
    path: String,
    bytes: (usize, usize),
    /// What stands before it in the same string, and it with what follows.
    before: String,
    text: String,
}

fn print(hits: &[RequestHit], as_json: bool, out: &mut Output) -> Outcome {
    if as_json {
        let list = hits.iter().map(|hit| {
            let mut json = object! {
                "facet": hit.facet.as_str(),
                "frame": or_null(hit.frame.map(FrameSeq::get)),
                "path": hit.path.as_str(),
                "start": hit.bytes.0 as u64,
                "end": hit.bytes.1 as u64,
            };
            hit.label.put_place(&mut json);
            json.put("tool", or_null(hit.label.tool()));
            Value::from(json)
        });
        return Ok(writeln!(out, "{}", Json(&list.collect::<Value>()))?);
    }
    if hits.is_empty() {
        return Ok(());
    }
    let [time, line] = Label::columns();
    let table = Table::new([
        time,
        line,
        Column::number("FRAME", 5),
        Column::text("OWNER", OWNER),
        Column::text("PATH", 14),
        Column::number("BYTE", 7),
        Column::text("TEXT", 0),
    ]);
    table.head(out)?;
    let rest = table.rest(out);
    for hit in hits {
        let before = line_to(&hit.before, BEFORE.min(rest / 3));
        let text = format!("{before}{}", line_from(head(&hit.text, 4 * rest), rest));
        let [time, line] = hit.label.cells();
        table.row(
            out,
            vec![
                time,
                line,
                plain(hit.frame.map_or_else(|| "–".to_owned(), |frame| frame.to_string())),
                (hit.label.after(&hit.facet, OWNER), style::HEADING),
                plain(hit.path.clone()),
                plain(grouped(hit.bytes.0 as u64)),
                plain(text),
            ],
        )?;
    }
    Ok(())
}
