//! Searching requests: their tools, their system prompts, their messages, their parameters.

use std::{
    collections::{HashMap, HashSet},
    io::Write,
    rc::Rc,
    sync::Arc,
};

use afterimage::{
    hud::Owner,
    id::{FacetId, FrameSeq},
    json::{Object, ObjectExt, Path, PathElement, Value},
    request::{PartKind, Request, RequestPart},
    text::TextRange,
    transcript::RecordedExchange,
};

use super::args::Trace;
use crate::phrase::Phrase;
use crate::{
    failure::{Failure, Outcome, Stop},
    hit, input,
    json::{object, or_null},
    labels::{Label, RecordingLabels},
    lens::{Counting, Lens},
    output::{Json, Output, note},
    recorded, style,
    table::{Column, Table, plain},
    text::grouped,
};

pub(super) fn run(
    args: &Trace,
    number: usize,
    phrase: Option<&Phrase>,
    out: &mut Output,
) -> Outcome {
    recorded::of_one_file(&args.input)?;
    let Some(phrase) = phrase else {
        return Err(Failure::new("a request is searched for --text").into());
    };
    let lens = Lens::new(&args.rendering, Counting::OnDemand)?;
    let mut hits = Vec::new();
    input::each(&args.input.of_all_sessions(), true, |source| {
        let (recording, request) =
            recorded::one(source, number, args.input.session.as_deref(), &lens.counter)?;
        if let Some(note) = recorded::provenance_note(request.provenance()) {
            source.note(&format!("request {number} is {note}"));
        }
        let exchange = recording.exchanges().get(number.saturating_sub(1));
        let session = exchange.map(|exchange| Arc::clone(&exchange.session));
        let labels = RecordingLabels::new(&recording);
        let cleared = recording.cleared(number).map_err(|error| source.refuse(error))?;
        let found = search(&request, phrase).map_err(|error| source.refuse(error))?;
        for mut hit in found {
            if let (Some(session), Some(frame)) = (&session, hit.frame) {
                // Of a message the facet that says it, where the frame tells which that is.
                let said =
                    recording.facet_of(session, frame, &hit.text).filter(|_| hit.is_recorded);
                hit.facet = said.map_or(hit.facet, |facet| facet.to_string());
                hit.label = labels.of(session, frame, Some(&hit.facet));
            }
            hit.is_cleared = cleared.iter().any(|block| block.holds(&hit.path));
            hits.push(hit);
        }
        Ok(())
    })?;
    if args.json {
        let list = hits.iter().map(|hit| Value::from(hit.to_json()));
        writeln!(out, "{}", Json(&list.collect::<Value>()))?;
    } else if !hits.is_empty() {
        let table = RequestHit::table(false);
        table.head(out)?;
        hits.iter().try_for_each(|hit| hit.print(&table, None, out))?;
    }
    out.flush()?;
    if hits.is_empty() {
        note("no hit");
        return Err(Stop::Negative);
    }
    Ok(())
}

/// Where a text stands in a request.
pub(super) struct RequestHit {
    facet: String,
    frame: Option<FrameSeq>,
    /// Whether it is a part of a request that was recorded.
    is_recorded: bool,
    label: Label,
    path: Path,
    /// The string that it stands in, and where.
    text: Rc<str>,
    range: TextRange,
    /// Whether the provider cleared it before the model read the request.
    is_cleared: bool,
}

/// Where a phrase stands in a request.
fn search(request: &Request, phrase: &Phrase) -> afterimage::Result<Vec<RequestHit>> {
    let mut hits = Vec::new();
    let mut add =
        |text: &str, path: &Path, owner: &dyn Fn(usize) -> (String, Option<FrameSeq>, bool)| {
            let places = phrase.places(text);
            if places.is_empty() {
                return;
            }
            let text: Rc<str> = text.into();
            for range in places {
                let (facet, frame, is_recorded) = owner(range.start());
                let (label, is_cleared) = (Label::default(), false);
                let (path, text) = (path.clone(), Rc::clone(&text));
                hits.push(RequestHit {
                    facet,
                    frame,
                    is_recorded,
                    label,
                    path,
                    text,
                    range,
                    is_cleared,
                });
            }
        };
    let owned = request.in_cache_order()?;
    for (path, text) in owned.root().texts() {
        add(text.as_str(), &path, &|at| owner(text.owner_of(at)));
    }
    let parameters = request.parameters()?;
    // The request in cache order holds the model already.
    for (name, value) in parameters.iter().filter(|(name, _)| *name != "model") {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let path = Path::from_iter([PathElement::Key(name.clone())]);
        add(&text, &path, &|_| (format!("parameter:{name}"), None, true));
    }
    Ok(hits)
}

/// The facet and the frame of an owner, and whether that is a part of a recorded request.
fn owner(owner: Option<&Owner>) -> (String, Option<FrameSeq>, bool) {
    let first = |ids: &[FacetId]| ids.first().map(ToString::to_string);
    match owner {
        Some(Owner::Recorded { facet, frame }) => (facet.to_string(), *frame, true),
        Some(Owner::Chunk { frame, facet_ids, .. }) => {
            (first(facet_ids).unwrap_or_else(|| "form".to_owned()), Some(*frame), false)
        }
        Some(Owner::Tail { facet_ids, .. }) => {
            (first(facet_ids).unwrap_or_else(|| "form".to_owned()), None, false)
        }
        Some(Owner::Block { block, facet_ids, .. }) => {
            (first(facet_ids).unwrap_or_else(|| format!("block {block}")), None, false)
        }
        _ => ("form".to_owned(), None, false),
    }
}

/// Exchanges with the numbers of their requests.
pub(super) type Numbered<'e> = [(usize, &'e RecordedExchange)];

/// The exchanges that are listed, as `requests` numbers them.
pub(super) fn numbered(exchanges: &[RecordedExchange]) -> Vec<(usize, &RecordedExchange)> {
    let mut listed: Vec<_> = exchanges.iter().filter(|exchange| exchange.is_listed).collect();
    listed.sort_by_key(|exchange| exchange.line);
    (1..).zip(listed).collect()
}

/// Finds what stands in recorded requests and in no frame of their sessions: in tools, parameters,
/// system prompts and messages that a later request has no more. Each is named once, with the first
/// request that holds it.
pub(super) fn search_all(
    listed: &Numbered<'_>,
    phrase: &Phrase,
    mut found: impl FnMut(usize, &RecordedExchange, RequestHit) -> Outcome,
) -> Outcome {
    let system = |part: &RequestPart| matches!(part.kind, PartKind::System { .. });
    let slice = |exchange: &RecordedExchange, part: &RequestPart| {
        exchange.request.get(part.range.clone()).map(|text| (part.facet_id(), text.to_owned()))
    };
    let mut seen = HashSet::new();
    // The frame of a system prompt is that of the last request.
    let last: HashMap<&str, &RecordedExchange> =
        listed.iter().map(|(_, exchange)| (&*exchange.session, *exchange)).collect();
    for exchange in last.into_values().filter(|exchange| exchange.system_frame.is_some()) {
        let parts = Request::recorded(exchange).parts();
        let text = parts.iter().find(|part| system(part)).and_then(|part| slice(exchange, part));
        seen.extend(text.map(|(id, text)| (Arc::clone(&exchange.session), id, text)));
    }
    for (number, exchange) in listed {
        let request = Request::recorded(exchange);
        let mut parts = request.parts();
        parts.retain(|part| match part.kind {
            PartKind::Form => false,
            PartKind::Message { frame, .. } => frame.is_none(),
            _ => true,
        });
        let new = parts.iter().filter_map(|part| slice(exchange, part));
        let new: HashSet<FacetId> = new
            .filter(|(id, text)| {
                // What is said in any place of the conversation is said once.
                let id =
                    if id.as_str().starts_with("message:") { "message".into() } else { id.clone() };
                seen.insert((Arc::clone(&exchange.session), id, text.clone()))
            })
            .map(|(id, _)| id)
            .collect();
        if new.is_empty() {
            continue;
        }
        // A body that cannot be read was told of when it was read.
        for mut hit in search(&request, phrase).unwrap_or_default() {
            if hit.is_recorded && new.contains(&FacetId::from(hit.facet.as_str())) {
                hit.frame = None;
                hit.label = Label::of_line(exchange.line);
                found(*number, exchange, hit)?;
            }
        }
    }
    Ok(())
}

impl RequestHit {
    pub(super) fn to_json(&self) -> Object {
        let mut json = object! {
            "facet": self.facet.as_str(),
            "frame": or_null(self.frame.map(FrameSeq::get)),
            "path": self.path.to_string(),
            "start": self.range.start() as u64,
            "end": self.range.end() as u64,
            "read": !self.is_cleared,
        };
        self.label.put_place(&mut json);
        json.put("tool", or_null(self.label.tool()));
        json
    }

    /// The table of hits, with the numbers of their requests where they are in several.
    pub(super) fn table(has_numbers: bool) -> Table {
        let [time, line] = Label::columns();
        let mut columns = Vec::from_iter(has_numbers.then(|| Column::number("REQUEST", 7)));
        columns.extend([time, line, Column::number("FRAME", 5), Column::number("BYTE", 7)]);
        columns.push(Column::text("OWNER, PATH", 0));
        Table::new(columns)
    }

    pub(super) fn print(&self, table: &Table, number: Option<usize>, out: &mut Output) -> Outcome {
        let mut cells = Vec::from_iter(number.map(|number| plain(number.to_string())));
        cells.extend(self.label.cells());
        let rest = table.rest(out);
        let owner = self.label.after(&self.facet, rest / 2);
        cells.extend([
            plain(self.frame.map_or_else(|| "–".to_owned(), |frame| frame.to_string())),
            plain(grouped(self.range.start() as u64)),
            (format!("{owner}  {}", self.path), style::HEADING),
        ]);
        table.row(out, cells)?;
        hit::quote(out, &self.text, self.range)?;
        if !self.is_cleared {
            return Ok(());
        }
        let dim = out.paint.style(style::DIM);
        let says = "not read by the model: its provider had cleared it";
        Ok(writeln!(out, "{:7}{dim}└ {says}{dim:#}", "")?)
    }
}
